import math
import tracemalloc
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from banditrank import (
    BernoulliRewards,
    BetaRewards,
    Counts,
    Forgetful,
    GreedyRank,
    InvalidInputError,
    Policy,
    Problem,
    SimulationResult,
    Smoothing,
    ThompsonRank,
    UCBRank,
    UniformRandom,
    Utility,
    kdd2012,
    plot_regret,
    simulate,
)
from banditrank.model._click_models import as_click_model
from banditrank.policies.baselines._top_rank import TopRank
from banditrank.policies.schedules import Schedule
from banditrank.simulation import _run
from banditrank.simulation._backends.local import LocalBackend
from banditrank.simulation._progress import Advance
from banditrank.simulation._regret import equal_regret, personalized_regret
from banditrank.simulation._replication import Experiment, Replication
from banditrank.simulation._simulate import check_simulation, default_checkpoints
from banditrank.solvers._solve import SolverName


@pytest.mark.parametrize(
    "policy", [GreedyRank(coefficient=0.25), UCBRank(coefficient=0.5, treatment="equal", utility="nash")]
)
def test_the_result_does_not_depend_on_the_workers(policy: GreedyRank) -> None:
    one, many = (simulate(policy, kdd2012(), 5000, 7, 3, workers=workers) for workers in (1, 5))
    assert np.array_equal(one.regret, many.regret)
    assert np.array_equal(one.initial_rounds, many.initial_rounds)


def test_seeds_differ_and_replications_differ() -> None:
    first, second = (simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 4, seed) for seed in (1, 2))
    assert len({*first.final_regret, *second.final_regret}) == 8


def test_more_replications_begin_with_the_same_ones() -> None:
    few, more = (simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, count, 1) for count in (2, 5))
    assert np.array_equal(few.regret, more.regret[:2])


class Recording(Policy):
    """Shows rankings of its own choice and notes who came, by a function that its copies share."""

    def __init__(self, shift: int, came: list[int]) -> None:
        self.shift, self.note = shift, came.append

    def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN201, ARG002
        self.note(user_type)
        return (np.arange(counts.n_positions) + self.shift) % counts.n_items


@pytest.mark.parametrize("rewards", [None, BetaRewards(0.5)])
def test_the_same_users_come_to_policies_that_are_compared(rewards: BetaRewards | None) -> None:
    came: dict[int, list[int]] = {0: [], 2: []}
    for shift, users in came.items():
        simulate(Recording(shift, users), kdd2012(), 500, 1, 1, rewards=rewards)
    assert came[0] == came[2]
    assert len(came[0]) == 500


def test_an_initial_phase_that_does_not_end_lasts_to_the_horizon() -> None:
    never = Problem([1.0], [[0.5, 0.5]], [[0.5, 0.0, 0.5]])
    assert simulate(UCBRank(coefficient=0.25), never, 500, 2, 0).initial_rounds.tolist() == [500, 500]
    assert simulate(UniformRandom(), never, 500, 2, 0).initial_rounds.tolist() == [0, 0]


def test_memory_does_not_grow_with_the_horizon() -> None:
    peaks = []
    for horizon in (200_000, 3_000_000):
        tracemalloc.start()
        simulate(UCBRank(coefficient=0.25), kdd2012(), horizon, 1, 0, workers=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 10_000_000  # 3,000,000 rounds of anything would be more


def test_statistics_of_a_result() -> None:
    result = simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 9, 5, checkpoints=[1000, 2000])
    assert result.checkpoints.tolist() == [1000, 2000, 3000]
    assert result.regret.shape == (9, 3)
    assert result.mean == pytest.approx(result.regret.mean(axis=0))
    assert result.median == pytest.approx(np.median(result.regret, axis=0))
    assert result.std == pytest.approx(result.regret.std(axis=0, ddof=1))
    assert (np.diff(result.regret, axis=1) >= 0).all()
    assert ((result.optimal_rate >= 0) & (result.optimal_rate <= 1)).all()
    assert result.rounds_per_second > 0
    assert simulate(UCBRank(coefficient=0.25), kdd2012(), 100, 1, 5).std.max() == 0


def test_a_frame_has_a_row_for_each_replication_and_checkpoint() -> None:
    result = simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 3, 5, checkpoints=[1000])
    frame = result.to_frame()
    curves = ["replication", "round", "regret", "optimal_rate"]
    assert list(frame.columns) == ["policy", "problem", "seed", *curves]
    assert frame.query("replication == 2 and round == 3000")["regret"].item() == result.final_regret[2]


