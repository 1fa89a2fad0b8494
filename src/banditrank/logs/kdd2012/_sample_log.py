"""Sample logs in the format of KDD Cup 2012 track 2, drawn from a known problem.

The real files cannot be redistributed. Like them, a sample has rows that aggregate several impressions, ads
and a position outside the problem, users of unknown gender, the unknown user 0, and users without a profile.
Counts extracted from it can be compared with the problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.logs.kdd2012._files import PROFILE_COLUMNS, TRAINING_COLUMNS
from banditrank.model._problem import Problem

_ROWS_PER_CHUNK = 500_000  # bounds memory
_OTHER_ADS = 300
_FIRST_OTHER_AD = 20_000_000
_SHARE_OF_OTHER_ADS = 0.3
_SHARE_OF_OTHER_POSITIONS = 0.2
_SHARE_OF_USER_0 = 0.08
_SHARE_WITHOUT_PROFILE = 0.04
_SHARE_OF_GENDER_0 = 0.05
_OTHER_CLICK_RATE = 0.02  # of excluded rows; counting them would bias the estimates visibly


@dataclass(frozen=True, slots=True)
class SampleLog:
    """Paths of the two files."""

    training: Path
    profiles: Path


def write_sample_log(
    problem: Problem, directory: str | Path, *, n_rows: int, seed: int, n_users: int | None = None
) -> SampleLog:
    """Write ``training.txt`` and ``userid_profile.txt`` to an existing directory.

    Clicks are binomial: a user of type i who is shown item j at position k clicks with probability ρ_ik μ_ij.
    Items are shown with decreasing frequency; the first has three times the rows of the last.

    Parameters
    ----------
    problem
        Two user types, male and female, and at most three positions. An item named ``ad-7`` gets AdID 7 if
        all items have such names; otherwise items are numbered from 1.
    directory
        Directory to write to; files of these names are replaced.
    n_rows
        Number of rows of the training file; about half of them belong to the problem's cells.
    seed
        Seed; the same seed gives the same files.
    n_users
        Number of users with a profile; a twentieth of the rows by default.

    Raises
    ------
    InvalidInputError
        If the problem has another shape, a number is out of range, or the directory is not writable.

    Examples
    --------
    >>> from banditrank import kdd2012
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     log = write_sample_log(kdd2012(), directory, n_rows=3, seed=0)
    ...     [len(line.split()) for line in log.training.read_text().splitlines()]
    [12, 12, 12]
    """
    if problem.n_user_types != 2 or problem.n_positions > 3:
        rule = "must have 2 user types, male and female, and at most 3 positions"
        raise InvalidInputError("problem", rule, (problem.n_user_types, problem.n_positions))
    n_rows = check_integer("n_rows", n_rows, 1)
    n_users = check_integer("n_users", max(20, n_rows // 20) if n_users is None else n_users, 1)
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    genders = _draw_genders(problem, n_users, rng)
    log = SampleLog(Path(directory) / "training.txt", Path(directory) / "userid_profile.txt")
    users = np.arange(1, genders.size + 1)
    _write(log.profiles, PROFILE_COLUMNS, iter([[users, genders, rng.integers(1, 7, genders.size)]]))
    sizes = [min(_ROWS_PER_CHUNK, n_rows - begin) for begin in range(0, n_rows, _ROWS_PER_CHUNK)]
    _write(log.training, TRAINING_COLUMNS, (_draw_rows(problem, genders, size, rng) for size in sizes))
    return log


def _draw_genders(problem: Problem, n_users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the gender code of each user, shape (n_users,): exact shares, in random order."""
    unknown = round(n_users * _SHARE_OF_GENDER_0)
    male = round((n_users - unknown) * float(problem.arrival_rates[0]))
    codes = np.repeat([0, 1, 2], [unknown, male, n_users - unknown - male])
    return rng.permutation(codes)


def _draw_rows(
    problem: Problem, genders: NDArray[np.int64], size: int, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Return the twelve columns of ``size`` rows."""
    n_positions, n_items = problem.n_positions, problem.n_items
    user = rng.integers(1, genders.size + 1, size)
    gender = genders[user - 1]
    kind = rng.random(size)
    is_user_0 = kind < _SHARE_OF_USER_0
    has_no_profile = ~is_user_0 & (kind < _SHARE_OF_USER_0 + _SHARE_WITHOUT_PROFILE)
    user = np.where(is_user_0, 0, np.where(has_no_profile, genders.size + user, user))

    frequency = np.linspace(1.5, 0.5, n_items) / n_items
    item = rng.choice(n_items, size, p=frequency / frequency.sum())
    other_ad = rng.random(size) < _SHARE_OF_OTHER_ADS
    ads = _ad_numbers(problem)
    others = np.setdiff1d(np.arange(_FIRST_OTHER_AD, _FIRST_OTHER_AD + _OTHER_ADS, dtype=np.uint64), ads)
    ad = np.where(other_ad, rng.choice(others, size), ads[item])

    position = rng.integers(1, n_positions + 1, size)
    other_position = (rng.random(size) < _SHARE_OF_OTHER_POSITIONS) & (n_positions < 3)
    position = np.where(other_position, 3, position)
    depth = rng.integers(position, 4)

    counted = ~is_user_0 & ~has_no_profile & (gender > 0) & ~other_ad & ~other_position
    i, k = np.maximum(gender - 1, 0), np.minimum(position, n_positions) - 1
    rate = np.where(
        counted, problem.position_preferences[i, k] * problem.item_means[i, item], _OTHER_CLICK_RATE
    )
    impression = rng.geometric(0.7, size)
    click = rng.binomial(impression, rate)
    url = rng.integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True)
    texts = [rng.integers(0, limit, size) for limit in (26_000_000, 1_200_000, 4_000_000, 3_100_000)]
    return [click, impression, url, ad, rng.integers(1, 15_000, size), depth, position, *texts, user]


def _ad_numbers(problem: Problem) -> NDArray[np.uint64]:
    """Return the AdID of each item, shape (M,)."""
    numbers = [name.removeprefix("ad-") for name in problem.items]
    named = all(
        number.isascii() and number.isdigit() and int(number) < 2**64 and name.startswith("ad-")
        for name, number in zip(problem.items, numbers, strict=True)
    )
    return np.array([int(number) for number in numbers] if named else range(1, len(numbers) + 1), np.uint64)


def _write(path: Path, columns: tuple[str, ...], tables: Iterator[list[NDArray[Any]]]) -> None:
    with requires("logs", "writing a sample log"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        import pyarrow.csv as pa_csv  # noqa: PLC0415 - heavy, and optional

    options = pa_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    try:
        with path.open("wb") as file:
            for table in tables:
                pa_csv.write_csv(pa.table(dict(zip(columns, table, strict=True))), file, options)
    except OSError as error:
        raise InvalidInputError.from_os("sample log", "must be writable", path, error) from None
