"""``banditrank solve --lottery``."""

import json
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run

from banditrank import KeptShare, LeastExposure, Problem, make_problem, solve, solve_lottery


@pytest.fixture
def conflict(tmp_path: Path) -> Path:
    path = tmp_path / "conflict.toml"
    make_problem("conflict", n_user_types=3, n_items=6, n_positions=2, seed=1).save(path)
    return path


def test_a_lottery_is_printed_with_its_certificate_and_prices(
    capsys: pytest.CaptureFixture, conflict: Path
) -> None:
    arguments = ("--utility", "nash", "--lottery", "--least-exposure", "0.1", "--keep-share", "type-2=0.5")
    status, output, complaint = run(capsys, "solve", str(conflict), *arguments)
    problem = Problem.load(conflict)
    guarantees = [LeastExposure(0.1), KeptShare(0.5, user_types=["type-2"])]
    lottery = solve_lottery(problem, "nash", guarantees=guarantees)
    assert (status, complaint) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for odds, ranking in zip(lottery.probabilities, lottery.rankings, strict=True):
        assert f"{odds:.2%} {', '.join(problem.items[item] for item in ranking)}" in lines
    assert f"value {lottery.value:.6g}" in lines
    assert f"without guarantees {lottery.unguaranteed_value:.6g}" in lines
    for guarantee in lottery.guarantees:
        line = f"{guarantee.name} {guarantee.level:.4f} {guarantee.price:.6g}"
        assert (line in lines) == guarantee.is_binding
    assert sum(guarantee.is_binding for guarantee in lottery.guarantees) > 0
    free = [guarantee.name for guarantee in lottery.guarantees if not guarantee.is_binding]
    assert f"kept and not binding: {', '.join(free)}" in lines
    *_, last = (line for line in lines if "price:" in line or "kept" in line)
    assert last.startswith("kept"), "no guarantee may be left out"


def test_many_guarantees_that_are_not_binding_are_counted(
    capsys: pytest.CaptureFixture, conflict: Path
) -> None:
    arguments = ("--utility", "nash", "--lottery", "--least-exposure", "0.000001", "--keep-share", "0.01")
    _, output, _ = run(capsys, "solve", str(conflict), *arguments)
    kept = [line for line in output.splitlines() if line.startswith("kept and not binding: ")]
    assert len(kept) == ("and" in kept[0]) == 1
    assert "not kept" not in output


def test_a_lottery_is_written_as_json_and_plotted(
    capsys: pytest.CaptureFixture, conflict: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "lottery.svg"
    arguments = ("--utility", "maximin", "--lottery", "--json", "-", "--plot", str(plot))
    status, output, complaint = run(capsys, "solve", str(conflict), *arguments)
    assert (status, complaint) == (0, "")
    document = json.loads(output)
    problem = Problem.load(conflict)
    assert sum(entry["probability"] for entry in document["rankings"]) == pytest.approx(1.0)
    assert document["is_certified"]
    assert document["value"] == pytest.approx(min(document["user_type_values"]))
    assert document["fixed"]["value"] == solve(problem, "maximin").value <= document["value"]
    assert sum(document["exposures"].values()) == pytest.approx(1.0)
    assert document["guarantees"] == []
    text = plot.read_text()
    for word in ("lottery", "fixed ranking", "personalized", "exposure of items", "maximin"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--least-exposure", "0.1"), "--least-exposure must be given together with --lottery"),
        (("--plot", "lottery.png"), "--plot must be given together with --lottery"),
        (("--lottery", "--least-exposure", "x"), "--least-exposure must be a number, or a name and a number"),
        (("--lottery", "--least-exposure", "item-9=0.1"), "item must be one of item-1"),
        (
            ("--lottery", "--least-exposure", "0.5"),
            "guarantees must have least exposures that sum to at most 1",
        ),
        (("--lottery", "--keep-share", "type-1=1.5"), "kept share must be a number from 0 to 1"),
        (("--lottery", "--solver", "enumeration"), "--solver must be auto with --lottery"),
        (("--lottery", "--utility", "sigmoid:20:0.3"), "a lottery needs a concave utility or maximin"),
        (("--lottery", "--keep-share", "1"), "guarantees cannot all be kept: the largest common factor is"),
    ],
)
def test_invalid_options_are_rejected_in_one_line(
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    conflict: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(conflict.parent)
    check_refusal(capsys, ["solve", str(conflict), *arguments], message)
