"""Sentences claim only what the intervals support: each rule is tested on both sides of its limit."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from helpers.dashboard_documents import Document, make
from helpers.dashboard_page import evaluate_module
from helpers.dashboard_server import serving
from playwright.sync_api import Browser, Page

STATE: Document = make().dashboard | {
    "positions": [
        [{"estimate": 0.31, "low": 0.28, "high": 0.35}, {"estimate": 0.69, "low": 0.65, "high": 0.72}],
        [{"estimate": 0.41, "low": 0.40, "high": 0.42}, {"estimate": 0.59, "low": 0.58, "high": 0.60}],
    ],
    "items": [
        [{"estimate": m, "low": m - 0.05, "high": m + 0.05} for m in (0.38, 0.41, 0.63, 0.80, 0.43)],
        [{"estimate": m, "low": m - 0.05, "high": m + 0.05} for m in (0.23, 0.35, 0.50, 0.49, 0.33)],
    ],
    "arrival_rates": [0.5, 0.5],
    "best_rankings": [
        {
            "ranking": [2, 3],
            "value": 0.745,
            "low": 0.73,
            "high": 0.76,
            "probability_best": {"estimate": 0.9925, "low": 0.978, "high": 0.9974},
            "loss": {"estimate": 0.00002, "low": 0.0, "high": 0.0},
            "shown": {"share": 0.99, "n_rankings": 480},
            "runner_up": {
                "ranking": [3, 2],
                "difference": -0.062,
                "low": -0.08,
                "high": -0.04,
                "by_user_type": [-0.062],
            },
        },
        {
            "ranking": [3, 2],
            "value": 0.494,
            "low": 0.48,
            "high": 0.51,
            "probability_best": {"estimate": 0.66, "low": 0.61, "high": 0.7},
            "loss": {"estimate": 0.0004, "low": 0.0, "high": 0.00494},
            "shown": {"share": 0.68, "n_rankings": 1},
            "runner_up": {
                "ranking": [2, 3],
                "difference": -0.0005,
                "low": -0.01,
                "high": 0.009,
                "by_user_type": [-0.0005],
            },
        },
    ],
}


@pytest.fixture(scope="module")
def server_address() -> Iterator[str]:
    with serving(make()) as server:
        yield server.address


@pytest.fixture(scope="module")
def shared_page(browser: Browser, server_address: str) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server_address)
        yield page


@pytest.fixture
def say(shared_page: Page) -> Any:
    def sentence(function: str, *arguments: Any) -> Any:
        return evaluate_module(shared_page, "sentences.js", f"m.{function}(...a)", list(arguments))

    return sentence


def changed(**changes: Any) -> Document:
    return deepcopy(STATE) | changes


# What is shown now?


def test_current_rankings_and_the_position_with_the_most_looks(say: Any) -> None:
    assert say("shownAnswer", STATE) == (
        "Male users see Ad 3, Ad 4. Female users mostly see Ad 4, Ad 3. "
        "Position 2 gets the most looks of every user type, so the item with the highest estimate goes there."
    )


def test_the_best_item_is_mentioned_only_if_it_is_at_the_top_position(say: Any) -> None:
    state = changed()
    state["best_rankings"][1]["ranking"] = [2, 4]
    assert say("shownAnswer", state).endswith("Position 2 gets the most looks of every user type.")


def test_positions_with_overlapping_intervals_are_not_mentioned(say: Any) -> None:
    state = changed()
    state["positions"][1] = [
        {"estimate": 0.45, "low": 0.38, "high": 0.52},
        {"estimate": 0.55, "low": 0.51, "high": 0.6},
    ]
    assert "Position" not in say("shownAnswer", state)
    assert not any("of looks" in str(piece) for piece in say("whyShown", state, 1))


def test_a_ranking_that_is_shown_rarely_is_called_the_best_known(say: Any) -> None:
    state = changed()
    state["best_rankings"][0]["shown"] = {"share": 0.3, "n_rankings": 1000}
    state["best_rankings"][1]["shown"] = None
    assert say("shownAnswer", state).startswith(
        "The best known ranking for Male users is Ad 3, Ad 4. "
        "The best known ranking for Female users is Ad 4, Ad 3."
    )


def test_types_with_the_same_ranking_are_grouped(say: Any) -> None:
    state = changed()
    state["best_rankings"][1] = state["best_rankings"][0]
    assert say("shownAnswer", state).startswith("Male and Female users see Ad 3, Ad 4.")


def test_the_next_best_ranking_is_worse_only_if_the_difference_is_significant(say: Any) -> None:
    parts = say("whyShown", STATE, 0)
    assert parts == [
        "Position 2 gets 69% of looks and shows Ad 4. ",
        "The next best ranking, Ad 4, Ad 3, has 0.062 clicks per visit less by the estimates. ",
        "Shown in 99% of the last 480 rankings for Male.",
    ]
    stressed, still_open, *_, often = say("whyShown", STATE, 1)[1:]
    assert often == "Shown in 68% of the last 1 ranking for Female."
    assert stressed == ["Still open: "]
    assert still_open == (
        "the order Ad 3, Ad 4 is estimated 0.0005 clicks per visit away, "
        "and the two cannot be distinguished yet. "
    )
    state = changed()
    state["best_rankings"][0]["runner_up"]["high"] = 0.0001  # whatever else is sure
    assert ["Still open: "] in say("whyShown", state, 0)
    state["best_rankings"][0]["runner_up"] = None
    assert not any("next best" in str(piece) for piece in say("whyShown", state, 0))


def equal(**of_now: Any) -> Document:
    state = changed(surface=STATE["surface"] | {"treatment": "equal", "utility": "nash"})
    state["best_rankings"] = [
        state["best_rankings"][0]
        | {"value": [0.745, 0.49], "low": [0.73, 0.48], "high": [0.76, 0.5]}
        | of_now
    ]
    state["best_rankings"][0]["runner_up"] |= {"by_user_type": [0.2, -0.01]}
    return state


def test_under_equal_treatment_the_utility_decides_significance(say: Any) -> None:
    changes = "The next best ranking, Ad 4, Ad 3, would change Male by +0.200 and Female by −0.010 "
    assert say("whyShownToAll", equal()) == [f"{changes}clicks per visit. "]  # more clicks, less utility
    state = equal()
    state["best_rankings"][0]["runner_up"]["high"] = 0.0001
    assert say("whyShownToAll", state)[1:] == [
        ["Still open: "],
        "the two cannot be distinguished yet in Nash value. ",
    ]


def test_little_is_at_stake_up_to_a_loss_of_1_percent(say: Any) -> None:
    stake, amount = say("whyShown", STATE, 1)[3:5]
    assert stake == ["Little is at stake: "]  # 0.00494 of 0.494
    assert amount == ("the expected loss against the best ranking is 0.4 clicks per 1,000 visits (0.0–4.9). ")
    state = changed()
    state["best_rankings"][1]["loss"] |= {"high": 0.00495}
    assert say("whyShown", state, 1)[3] == ["At stake: "]
    state["best_rankings"][1]["loss"] = None
    assert not any("at stake" in str(part).lower() for part in say("whyShown", state, 1))
    assert not any("at stake" in str(part).lower() for part in say("whyShown", STATE, 0))  # it is the best


def test_stakes_under_equal_treatment_are_of_all_users(say: Any) -> None:
    loss = {"estimate": 0.02, "low": 0.0, "high": 0.00617}  # of (0.745 + 0.49) / 2
    state = equal(probability_best={"estimate": 0.05, "low": 0.03, "high": 0.08}, loss=loss)
    assert say("whyShownToAll", state)[1:] == [
        ["Little is at stake: "],
        "the expected loss against the best ranking is 20 clicks per 1,000 visits (0.0–6.2). ",
    ]
    state["best_rankings"][0]["loss"] |= {"high": 0.00618}
    assert say("whyShownToAll", state)[1] == ["At stake: "]


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        ([0.0], "0.0 clicks per 1,000 visits"),
        ([0.00004], "<0.1 clicks per 1,000 visits"),
        ([0.00994, 0.0004], "0.4 to 9.9 clicks per 1,000 visits"),
        ([0.01, 0.25], "10 to 250 clicks per 1,000 visits"),
        ([0.001, 0.00101], "1.0 clicks per 1,000 visits"),
    ],
)
def test_losses_are_per_thousand_visits(losses: list[float], text: str, say: Any) -> None:
    assert say("lossText", [{"estimate": loss} for loss in losses]) == text


def test_a_ranking_is_called_the_best_from_a_probability_of_95_percent(say: Any) -> None:
    assert say("shownAnswer", equal()) == (
        "All users see Ad 3, Ad 4. It has the best Nash value over all 2 user types, with probability 99%."
    )
    every = {"estimate": 1.0, "low": 0.9905, "high": 1.0}  # of 400 draws
    assert say("shownAnswer", equal(probability_best=every)).endswith(", with probability >99%.")
    nearly = {"estimate": 0.96, "low": 0.949, "high": 0.97}
    assert say("shownAnswer", equal(probability_best=nearly, shown={"share": 0.6, "n_rankings": 1000})) == (
        "All users mostly see Ad 3, Ad 4. "
        "It has the best estimated Nash value over all 2 user types, and is the best with probability 96%; "
        "the expected loss is <0.1 clicks per 1,000 visits."
    )
    assert "value over all 2 user types, with probability 96%" in say(
        "shownAnswer", equal(probability_best=nearly | {"low": 0.95})
    )
    assert say("shownAnswer", equal(probability_best=None, loss=None)) == (
        "All users see Ad 3, Ad 4. It has the best estimated Nash value over all 2 user types."
    )


@pytest.mark.parametrize(
    ("ranking", "reason", "feedback"),
    [
        ({"reason": "best", "feedback": "pending"}, "Best known", "Pending"),
        ({"reason": "order", "feedback": "not-clicked"}, "Exploring another order", "No click"),
        ({"reason": "item", "feedback": "unreported"}, "Exploring another item", "Not reported"),
        # What was tried is what was not in the best of its time, whatever is best now.
        (
            {"reason": "item", "explored_items": [2], "feedback": "clicked", "clicked": [3]},
            "Exploring Ad 3",
            "Clicked Ad 4",
        ),
    ],
)
def test_reason_and_feedback_of_a_ranking(ranking: Document, reason: str, feedback: str, say: Any) -> None:
    document = {"user_type": 0, "ranking": [2, 3], "explored_items": [], "clicked": None} | ranking
    assert say("reasonText", STATE, document) == reason
    assert say("feedbackText", STATE, document) == feedback


# What has been learned?


def test_the_strongest_item_is_named_if_no_interval_overlaps(say: Any) -> None:
    assert say("learnedAnswer", STATE) == (
        "Position 2 gets the most looks: 69% for Male and 59% for Female. "
        "For Male, Ad 4 is the strongest item. For Female, Ad 3 and Ad 4 cannot be distinguished yet."
    )


def several_clicks() -> Document:
    state = changed(surface=STATE["surface"] | {"click_model": "position-based"})
    for row, other in zip(state["positions"], (0.45, 0.70), strict=True):
        row[:] = [
            {"estimate": other, "low": other - 0.05, "high": other + 0.05},
            {"estimate": 1.0, "low": 1.0, "high": 1.0},
        ]
    return state


def test_position_based_looks_are_relative_to_the_most_looked_at_position(say: Any) -> None:
    state = several_clicks()
    assert say("learnedAnswer", state).startswith(
        "Position 2 gets the most looks; the other gets 45% to 70% as many. "
    )
    assert say("whyShown", state, 0)[0] == "Position 2 gets the most looks and shows Ad 4. "
    state["positions"][1][0] |= {"high": 1.0}  # may be the most looked-at one
    state["positions"][1][1] |= {"low": 0.9}
    assert "For Female, the position with the most looks is not known yet." in say("learnedAnswer", state)


def test_touching_intervals_are_not_distinguished(say: Any) -> None:
    state = changed()
    state["items"][0][2] = {"estimate": 0.6, "low": 0.5, "high": state["items"][0][3]["low"]}
    assert "For Male, Ad 4 and Ad 3 cannot be distinguished yet." in say("learnedAnswer", state)
    state["items"][0][2]["high"] -= 0.0001
    assert "For Male, Ad 4 is the strongest item." in say("learnedAnswer", state)


def test_a_wide_interval_overlaps_from_below(say: Any) -> None:
    state = changed()
    state["items"][0][0] = {"estimate": 0.1, "low": 0.0, "high": 0.99}  # hardly ever shown
    assert "For Male, Ad 4 and Ad 1 cannot be distinguished yet." in say("learnedAnswer", state)


def test_retired_items_do_not_compete(say: Any) -> None:
    state = changed(surface=STATE["surface"] | {"retired": ["Ad 4"]})
    assert "For Male and Female, Ad 3 is the strongest item." in say("learnedAnswer", state)


def test_wide_intervals_distinguish_nothing(say: Any) -> None:
    wide = [[{"estimate": 0.5, "low": 0.0, "high": 1.0}] * 5] * 2
    state = changed(items=wide, positions=[[{"estimate": 0.5, "low": 0.0, "high": 1.0}] * 2] * 2)
    assert say("learnedAnswer", state) == (
        "For Male and Female, the position with the most looks is not known yet. "
        "For Male and Female, no item can be distinguished from the others yet."
    )


def test_types_with_different_top_positions(say: Any) -> None:
    state = changed()
    state["positions"][1] = state["positions"][1][::-1]
    assert say("learnedAnswer", state).startswith(
        "Male users look most at position 2 and Female users at position 1."
    )


# Is it working?


def worked(clicks: float, visits: int = 10_000, **changes: Any) -> Document:
    """Return a state with a number of clicks and visits in the last hour."""
    state = changed(
        started_at="2026-03-02T14:00:00Z",
        as_of="2026-03-03T14:00:00Z",
        last_hour={
            "visits": [visits // 4, 3 * visits // 4],
            "clicks": [clicks / 2, clicks / 2],
            "other_item": 0.01,
            "other_order": 0.15,
        },
        optimum=[
            {"estimate": 0.9, "low": 0.9, "high": 0.9},
            {"estimate": 0.5, "low": 0.5, "high": 0.5},
        ],  # 0.6 in all
        random=[0.6, 0.4],
    )
    return state | changes


ESTIMATED = {
    "has_true_values": False,
    "optimum": [
        {"estimate": 0.9, "low": 0.86, "high": 0.94},
        {"estimate": 0.5, "low": 0.486667, "high": 0.513333},
    ],
}


def test_the_last_hour_is_compared_with_the_true_optimum(say: Any) -> None:
    assert say("workingAnswer", worked(5960)) == (
        "The last hour had 0.596 clicks per visit. The best possible is 0.600; random order has 0.450. "
        "The gap to the best is within chance. "
        "16% of displays explored, mostly by swapping the order of the same items."
    )
    # 95% of 0.59 in 10,000 is 0.5803 to 0.5996: the optimum is just outside
    assert "more than chance" in say("workingAnswer", worked(5900))
    assert "above the value of the best ranking by more than chance" in say("workingAnswer", worked(6400))


def test_an_estimated_optimum_has_an_interval(say: Any) -> None:
    said = say("workingAnswer", worked(5800, **ESTIMATED))
    assert "The best possible is estimated to be 0.600; random order is estimated to have 0.450." in said
    assert "The gap to the best is within chance." in said  # 0.570 to 0.590 meets 0.58 to 0.62
    assert "The gap to the best is more than chance." in say("workingAnswer", worked(5600, **ESTIMATED))


def test_an_optimum_that_is_not_proven_is_called_the_best_known(say: Any) -> None:
    surface = STATE["surface"] | {"treatment": "equal", "utility": "nash"}
    said = say("workingAnswer", worked(5800, **ESTIMATED, surface=surface, is_optimum_exact=False))
    assert "The best known equal ranking is estimated to be 0.600;" in said
    assert "The gap to the best known is within chance." in said


def test_few_visits_are_not_distinguished_from_random_order(say: Any) -> None:
    said = say("workingAnswer", worked(24, 40))
    assert "The gap to the best is within chance. So is the gap to random order." in said
    assert "random order has 0.450. The gap" in say("workingAnswer", worked(5960))


def test_the_last_hour_can_be_shorter(say: Any) -> None:
    assert say("workingAnswer", worked(5960, as_of="2026-03-02T14:00:42Z")).startswith("The last 42 s had")
    assert say("workingAnswer", worked(0, 0)) == "No visits were counted in the last hour."
    assert say("workingAnswer", worked(0, 0, started_at=None, rounds=0)) == "No visits have been counted yet."


def test_visits_without_times_are_not_denied(say: Any) -> None:
    ending = "imported or counted before the time series began. None have been counted since."
    state = worked(0, 0, started_at=None, rounds=50_000)
    assert say("workingAnswer", state) == f"All 50,000 visits were {ending}"
    assert say("workingAnswer", state | {"rounds": 1}) == f"The one visit was {ending}"


def test_exploration_is_mostly_of_one_kind_if_it_is_twice_the_other(say: Any) -> None:
    for item, order, ending in (
        (0.1, 0.04, "14% of displays explored, mostly by trying other items."),
        (0.1, 0.06, "16% of displays explored."),
        (0.0, 0.0, "Nothing was explored."),
        (None, None, "The gap to the best is within chance."),  # nothing to compare with
    ):
        state = worked(5960)
        state["last_hour"] |= {"other_item": item, "other_order": order}
        assert say("workingAnswer", state).endswith(ending)


# Is it fair?


def fair(own: list[float], shared: list[float], nash: list[float], width: float = 0.01) -> list[Document]:
    def one(treatment: str, utility: str | None, value: list[float], rankings: list[list[int]]) -> Document:
        low, high = [v - width for v in value], [v + width for v in value]
        document = {"treatment": treatment, "value": value, "low": low, "high": high, "rankings": rankings}
        return document | ({} if utility is None else {"utility": utility, "price": None})

    return [
        one("personalized", None, own, [[2, 3], [3, 2]]),
        one("equal", "utilitarian", shared, [[2, 3]]),
        one("equal", "nash", nash, [[3, 2]]),
    ]


def test_the_cost_of_equality_is_stated_if_it_is_significant(say: Any) -> None:
    state = changed(treatments=fair([0.74, 0.5], [0.70, 0.495], [0.74, 0.45]))
    assert say("fairAnswer", state) == (
        "One utilitarian ranking for all users would cost Male 0.040 clicks per visit. "
        "For Female the difference is within the uncertainty of the estimates."
    )
    state = changed(treatments=fair([0.74, 0.5], [0.721, 0.495], [0.74, 0.45]))
    assert say("fairAnswer", state) == (
        "One utilitarian ranking for all users: "
        "for Male and Female the difference is within the uncertainty of the estimates."
    )
    state = changed(treatments=fair([0.74, 0.5], [0.74, 0.5], [0.74, 0.5]))
    state["treatments"][1]["price"] = {"estimate": 0.0, "low": 0.0, "high": 0.076}
    assert say("fairAnswer", state) == (
        "By the estimates, one utilitarian ranking for all users would cost no user type any clicks; "
        "it may cost up to 7.6% of clicks."
    )


def test_types_that_lose_nothing_are_counted(say: Any) -> None:
    for names, ending in ((["a", "b"], "The other type loses"), (["a", "b", "c"], "The others lose")):
        same = [0.5] * (len(names) - 1)
        state = changed(
            surface=STATE["surface"] | {"user_types": names},
            treatments=fair([0.7, *same], [0.6, *same], [0.6, *same]),
        )
        assert say("fairAnswer", state).endswith(f"{ending} nothing, by the estimates.")
    state["treatments"][1]["value"][1], state["treatments"][1]["high"][1] = 0.4, 0.41
    assert say("fairAnswer", state).endswith("The other type loses nothing, by the estimates.")


def test_the_benefit_of_a_utility_is_stated_if_it_is_significant(say: Any) -> None:
    surface = STATE["surface"] | {"treatment": "equal", "utility": "nash"}
    state = changed(surface=surface, treatments=fair([0.74, 0.5], [0.74, 0.30], [0.6, 0.45]))
    state["treatments"][1]["price"] = {"estimate": 0.1, "low": 0.05, "high": 0.15}
    state["treatments"][2]["price"] = {"estimate": 0.19, "low": 0.15, "high": 0.23}
    within = (
        "By the estimates, Nash costs 10.0% of all clicks compared with utilitarian, "
        "which is within their uncertainty. "
    )
    assert say("fairAnswer", state) == (
        "One ranking for all users costs Male 0.140 and Female 0.050 clicks per visit. "
        f"{within}Nash lifts Female, which is worst off under utilitarian by the estimates, "
        "from 0.300 to 0.450."
    )
    state["treatments"][2]["price"]["low"] = 0.16
    assert " clicks per visit. Nash costs 10.0% of all clicks compared with utilitarian. Nash lifts" in say(
        "fairAnswer", state
    )
    state = changed(surface=surface, treatments=fair([0.74, 0.5], [0.74, 0.30], [0.6, 0.315]))
    assert say("fairAnswer", state).endswith(
        "It is not known yet whether Nash helps the type that is worst off under utilitarian."
    )


def test_a_single_type_is_treated_equally(say: Any) -> None:
    state = changed(surface=STATE["surface"] | {"user_types": ["everybody"]})
    assert say("fairAnswer", state) == "There is one user type, so all users are treated equally."


def test_a_price_has_its_interval_and_is_never_negative(say: Any) -> None:
    state = changed(treatments=fair([0.74, 0.5], [0.74, 0.45], [0.70, 0.495]))
    state["treatments"][2]["price"] = {"estimate": 0.031, "low": -0.002, "high": 0.064}
    assert say("priceText", state, 2) == {"shown": "3.1%", "between": "between 0.00% and 6.4%"}
    state["treatments"][2]["price"] = {"estimate": -1e-9, "low": -0.1, "high": 0.1}
    assert say("priceText", state, 2)["shown"] == "0.00%"


# Is it healthy?


def test_failing_checks_are_counted_and_named(say: Any) -> None:
    check = {"name": "Store", "value": "1", "description": "", "limit": "", "status": "ok", "last_hour": []}
    assert say("healthyAnswer", changed(health=[check] * 7), 0) == "All 7 checks pass."
    late = check | {"name": "Feedback delay", "status": "warn"}
    assert say("healthyAnswer", changed(health=[check, late, check]), 0) == (
        "One check needs attention: feedback delay. The other 2 pass."
    )
    gone = check | {"status": "bad"}
    assert say("healthyAnswer", changed(health=[gone, late, check]), 0) == (
        "2 checks need attention: store and feedback delay. The other passes."
    )
    assert say("healthyAnswer", STATE, 42) == (
        "Unknown: the service has not responded for 42 s. These are the last values."
    )


# Words


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("m.percent(0.3134)", "31%"),
        ("m.percent(0.001)", "<1%"),
        ("m.percent(0)", "0%"),
        ("m.percent(0.995)", ">99%"),
        ("m.percent(0.999)", ">99%"),
        ("m.percent(1)", "100%"),
        ("m.probability({estimate: 1, low: 0.9905})", ">99%"),
        ("m.probability({estimate: 1, low: 0.929})", ">92%"),
        ("m.probability({estimate: 0.995, low: 0.982})", ">98%"),
        ("m.probability({estimate: 0.9925, low: 0.978})", "99%"),
        ("m.probability({estimate: 0.66, low: 0.61})", "66%"),
        ("m.probability({estimate: 1, low: 1})", "100%"),
        ("m.number(-0.0001)", "0.000"),
        ("m.number(-0.25, 2)", "−0.25"),
        ("m.signed(0.25, 2)", "+0.25"),
        ("m.difference(0.00001)", "no change"),
        ("m.difference(-0.0005)", "−0.0005"),
        ("m.difference(-0.05)", "−0.050"),
        ("m.duration(42)", "42 s"),
        ("m.duration(90)", "1 min"),
        ("m.duration(5400)", "1 h 30 min"),
        ("m.duration(172800)", "2 d"),
        ("m.list(['a', 'b', 'c'])", "a, b and c"),
        ("m.shortList(['a', 'b', 'c', 'd'], 2)", "a, b and 2 others"),
        ("m.shortList(['a', 'b', 'c'], 2)", "a, b and 1 other"),
        ("m.plural(1, 'visit')", "1 visit"),
        ("m.plural(1234, 'visit')", "1,234 visits"),
    ],
)
def test_formatting(expression: str, words: str, shared_page: Page) -> None:
    assert evaluate_module(shared_page, "format.js", expression) == words


def test_rate_intervals_are_wilsons(shared_page: Page) -> None:
    # Brown, Cai and DasGupta's formula, by hand for 10 of 50.
    found = evaluate_module(shared_page, "selectors.js", "m.rateInterval(10, 50)")
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx(
        (0.2, 0.1124375, 0.3303711), abs=1e-6
    )
    assert evaluate_module(shared_page, "selectors.js", "m.rateInterval(0, 0)") is None
    assert evaluate_module(shared_page, "selectors.js", "m.rateInterval(5, 5).high") == 1


def test_rate_intervals_of_several_clicks_are_those_of_displays(shared_page: Page) -> None:
    # 75 clicks in 50 visits with 3 positions: three times the interval of 75 of 150.
    found = evaluate_module(shared_page, "selectors.js", "m.rateInterval(75, 50, 3)")
    share = evaluate_module(shared_page, "selectors.js", "m.rateInterval(75, 150)")
    assert found["estimate"] == 1.5
    assert [found["low"], found["high"]] == pytest.approx([3 * share["low"], 3 * share["high"]])
    assert found["low"] < 1.5 < found["high"] < 3
