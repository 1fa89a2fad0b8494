"""Numbers and lists formatted for the text of a report."""

from collections.abc import Iterable


def join_words(words: Iterable[str], none: str = "none") -> str:
    """Return words joined with commas and "and".

    Examples
    --------
    >>> join_words(["a", "b", "c"]), join_words(["a"]), join_words([])
    ('a, b and c', 'a', 'none')
    """
    *first, last = list(words) or [none]
    return f"{', '.join(first)} and {last}" if first else last


def format_number(number: float) -> str:
    """Return a number with three significant digits and thousands separators.

    Examples
    --------
    >>> format_number(1394.2), format_number(12.345), format_number(0.01234), format_number(9_876_543)
    ('1,390', '12.3', '0.0123', '9,880,000')
    """
    return f"{float(f'{number:.3g}'):,.15g}"


def format_duration(seconds: float) -> str:
    """Return a duration in the two largest units that matter.

    Examples
    --------
    >>> [format_duration(seconds) for seconds in (0.04, 1.26, 59.96, 754, 7384)]
    ['under 0.1 s', '1.3 s', '1 min 0 s', '12 min 34 s', '2 h 3 min']
    """
    if seconds < 0.1:
        return "under 0.1 s"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