def test_a_saved_result_is_read_back(tmp_path: Path) -> None:
    result = simulate(GreedyRank(coefficient=0.25, treatment="equal", utility="nash"), kdd2012(), 3000, 3, 5)
    result.save(tmp_path / "run")
    back = SimulationResult.load(tmp_path / "run")
    for field in SimulationResult.__slots__:
        assert np.array_equal(getattr(back, field), getattr(result, field)), field
    assert back.label == "greedy-rank-equal-nash-0.25"
    metadata = parquet.read_schema(tmp_path / "run" / "curves.parquet").metadata
    assert metadata[b"banditrank.seed"] == str(result.seed).encode()
    assert metadata[b"banditrank.version"] == result.version.encode()


class Noting(LocalBackend):
    """Notes what it is asked for, and is interrupted after some of it if wanted."""

    def __init__(self, workers: int | None = None, interrupted_after: int | None = None) -> None:
        super().__init__(workers)
        self.interrupted_after = interrupted_after
        self.asked: list[int] = []

    def run(
        self, experiment: Experiment, numbers: Sequence[int], advance: Advance
    ) -> Generator[Replication, None, None]:
        self.asked.extend(numbers)
        if self.interrupted_after == 0:
            raise KeyboardInterrupt
        for finished, replication in enumerate(super().run(experiment, numbers, advance), start=1):
            yield replication
            if finished == self.interrupted_after:
                raise KeyboardInterrupt


def test_finished_replications_are_not_run_again(tmp_path: Path) -> None:
    backend = Noting()
    for wanted in (3, 6, 6, 2):
        result = simulate(
            UCBRank(coefficient=0.25), kdd2012(), 3000, wanted, 5, save_to=tmp_path, backend=backend
        )
    assert backend.asked == [0, 1, 2, 3, 4, 5]
    assert result.replications.tolist() == [0, 1]
    assert len(SimulationResult.load(tmp_path).replications) == 6, "asking for fewer must not lose any"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": 6}, "seed"),
        ({"horizon": 200}, "horizon"),
        ({"policy": UCBRank(coefficient=0.5)}, "policy"),
        ({"policy": UCBRank(schedule=lambda t: 1.0 + t)}, "policy"),
    ],
)
def test_another_simulation_does_not_overwrite_a_saved_one(tmp_path: Path, change: dict, field: str) -> None:
    settings = {
        "policy": UCBRank(coefficient=0.25),
        "problem": kdd2012(),
        "horizon": 100,
        "replications": 2,
        "seed": 5,
    }
    simulate(**settings, save_to=tmp_path)
    before = (tmp_path / "summary.json").read_text()
    with pytest.raises(InvalidInputError, match=f"whose {field} differs"):
        simulate(**{**settings, **change}, save_to=tmp_path)
    assert (tmp_path / "summary.json").read_text() == before


def test_functions_of_the_same_name_are_distinguished(tmp_path: Path) -> None:
    first, second = UCBRank(schedule=lambda _: 1.0), UCBRank(schedule=lambda _: 2.0)
    simulate(first, kdd2012(), 100, 2, 5, save_to=tmp_path)
    with pytest.raises(InvalidInputError, match="whose fingerprint differs"):
        simulate(second, kdd2012(), 100, 2, 5, save_to=tmp_path)
    for power in (1.0, 2.0):
        utility = Utility.from_function(lambda u, power=power: u**power, shape="non-concave")
        policy = UCBRank(coefficient=0.5, treatment="equal", utility=utility)
        if power == 1.0:
            simulate(policy, kdd2012(), 100, 2, 5, save_to=tmp_path / "utility")
        else:
            with pytest.raises(InvalidInputError, match="whose fingerprint differs"):
                simulate(policy, kdd2012(), 100, 2, 5, save_to=tmp_path / "utility")


