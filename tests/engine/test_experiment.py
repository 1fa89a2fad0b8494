"""Definition of experiments, and assignment of visitors to arms."""

import json
from collections import Counter

import numpy as np
import pytest
from helpers.live import a_surface
from hypothesis import given
from hypothesis import strategies as st

from banditrank.engine import Arm, SurfaceExperiment, arm_at, assign
from banditrank.engine._experiment import MAX_ARMS, _cover
from banditrank.errors import InvalidInputError, UnknownNameError

VISITORS = [f"visitor-{n}" for n in range(20_000)]


def make_arms(*shares: float) -> list[Arm]:
    return [Arm(f"arm-{n}", share) for n, share in enumerate(shares)]


def assigned(shares: tuple[float, ...], salt: bytes = b"salt") -> np.ndarray:
    arms = make_arms(*shares)
    return np.array([assign(visitor, salt, arms) for visitor in VISITORS])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "A"}, "arms.name must be up to 64"),
        ({"name": "policy"}, "arms.name must not be that of the surface's own policy, got 'policy'"),
        ({"share": 1.5}, "arms.share must be a number from 0 to 1, got 1.5"),
        ({"share": "half"}, "arms.share must be a number"),
        ({"share": 1e-12}, "arms.share must be 0, or a number from 1e-09 to 1, got 1e-12"),
        ({"policy": "top-rank"}, "arms.policy must be one of fixed, auto"),
        ({"policy": "fixed"}, "arms.order must be given for policy fixed"),
        ({"policy": "fixed", "order": ["a", "a"]}, "arms.order must have different items, got 'a'"),
        ({"policy": "fixed", "order": "ab"}, "arms.order must be a list of items, got 'ab'"),
        ({"policy": "fixed", "order": [1]}, "arms.order must be a list of items"),
        ({"order": ["a"]}, "arms.order must be left out for policy random"),
        ({"is_learned_from": 1}, "arms.is_learned_from must be true or false, got 1"),
    ],
)
def test_invalid_arms_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Arm(**{"name": "hold-out", "share": 0.1} | settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": ""}, "experiment.name must be up to 64"),
        ({"arms": []}, "arms must be 1 to 15, got 0"),
        ({"arms": make_arms(*[0.01] * 16)}, "arms must be 1 to 15, got 16"),
        ({"arms": [Arm("a", 0.1), Arm("a", 0.2)]}, "arms.name must all be different, got 'a'"),
        ({"arms": make_arms(0.5, 0.5)}, "arms.share must leave a share for the surface's policy, got 1"),
        ({"arms": make_arms(*[0.1] * 10)}, "arms.share must leave a share"),
        ({"arms": ["a"]}, "arms must be a list of arms"),
        ({"level": 1.0}, "level must be a number from 0.5 to 0.999, got 1"),
    ],
)
def test_invalid_experiments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SurfaceExperiment(**{"name": "autumn", "arms": make_arms(0.1)} | settings)


def test_definitions_survive_json() -> None:
    arms = [Arm("hold-out", 0.05), Arm("editors", 0.1, "fixed", ("b", "a"), is_learned_from=True)]
    experiment = SurfaceExperiment("autumn", arms, level=0.9)
    assert SurfaceExperiment.from_dict(json.loads(json.dumps(experiment.to_dict()))) == experiment


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "a", "arms": [], "lvel": 0.9}, "experiment must be one of name, arms, level .did you mean"),
        ({"name": "a"}, "experiment must have arms"),
        ({"name": "a", "arms": "all"}, "arms must be a list of arms, got 'all'"),
        ({"name": "a", "arms": ["b"]}, r"experiment.arms\[0\] must be an object with settings, got 'b'"),
        ({"name": "a", "arms": [{"name": "b"}]}, r"experiment.arms\[0\] must have share"),
        (
            {"name": "a", "arms": [{"name": "b", "share": 0.1, "size": 1}]},
            r"experiment.arms\[0\] must be one of name",
        ),
        (
            {"name": "a", "arms": [{"name": "b", "share": 0.1}, {"name": "c", "share": 2}]},
            r"experiment.arms\[1\].share must be a number from 0 to 1, got 2",
        ),
        (
            {"name": "a", "arms": [{"name": "b", "share": 0.6}, {"name": "c", "share": 0.6}]},
            "experiment.arms.share must leave a share for the surface's policy, got 1.2",
        ),
        ({"name": "A", "arms": [{"name": "b", "share": 0.6}]}, "^experiment.name must be"),
    ],
)
def test_invalid_documents_are_rejected(values: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SurfaceExperiment.from_dict(values)


def test_fixed_orders_must_fit_the_surface() -> None:
    surface = a_surface(items=list("abcde"), n_positions=3, retired=["e"])

    def check(*order: str) -> None:
        SurfaceExperiment("autumn", [Arm("editors", 0.1, "fixed", order)]).check_surface(surface)

    check("c", "a", "e", "b")
    with pytest.raises(UnknownNameError, match=r"arms\[0\].order must be one of a, b, c, d, e, got 'z'"):
        check("a", "b", "z")
    with pytest.raises(InvalidInputError, match=r"arms\[0\].order must have at least 3 items that"):
        check("a", "b", "e")
    SurfaceExperiment("autumn", [Arm("old", 0.1, "ucb-rank")]).check_surface(surface)


@pytest.mark.parametrize("shares", [(0.05,), (0.5,), (0.05, 0.3, 0.1), (0.6, 0.1, 0.2), (0.06,) * 15])
def test_arms_get_their_shares_of_visitors(shares: tuple[float, ...]) -> None:
    counts = np.bincount(assigned(shares), minlength=len(shares) + 1)
    expected = len(VISITORS) * np.array([1 - sum(shares), *shares])
    # Within 4.5 standard deviations each: error rate below 1e-5 for 16 shares.
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(expected)).all()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=MAX_ARMS))
def test_intervals_have_the_length_of_the_shares(numbers: list[int]) -> None:
    shares = tuple(number / (sum(numbers) + 7) for number in numbers)
    starts, owners = _cover(shares)
    assert starts == sorted(starts)
    lengths = Counter()
    for start, end, owner in zip(starts, [*starts[1:], 1.0], owners, strict=True):
        lengths[owner] += end - start
    assert [lengths[arm] for arm in range(1, len(shares) + 1)] == pytest.approx(shares, abs=1e-8)


