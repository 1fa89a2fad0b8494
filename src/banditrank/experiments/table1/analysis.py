"""How the data are read."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.study import Check, Frames, Reading, Table
from banditrank.model.catalog import kdd2012

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

NAMES = {"arrival rate": "arrival rate", "item mean": "mean of", "position preference": "looks at"}
CLOSE = 0.01  # to the printed figure: then the raw files give it
CHANCE = 5.0  # over the square root of the displays: an estimate is hardly ever off by more


def read(frames: Frames) -> Reading:
    """Return whether the extraction finds Table 1 again, and whether the raw files give it."""
    sample = frames["sample-log"]
    off = (sample["estimate"] - _printed(sample)).abs()
    found = bool((off <= CHANCE / np.sqrt(sample["displays"])).all())
    checks = [
        Check(
            "From a log in the raw files' format that was drawn from Table 1, both estimators find all its "
            "figures again, within what chance allows.",
            found,
            f"the furthest of {len(sample)} is off by {off.max():.4f}, and each rests on "
            f"{sample['displays'].min():,.0f} displays or more",
            of="implementation",
        ),
        _raw_check(frames.get("raw-files")),
    ]
    raw = checks[-1]
    seen = "Both estimators find" if found else "The estimators do not find"
    from_raw_files = (
        "The raw files were not at hand, so whether they give the table is not checked"
        if raw.holds is None
        else f"From the raw files {'the same' if raw.holds else 'another'} table is extracted: {raw.evidence}"
    )
    findings = f"{seen} Table 1 again in a log that was drawn from it. {from_raw_files}."
    tables = [_table("Extracted from a log drawn from Table 1", sample)]
    if "raw-files" in frames:
        tables.append(_table("Extracted from the raw files", frames["raw-files"]))
    return Reading(findings, checks, (), tables, {"largest_error": float(off.max())})


def _raw_check(raw: "pd.DataFrame | None") -> Check:
    statement = (
        f"The raw files give the table's figures, to {CLOSE:g}, by the paper's own estimator, its ads being "
        "in the order of their frequency."
    )
    if raw is None:
        return Check(statement, None, "no raw files were given")
    own = raw[raw["estimator"] == "paper"]
    off = (own["estimate"] - _printed(own)).abs()
    close = f"{(off <= CLOSE).sum()} of {len(own)} figures are within {CLOSE:g}"
    return Check(statement, bool((off <= CLOSE).all()), f"{close}, the furthest is off by {off.max():.3f}")


def _printed(data: "pd.DataFrame") -> Floats:
    """Return the printed figure beside each estimate; ads are told by their rank."""
    table = kdd2012()
    figures = {
        "arrival rate": table.arrival_rates[:, None],
        "item mean": table.item_means,
        "position preference": table.position_preferences,
    }
    rows = [table.user_types.index(user_type) for user_type in data["user_type"]]
    cells = zip(data["figure"], rows, data["number"], strict=True)
    return np.array([figures[figure][row, number] for figure, row, number in cells])


def _table(caption: str, data: "pd.DataFrame") -> Table:
    """Return the estimates of both estimators side by side: each gives the same figures in the same order."""
    paper, likelihood = (data[data["estimator"] == name] for name in ("paper", "likelihood"))
    columns = zip(
        paper["figure"],
        paper["label"],
        paper["user_type"],
        _printed(paper),
        paper["estimate"],
        likelihood["estimate"],
        paper["displays"],
        strict=True,
    )
    rows = [
        [
            f"{NAMES[figure]} {label}".strip(),
            user_type,
            *(f"{value:.3f}" for value in values),
            f"{displays:,.0f}",
        ]
        for figure, label, user_type, *values, displays in columns
    ]
    return Table(caption, ["figure", "user type", "printed", "Algorithm 1", "likelihood", "displays"], rows)
