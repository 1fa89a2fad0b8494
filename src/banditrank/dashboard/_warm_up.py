"""Compilation of all code that a surface needs, before it is needed."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from typing import NamedTuple, get_args

from banditrank._compilation import notify_on_compile
from banditrank.dashboard._assessment import assess
from banditrank.dashboard._estimates_report import report_estimates
from banditrank.dashboard._explain import explain
from banditrank.dashboard._surface_monitor import SurfaceMonitors
from banditrank.dashboard._treatment_report import report_treatments
from banditrank.engine._engine import Engine
from banditrank.engine._experiment import FIXED
from banditrank.engine._surface import Surface
from banditrank.model._click_models import RankOneClickModel
from banditrank.policies._base import is_equal
from banditrank.solvers._solve import choose_solver
from banditrank.storage._memory import MemoryStore
from banditrank.utilities._utility import NASH, UTILITARIAN

_MAX_PASSES = 4  # of processes that may overwrite each other's index of the cache


class WarmUp(NamedTuple):
    """Result of compiling the code of a surface.

    Attributes
    ----------
    surface
        The surface.
    is_compiled
        Whether something was compiled; otherwise all code was in the cache.
    seconds
        Duration.
    """

    surface: Surface
    is_compiled: bool
    seconds: float


def distinct_kinds(surfaces: Iterable[Surface]) -> list[Surface]:
    """Return one surface of each kind: those whose policy, treatment and solver need own code.

    Each arm of an experiment is a surface with the policy of the arm. The solver depends on the number of
    items and positions. The dashboard also solves for equal treatment if the surface's is personalized.

    Examples
    --------
    >>> home = Surface("home", items=["a", "b"], n_positions=1)
    >>> shop = Surface("shop", items=["a", "b", "c"], n_positions=1)
    >>> [surface.name for surface in distinct_kinds([home, shop])]
    ['home']
    """
    kinds: dict[tuple[str, ...], Surface] = {}
    for surface in (one for given in surfaces for one in _without_experiment(given)):
        n_items = len(surface.active_items)
        utility = surface.compiled_policy.utility if is_equal(surface.treatment) else UTILITARIAN
        solvers = [
            choose_solver("auto", one, n_items=n_items, n_positions=surface.n_positions)
            for one in (utility, NASH if utility == UTILITARIAN else utility)  # as in `assess`
        ]
        policy = surface.compiled_policy.name
        kinds.setdefault((policy, surface.treatment, str(utility), *solvers), surface)
    return list(kinds.values())


def _without_experiment(surface: Surface) -> list[Surface]:
    """Return a surface with its own policy alone, and with that of each arm of its experiment."""
    if surface.experiment is None:
        return [surface]
    policies = [arm.policy for arm in surface.experiment.arms if arm.policy != FIXED]
    own = replace(surface, experiment=None)
    return [own, *(replace(own, policy=policy, coefficient=None) for policy in policies)]


def warm_up(surface: Surface) -> WarmUp:
    """Rank, learn and report once, in a store in memory, so that all code of the surface is compiled.

    Little code depends on the click model: that of both is compiled, so that it makes no kind of its own.

    Raises
    ------
    BanditRankError
        If the surface cannot be ranked.
    """
    start, compiled = time.monotonic(), []
    monitors = SurfaceMonitors()
    with notify_on_compile("banditrank", lambda: compiled.append(True)):
        engine = Engine(MemoryStore(), observe=monitors.observe)
        try:
            for click_model in get_args(RankOneClickModel):
                _use(engine, replace(surface, name=click_model, click_model=click_model))
        finally:
            engine.close()
            monitors.close()
    return WarmUp(surface, bool(compiled), time.monotonic() - start)


def _use(engine: Engine, surface: Surface) -> None:
    """Create a surface, and rank, learn and report once."""
    runtime = engine.create_surface(surface)
    for user_type in surface.user_types[:2]:
        shown = runtime.rank(user_type)
        engine.feedback(shown.id, clicked=shown.items[0], final=True)
    if surface.compiled_policy.has_candidates:
        runtime.rank(surface.user_types[0], candidates=surface.active_items)
    runtime.refresh()
    counts = runtime.counts()
    assess(counts)
    report_estimates(counts)
    report_treatments(counts)
    explain(engine, shown.id)


def warm_up_all(surfaces: Iterable[Surface], workers: int) -> Iterator[WarmUp]:
    """Yield the result of each surface, compiled in parallel processes, as it is finished.

    Processes that save to one index of the cache at the same time lose entries, and what was lost is
    compiled again, by one process. A surface may therefore be yielded several times; the last time it was in
    the cache.

    Raises
    ------
    BanditRankError
        If a surface cannot be ranked.
    """
    missing = list(surfaces)
    for _ in range(_MAX_PASSES):
        if not missing:
            return
        with ProcessPoolExecutor(min(workers, len(missing)), get_context("spawn")) as pool:
            running = [pool.submit(_warm_up_definition, surface.definition) for surface in missing]
            missing = []
            for done in as_completed(running):
                definition, is_compiled, seconds = done.result()
                surface = Surface.from_definition(definition)
                if is_compiled:
                    missing.append(surface)
                yield WarmUp(surface, is_compiled, seconds)
        workers = 1


def _warm_up_definition(definition: str) -> tuple[str, bool, float]:
    done = warm_up(Surface.from_definition(definition))
    return definition, done.is_compiled, done.seconds
