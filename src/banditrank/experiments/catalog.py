"""The studies by name."""

from collections.abc import Sequence

from banditrank.errors import UnknownNameError
from banditrank.experiments import kdd2012, lemmas, lock_in, regret_order, synthetic, table1, table2
from banditrank.experiments.study import Study

STUDIES = {
    module.STUDY.name: module.STUDY
    for module in (synthetic, kdd2012, table1, table2, regret_order, lemmas, lock_in)
}


def find_studies(names: Sequence[str]) -> list[Study]:
    """Return studies by name, in the order of the paper; all of them for ``all`` or for none.

    Examples
    --------
    >>> [study.name for study in find_studies(["table2", "kdd2012"])]
    ['kdd2012', 'table2']
    """
    for name in names:
        if name != "all" and name not in STUDIES:
            raise UnknownNameError("study", name, ("all", *STUDIES))
    wanted = set(STUDIES) if not names or "all" in names else set(names)
    return [study for name, study in STUDIES.items() if name in wanted]
