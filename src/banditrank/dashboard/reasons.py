"""Why a ranking came out as it did, in a sentence."""

from collections.abc import Sequence

from banditrank.dashboard.explanation import LeftOutItem, PlacedItem


def reason_for(
    *,
    policy: str,
    utility: str | None,
    user_type: str | None,
    version: int,
    drawn: bool,
    reproduced: bool,
    shown: Sequence[PlacedItem],
    left_out: Sequence[LeftOutItem],
) -> str:
    """Return the sentence.

    Parameters
    ----------
    policy
        Its name.
    utility
        What equal treatment maximises; None under personalized treatment.
    user_type
        Who asked; None if that did not enter.
    version
        Of the counts.
    drawn
        Whether the figures are those of a world that the policy drew, or estimates.
    reproduced
        Whether the ranking was found again.
    shown, left_out
        The items, with these figures.

    Examples
    --------
    >>> shown = [PlacedItem(1, "a", 0.3, 0.5, 0.15), PlacedItem(2, "b", 0.7, 0.9, 0.63)]
    >>> print(reason_for(policy="thompson-rank", utility=None, user_type="new", version=7, drawn=True,
    ...                  reproduced=True, shown=shown, left_out=[LeftOutItem("c", 0.4, "a", -0.03)]))
    in the world that thompson-rank drew from counts 7 for this ranking, users of type new look most at
    position 2 (0.70), where b stands (mean 0.90), then at position 1 (0.30): a (0.50); of the items left
    out c came nearest (0.40).
    """
    if not reproduced:
        return (
            "made again from the same counts another ranking comes out: it was made by another version of "
            "banditrank, and the figures are this version's."
        )
    if utility is not None:
        everybody = f"everybody who asks under counts {version} is shown this, and who asked did not enter"
        chosen = (
            f"it is best by the {utility} utility in the world that {policy} drew from these counts"
            if drawn
            else f"{policy} chose it by rules of its own and the {utility} utility; by these counts"
        )
        link = ", where" if drawn else ""
        return f"{everybody}: {chosen}{link} users look most at {_places(shown)}{_nearest(left_out)}."
    source = (
        f"in the world that {policy} drew from counts {version} for this ranking,"
        if drawn
        else f"{policy} chose it by rules of its own; by counts {version}"
    )
    who = "users" if user_type is None else f"users of type {user_type}"
    return f"{source} {who} look most at {_places(shown)}{_nearest(left_out)}."


def _places(shown: Sequence[PlacedItem]) -> str:
    """Return up to three positions, the one that is looked at most first."""
    first, *others = sorted(shown, key=lambda placed: -placed.look)[:3]
    told = f"position {first.position} ({first.look:.2f}), where {first.item} stands (mean {first.mean:.2f})"
    for other in others:
        told += f", then at position {other.position} ({other.look:.2f}): {other.item} ({other.mean:.2f})"
    return told


def _nearest(left_out: Sequence[LeftOutItem]) -> str:
    if not left_out:
        return "; no item was left out"
    nearest = max(left_out, key=lambda item: float("-inf") if item.gain is None else item.gain)
    return f"; of the items left out {nearest.item} came nearest ({nearest.mean:.2f})"
