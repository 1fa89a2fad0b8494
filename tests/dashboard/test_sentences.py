"""Sentences claim no more than the intervals allow: each rule at both sides of its edge."""

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
        [{"m": 0.31, "lo": 0.28, "hi": 0.35}, {"m": 0.69, "lo": 0.65, "hi": 0.72}],
        [{"m": 0.41, "lo": 0.40, "hi": 0.42}, {"m": 0.59, "lo": 0.58, "hi": 0.60}],
    ],
    "items": [
        [{"m": m, "lo": m - 0.05, "hi": m + 0.05} for m in (0.38, 0.41, 0.63, 0.80, 0.43)],
        [{"m": m, "lo": m - 0.05, "hi": m + 0.05} for m in (0.23, 0.35, 0.50, 0.49, 0.33)],
    ],
    "arrivals": [0.5, 0.5],
    "now": [
        {
            "ranking": [2, 3],
            "value": 0.745,
            "lo": 0.73,
            "hi": 0.76,
            "p_best": {"m": 0.9925, "lo": 0.978, "hi": 0.9974},
            "shown": {"share": 0.99, "of": 480},
            "runner_up": {"ranking": [3, 2], "delta": -0.062, "lo": -0.08, "hi": -0.04, "by_type": [-0.062]},
        },
        {
            "ranking": [3, 2],
            "value": 0.494,
            "lo": 0.48,
            "hi": 0.51,
            "p_best": {"m": 0.66, "lo": 0.61, "hi": 0.7},
            "shown": {"share": 0.68, "of": 1},
            "runner_up": {
                "ranking": [2, 3],
                "delta": -0.0005,
                "lo": -0.01,
                "hi": 0.009,
                "by_type": [-0.0005],
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


def test_who_sees_what_and_where_most_is_looked_at(say: Any) -> None:
    assert say("shownAnswer", STATE) == (
        "Male users see Ad 3, Ad 4. Female users mostly see Ad 4, Ad 3. "
        "Position 2 gets the most looks from every type, so the item with the highest estimate goes there."
    )


def test_the_strongest_item_is_only_said_to_stand_there_if_it_does(say: Any) -> None:
    state = changed()
    state["now"][1]["ranking"] = [2, 4]
    assert say("shownAnswer", state).endswith("Position 2 gets the most looks from every type.")


def test_nothing_is_said_of_positions_whose_intervals_overlap(say: Any) -> None:
    state = changed()
    state["positions"][1] = [{"m": 0.45, "lo": 0.38, "hi": 0.52}, {"m": 0.55, "lo": 0.51, "hi": 0.6}]
    assert "Position" not in say("shownAnswer", state)
    assert not any("draws" in str(piece) for piece in say("whyShown", state, 1))


def test_a_ranking_that_is_shown_seldom_is_not_said_to_be_seen(say: Any) -> None:
    state = changed()
    state["now"][0]["shown"] = {"share": 0.3, "of": 1000}
    state["now"][1]["shown"] = None
    assert say("shownAnswer", state).startswith(
        "Best known for Male users is Ad 3, Ad 4. Best known for Female users is Ad 4, Ad 3."
    )


def test_types_with_one_ranking_are_named_together(say: Any) -> None:
    state = changed()
    state["now"][1] = state["now"][0]
    assert say("shownAnswer", state).startswith("Male and Female users see Ad 3, Ad 4.")


def test_the_next_best_is_less_only_if_its_interval_says_so(say: Any) -> None:
    told = say("whyShown", STATE, 0)
    assert told == [
        "Position 2 draws 69% of looks and gets Ad 4. ",
        "The next best ranking, Ad 4, Ad 3, is estimated to bring 0.062 clicks per visit less. ",
        "Shown in 99% of the last 480 rankings for Male.",
    ]
    stressed, still_open, often = say("whyShown", STATE, 1)[1:4]
    assert often == "Shown in 68% of the last 1 ranking for Female."
    assert stressed == ["Still open: "]
    assert still_open == (
        "the order Ad 3, Ad 4 is estimated 0.0005 clicks per visit away, "
        "and the two cannot be told apart yet. "
    )
    state = changed()
    state["now"][0]["runner_up"]["hi"] = 0.0001  # whatever else is sure
    assert ["Still open: "] in say("whyShown", state, 0)
    state["now"][0]["runner_up"] = None
    assert not any("next best" in str(piece) for piece in say("whyShown", state, 0))


def equal(**of_now: Any) -> Document:
    state = changed(surface=STATE["surface"] | {"treatment": "equal", "utility": "nash"})
    state["now"] = [
        state["now"][0] | {"value": [0.745, 0.49], "lo": [0.73, 0.48], "hi": [0.76, 0.5]} | of_now
    ]
    state["now"][0]["runner_up"] |= {"by_type": [0.2, -0.01]}
    return state


def test_under_equal_treatment_the_utility_decides_what_is_told_apart(say: Any) -> None:
    changes = "The next best ranking, Ad 4, Ad 3, would change Male by +0.200 and Female by −0.010 "
    assert say("whyShownToEveryone", equal()) == [f"{changes}clicks per visit. "]  # more clicks, less utility
    state = equal()
    state["now"][0]["runner_up"]["hi"] = 0.0001
    assert say("whyShownToEveryone", state)[1:] == [
        ["Still open: "],
        "the two cannot be told apart yet in Nash value.",
    ]


def test_the_best_ranking_is_called_so_from_95_percent_on(say: Any) -> None:
    assert say("shownAnswer", equal()) == (
        "Everyone sees Ad 3, Ad 4. It has the best Nash value over all 2 user types; that is 99% sure."
    )
    every = {"m": 1.0, "lo": 0.9905, "hi": 1.0}  # of 400 draws
    assert say("shownAnswer", equal(p_best=every)).endswith("that is >99% sure.")
    nearly = {"m": 0.96, "lo": 0.949, "hi": 0.97}
    assert say("shownAnswer", equal(p_best=nearly, shown={"share": 0.6, "of": 1000})) == (
        "Everyone mostly sees Ad 3, Ad 4. "
        "It has the best estimated Nash value over all 2 user types, and is the best with 96% certainty."
    )
    assert "that is 96% sure" in say("shownAnswer", equal(p_best=nearly | {"lo": 0.95}))
    assert say("shownAnswer", equal(p_best=None)) == (
        "Everyone sees Ad 3, Ad 4. It has the best estimated Nash value over all 2 user types."
    )


@pytest.mark.parametrize(
    ("ranking", "reason", "feedback"),
    [
        ({"why": "best", "feedback": "waiting"}, "Best known", "Waiting"),
        ({"why": "order", "feedback": "none"}, "Trying another order", "No click"),
        ({"why": "item", "feedback": "unreported"}, "Trying another item", "Not reported"),
        # What was tried is what was not in the best of its time, whatever is best now.
        ({"why": "item", "tried": [2], "feedback": "clicked", "item": 3}, "Trying Ad 3", "Clicked Ad 4"),
    ],
)
def test_why_a_ranking_was_what_it_was_and_what_became_of_it(
    ranking: Document, reason: str, feedback: str, say: Any
) -> None:
    told = {"type": 0, "ranking": [2, 3], "tried": [], "item": None} | ranking
    assert say("reasonWords", STATE, told) == reason
    assert say("feedbackWords", STATE, told) == feedback


# What has been learned?


def test_the_strongest_item_is_named_where_no_interval_reaches_it(say: Any) -> None:
    assert say("learnedAnswer", STATE) == (
        "Position 2 draws the most looks: 69% for Male and 59% for Female. "
        "For Male, Ad 4 is the strongest item. For Female, Ad 3 and Ad 4 cannot be told apart yet."
    )


def test_touching_intervals_are_not_told_apart(say: Any) -> None:
    state = changed()
    state["items"][0][2] = {"m": 0.6, "lo": 0.5, "hi": state["items"][0][3]["lo"]}
    assert "For Male, Ad 4 and Ad 3 cannot be told apart yet." in say("learnedAnswer", state)
    state["items"][0][2]["hi"] -= 0.0001
    assert "For Male, Ad 4 is the strongest item." in say("learnedAnswer", state)


def test_a_wide_interval_far_below_still_counts(say: Any) -> None:
    state = changed()
    state["items"][0][0] = {"m": 0.1, "lo": 0.0, "hi": 0.99}  # hardly ever shown
    assert "For Male, Ad 4 and Ad 1 cannot be told apart yet." in say("learnedAnswer", state)


def test_retired_items_do_not_compete(say: Any) -> None:
    state = changed(surface=STATE["surface"] | {"retired": ["Ad 4"]})
    assert "For Male and Female, Ad 3 is the strongest item." in say("learnedAnswer", state)


def test_nothing_is_known_while_all_intervals_are_wide(say: Any) -> None:
    wide = [[{"m": 0.5, "lo": 0.0, "hi": 1.0}] * 5] * 2
    state = changed(items=wide, positions=[[{"m": 0.5, "lo": 0.0, "hi": 1.0}] * 2] * 2)
    assert say("learnedAnswer", state) == (
        "For Male and Female, the position that draws the most looks cannot be told yet. "
        "For Male and Female, no item can be told from the others yet."
    )


def test_types_that_look_elsewhere(say: Any) -> None:
    state = changed()
    state["positions"][1] = state["positions"][1][::-1]
    assert say("learnedAnswer", state).startswith(
        "Male users look most at position 2 and Female users at position 1."
    )


# Is it working?


def worked(clicks: float, visits: int = 10_000, **changes: Any) -> Document:
    """Return a state with so many clicks and visits in the last hour."""
    state = changed(
        began="2026-03-02T14:00:00Z",
        as_of="2026-03-03T14:00:00Z",
        last_hour={
            "visits": [visits // 4, 3 * visits // 4],
            "clicks": [clicks / 2, clicks / 2],
            "other_item": 0.01,
            "other_order": 0.15,
        },
        optimum=[{"m": 0.9, "lo": 0.9, "hi": 0.9}, {"m": 0.5, "lo": 0.5, "hi": 0.5}],  # 0.6 in all
        random=[0.6, 0.4],
    )
    return state | changes


ESTIMATED = {
    "truth": False,
    "optimum": [{"m": 0.9, "lo": 0.86, "hi": 0.94}, {"m": 0.5, "lo": 0.486667, "hi": 0.513333}],
}


def test_the_last_hour_against_the_known_optimum_of_the_same_visits(say: Any) -> None:
    assert say("workingAnswer", worked(5960)) == (
        "The last hour brought 0.596 clicks per visit. The best possible is 0.600; random order gives 0.450. "
        "The gap to the best is within chance. "
        "16% of displays explored, mostly by swapping the order of the same items."
    )
    # 95% of 0.59 in 10,000 is 0.5803 to 0.5996: the optimum is just outside
    assert "more than chance" in say("workingAnswer", worked(5900))
    assert "above what the best ranking is worth" in say("workingAnswer", worked(6400))


def test_an_estimated_optimum_is_called_so_and_its_interval_counts(say: Any) -> None:
    said = say("workingAnswer", worked(5800, **ESTIMATED))
    assert "The best possible is estimated to be 0.600; random order is estimated to give 0.450." in said
    assert "The gap to the best is within chance." in said  # 0.570 to 0.590 meets 0.58 to 0.62
    assert "The gap to the best is more than chance." in say("workingAnswer", worked(5600, **ESTIMATED))


def test_the_best_is_called_the_best_known_where_it_may_not_be_the_best_of_all(say: Any) -> None:
    surface = STATE["surface"] | {"treatment": "equal", "utility": "nash"}
    said = say("workingAnswer", worked(5800, **ESTIMATED, surface=surface, optimum_of_all=False))
    assert "The best known equal ranking is estimated to be 0.600;" in said
    assert "The gap to the best known is within chance." in said


def test_few_visits_are_not_told_from_random_order(say: Any) -> None:
    said = say("workingAnswer", worked(24, 40))
    assert "The gap to the best is within chance. So is the gap to random order." in said
    assert "random order gives 0.450. The gap" in say("workingAnswer", worked(5960))


def test_as_much_of_an_hour_as_there_is(say: Any) -> None:
    assert say("workingAnswer", worked(5960, as_of="2026-03-02T14:00:42Z")).startswith(
        "The last 42 s brought"
    )
    assert say("workingAnswer", worked(0, 0)) == "No visits were counted in the last hour."
    assert say("workingAnswer", worked(0, 0, began=None)) == "No visits have been counted yet."


def test_what_is_mostly_explored_is_twice_the_other(say: Any) -> None:
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
        told = {"treatment": treatment, "value": value, "lo": low, "hi": high, "rankings": rankings}
        return told | ({} if utility is None else {"utility": utility, "price": None})

    return [
        one("personalized", None, own, [[2, 3], [3, 2]]),
        one("equal", "utilitarian", shared, [[2, 3]]),
        one("equal", "nash", nash, [[3, 2]]),
    ]


def test_what_equality_costs_is_said_where_intervals_part(say: Any) -> None:
    state = changed(fair=fair([0.74, 0.5], [0.70, 0.495], [0.74, 0.45]))
    assert say("fairAnswer", state) == (
        "One utilitarian ranking for everyone would cost Male 0.040 clicks per visit. "
        "For Female the difference is within the uncertainty of the estimates."
    )
    state = changed(fair=fair([0.74, 0.5], [0.721, 0.495], [0.74, 0.45]))
    assert say("fairAnswer", state) == (
        "One utilitarian ranking for everyone: "
        "for Male and Female the difference is within the uncertainty of the estimates."
    )
    state = changed(fair=fair([0.74, 0.5], [0.74, 0.5], [0.74, 0.5]))
    state["fair"][1]["price"] = {"m": 0.0, "lo": 0.0, "hi": 0.076}
    assert say("fairAnswer", state) == (
        "By the estimates one utilitarian ranking for everyone would cost nobody anything; "
        "it may cost up to 7.6% of clicks."
    )


def test_those_who_lose_nothing_are_counted(say: Any) -> None:
    for names, ending in ((["a", "b"], "The other type loses"), (["a", "b", "c"], "The others lose")):
        same = [0.5] * (len(names) - 1)
        state = changed(
            surface=STATE["surface"] | {"types": names}, fair=fair([0.7, *same], [0.6, *same], [0.6, *same])
        )
        assert say("fairAnswer", state).endswith(f"{ending} nothing by the estimates.")
    state["fair"][1]["value"][1], state["fair"][1]["hi"][1] = 0.4, 0.41
    assert say("fairAnswer", state).endswith("The other type loses nothing by the estimates.")


def test_whom_the_live_utility_helps_is_said_where_intervals_part(say: Any) -> None:
    surface = STATE["surface"] | {"treatment": "equal", "utility": "nash"}
    state = changed(surface=surface, fair=fair([0.74, 0.5], [0.74, 0.30], [0.6, 0.45]))
    state["fair"][1]["price"] = {"m": 0.1, "lo": 0.05, "hi": 0.15}
    state["fair"][2]["price"] = {"m": 0.19, "lo": 0.15, "hi": 0.23}
    within = (
        "By the estimates Nash gives up 10.0% of all clicks against utilitarian, "
        "which is within their uncertainty. "
    )
    assert say("fairAnswer", state) == (
        "One ranking for everyone costs Male 0.140 and Female 0.050 clicks per visit. "
        f"{within}Nash lifts Female, by the estimates worst off under utilitarian, from 0.300 to 0.450."
    )
    state["fair"][2]["price"]["lo"] = 0.16
    assert " clicks per visit. Nash gives up 10.0% of all clicks against utilitarian. Nash lifts" in say(
        "fairAnswer", state
    )
    state = changed(surface=surface, fair=fair([0.74, 0.5], [0.74, 0.30], [0.6, 0.315]))
    assert say("fairAnswer", state).endswith(
        "Whether Nash helps the type worst off under utilitarian cannot be told yet."
    )


def test_one_type_is_treated_alike(say: Any) -> None:
    state = changed(surface=STATE["surface"] | {"types": ["everybody"]})
    assert say("fairAnswer", state) == "There is one user type: everyone is treated alike."


def test_a_price_has_its_interval_and_is_never_negative(say: Any) -> None:
    state = changed(fair=fair([0.74, 0.5], [0.74, 0.45], [0.70, 0.495]))
    state["fair"][2]["price"] = {"m": 0.031, "lo": -0.002, "hi": 0.064}
    assert say("priceWords", state, 2) == {"shown": "3.1%", "between": "between 0.00% and 6.4%"}
    state["fair"][2]["price"] = {"m": -1e-9, "lo": -0.1, "hi": 0.1}
    assert say("priceWords", state, 2)["shown"] == "0.00%"


# Is it healthy?


def test_checks_are_counted_and_named(say: Any) -> None:
    check = {"n": "Store", "v": "1", "d": "", "l": "", "s": "ok", "hour": []}
    assert say("healthyAnswer", changed(health=[check] * 7), 0) == "All 7 checks pass."
    late = check | {"n": "Feedback delay", "s": "warn"}
    assert say("healthyAnswer", changed(health=[check, late, check]), 0) == (
        "One check needs a look: feedback delay. The other 2 pass."
    )
    gone = check | {"s": "bad"}
    assert say("healthyAnswer", changed(health=[gone, late, check]), 0) == (
        "2 checks need a look: store and feedback delay. The other passes."
    )
    assert say("healthyAnswer", STATE, 42) == (
        "Not known: the service has not answered for 42 s. These are the last figures."
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
        ("m.sureness({m: 1, lo: 0.9905})", ">99%"),
        ("m.sureness({m: 1, lo: 0.929})", ">92%"),
        ("m.sureness({m: 0.995, lo: 0.982})", ">98%"),
        ("m.sureness({m: 0.9925, lo: 0.978})", "99%"),
        ("m.sureness({m: 0.66, lo: 0.61})", "66%"),
        ("m.sureness({m: 1, lo: 1})", "100%"),
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
def test_numbers_as_words(expression: str, words: str, shared_page: Page) -> None:
    assert evaluate_module(shared_page, "words.js", expression) == words


def test_the_interval_of_a_rate_is_wilsons(shared_page: Page) -> None:
    # Brown, Cai and DasGupta's formula, by hand for 10 of 50.
    found = evaluate_module(shared_page, "facts.js", "m.rateInterval(10, 50)")
    assert (found["m"], found["lo"], found["hi"]) == pytest.approx((0.2, 0.1124375, 0.3303711), abs=1e-6)
    assert evaluate_module(shared_page, "facts.js", "m.rateInterval(0, 0)") is None
    assert evaluate_module(shared_page, "facts.js", "m.rateInterval(5, 5).hi") == 1
