"""The carousel of a streaming service, read from the files that its authors publish."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.carousel_files import N_FEATURES, N_ITEMS, N_USERS, write_carousel

from banditrank import Cascade, Problem, ThompsonRank, make_problem, simulate
from banditrank.errors import InvalidInputError
from banditrank.model._carousel import ITEM_FILE, USER_FILE
from banditrank.model._catalog import load_any_problem, load_problem


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with small files of the published form."""
    return write_carousel(tmp_path)


def test_each_user_is_a_user_type(directory: Path) -> None:
    problem = make_problem("carousel", path=directory)
    assert (problem.n_user_types, problem.n_items, problem.n_positions) == (N_USERS, N_ITEMS, 12)
    assert problem.user_types[2] == "user-3-segment-2"
    weights = np.loadtxt(directory / ITEM_FILE, delimiter=",", skiprows=1)
    users = np.loadtxt(directory / USER_FILE, delimiter=",", skiprows=1)
    logit = weights[6] @ [*users[2, 1:], 1.0]
    assert problem.item_means[2, 6] == pytest.approx(1 / (1 + np.exp(-logit)))
    looks = problem.position_preferences[0]
    assert looks[0] == looks[1] == looks[2] > looks[3] > looks[11] > 0
    assert make_problem("carousel", path=directory, n_positions=2).n_positions == 2


def test_a_carousel_is_loaded_by_name_and_simulated(directory: Path) -> None:
    problem = load_problem(f"carousel:{directory}")
    assert problem == make_problem("carousel", path=directory) == load_any_problem(f"carousel:{directory}")
    result = simulate(ThompsonRank(), problem, 500, 2, seed=1, workers=1, click_model=Cascade())
    assert (result.regret[:, -1] > 0).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (ITEM_FILE, lambda _: "", r"^carousel file must be a CSV file with a header \(.*\), got "),
        (ITEM_FILE, lambda text: text.splitlines()[0], "^carousel file must have a row for each item or"),
        (ITEM_FILE, lambda text: text + "1,2,x,4,5\n", "line 17 must be 5 numbers, got '1,2,x,4,5'$"),
        (ITEM_FILE, lambda text: text + "1\n", "line 17 must be 5 numbers, got '1'$"),
        (ITEM_FILE, lambda text: text + "1,2,3,4\n", "line 17 must be 5 numbers, got '1,2,3,4'$"),
        (ITEM_FILE, lambda text: text + "1,2,3,4,nan\n", "line 17 must be 5 numbers, got '1,2,3,4,nan'$"),
        (USER_FILE, lambda text: text.replace("segment", "group"), "must have a column segment, got 'group"),
        (USER_FILE, lambda _: "segment,dim_0\n0,1\n", "must have 2 columns: a weight for each feature of"),
        (
            USER_FILE,
            lambda text: text + "0,1e308,1e308,1e308,1e308\n",
            "^carousel must have smaller weights ",
        ),
        # Too large for an array of zeros.
        (ITEM_FILE, lambda _: "," * 10**6 + "\n" + "1\n" * 10**6, "line 2 must be 1000001 numbers, got '1'$"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    directory: Path, name: str, change: Callable[[str], str], message: str
) -> None:
    file = directory / name
    file.write_text(change(file.read_text()))
    with pytest.raises(InvalidInputError, match=message):
        make_problem("carousel", path=directory)


def test_devices_and_directories_are_refused(directory: Path) -> None:
    for replace in (Path.mkdir, lambda file: file.symlink_to("/dev/full")):
        (directory / ITEM_FILE).rename(directory / f"{len(list(directory.iterdir()))}.csv")
        replace(directory / ITEM_FILE)
        with pytest.raises(InvalidInputError, match=r"^carousel file must be a file, got "):
            make_problem("carousel", path=directory)


def test_byte_order_marks_and_certain_clicks_are_read(directory: Path) -> None:
    file = directory / USER_FILE
    file.write_text(file.read_text() + "4" + ",-1e6" * N_FEATURES + "\n", encoding="utf-8-sig")
    means = make_problem("carousel", path=directory).item_means[-1]
    assert set(means) == {0.0, 1.0}


def test_arguments_that_do_not_belong_to_a_family_are_refused(directory: Path) -> None:
    for arguments, message in (
        ({}, "^path must be the directory with the files of the carousel, got None"),
        ({"path": 3}, "^path must be the directory with the files of the carousel, got 3"),
        ({"path": directory, "seed": 1}, "^seed must be left out of a carousel, got 1"),
        ({"path": directory, "n_items": 3}, "^n_items must be left out of a carousel, got 3"),
        ({"path": directory, "n_positions": 16}, "^number of positions must be a whole number from 1 to 15"),
        (
            {"path": directory / "other"},
            r"^carousel file must be readable \(no such file or directory\), ",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            make_problem("carousel", **arguments)
    sizes = {"n_user_types": 1, "n_items": 3, "n_positions": 2}
    with pytest.raises(InvalidInputError, match=r"^path must be left out of the family synthetic"):
        make_problem("synthetic", **sizes, seed=1, path=directory)
    with pytest.raises(InvalidInputError, match=r"^seed must be a whole number of at least 0, got None"):
        make_problem("synthetic", **sizes)


def test_a_generated_long_tail_is_of_the_same_form() -> None:
    """Most items are seldom clicked, a few often, and tastes are alike."""
    problem = make_problem("long-tail", n_user_types=6, n_items=200, n_positions=12, seed=0)
    assert isinstance(problem, Problem)
    popularities = np.sort(problem.item_means.mean(axis=0))
    assert np.median(popularities) < 0.01
    assert popularities[-1] > 0.1
    logarithms = np.log(problem.item_means)
    assert np.corrcoef(logarithms)[np.triu_indices(6, 1)].min() > 0.9
