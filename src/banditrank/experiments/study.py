"""What a study is: a claim of a paper, the parts that test it, and how their data are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from banditrank.experiments.part import Part

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Frames: TypeAlias = "Mapping[str, pd.DataFrame]"
"""The data of a study's parts, by name."""

CommitStatus = Literal["agrees", "partly", "disagrees", "not checked"]


@dataclass(frozen=True, slots=True)
class Check:
    """A statement that the data bear out or not.

    Parameters
    ----------
    statement
        What the paper says, or what follows from it, as a sentence that can be false.
    holds
        Whether it is so; None if the data do not tell.
    evidence
        The figures that decide it.
    of
        Whose statement it is. Only the paper's decide whether a study agrees with it.
    """

    statement: str
    holds: bool | None
    evidence: str
    of: Literal["paper", "implementation"] = "paper"

    def __post_init__(self) -> None:
        """Take NumPy's booleans too, which JSON does not."""
        object.__setattr__(self, "holds", None if self.holds is None else bool(self.holds))


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows and columns."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that can be drawn in any colours.

    Parameters
    ----------
    name
        Of its files.
    caption
        What is to be seen.
    draw
        Draws on an empty figure.
    width, height
        In inches.
    """

    name: str
    caption: str
    draw: "Callable[[Figure], None]"
    width: float = 9.0
    height: float = 4.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What the data of a study say.

    Parameters
    ----------
    findings
        Two sentences.
    checks
        What is compared with the paper; they decide the verdict.
    figures
        Plain values for the summary.
    """

    findings: str
    checks: Sequence[Check]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> CommitStatus:
        """Agreement in a word."""
        answers = {check.holds for check in self.checks if check.of == "paper"}
        if answers <= {None}:
            return "not checked"
        if answers == {True}:
            return "agrees"
        return "partly" if True in answers else "disagrees"


class Sweep(Protocol):
    """What is run."""

    def __call__(self, seed: int, *, quick: bool) -> Sequence[Part]:
        """Return the parts."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study of the paper.

    Parameters
    ----------
    name, title
        What to call it, in commands and for people.
    claim
        What the paper says, in two sentences.
    sweep
        Returns the parts, given the seed and whether it is to be quick.
    read
        Returns what their data say.
    cut
        What a quick run leaves out, in words.
    heading
        What stands above the claim: whose it is.
    judged
        Whether what is found is held against the claim; if not, there is no verdict.
    """

    name: str
    title: str
    claim: str
    sweep: Sweep
    read: Callable[[Frames], Reading]
    cut: str
    heading: str = "The paper says"
    judged: bool = True
