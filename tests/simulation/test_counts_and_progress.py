"""A simulation returns its final counts, and reports progress to a callback."""

from pathlib import Path
from threading import Lock

import numpy as np
import pytest

from banditrank import Counts, GreedyRank, InvalidInputError, Policy, TypeBlindUCB, UCBRank, kdd2012, simulate


class Fixed(Policy):
    """Shows the same ranking to all users."""

    def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN201, ARG002
        return np.arange(counts.n_positions)


@pytest.mark.parametrize(
    "policy", [UCBRank(coefficient=0.25), GreedyRank(coefficient=0.5, treatment="equal"), Fixed()]
)
def test_counts_are_those_that_the_policy_had_seen(policy: Policy) -> None:
    plain = simulate(policy, kdd2012(), 800, 3, 5, workers=1)
    kept = simulate(policy, kdd2012(), 800, 3, 5, workers=2, keep_counts=True)
    assert plain.counts == ()
    assert np.array_equal(plain.regret, kept.regret)
    assert len(kept.counts) == 3
    alone = simulate(policy, kdd2012(), 800, 1, 5, keep_counts=True)
    assert alone.counts[0] == kept.counts[0] != kept.counts[1]
    for counts in kept.counts:
        assert counts.rounds == counts.arrivals.sum() == 800
        assert np.array_equal(counts.displays.sum(axis=1), counts.arrivals[:, None].repeat(2, axis=1))
        assert (counts.rewards <= counts.displays).all()
        assert counts.rewards.sum() > 0


def test_counts_lead_to_the_same_choices_as_in_the_simulation() -> None:
    """One round more adds what the policy shows on the counts of the rounds before."""
    policy = UCBRank(coefficient=0.25)
    before, after = (
        simulate(policy, kdd2012(), horizon, 1, 3, keep_counts=True).counts[0] for horizon in (2000, 2001)
    )
    user_type = int(np.argmax(after.arrivals - before.arrivals))
    ranking = policy.rank(before, user_type, rng=np.random.default_rng(0))
    expected = Counts.empty_for(kdd2012())
    expected.record(user_type, ranking, rewards=[0, 0])
    assert np.array_equal(after.displays - before.displays, expected.displays)


def test_a_policy_that_takes_all_users_for_one_type_has_seen_one() -> None:
    counts = simulate(TypeBlindUCB(coefficient=0.25), kdd2012(), 500, 1, 1, keep_counts=True).counts[0]
    assert counts.n_user_types == 1
    assert counts.rounds == 500


def test_counts_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="keep_counts must be left out where replications are saved"):
        simulate(UCBRank(coefficient=0.25), kdd2012(), 100, 1, save_to=tmp_path / "runs", keep_counts=True)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("policy", [UCBRank(coefficient=0.25), Fixed()])
def test_a_progress_callback_gets_every_round(policy: Policy, capsys: pytest.CaptureFixture) -> None:
    made: list[int] = []
    lock = Lock()

    def note(rounds: int) -> None:
        with lock:
            made.append(rounds)

    simulate(policy, kdd2012(), 3000, 4, 1, workers=2, progress=note)
    assert sum(made) == 4 * 3000
    assert len(made) > 4
    assert min(made) > 0
    assert capsys.readouterr().err == ""
