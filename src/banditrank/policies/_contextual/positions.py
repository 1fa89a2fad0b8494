"""Position weights of contextual problems."""

import numpy as np
from numpy.typing import NDArray

from banditrank.model._click_models import ClickModel
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem


def position_weights(problem: ContextualProblem, click_model: ClickModel) -> NDArray[np.float64]:
    """Return the weights of positions under a click model, shape (N, K).

    Examples
    --------
    >>> from banditrank.model._click_models import PositionBased
    >>> problem = ContextualProblem([[1.0]], [[0.1], [0.2]], [1.0], [0.8, 0.2])
    >>> position_weights(problem, PositionBased())
    array([[1.  , 0.25]])
    """
    n = problem.n_user_types
    means = np.zeros((n, problem.n_items))
    return click_model.position_weights(Problem(np.full(n, 1.0 / n), problem.position_preferences, means))
