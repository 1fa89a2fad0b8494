"""Print the notes of a release from CHANGELOG.md: ``python tools/release_notes.py 0.2.0``."""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def main() -> int:
    """Print the section of a version, without its heading, and return the exit status."""
    (version,) = sys.argv[1:]
    sections = re.split(r"^## \[(.+?)\].*$", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    notes = dict(zip(sections[::2], sections[1::2], strict=True))
    if version not in notes:
        print(f"version must be one of {', '.join(notes)}, got {version!r}", file=sys.stderr)
        return 2
    print(notes[version].strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
