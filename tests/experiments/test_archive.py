"""Finished parts are kept, and only those that are whole and of the same settings are taken up again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
from helpers.small_study import NumbersPart
from pyarrow import parquet

from banditrank import InvalidInputError
from banditrank.experiments.archive import Archive

MANIFEST = {"version": "1.2.3", "seed": 0, "quick": True}
PART = NumbersPart(name="first", seed=7)
FRAME = pd.DataFrame({"number": [0.1, 0.2], "word": ["a", "b"]})


def test_what_was_put_in_is_given_back_in_another_process(tmp_path: Path) -> None:
    Archive(tmp_path, MANIFEST).put("small", PART, FRAME, 1.5)
    archive = Archive(tmp_path, MANIFEST)
    pd.testing.assert_frame_equal(archive.get("small", PART), FRAME)
    assert archive.seconds("small", [PART]) == 1.5
    assert archive.get("other", PART) is None
    assert archive.seconds("other", [PART]) == 0
    assert archive.seconds("small", []) == 0


def test_a_file_says_by_itself_where_it_came_from(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    metadata = parquet.read_schema(archive.path("small", PART)).metadata
    noted = {name: metadata[f"banditrank.{name}".encode()] for name in MANIFEST}
    assert noted == {"version": b"1.2.3", "seed": b"0", "quick": b"True"}


def test_data_of_other_settings_are_not_given_back(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    assert archive.get("small", NumbersPart(name="first", seed=8)) is None


@pytest.mark.parametrize(
    "damage", [lambda old: old[:-20], lambda old: old[:40], lambda _: b"", lambda _: b"no"]
)
def test_damaged_data_are_not_given_back(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    path = archive.path("small", PART)
    path.write_bytes(damage(path.read_bytes()))
    assert archive.get("small", PART) is None


def test_no_flipped_bit_is_taken_for_data(tmp_path: Path) -> None:
    """Parquet has no checksum of its own: most flipped bits give other values, some an error of any kind."""
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    path = archive.path("small", PART)
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 29):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert archive.get("small", PART) is None
    path.write_bytes(whole)
    pd.testing.assert_frame_equal(archive.get("small", PART), FRAME)


@pytest.mark.parametrize("text", ["", "no checksum", "\xff"])
def test_data_whose_checksum_is_missing_or_damaged_are_not_given_back(tmp_path: Path, text: str) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    checksum = archive.path("small", PART).with_name("first.parquet.sha256")
    checksum.write_text(text)
    assert archive.get("small", PART) is None
    checksum.unlink()
    assert archive.get("small", PART) is None


def test_a_checksum_is_one_that_other_programs_know(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    path = archive.path("small", PART)
    expected = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  first.parquet\n"
    assert path.with_name("first.parquet.sha256").read_text() == expected


def test_what_cannot_be_read_for_another_reason_is_not_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    for error in (TypeError, KeyError, UnicodeError, OSError):
        monkeypatch.setattr("pyarrow.parquet.read_table", Mock(side_effect=error))
        assert archive.get("small", PART) is None


def test_data_and_times_are_kept_apart(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    timed = NumbersPart(name="first", seed=7, timed=True)
    archive.put("small", PART, FRAME, 0)
    archive.put("small", timed, FRAME.tail(1), 0)
    assert {path.parent.parent.name for path in tmp_path.rglob("*.parquet")} == {"data", "timings"}
    assert len(archive.get("small", PART)) == 2
    assert len(archive.get("small", timed)) == 1


def test_nothing_but_whole_files_is_left(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    archive.put("small", PART, FRAME, 0)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == ["first.parquet", "first.parquet.sha256", "reproduction.json", "seconds.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", "1.2.4"), ("seed", 1), ("quick", False), ("seed", False), ("seed", 0.0), ("quick", 1)],
)
def test_a_directory_of_another_reproduction_is_refused(tmp_path: Path, field: str, value: object) -> None:
    Archive(tmp_path, MANIFEST)
    with pytest.raises(InvalidInputError, match=f"whose {field} is .* and not {value!r}"):
        Archive(tmp_path, {**MANIFEST, field: value})


@pytest.mark.parametrize("text", ["mine", "[]", "{}", '{"a": 1.5}'])
@pytest.mark.parametrize("name", ["data", "timings", "index.html", "seconds.json"])
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=f"must be new or hold a reproduction, not another {name}"):
        Archive(tmp_path, MANIFEST, ["index.html"])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["reproduction.json", "seconds.json"])
@pytest.mark.parametrize("text", ["{", "[]"])
def test_notes_that_cannot_be_read_are_told(tmp_path: Path, name: str, text: str) -> None:
    Archive(tmp_path, MANIFEST)
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=f"must hold a readable {name}"):
        Archive(tmp_path, MANIFEST)


@pytest.mark.parametrize("value", ['"abc"', "null", "[1]", "NaN", "-5", "true", "Infinity", "1e999"])
def test_seconds_that_are_none_are_told(tmp_path: Path, value: str) -> None:
    Archive(tmp_path, MANIFEST)
    (tmp_path / "seconds.json").write_text(f'{{"small/first": {value}}}')
    with pytest.raises(InvalidInputError, match=r"must hold a readable seconds\.json"):
        Archive(tmp_path, MANIFEST)


@pytest.mark.parametrize("text", ["{}", '{"version": "1.2.3", "seed": 0}'])
def test_a_manifest_that_says_too_little_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "reproduction.json").write_text(text)
    with pytest.raises(InvalidInputError, match=r"must hold a readable reproduction\.json"):
        Archive(tmp_path, MANIFEST)


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInputError, match=r"^output must be writable"):
            Archive(directory, MANIFEST)


def test_data_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    archive = Archive(tmp_path, MANIFEST)
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(InvalidInputError, match=r"^output must be writable"):
        archive.put("small", PART, FRAME, 0)


def test_the_manifest_says_what_it_is(tmp_path: Path) -> None:
    Archive(tmp_path / "new" / "deep", MANIFEST)
    assert json.loads((tmp_path / "new" / "deep" / "reproduction.json").read_text()) == MANIFEST
