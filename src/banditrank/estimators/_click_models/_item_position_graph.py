"""The graph of items and positions: which of them a log can compare.

Items with clicks and the positions (or contexts) at which they were displayed are the vertices, cells with
displays the edges. Rates of rank one, p = μ_j γ_c, determine the ratio of two positions if and only if a
chain of items connects them. An item without clicks has rate 0 anywhere, and connects nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Booleans = NDArray[np.bool_]

NO_COMPONENT = -1
"""Component of positions without displays and of items without clicks."""


class GraphComponents(NamedTuple):
    """Connected components, numbered by decreasing number of clicks.

    Attributes
    ----------
    of_column
        Component of each position or context, shape (C,); `NO_COMPONENT` where no clicked item was displayed.
    of_item
        Component of each item, shape (M,); `NO_COMPONENT` of items without clicks.
    n_components
        Number of components.
    """

    of_column: Indices
    of_item: Indices
    n_components: int

    def columns(self, component: int) -> list[int]:
        """Return the positions or contexts of a component."""
        return [int(index) for index in np.flatnonzero(self.of_column == component)]


def find_components(displays: Floats, clicks: Floats) -> GraphComponents:
    """Return the components of a table of cells.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).

    Examples
    --------
    >>> displays = np.array([[9.0, 9.0, 0.0], [0.0, 0.0, 9.0]])
    >>> find_components(displays, displays / 3).of_column
    array([0, 0, 1])
    """
    is_clicked = clicks.sum(axis=1) > 0
    edges = (displays > 0) & is_clicked[:, None]  # (M, C)
    labels = _connect(edges)
    at_columns = clicks.sum(axis=0)
    found = [int(label) for label in np.unique(labels) if label >= 0]
    by_clicks = sorted(found, key=lambda label: -at_columns[labels == label].sum())
    of_column = np.full(labels.size, NO_COMPONENT, dtype=np.int64)
    for number, label in enumerate(by_clicks):
        of_column[labels == label] = number
    of_item = np.where(is_clicked, of_column[edges.argmax(axis=1)], NO_COMPONENT)
    return GraphComponents(of_column, of_item, len(by_clicks))


@compiled
def label_columns(edges: Booleans, labels: Indices) -> None:
    """Write the smallest column of the component of each column.

    Parameters
    ----------
    edges
        Shape (M, C).
    labels
        Shape (C,), initially the number of each column, or −1 without edges; written.
    """
    n_items, n_columns = edges.shape
    has_changed = True
    while has_changed:
        has_changed = False
        for item in range(n_items):
            smallest = n_columns
            for column in range(n_columns):
                if edges[item, column]:
                    smallest = min(smallest, labels[column])
            for column in range(n_columns):
                if edges[item, column] and labels[column] != smallest:
                    labels[column] = smallest
                    has_changed = True


def _connect(edges: Booleans) -> Indices:
    """Return a label for each column, equal for connected columns; −1 for columns without edges."""
    labels = np.where(edges.any(axis=0), np.arange(edges.shape[1]), -1)
    label_columns(np.ascontiguousarray(edges), labels)
    return labels


def joining_items(displays: Floats, clicks: Floats) -> list[int]:
    """Return the items each of which alone connects positions: without it there are more components.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).

    Examples
    --------
    >>> displays = np.array([[9.0, 9.0, 0.0], [0.0, 9.0, 9.0], [0.0, 9.0, 9.0]])
    >>> joining_items(displays, displays / 3)
    [0]
    """
    edges = (displays > 0) & (clicks.sum(axis=1) > 0)[:, None]
    shared = edges.T.astype(np.float64) @ edges  # (C, C): items that join two positions
    only = (shared == 1) & ~np.eye(shared.shape[0], dtype=np.bool_)
    count = _count(_connect(edges))
    joining = []
    for item in np.flatnonzero(((edges @ only) & edges).any(axis=1)):
        rest = edges.copy()
        rest[item] = False
        labels = _connect(rest)
        isolated = int((labels[edges.any(axis=0)] < 0).sum())
        if _count(labels) + isolated > count:
            joining.append(int(item))
    return joining


def _count(labels: Indices) -> int:
    return int(np.unique(labels[labels >= 0]).size)
