"""Build the documentation site: ``make docs``. Warnings are errors.

A second build reads only what changed. If the package or an extension of the site changed, everything is built again, because notebooks and
the gallery run its code.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "generated"
SITE = ROOT / "output" / "site"
DOCTREES = ROOT / "output" / "site-doctrees"
DIGEST = DOCTREES / "digest"
KERNEL_SETTINGS = ROOT / "output" / "ipython" / "profile_default" / "ipython_kernel_config.py"


def main() -> int:
    """Build the site and return the exit status."""
    digest = _digest()
    if not DIGEST.exists() or DIGEST.read_text() != digest:
        for directory in (GENERATED, SITE, DOCTREES):
            shutil.rmtree(directory, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "--jobs", "auto"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, "-d", DOCTREES, DOCS, SITE]
    KERNEL_SETTINGS.parent.mkdir(parents=True, exist_ok=True)
    KERNEL_SETTINGS.write_text("c = get_config()\nc.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n")
    environment = {**os.environ, "IPYTHONDIR": str(KERNEL_SETTINGS.parents[1])}
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if status:
        DIGEST.unlink(missing_ok=True)  # the next build reports the same warnings
    else:
        DIGEST.write_text(digest)
    return status


def _digest() -> str:
    """Return a digest of the code that the pages describe or run."""
    digest = hashlib.sha256()
    for directory in (ROOT / "src" / "banditrank", DOCS / "_extensions", DOCS / "gallery"):
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
