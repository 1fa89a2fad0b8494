"""Run all campaigns in depth, print one table, and write it to docs/campaign.md.

Ctrl-C stops it; rerun the same command to resume with the parts that are not done. ``python -m campaigns
tests crashes`` runs some of the parts only: all parts of the tests, and the crashes.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from banditrank import __version__
from banditrank._files import atomic_write

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "output" / "campaign.json"
PAGE = ROOT / "docs" / "campaign.md"


class Part(NamedTuple):
    """A part of the campaign: a command that exits with 0 if nothing is wrong."""

    name: str
    checks: str
    command: tuple[str, ...]


class PartResult(NamedTuple):
    """Result of a part: its last line, and whether it passed."""

    name: str
    passed: bool
    summary: str
    minutes: float
    date: str
    revision: str


# Tests by directory, so that a campaign resumes within them.
TEST_DIRECTORIES = {
    "formulas": ("model", "counts", "utilities", "estimators"),
    "solvers": ("solvers",),
    "policies": ("policies",),
    "simulation": ("simulation",),
    "engine": ("engine", "storage", "client"),
    "service": ("service",),
    "dashboard": ("dashboard", "dashboard_package", "demo"),
}


def _tests(name: str, checks: str, *paths: str) -> Part:
    command = ("-m", "pytest", "--campaign", "--numprocesses=auto", "--dist=worksteal", "--quiet")
    return Part(f"tests-{name}", checks, (*command, *paths))


PARTS = (
    *(
        _tests(
            name, f"tests of {', '.join(directories)}", *(f"tests/{directory}" for directory in directories)
        )
        for name, directories in TEST_DIRECTORIES.items()
    ),
    _tests(
        "others",
        "all other tests, and the examples in the documentation",
        *(
            f"--ignore=tests/{directory}"
            for directories in TEST_DIRECTORIES.values()
            for directory in directories
        ),
    ),
    Part("certificates", "100,000 small instances against enumeration", ("benchmarks/certify.py", "100000")),
    Part(
        "worker-kills",
        "100 kills of workers in each state",
        ("-m", "campaigns.worker_kills", "--kills", "100"),
    ),
    Part("crashes", "40 kills of services, 20 on servers", ("-m", "campaigns.crashes", "--kills", "40")),
    # In a run of 20 minutes memory rose for twelve minutes, beyond the warm-up, and was level afterwards.
    Part("soak", "half of the capacity for 45 minutes", ("-m", "campaigns.soak", "--minutes", "45")),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are not done for this revision, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__.splitlines()[0])
    names = [part.name for part in PARTS]
    parser.add_argument(
        "parts", nargs="*", help=f"parts to run, all by default: tests (all of them), {', '.join(names)}"
    )
    requested = parser.parse_args(arguments).parts or names
    if unknown := set(requested) - {"tests", *names}:
        parser.error(f"part must be tests or one of {', '.join(names)}, got {min(unknown)!r}")
    chosen = [name for name in names if name in requested or name.split("-")[0] in requested]
    revision, results = _revision(), _load_results()
    for part in PARTS:
        done = results.get(part.name)
        if part.name not in chosen or (done and done.passed and done.revision == revision):
            continue
        print(f"campaign: {part.name}: {part.checks}", flush=True)
        try:
            results[part.name] = _run(part, revision)
        except KeyboardInterrupt:
            print("campaign: interrupted; rerun the same command to resume", file=sys.stderr)
            return 130
        _save(results)
    print(_table(results))
    return 0 if all(results[name].passed for name in chosen) else 1


def _run(part: Part, revision: str) -> PartResult:
    start, last = time.monotonic(), ""
    path = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(
        [sys.executable, *part.command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip().strip("=").strip() or last
    return PartResult(
        part.name,
        process.returncode == 0,
        last,
        round((time.monotonic() - start) / 60, 1),
        datetime.now(UTC).date().isoformat(),
        revision,
    )


def _revision() -> str:
    """Return the version and the commit, with a mark if files were changed since; the page does not count."""
    files = (".", f":(exclude){PAGE.relative_to(ROOT)}")
    commit = _git("log", "-1", "--format=%h", "--", *files)
    is_changed = bool(_git("status", "--porcelain", "--", *files))
    return f"{__version__} ({commit or 'unknown commit'}{'-dirty' if is_changed else ''})"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()


def _load_results() -> dict[str, PartResult]:
    if not RESULTS.exists():
        return {}
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: PartResult(**fields) for name, fields in stored.items()}


def _save(results: dict[str, PartResult]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    document = {name: result._asdict() for name, result in results.items()}
    for path, text in ((RESULTS, json.dumps(document, indent=2) + "\n"), (PAGE, page(results))):
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def page(results: dict[str, PartResult]) -> str:
    """Return the page of the documentation."""
    return (
        "# Campaign\n\n"
        "`make campaign` runs everything in depth, and writes this page: all tests, with every combination, "
        "thousands of property\n"
        "examples and large samples; small instances against enumeration; kills of services and servers; a "
        "service under load.\n\n"
        f"{_table(results)}\n"
    )


def _table(results: dict[str, PartResult]) -> str:
    rows = ["| part | checks | result | minutes | date | version |", "|---|---|---|---|---|---|"]
    for part in PARTS:
        if result := results.get(part.name):
            outcome = f"{'passed' if result.passed else 'FAILED'}: {result.summary.replace('|', '/')}"
            cells = (part.name, part.checks, outcome, str(result.minutes), result.date, result.revision)
        else:
            cells = (part.name, part.checks, "not run yet", "", "", "")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
