"""Requests that version 0.2 answered get the same answers."""

import json
from pathlib import Path

import pytest
from helpers.exchanges import play

RECORDED = Path(__file__).with_name("exchanges_0_2.jsonl").read_text(encoding="utf-8").splitlines()


def test_every_exchange_of_0_2_is_the_same(subtests: pytest.Subtests) -> None:
    recorded = [json.loads(line) for line in RECORDED]
    played = list(play())
    assert [each["request"] for each in played] == [each["request"] for each in recorded]
    for before, now in zip(recorded, played, strict=True):
        with subtests.test(request=before["request"]):
            assert now["response"] == before["response"]
