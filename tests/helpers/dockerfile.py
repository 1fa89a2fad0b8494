"""Instructions of a Dockerfile, as far as deploy/Dockerfile uses them."""

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    """An instruction and its text."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The text as a list: of JSON, or of a shell."""
        listed = re.search(r"\[.*\]$", self.text)
        return list(json.loads(listed[0])) if listed else shlex.split(self.text)


def read_stages(path: Path) -> list[list[Instruction]]:
    """Return the instructions of each stage, without those before the first."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: list[list[Instruction]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(Instruction(name, " ".join(rest.split())))
    return stages


def environment_of(stage: list[Instruction]) -> dict[str, str]:
    """Return the variables that ENV instructions set."""
    pairs = [word.partition("=") for one in stage if one.name == "ENV" for word in one.words]
    return {name: value for name, _, value in pairs}
