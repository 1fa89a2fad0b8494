"""What a page is about: the head of it, and what it is called."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Publication:
    """A kind of report.

    Parameters
    ----------
    kind
        What a directory of it is called.
    title
        Of the page.
    command
        What makes one.
    template
        The file of the page.
    """

    kind: str
    title: str
    command: str
    template: str


REPRODUCTION = Publication(
    "reproduction", "Reproducing the paper", "banditrank reproduce", "page_of_reproduction.html"
)

COMPARISON = Publication("comparison", "Comparing policies", "banditrank compare", "page_of_comparison.html")