@pytest.mark.parametrize("solver", ["enumeration", "spatial"])
def test_a_utility_that_fails_ends_the_run_within_a_few_rounds(
    solver: SolverName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function is called once more than it succeeds, and no round after the chunk of the error runs."""
    failures, chunks = [], []
    run_rounds = _run._CompiledRun.run_rounds

    def failing(value: float) -> float:
        if chunks and chunks[-1] > 0:
            failures.append(value)
            raise ZeroDivisionError("at once")
        return value

    def record(run: _run._CompiledRun, rounds: NDArray[np.int64]) -> None:
        chunks.append(len(rounds))
        run_rounds(run, rounds)

    monkeypatch.setattr(_run._CompiledRun, "run_rounds", record)
    utility = Utility.from_function(failing, shape="non-concave", lipschitz=1.0)
    policy = ThompsonRank(treatment="equal", utility=utility, solver=solver)
    message = r"^utility function must return a number \(ZeroDivisionError: at once\), got 'custom'$"
    with pytest.raises(InvalidInputError, match=message):
        simulate(policy, kdd2012(), 100_000, 1, 0, workers=1)
    assert len(failures) == 1
    assert chunks == [0, _run.CALLBACK_CHUNK_ROUNDS]


def test_a_utility_that_fails_is_reported_by_rank() -> None:
    failures = []

    def failing(value: float) -> float:
        if failures:
            raise ZeroDivisionError("at once")
        return value

    utility = Utility.from_function(failing, shape="non-concave")
    policy = ThompsonRank(treatment="equal", utility=utility, solver="enumeration")
    failures.append("from now on")
    with pytest.raises(InvalidInputError, match="ZeroDivisionError: at once"):
        policy.rank(Counts.empty(n_user_types=1, n_items=3, n_positions=2), 0, rng=np.random.default_rng(0))


def test_a_utility_that_fails_during_a_run_is_reported() -> None:
    limit = {"at": 1.2}

    def failing(value: float) -> float:
        if value > limit["at"]:
            raise ZeroDivisionError("beyond")
        return value

    utility = Utility.from_function(failing, shape="non-concave")
    with pytest.raises(InvalidInputError, match=r"must return a number .*ZeroDivisionError: beyond"):
        simulate(
            UCBRank(coefficient=0.5, treatment="equal", utility=utility),
            kdd2012(),
            3000,
            1,
            5,
            rewards=BetaRewards(4.0, 3.0),
        )


def test_a_damaged_result_is_reported(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(InvalidInputError, match="saved result must be a directory written by save"):
        simulate(UCBRank(coefficient=0.25), kdd2012(), 100, 2, 5, save_to=tmp_path)


def test_an_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    interrupted = Noting(workers=1, interrupted_after=2)
    part = simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 50, 5, save_to=tmp_path, backend=interrupted)
    assert not part.is_complete
    assert part.replications.tolist() == [0, 1]
    whole = simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 50, 5, save_to=tmp_path)
    assert whole.is_complete
    assert np.array_equal(whole.regret, simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 50, 5).regret)


def test_an_interruption_before_anything_was_finished_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        simulate(UCBRank(coefficient=0.25), kdd2012(), 3000, 5, 5, backend=Noting(interrupted_after=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number from 1 to 1,000,000,000,000, got 0"),
        ({"horizon": 10**30}, "horizon must be a whole number from 1 to 1,000,000,000,000, got 1000"),
        ({"horizon": 1.5}, "horizon must be a whole number from 1 to 1,000,000,000,000, got 1.5"),
        ({"replications": 0}, "replications must be a whole number from 1 to .*, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"workers": 0}, "workers must be a whole number from 1 to 1,024, got 0"),
        ({"backend": "spark"}, "backend must be one of joblib, ray, got 'spark'"),
        (
            {"address": "10.0.0.1:6379"},
            "address must be left out unless the backend is ray, got '10.0.0.1:6379'",
        ),
        (
            {"backend": LocalBackend(), "workers": 2},
            "workers must be left out if backend is a Backend, got 2",
        ),
        ({"checkpoints": [0]}, "checkpoints must be rounds from 1 to 100"),
        ({"checkpoints": [101]}, "checkpoints must be rounds from 1 to 100"),
    ],
)
def test_bad_settings_are_refused(change: dict, message: str) -> None:
    settings = {"horizon": 100, "replications": 2, "seed": 5}
    with pytest.raises(InvalidInputError, match=message):
        simulate(UCBRank(coefficient=0.25), kdd2012(), **{**settings, **change})


def test_an_infinite_regret_is_refused_beforehand() -> None:
    worthless = Problem([0.5, 0.5], [[0.5, 0.5]] * 2, [[0.5, 0.2, 0.9], [0.0, 0.0, 0.4]])
    with pytest.raises(
        InvalidInputError,
        match=r"utility nash must be finite for every ranking.*got .-inf for user type type-2",
    ):
        simulate(UCBRank(coefficient=0.5, treatment="equal", utility="nash"), worthless, 100, 2, 5)
    simulate(UCBRank(coefficient=0.5, treatment="equal"), worthless, 100, 2, 5)


def test_an_infinite_regret_of_several_clicks_is_refused_beforehand() -> None:
    # Finite up to one click per round, as single looks have; position-based rounds may have two.
    bounded = Utility.from_function(
        lambda u: u if u <= 1.0 else math.inf, shape="non-concave", name="bounded"
    )
    policy = UCBRank(coefficient=0.5, treatment="equal", utility=bounded)
    problem = Problem([1.0], [[0.5, 0.5]], [[0.9, 0.5, 0.4]])
    check_simulation(policy, problem, BernoulliRewards(), as_click_model("single-look"))
    with pytest.raises(InvalidInputError, match=r"must be finite for every ranking.*at value 2"):
        check_simulation(policy, problem, BernoulliRewards(), as_click_model("position-based"))


@pytest.mark.parametrize(
    ("policy", "problem", "message"),
    [
        ("ucb-rang", kdd2012(), r"policy must be one of .*\(did you mean ucb-rank\?\), got 'ucb-rang'"),
        (3, kdd2012(), "policy must be an instance of Policy, or the name of one, got 3"),
        (UCBRank, kdd2012(), "policy must be an instance of Policy"),
        (UCBRank(coefficient=0.5), "kdd2012", "problem must be a Problem .*, got 'kdd2012'"),
        (
            UCBRank(schedule=lambda _: "x"),
            kdd2012(),
            "schedule custom must return a number for each round .*ValueError",
        ),
        (
            UCBRank(schedule=Schedule("odd", lambda _: [1.0, 2.0])),
            kdd2012(),
            "schedule odd must return a number",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(policy: object, problem: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        simulate(policy, problem, 100, 2, 5)


class Misled(Recording):
    utility = "nash"


def test_a_utility_that_is_only_a_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"policy's utility must be a Utility .*, got 'nash'"):
        simulate(Misled(0, []), kdd2012(), 100, 2, 5)


def test_progress_is_shown_on_standard_error_only_when_wanted(capsys: pytest.CaptureFixture) -> None:
    simulate(UCBRank(coefficient=0.25), kdd2012(), 1000, 2, 5, progress=True)
    shown = capsys.readouterr()
    assert "ucb-rank" in shown.err
    assert not shown.out
    simulate(UCBRank(coefficient=0.25), kdd2012(), 1000, 2, 5)
    assert not capsys.readouterr().err


def test_a_result_tells_what_it_is() -> None:
    result = simulate(UCBRank(coefficient=0.25), kdd2012(), 300, 2, 5)
    text = repr(result)
    assert text.startswith("<SimulationResult ucb-rank-personalized-0.25 on kdd2012: 2 of 2 replications")
    assert result.plot().axes[0].get_ylabel() == "regret"
    with pytest.raises(InvalidInputError, match="results must hold at least one"):
        plot_regret([])


def test_a_legend_tells_policies_apart() -> None:
    policies = [
        *(
            UCBRank(coefficient=0.25),
            Forgetful(UCBRank(coefficient=0.25), "window:100"),
            UCBRank(coefficient=0.25, smoothing=Smoothing()),
        ),
        *(TopRank(horizon=100), TopRank(horizon=100, order=[[1, 0]])),
    ]
    results = [simulate(policy, kdd2012(), 10, 1, 5) for policy in policies]
    shown = [text.get_text() for text in plot_regret(results).axes[0].get_legend().get_texts()]
    assert shown == [result.label.replace("-personalized", "") for result in results]
    assert len(set(shown)) == len(policies)


def test_default_checkpoints_are_dense_at_the_start() -> None:
    for horizon in (1, 2, 10, 300_000):
        rounds = default_checkpoints(horizon)
        assert rounds[0] == 1
        assert rounds[-1] == horizon
        assert (np.diff(rounds) > 0).all()
    assert (default_checkpoints(300_000) < 1000).sum() > 20


def test_regrets_of_shown_rankings() -> None:
    problem = kdd2012()
    rankings = [np.array(ranking) for ranking in ([2, 3], [0, 1], [4, 3])]
    values = np.array(
        [(problem.position_preferences * problem.item_means[:, r]).sum(axis=1) for r in rankings]
    )
    best = [0.323 * 0.604 + 0.677 * 0.808, 0.416 * 0.49 + 0.584 * 0.491]
    expected = np.cumsum([best[0] - values[0, 0], best[1] - values[1, 1], best[1] - values[2, 1]])
    assert personalized_regret(problem, [0, 1, 1], rankings) == pytest.approx(expected)
    total = values @ problem.arrival_rates
    assert equal_regret(problem, rankings) == pytest.approx(np.cumsum(total[0] - total))
