"""The paper's model: a user looks at one position, and clicks the item there or not.

Rates are of rank one, as under the position-based model, but the shares of positions sum to 1. That
determines the scale of the appeal, and requires that all positions that a user type was shown can be
compared.

Clicks are Poisson counts, so that the clicks of each item are shared by its positions in proportion to its
looks. That is unbiased however few looks an item has, but not if its appeal were held at its bound of 1: the
bound is for items with enough looks (`_long_tail`), and the others get an appeal of 1 at most afterwards.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._estimates_of_model import (
    ModelEstimates,
    cell_tables,
    empty_estimates,
    has_single_position,
)
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._long_tail import MIN_LOOKS, find_tail
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._intervals import single_look_intervals
from banditrank.estimators._maximum_likelihood import alternate

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_MAX_ITERATIONS = 3000
_MAX_BOUNDED_ITERATIONS = 300
_BISECTIONS = 60


def fit_single_look(cube: ClickCube) -> ModelParameters:
    """Return ρ and μ of maximum likelihood; no μ exceeds 1, and positions without displays have ρ = 0."""
    displays, clicks = cell_tables(cube)
    shares = np.zeros((displays.shape[0], displays.shape[2]))
    appeal = np.zeros(displays.shape[:2])
    for i in range(displays.shape[0]):
        is_shown = displays[i].any(axis=0)
        if is_shown.any():
            shares[i, is_shown], appeal[i] = _fit_type(displays[i][:, is_shown], clicks[i][:, is_shown])
    looks = np.einsum("ijk,ik->ij", displays, shares)
    return ModelParameters("single-look", appeal, shares, looks)


def _fit_type(displays: Floats, clicks: Floats) -> tuple[Floats, Floats]:
    """Return ρ, shape (K,), and μ, shape (M,), for displays and clicks of shape (M, K)."""
    n_positions = displays.shape[1]
    shares = np.full((1, n_positions), 1 / n_positions)
    appeal = np.zeros((1, displays.shape[0]))
    by_position, clicks_by_position = (np.ascontiguousarray(table.T)[None] for table in (displays, clicks))
    scratch = np.zeros(n_positions)
    alternate(by_position, clicks_by_position, shares, appeal, scratch, 0, _TOLERANCE, _MAX_ITERATIONS)
    if appeal[0, ~find_tail(displays, shares[0])].max(initial=0.0) > 1.0:
        shares[0], appeal[0] = _fit_bounded(displays, clicks, shares[0])
    return shares[0], np.minimum(appeal[0], 1.0)


def _fit_bounded(displays: Floats, clicks: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return ρ and μ that maximise the likelihood where some μ outside of the tail would exceed 1."""
    at_positions, of_items = clicks.sum(axis=0), clicks.sum(axis=1)
    shares = np.maximum(shares, 1e-9)
    appeal = np.zeros(of_items.size)
    for _ in range(_MAX_BOUNDED_ITERATIONS):
        looks = displays @ shares
        appeal = np.divide(of_items, looks, out=np.zeros_like(looks), where=looks > 0)
        appeal = np.where(looks < MIN_LOOKS, appeal, np.minimum(appeal, 1.0))
        expected = displays.T @ appeal
        new = _shares(at_positions, expected)
        change = np.abs(new - shares).max()
        shares = new
        if change <= _TOLERANCE:
            break
    return shares, appeal


def _shares(clicks: Floats, expected: Floats) -> Floats:
    """Return the ρ that maximises Σ S ln ρ − E ρ on the simplex: S / (E + λ), by bisection of λ."""
    is_clicked = clicks > 0
    low = float((clicks - expected)[is_clicked].max(initial=0.0))  # its share is at most 1
    high = float(clicks.sum() - expected[is_clicked].min(initial=0.0)) + 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        total = (clicks[is_clicked] / (expected[is_clicked] + middle)).sum()
        low, high = (middle, high) if total > 1 else (low, middle)
    shares = np.where(is_clicked, clicks / np.maximum(expected + high, 1e-300), 0.0)
    return np.asarray(shares / max(shares.sum(), 1e-300))


def estimate_single_look(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return the shares of positions, and appeal: the click probability of an item that is looked at."""
    displays, clicks = cell_tables(cube)
    estimates = empty_estimates(cube, parameters)
    n_parameters = 0
    is_single = has_single_position(displays)
    for i in range(displays.shape[0]):
        components = find_components(displays[i], clicks[i])
        vertices = (components.of_column >= 0).sum() + (components.of_item >= 0).sum()
        n_parameters += int(vertices) - components.n_components
        shown = np.flatnonzero(displays[i].any(axis=0))
        is_connected = components.n_components == 1 and (components.of_column[shown] == 0).all()
        if not is_connected or (shown.size == 1 and not is_single):
            continue
        items = np.flatnonzero(displays[i].any(axis=1))
        cells = np.ix_(items, shown)
        rho, mu = parameters.attention[i, shown], parameters.appeal[i, items]
        rho_ends, mu_ends = single_look_intervals(displays[i][cells], clicks[i][cells], rho, mu, level)
        is_open = (mu_ends[:, 0] <= 0) & (mu_ends[:, 1] >= 1)
        estimates.item_appeal[i, items] = np.where(is_open, np.nan, mu)
        estimates.item_intervals[i, items] = np.where(is_open[:, None], np.nan, mu_ends)
        if shown.size > 1:
            is_open = (rho_ends[:, 0] <= 0) & (rho_ends[:, 1] >= 1)
            estimates.position_worth[i, shown] = np.where(is_open, np.nan, rho)
            estimates.position_intervals[i, shown] = np.where(is_open[:, None], np.nan, rho_ends)
    several = cube.visits.visits[cube.visits.n_clicks > 1].sum()
    notes: tuple[str, ...] = ()
    if several > 0:
        notes = (f"single-look: {several:,.0f} visits have several clicks, which the model rules out",)
    return estimates._replace(n_parameters=n_parameters, notes=notes)
