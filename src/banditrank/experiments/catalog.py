"""The studies by name."""

from collections.abc import Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments import kdd2012, lemmas, lock_in, regret_order, synthetic, table1, table2
from banditrank.experiments.study import Study

STUDIES = {
    module.STUDY.name: module.STUDY
    for module in (synthetic, kdd2012, table1, table2, regret_order, lemmas, lock_in)
}


def find_studies(
    names: Sequence[str] = (), *, training: Path | None = None, profiles: Path | None = None
) -> list[Study]:
    """Return studies by name, in the order of the paper; all of them for ``all`` or for none.

    Parameters
    ----------
    names
        Keys of `STUDIES`.
    training, profiles
        The raw files of KDD Cup 2012 track 2, for ``table1``.

    Examples
    --------
    >>> [study.name for study in find_studies(["table2", "kdd2012"])]
    ['kdd2012', 'table2']
    """
    for name in names:
        if name != "all" and name not in STUDIES:
            raise UnknownNameError("study", name, ("all", *STUDIES))
    wanted = set(STUDIES) if not names or "all" in names else set(names)
    given = {"training": training, "profiles": profiles}
    for field, path in given.items():
        if path is not None and "table1" not in wanted:
            raise InvalidInputError(field, "must be left out without the study table1", str(path))
        if path is not None and None in given.values():
            other = "profile" if field == "training" else "training"
            raise InvalidInputError(field, f"must be given together with the {other} file", str(path))
    found = {**STUDIES, "table1": table1.make_study(training, profiles)}
    return [study for name, study in found.items() if name in wanted]
