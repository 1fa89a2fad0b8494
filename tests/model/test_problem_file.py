from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import InvalidInputError, Problem, kdd2012, load_problem, make_problem
from banditrank.model._generators import FAMILIES
from banditrank.model._problem_file import problem_to_toml


@given(
    family=st.sampled_from(sorted(FAMILIES)),
    n=st.integers(1, 4),
    m=st.integers(1, 6),
    data=st.data(),
    seed=st.integers(0, 2**40),
)
def test_a_saved_problem_loads_as_an_equal_one(
    tmp_path_factory: pytest.TempPathFactory, family: str, n: int, m: int, data: st.DataObject, seed: int
) -> None:
    k = data.draw(st.integers(1, m))
    problem = make_problem(family, n_user_types=n, n_items=m, n_positions=k, seed=seed)
    path = tmp_path_factory.mktemp("problem") / "problem.toml"
    problem.save(path)
    assert Problem.load(path) == problem


def test_the_click_scale_is_in_the_file_unless_it_is_1(tmp_path: Path) -> None:
    """Finding 6: a problem file has the number by which its click rates are clicks per visit."""
    problem = Problem([1.0], [[1.0]], [[0.5]], click_scale=2.5)
    problem.save(tmp_path / "scaled.toml")
    assert Problem.load(tmp_path / "scaled.toml") == problem
    assert "click_scale = 2.5" in (tmp_path / "scaled.toml").read_text()
    assert "click_scale" not in Problem([1.0], [[1.0]], [[0.5]]).to_dict()
    for bad in (0, -1, float("inf"), "2"):
        with pytest.raises(InvalidInputError, match="click_scale must be"):
            Problem([1.0], [[1.0]], [[0.5]], click_scale=bad)  # type: ignore[arg-type]


def test_default_names_and_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.toml"
    path.write_text("arrival_rates = [1]\nposition_preferences = [[1]]\nitem_means = [[0.5, 0.25]]\n")
    problem = load_problem(str(path))
    assert problem.name == "shop"
    assert problem.items == ("item-1", "item-2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival_rates = [", "must be TOML"),
        ("arrival_rates = [1]", "position_preferences must be given, got None"),
        (problem_to_toml(kdd2012()) + "colour = 1", "key must be one of .*, got 'colour'"),
        (problem_to_toml(kdd2012()).replace("arrival_rates", "arival_rates"), "did you mean arrival_rates"),
        (
            problem_to_toml(kdd2012()).replace("0.808", "8.08"),
            r"item_means\[0\]\[3\] must lie in \[0, 1\], got 8.08",
        ),
        (problem_to_toml(kdd2012()).replace("0.808", "nan"), "got nan"),
        (problem_to_toml(kdd2012()).replace("0.52", "0.50"), "arrival_rates must sum to 1, got 0.98"),
        (problem_to_toml(kdd2012()).replace('"male"', '""'), r"user_types\[0\] must be"),
    ],
)
def test_an_invalid_file_is_rejected_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_problem(str(path))
    assert "\n" not in str(caught.value)


def test_binary_and_missing_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.toml", "missing.toml", "."):
        with pytest.raises(InvalidInputError, match="problem file must be"):
            load_problem(str(tmp_path / name))


def test_an_unknown_name_is_rejected() -> None:
    message = "^problem must be kdd2012, carousel:DIRECTORY or the path of a TOML file, got 'kdd2021'$"
    with pytest.raises(InvalidInputError, match=message):
        load_problem("kdd2021")
    with pytest.raises(InvalidInputError, match="problem must be"):
        load_problem(" ")


def test_an_unwritable_path_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="must be writable"):
        kdd2012().save(tmp_path / "missing" / "problem.toml")
