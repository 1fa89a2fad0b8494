import numpy as np
import pytest

from banditrank import FeatureStatistics, InvalidInputError


def random_statistics(seed: int) -> FeatureStatistics:
    rng = np.random.default_rng(seed)
    arrays = {
        "moments": rng.random((2, 3, 4, 4)),
        "reward_moments": rng.random((2, 3, 4)),
        "reward_sums": rng.random((2, 3)),
        "squared_norms": rng.random(2),
        "arrivals": np.array([5.0, 6.0]),
    }
    return FeatureStatistics.from_arrays(arrays)


def same(first: FeatureStatistics, second: FeatureStatistics) -> bool:
    pairs = zip(first.to_arrays().values(), second.to_arrays().values(), strict=True)
    return all(np.allclose(one, other) for one, other in pairs)


def test_statistics_add_up() -> None:
    a, b, c = map(random_statistics, range(3))
    assert same(a + b, b + a)
    assert same((a + b) + c, a + (b + c))
    assert same(a + FeatureStatistics.empty(n_features=4, n_positions=3, n_user_types=2), a)
    assert (a + b).rounds == 22


def test_arrays_are_copied() -> None:
    statistics = random_statistics(0)
    arrays = statistics.to_arrays()
    restored = FeatureStatistics.from_arrays(arrays)
    arrays["moments"][:] = 0.0
    statistics.copy().moments[:] = 0.0
    assert same(restored, statistics)
    assert repr(statistics) == "<FeatureStatistics: 11 rounds, 4 features, 3 positions>"


def test_bad_statistics_are_refused() -> None:
    statistics = random_statistics(0)
    arrays = statistics.to_arrays()
    with pytest.raises(InvalidInputError, match="reward_sums must be given"):
        FeatureStatistics.from_arrays({key: arrays[key] for key in arrays if key != "reward_sums"})
    with pytest.raises(InvalidInputError, match=r"moments must have shape \(N, K, D, D\)"):
        FeatureStatistics.from_arrays({**arrays, "moments": np.zeros((2, 3, 4))})
    with pytest.raises(InvalidInputError, match=r"arrivals must have shape \(2,\), got \(3,\)"):
        FeatureStatistics.from_arrays({**arrays, "arrivals": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="moments must be an array of float64"):
        FeatureStatistics([], *list(arrays.values())[1:])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="must have shape"):
        statistics + FeatureStatistics.empty(n_features=4, n_positions=3)
    with pytest.raises(TypeError):
        statistics + 1  # type: ignore[operator]
    with pytest.raises(InvalidInputError, match="n_positions must be a whole number of at least 1, got 0"):
        FeatureStatistics.empty(n_features=4, n_positions=0)
