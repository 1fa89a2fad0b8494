"""Periodic tasks survive failures."""

import asyncio
from unittest.mock import AsyncMock

import pytest

from banditrank.service._periodic import run_periodically


def test_consecutive_failures_are_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    first, again, second = ValueError("first"), ValueError("again"), ValueError("second")
    task = AsyncMock(side_effect=[None, first, again, None, second, None, asyncio.CancelledError])
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_periodically("work", task, 0.0))
    logged = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage() for record in logged] == ["periodic task failed"] * 2
    assert [vars(record)["task"] for record in logged] == ["work"] * 2
    assert [record.exc_info[1] for record in logged] == [first, second]
