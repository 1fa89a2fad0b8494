"""Bounds stay valid when the tree is full."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import MAXIMIN, NASH, alpha_fair, make_problem
from banditrank.solvers._branch_and_bound import open_nodes as places
from banditrank.solvers._branch_and_bound.open_nodes import FREE, OPEN, OpenNodes, new_open_nodes
from banditrank.solvers._branch_and_bound.search import (
    DROP,
    EXPLORE,
    REFINE,
    RESET,
    START,
    bind_search,
    new_search,
    run_step,
)
from banditrank.solvers._branch_and_bound.task import TARGET, VALUE
from banditrank.solvers._branch_and_bound.tree import (
    FULL,
    MORE,
    NODES,
    new_tree,
    open_bound,
)
from banditrank.solvers._instance import Instance, as_instance, total_value
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import Utility, ramp, sigmoid


# What only compiled code can call, called from compiled code.
@numba.njit
def clear(nodes: OpenNodes) -> None:
    places.clear(nodes)


@numba.njit
def open_one(nodes: OpenNodes, depth: int, bound: float) -> int:
    place = places.claim(nodes, depth)
    places.push(nodes, place, bound)
    return place


@numba.njit
def close(nodes: OpenNodes, index: int) -> int:
    place = places.pop(nodes, index)
    places.release(nodes, place)
    return place


@numba.njit
def deepest(nodes: OpenNodes) -> int:
    return places.deepest(nodes)


@given(data=st.data(), capacity=st.integers(1, 12))
def test_open_nodes_are_ordered_by_bound_and_by_depth(data: st.DataObject, capacity: int) -> None:
    nodes, held = new_open_nodes(capacity), {}
    clear(nodes)
    for _ in range(40):
        if len(held) < capacity and (not held or data.draw(st.booleans())):
            bound, depth = float(data.draw(st.integers(0, 9))), data.draw(st.integers(0, 5))
            place = open_one(nodes, depth, bound)
            assert place not in held
            held[place] = bound, depth
        else:
            index = data.draw(st.sampled_from([0, deepest(nodes), len(held) - 1]))
            expected = int(nodes.heap[index])
            assert close(nodes, index) == expected
            del held[expected]
        assert (nodes.sizes[OPEN], nodes.sizes[FREE]) == (len(held), capacity - len(held))
        assert set(nodes.heap[: len(held)].tolist()) == set(held)
        if held:
            assert held[int(nodes.heap[0])][0] == max(bound for bound, _ in held.values())
            assert held[int(nodes.heap[deepest(nodes)])][1] == max(depth for _, depth in held.values())


SIZE = 6, 14, 4
UTILITIES = (NASH, alpha_fair(2), MAXIMIN, sigmoid(), ramp())


@pytest.mark.parametrize("capacity", [8, 16, 24, 40])
@pytest.mark.parametrize("utility", UTILITIES, ids=str)
def test_bounds_hold_when_the_tree_is_full(utility: Utility, capacity: int) -> None:
    n, m, k = SIZE
    problem = make_problem("conflict", n_user_types=n, n_items=m, n_positions=k, seed=1)
    # Writable arrays, as `solve` has: a search is compiled for either kind.
    instance = Instance(*(array.copy() for array in as_instance(problem)))
    best = solve(problem, utility, solver="enumeration").value
    search = new_search(n, m, k, utility)
    incumbent, tree = search.incumbent, new_tree(n, m, k, capacity=capacity)
    handle = bind_search(search, tree, instance)
    handle.ranking[:] = np.arange(k)
    handle.numbers[:] = 1e-10, 0.0, np.inf
    for step in (START, REFINE, DROP, RESET):
        run_step(handle, step, 0)
    nodes = tree.open_nodes
    status, by_depth = MORE, False
    while status == MORE:
        before = nodes.depths[nodes.heap[: nodes.sizes[OPEN]]].max() if nodes.sizes[OPEN] else 0
        depths, short = nodes.depths.copy(), 4 <= nodes.sizes[FREE] <= capacity // 4
        looked_at = tree.progress[NODES]
        run_step(handle, EXPLORE, 1)
        status = handle.status[0]
        if short and tree.progress[NODES] > looked_at:
            by_depth = True
            assert depths[tree.family[0]] == before
        # At any time the best ranking is worth no more than what is open, or does not matter.
        assert max(open_bound(tree), incumbent.levels[TARGET]) >= best - 1e-12 * abs(best)
        assert nodes.sizes[OPEN] + nodes.sizes[FREE] == capacity
        ranking = incumbent.ranking.astype(np.intp)
        assert len(set(ranking.tolist())) == k
        worth = total_value(instance, utility.compiled(), ranking)
        assert incumbent.levels[VALUE] == pytest.approx(worth, rel=1e-12)
        assert worth <= best + 1e-12 * abs(best)
    # With 8 places the search ends after a few nodes; maximin, the hardest, is short of places long before.
    assert status == FULL or capacity > 8
    assert by_depth or capacity <= 16 or utility is not MAXIMIN
    if status == FULL:
        assert open_bound(tree) >= best - 1e-12 * abs(best)
    else:
        assert incumbent.levels[VALUE] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("utility", [sigmoid(), pytest.param(ramp(), marks=pytest.mark.campaign)], ids=str)
def test_every_split_shrinks_both_children(utility: Utility) -> None:
    # More rankings in the mixture than a node remembers: once, the node was its own child from there on.
    problem = make_problem("conflict", n_user_types=10, n_items=100, n_positions=10, seed=5)
    solution = solve(problem, utility, on_progress=lambda progress: progress.nodes < 12_000)
    assert solution.is_certified
