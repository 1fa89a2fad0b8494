"""Settings of the service from options, environment variables and a TOML file, in this order of precedence.

Reading the sources imports nothing heavy, so that a health check starts fast.
"""

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from banditrank._files import is_private
from banditrank.errors import InvalidInputError, UnknownNameError, one_line

if TYPE_CHECKING:
    from banditrank.service._settings import Settings

PREFIX = "BANDITRANK_"
"""Start of the names of all environment variables that configure the service."""

CONFIG_VARIABLE = "BANDITRANK_CONFIG"
"""Environment variable that holds the path of the TOML file."""

STORE_VARIABLE = "BANDITRANK_STORE"
"""Environment variable that holds the address of the store."""

STORE_FILE_VARIABLE = "BANDITRANK_STORE_FILE"
"""Environment variable that holds the path of a file with the address of the store."""

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8420
"""Address of the service by default."""

_KUBERNETES_VARIABLE = "BANDITRANK_SERVICE_HOST"
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

logger = logging.getLogger(__name__)


class GivenSetting(NamedTuple):
    """A setting that a file or an environment variable gives."""

    value: Any  # text if it comes from a variable
    source: str  # as errors name it


def variable_of(setting: str) -> str:
    """Return the environment variable of a setting.

    Examples
    --------
    >>> variable_of("max_streams")
    'BANDITRANK_MAX_STREAMS'
    """
    return PREFIX + setting.upper()


def given_settings(
    config: Path | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, GivenSetting]:
    """Return the settings that the file and the environment give; a variable overrides the file.

    Empty variables count as unset. Names and values are not checked.

    Parameters
    ----------
    config
        The TOML file; the one that `CONFIG_VARIABLE` names by default.
    environment
        The environment variables.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or is no TOML file.
    """
    source = "--config"
    if config is None and environment.get(CONFIG_VARIABLE):
        source, config = CONFIG_VARIABLE, Path(environment[CONFIG_VARIABLE])
    given = {} if config is None else _read_file(config, source)
    for name, text in environment.items():
        if name.startswith(PREFIX) and text and name not in (CONFIG_VARIABLE, STORE_FILE_VARIABLE):
            given[name.removeprefix(PREFIX).lower()] = GivenSetting(text, name)
    return given


def _read_file(path: Path, source: str) -> dict[str, GivenSetting]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError.from_os(source, "must be a readable file", path, error) from None
    except (ValueError, RecursionError) as error:  # of TOML or UTF-8
        raise InvalidInputError(source, f"must be a TOML file ({one_line(error)})", str(path)) from None
    return {name: GivenSetting(value, f"{path}: {name}") for name, value in values.items()}


@contextmanager
def load_settings(
    options: Mapping[str, Any],
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Iterator["Settings"]:
    """Yield the settings; errors about one of them, also those of the block, name its source.

    Parameters
    ----------
    options
        Settings that the command line gives.
    config
        The TOML file; the one that `CONFIG_VARIABLE` names by default.
    environment
        The environment variables.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or a setting is unknown or invalid.
    """
    from banditrank.service._settings import Settings  # noqa: PLC0415 - imports Numba
    from banditrank.storage._addresses import has_password  # noqa: PLC0415

    defaults = {one.name: one.default for one in fields(Settings)}
    check_variables(environment)
    given = given_settings(config, environment)
    for name, (value, source) in given.items():
        if name not in defaults:
            raise UnknownNameError(f"{source.removesuffix(name)}setting", name, defaults)
        if name == "store" and source != STORE_VARIABLE and isinstance(value, str) and has_password(value):
            path = source.removesuffix(": store")
            if not is_private(Path(path)):
                logger.warning("file with a password is accessible to other users: %s", path)
    given = {name: one for name, one in given.items() if name not in options}
    values = {
        name: _parse(value, defaults[name]) if source == variable_of(name) else value
        for name, (value, source) in given.items()
    }
    try:
        yield Settings(**values, **options)
    except InvalidInputError as error:
        if error.field not in given:
            raise
        raise InvalidInputError(given[error.field].source, error.rule, error.value) from None


def check_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Check that every environment variable with the prefix is known.

    Raises
    ------
    InvalidInputError
        If one is not; the message suggests the closest name.
    """
    from banditrank.service._settings import Settings  # noqa: PLC0415 - imports Numba

    if address := environment.get(_KUBERNETES_VARIABLE):
        rule = (
            "must be unset: Kubernetes sets it for a Service of this name unless enableServiceLinks is false"
        )
        raise InvalidInputError(_KUBERNETES_VARIABLE, rule, address)
    known = [*(variable_of(one.name) for one in fields(Settings)), CONFIG_VARIABLE, STORE_FILE_VARIABLE]
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            raise UnknownNameError("environment variable", name, known)


def _parse(text: str, default: Any) -> Any:
    """Return the value of a variable; text that cannot be parsed is left to the checks of `Settings`."""
    if isinstance(default, bool):
        return _BOOLEANS.get(text.lower(), text)
    if isinstance(default, tuple):
        return tuple(re.split(r"[\s,]+", text.strip(", \t\n")))
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            return text
    return text
