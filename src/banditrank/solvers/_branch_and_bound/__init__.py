"""Exact branch and bound for equal treatment under every utility, with a certificate.

::

    search         one instance from start to end; the solvers that `solve` calls
    tree           storage of nodes, and branching
    open_nodes     the priority queue of open nodes
    branching      the choice of a split
    local_search   improvement of rankings by swaps and replacements
    relaxation     upper bounds of nodes
    node           the rankings that a node allows
    atoms          mixtures of rankings
    matrix_game    mixtures of rankings for maximin
    envelope       concave envelopes of non-concave utilities
    task           the current instance and the incumbent
"""
