"""HTML of counts in notebooks."""

from banditrank._html import (
    MAX_COLUMNS,
    MAX_ROWS,
    Cell,
    format_count,
    omitted_text,
    panel,
    table,
)
from banditrank._text import plural
from banditrank.counts._counts import Counts


def counts_html(counts: Counts) -> str:
    """Return two tables: arrivals by user type, and rewards and displays by item, user type and position."""
    columns = [(i, k) for i in range(counts.n_user_types) for k in range(counts.n_positions)]
    facts = [
        plural(counts.rounds, "round"),
        plural(counts.n_user_types, "user type"),
        plural(counts.n_items, "item"),
        plural(counts.n_positions, "position"),
    ]
    arrivals = table(
        "arrivals",
        ["user type", "arrivals"],
        [[f"type-{i + 1}", format_count(number)] for i, number in enumerate(counts.arrivals[:MAX_ROWS])],
        omitted=omitted_text({"user type": (counts.n_user_types, MAX_ROWS)}),
    )
    shown = columns[:MAX_COLUMNS]
    rewards = table(
        "rewards / displays",
        ["item", *(f"type-{i + 1}, position {k + 1}" for i, k in shown)],
        [
            [f"item-{j + 1}", *(_ratio(counts, i, k, j) for i, k in shown)]
            for j in range(min(counts.n_items, MAX_ROWS))
        ],
        omitted=omitted_text({"item": (counts.n_items, MAX_ROWS), "column": (len(columns), MAX_COLUMNS)}),
    )
    return panel("Counts", "", facts, arrivals, rewards)


def _ratio(counts: Counts, user_type: int, position: int, item: int) -> Cell:
    displays = float(counts.displays_by_position[user_type, position, item])
    rewards = float(counts.rewards_by_position[user_type, position, item])
    tint = min(rewards / displays, 1.0) if displays > 0 else 0.0
    return Cell(f"{format_count(rewards)} / {format_count(displays)}", tint)
