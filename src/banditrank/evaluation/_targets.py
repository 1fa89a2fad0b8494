"""Targets of an evaluation: rankings, one for each user type, mixtures of rankings, and the log itself."""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank._text import MAX_DESCRIPTION, list_names, shorten
from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.evaluation._log_cells import LogCells
from banditrank.evaluation._log_model import EvaluationModel
from banditrank.model._rankings import Ranking, as_ranking

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

Mixture: TypeAlias = Sequence[tuple[float, Ranking]]
"""Rankings with the probability of each."""


class Names(NamedTuple):
    """Names of the user types and items of a log, and its number of positions."""

    user_types: tuple[str, ...]
    items: tuple[str, ...]
    n_positions: int


class TargetRankings(NamedTuple):
    """Rankings that a target shows, each with its probability.

    Attributes
    ----------
    group, user_type
        Group of folds that it is evaluated on, and user type, shape (B,).
    weight
        Probability within group and type, shape (B,).
    items
        Item at each position, shape (B, K); −1 where nothing is shown.
    """

    group: Indices
    user_type: Indices
    weight: Floats
    items: Indices

    def part(self, begin: int, end: int) -> "TargetRankings":
        """Return the rankings from one number to before another."""
        part = slice(begin, end)
        return TargetRankings(self.group[part], self.user_type[part], self.weight[part], self.items[part])


class ResolvedTarget(NamedTuple):
    """What a target shows to each user type, for each group of folds that it is evaluated on.

    Attributes
    ----------
    shares
        Probability of each item at each position, shape (G, N, M, K).
    rankings
        The rankings; None if only the shares are known.
    """

    shares: Floats
    rankings: TargetRankings | None


class EvaluationTarget(ABC):
    """Base class of targets."""

    name: str

    @abstractmethod
    def resolve(self, log: LogCells, model: EvaluationModel) -> ResolvedTarget:
        """Return what the target shows, for each group of a log; fixed targets are in one group.

        Parameters
        ----------
        log
            Cells of the log, in groups.
        model
            Click model that a learned target may assume.
        """

    @property
    def is_learned(self) -> bool:
        """Whether the target is learned from the log, so that cross-fitting evaluates it."""
        return False


@dataclass(frozen=True, slots=True, eq=False)
class FixedTarget(EvaluationTarget):
    """A target that does not depend on the log: a mixture of rankings for each user type.

    Attributes
    ----------
    name
        Name in results.
    mixtures
        Rankings with the probability of each, for each user type.
    """

    name: str
    mixtures: tuple[Mixture, ...]

    def resolve(self, log: LogCells, model: EvaluationModel) -> ResolvedTarget:  # noqa: ARG002 - of learned ones
        """Return what the target shows, in one group."""
        return resolve_mixtures([self.mixtures], log.shape)


@dataclass(frozen=True, slots=True, eq=False)
class CurrentTarget(EvaluationTarget):
    """The logging policy: what the log shows, as often as it does."""

    name: str = "current"

    def resolve(self, log: LogCells, model: EvaluationModel) -> ResolvedTarget:  # noqa: ARG002 - of learned ones
        """Return the shares of the log's displays, in one group."""
        visits = np.maximum(log.n_visits, 1e-300)
        return ResolvedTarget((log.table(log.displays) / visits[:, None, None])[None], None)


def logged_rankings(cube: ClickCube) -> TargetRankings | None:
    """Return the rankings of the logging policy, by the sample of lists that a cube retains.

    None if the sample does not stand for the log: a user type has visits and no list, or visits have clicks
    on items or positions that the cube leaves out, with which their lists were dropped.
    """
    if not cube.has_all_clicks:
        return None
    n, lists = len(cube.type_values), cube.lists
    in_sample = np.bincount(lists.user_type, lists.visits, n)
    has_visits = np.bincount(cube.visits.user_type, cube.visits.visits, n) > 0
    if not lists.visits.size or (has_visits & (in_sample <= 0)).any():
        return None
    keys = np.column_stack([lists.user_type, lists.items])
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    user_type = distinct[:, 0]
    weight = np.bincount(inverse.ravel(), lists.visits, len(distinct)) / in_sample[user_type]
    return TargetRankings(np.zeros_like(user_type), user_type, weight, distinct[:, 1:])


