"""A log that several tests read."""

import pytest

from banditrank import kdd2012
from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log


@pytest.fixture(scope="session")
def sample_log(tmp_path_factory: pytest.TempPathFactory) -> SampleLog:
    return write_sample_log(kdd2012(), tmp_path_factory.mktemp("sample"), n_rows=20_000, seed=11)
