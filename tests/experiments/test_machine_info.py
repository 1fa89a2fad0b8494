"""The machine is described beside running times."""

import platform
from pathlib import Path

import pytest

from banditrank.experiments._machine_info import describe_machine


def test_it_names_the_processor_its_cores_and_python() -> None:
    processor, cores, *_ = describe_machine().split(", ")
    assert processor
    assert cores.endswith(" cores")
    assert describe_machine().endswith(f"{platform.system()}, Python {platform.python_version()}")


def test_it_works_without_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "abacus")
    assert describe_machine.__wrapped__().startswith("abacus, ")
