"""The service conforms to its OpenAPI document."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.running_service import running

from banditrank.service._application import ROUTES
from banditrank.service._openapi import openapi_document

# A request may fit the types and break a rule that they cannot state: a user type that there is not. A new
# surface has no experiment, which is not found.
BEYOND_TYPES = "positive_data_acceptance,ensure_resource_availability"

ALL_PHASES = "examples,coverage,fuzzing,stateful"


# A closed service rejects nearly all requests before it reads them, so few random ones of each operation do.
@pytest.mark.parametrize(
    ("require_keys", "examples", "phases"),
    [
        pytest.param(False, 5, ALL_PHASES, id="open"),
        pytest.param(True, 3, "fuzzing", id="closed"),
        pytest.param(False, 40, ALL_PHASES, id="open, in depth", marks=pytest.mark.campaign),
        pytest.param(True, 40, ALL_PHASES, id="closed, in depth", marks=pytest.mark.campaign),
    ],
)
def test_responses_conform_to_the_openapi_document(
    tmp_path: Path,
    require_keys: bool,  # noqa: FBT001
    examples: int,
    phases: str,
) -> None:
    surface = {"name": "0", "items": ["0", "a", "b"], "n_positions": 2, "user_types": ["0", "1"]}
    with running(require_keys=require_keys, max_stream_seconds=0.01) as service:
        service.ask("POST", "/v1/surfaces", surface)
        options = [
            "--max-examples",
            str(examples),
            "--generation-deterministic",
            "--request-timeout",
            "300",  # the first of a kind is compiled
            "--phases",
            phases,
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


def test_descriptions_are_plain_sentences() -> None:
    document = openapi_document(ROUTES)
    described = [*document["components"]["schemas"].values()]
    described += [operation for methods in document["paths"].values() for operation in methods.values()]
    described += [one for schema in described for one in schema.get("properties", {}).values()]
    texts = [one[name] for one in described for name in ("summary", "description") if name in one]
    assert len(texts) > 100
    for text in texts:
        assert text.endswith("."), text
        assert not re.search(r"`|\n|---", text), text
    response = document["components"]["schemas"]["RankingResponse"]
    assert response["properties"]["items"]["description"] == "Items in order of positions."
    request = document["components"]["schemas"]["CreateSurfaceRequest"]
    assert request["properties"]["policy"]["description"].startswith(
        "Name of the policy"
    )  # of its base class
