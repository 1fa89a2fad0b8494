"""Extraction of counts from the two files: displays and clicks of a few ads, by gender and position.

*Ads.* The `n_ads` with the most impressions at the chosen positions by users of known gender, in that order;
ties go to the smaller AdID.

*Rows.* A row counts if its position and its ad are among the chosen ones, and its user's gender is 1 or 2.
Every other row is listed under the first of the `REASONS` that applies, so that the groups add up to the
whole file.

*Arrivals.* The log holds aggregated impressions, not visits. The arrivals of a user type are its impressions
in the counted rows; its arrival rate is its share of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from banditrank._checks import check_integer, check_workers
from banditrank._notebook import notebook_progress
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.logs._count_queries import QueryError
from banditrank.logs._duckdb_session import DuckDBSession, OnProgress, open_session
from banditrank.logs.kdd2012 import _queries as queries
from banditrank.logs.kdd2012._files import (
    LogFile,
    check_all_was_read,
    contradicting_lines,
    first_malformed_line,
    profile_file,
    training_file,
)

USER_TYPES = ("male", "female")
MIN_BYTES_PER_THREAD = 10**6  # a thread with less to read costs more than it saves
KNOWN_POSITIONS = (1, 2, 3)
MAX_DISPLAYS = 10**15  # floats are exact integers up to 9·10¹⁵
REASONS = (
    "position other than 1, 2, 3",
    "user 0 (unknown)",
    "user without a profile",
    "gender 0 (unknown)",
    "gender other than 0, 1, 2",
    "another position",
    "another ad",
    "counted",
)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of the training file that were counted, or excluded for the same reason."""

    reason: str
    rows: int
    impressions: int
    clicks: int


@dataclass(frozen=True, slots=True, eq=False)
class Extraction:
    """Counts of the two files, and how many rows they come from.

    Attributes
    ----------
    counts
        Displays (impressions), clicks and arrivals of the chosen cells, user types male and female.
    ads
        AdID of each item, most impressions first.
    positions
        Number of each position in the file.
    row_groups
        One for each of `REASONS`, in that order; they add up to the training file.
    anomalies
        Number of unknown codes and other anomalies that exclude no row.
    n_ads_found
        Number of distinct ads in the training file.
    n_profiles
        Number of distinct users in the profile file.
    """

    counts: Counts
    ads: tuple[int, ...]
    positions: tuple[int, ...]
    row_groups: tuple[RowGroup, ...]
    anomalies: dict[str, int]
    n_ads_found: int
    n_profiles: int

    @property
    def items(self) -> tuple[str, ...]:
        """Item names in a problem: ``ad-`` and the AdID."""
        return tuple(f"ad-{ad}" for ad in self.ads)

    @property
    def total(self) -> RowGroup:
        """All rows of the training file."""
        groups = self.row_groups
        return RowGroup(
            "all rows",
            sum(group.rows for group in groups),
            sum(group.impressions for group in groups),
            sum(group.clicks for group in groups),
        )


