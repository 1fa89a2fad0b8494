"""How the data are read."""

from typing import TYPE_CHECKING, cast

import numpy as np

from banditrank.experiments.study import Check, Frames, Reading, Table
from banditrank.model.catalog import kdd2012

if TYPE_CHECKING:
    import pandas as pd

CLOSE = 0.01  # to the printed figure: then the raw files give it
CHANCE = 5.0  # over the square root of the displays: an estimate is hardly ever off by more


def read(frames: Frames, _quick: bool) -> Reading:  # noqa: FBT001 - as `Study` has it
    """Return whether the extraction finds Table 1 again, and whether the raw files give it."""
    table = kdd2012()
    sample = frames["sample-log"]
    off = (sample["estimate"] - _printed(sample)).abs()
    found = bool((off <= CHANCE / np.sqrt(sample["displays"])).all())
    looks = table.position_preferences
    checks = [
        Check(
            "The table's position biases and arrival rates each add up to 1.",
            bool(np.allclose(looks.sum(axis=1), 1) and np.isclose(table.arrival_rates.sum(), 1)),
            f"{', '.join(f'{row.sum():.3f}' for row in looks)} and {table.arrival_rates.sum():.2f}",
        ),
        Check(
            "From a log in the raw files' format that was drawn from Table 1, both estimators find all its "
            "figures again, within what chance allows.",
            found,
            f"the furthest of {len(sample)} is off by {off.max():.4f}, on {sample['displays'].min():,.0f} displays or more",
        ),
        _raw_check(frames.get("raw-files")),
    ]
    raw = checks[-1]
    seen = "Both estimators find" if found else "The estimators do not find"
    findings = f"{seen} Table 1 again in a log that was drawn from it. " + (
        "The raw files were not at hand: whether they give the table is not checked."
        if raw.holds is None
        else f"From the raw files {'the same table' if raw.holds else 'another table'} is extracted: {raw.evidence}."
    )
    tables = [_table("Extracted from a log drawn from Table 1", sample)]
    if "raw-files" in frames:
        tables.append(_table("Extracted from the raw files", frames["raw-files"]))
    return Reading(findings, checks, (), tables, {"largest_error": float(off.max())})


def _raw_check(raw: "pd.DataFrame | None") -> Check:
    statement = f"The raw files give the table's figures, to {CLOSE:g}, by the paper's own estimator."
    if raw is None:
        return Check(statement, None, "no files were given: --training and --profiles")
    own = raw[raw["estimator"] == "paper"]
    off = (own["estimate"] - _printed(own)).abs()
    close = f"{(off <= CLOSE).sum()} of {len(own)} figures are within {CLOSE:g}, the furthest is off by {off.max():.3f}"
    return Check(statement, bool((off <= CLOSE).all()), close)


def _printed(data: "pd.DataFrame") -> "pd.Series[float]":
    """Return the printed figure beside each estimate; ads are told by their rank."""
    table = kdd2012()
    figures = {
        "arrival rate": lambda i, _: table.arrival_rates[i],
        "item mean": lambda i, j: table.item_means[i, j],
        "position preference": lambda i, k: table.position_preferences[i, k],
    }
    types = list(table.user_types)
    values = [
        float(figures[figure](types.index(user_type), number))
        for figure, user_type, number in zip(data["figure"], data["user_type"], data["number"], strict=True)
    ]
    return cast("pd.Series[float]", data["estimate"] * 0 + values)


def _table(caption: str, data: "pd.DataFrame") -> Table:
    keys = ["figure", "user_type", "number", "label"]
    wide = data.assign(printed=_printed(data)).pivot_table(
        index=keys, columns="estimator", values="estimate", sort=False
    )
    printed = data.assign(printed=_printed(data)).groupby(keys, sort=False)["printed"].first()
    displays = data.groupby(keys, sort=False)["displays"].first()
    rows = [
        [
            f"{figure} {label}".strip(),
            user_type,
            f"{printed[figure, user_type, number, label]:.3f}",
            f"{wide.loc[(figure, user_type, number, label), 'paper']:.3f}",
            f"{wide.loc[(figure, user_type, number, label), 'likelihood']:.3f}",
            f"{displays[figure, user_type, number, label]:,.0f}",
        ]
        for figure, user_type, number, label in printed.index
    ]
    return Table(caption, ["", "user type", "printed", "Algorithm 1", "likelihood", "displays"], rows)
