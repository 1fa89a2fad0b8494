import numpy as np
import pytest
from helpers.simulated_logs import SimulatedVisits, browsing_examination, make_log_problem, simulate_visits
from helpers.value_study import true_values
from scipy import stats

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._distributions import chi_square_quantile
from banditrank.evaluation import evaluate, gamma_interval
from banditrank.evaluation._cells import effective_visits, unsupported_cells, value_by_cells
from banditrank.evaluation._direct import value_by_model
from banditrank.evaluation._inverse_propensity import clipped_share, value_by_ips, value_by_snips
from banditrank.evaluation._learned_choice import values_of_cells
from banditrank.evaluation._log_cells import LogCells, log_cells
from banditrank.evaluation._log_model import EvaluationModel, fit_log_model, fit_without_group
from banditrank.evaluation._targets import Names, fixed_target, resolve_mixtures
from banditrank.evaluation._type_values import TypeValues

NAMES = Names(("type-1",), tuple(f"item-{j}" for j in range(1, 7)), 3)
RANKING, MIXTURE = [0, 1, 2], [(0.25, [0, 1, 2]), (0.75, [3, 2, 5])]


@pytest.fixture(scope="module")
def visits() -> SimulatedVisits:
    problem = make_log_problem(5, n_user_types=1, n_items=6, n_positions=3)
    return simulate_visits(problem, "explored", 3000, "position-based", np.random.default_rng(5))


def shares_of(value: list, log: LogCells) -> np.ndarray:
    return fixed_target(value, NAMES).resolve(log, "position-based").shares


@pytest.mark.parametrize("freedom", [0.03, 0.3, 1, 2, 7.5, 100, 3000, 50_000])
def test_chi_square_quantiles_agree_with_scipy(freedom: float) -> None:
    for probability in (1e-6, 0.025, 0.5, 0.975, 0.995):
        expected = stats.chi2.ppf(probability, freedom)
        assert chi_square_quantile(probability, freedom) == pytest.approx(expected, rel=1e-6)


def test_intervals_of_few_degrees_of_freedom_start_at_0() -> None:
    # Values of sparse user types have so few that quantiles are below the smallest number.
    assert chi_square_quantile(0.025, 1e-6) == 0.0
    low, high = gamma_interval(1e-6, 1.0, 0.1, 0.95)
    assert low == 0.0
    assert 0 < high < 10


def test_gamma_interval_of_equal_weights_is_the_exact_poisson_interval() -> None:
    low, high = gamma_interval(0.07, 7 * 0.01**2, 0.01, 0.95)
    assert low == pytest.approx(0.01 * stats.chi2.ppf(0.025, 14) / 2)
    assert high == pytest.approx(0.01 * stats.chi2.ppf(0.975, 16) / 2)


def test_gamma_interval_without_clicks_starts_at_0_and_has_an_upper_end() -> None:
    low, high = gamma_interval(0.0, 0.0, 0.01, 0.95)
    assert low == 0
    assert high == pytest.approx(-0.01 * np.log(0.025))


# Figures of obp 0.5.7 on the log of `visits`: SlateIndependentIPS, SelfNormalizedSlateIndependentIPS, and
# InverseProbabilityWeighting(lambda_=8) at each position.
OBP = {
    "ranking": (0.32, 0.3277247394995922),
    "mixture": (0.4048999999999999, 0.4076232281074399),
    "clipped": 0.08533333333333333,
}


@pytest.mark.parametrize(("name", "value"), [("ranking", RANKING), ("mixture", MIXTURE)])
def test_inverse_propensity_values_are_those_of_obp(visits: SimulatedVisits, name: str, value: list) -> None:
    log = log_cells(visits.cube(has_propensities=True))
    shares = shares_of(value, log)
    ips, snips = OBP[name]
    assert value_by_ips(log, shares).values == pytest.approx([ips], abs=1e-9)
    assert value_by_snips(log, shares).values == pytest.approx([snips], abs=1e-9)


def test_clipped_value_is_that_of_obp(visits: SimulatedVisits) -> None:
    log = log_cells(visits.cube(has_propensities=True))
    shares = shares_of(RANKING, log)
    assert value_by_ips(log, shares, 8.0).values == pytest.approx([OBP["clipped"]], abs=1e-9)
    assert 0 < clipped_share(log, shares, 8.0) <= 1


