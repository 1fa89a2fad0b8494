"""The service does what its description says, whatever it is sent."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.running_service import running

EXAMPLES = 40  # of each operation
# A request may fit the types and break a rule that they cannot state: a user type that there is not.
BEYOND_TYPES = "positive_data_acceptance"


@pytest.mark.parametrize("require_keys", [False, True], ids=["open", "closed"])
def test_no_request_is_answered_otherwise_than_described(tmp_path: Path, require_keys: bool) -> None:  # noqa: FBT001
    surface = {"name": "0", "items": ["0", "a", "b"], "n_positions": 2, "user_types": ["0", "1"]}
    with running(require_keys=require_keys, stream_seconds=0.01) as service:
        service.ask("POST", "/v1/surfaces", surface)
        options = [
            "--max-examples",
            str(EXAMPLES),
            "--generation-deterministic",
            "--request-timeout",
            "300",  # the first of a kind is compiled
            "--exclude-checks",
            BEYOND_TYPES,
        ]
        tested = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{service.address}/openapi.json", *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert tested.returncode == 0, tested.stdout[-3000:] + tested.stderr[-1000:]
    assert "Tested: " in tested.stdout
