"""Warm start: a surface whose policy has learned from a log before its first visit.

The counts of a log become those of a surface, in the format of `banditrank state import`. They weigh as much
as visits of the surface itself, unless they are discounted by age, scaled or capped.

A surface counts rankings: each visit adds a display to every position. Logs do not: items were left out, or
lists were short. So the displays at each position are scaled to those at the position with the fewest, which
keeps the click rate of every cell and gives away some weight; how much is reported. Displays are rounded to
whole numbers, and rewards to the same rate.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank import __version__
from banditrank._checks import check_integer, check_number
from banditrank._files import atomic_write
from banditrank._text import list_names, shorten
from banditrank.counts._click_cube import ClickCube
from banditrank.counts._counts import Counts
from banditrank.engine._import_export import FORMAT, as_text, import_surface
from banditrank.engine._surface import Surface
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._estimates_of_model import lacks_misses

if TYPE_CHECKING:
    from banditrank.storage._base import Store
    from banditrank.storage._records import SurfaceRecord

Floats = NDArray[np.float64]

MAX_VISITS = 1_000_000_000_000
"""Upper limit of the cap on visits."""


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """A surface and the counts that it starts with.

    Attributes
    ----------
    surface
        Definition of the surface.
    counts
        Counts that it starts with, in whole displays.
    kept
        Share of the displays of each user type, after weights, that the counts keep, shape (N,); 0 for a type
        without displays.
    period_weights
        Weight of each period of the log, shape (P,).
    warnings
        What the counts do not tell, in words.
    """

    surface: Surface
    counts: Counts
    kept: Floats
    period_weights: Floats
    warnings: tuple[str, ...] = ()

    def to_dict(self, *, now: datetime | None = None) -> dict[str, Any]:
        """Return the document that `banditrank state import` and `import_surface` read.

        Parameters
        ----------
        now
            Time of the export; the present by default.
        """
        displays, rewards = self.counts.displays_by_position, self.counts.rewards_by_position  # (N, K, M)
        return {
            "format": FORMAT,
            "banditrank": __version__,
            "exported": (datetime.now(UTC) if now is None else now).isoformat(timespec="seconds"),
            "version": 0,
            "surface": self.surface.to_dict(),
            "arms": [],
            "counts": [
                {
                    "user_type": self.surface.user_types[i],
                    "position": int(k) + 1,
                    "item": self.surface.items[j],
                    "displays": int(displays[i, k, j]),
                    "rewards": float(rewards[i, k, j]),
                }
                for i, k, j in np.argwhere(displays > 0)
            ],
        }

    def save(self, path: Path | str) -> None:
        """Write the document to a file, for ``banditrank state import``.

        Raises
        ------
        InvalidInputError
            If the file cannot be written.
        """
        try:
            with atomic_write(Path(path)) as temporary:
                temporary.write_text(as_text(self.to_dict()), encoding="utf-8")
        except OSError as error:
            raise InvalidInputError.from_os("file", "must be writable", path, error) from None

    def create_in(self, store: "Store") -> "SurfaceRecord":
        """Create the surface in a store, with its counts; a `Ranker` of the surface resumes from there.

        Raises
        ------
        AlreadyExistsError
            If the store has a surface of this name.
        """
        return import_surface(store, self.to_dict())

    def summary(self) -> str:
        """Return what the surface starts with as text."""
        kept_shares = zip(self.surface.user_types, self.kept, strict=True)
        shares = list_names([f"{100 * kept:.0f}% of {name}" for name, kept in kept_shares])
        positions = "1 position" if self.surface.n_positions == 1 else f"{self.surface.n_positions} positions"
        return (
            f"Surface {self.surface.name!r} starts with {self.counts.rounds:,} visits, "
            f"{len(self.surface.items)} items and {positions}; "
            f"displays kept: {shares}."
        )


def warm_start(
    cube: ClickCube,
    name: str,
    *,
    weight: float = 1.0,
    max_visits: int | None = None,
    half_life: float | None = None,
    click_model: str = "auto",
    **settings: Any,
) -> WarmStart:
    """Return a surface that starts with the counts of a log.

    Parameters
    ----------
    cube
        Counts of the log. Its user types and items are those of the surface.
    name
        Name of the surface.
    weight
        Weight of a display of the log, relative to one of the surface: below 1 if users may have changed.
    max_visits
        Maximum number of visits to start with; all counts are scaled down to it.
    half_life
        Number of periods after which a display counts half; the last period counts in full. Periods are in
        the order of the cube. By default all count in full.
    click_model
        Click model of the surface: ``single-look`` or ``position-based``; by default the first if no visit
        has two clicks.
    **settings
        Further settings of `Surface`: ``policy``, ``treatment``, ``utility`` and so on. With
        ``allow_short_rankings`` a position need not have more displays than those below it.

    Raises
    ------
    InvalidInputError
        If a setting is not valid, a user type has displays at some positions only, or the log has fewer items
        than positions, no clicks or nothing but clicks.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)[:, :2]  # random rankings of two of three items
    >>> clicks = rng.random(items.shape) < np.array([0.1, 0.3, 0.2])[items] * [1.0, 0.5]
    >>> start = warm_start(ClickCube.from_visits(np.zeros(20_000), items, clicks), "home", max_visits=5000)
    >>> start.counts.rounds, start.surface.click_model
    (5000, 'position-based')
    >>> from banditrank import Ranker, open_store
    >>> store = open_store("memory:")
    >>> record = start.create_in(store)
    >>> with Ranker(start.surface, store) as ranker:
    ...     ranker.rank("type-1").items[0]
    'item-2'
    """
    weight = check_number("weight", weight, 0.0, 1e9)
    limit = None if max_visits is None else check_integer("max_visits", max_visits, 1, MAX_VISITS)
    if click_model == "auto":
        has_two_clicks = cube.visits.visits[cube.visits.n_clicks > 1].any()
        looks_once = cube.has_visits and not has_two_clicks
        settings["click_model"] = "single-look" if looks_once else "position-based"
    else:
        settings["click_model"] = click_model
    if len(cube.items) < cube.n_positions:
        given = f"{len(cube.items)} for {cube.n_positions} positions"
        raise InvalidInputError("log", "must have as many items as positions at least", given)
    surface = Surface(
        name,
        items=cube.items,
        n_positions=cube.n_positions,
        user_types=cube.user_types,
        **settings,
    )
    period_weights = weight * _discounts(len(cube.periods), half_life)
    factors = period_weights[cube.cells.period]
    displays = cube.table(cube.cells.displays * factors)  # (N, M, K)
    clicks = cube.table(cube.cells.clicks * factors)
    if not cube.cells.clicks.any():
        rule = "must have clicks to start a surface: check the column of clicks"
        raise InvalidInputError("log", rule, "none")
    if lacks_misses(cube.cells.displays, cube.cells.clicks):
        rule = "must have displays without a click to start a surface: they are probably missing"
        raise InvalidInputError("log", rule, "none")
    at_positions = _equal_displays(surface, displays.sum(axis=1))
    total = at_positions[:, 0].sum()
    if limit is not None and total > limit:
        at_positions *= limit / total
    counts = _whole_counts(displays, clicks, _whole(at_positions))
    before = displays.sum(axis=(1, 2))
    kept = np.divide(counts.displays.sum(axis=(1, 2)), before, out=np.zeros(before.size), where=before > 0)
    warnings = _find_fixed_layouts(surface, displays, clicks)
    return WarmStart(surface, counts, kept, period_weights, warnings)


def _find_fixed_layouts(surface: Surface, displays: Floats, clicks: Floats) -> tuple[str, ...]:
    """Return a warning that names the user types whose clicked items were shown at one position each."""
    is_clicked = clicks.any(axis=2)  # (N, M)
    moves = ((displays > 0).sum(axis=2) > 1) & is_clicked
    is_fixed = np.any(is_clicked, axis=1) & ~np.any(moves, axis=1)
    if surface.n_positions < 2 or not is_fixed.any():
        return ()
    names = [name for name, fixed in zip(surface.user_types, is_fixed, strict=True) if fixed]
    whose = "" if is_fixed.all() else f" of {list_names(names)}"
    warning = (
        f"no item{whose} was shown at two positions (a fixed layout): the surface cannot tell positions from "
        "items until it has shown items elsewhere"
    )
    return (warning,)


def _discounts(n_periods: int, half_life: float | None) -> Floats:
    """Return the weight of each period by its age, shape (P,)."""
    if half_life is None:
        return np.ones(n_periods)
    half_life = check_number("half_life", half_life, 1e-3, 1e9)
    ages = np.arange(n_periods - 1, -1, -1)
    return np.asarray(0.5 ** (ages / half_life))


def _equal_displays(surface: Surface, displays: Floats) -> Floats:
    """Return the displays at each position of each type that rankings can have, shape (N, K).

    They are the fewest of all positions, or with short rankings of those above a position.
    """
    for name, row in zip(surface.user_types, displays, strict=True):
        if row.any() and not row.all():
            position = int(np.argmin(row)) + 1
            raise InvalidInputError(
                f"counts of {shorten(name)}",
                "must have displays at each position",
                f"none at position {position}",
            )
    if surface.allow_short_rankings:
        return np.asarray(np.minimum.accumulate(displays, axis=1))
    return np.broadcast_to(displays.min(axis=1, keepdims=True), displays.shape).copy()


def _whole(at_positions: Floats) -> Floats:
    """Return displays as whole numbers whose total at the first position is the rounded total."""
    whole = np.floor(at_positions + 1e-9)
    missing = round(float(at_positions[:, 0].sum() - whole[:, 0].sum()))
    for i in np.argsort(-(at_positions[:, 0] - whole[:, 0]), kind="stable")[:missing]:
        whole[i] += 1.0
    return np.asarray(whole)


def _whole_counts(displays: Floats, clicks: Floats, at_positions: Floats) -> Counts:
    """Return counts with the click rates of a log and given whole displays at each position.

    Parameters
    ----------
    displays, clicks
        Of the log, shape (N, M, K).
    at_positions
        Displays to distribute over items, shape (N, K).
    """
    totals = displays.sum(axis=1, keepdims=True)
    scaled = displays * np.divide(at_positions[:, None], totals, out=np.zeros_like(totals), where=totals > 0)
    whole = np.floor(scaled + 1e-9)
    for i, k in np.argwhere(whole.sum(axis=1) < at_positions):  # largest remainders
        missing = round(float(at_positions[i, k] - whole[i, :, k].sum()))
        whole[i, np.argsort(-(scaled - whole)[i, :, k], kind="stable")[:missing], k] += 1.0
    rates = np.divide(clicks, displays, out=np.zeros_like(clicks), where=displays > 0)
    return Counts.from_arrays(whole, whole * rates, at_positions[:, 0])
