import ast
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import banditrank

PACKAGES = [
    "banditrank",
    *(
        f"banditrank.{name}"
        for name in (
            *(
                "client",
                "counts",
                "dashboard",
                "engine",
                "estimators",
                "evaluation",
                "experiments",
                "logs",
                "logs.kdd2012",
                "model",
            ),
            *("policies", "policies.baselines", "service", "simulation", "solvers", "storage", "testing"),
            "utilities",
        )
    ),
]
PUBLIC_WITHOUT_EXPORTS = {
    "banditrank.errors",
    "banditrank.policies.schedules",
    "banditrank.service.strict_http",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_can_be_imported(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert sorted(set(module.__all__) - {"__version__"}) == dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_names_that_users_get(package: str) -> None:
    module = import_module(package)
    tree = ast.parse(Path(module.__file__).read_text())
    block, runtime = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        (alias.name, node.module.removeprefix(f"{package}."))
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    exports = ast.literal_eval(runtime.body[0].value.args[1])
    assert declared == {(name, source) for source, names in exports.items() for name in names}
    assert {name for name, _ in declared} == set(module.__all__) - {"__version__"}


def test_modules_that_are_not_public_start_with_an_underscore() -> None:
    public = {
        module.name
        for module in pkgutil.walk_packages(banditrank.__path__, "banditrank.")
        if not any(part.startswith("_") for part in module.name.split("."))
    }
    assert public == {*PACKAGES[1:], *PUBLIC_WITHOUT_EXPORTS}


def test_all_errors_can_be_imported_from_the_package() -> None:
    errors = import_module("banditrank.errors")
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert {name for name in classes if name.endswith("Error")} <= set(banditrank.__all__)


def test_class_names_are_unique() -> None:
    seen: dict[str, str] = {}
    for path in sorted(Path(banditrank.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                assert node.name not in seen, f"{node.name} in {path} and {seen[node.name]}"
                seen[node.name] = str(path)


def test_every_module_has_a_docstring() -> None:
    for module in pkgutil.walk_packages(banditrank.__path__, "banditrank."):
        assert import_module(module.name).__doc__, module.name
