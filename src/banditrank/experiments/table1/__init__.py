"""Table 1 of the paper: the statistics of KDD Cup 2012 track 2, and how they are extracted."""

from functools import partial
from pathlib import Path

from banditrank.experiments.study import Study
from banditrank.experiments.table1.analysis import read
from banditrank.experiments.table1.sweep import CUT, RawFiles, sweep


def make_study(training: Path | None = None, profiles: Path | None = None) -> Study:
    """Return the study, of the raw files too if there are any."""
    files = None if training is None or profiles is None else RawFiles(training, profiles)
    return Study(
        "table1",
        "Table 1: statistics of KDD Cup 2012 track 2",
        "Of the five most frequent ads in positions 1 and 2 it gives the means for men and women, how often "
        "either looks at a position, and how many there are of each. Both look at position 2 more often than "
        "at position 1.",
        partial(sweep, files=files),
        read,
        CUT,
    )


STUDY = make_study()
