"""Build the documentation site in ``output/site``: ``make docs``. Warnings are errors.

A build without changes does nothing, and one after a change of pages reads only those. After a change of the
package everything is built again, because notebooks and the gallery run its code. Only one process builds at
a time: another waits, and finds the site built.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "generated"
CODE = (ROOT / "src" / "banditrank", DOCS / "_extensions", DOCS / "gallery")
SITE = ROOT / "output" / "site"
DOCTREES = ROOT / "output" / "site-doctrees"
DIGESTS = DOCTREES / "digests"
LOCK = ROOT / "output" / "site.lock"
KERNEL_SETTINGS = ROOT / "output" / "ipython" / "profile_default" / "ipython_kernel_config.py"


def main() -> int:
    """Build the site and return the exit status."""
    with _locked():
        return _build()


@contextmanager
def _locked() -> Iterator[None]:
    """Wait until no other process builds the site."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build() -> int:
    code, pages = _digest(CODE), _digest([DOCS])
    built = DIGESTS.read_text().split() if DIGESTS.exists() else ["", ""]
    if built == [code, pages]:
        return 0
    if built[0] != code:
        for directory in (GENERATED, SITE, DOCTREES):
            shutil.rmtree(directory, ignore_errors=True)
    DIGESTS.unlink(missing_ok=True)  # a build that fails is repeated
    status = _run_sphinx()
    if status == 0:
        DIGESTS.write_text(f"{code} {pages}")
    return status


def _run_sphinx() -> int:
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "--jobs", "auto"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, "-d", DOCTREES, DOCS, SITE]
    # Kernels of notebooks warn about their connection to this machine.
    KERNEL_SETTINGS.parent.mkdir(parents=True, exist_ok=True)
    settings = ("c = get_config()", "c.IPKernelApp.log_level = 40", "c.HistoryManager.enabled = False", "")
    KERNEL_SETTINGS.write_text("\n".join(settings))
    # Compiles what the tests do, as they do: see tests/conftest.py.
    compiler = {"NUMBA_OPT": "1", "NUMBA_CPU_NAME": "generic"}
    environment = {**compiler, **os.environ, "IPYTHONDIR": str(KERNEL_SETTINGS.parents[1])}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _digest(directories: Iterable[Path]) -> str:
    """Return a digest of the names and contents of all files that are not generated."""
    digest = hashlib.sha256()
    for path in sorted(path for directory in directories for path in directory.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and GENERATED not in path.parents:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
