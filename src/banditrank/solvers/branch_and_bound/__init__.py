"""Exact equal treatment for every utility, with a certificate: branch and bound.

::

    search         one instance from start to end; the method that `solve` calls
    memory         what one search leaves for the next
    tree           how nodes are kept, and how one makes two
    open_nodes     which are open, and which comes next
    branching      by what a node is split
    local_search   better rankings nearby
    relaxation     the bound of a node
    node           which rankings it allows
    atoms          mixtures of rankings      matrix_game    the same for the worst-off type
    envelope       functions that are not concave
    bounds         what holds for any ranking
    task           the instance in hand and the best ranking so far
"""
