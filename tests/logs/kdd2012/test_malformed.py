"""Every way in which a file can be wrong is one line that names the file, the line and the rule."""

import gzip
from pathlib import Path

import pytest
from helpers.handwritten_log import GOOD, PROFILES, row, write_log

from banditrank import BanditRankError, InvalidInputError
from banditrank.logs.kdd2012._extraction import extract
from banditrank.logs.kdd2012._files import check_all_was_read, first_malformed_line, training_file

WHOLE = r"must be a whole number from 0 to 2\^64 − 1, got "

BAD_TRAINING_LINES = {
    "too few columns": ("0\t1\t5", "line 9 must have 12 columns with tabs between them, got 3"),
    "too many columns": (row() + "\t1", "line 9 must have 12 columns .*, got 13"),
    "a tab at the end": (row() + "\t", "line 9 must have 12 columns .*, got 13"),
    "spaces for tabs": (row().replace("\t", " "), "line 9 must have 12 columns .*, got 1"),
    "blank": ("", "line 9 must have 12 columns .*, got 0"),
    "a word": (row().replace("\t7\t", "\tseven\t"), f"line 9: AdID {WHOLE}'seven'"),
    "a fraction": ("1.5" + row()[1:], f"line 9: Click {WHOLE}'1.5'"),
    "an exponent": ("1e0" + row()[1:], f"line 9: Click {WHOLE}'1e0'"),
    "a negative number": ("-1" + row()[1:], f"line 9: Click {WHOLE}'-1'"),
    "a sign": ("+0" + row()[1:], f"line 9: Click {WHOLE}'\\+0'"),
    "a space": (" " + row(), f"line 9: Click {WHOLE}' 0'"),
    "an empty field": (row()[1:], f"line 9: Click {WHOLE}''"),
    "a quote": ('"0"' + row()[1:], f"line 9: Click {WHOLE}'\"0\"'"),
    "too large a number": (row(user=2**64), f"line 9: UserID {WHOLE}'18446744073709551616'"),
    "other digits": (row() + "٣", f"line 9: UserID {WHOLE}'1٣'"),
    "junk": (row().encode() + b"\xff\x00", rf"line 9: UserID {WHOLE}'1\\\\xff\\x00'"),
    "a carriage return": (row() + "\r", r"line 9 must end with a newline alone, not .*CRLF.*, got '.*1\\r'"),
    "a carriage return between rows": (f"{row()}\r{row()}", "line 9 must have 12 columns .*, got 23"),
    "the query's separator": (row() + "\x01", rf"line 9: UserID {WHOLE}'1\\x01'"),
    "the query's separator twice": (row() + "\x01\x01", rf"line 9: UserID {WHOLE}'1\\x01\\x01'"),
    "the query's separator alone": ("\x01", "line 9 must have 12 columns .*, got 1"),
    "no impressions": (row(impression=0), "line 9: Impression must be from 1 to 1,000,000,000, got 0"),
    "too many impressions": (
        row(impression=2**64 - 1),
        "line 9: Impression must be from 1 to 1,000,000,000, got 18446744073709551615",
    ),
    "one impression too many": (
        row(impression=10**9 + 1),
        "line 9: Impression must be from 1 to 1,000,000,000, got 1000000001",
    ),
    "more clicks than impressions": (
        row(click=4, impression=3),
        "line 9: Click must be at most the line's Impression, 3, got 4",
    ),
    "an endless line": ("7" * 3_000_000, "line 9 must have 12 columns .*, got 1"),
}


@pytest.mark.parametrize("name", BAD_TRAINING_LINES)
def test_a_malformed_training_line_is_named(tmp_path: Path, name: str) -> None:
    line, message = BAD_TRAINING_LINES[name]
    log = write_log(tmp_path, [*GOOD, line, *GOOD])
    with pytest.raises(InvalidInputError, match=rf"^training\.txt {message}") as caught:
        extract(log.training, log.profiles)
    assert "\n" not in str(caught.value)


def test_the_first_of_several_is_named(tmp_path: Path) -> None:
    log = write_log(tmp_path, [*GOOD, *GOOD, row(impression=0), "x", *GOOD, ""])
    with pytest.raises(InvalidInputError, match=r"training\.txt line 17: Impression"):
        extract(log.training, log.profiles, threads=4)


def test_line_numbers_hold_far_down_a_file(tmp_path: Path) -> None:
    log = write_log(tmp_path, [*GOOD * 5000, "0\t0", *GOOD * 5000])
    with pytest.raises(InvalidInputError, match=r"training.txt line 40,001 must have 12 columns .*, got 2"):
        extract(log.training, log.profiles)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3\t1", "line 3 must have 3 columns with tabs between them, got 2"),
        ("3\tf\t1", f"line 3: Gender {WHOLE}'f'"),
        ("3\t1\t2.5", f"line 3: Age {WHOLE}'2.5'"),
        ("", "line 3 must have 3 columns .*, got 0"),
        ("1\t2\t3", "line 3: Gender must be that of user 1 in line 1, which is 1, got 2"),
        ("01\t0\t3", "line 3: Gender must be that of user 1 in line 1, which is 1, got 0"),
    ],
)
def test_a_malformed_profile_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    log = write_log(tmp_path, GOOD, [*PROFILES, line, "4\t2\t2"])
    with pytest.raises(InvalidInputError, match=rf"^userid_profile\.txt {message}"):
        extract(log.training, log.profiles)


