"""Finished jobs are stored, and loaded only if they are undamaged and of the same settings."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
from helpers.small_study import NumbersJob
from pyarrow import parquet

from banditrank import InvalidInputError
from banditrank.experiments._results_directory import ResultsDirectory

MANIFEST = {"version": "1.2.3", "seed": 0, "quick": True}
JOB = NumbersJob(name="first", seed=7)
FRAME = pd.DataFrame({"number": [0.1, 0.2], "word": ["a", "b"]})


def test_saved_data_are_loaded_by_another_process(tmp_path: Path) -> None:
    ResultsDirectory(tmp_path, MANIFEST).save("small", JOB, FRAME, 1.5)
    results = ResultsDirectory(tmp_path, MANIFEST)
    pd.testing.assert_frame_equal(results.load("small", JOB), FRAME)
    assert results.seconds("small", [JOB]) == 1.5
    assert results.load("other", JOB) is None
    assert results.seconds("other", [JOB]) == 0
    assert results.seconds("small", []) == 0


def test_metadata_contain_the_manifest(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    metadata = parquet.read_schema(results.path("small", JOB)).metadata
    noted = {name: metadata[f"banditrank.{name}".encode()] for name in MANIFEST}
    assert noted == {"version": b"1.2.3", "seed": b"0", "quick": b"True"}


def test_data_of_other_settings_are_not_loaded(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    assert results.load("small", NumbersJob(name="first", seed=8)) is None


@pytest.mark.parametrize(
    "damage", [lambda old: old[:-20], lambda old: old[:40], lambda _: b"", lambda _: b"no"]
)
def test_damaged_data_are_not_loaded(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    path = results.path("small", JOB)
    path.write_bytes(damage(path.read_bytes()))
    assert results.load("small", JOB) is None


def test_data_with_a_flipped_bit_are_not_loaded(tmp_path: Path) -> None:
    """Parquet has no checksum: most flipped bits change values, some raise errors of any kind."""
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    path = results.path("small", JOB)
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 29):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert results.load("small", JOB) is None
    path.write_bytes(whole)
    pd.testing.assert_frame_equal(results.load("small", JOB), FRAME)


@pytest.mark.parametrize("text", ["", "no checksum", "\xff"])
def test_data_with_a_missing_or_damaged_checksum_are_not_loaded(tmp_path: Path, text: str) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    checksum = results.path("small", JOB).with_name("first.parquet.sha256")
    checksum.write_text(text)
    assert results.load("small", JOB) is None
    checksum.unlink()
    assert results.load("small", JOB) is None


def test_checksums_are_in_the_format_of_sha256sum(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    path = results.path("small", JOB)
    expected = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  first.parquet\n"
    assert path.with_name("first.parquet.sha256").read_text() == expected


def test_unreadable_data_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    for error in (TypeError, KeyError, UnicodeError, OSError):
        monkeypatch.setattr("pyarrow.parquet.read_table", Mock(side_effect=error))
        assert results.load("small", JOB) is None


def test_data_and_timings_are_in_separate_directories(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    timed = NumbersJob(name="first", seed=7, timed=True)
    results.save("small", JOB, FRAME, 0)
    results.save("small", timed, FRAME.tail(1), 0)
    assert {path.parent.parent.name for path in tmp_path.rglob("*.parquet")} == {"data", "timings"}
    assert len(results.load("small", JOB)) == 2
    assert len(results.load("small", timed)) == 1


def test_no_temporary_files_are_left(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    results.save("small", JOB, FRAME, 0)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == ["first.parquet", "first.parquet.sha256", "reproduction.json", "seconds.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", "1.2.4"), ("seed", 1), ("quick", False), ("seed", False), ("seed", 0.0), ("quick", 1)],
)
def test_a_directory_of_another_reproduction_is_refused(tmp_path: Path, field: str, value: object) -> None:
    ResultsDirectory(tmp_path, MANIFEST)
    with pytest.raises(InvalidInputError, match=f"whose {field} is .* and not {value!r}"):
        ResultsDirectory(tmp_path, {**MANIFEST, field: value})


@pytest.mark.parametrize("text", ["mine", "[]", "{}", '{"a": 1.5}'])
@pytest.mark.parametrize("name", ["data", "timings", "index.html", "seconds.json"])
def test_a_directory_with_other_files_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=f"must be new or hold a reproduction, not another {name}"):
        ResultsDirectory(tmp_path, MANIFEST, ["index.html"])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["reproduction.json", "seconds.json"])
@pytest.mark.parametrize("text", ["{", "[]"])
def test_unreadable_files_are_errors(tmp_path: Path, name: str, text: str) -> None:
    ResultsDirectory(tmp_path, MANIFEST)
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=f"must hold a readable {name}"):
        ResultsDirectory(tmp_path, MANIFEST)


@pytest.mark.parametrize("value", ['"abc"', "null", "[1]", "NaN", "-5", "true", "Infinity", "1e999"])
def test_invalid_durations_are_errors(tmp_path: Path, value: str) -> None:
    ResultsDirectory(tmp_path, MANIFEST)
    (tmp_path / "seconds.json").write_text(f'{{"small/first": {value}}}')
    with pytest.raises(InvalidInputError, match=r"must hold a readable seconds\.json"):
        ResultsDirectory(tmp_path, MANIFEST)


@pytest.mark.parametrize("text", ["{}", '{"version": "1.2.3", "seed": 0}'])
def test_an_incomplete_manifest_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "reproduction.json").write_text(text)
    with pytest.raises(InvalidInputError, match=r"must hold a readable reproduction\.json"):
        ResultsDirectory(tmp_path, MANIFEST)


def test_a_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInputError, match=r"^output must be writable"):
            ResultsDirectory(directory, MANIFEST)


def test_unwritable_data_are_an_error(tmp_path: Path) -> None:
    results = ResultsDirectory(tmp_path, MANIFEST)
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(InvalidInputError, match=r"^output must be writable"):
        results.save("small", JOB, FRAME, 0)


def test_the_manifest_is_written(tmp_path: Path) -> None:
    ResultsDirectory(tmp_path / "new" / "deep", MANIFEST)
    assert json.loads((tmp_path / "new" / "deep" / "reproduction.json").read_text()) == MANIFEST
