"""Counts are those of a plain aggregation, and every row is accounted for, whatever threads and memory."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers.handwritten_log import row, write_log

from banditrank import InvalidInputError, kdd2012
from banditrank.logs._duckdb_session import open_session
from banditrank.logs.kdd2012._extraction import REASONS, Extraction, RowGroup, extract
from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log


def read(path: Path) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split("\t"))) for line in path.read_text().splitlines()]


def fate(position: int, user: int, gender: int | None, positions: tuple[int, ...], *, chosen: bool) -> str:
    """Say why a row is left out, or that it is counted."""
    questions = {
        "position other than 1, 2, 3": position not in (1, 2, 3),
        "user 0 (unknown)": user == 0,
        "user without a profile": gender is None,
        "gender 0 (unknown)": gender == 0,
        "gender other than 0, 1, 2": gender not in (1, 2),
        "another position": position not in positions,
        "another ad": not chosen,
    }
    return next((reason for reason, holds in questions.items() if holds), "counted")


def plain_extraction(log: SampleLog, n_ads: int, positions: tuple[int, ...]) -> tuple:
    """Aggregate line by line, in plain Python, from the description and not from the queries."""
    genders = {user: gender for user, gender, _ in read(log.profiles)}
    rows = [(values[0], values[1], values[3], values[6], values[11]) for values in read(log.training)]
    frequency: Counter[int] = Counter()
    for _, impression, ad, position, user in rows:
        if position in positions and user != 0 and genders.get(user) in (1, 2):
            frequency[ad] += impression
    ads = sorted(frequency, key=lambda ad: (-frequency[ad], ad))[:n_ads]
    displays, clicks = np.zeros((2, 2, n_ads, len(positions)))
    sums = {reason: [0, 0, 0] for reason in REASONS}
    for click, impression, ad, position, user in rows:
        reason = fate(position, user, genders.get(user), positions, chosen=ad in ads)
        if reason == "counted":
            cell = genders[user] - 1, ads.index(ad), positions.index(position)
            displays[cell] += impression
            clicks[cell] += click
        sums[reason] = [a + b for a, b in zip(sums[reason], (1, impression, click), strict=True)]
    return ads, displays, clicks, tuple(RowGroup(reason, *amounts) for reason, amounts in sums.items())


def assert_equal(found: Extraction, expected: tuple) -> None:
    ads, displays, clicks, groups = expected
    assert list(found.ads) == ads
    assert np.array_equal(found.counts.displays, displays)
    assert np.array_equal(found.counts.rewards, clicks)
    assert found.counts.arrivals.tolist() == displays.sum(axis=(1, 2)).tolist()
    assert found.row_groups == groups


@pytest.mark.parametrize(
    ("n_ads", "positions"), [(5, (1, 2)), (1, (3,)), (40, (3, 1, 2)), (2, (2, 1))], ids=str
)
def test_counts_are_those_of_a_plain_aggregation(
    sample_log: SampleLog, n_ads: int, positions: tuple[int, ...]
) -> None:
    found = extract(sample_log.training, sample_log.profiles, n_ads=n_ads, positions=positions)
    assert_equal(found, plain_extraction(sample_log, n_ads, positions))


def test_the_reasons_add_up_to_the_whole_file(sample_log: SampleLog) -> None:
    found = extract(sample_log.training, sample_log.profiles)
    rows = read(sample_log.training)
    assert found.total.rows == len(rows)
    assert found.total.impressions == sum(values[1] for values in rows)
    assert found.total.clicks == sum(values[0] for values in rows)
    counted = found.row_groups[-1]
    assert counted.reason == "counted"
    assert counted.impressions == found.counts.displays.sum()
    assert counted.clicks == found.counts.rewards.sum()
    assert all(group.rows > 100 for group in found.row_groups if "other than" not in group.reason)
    assert found.n_ads_found == len({values[3] for values in rows})
    assert found.n_profiles == len(read(sample_log.profiles))


def test_results_depend_neither_on_threads_nor_on_memory(sample_log: SampleLog, tmp_path: Path) -> None:
    expected = plain_extraction(sample_log, 5, (1, 2))
    for threads, memory in ((1, "100MB"), (2, "0.5 gib"), (4, "2GB")):
        found = extract(
            sample_log.training,
            sample_log.profiles,
            threads=threads,
            memory_limit=memory,
            temporary_directory=tmp_path,
        )
        assert_equal(found, expected)
    assert not list(tmp_path.iterdir()), "what went to the disk is removed"


def test_unknown_codes_are_counted_and_nothing_is_dropped(tmp_path: Path) -> None:
    log = write_log(
        tmp_path,
        [
            row(7, 1, 1, click=1, impression=3),
            row(7, 1, 2),
            row(8, 2, 1, impression=2, depth=1),  # beyond the depth: odd, and counted
            row(8, 2, 2, depth=9),  # an unknown depth
            row(7, 9, 1),  # an unknown position
            row(7, 0, 0),  # an unknown position first, an unknown user second
            row(7, 1, 3),  # gender 0
            row(7, 1, 4),  # gender 7
            row(7, 1, 5),  # no profile
            row(7, 1, 0),  # the unknown user
            row(7, 3, 1),  # another position
            row(9, 1, 1),  # another ad
        ],
        ["1\t1\t3", "2\t2\t9", "3\t0\t1", "4\t7\t1", "2\t2\t2", "0\t1\t1"],
    )
    found = extract(log.training, log.profiles, n_ads=2)
    rows = {group.reason: group.rows for group in found.row_groups}
    assert rows == dict(zip(REASONS, (2, 1, 1, 1, 1, 1, 1, 4), strict=True))
    assert found.total.rows == 12
    assert_equal(found, plain_extraction(log, 2, (1, 2)))
    assert list(found.anomalies.values()) == [1, 1, 1, 1, 1]
    assert found.n_profiles == 5


def test_ads_with_equally_many_impressions_come_by_number(tmp_path: Path) -> None:
    ads = (2**64 - 1, 900, 80, 7)
    log = write_log(
        tmp_path, [row(ad, position, user) for ad in ads for position in (1, 2) for user in (1, 2)]
    )
    assert extract(log.training, log.profiles, n_ads=3).ads == (7, 80, 900)
    assert extract(log.training, log.profiles, n_ads=4).items[-1] == "ad-18446744073709551615"


def test_impressions_decide_and_not_rows(tmp_path: Path) -> None:
    log = write_log(
        tmp_path, [row(1), row(1), row(1, 2, 2), row(2, 1, 2, impression=9), row(3, 3, 1, impression=99)]
    )
    assert extract(log.training, log.profiles, n_ads=2).ads == (2, 1)


@pytest.mark.parametrize("name", ["a*b?.txt", "it's [1].txt", "training.txt.gz", "log.csv"])
def test_any_file_name_will_do(sample_log: SampleLog, tmp_path: Path, name: str) -> None:
    (tmp_path / "ab.txt").write_text("not this one")
    training, profiles = tmp_path / name, tmp_path / f"p{name}"
    training.write_bytes(sample_log.training.read_bytes())
    profiles.write_bytes(sample_log.profiles.read_bytes())
    assert extract(training, profiles).total.rows == 20_000


def test_progress_rises_to_the_end(sample_log: SampleLog) -> None:
    told: list[float] = []
    extract(sample_log.training, sample_log.profiles, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_ads": 0}, "n_ads must be a whole number of at least 1, got 0"),
        ({"n_ads": 1}, "n_ads must be at least the 2 positions, got 1"),
        (
            {"n_ads": 400},
            r"n_ads must be at most the ads .* saw at the chosen positions, 305, got 400",
        ),
        ({"positions": ()}, r"positions must be different ones of 1, 2 and 3, got \(\)"),
        ({"positions": (1, 1)}, r"positions must be different ones of 1, 2 and 3, got \(1, 1\)"),
        ({"positions": (1, 4)}, r"positions must be different ones of 1, 2 and 3, got \(1, 4\)"),
        ({"memory_limit": "much"}, "memory_limit must be from 100MB to 1000TB, written like 2GB, got 'much'"),
        ({"memory_limit": "1MB"}, "memory_limit must be from 100MB to 1000TB, .*, got '1MB'"),
        ({"memory_limit": "99999999999999TB"}, "memory_limit must be from 100MB to 1000TB, .*, got '9"),
        ({"memory_limit": f"{'9' * 400}TB"}, "memory_limit must be from 100MB to 1000TB, .*, got '9"),
        ({"threads": 0}, "threads must be a whole number from 1 to 1,024, got 0"),
        ({"threads": 1025}, "threads must be a whole number from 1 to 1,024, got 1025"),
        ({"threads": 10**23}, "threads must be a whole number from 1 to 1,024, got 1000"),
        (
            {"temporary_directory": "missing"},
            r"temporary_directory must be writable \(no such .* got 'missing'",
        ),
    ],
    ids=str,
)
def test_bad_settings_are_refused(sample_log: SampleLog, settings: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        extract(sample_log.training, sample_log.profiles, **settings)


def test_a_small_log_is_read_by_few_threads(
    sample_log: SampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from banditrank.logs.kdd2012 import _extraction as extraction

    asked: list[int | None] = []

    def session(*, threads: int | None, **settings: object):  # noqa: ANN202
        asked.append(threads)
        return open_session(threads=threads, **settings)

    monkeypatch.setattr(extraction, "open_session", session)
    extract(sample_log.training, sample_log.profiles, threads=1024, temporary_directory=tmp_path)
    extract(sample_log.training, sample_log.profiles)
    size = sample_log.training.stat().st_size + sample_log.profiles.stat().st_size
    assert asked == [1 + size // 10**6, None]


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Half a million rows and a million users, 50 MB: the process grows by little more than the limit."""
    log = write_sample_log(kdd2012(), tmp_path, n_rows=500_000, seed=2, n_users=1_000_000)
    small = tmp_path / "small"
    small.mkdir()
    write_sample_log(kdd2012(), small, n_rows=100, seed=2)
    code = (
        "import resource, sys\n"
        "from banditrank.logs.kdd2012._extraction import extract\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "extract(sys.argv[3], sys.argv[4], n_ads=2, threads=2)\n"
        "before = peak()\n"
        "found = extract(sys.argv[1], sys.argv[2], threads=2, memory_limit='200MB')\n"
        "print(found.total.rows, peak() - before)"
    )
    files = [log.training, log.profiles, small / "training.txt", small / "userid_profile.txt"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, files)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, done.stdout.split())
    assert rows == 500_000
    assert grown < 250
