from pathlib import Path

import numpy as np
import pytest

from banditrank import InvalidInputError, Problem, kdd2012, make_problem
from banditrank.logs.kdd2012._extraction import extract
from banditrank.logs.kdd2012._files import first_malformed_line, profile_file, training_file
from banditrank.logs.kdd2012._sample_log import write_sample_log


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path: Path) -> None:
    contents = []
    for seed in (1, 1, 2):
        log = write_sample_log(kdd2012(), tmp_path, n_rows=500, seed=seed)
        contents.append(log.training.read_bytes() + log.profiles.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_a_sample_is_well_formed_and_has_the_rows_asked_for(tmp_path: Path) -> None:
    log = write_sample_log(kdd2012(), tmp_path, n_rows=3000, seed=5, n_users=50)
    assert first_malformed_line(training_file(log.training)) is None
    assert first_malformed_line(profile_file(log.profiles)) is None
    assert log.training.read_bytes().count(b"\n") == 3000
    assert log.profiles.read_bytes().count(b"\n") == 50


def test_long_samples_are_written_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.logs.kdd2012._sample_log._ROWS_PER_CHUNK", 300)
    log = write_sample_log(kdd2012(), tmp_path, n_rows=1000, seed=5)
    assert log.training.read_bytes().count(b"\n") == 1000


def test_clicks_are_those_of_the_problem(tmp_path: Path) -> None:
    """No cell is 5 standard deviations off: fails once in 60,000 seeds, and not with this one."""
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=3, seed=6)
    log = write_sample_log(problem, tmp_path, n_rows=60_000, seed=3)
    counts = extract(log.training, log.profiles, n_ads=4, positions=(1, 2, 3)).counts
    rates = problem.item_means[:, :, None] * problem.position_preferences[:, None, :]
    spread = np.sqrt(counts.displays * rates * (1 - rates))
    assert (np.abs(counts.rewards - counts.displays * rates) < 5 * spread).all()


def test_ads_are_called_after_the_items_or_numbered(tmp_path: Path) -> None:
    rest = ([0.5, 0.5], [[1.0], [1.0]], [[0.5, 0.5]] * 2)
    for items, ads in ((["ad-20000001", "ad-3"], {20_000_001, 3}), (["first", "ad-7"], {1, 2})):
        log = write_sample_log(Problem(*rest, items=items), tmp_path, n_rows=2000, seed=1)
        assert set(extract(log.training, log.profiles, n_ads=2, positions=[1]).ads) == ads


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    large = make_problem("random", n_user_types=3, n_items=5, n_positions=4, seed=1)
    with pytest.raises(InvalidInputError, match=r"problem must have 2 user types, .*, got \(3, 4\)"):
        write_sample_log(large, tmp_path, n_rows=10, seed=0)
    with pytest.raises(InvalidInputError, match="n_rows must be a whole number of at least 1, got 0"):
        write_sample_log(kdd2012(), tmp_path, n_rows=0, seed=0)
    with pytest.raises(InvalidInputError, match="n_users must be a whole number of at least 1, got 0"):
        write_sample_log(kdd2012(), tmp_path, n_rows=10, seed=0, n_users=0)
    with pytest.raises(InvalidInputError, match="seed must be a whole number of at least 0, got -1"):
        write_sample_log(kdd2012(), tmp_path, n_rows=10, seed=-1)
    with pytest.raises(InvalidInputError, match="sample log must be writable"):
        write_sample_log(kdd2012(), tmp_path / "missing", n_rows=1, seed=0)