def extract(
    training: str | Path,
    profiles: str | Path,
    *,
    n_ads: int = 5,
    positions: Sequence[int] = (1, 2),
    memory_limit: str = "2GB",
    temporary_directory: str | Path | None = None,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Extraction:
    """Aggregate the training file in one pass, and return the counts.

    Parameters
    ----------
    training, profiles
        ``training.txt`` and ``userid_profile.txt``.
    n_ads
        Number of ads, the most frequent first.
    positions
        Positions to count, among 1, 2 and 3; at most as many as ads.
    memory_limit, temporary_directory, threads
        See `banditrank.logs._duckdb_session.open_session`. Results do not depend on them.
    on_progress
        Called several times a second with the share of the bytes read so far. By default a notebook shows a
        progress bar.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, a file or a line is malformed, or too few ads are found.
    BanditRankError
        If DuckDB is not installed, or reading fails.

    Examples
    --------
    >>> from banditrank import kdd2012
    >>> from banditrank.logs.kdd2012._sample_log import write_sample_log
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     log = write_sample_log(kdd2012(), directory, n_rows=2_000, seed=1)
    ...     found = extract(log.training, log.profiles)
    >>> found.items, found.counts.displays.shape, found.total.rows
    (('ad-1', 'ad-2', 'ad-3', 'ad-4', 'ad-5'), (2, 5, 2), 2000)
    """
    n_ads = _check_choice(n_ads, positions)
    training_log, profile_log = training_file(training), profile_file(profiles)
    for file in (profile_log, training_log):
        file.check()
    size = profile_log.size + training_log.size
    share = profile_log.size / size
    if (threads := check_workers("threads", threads)) is not None:
        threads = min(threads, 1 + size // MIN_BYTES_PER_THREAD)
    chosen = {"positions": list(positions)}
    with (
        notebook_progress("reading the log", on_progress) as report,
        open_session(
            memory_limit=memory_limit, temporary_directory=temporary_directory, threads=threads
        ) as session,
    ):
        _read(session, queries.READ_PROFILES, profile_log, _between(report, 0.0, share))
        ((n_lines, n_users, odd_genders, odd_ages, contradiction),) = session.run(queries.DESCRIBE_PROFILES)
        check_all_was_read(profile_log, n_lines)
        if contradiction is not None:
            raise contradicting_lines(profile_log, contradiction)
        _read(session, queries.READ_TRAINING, training_log, _between(report, share, 1.0))
        ((n_rows, n_ads_found, odd_depths, beyond_depth),) = session.run(queries.DESCRIBE_TRAINING)
        check_all_was_read(training_log, n_rows)
        session.run(queries.CHOOSE_ADS, {**chosen, "n_ads": n_ads})
        ads = [row[0] for row in session.run(queries.CHOSEN_ADS)]
        cells = session.run(queries.CHOSEN_CELLS, chosen)
        groups = session.run(queries.GROUP_ROWS, chosen)
    if not ads:
        rule = "must have lines at the chosen positions of users whom the profile file gives gender 1 or 2"
        raise InvalidInputError("training file", rule, 0)
    if len(ads) < n_ads:
        rule = "must be at most the ads that users of known gender saw at the chosen positions"
        raise InvalidInputError("n_ads", f"{rule}, {len(ads)}", n_ads)
    return Extraction(
        counts=_counts(cells, ads, positions),
        ads=tuple(ads),
        positions=tuple(positions),
        row_groups=_row_groups(groups),
        anomalies={
            "training rows with a depth other than 1, 2, 3": odd_depths,
            "training rows with a position beyond the depth": beyond_depth,
            "profiles with a gender other than 0, 1, 2": odd_genders,
            "profiles with an age other than 1 to 6": odd_ages,
            "profile rows that repeat an earlier one": n_lines - n_users,
        },
        n_ads_found=n_ads_found,
        n_profiles=n_users,
    )


def _check_choice(n_ads: int, positions: Sequence[int]) -> int:
    """Return the number of ads, or raise if it or the positions are out of range."""
    n_ads = check_integer("n_ads", n_ads, 1)
    if not positions or len(set(positions)) < len(positions) or not set(positions) <= set(KNOWN_POSITIONS):
        raise InvalidInputError("positions", "must be different ones of 1, 2 and 3", positions)
    if len(positions) > n_ads:
        raise InvalidInputError("n_ads", f"must be at least the {len(positions)} positions", n_ads)
    return n_ads


def _between(on_progress: OnProgress | None, begin: float, end: float) -> OnProgress | None:
    """Return a callback that maps progress from 0 to 1 onto an interval of the whole."""
    if on_progress is None:
        return None
    return lambda done: on_progress(begin + (end - begin) * done)


def _read(session: DuckDBSession, query: str, file: LogFile, on_progress: OnProgress | None) -> None:
    """Run a query over a file; raise the error of the first malformed line if it fails."""
    try:
        session.run(query, {"path": session.path_for_reading(file.path)}, on_progress)
    except QueryError as failure:
        raise first_malformed_line(file) or failure from None
    if on_progress is not None:
        on_progress(1.0)


def _counts(cells: list[tuple[Any, ...]], ads: Sequence[int], positions: Sequence[int]) -> Counts:
    shape = len(USER_TYPES), len(ads), len(positions)
    displays, clicks = np.zeros(shape), np.zeros(shape)
    item, slot = ({value: index for index, value in enumerate(values)} for values in (ads, positions))
    for user, ad, position, impressions, clicked in cells:
        cell = user - queries.USER_CODES["male"], item[ad], slot[position]
        displays[cell], clicks[cell] = impressions, clicked
    if displays.sum() > MAX_DISPLAYS:
        rule = f"must have at most {MAX_DISPLAYS:,} impressions of the chosen ads and positions"
        raise InvalidInputError("training file", rule, int(displays.sum()))
    return Counts.from_arrays(displays, clicks, displays.sum(axis=(1, 2)))


def _row_groups(groups: list[tuple[Any, ...]]) -> tuple[RowGroup, ...]:
    sums = {reason: [0, 0, 0] for reason in REASONS}
    for position, user, at_chosen_position, of_chosen_ad, *amounts in groups:
        applies = (
            position == 0,
            user == queries.USER_CODES["user 0"],
            user == queries.USER_CODES["no profile"],
            user == queries.USER_CODES["gender 0"],
            user == queries.USER_CODES["gender other than 0, 1, 2"],
            not at_chosen_position,
            not of_chosen_ad,
            True,
        )
        reason = REASONS[applies.index(True)]
        sums[reason] = [before + amount for before, amount in zip(sums[reason], amounts, strict=True)]
    return tuple(RowGroup(reason, *map(int, amounts)) for reason, amounts in sums.items())