def test_inverse_propensity_values_follow_their_definition_row_by_row(visits: SimulatedVisits) -> None:
    log = log_cells(visits.cube(has_propensities=True))
    q = shares_of(MIXTURE, log)[0, 0][visits.items, np.arange(3)]  # (n, K)
    weights = q / visits.propensities
    earned = (weights * visits.clicks).sum(axis=0)
    assert value_by_ips(log, shares_of(MIXTURE, log)).values == pytest.approx([earned.sum() / 3000])
    snips = value_by_snips(log, shares_of(MIXTURE, log)).values
    assert snips == pytest.approx([(earned / weights.sum(axis=0)).sum()])


def test_estimated_propensities_make_all_of_them_the_value_by_cells(visits: SimulatedVisits) -> None:
    log = log_cells(visits.cube())
    assert not log.has_logged_propensities
    shares = shares_of(MIXTURE, log)
    expected = value_by_cells(log, shares).values
    assert value_by_ips(log, shares).values == pytest.approx(expected)


def test_a_target_in_equal_groups_has_the_value_of_one_group(visits: SimulatedVisits) -> None:
    log = log_cells(visits.cube(), n_groups=5)
    once = shares_of(RANKING, log.merged())
    by_group = np.repeat(once, 5, axis=0)
    assert value_by_cells(log, by_group).values == pytest.approx(value_by_cells(log.merged(), once).values)
    assert effective_visits(log, by_group) == pytest.approx(effective_visits(log.merged(), once))


def test_effective_visits_of_one_ranking_are_the_displays_of_its_rarest_cell(visits: SimulatedVisits) -> None:
    log = log_cells(visits.cube())
    shares = shares_of(RANKING, log)
    cells = log.table(log.displays)[0, RANKING, [0, 1, 2]]
    assert effective_visits(log, shares) == pytest.approx([cells.min()])


def test_cells_that_were_never_shown_are_named_and_refused() -> None:
    cube = ClickCube.from_visits(np.zeros(50), np.tile([0, 1], (50, 1)), np.tile([1, 0], (50, 1)))
    log = log_cells(cube)
    shares = resolve_mixtures([[[(1.0, np.array([1, 0]))]]], log.shape).shares
    assert unsupported_cells(log, shares) == [(0, 0, 1), (0, 1, 0)]
    for estimator in (value_by_cells, value_by_ips, value_by_snips):
        values = estimator(log, shares)
        assert np.isnan(values.values).all()
        assert "not shown" in values.reason


def test_a_user_type_without_visits_has_no_value() -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((3000, 4)), axis=1)[:, :2]
    clicks = rng.random(items.shape) < 0.2
    cube = ClickCube.from_visits(np.zeros(3000), items, clicks, user_types=["many", "none"])
    evaluation = evaluate(cube, {"first": ["item-1", "item-2"]})
    for name in ("cells", "ips", "snips"):
        estimate = evaluation["first"].estimates[name]
        assert np.isfinite(estimate.values).tolist() == [True, False], name
        assert estimate.total.is_identified


def test_a_fixed_layout_identifies_no_other_ranking() -> None:
    rng = np.random.default_rng(0)
    cube = ClickCube.from_visits(np.zeros(500), np.tile([0, 1], (500, 1)), rng.random((500, 2)) < 0.3)
    log = log_cells(cube)
    fit = fit_log_model(log, "position-based")
    for ranking, is_identified in (([1, 0], False), ([0, 1], True)):
        target = resolve_mixtures([[[(1.0, np.array(ranking))]]], log.shape)
        assert np.isfinite(value_by_model(fit, log, target).values[0]) == is_identified


def test_a_model_predicts_a_ranking_whose_cells_were_never_all_shown() -> None:
    rng = np.random.default_rng(1)
    items = np.array([[0, 1], [1, 2], [2, 1], [1, 0]])[rng.integers(4, size=40_000)]  # 2 never below 0
    clicks = rng.random(items.shape) < np.array([0.5, 0.3, 0.2])[items] * [1.0, 0.5]
    log = log_cells(ClickCube.from_visits(np.zeros(40_000), items, clicks))
    target = resolve_mixtures([[[(1.0, np.array([0, 2]))]]], log.shape)
    values = value_by_model(fit_log_model(log, "position-based"), log, target)
    assert values.values[0] == pytest.approx(0.5 + 0.1, abs=4 * values.variances[0] ** 0.5)


