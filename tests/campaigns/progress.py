"""Progress of a campaign, on standard error."""

import sys


def show_progress(line: str) -> None:
    """Show a line in the place of the one before; below it where the output is not a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
    elif line:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def print_result(line: str) -> None:
    """Print a line on standard output, where progress does not disturb it."""
    show_progress("")
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
