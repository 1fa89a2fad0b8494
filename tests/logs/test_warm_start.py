import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.simulated_logs import make_log_problem, simulate_visits
from typer.testing import CliRunner

from banditrank import InvalidInputError, Ranker, open_store, warm_start
from banditrank.counts._click_cube import ClickCube
from banditrank.engine._import_export import export_surface, import_surface, read_document

PROBLEM = make_log_problem(7, n_items=6, n_positions=3)


@pytest.fixture(scope="module")
def cube() -> ClickCube:
    rng = np.random.default_rng(7)
    return simulate_visits(PROBLEM, "uniform", 40_000, "position-based", rng).cube()


def test_a_surface_ranks_as_learned_on_its_first_request_and_continues_to_learn(cube: ClickCube) -> None:
    start = warm_start(cube, "home")
    assert start.counts.rounds == 40_000
    assert start.kept == pytest.approx([1, 1])
    store = open_store("memory:")
    start.create_in(store)
    with Ranker(start.surface, store) as ranker:
        for i, name in enumerate(start.surface.user_types):
            shown = ranker.rank(name)
            best = f"item-{PROBLEM.item_means[i].argmax() + 1}"
            assert best in shown.items
            ranker.feedback(shown.id, clicked=best, final=True)
        assert ranker.counts().rounds == 40_002


def test_the_click_rates_of_all_cells_stay(cube: ClickCube) -> None:
    start = warm_start(cube, "home", weight=0.2, max_visits=4000)
    assert start.counts.rounds == 4000
    counts, log = start.counts, cube.counts()
    assert (counts.rewards / counts.displays) == pytest.approx(log.rewards / log.displays)
    assert counts.displays.sum(axis=1) == pytest.approx(np.repeat(counts.arrivals[:, None], 3, axis=1))
    assert counts.arrivals / 4000 == pytest.approx(log.arrivals / 40_000, abs=1e-3)


def test_counts_survive_a_store_and_a_file(cube: ClickCube, tmp_path: Path) -> None:
    start = warm_start(cube, "home", max_visits=1000, treatment="equal")
    start.save(tmp_path / "home.json")
    store = open_store("memory:")
    import_surface(store, read_document(tmp_path / "home.json"), name="copy")
    exported = export_surface(store, "copy")
    assert exported["surface"]["treatment"] == "equal"
    assert exported["counts"] == [
        {**cell, "rewards": pytest.approx(cell["rewards"], abs=2**-20)} for cell in start.to_dict()["counts"]
    ]


def test_the_command_line_imports_the_file(cube: ClickCube, tmp_path: Path) -> None:
    from banditrank._cli.main import application

    warm_start(cube, "home", max_visits=1000).save(tmp_path / "home.json")
    store = f"sqlite:{tmp_path / 'store.db'}"
    result = CliRunner().invoke(
        application, ["state", "import", str(tmp_path / "home.json"), "--store", store]
    )
    assert result.exit_code == 0, result.output


def test_old_periods_count_less() -> None:
    items = np.tile([[0, 1], [1, 0]], (400, 1))
    old, new = np.arange(800) < 400, np.arange(800) >= 400
    clicks = np.stack([(items[:, 0] == 0) & old | (items[:, 0] == 1) & new, np.zeros(800)], axis=1)
    cube = ClickCube.from_visits(
        np.zeros(800), items, clicks, period=new.astype(int), periods=["2026-01", "2026-02"]
    )
    start = warm_start(cube, "home", half_life=1.0)
    assert start.period_weights.tolist() == [0.5, 1.0]
    assert start.counts.rounds == 600
    rates = start.counts.rewards[0, :, 0] / start.counts.displays[0, :, 0]
    assert rates == pytest.approx([1 / 3, 2 / 3])


def test_positions_with_fewer_displays_set_the_weight_of_all_unless_rankings_may_be_short() -> None:
    items = np.concatenate([np.tile([[0, 1], [1, 0]], (100, 1)), np.tile([[0, -1], [1, -1]], (100, 1))])
    cube = ClickCube.from_visits(np.zeros(400), items, np.arange(800).reshape(400, 2) % 8 == 0)
    assert warm_start(cube, "home").counts.rounds == 200
    assert warm_start(cube, "home").kept == pytest.approx([2 / 3])
    short = warm_start(cube, "home", allow_short_rankings=True)
    assert short.counts.rounds == 400
    assert short.kept == pytest.approx([1])
    import_surface(open_store("memory:"), short.to_dict())


def test_a_position_without_displays_is_refused() -> None:
    items = np.tile([[0, -1], [1, -1]], (10, 1))
    cube = ClickCube.from_visits(np.zeros(20), items, np.arange(40).reshape(20, 2) % 8 == 0)
    with pytest.raises(InvalidInputError, match="counts of type-1 must have displays at each position"):
        warm_start(cube, "home")


def test_a_type_without_displays_starts_unlearned(cube: ClickCube) -> None:
    with_new = replace(cube, type_values=(*cube.type_values, ("new",)))
    start = warm_start(with_new, "home")
    assert start.kept[2] == 0
    assert start.counts.arrivals[2] == 0
    assert "0% of new" in start.summary()
    json.dumps(start.to_dict(), allow_nan=False)


def test_user_types_with_a_fixed_layout_are_named() -> None:
    rng = np.random.default_rng(0)
    types, items = np.arange(2000) % 2, np.argsort(rng.random((2000, 3)), axis=1)
    items[types == 1] = [0, 1, 2]
    log = ClickCube.from_visits(types, items, rng.random((2000, 3)) < 0.3)
    (warning,) = warm_start(log, "home").warnings
    assert warning.startswith("no item of type-2 was shown at two positions (a fixed layout)")
    assert not warm_start(log.select(user_types=[0]), "home").warnings


def test_logs_without_click_rates_are_rejected() -> None:
    items = np.argsort(np.random.default_rng(0).random((300, 3)), axis=1)
    for rate in (0.0, 1.0):
        with pytest.raises(InvalidInputError, match="to start a surface"):
            warm_start(ClickCube.from_visits(np.zeros(300), items, np.full((300, 3), rate)), "home")
