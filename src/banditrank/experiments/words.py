"""Words for the page."""

from collections.abc import Iterable


def listed(words: Iterable[str], none: str = "none") -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', 'none')
    """
    *first, last = list(words) or [none]
    return f"{', '.join(first)} and {last}" if first else last