@pytest.mark.parametrize("model", ["position-based", "user-browsing"])
def test_values_of_a_model_with_the_true_parameters_are_exact(model: str) -> None:
    problem = make_log_problem(3, n_user_types=2, n_items=6, n_positions=4)
    rng = np.random.default_rng(3)
    log = log_cells(simulate_visits(problem, "uniform", 2000, model, rng).cube())
    fit = fit_log_model(log, model)
    preferences = problem.position_preferences
    gamma = preferences / preferences.max(axis=1, keepdims=True)
    if model == "user-browsing":
        gamma = np.tile(browsing_examination(4).ravel(), (2, 1))
    fit = fit._replace(examination=gamma, means=problem.item_means)
    rankings = np.array([[0, 3, 1, 5], [4, 2, 0, 1]])
    target = resolve_mixtures([[[(1.0, one)] for one in rankings]], log.shape)
    expected = true_values(problem, model, rankings)
    assert value_by_model(fit, log, target).values == pytest.approx(expected)


def test_the_variance_of_a_model_is_that_of_repeated_logs() -> None:
    """Over 60 logs the variance of estimates has 59 degrees of freedom: both bounds fail with 1 in 10,000."""
    problem = make_log_problem(2, n_user_types=1, n_items=6, n_positions=3)
    target = resolve_mixtures([[[(1.0, np.array([0, 1, 2]))]]], (1, 6, 3))
    results = []
    for seed in range(60):
        rng = np.random.default_rng([2, seed])
        log = log_cells(simulate_visits(problem, "explored", 2000, "user-browsing", rng).cube())
        results.append(value_by_model(fit_log_model(log, "user-browsing"), log, target)[:2])
    values, variances = np.array(results)[:, :, 0].T
    ratio = values.var(ddof=1) / variances.mean() * 59
    assert stats.chi2.ppf(5e-5, 59) < ratio < stats.chi2.ppf(1 - 5e-5, 59)


@pytest.mark.parametrize("model", ["single-look", "position-based"])
def test_values_of_cells_add_up_to_those_of_rankings(visits: SimulatedVisits, model: EvaluationModel) -> None:
    log = log_cells(visits.cube(), n_groups=5).without_above()
    fit = fit_log_model(log, model)
    training_fits = [fit_without_group(fit, log, group).shrunken() for group in range(5)]
    target = resolve_mixtures([[[(1.0, np.array(RANKING))]]] * 5, log.shape)
    by_model, by_cells = values_of_cells(fit, training_fits, log)
    by_group = value_by_model(fit, log, target, training_fits).by_group
    assert np.einsum("gnjk,gnjk->gn", target.shares, by_model) == pytest.approx(by_group)
    total = np.einsum("gn,gnjk,gnjk->n", log.group_shares, target.shares, by_cells)
    assert total == pytest.approx(value_by_cells(log, target.shares).values)


def test_the_choice_of_a_ranking_for_all_types_makes_their_values_dependent() -> None:
    """As group 2 joins, its ranking has 0.3 more for one type and 0.1 less for the other, and vice versa."""
    changes = np.zeros((2, 2, 2))
    changes[0, 1] = changes[1, 0] = 0.3, -0.1
    values = TypeValues(np.ones(2), np.array([0.01, 0.02]), np.zeros(2), changes=changes)
    assert values.total_variances == pytest.approx([0.01 + 2 * 0.3**2, 0.02 + 2 * 0.1**2])
    assert values.variance_of_sum(np.array([0.5, 0.5])) == pytest.approx(0.03 / 4 + 2 * 0.1**2)
    changes[1, 0] *= -1.0  # a negative covariance is due to chance
    assert values.total_variances == pytest.approx(values.variances)
    assert values.variance_of_sum(np.array([0.5, 0.5])) == pytest.approx(0.03 / 4)
