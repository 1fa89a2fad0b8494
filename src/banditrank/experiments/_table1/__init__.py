"""Table 1 of the paper: statistics of KDD Cup 2012 track 2, extracted from click logs."""

from functools import partial
from pathlib import Path

from banditrank.experiments._study import Study
from banditrank.experiments._table1.analysis import analyse
from banditrank.experiments._table1.sweep import QUICK_SCALE, RawFiles, sweep


def make_study(training: Path | None = None, profiles: Path | None = None) -> Study:
    """Return the study, which includes the raw files if both are given."""
    files = None if training is None or profiles is None else RawFiles(training, profiles)
    return Study(
        "table1",
        "Table 1: statistics of KDD Cup 2012 track 2",
        "For the five most frequent ads in positions 1 and 2 it lists the item means, position preferences "
        "and arrival rates of men and women. Both examine position 2 more often than position 1.",
        partial(sweep, files=files),
        analyse,
        QUICK_SCALE,
        extras=("logs",),
    )


STUDY = make_study()
