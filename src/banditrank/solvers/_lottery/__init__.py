"""The best lottery over rankings: equal treatment before the draw, with guarantees and a certificate.

::

    solve               the interface: validation, certificate, prices
    lottery             the result
    plot                figures of a lottery
    guarantees          minimum exposures and values, as rows
    column_generation   the search: compiled, warm-started
    master              the best mixture of the rankings found so far
    pricing             the ranking that improves the mixture most, and the bound that it proves

Branch and bound (`banditrank.solvers._branch_and_bound`) relaxes each node to the same problem, without
guarantees. Both share tangents, bounds and assignments (`banditrank.solvers._tangents`,
`banditrank.solvers._assignment`), but not the master: a node needs a rough mixture of few rankings, for which
pairwise steps are cheapest, and drops rankings as cells are fixed; a lottery needs exact weights and rows for
its guarantees, and no cell can be fixed, because an item may be shown rarely.
"""