def test_the_same_visitor_gets_the_same_arm() -> None:
    assert (assigned((0.05, 0.3)) == assigned((0.05, 0.3))).all()
    # Other processes and versions must agree: these values may never change.
    arms = make_arms(0.3, 0.3)
    assert [assign(visitor, b"salt", arms) for visitor in VISITORS[:12]] == [
        1,
        1,
        2,
        0,
        2,
        0,
        1,
        0,
        2,
        1,
        2,
        0,
    ]
    assert SurfaceExperiment("autumn", arms).salt("home").hex()[:16] == "cf1a316727370e3f"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((0.05,), (0.9,)),
        ((0.05, 0.1), (0.5, 0.1)),
        ((0.05, 0.1), (0.05, 0.5)),
        ((0.1, 0.1, 0.1), (0.25, 0.1, 0.1)),
        ((0.1, 0.1, 0.1, 0.1), (0.1, 0.1, 0.1, 0.25)),
        ((0.2, 0.2), (0.2, 0.2, 0.2)),
        ((0.2, 0.2, 0.2), (0.2, 0.0, 0.2)),
        (tuple([0.01] * 15), (*[0.01] * 14, 0.06)),
    ],
)
def test_a_share_that_changes_moves_only_its_own_visitors(
    before: tuple[float, ...], after: tuple[float, ...]
) -> None:
    old, new = assigned(before), assigned(after)
    (changed,) = [
        arm
        for arm in range(1, len(after) + 1)
        if (before[arm - 1] if arm <= len(before) else None) != after[arm - 1]
    ]
    moved = old != new
    assert moved.any()
    assert (((old == 0) | (old == changed)) & ((new == 0) | (new == changed)))[moved].all()
    assert (moved & (old == changed)).any() != (moved & (new == changed)).any(), "in one direction"


def test_visitors_move_on_only_where_another_arm_grows() -> None:
    # The first arm covers [0, 1/2) and, beyond the second one, [0.6, 0.8): the second grows into it.
    old, new = assigned((0.7, 0.1)), assigned((0.7, 0.2))
    moved_on = ((old == 1) & (new != 1)).mean()
    assert 0 < moved_on < 0.11
    assert not ((old == 2) & (new != 2)).any()


def test_assignments_under_different_salts_are_independent() -> None:
    arms = (0.3, 0.3)
    experiment = SurfaceExperiment("autumn", make_arms(*arms))
    other = SurfaceExperiment("winter", make_arms(*arms))
    first = assigned(arms, experiment.salt("home"))
    for salt in (experiment.salt("search"), other.salt("home")):
        table = np.zeros((3, 3))
        np.add.at(table, (first, assigned(arms, salt)), 1)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        # χ² with 4 degrees of freedom exceeds 23.5 with probability 1e-4.
        assert ((table - expected) ** 2 / expected).sum() < 23.5
    assert experiment.salt("home") != SurfaceExperiment("e-autumn", make_arms(0.1)).salt("hom")


def test_stopped_arms_get_no_visitors() -> None:
    assert set(assigned((0.2, 0.0, 0.1))) == {0, 1, 3}
    assert [arm_at(point, make_arms(0.0)) for point in (0.0, 0.5)] == [0, 0]


@pytest.mark.parametrize("visitor", ["", "x" * 201, 5, None])
def test_invalid_visitors_are_rejected(visitor: object) -> None:
    with pytest.raises(InvalidInputError, match="visitor must be 1 to 200 characters"):
        assign(visitor, b"salt", make_arms(0.1))


def test_any_text_is_a_visitor() -> None:
    for visitor in ("😀", "é", "\ud800", "\0"):
        assert assign(visitor, b"salt", make_arms(0.5)) in {0, 1}
