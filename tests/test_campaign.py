"""The campaign covers all tests, and its page lists all of its parts."""

from pathlib import Path

from campaigns.__main__ import PAGE, PARTS, TEST_DIRECTORIES, PartResult, page

ROOT = Path(__file__).parents[1]


def test_parts_of_the_tests_are_directories_and_all_others() -> None:
    directories = [directory for group in TEST_DIRECTORIES.values() for directory in group]
    assert len(set(directories)) == len(directories)
    assert all((ROOT / "tests" / directory).is_dir() for directory in directories)
    (others,) = [part.command for part in PARTS if part.name == "tests-others"]
    ignored = {word.removeprefix("--ignore=tests/") for word in others if word.startswith("--ignore=")}
    assert ignored == set(directories)


def test_the_page_lists_all_parts() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["part", *(part.name for part in PARTS)]


def test_the_page_states_results_with_date_and_version() -> None:
    result = PartResult("soak", False, "RSS grows | 2 KiB", 10.2, "2026-11-18", "0.2.0 (9018511)")
    *_, crashes, soak = page({"soak": result}).splitlines()
    assert crashes.endswith("| not run yet |  |  |  |")
    assert soak.endswith("| FAILED: RSS grows / 2 KiB | 10.2 | 2026-11-18 | 0.2.0 (9018511) |")
