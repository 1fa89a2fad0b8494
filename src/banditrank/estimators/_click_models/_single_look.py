"""The paper's model: a user looks at one position, and clicks the item there or not.

Rates are of rank one, as under the position-based model, but the shares of positions sum to 1. That
determines the scale of the appeal, and requires that all positions that a user type was shown can be
compared.

Clicks are Poisson counts, so that the clicks of each item are shared by its positions in proportion to its
looks. That is unbiased however few looks an item has, but not if its appeal were held at its bound of 1: the
bound is for items with enough looks (`_long_tail`), and the others get an appeal of 1 at most afterwards.
"""

from typing import NamedTuple

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
from banditrank.estimators._click_models._long_tail import find_tail
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._intervals import single_look_intervals
from banditrank.estimators._maximum_likelihood import alternate

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_TOLERANCE = 1e-9
_MAX_SWEEPS = 300  # of coordinate ascent before Newton's method
_MAX_STEPS = 200
_MAX_STEP = 10.0  # of logarithms
_MAX_HALVINGS = 30
_GRADIENT_TOLERANCE = 1e-7  # of the logarithm of a share, relative to its clicks
_ROUNDING = 1e-13  # of the log-likelihood, relative


def fit_single_look(cube: ClickCube) -> ModelParameters:
    """Return ρ and μ of maximum likelihood; no μ exceeds 1, and positions without displays have ρ = 0."""
    displays, clicks = cell_tables(cube)
    shares = np.zeros((displays.shape[0], displays.shape[2]))
    appeal = np.zeros(displays.shape[:2])
    unconverged = []
    for i in range(displays.shape[0]):
        is_shown = displays[i].any(axis=0)
        if is_shown.any():
            shares[i, is_shown], appeal[i], is_converged = _fit_type(
                displays[i][:, is_shown], clicks[i][:, is_shown]
            )
            if not is_converged:
                unconverged.append(i)
    looks = np.einsum("ijk,ik->ij", displays, shares)
    return ModelParameters("single-look", appeal, shares, looks, tuple(unconverged))


def _fit_type(displays: Floats, clicks: Floats) -> tuple[Floats, Floats, bool]:
    """Return ρ, shape (K,), μ, shape (M,), and if they are the maximum, for tables of shape (M, K)."""
    shares, is_converged = fit_shares(displays, clicks)
    appeal = _appeal(displays, clicks, shares)
    is_bounded = ~find_tail(displays, shares)
    if appeal[is_bounded].max(initial=0.0) > 1.0:
        is_converged = _maximize(displays, clicks, shares, is_bounded)
        appeal = _appeal(displays, clicks, shares)
    return shares, np.minimum(appeal, 1.0), is_converged


def fit_shares(displays: Floats, clicks: Floats) -> tuple[Floats, bool]:
    """Return ρ of maximum likelihood without a bound of μ, shape (K,), and if it is the maximum.

    Coordinate ascent is quick where items are shown at all positions. Where few displays tell positions
    apart it hardly moves, and Newton's method continues.

    Parameters
    ----------
    displays, clicks
        Shape (M, K).
    """
    n_items, n_positions = displays.shape
    shares, appeal = np.full((1, n_positions), 1 / n_positions), np.zeros((1, n_items))
    by_position, clicks_by_position = (np.ascontiguousarray(table.T)[None] for table in (displays, clicks))
    tables = by_position, clicks_by_position, shares, appeal, np.zeros(n_positions)
    if alternate(*tables, 0, _TOLERANCE, _MAX_SWEEPS) < _MAX_SWEEPS:
        return shares[0], True
    is_converged = _maximize(displays, clicks, shares[0], np.zeros(n_items, dtype=np.bool_))
    return shares[0], is_converged


def _appeal(displays: Floats, clicks: Floats, shares: Floats) -> Floats:
    looks = displays @ shares
    appeal = np.divide(clicks.sum(axis=1), looks, out=np.zeros_like(looks), where=looks > 0)
    return np.asarray(appeal)


class _Profile(NamedTuple):
    """Log-likelihood of shares at the most likely μ, and its derivatives by their logarithms."""

    value: float
    gradient: Floats  # (K,)
    hessian: Floats  # (K, K)


def _profile(displays: Floats, clicks: Floats, shares: Floats, is_bounded: Booleans) -> _Profile:
    """Return the log-likelihood Σ S ln(ρ μ) − T ρ μ of positive shares, whose bounded μ is at most 1."""
    looks, of_items = displays @ shares, clicks.sum(axis=1)
    appeal = _appeal(displays, clicks, shares)
    is_one = is_bounded & (appeal >= 1.0)
    appeal[is_one] = 1.0
    is_clicked = of_items > 0
    value = clicks.sum(axis=0) @ np.log(shares) - appeal @ looks
    value += of_items[is_clicked] @ np.log(appeal[is_clicked])
    expected = shares * (displays.T @ appeal)
    is_free = is_clicked & ~is_one
    scaled = displays[is_free] * shares * (np.sqrt(of_items[is_free]) / looks[is_free])[:, None]
    return _Profile(float(value), clicks.sum(axis=0) - expected, scaled.T @ scaled - np.diag(expected))


def _maximize(displays: Floats, clicks: Floats, shares: Floats, is_bounded: Booleans) -> bool:
    """Maximise the likelihood of the shares of clicked positions, whose sum stays; return if it has.

    Newton's method on their logarithms with μ eliminated. The likelihood is concave in the logarithms, and
    does not decrease with the sum, so that the Lagrange multiplier of the sum is not negative.
    """
    columns = np.flatnonzero(clicks.any(axis=0))
    displays, clicks, rho = displays[:, columns], clicks[:, columns], shares[columns]
    of_columns, total = clicks.sum(axis=0), rho.sum()
    profile = _profile(displays, clicks, rho, is_bounded)
    for _ in range(_MAX_STEPS):
        multiplier = profile.gradient.sum() / total
        gradient = profile.gradient - multiplier * rho
        if (np.abs(gradient) <= _GRADIENT_TOLERANCE * of_columns).all():
            return True
        curvature = profile.hessian - multiplier * np.diag(rho)
        equations = np.block([[curvature, rho[:, None]], [rho, 0.0]])
        step = np.linalg.lstsq(equations, np.append(-gradient, 0.0))[0][:-1]
        step *= min(1.0, _MAX_STEP / max(np.abs(step).max(), 1e-300))
        for halvings in range(_MAX_HALVINGS):
            moved = rho * np.exp(step / 2**halvings)
            moved *= total / moved.sum()
            new = _profile(displays, clicks, moved, is_bounded)
            if new.value >= profile.value - _ROUNDING * abs(profile.value):
                break
        else:
            return False
        rho, profile = moved, new
        shares[columns] = rho
    return False


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