def resolve_mixtures(groups: Sequence[Sequence[Mixture]], shape: tuple[int, int, int]) -> ResolvedTarget:
    """Return the target of a mixture for each group and user type.

    Parameters
    ----------
    groups
        Mixtures by group and user type.
    shape
        N, M and K.
    """
    n_positions = shape[2]
    rows: list[tuple[int, int, float]] = []
    lists: list[Indices] = []
    shares = np.zeros((len(groups), *shape))
    for group, mixtures in enumerate(groups):
        for user_type, mixture in enumerate(mixtures):
            for weight, ranking in mixture:
                items = np.full(n_positions, -1, dtype=np.int64)
                items[: len(ranking)] = ranking
                rows.append((group, user_type, weight))
                lists.append(items)
                shares[group, user_type, ranking, np.arange(len(ranking))] += weight
    group_of, type_of, weights = zip(*rows, strict=True)
    rankings = TargetRankings(
        np.array(group_of, dtype=np.int64),
        np.array(type_of, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        np.stack(lists),
    )
    return ResolvedTarget(shares, rankings)


def fixed_target(value: Any, names: Names, *, name: str | None = None) -> FixedTarget:
    """Return the target of rankings by name or number.

    Parameters
    ----------
    value
        A ranking for all user types, a mapping from user types to rankings, or a list of pairs of a
        probability and one of these.
    names
        Names of the log.
    name
        Name in results; that of the items by default.

    Raises
    ------
    InvalidInputError
        If a ranking is not valid, a type has none, or probabilities do not add up to 1.
    UnknownNameError
        If the log has no such user type or item.
    """
    label = name or _label(value)
    if _is_mixture(value):
        parts = [(float(weight), fixed_target(one, names).mixtures) for weight, one in value]
        total = sum(weight for weight, _ in parts)
        if any(weight < 0 for weight, _ in parts) or not 0.999 < total < 1.001:
            raise InvalidInputError(f"target {label}", "must have probabilities that add up to 1", total)
        mixtures = tuple(
            tuple((weight / total * share, ranking) for weight, types in parts for share, ranking in types[i])
            for i in range(len(names.user_types))
        )
        return FixedTarget(label, mixtures)
    if isinstance(value, Mapping):
        unknown = next((one for one in value if one not in names.user_types), None)
        if unknown is not None:
            raise UnknownNameError("user type", str(unknown), names.user_types)
        missing = [one for one in names.user_types if one not in value]
        if missing:
            raise InvalidInputError(f"target {label}", "must have a ranking for each user type", missing[0])
        return FixedTarget(label, tuple(((1.0, _ranking(value[one], names)),) for one in names.user_types))
    ranking = _ranking(value, names)
    return FixedTarget(label, tuple(((1.0, ranking),) for _ in names.user_types))


def mixture_target(
    counts: Mapping[str, Mapping[Sequence[str], float]], names: Names, *, name: str
) -> FixedTarget:
    """Return the target of rankings that were counted by user type.

    Parameters
    ----------
    counts
        Number of visits by user type and ranking. Items beyond the positions of the log are left out, and
        user types that the log does not have are ignored.
    names
        Names of the log.
    name
        Name in results.

    Raises
    ------
    InvalidInputError
        If a user type has no ranking, or a ranking is not valid.
    UnknownNameError
        If the log has no such item.
    """
    index = {item: number for number, item in enumerate(names.items)}
    mixtures = []
    for user_type in names.user_types:
        of_type = counts.get(user_type, {})
        if not of_type:
            raise InvalidInputError("target", f"must have a ranking for each user type ({name})", user_type)
        total, mixture = sum(of_type.values()), []
        for ranking, count in of_type.items():
            shown = ranking[: names.n_positions]
            unknown = next((item for item in shown if item not in index), None)
            if unknown is not None:
                raise UnknownNameError("target item", unknown, names.items)
            numbers = as_ranking(
                [index[item] for item in shown],
                n_items=len(names.items),
                n_positions=names.n_positions,
                allow_short=True,
            )
            mixture.append((count / total, numbers))
        mixtures.append(tuple(mixture))
    return FixedTarget(name, tuple(mixtures))


def target_of_visits(
    user_types: Iterable[str], rankings: Iterable[Sequence[str]], *, name: str = "candidate"
) -> dict[str, list[tuple[float, dict[str, Sequence[str]]]]]:
    """Return the mixture that a candidate's rankings of visits make, as a target for `evaluate`.

    Parameters
    ----------
    user_types
        User type of each visit.
    rankings
        Ranking that the candidate would have shown in each visit.
    name
        Name in results.

    Returns
    -------
    dict
        The target by name: for each type, rankings with their share of its visits.

    Raises
    ------
    InvalidInputError
        If there are no visits.

    Examples
    --------
    >>> target_of_visits(["new", "new"], [["a", "b"], ["b", "a"]])
    {'candidate': [(0.5, {'new': ('a', 'b')}), (0.5, {'new': ('b', 'a')})]}
    """
    counts: dict[str, dict[tuple[str, ...], int]] = {}
    for user_type, ranking in zip(user_types, rankings, strict=True):
        of_type = counts.setdefault(user_type, {})
        of_type[tuple(ranking)] = of_type.get(tuple(ranking), 0) + 1
    if not counts:
        raise InvalidInputError("rankings", "must hold at least one visit", 0)
    # Quantiles of all types at once: a mixture has one list of probabilities.
    bounds = {0.0, 1.0}
    cumulated: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    for user_type, of_type in counts.items():
        total, so_far = sum(of_type.values()), 0
        cumulated[user_type] = []
        for ranking, count in of_type.items():
            so_far += count
            cumulated[user_type].append((so_far / total, ranking))
            bounds.add(so_far / total)
    edges = sorted(bounds)
    mixture: list[tuple[float, dict[str, Sequence[str]]]] = []
    current = dict.fromkeys(cumulated, 0)
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        chosen: dict[str, Sequence[str]] = {}
        for user_type, steps in cumulated.items():
            while steps[current[user_type]][0] <= middle:
                current[user_type] += 1
            chosen[user_type] = steps[current[user_type]][1]
        mixture.append((high - low, chosen))
    return {name: mixture}


def load_rankings(path: str | Path) -> Any:
    """Return the rankings of a file, as a target for `evaluate`.

    Parameters
    ----------
    path
        A JSON file with a list of items, an object of such lists by user type, or a list of objects with
        ``probability`` and ``ranking``; or a CSV file with the columns ``user_type``, ``position`` (from 1)
        and ``item``.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or has another form.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("file", "must be readable", path, error) from None
    if path.suffix == ".json":
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError("file", f"must be JSON ({error})", str(path)) from None
        if isinstance(document, list) and document and isinstance(document[0], dict):
            try:
                return [(one["probability"], one["ranking"]) for one in document]
            except (KeyError, TypeError):
                rule = "must hold objects with probability and ranking"
                raise InvalidInputError("file", rule, str(path)) from None
        return document
    rankings: dict[str, dict[int, str]] = {}
    for number, row in enumerate(csv.DictReader(text.splitlines()), 2):
        try:
            rankings.setdefault(row["user_type"], {})[int(row["position"])] = row["item"]
        except (KeyError, TypeError, ValueError):
            rule = f"must have the columns user_type, position and item in line {number}"
            raise InvalidInputError("file", rule, str(path)) from None
    return {user_type: [items[k] for k in sorted(items)] for user_type, items in rankings.items()}


def describe_cells(cells: Sequence[tuple[int, int, int]], names: Names) -> str:
    """Return the names of cells: the first few, and how many there are."""
    described = [
        f"{shorten(names.items[j])} at position {k + 1} to {shorten(names.user_types[i])}"
        for i, j, k in cells
    ]
    return list_names(described, separator="; ", max_length=MAX_DESCRIPTION)


def _is_mixture(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) > 0
        and all(
            isinstance(one, Sequence)
            and not isinstance(one, str)
            and len(one) == 2
            and isinstance(one[0], Real)
            and not isinstance(one[1], str | Real)
            for one in value
        )
    )


def _ranking(value: object, names: Names) -> Ranking:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidInputError("ranking", "must be a list of items", value)
    numbers = []
    for item in value:
        if isinstance(item, str) and item not in names.items:
            raise UnknownNameError("item", item, names.items)
        if not isinstance(item, str | Integral):
            raise InvalidInputError("ranking", "must hold items by name or number", item)
        numbers.append(names.items.index(item) if isinstance(item, str) else int(item))
    return as_ranking(numbers, n_items=len(names.items), n_positions=names.n_positions, allow_short=True)


def _label(value: object) -> str:
    if _is_mixture(value):
        return "mixture"
    if isinstance(value, Mapping):
        return "one ranking per type"
    return ", ".join(map(str, value)) if isinstance(value, Iterable) else str(value)
