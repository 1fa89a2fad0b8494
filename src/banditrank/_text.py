"""Text of messages and tables: numbers with nouns, lists of names, and shortened names."""

from collections.abc import Sequence

MAX_LENGTH = 80
"""Number of characters of a name or a value in messages and tables."""

MAX_NAMES = 5
"""Number of names that a message lists."""

MAX_DESCRIPTION = 200
"""Number of characters of a description that contains shortened names."""


def plural(count: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "item"), plural(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shorten(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return the beginning of a text that is too long.

    Examples
    --------
    >>> shorten("news"), shorten("news and sports", max_length=6)
    ('news', 'news …')
    """
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def list_names(
    names: Sequence[str],
    max_names: int = MAX_NAMES,
    *,
    separator: str = ", ",
    last: str | None = None,
    max_length: int = MAX_LENGTH,
) -> str:
    """Return the first names as text, shortened, and how many there are besides.

    Parameters
    ----------
    names
        Names.
    max_names
        Number of names to list.
    separator
        Text between two names.
    last
        Text before the last name, if all are listed; that between others by default.
    max_length
        Number of characters of a name.

    Examples
    --------
    >>> list_names(["a", "b"]), list_names(["a", "b"], last=" and "), list_names("abcdefg")
    ('a, b', 'a and b', 'a, b, c, d, e and 2 more')
    """
    *others, final = [shorten(name, max_length) for name in names[:max_names]] or [""]
    if len(names) > max_names:
        return f"{separator.join([*others, final])} and {len(names) - max_names:,} more"
    return f"{separator.join(others)}{separator if last is None else last}{final}" if others else final
