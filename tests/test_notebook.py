"""In a notebook, long work shows its progress in the cell, and removes it at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.fake_notebook import COMPILING, FakeNotebook
from helpers.slow_compilation import compile_formula

from banditrank import _notebook, kdd2012, make_problem, simulate, solve
from banditrank._notebook import is_notebook
from banditrank.logs.kdd2012 import extract, write_sample_log
from banditrank.simulation._progress import progress_bar

HOSTILE = "<script>alert(1)</script>"
LONG_SEARCH = make_problem("random", n_user_types=6, n_items=60, n_positions=8, seed=1)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNotebook]:
    """A notebook that shows progress from the first moment on."""
    monkeypatch.setattr(_notebook, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(_notebook, "UPDATE_SECONDS", 0.0)
    notebook = FakeNotebook(monkeypatch)
    yield notebook
    notebook.end_cell()


def test_a_notebook_has_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_notebook()
    FakeNotebook(monkeypatch, has_kernel=False)
    assert not is_notebook()
    FakeNotebook(monkeypatch)
    assert is_notebook()


def test_a_simulation_shows_a_bar_that_reaches_the_end(notebook: FakeNotebook) -> None:
    simulate("ucb-rank", kdd2012(), 3000, 4, workers=2)
    [texts] = notebook.outputs
    assert texts[-2:] == ["ucb-rank: 100%, 0 s left", ""]
    assert len(texts) > 4
    assert '<progress value="1.000" max="1"' in "".join(notebook.html)


def test_what_is_finished_at_once_shows_nothing(
    notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_notebook, "DELAY_SECONDS", 1e6)
    simulate("ucb-rank", kdd2012(), 100, 1)
    solve(kdd2012(), "nash", solver="branch-and-bound")
    assert not notebook.outputs


def test_progress_can_be_switched_off(notebook: FakeNotebook) -> None:
    simulate("ucb-rank", kdd2012(), 1000, 2, progress=False)
    assert not notebook.outputs


def test_a_failed_simulation_removes_its_bar(notebook: FakeNotebook) -> None:
    def fail() -> None:
        with progress_bar("policy", 10, shown=None) as advance:
            advance(1)
            raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        fail()
    assert notebook.outputs[0][-1] == ""


def test_titles_are_escaped(notebook: FakeNotebook) -> None:
    with progress_bar(HOSTILE, 10, shown=None) as advance:
        advance(1)
    assert "<script" not in "".join(notebook.html)
    assert notebook.outputs[0][0].startswith(HOSTILE)


def test_the_time_left_is_not_estimated_from_a_first_step(notebook: FakeNotebook) -> None:
    with progress_bar(HOSTILE, 1000, shown=None) as advance:
        advance(1)
        advance(499)
    first, second, _ = notebook.outputs[0]
    assert first == f"{HOSTILE}: 0%"
    assert second.startswith(f"{HOSTILE}: 50%, ")


def test_a_search_shows_its_bounds(notebook: FakeNotebook) -> None:
    solve(LONG_SEARCH, "maximin", target_gap=0.01)
    [texts] = notebook.outputs
    assert texts[0].startswith("branch-and-bound: ")
    assert "upper bound" in texts[0]
    assert texts[-1] == ""


def test_the_progress_of_a_search_goes_to_the_callers_callback(notebook: FakeNotebook) -> None:
    calls: list[int] = []

    def stop(progress: object) -> bool:
        calls.append(1)
        return progress is None

    solve(LONG_SEARCH, "maximin", on_progress=stop)
    assert calls
    assert not notebook.outputs


def test_reading_a_log_shows_a_bar(notebook: FakeNotebook, tmp_path: Path) -> None:
    log = write_sample_log(kdd2012(), tmp_path, n_rows=50_000, seed=1)
    extract(log.training, log.profiles)
    assert all(texts[0].startswith("reading the log: ") for texts in notebook.outputs)
    assert all(texts[-1] == "" for texts in notebook.outputs)
    assert len(notebook.outputs) == 1


def test_a_notice_lasts_while_formulas_are_compiled(notebook: FakeNotebook) -> None:
    compile_formula()
    compile_formula()
    [texts] = notebook.notices
    assert texts[0] == COMPILING
    assert texts[1].startswith("banditrank: compiled in ")
    assert texts[2].startswith(f"{COMPILING}, ")
    notebook.end_cell()
    assert notebook.notices[0][-1] == ""
    assert not notebook.callbacks
    compile_formula()
    assert notebook.notices[1][0] == COMPILING
    notebook.end_cell()


def test_there_is_no_notice_outside_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = FakeNotebook(monkeypatch, has_kernel=False)
    compile_formula()
    assert not terminal.texts
