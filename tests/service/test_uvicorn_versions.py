"""The version of uvicorn is bounded, since the protocol overrides undocumented methods."""

import os
import re
import tomllib
from pathlib import Path

import uvicorn

ROOT = Path(__file__).parents[2]


def test_the_lowest_and_highest_versions_are_tested() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (bounds,) = [one for one in extras["service"] if one.startswith("uvicorn")]
    match = re.fullmatch(r"uvicorn>=(0\.\d+),<0\.(\d+)", bounds)
    assert match is not None, "both ends must be bounded"
    lowest, highest = f"{match[1]}.0", f"0.{int(match[2]) - 1}."
    assert any(re.search(r"[\[,]service[\],]", one) for one in extras["all"])
    assert f"\nuvicorn=={lowest} " in (ROOT / "requirements" / "lowest.txt").read_text()
    for requirements in ("demo.txt", "test.txt", "development.txt"):
        assert f"\nuvicorn=={highest}" in (ROOT / "requirements" / requirements).read_text()
    if os.environ.get("UVICORN_VERSION") == "lowest":
        assert uvicorn.__version__ == lowest
    else:
        assert uvicorn.__version__.startswith(highest)
