"""The steps of deploy/Dockerfile work: there is no container engine, so a test takes the same steps."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import httpx
import pytest
from helpers.dockerfile import environment_of, read_stages
from helpers.servers import free_port

import banditrank

BASH = shutil.which("bash") or "bash"
ROOT = Path(banditrank.__file__).parents[2]
BUILD, FINAL = read_stages(ROOT / "deploy" / "Dockerfile")
PREFIX = "/opt/banditrank"
MAX_WAIT_SECONDS = 600.0
ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
THIS_PROGRAM = [sys.executable, "-c", "from banditrank._cli.main import main; main()"]


def copied() -> list[str]:
    """Return the sources that the build copies from the project."""
    return [source for one in BUILD if one.name == "COPY" for source in one.words[:-1]]


def test_copied_files_exist_or_are_pinned() -> None:
    pinned = re.findall(r"--output-file (\S+)", (ROOT / "Makefile").read_text())
    assert copied()
    for source in copied():
        assert (ROOT / source).exists() or source in pinned, source


def test_dockerignore_admits_what_is_copied_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().split("\n")
    admitted = [line[1:] for line in lines if line.startswith("!")]
    for source in copied():
        assert any(fnmatch(admittance, f"{source}*") for admittance in admitted), source
    assert "*" in lines
    assert all(any(one.startswith(source) for source in copied()) for one in admitted)


def test_both_stages_compile_for_the_same_processor_and_cache() -> None:
    build, final = environment_of(BUILD), environment_of(FINAL)
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME"):
        assert build[name] == final[name]
    assert build["NUMBA_CPU_NAME"] == "generic"
    assert build["NUMBA_CACHE_DIR"].startswith(PREFIX), "it is copied with the environment"


def test_the_container_has_no_privileges() -> None:
    assert [one.text for one in FINAL if one.name == "USER"] == ["10001:10001"]
    created = next(one.text for one in FINAL if one.name == "RUN")
    assert "--uid 10001" in created
    assert "--gid 10001" in created


def command(name: str) -> list[str]:
    """Return the command of an instruction without the program's name."""
    (instruction,) = [one for one in FINAL if one.name == name]
    return instruction.words


def container_environment(port: int, **changes: str) -> dict[str, str]:
    own = {name: value for name, value in environment_of(FINAL).items() if name != "PATH"}
    return {**os.environ, **own, "BANDITRANK_PORT": str(port), **changes}


@contextmanager
def started(
    program: list[str], environment: dict[str, str], directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run what the container runs, until it is ready by its own health check."""
    assert command("ENTRYPOINT") == ["banditrank"]
    assert command("HEALTHCHECK") == ["banditrank", "health"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *words], cwd=directory, env=environment, capture_output=True, text=True, check=False
        )

    assert run("health").returncode == 1, "nothing runs yet"
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([*program, *command("CMD")], cwd=directory, env=environment, stderr=log)
        try:
            while (health := run("health", "--ready")).returncode:
                assert process.poll() is None, (directory / "log").read_text()
            assert health.stdout == "ready\n"
            alive = run(*command("HEALTHCHECK")[1:])
            assert (alive.returncode, alive.stdout) == (0, "ok\n")
            yield process
        finally:
            process.kill()
            process.wait()


def check_service(program: list[str], environment: dict[str, str], directory: Path) -> list[dict]:
    """Start the service, rank and report with a key, stop it, and return its log."""
    created = subprocess.run(
        [*program, "keys", "create", "shop", "--rights", "rank,administer"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    with started(program, environment, directory) as process:
        address = f"http://127.0.0.1:{environment['BANDITRANK_PORT']}"
        key = {"authorization": f"Bearer {created.stdout.strip()}"}
        with httpx.Client(base_url=address, timeout=MAX_WAIT_SECONDS) as client:
            assert client.get("/v1/surfaces").status_code == 401, "beyond loopback, keys are required"
            client.headers.update(key)
            assert client.post("/v1/surfaces", json=ADS).status_code == 201
            shown = client.post("/v1/surfaces/ads/rankings", json={"user_type": "everybody"}).json()
            response = client.post("/v1/feedback", json={"ranking": shown["id"]})
            assert response.json() == {"status": "counted"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) in (0, 143, -signal.SIGTERM)
    lines = [json.loads(line) for line in (directory / "log").read_text().splitlines()]
    assert lines[-1]["message"] != "service started"
    assert "service stopped" in [line["message"] for line in lines]
    assert (directory / "banditrank.db").exists(), "the default store is in the working directory"
    return lines


def test_the_container_serves_as_its_environment_says(tmp_path: Path) -> None:
    """Take the steps of the last stage, with this package and its cache."""
    kept = {name: os.environ.get(name) for name in ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME")}
    environment = container_environment(free_port())
    for name, value in kept.items():
        environment.pop(name)
        environment |= {} if value is None else {name: value}
    check_service(THIS_PROGRAM, environment, tmp_path)


@pytest.mark.campaign
def test_an_image_is_built_warmed_and_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all steps in a clean directory; installed packages stand for those of the requirement file."""
    prefix, source = tmp_path / "opt" / "banditrank", tmp_path / "build"
    monkeypatch.delenv("PYTHONPATH", raising=False)  # it would replace the installed package
    environment = {**os.environ, **environment_of(BUILD), "NUMBA_CACHE_DIR": str(prefix / "cache")}
    source.mkdir()
    site_packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for one in BUILD[1:]:
        if one.name == "COPY":
            *sources, _ = one.words
            for each in sources:
                if (ROOT / each).exists():
                    subprocess.run(["cp", "--recursive", ROOT / each, source], check=True)  # noqa: S607
        elif one.name == "RUN" and "requirements" in one.text:
            (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        elif one.name == "RUN":
            step = one.text.replace(PREFIX, str(prefix)).replace(
                "python -m venv", f"{sys.executable} -m venv"
            )
            step = step.replace("--no-build-isolation", "--no-build-isolation --no-index")
            done = subprocess.run(
                [BASH, "-c", step], cwd=source, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    assert re.search(r"^compiled [3-6] of 6 kinds", done.stdout, re.MULTILINE), "the last step warms"
    for file in prefix.rglob("*"):  # as a layer of an image does
        if file.is_file() and not file.is_symlink():
            seconds = int(file.stat().st_mtime)
            os.utime(file, (seconds, seconds))
    located = [str(prefix / "bin" / "python"), "-c", "import banditrank; print(banditrank.__file__)"]
    found = subprocess.run(located, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert Path(found.stdout.strip()).is_relative_to(prefix)
    program = [str(prefix / "bin" / "banditrank")]
    again = subprocess.run([*program, "warm"], env=environment, capture_output=True, text=True, check=True)
    assert again.stdout.startswith("everything is compiled: 6 kinds")
    work = tmp_path / "work"
    work.mkdir()
    served = container_environment(free_port(), NUMBA_CACHE_DIR=str(prefix / "cache"))
    lines = check_service(program, served, work)
    assert "compilation started" not in [line["message"] for line in lines]
