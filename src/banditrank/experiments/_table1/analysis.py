"""Analysis of the extracted tables."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._report_page.elements import Table
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.model._catalog import kdd2012

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

NAMES = {"arrival rate": "arrival rate", "item mean": "mean of", "position preference": "preference for"}
MAX_ERROR = 0.01  # of an estimate from the raw files
MAX_SAMPLING_ERROR = 5.0  # times 1/√displays: errors are hardly ever larger


def analyse(frames: Frames) -> StudyResult:
    """Return whether the extraction recovers Table 1 from the sample log and from the raw files."""
    sample = frames["sample-log"]
    errors = (sample["estimate"] - _printed(sample)).abs()
    found = bool((errors <= MAX_SAMPLING_ERROR / np.sqrt(sample["displays"])).all())
    checks = [
        Check(
            "From a log in the raw files' format that is drawn from Table 1, both estimators recover all its "
            "values within sampling error.",
            found,
            f"the largest of {len(sample)} errors is {errors.max():.4f}, and each estimate is based on at "
            f"least {sample['displays'].min():,.0f} displays",
            claimed_by="implementation",
        ),
        _raw_check(frames.get("raw-files")),
    ]
    raw = checks[-1]
    recovered = "Both estimators recover" if found else "The estimators do not recover"
    from_raw_files = (
        "The raw files were not given, so whether they give the table is not checked"
        if raw.holds is None
        else f"The raw files give {'the same' if raw.holds else 'another'} table: {raw.evidence}"
    )
    findings = f"{recovered} Table 1 from a log that was drawn from it. {from_raw_files}."
    tables = [_table("Extracted from a log drawn from Table 1", sample)]
    if "raw-files" in frames:
        tables.append(_table("Extracted from the raw files", frames["raw-files"]))
    return StudyResult(findings, checks, (), tables, {"largest_error": float(errors.max())})


def _raw_check(raw: "pd.DataFrame | None") -> Check:
    statement = (
        f"The raw files give the table's values within {MAX_ERROR:g} by the paper's own estimator, with ads "
        "ordered by frequency."
    )
    if raw is None:
        return Check(statement, None, "no raw files were given", needs_full_run=False)
    own = raw[raw["estimator"] == "paper"]
    errors = (own["estimate"] - _printed(own)).abs()
    within = f"{(errors <= MAX_ERROR).sum()} of {len(own)} values are within {MAX_ERROR:g}"
    return Check(
        statement,
        bool((errors <= MAX_ERROR).all()),
        f"{within}, the largest error is {errors.max():.3f}",
        needs_full_run=False,  # the files are read whole
    )


def _printed(data: "pd.DataFrame") -> Floats:
    """Return the printed value of each estimate, shape (rows,); ads are identified by their rank."""
    table = kdd2012()
    values = {
        "arrival rate": table.arrival_rates[:, None],
        "item mean": table.item_means,
        "position preference": table.position_preferences,
    }
    rows = [table.user_types.index(user_type) for user_type in data["user_type"]]
    cells = zip(data["quantity"], rows, data["index"], strict=True)
    return np.array([values[quantity][row, index] for quantity, row, index in cells])


def _table(caption: str, data: "pd.DataFrame") -> Table:
    """Return the estimates of both estimators side by side; both have the same rows in the same order."""
    paper, likelihood = (data[data["estimator"] == name] for name in ("paper", "likelihood"))
    columns = zip(
        paper["quantity"],
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
            f"{NAMES[quantity]} {label}".strip(),
            user_type,
            *(f"{value:.3f}" for value in values),
            f"{displays:,.0f}",
        ]
        for quantity, label, user_type, *values, displays in columns
    ]
    return Table(caption, ["value", "user type", "printed", "Algorithm 1", "likelihood", "displays"], rows)
