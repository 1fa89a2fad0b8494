"""Names of custom policies and suites, which are also names of files."""

import re

from banditrank.errors import InvalidInputError

MAX_NAME_LENGTH = 64
TIMING_PREFIX = "time-of-"  # of the name of a timing job

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_name(field: str, name: object, label: str) -> str:
    """Return the name of a custom policy or suite.

    Parameters
    ----------
    field
        Name of the argument that it was given as, for errors.
    name
        The name.
    label
        How the user refers to the policy or suite, for errors.

    Raises
    ------
    InvalidInputError
        If it cannot be the name of a file on every system.

    Examples
    --------
    >>> check_name("policies", "epsilon-greedy", "my_module:EpsilonGreedy")
    'epsilon-greedy'
    """
    is_file_name = isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= MAX_NAME_LENGTH
    if not is_file_name or str(name).startswith(TIMING_PREFIX):
        allowed = f"at most {MAX_NAME_LENGTH} letters, digits, hyphens, dots and underscores"
        rule = f"must have a name of {allowed}, and {label} has another"
        raise InvalidInputError(field, rule, name)
    return str(name)


def to_name(text: str) -> str:
    """Return a text as a name: in lower case, with hyphens for everything but letters and digits.

    Examples
    --------
    >>> to_name("My shop, spring 2026")
    'my-shop-spring-2026'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_NAME_LENGTH].strip("-")
