"""Mapping of a log: a TOML file with values of the options that name columns."""

import tomllib
from pathlib import Path
from typing import Any

from banditrank._cli.command import split_names
from banditrank.errors import InvalidInputError, UnknownNameError, one_line

_LISTS = {"type": "user_type", "items": "items", "without": "without"}
_NUMBERS = {"first-position": "first_position"}
_TEXTS = {
    **{name: name for name in ("item", "position", "clicked", "session", "user", "time", "propensity")},
    **{name: name for name in ("displays", "clicks", "delimiter", "period", "users")},
    "clicked-item": "clicked_item",
    "format": "file_format",
    "bad-rows": "bad_rows",
}
_PARAMETERS = {**_LISTS, **_TEXTS, **_NUMBERS}


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the values of options in a TOML file, by parameter.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or a value has another type than its option.
    UnknownNameError
        If there is no such option.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError.from_os("--mapping", "must be readable", path, error) from None
    except (ValueError, RecursionError) as error:  # of TOML or UTF-8
        reason = one_line(error)
        raise InvalidInputError("--mapping", f"must be a TOML file ({reason})", str(path)) from None
    for option in document:
        if option not in _PARAMETERS:
            raise UnknownNameError(f"option in {path.name}", option, _PARAMETERS)
    return {
        _PARAMETERS[option]: _check_value(f"{path.name}: {option}", option, value)
        for option, value in document.items()
    }


def _check_value(where: str, option: str, value: object) -> object:
    if option in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInputError(where, "must be a whole number", value)
        return value
    if option in _TEXTS:
        if not isinstance(value, str):
            raise InvalidInputError(where, "must be text", value)
        return value
    names = split_names([value]) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(where, "must be text or a list of texts", value)
    return names[0] if option == "items" and len(names) == 1 else names
