"""Several clicks and later rewards of a ranking are recorded, and counted once."""

from typing import Any

import pytest
from helpers.live import Clock, a_ranker, a_surface, wait_until
from hypothesis import given
from hypothesis import strategies as st

from banditrank._feedback import Feedback
from banditrank._ranker import Ranker
from banditrank.engine._surface import Surface
from banditrank.errors import ConflictingFeedbackError, ExpiredRankingError, InvalidInputError


def several(**settings: Any) -> Surface:
    return a_surface(click_model="position-based", attribution_seconds=60.0, **settings)


def rewards_of(ranker: Ranker, items: tuple[str, ...]) -> list[float]:
    """Return the counted rewards of items at their positions."""
    counts = ranker.counts()
    numbers = [ranker.surface.items.index(item) for item in items]
    return [float(counts.rewards[:, number, k].sum()) for k, number in enumerate(numbers)]


def test_clicks_are_recorded_until_one_is_final() -> None:
    with a_ranker(several()) as ranker:
        shown = ranker.rank("new")
        first, second = shown.items
        assert ranker.feedback(shown.id, clicked=first, reward=0.25) == "recorded"
        assert ranker.feedback(shown.id, clicked=[first], reward=0.25) == "repeated"
        assert ranker.counts().rounds == 0
        explained = ranker.explain(shown.id).outcome
        assert (explained.state, [one.reward for one in explained.clicks]) == ("pending", [0.25])
        assert ranker.feedback(shown.id, clicked=[second]) == "recorded"
        assert ranker.feedback(shown.id, clicked=first, final=True) == "counted"
        assert [ranker.feedback(shown.id, clicked=one) for one in (first, second)] == ["repeated"] * 2
        assert ranker.feedback(shown.id) == "repeated", "it says that nothing more follows"
        assert rewards_of(ranker, shown.items) == [1.0, 1.0]
        assert ranker.counts().rounds == 1
        clicks = ranker.explain(shown.id).outcome.clicks
        assert [(one.item, one.position, one.reward) for one in clicks] == [(first, 1, 1.0), (second, 2, 1.0)]


def test_the_end_of_the_window_counts_what_was_recorded() -> None:
    clock = Clock()
    with a_ranker(several(), clock=clock) as ranker:
        clicked, ignored = ranker.rank("new"), ranker.rank("old")
        assert ranker.feedback(clicked.id, clicked=list(clicked.items)) == "recorded"
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 61.0
        with pytest.raises(ExpiredRankingError):
            ranker.feedback(ignored.id, clicked=ignored.items[0])
        assert ranker.feedback(clicked.id, clicked=clicked.items[0]) == "repeated"
        clock.now += 5.0
        wait_until(lambda: ranker.counts().rounds == 2)
        assert rewards_of(ranker, clicked.items) == [1.0, 1.0]
        assert ranker.explain(clicked.id).outcome.state == "clicked"
        assert ranker.explain(ignored.id).outcome.state == "not-clicked"


def test_recorded_clicks_count_where_rankings_without_feedback_are_discarded() -> None:
    clock = Clock()
    with a_ranker(several(unreported="discarded"), clock=clock) as ranker:
        clicked = ranker.rank("new")
        ranker.rank("new")
        ranker.feedback(clicked.id, clicked=clicked.items[1])
        clock.now += 66.0
        wait_until(lambda: ranker.counts().rounds == 1)
        assert rewards_of(ranker, clicked.items) == [0.0, 1.0]


def test_a_purchase_replaces_a_click_under_a_single_look() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        assert ranker.feedback(shown.id, clicked=shown.items[0], reward=0.1, final=False) == "recorded"
        with pytest.raises(ConflictingFeedbackError):
            ranker.feedback(shown.id, clicked=shown.items[1], final=False)
        with pytest.raises(ConflictingFeedbackError):
            ranker.feedback(shown.id, clicked=shown.items[1])
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert ranker.feedback(shown.id, clicked=shown.items[0], reward=0.1, final=False) == "repeated"
        assert rewards_of(ranker, shown.items) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("click_model", "feedback", "message"),
    [
        ("single-look", {"clicked": 2}, "clicked must be at most one item under click model single-look"),
        ("single-look", {"final": False}, "final must be true without a click, got False"),
        ("position-based", {"final": False}, "final must be true without a click, got False"),
        ("position-based", {"clicked": ["z"]}, "clicked must be one of"),
        ("position-based", {"reward": 0.5}, "reward must be left out without a click, got 0.5"),
        ("position-based", {"clicked": 1, "reward": 1.5}, "reward must be"),
        ("position-based", {"clicked": 3}, "clicked must be a name or a list of names"),
        ("position-based", {"clicked": 1, "final": 1}, "final must be true or false, got 1"),
    ],
)
def test_invalid_feedback_records_nothing(click_model: Any, feedback: dict[str, Any], message: str) -> None:
    with a_ranker(a_surface(click_model=click_model)) as ranker:
        shown = ranker.rank("new")
        choices = {1: [shown.items[0]], 2: list(shown.items), 3: {shown.items[0]: 1}}
        clicked = feedback.get("clicked")
        clicked = choices[clicked] if isinstance(clicked, int) else clicked
        with pytest.raises(InvalidInputError, match=message):
            ranker.feedback(shown.id, **feedback | {"clicked": clicked})
        assert ranker.explain(shown.id).outcome.state == "pending"
        assert ranker.feedback(shown.id) == "counted"


CLICK = st.tuples(st.integers(0, 1), st.sampled_from([0.1, 0.5, 1.0]))


@given(events=st.lists(CLICK, max_size=6), order=st.randoms(use_true_random=False), split=st.integers(0, 12))
def test_any_interleaving_counts_the_largest_rewards_once(
    events: list[tuple[int, float]], order: Any, split: int
) -> None:
    """Clicks, larger rewards and retries in any order, in batches of any size, before the final feedback."""
    with a_ranker(several()) as ranker:
        shown = ranker.rank("new")
        sent = [Feedback(shown.id, shown.items[position], reward) for position, reward in events * 2]
        order.shuffle(sent)
        for batch in (sent[:split], sent[split:]):
            assert set(ranker.feedback_batch(batch)) <= {"recorded", "repeated"}
        assert ranker.feedback(shown.id, final=True) == "counted"
        assert set(ranker.feedback_batch([*sent, Feedback(shown.id)])) == {"repeated"}
        expected = [
            max([reward for k, reward in events if k == position], default=0.0) for position in (0, 1)
        ]
        assert rewards_of(ranker, shown.items) == pytest.approx(expected, abs=1e-6)
        assert ranker.counts().rounds == 1
