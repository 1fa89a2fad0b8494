"""The wheel and the source distribution contain everything that an installed program needs."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

import banditrank

ROOT = Path(banditrank.__file__).parents[2]
PACKAGE = ROOT / "src" / "banditrank"
BUNDLE = "swagger-ui-bundle.js"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
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


def test_the_installed_program_is_that_of_the_wheel(clean_python: Path, tmp_path: Path) -> None:
    code = "import banditrank; print(banditrank.__file__)"
    assert Path(run(clean_python, "-c", code, cwd=tmp_path).strip()).is_relative_to(clean_python.parents[1])
    program = clean_python.with_name("banditrank")
    assert run(program, "--version", cwd=tmp_path) == f"banditrank {banditrank.__version__}\n"


def test_the_installed_service_has_its_pages(clean_python: Path, tmp_path: Path) -> None:
    with serving(clean_python, tmp_path) as address:
        for page in ("/", "/docs", "/openapi.json", "/healthz"):
            assert httpx.get(address + page, timeout=60).status_code == 200, page


@contextmanager
def serving(python: Path, directory: Path) -> Iterator[str]:
    command = [python.with_name("banditrank"), "serve", "--store", "memory:", "--port", "0"]
    with subprocess.Popen(
        list(map(str, command)), cwd=directory, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines = map(json.loads, process.stderr)
            yield next(line["address"] for line in lines if line["message"] == "service listening")
        finally:
            process.terminate()


def test_release_notes_are_a_section_of_the_changelog() -> None:
    program = ROOT / "tools" / "release_notes.py"
    notes = run(sys.executable, program, "Unreleased")
    assert notes in (ROOT / "CHANGELOG.md").read_text()
    assert notes.startswith("### ")
    unknown = subprocess.run([sys.executable, str(program), "9.9"], capture_output=True, check=False)
    assert unknown.returncode == 2
    assert unknown.stderr == b"version must be one of Unreleased, got '9.9'\n"
