"""The documented limits are those that schemas and engine enforce."""

import re
from pathlib import Path
from typing import Any

import pytest

from banditrank import InvalidInputError, Surface
from banditrank.engine import _surface as limits
from banditrank.engine._experiment import MAX_ARMS, MAX_VISITOR_LENGTH
from banditrank.service import _schemas as schemas
from banditrank.service._application import ROUTES
from banditrank.service._openapi import openapi_document

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "service.md").read_text(encoding="utf-8")
SCHEMAS = openapi_document(ROUTES)["components"]["schemas"]


def documented() -> dict[str, tuple[float, float]]:
    """Return the lowest and the highest value in each row of the table of limits."""
    section = PAGE.split("\n## Limits\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) to ([\d,]+)", section, re.MULTILINE)
    assert len(rows) == section.count("\n|") - 2, "every row has two limits"
    return {
        what.strip("`"): (float(low.replace(",", "")), float(high.replace(",", "")))
        for what, low, high in rows
    }


def property_schema(schema: str, name: str) -> dict[str, Any]:
    found = SCHEMAS[schema]["properties"][name]
    return next((one for one in found.get("anyOf", ()) if one.get("type") != "null"), found)


def test_the_engine_has_the_documented_limits() -> None:
    assert documented() == {
        "name of a surface": (1, 64),
        "names of items and user types": (1, limits.MAX_NAME_LENGTH),
        "items": (1, limits.MAX_ITEMS),
        "user_types": (1, limits.MAX_USER_TYPES),
        "n_positions": (1, limits.MAX_POSITIONS),
        "user types × items × positions": (1, limits.MAX_CELLS),
        "attribution_seconds": limits.ATTRIBUTION_SECONDS,
        "refresh_seconds": limits.REFRESH_SECONDS,
        "keep_seconds": limits.KEEP_SECONDS,
        "reward": (0, 1),
        "rankings or feedback in one request": (1, schemas.MAX_BATCH),
        "arms of an `experiment": (1, MAX_ARMS),
        "visitor": (1, MAX_VISITOR_LENGTH),
    }


def test_the_schemas_have_the_documented_limits() -> None:
    table = documented()
    for schema in ("CreateSurfaceRequest", "UpdateSurfaceRequest"):
        for name in ("attribution_seconds", "refresh_seconds", "keep_seconds"):
            found = property_schema(schema, name)
            assert (found["minimum"], found["maximum"]) == table[name]
        found = property_schema(schema, "user_types")
        assert (found["minItems"], found["maxItems"]) == table["user_types"]
    found = property_schema("CreateSurfaceRequest", "n_positions")
    assert (found["minimum"], found["maximum"]) == table["n_positions"]
    found = property_schema("FeedbackRequest", "reward")
    assert (found["minimum"], found["maximum"]) == table["reward"]
    for schema in ("CreateSurfaceRequest", "AddItemsRequest", "SyncItemsRequest"):
        found = property_schema(schema, "items")
        assert (found["minItems"], found["maxItems"]) == table["items"]
        names = found["items"]
        assert (names["minLength"], names["maxLength"]) == table["names of items and user types"]
    for schema, name in (("RankingBatchRequest", "user_types"), ("FeedbackBatchRequest", "feedback")):
        found = property_schema(schema, name)
        assert (found["minItems"], found["maxItems"]) == table["rankings or feedback in one request"]
    assert property_schema("CreateSurfaceRequest", "name")["pattern"] == "^[a-z0-9][a-z0-9._-]{0,63}$"


@pytest.mark.parametrize(
    ("field", "largest", "too_large"),
    [
        ("name", "a" * 64, "a" * 65),
        ("items", [str(number) for number in range(10_000)], [str(number) for number in range(10_001)]),
        ("items", ["x" * 200, "b"], ["x" * 201, "b"]),
        ("user_types", [str(number) for number in range(1000)], [str(number) for number in range(1001)]),
        ("attribution_seconds", 7_776_000, 7_776_001),
        ("refresh_seconds", 3600, 3600.5),
        ("keep_seconds", 315_360_000, 315_360_001),
    ],
)
def test_the_engine_accepts_the_largest_value_and_no_larger_one(
    field: str, largest: object, too_large: object
) -> None:
    settings = {"name": "home", "items": ["a", "b"], "n_positions": 2}
    Surface(**settings | {field: largest})
    with pytest.raises(InvalidInputError) as rejected:
        Surface(**settings | {field: too_large})
    assert rejected.value.field.startswith(field)
