"""What is done again and again goes on if it fails."""

import asyncio
from unittest.mock import AsyncMock

import pytest

from banditrank.service.periodic import run_periodically


def test_failures_are_told_once_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    first, again, second = ValueError("first"), ValueError("again"), ValueError("second")
    work = AsyncMock(side_effect=[None, first, again, None, second, None, asyncio.CancelledError])
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_periodically("work", work, 0.0))
    told = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage() for record in told] == ["work failed, and is tried again"] * 2
    assert [record.exc_info[1] for record in told] == [first, second]
