"""Addresses of empty stores, of every kind that outlives a process."""

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'store.db'}"
    found: str = request.getfixturevalue(request.param).address()  # starts the server on first use
    return found
