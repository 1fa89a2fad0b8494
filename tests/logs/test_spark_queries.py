"""The text of the queries in the dialect of Spark, as it was run on a cluster.

``tests/logs/test_spark_engine.py`` runs the queries on Spark, in the campaign only. A change of a query fails
here first: run ``pytest --campaign tests/logs/test_spark_engine.py``, then write the text that passed with
``python tests/logs/test_spark_queries.py``.
"""

from collections.abc import Iterator
from pathlib import Path

from banditrank.logs._count_queries import CountQueries, QueryOptions
from banditrank.logs._engines.spark import SPARK_DIALECT
from banditrank.logs._log_columns import ColumnKind, LogColumns, resolve_columns

VERIFIED = Path(__file__).with_name("spark_queries.sql")
OPTIONS = QueryOptions(1, 62, "month", [(0, 0), (1000, 3600)], single_click=True, since=5, until=9)
KINDS: dict[str, dict[str, ColumnKind]] = {
    "long, text": dict.fromkeys(
        ("segment", "item", "position", "clicked", "session", "user", "time", "propensity"), "text"
    ),
    "long, numbers": {
        **dict.fromkeys(("segment", "item", "position", "clicked", "session"), "integer"),
        "time": "time",
        "propensity": "number",
    },
    "wide": {"segment": "text", "items": "list", "clicked_items": "text", "session": "text", "ts": "time"},
    "aggregated": dict.fromkeys(("ad", "rank", "impressions", "clicks", "user", "ts"), "text"),
}


def make_queries() -> Iterator[tuple[str, str]]:
    """Yield the name and text of each query of each layout."""
    for layout, kinds in KINDS.items():
        columns = resolve_columns(LogColumns(), kinds)
        queries = CountQueries(columns, kinds, SPARK_DIALECT, OPTIONS)
        texts = {
            "projection": queries.projection(),
            "inside": queries.inside(),
            "outside": queries.count_outside(),
            "times": queries.time_range(),
            "days": queries.days(),
            "invalid times": queries.invalid_times(10),
            "cells": queries.cells(),
        }
        if columns.layout == "long":
            texts |= {
                "lowest position": queries.lowest_position(),
                "visits": queries.visits(),
                "joined visits": queries.joined_visits(),
                "missing sessions": queries.missing_sessions(),
                "lists": queries.list_rows(1000),
                "duplicate items": queries.duplicate_items(),
                "flagged": queries.flag_duplicates(),
                "flagged sessions": queries.flagged_sessions(10),
            }
        if columns.layout == "wide":
            texts |= {
                "longest": queries.longest_list(),
                "visits": queries.wide_visits(3, 2),
                "rows": queries.wide_rows(),
                "lists": queries.list_counts(1000, 10, 3),
            }
        if queries.has_visits:
            texts["visit counts"] = queries.visit_counts()
        for name, text in texts.items():
            yield f"{layout}: {name}", text


def render() -> str:
    return "".join(f"-- {name}\n{text};\n" for name, text in make_queries())


def test_the_queries_are_those_that_spark_ran() -> None:
    assert render() == VERIFIED.read_text(encoding="utf-8"), (
        "run pytest --campaign tests/logs/test_spark_engine.py, then python tests/logs/test_spark_queries.py"
    )


if __name__ == "__main__":
    VERIFIED.write_text(render(), encoding="utf-8", newline="\n")
