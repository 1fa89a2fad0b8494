"""Random contextual problems."""

import numpy as np

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError
from banditrank.model._contextual_problem import Appeal, ContextualProblem, check_appeal
from banditrank.model._generators import MAX_SIZE
from banditrank.model._user_population import UserPopulation

_N_COMPONENTS = 6  # of the mixture of users
_WITHIN_DEVIATION = 0.5  # of user features within a component; the components' means have a deviation of 1
_DECAY = 0.7  # of position preferences from one to the next, before they are shuffled
_LINEAR_MEAN, _LINEAR_DEVIATION = 0.4, 0.13  # of wᵀφ over users and items: limits of 0 and 1 hardly matter
_LOGISTIC_MEAN, _LOGISTIC_DEVIATION = -1.0, 1.0
_CALIBRATION_USERS = 2000


def make_contextual_problem(
    appeal: Appeal,
    *,
    n_items: int = 100,
    n_positions: int = 5,
    n_user_features: int = 4,
    n_item_features: int = 5,
    seed: int,
) -> ContextualProblem:
    """Generate a random contextual problem.

    Users come from a mixture of six normal distributions, items and weights are normal. The first user
    feature and the first item feature are constant, so that the interactions include those with either
    alone. Over users and items, wᵀφ has a mean of 0.4 and a standard deviation of 0.13 if appeal is linear,
    −1 and 1 if it is logistic. Position preferences decrease by a factor of 0.7, in random order.

    Parameters
    ----------
    appeal
        ``linear`` or ``logistic``.
    n_items, n_positions
        M and K.
    n_user_features, n_item_features
        p and q, at least 2; d is their product.
    seed
        Seed of the generator; the same seed returns the same problem.

    Raises
    ------
    UnknownNameError
        If there is no appeal of this name.
    InvalidInputError
        If a size is out of range, or there are more positions than items.

    Examples
    --------
    >>> make_contextual_problem("logistic", seed=1)
    <ContextualProblem logistic-20x100x5-seed1: logistic appeal, 20 features, 100 items, 5 positions>
    """
    check_appeal(appeal)
    m, k = (check_integer(f, v, 1, MAX_SIZE) for f, v in (("n_items", n_items), ("n_positions", n_positions)))
    p = check_integer("n_user_features", n_user_features, 2, MAX_SIZE)
    q = check_integer("n_item_features", n_item_features, 2, MAX_SIZE)
    if k > m:
        raise InvalidInputError("n_positions", f"must not exceed the {m} items", k)
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    ones, zeros = np.ones((_N_COMPONENTS, 1)), np.zeros((_N_COMPONENTS, 1))
    users = UserPopulation(
        np.hstack([ones, rng.standard_normal((_N_COMPONENTS, p - 1))]),
        probabilities=rng.dirichlet(np.full(_N_COMPONENTS, 3.0)),
        standard_deviations=np.hstack([zeros, np.full((_N_COMPONENTS, p - 1), _WITHIN_DEVIATION)]),
    )
    items = np.hstack([np.ones((m, 1)), rng.standard_normal((m, q - 1))])
    preferences = _DECAY ** np.arange(k)
    rng.shuffle(preferences)
    weights = rng.standard_normal((p, q))
    weights[0, 0] = 0.0
    drawn, _ = users.draw(_CALIBRATION_USERS, rng=rng)
    is_linear = appeal == "linear"
    weights *= (_LINEAR_DEVIATION if is_linear else _LOGISTIC_DEVIATION) / (drawn @ weights @ items.T).std()
    weights[0, 0] = (_LINEAR_MEAN if is_linear else _LOGISTIC_MEAN) - (drawn @ weights @ items.T).mean()
    return ContextualProblem(
        users,
        items,
        weights.ravel(),
        preferences / preferences.sum(),
        appeal=appeal,
        name=f"{appeal}-{p * q}x{m}x{k}-seed{seed}",
    )
