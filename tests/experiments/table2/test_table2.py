"""Table 2: the printed values, and their comparison with measured ones."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from banditrank.experiments._table2.analysis import PRINTED, analyse
from banditrank.experiments._table2.sweep import ROUNDS, ROWS, RunningTimeJob

# Regret and seconds, as in the paper: at 3·10⁵, at 6·10⁵.
PAPER = {
    "greedy-sampled": ((512, 33), (581, 68)),
    "greedy-exact": ((387, 41), (461, 87)),
    "ucb-sampled": ((314, 75), (326, 162)),
    "ucb-exact": ((238, 82), (249, 188)),
}


def frames(
    seconds: float, *, spread: float = 0.5, runs: int = 4, slower: float = 2.0
) -> dict[str, pd.DataFrame]:
    """Return data with the medians of an independent implementation; exact rows take longer."""
    data = {}
    for row in ROWS:
        records = [
            (number, rounds, PRINTED[row, rounds].mean * factor)
            for rounds in ROUNDS
            for number, factor in enumerate(np.linspace(1 - spread, 1 + 2 * spread, 7))
        ]
        data[row] = pd.DataFrame(records, columns=["replication", "round", "regret"])
    times = [
        (row, run, rounds, time * rounds / ROUNDS[0] * (slower if row.endswith("exact") else 1), "abacus")
        for row in ROWS
        for rounds in ROUNDS
        for run, time in enumerate(seconds * (1 + 0.01 * np.arange(runs)))
    ]
    return {
        **data,
        "running-time": pd.DataFrame(times, columns=["row", "run", "rounds", "seconds", "machine"]),
    }


def test_the_printed_values_are_the_papers() -> None:
    for row, cells in PAPER.items():
        for rounds, cell in zip(ROUNDS, cells, strict=True):
            assert PRINTED[row, rounds][:2] == cell
    assert len(PRINTED) == 8
    assert ROUNDS == (300_000, 600_000)


def test_the_checks_follow_the_data() -> None:
    result = analyse(frames(0.01))
    inside, covered, costs_greedy, costs_ucb, saves_greedy, saves_ucb, faster = (
        check.holds for check in result.checks
    )
    assert (saves_greedy, saves_ucb, faster) == (True, True, True)
    assert (costs_greedy, costs_ucb) == (None, None)  # seven replications that differ much
    assert inside is False  # UCBRank's bands are narrow
    assert covered is True
    assert result.agreement == "partly"
    assert len(result.tables) == 2
    assert [row[1] for row in result.tables[0].rows] == ["512", "387", "314", "238"]


def test_what_sampling_costs_is_decided_by_regrets_that_differ_less() -> None:
    costs_greedy, costs_ucb = analyse(frames(0.01, spread=0.01)).checks[2:4]
    assert (costs_greedy.holds, costs_ucb.holds) == (False, True)  # as the independent means
    assert "at the 5% level" in costs_ucb.statement
    assert costs_ucb.evidence.startswith("median 266 against 220 after 600,000 rounds, p = 0.00")


@pytest.mark.parametrize(
    ("runs", "slower", "saves"), [(4, 2.0, True), (4, 0.5, False), (3, 2.0, None), (7, 1.005, None)]
)
def test_what_sampling_saves_is_decided_by_enough_runs(runs: int, slower: float, saves: bool | None) -> None:  # noqa: FBT001
    checks = analyse(frames(0.01, runs=runs, slower=slower)).checks[4:6]
    assert [check.holds for check in checks] == [saves, saves]
    assert all(check.evidence.endswith(", not decided") == (saves is None) for check in checks)


def test_bands_do_not_reach_below_0() -> None:
    assert PRINTED["greedy-exact", 300_000].band == (0, 722)
    assert PRINTED["ucb-exact", 300_000].band == (176, 240)
    result = analyse(frames(0.01))
    assert "2 of the bands begin at 0" in result.checks[0].evidence
    assert [row[6] for row in result.tables[0].rows] == [
        "107 to 423",
        "0 to 722",
        "213 to 267",
        "176 to 240",
    ]


def test_slow_runs_and_regrets_elsewhere_are_noticed() -> None:
    result = analyse(frames(1.0, spread=0.01))
    assert result.checks[-1].holds is False
    assert result.checks[-1].evidence.endswith("on one core of abacus")
    assert result.checks[0].holds is True
    assert result.checks[1].holds is False
    assert "greedy-rank-equal-utilitarian-sampling after 300,000 rounds" in result.checks[1].evidence
    assert result.findings.startswith("Of the paper's 8 regrets 0 lie")


def test_every_row_is_timed_for_either_number_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("banditrank.experiments._table2.sweep"), "ROUNDS", (200, 400))
    job = RunningTimeJob(name="running-time", rows=tuple(ROWS), runs=2, seed=0)
    made: list[int] = []
    data = job.run(workers=None, advance=made.append)
    assert job.is_timing
    assert sum(made) == job.n_steps == 2 * len(ROWS) * 600
    assert (data["seconds"] > 0).all()
    assert data.groupby(["row", "rounds"]).size().tolist() == [2] * 8
