"""What the Python interface cannot take is refused in one line, wherever it is handed in."""

from collections.abc import Callable

import pytest

from banditrank import (
    InvalidInputError,
    Timeline,
    UCBRank,
    make_timeline,
    make_policy,
    make_problem,
    kdd2012,
    simulate,
)
from banditrank.policies.forgetful import Forgetful

WORLD = kdd2012()
TIMELINE = Timeline([WORLD, WORLD], [1, 50])

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: make_policy("auto", None), r"^problem must be a Problem .*, got None$"),
    (lambda: make_policy("pbm-ts", "kdd2012"), r"^problem must be a Problem .*, got 'kdd2012'$"),
    (lambda: make_policy("ucb-rank", WORLD, smoothed="x"), "^smoothed must be true or false, got 'x'$"),
    (lambda: make_policy("oracle", WORLD, click_model=3), "^click model must be a ClickModel or .*, got 3$"),
    (lambda: make_policy("auto", WORLD, rewards=3), "^rewards must be Rewards or a name of some, got 3$"),
    (lambda: make_policy("auto", WORLD, memory=5), "^memory must be a Memory, or window:ROUNDS .*, got 5$"),
    (lambda: Forgetful("auto", "window:50"), "^inner must be a CompiledPolicy .*, got 'auto'$"),
    (lambda: Forgetful(UCBRank(0.5), 5), "^memory must be a Memory, or window:ROUNDS .*, got 5$"),
    (lambda: make_timeline(WORLD, None, 100), "^changes must be a text such as item-jumps:3, got None$"),
    (lambda: make_timeline(None, "turnover:2", 100), "^problem must be a Problem: .*, got None$"),
    (lambda: make_timeline(TIMELINE, "turnover:2", 100), "^problem must be a Problem: one that does not change"),
    (lambda: make_timeline(WORLD, "turnover:2", "100"), "^horizon must be a whole number from 2 .*, got '100'$"),
    (lambda: make_timeline(WORLD, "item-jumps:3", 0), "^horizon must be a whole number from 2 to .*, got 0$"),
    (lambda: Timeline([WORLD, None], [1, 5]), "^problems must be a list of Problems, got "),
    (lambda: Timeline(WORLD, [1]), "^problems must be a list of Problems, got "),
    (lambda: Timeline([WORLD, WORLD], None), "^starts must be a list of rounds, got None$"),
    (lambda: simulate("auto", WORLD, 10, click_model="cascades"), "did you mean cascade"),
    (lambda: simulate("auto", WORLD, 10, rewards="gauss"), "^rewards must be one of .*, got 'gauss'$"),
    (
        lambda: simulate("auto", WORLD, 10, click_model="cascade", rewards="beta:4"),
        "^rewards must not be graded under click model cascade: .*, got 'beta:4:1'$",
    ),
    (
        lambda: make_policy("ucb-rank", WORLD, treatment="equal", solver="foo"),
        "^solver must be one of auto, assignment, enumeration, sampling, branch-and-bound, spatial, got",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_it_is_refused_in_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_click_models_and_rewards_go_by_name() -> None:
    world = make_problem("random", n_user_types=1, n_items=3, n_positions=2, seed=1)
    result = simulate("random", world, 50, 1, rewards="beta:4", click_model="position-based")
    assert (result.rewards, result.click_model) == ("beta:4:1", "position-based")
