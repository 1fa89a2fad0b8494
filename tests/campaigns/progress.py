"""Progress of a campaign, on standard error."""

import sys


def show_progress(line: str) -> None:
    """Show a progress line, which replaces the previous one on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
    elif line:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def print_result(line: str) -> None:
    """Print a result line to standard output."""
    show_progress("")
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
