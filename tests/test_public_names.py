import ast
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import banditrank


def test_every_public_name_can_be_imported() -> None:
    for name in banditrank.__all__:
        assert getattr(banditrank, name) is not None
    assert sorted(banditrank.__all__) == dir(banditrank)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        banditrank.nothing  # noqa: B018


def test_tools_see_the_names_that_users_get() -> None:
    tree = ast.parse(Path(banditrank.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.name: node.module.removeprefix("banditrank.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert declared == banditrank._EXPORTS


def test_every_module_says_what_it_is_for() -> None:
    for module in pkgutil.walk_packages(banditrank.__path__, "banditrank."):
        assert import_module(module.name).__doc__, module.name
