"""The wheel and the source distribution contain everything that an installed program needs."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from packaging.requirements import Requirement

import banditrank

ROOT = Path(banditrank.__file__).parents[2]
PACKAGE = ROOT / "src" / "banditrank"
BUNDLE = "swagger-ui-bundle.js"


# Without the variable an installed package is found before the sources.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel, built from the source distribution, and the source distribution."""
    target = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, ROOT)
    (wheel,), (source,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def clean_python(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel, and this environment's other packages."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    installer = ("-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps")
    run(sys.executable, *installer, distributions[0])
    site_packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # The .pth files in this directory, as of an editable install, are not read.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_contains_every_file_of_the_package(distributions: tuple[Path, Path]) -> None:
    with ZipFile(distributions[0]) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("banditrank/")}
    files = {
        f"banditrank/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == files


def test_the_wheel_names_its_licences_and_contains_them(distributions: tuple[Path, Path]) -> None:
    with ZipFile(distributions[0]) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        lines = wheel.read(metadata).decode().splitlines()
        licences = {
            name.partition(".dist-info/licenses/")[2]: wheel.read(name)
            for name in wheel.namelist()
            if ".dist-info/licenses/" in name
        }
    assert "License-Expression: MIT AND Apache-2.0" in lines
    vendored = "src/banditrank/service/swagger_ui"
    names = ["LICENSE", *(f"{vendored}/{name}" for name in ("LICENSE", "NOTICE", f"{BUNDLE}.LICENSE.txt"))]
    assert licences == {name: (ROOT / name).read_bytes() for name in names}


def test_the_metadata_describe_the_package(distributions: tuple[Path, Path]) -> None:
    with ZipFile(distributions[0]) as wheel:
        folder = f"banditrank-{banditrank.__version__}.dist-info"
        metadata = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert (metadata["Name"], metadata["Version"]) == ("banditrank", banditrank.__version__)
    assert metadata["Summary"] == banditrank.__doc__.splitlines()[0]
    assert metadata["Author"] in (ROOT / "LICENSE").read_text()
    assert metadata.get_all("Project-URL") == ["Paper, https://arxiv.org/abs/2311.04528"]
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert metadata.get_payload(decode=True).decode().strip() == (ROOT / "README.md").read_text().strip()
    assert {"learning to rank", "bandits"} <= set(metadata["Keywords"].split(","))
    versions = {name.rpartition(" ")[2] for name in metadata.get_all("Classifier") if ":: 3." in name}
    matrix = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert versions == set(re.findall(r'"(3\.\d+)"', matrix)), "versions of Python that are tested"
    assert metadata["Requires-Python"] == f">={min(versions)}"


def test_the_requirements_of_the_wheel_can_be_installed(distributions: tuple[Path, Path]) -> None:
    """Every requirement has a version that is installed here, which the tests run with."""
    with ZipFile(distributions[0]) as wheel:
        folder = f"banditrank-{banditrank.__version__}.dist-info"
        requires = message_from_bytes(wheel.read(f"{folder}/METADATA")).get_all("Requires-Dist")
    core = [Requirement(one) for one in requires if "extra" not in one]
    assert core
    for requirement in core:
        assert version(requirement.name) in requirement.specifier, str(requirement)


def test_the_source_distribution_has_the_changelog_and_the_citation(
    distributions: tuple[Path, Path],
) -> None:
    with tarfile.open(distributions[1]) as source:
        names = {Path(name).name for name in source.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"} <= names


def test_the_installed_program_is_that_of_the_wheel(clean_python: Path, tmp_path: Path) -> None:
    code = "import banditrank; print(banditrank.__file__)"
    assert Path(run(clean_python, "-c", code, cwd=tmp_path).strip()).is_relative_to(clean_python.parents[1])
    said = f"banditrank {banditrank.__version__}\n"
    assert run(clean_python.with_name("banditrank"), "--version", cwd=tmp_path) == said
    assert run(clean_python, "-m", "banditrank", "--version", cwd=tmp_path) == said


def test_the_installed_service_has_its_pages(clean_python: Path, tmp_path: Path) -> None:
    with serving(clean_python, tmp_path) as address:
        for page in ("/", "/docs", "/openapi.json", "/healthz"):
            assert httpx.get(address + page, timeout=60).status_code == 200, page


@contextmanager
def serving(python: Path, directory: Path) -> Iterator[str]:
    command = [python.with_name("banditrank"), "serve", "--store", "memory:", "--port", "0"]
    with subprocess.Popen(
        list(map(str, command)), cwd=directory, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines = map(json.loads, process.stderr)
            yield next(line["address"] for line in lines if line["message"] == "service listening")
        finally:
            process.terminate()


def test_release_notes_are_a_section_of_the_changelog() -> None:
    program = ROOT / "tools" / "release_notes.py"
    notes = run(sys.executable, program, banditrank.__version__)
    assert notes in (ROOT / "CHANGELOG.md").read_text()
    assert notes.startswith("### Breaking")
    unknown = subprocess.run([sys.executable, str(program), "9.9"], capture_output=True, check=False)
    assert unknown.returncode == 2
    assert re.fullmatch(rb"version must be one of .*0\.2\.0.*, got '9.9'\n", unknown.stderr)


def test_the_changelog_has_one_section_for_each_kind_of_change() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        assert re.match(r"\[Unreleased\]\n|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d\n", section), section[:40]
        kinds = re.findall(r"^### (.+)$", section, flags=re.MULTILINE)
        assert len(set(kinds)) == len(kinds)
        assert set(kinds) <= {"Breaking", "Renamed", "Added", "Changed", "Fixed", "Removed", "Security"}
