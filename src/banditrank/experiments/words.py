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


def rounded(number: float) -> str:
    """Return a number to three figures, as people write it.

    Examples
    --------
    >>> rounded(1394.2), rounded(12.345), rounded(0.01234), rounded(9_876_543)
    ('1,390', '12.3', '0.0123', '9,880,000')
    """
    return f"{float(f'{number:.3g}'):,.15g}"
