"""Invalid arguments of the Python interface raise one-line errors."""

from collections.abc import Callable

import pytest

from banditrank import (
    InvalidInputError,
    Timeline,
    UCBRank,
    kdd2012,
    make_policy,
    make_problem,
    make_timeline,
    simulate,
)
from banditrank.policies._forgetful import Forgetful

PROBLEM = kdd2012()
TIMELINE = Timeline([PROBLEM, PROBLEM], [1, 50])

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: make_policy("oracle"), "^problem must be given for policy oracle, got None$"),
    (lambda: make_policy("pbm-ts"), "^problem must be given for policy pbm-ts, got None$"),
    (
        lambda: make_policy("top-rank-ordered"),
        "^problem must be given for policy top-rank-ordered, got None$",
    ),
    (
        lambda: UCBRank(coefficient=1.0, schedule=lambda _: 1.0),
        "^coefficient must be left out if a schedule is given, got 1.0$",
    ),
    (lambda: UCBRank(schedule=1.0), "^schedule must be a Schedule or a function of the round, got 1.0$"),
    (lambda: make_policy("pbm-ts", "kdd2012"), r"^problem must be a Problem .*, got 'kdd2012'$"),
    (lambda: make_policy("ucb-rank", PROBLEM, smoothed="x"), "^smoothed must be true or false, got 'x'$"),
    (
        lambda: make_policy("oracle", PROBLEM, click_model=3),
        "^click model must be a ClickModel or .*, got 3$",
    ),
    (lambda: make_policy("auto", PROBLEM, rewards=3), "^rewards must be Rewards or a name of some, got 3$"),
    (
        lambda: make_policy("auto", PROBLEM, memory=5),
        "^memory must be a Forgetting, or window:ROUNDS .*, got 5$",
    ),
    (lambda: Forgetful("auto", "window:50"), "^policy must be a CompiledPolicy .*, got 'auto'$"),
    (
        lambda: Forgetful(UCBRank(coefficient=0.5), 5),
        "^memory must be a Forgetting, or window:ROUNDS .*, got 5$",
    ),
    (lambda: make_timeline(PROBLEM, None, 100), "^changes must be a string such as item-jumps:3, got None$"),
    (lambda: make_timeline(None, "turnover:2", 100), "^problem must be a stationary Problem, got None$"),
    (
        lambda: make_timeline(TIMELINE, "turnover:2", 100),
        "^problem must be a stationary Problem, got Timeline",
    ),
    (
        lambda: make_timeline(PROBLEM, "turnover:2", "100"),
        "^horizon must be a whole number from 2 .*, got '100'$",
    ),
    (
        lambda: make_timeline(PROBLEM, "item-jumps:3", 0),
        "^horizon must be a whole number from 2 to .*, got 0$",
    ),
    (lambda: Timeline([PROBLEM, None], [1, 5]), "^problems must be a list of Problems, got "),
    (lambda: Timeline(PROBLEM, [1]), "^problems must be a list of Problems, got "),
    (lambda: Timeline([PROBLEM, PROBLEM], None), "^starts must be a list of rounds, got None$"),
    (lambda: simulate("auto", PROBLEM, 10, click_model="cascades"), "did you mean cascade"),
    (lambda: simulate("auto", PROBLEM, 10, rewards="gauss"), "^rewards must be one of .*, got 'gauss'$"),
    (
        lambda: simulate("auto", PROBLEM, 10, click_model="cascade", rewards="beta:4"),
        "^rewards must not be graded under click model cascade: .*, got 'beta:4:1'$",
    ),
    (
        lambda: make_policy("ucb-rank", PROBLEM, treatment="equal", solver="foo"),
        "^solver must be one of auto, assignment, enumeration, sampling, branch-and-bound, spatial, got",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_it_is_refused_in_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_click_models_and_rewards_go_by_name() -> None:
    problem = make_problem("random", n_user_types=1, n_items=3, n_positions=2, seed=1)
    result = simulate("random", problem, 50, 1, rewards="beta:4", click_model="position-based")
    assert (result.rewards, result.click_model) == ("beta:4:1", "position-based")
