"""Validation and updates of surfaces, and the policies that they can use."""

import json
from pathlib import Path

import pytest
from helpers.live import a_ranker, a_surface

from banditrank import Surface
from banditrank.engine._served_policies import SERVED_NAMES
from banditrank.engine._surface import MAX_ITEMS
from banditrank.errors import InvalidInputError, UnknownFieldError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"items": []}, "items must be a list of 1 to 10,000 names, got 0"),
        ({"items": "abc"}, "items must be a list of 1 to 10,000 names, got 'abc'"),
        ({"items": ["a", "a"]}, "items must all be different, got 'a'"),
        ({"items": ["a", "b\n"]}, r"items\[1\] must be 1 to 200 printable characters"),
        ({"items": ["a", 5]}, r"items\[1\] must be 1 to 200 printable characters, got 5"),
        ({"items": ["a", "b", ".."]}, r"items\[2\] must not be . or .., got '..'"),
        ({"user_types": ["new", "."]}, r"user_types\[1\] must not be . or .., got '.'"),
        (
            {"items": [str(n) for n in range(MAX_ITEMS + 1)]},
            "items must be a list of 1 to 10,000 names, got 10001",
        ),
        ({"n_positions": 0}, "n_positions must be a whole number from 1 to 100, got 0"),
        (
            {"n_positions": 6},
            "n_positions must be a whole number from 1 to 5, the number of active items, got 6",
        ),
        ({"n_positions": 2.0}, "n_positions must be a whole number"),
        ({"n_positions": 4, "retired": ["a", "b"]}, "n_positions must be a whole number from 1 to 3"),
        ({"user_types": []}, "user_types must be a list of 1 to 1,000 names, got 0"),
        ({"retired": ["z"]}, "retired must be one of a, b"),
        ({"retired": list("abcde")}, "retired must leave at least one item"),
        ({"policy": "best"}, "policy must be one of auto"),
        ({"treatment": "fair"}, "treatment must be one of personalized, equal, equal-lottery, got"),
        ({"utility": "fair", "treatment": "equal"}, "utility"),
        ({"coefficient": 0.5}, "coefficient must be left out for policy auto"),
        ({"coefficient": -1.0, "policy": "ucb-rank"}, "coefficient"),
        ({"attribution_seconds": 0}, "attribution_seconds must be a number from 1"),
        ({"unreported": "lost"}, "unreported must be one of not-clicked, discarded"),
        ({"refresh_seconds": -1}, "refresh_seconds must be a number from 0"),
        ({"keep_seconds": 1}, "keep_seconds must be a number from 60"),
        (
            {
                "items": [str(n) for n in range(MAX_ITEMS)],
                "n_positions": 100,
                "user_types": ["a", "b", "c"],
            },
            "user types × items × positions must be at most 2,000,000, got 3000000",
        ),
    ],
)
def test_invalid_settings_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        a_surface(**settings)


@pytest.mark.parametrize("name", ["", "Home", "a b", "-a", ".", "..", "a" * 65, None, 5])
def test_names_fit_into_urls(name: object) -> None:
    with pytest.raises(InvalidInputError, match="name must be up to 64"):
        Surface(name, items=["a"], n_positions=1)


@pytest.mark.parametrize(
    ("policy", "needs"),
    [
        ("oracle", "the problem"),
        ("top-rank", "which of two items"),
        ("top-rank-ordered", "the order of positions"),
        ("pbm-ucb", "the positions' examination rates"),
        ("batch-rank", "it also needs"),
        ("cascade-kl-ucb", "it also needs"),
    ],
)
def test_policies_that_need_more_than_counts_do_not_serve(policy: str, needs: str) -> None:
    with pytest.raises(InvalidInputError, match="policy must learn from counts alone to serve") as rejected:
        a_surface(policy=policy)
    assert needs in str(rejected.value)


@pytest.mark.parametrize("policy", [name for name in SERVED_NAMES if name not in ("pmed", "pb-mhb")])
def test_policies_that_serve_rank_and_learn(policy: str) -> None:
    with a_ranker(a_surface(policy=policy)) as ranker:
        for _ in range(20):
            shown = ranker.rank("new")
            assert len(set(shown.items)) == 2
            ranker.feedback(shown.id, clicked=shown.items[0])
        assert ranker.explain(shown.id).is_reproduced


def test_a_surface_equals_the_one_read_from_its_definition() -> None:
    surface = a_surface(
        policy="ucb-rank",
        coefficient=0.5,
        treatment="equal",
        utility="alpha:2",
        retired=["b"],
        user_types=["ä"],
    )
    assert Surface.from_definition(surface.definition) == surface
    assert json.loads(surface.definition)["user_types"] == ["ä"]
    with pytest.raises(UnknownFieldError, match="colour is not a field, must be one of name, items"):
        Surface.from_dict({**surface.to_dict(), "colour": "red"})
    with pytest.raises(InvalidInputError, match="n_positions must be given, got"):
        Surface.from_dict({"name": "home", "items": ["a"]})


def test_personalized_treatment_has_no_utility() -> None:
    """Finding 9: a surface refuses a utility that it would ignore; stored ones are read without it."""
    with pytest.raises(InvalidInputError, match=r"^utility must be left out under personalized treatment"):
        a_surface(utility="nash")
    stored = json.dumps({**a_surface().to_dict(), "utility": "nash"})
    assert Surface.from_definition(stored) == a_surface()


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "engine.md").read_text(encoding="utf-8")
    for setting in a_surface().to_dict():
        assert f"| `{setting}` |" in page, setting
    for policy in SERVED_NAMES:
        assert policy == "thompson-rank" or f"`{policy}`" in page, policy


def test_counts_must_fit_the_updated_surface() -> None:
    surface = a_surface()
    for allowed in (
        a_surface(items=[*surface.items, "f"]),
        a_surface(user_types=[*surface.user_types, "rare"]),
        a_surface(policy="ucb-rank", treatment="equal", refresh_seconds=1.0),
        a_surface(retired=["a"]),
    ):
        assert surface.successor(allowed, version=1) is allowed
    for changed, message in (
        (Surface("other", items=surface.items, n_positions=2), "name must stay home, got 'other'"),
        (a_surface(n_positions=3), "n_positions must stay 2, got 3"),
        (a_surface(items=["b", "a", "c", "d", "e"]), "items must start with the present ones, in order"),
        (a_surface(items=["a", "b"]), "items must start with the present ones, in order"),
        (a_surface(user_types=["old"]), "user_types must start with the present ones, in order"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            surface.successor(changed, version=1)


def test_a_new_user_type_is_served_and_the_others_keep_their_counts() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("old")
        ranker.feedback(shown.id, clicked=shown.items[0])
        wider = a_surface(user_types=["new", "old", "rare"])
        ranker._engine.update_surface("home", lambda _: wider)
        rare = ranker.rank("rare")
        ranker.feedback(rare.id)
        assert ranker.counts().arrivals.tolist() == [0, 1, 1]
        assert all(ranker.explain(one.id).is_reproduced for one in (shown, rare))


def test_another_treatment_continues_from_the_same_counts() -> None:
    with a_ranker() as ranker:
        shown = [ranker.rank("old") for _ in range(5)]
        for one in shown:
            ranker.feedback(one.id, clicked=one.items[0])
        ranker._engine.update_surface("home", lambda _: a_surface(treatment="equal", utility="nash"))
        assert ranker.rank("new").items == ranker.rank("old").items
        assert ranker.counts().rounds == 5
        assert all(ranker.explain(one.id).is_reproduced for one in shown)