@pytest.mark.parametrize("end", ["", "\x01", "\x01\x01"])
def test_a_malformed_last_line_is_named_in_either_file(tmp_path: Path, end: str) -> None:
    """A last line that is longer than DuckDB's buffers is one that it drops without a word."""
    endless = end or "1" * 50_000_000
    log = write_log(tmp_path, [*GOOD, row() + endless])
    with pytest.raises(InvalidInputError, match=r"^training\.txt line 9.* must (be|have) "):
        extract(log.training, log.profiles)
    log = write_log(tmp_path, GOOD, [*PROFILES, "3\t1\t1" + endless])
    with pytest.raises(InvalidInputError, match=r"^userid_profile\.txt line 3.* must (be|have) "):
        extract(log.training, log.profiles)


def test_lines_that_were_not_read_are_reported_even_if_they_are_valid(tmp_path: Path) -> None:
    file = training_file(write_log(tmp_path, GOOD).training)
    check_all_was_read(file, 8)
    for count in (7, 9):
        with pytest.raises(
            BanditRankError, match=f"^reading training.txt failed: of 8 lines {count} were read$"
        ):
            check_all_was_read(file, count)


def test_more_impressions_than_can_be_counted_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditrank.logs.kdd2012._extraction.MAX_DISPLAYS", 10**9)
    log = write_log(tmp_path, [*GOOD, row(1, impression=10**9)])
    with pytest.raises(InvalidInputError, match=r"training file must have at most .*, got 1000000008"):
        extract(log.training, log.profiles, n_ads=2)


@pytest.mark.parametrize("profiles", [["1\t0\t3", "2\t0\t4"], ["7\t1\t1"]])
def test_a_log_without_a_known_gender_is_refused(tmp_path: Path, profiles: list[str]) -> None:
    log = write_log(tmp_path, GOOD, profiles)
    message = "training file must have lines .* whom the profile file gives gender 1 or 2, got 0"
    with pytest.raises(InvalidInputError, match=message):
        extract(log.training, log.profiles)


@pytest.mark.parametrize("cut", [1, 2, 12, 25])
def test_a_file_that_was_cut_off_is_refused_even_between_columns(tmp_path: Path, cut: int) -> None:
    log = write_log(tmp_path, [*GOOD, row(user=123456)])
    whole = log.training.read_bytes()
    log.training.write_bytes(whole[:-cut])
    with pytest.raises(
        InvalidInputError,
        match=r"^training.txt line 9 must end with a newline \(the file looks cut off\), got '0",
    ):
        extract(log.training, log.profiles)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "training file must not be empty, got"),
        (gzip.compress(b"0\t1", mtime=0), "training file must be plain text, not gzip, got"),
        (b"PK\x03\x04rest", "training file must be plain text, not zip, got"),
        (b"\xef\xbb\xbf0\t1\n", "training file must be plain text, not text with a byte order mark, got"),
        ("0\t1\n".encode("utf-16"), "training file must be plain text, not UTF-16, got"),
        (b"Click\tImpression\n", "training.txt line 1 must have 12 columns"),
        (b"1\t1\t3\n", "training.txt line 1 must have 12 columns with tabs between them, got 3"),
        (b"\n", "training.txt line 1 must have 12 columns .*, got 0"),
    ],
)
def test_what_is_no_log_is_refused_before_the_work(tmp_path: Path, content: bytes, message: str) -> None:
    log = write_log(tmp_path, GOOD)
    log.training.write_bytes(content)
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        training_file(log.training).check()


def test_missing_files_and_directories_are_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path, GOOD)
    with pytest.raises(
        InvalidInputError, match=r"profile file must be readable \(no such file or directory\)"
    ):
        extract(log.training, tmp_path / "none")
    with pytest.raises(InvalidInputError, match="training file must be a file, got"):
        extract(tmp_path, log.profiles)
    with pytest.raises(InvalidInputError, match="training file must be a file, got '/dev/null'"):
        extract("/dev/null", log.profiles)


def test_the_second_look_agrees_with_the_query_about_good_files(tmp_path: Path) -> None:
    unusual = [row(click=5, impression=7), row(user=2**64 - 1), "00" + row(), row(impression=10**9)]
    log = write_log(tmp_path, [*GOOD, *unusual])
    assert extract(log.training, log.profiles, n_ads=2).total.rows == 12
    assert first_malformed_line(training_file(log.training)) is None


def test_a_failure_that_no_line_explains_is_still_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from banditrank.logs.kdd2012 import _queries as queries

    log = write_log(tmp_path, GOOD)
    monkeypatch.setattr(queries, "READ_TRAINING", "SELECT nothing FROM read_text($path)")
    with pytest.raises(BanditRankError, match=r"^reading the log failed: Binder Error: .*") as caught:
        extract(log.training, log.profiles)
    assert "\n" not in str(caught.value)
