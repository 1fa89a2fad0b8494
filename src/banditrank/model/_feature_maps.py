"""Feature maps: joint features φ of a user and an item."""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._compilation import inlined
from banditrank.errors import UnknownNameError

Floats = NDArray[np.float64]

FeatureMap: TypeAlias = Literal["interaction", "concatenation", "items"]
"""Joint features of a user x and an item z.

``interaction``: all products x_a z_b, in the order of x; with a constant among the features of both, also a
constant, x and z. ``concatenation``: x, then z. ``items``: z.
"""

INTERACTION, CONCATENATION, ITEMS = range(3)  # as compiled formulas read them
_CODES: dict[str, int] = dict(zip(get_args(FeatureMap), (INTERACTION, CONCATENATION, ITEMS), strict=True))


def feature_map_code(feature_map: FeatureMap) -> int:
    """Return the number of a feature map, for compiled functions.

    Raises
    ------
    UnknownNameError
        If there is no feature map of this name.
    """
    if feature_map not in _CODES:
        raise UnknownNameError("feature_map", feature_map, _CODES)
    return _CODES[feature_map]


def n_joint_features(feature_map: FeatureMap, n_user_features: int, n_item_features: int) -> int:
    """Return d, the number of joint features.

    Raises
    ------
    UnknownNameError
        If there is no feature map of this name.

    Examples
    --------
    >>> [n_joint_features(name, 4, 5) for name in ("interaction", "concatenation", "items")]
    [20, 9, 5]
    """
    sizes = (n_user_features * n_item_features, n_user_features + n_item_features, n_item_features)
    return sizes[feature_map_code(feature_map)]


def joint_features(feature_map: FeatureMap, user: ArrayLike, items: ArrayLike) -> Floats:
    """Return the joint features of a user and each item, shape (M, d).

    Parameters
    ----------
    feature_map
        Name of the feature map.
    user
        User features, shape (p,).
    items
        Item features, shape (M, q).

    Raises
    ------
    UnknownNameError
        If there is no feature map of this name.

    Examples
    --------
    >>> joint_features("interaction", [1, 3], [[1, 0], [1, 2]])
    array([[1., 0., 3., 0.],
           [1., 2., 3., 6.]])
    """
    x = np.array(user, dtype=np.float64, order="C")
    z = np.array(items, dtype=np.float64, order="C")
    features = np.zeros((len(z), n_joint_features(feature_map, x.size, z.shape[1])))
    write_joint_features(feature_map_code(feature_map), x, z, features)
    return features


@inlined
def write_joint_features(code: int, user: Floats, items: Floats, features: Floats) -> None:
    """Write the joint features of a user, shape (p,), and each item, shape (M, q), to (M, d)."""
    n_user, n_item = user.size, items.shape[1]
    for j in range(items.shape[0]):
        if code == INTERACTION:
            for a in range(n_user):
                for b in range(n_item):
                    features[j, a * n_item + b] = user[a] * items[j, b]
        elif code == CONCATENATION:
            for a in range(n_user):
                features[j, a] = user[a]
            for b in range(n_item):
                features[j, n_user + b] = items[j, b]
        else:
            for b in range(n_item):
                features[j, b] = items[j, b]
