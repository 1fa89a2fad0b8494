"""Figures of simulation results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from banditrank.errors import InvalidInputError
from banditrank.simulation.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = {"personalized": "-", "equal": (0, (5, 2))}


def plot_regret(results: Sequence[SimulationResult], axes: "Axes | None" = None) -> "Axes":
    """Draw the regret of results: medians, and bands from the 10% to the 90% quantile.

    Parameters
    ----------
    results
        What to draw; each is labelled by its policy.
    axes
        Where; a new figure when left out.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - Matplotlib is heavy

    if axes is None:
        axes = Figure(figsize=(7.5, 4.6), dpi=150, layout="constrained").add_subplot()
    for number, result in enumerate(results):
        colour = COLOURS[number % len(COLOURS)]
        dashes = DASHES[result.policy["treatment"]]
        label = _legend(result)
        axes.plot(
            result.checkpoints, result.median, color=colour, linestyle=dashes, linewidth=1.8, label=label
        )
        if len(result.replications) > 1:
            low, high = result.quantile(0.1), result.quantile(0.9)
            axes.fill_between(result.checkpoints, low, high, color=colour, alpha=0.13, linewidth=0)
    first = results[0]
    axes.set_xlabel("round")
    axes.set_ylabel("regret: median, 10% to 90%")
    axes.set_title(f"{first.problem.name}: {len(first.replications)} replications, seed {first.seed}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlim(0, first.horizon)
    axes.margins(y=0.05)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    return axes


def save_plot(results: Sequence[SimulationResult], path: str | Path) -> None:
    """Draw the regret of results to a file; its ending says which kind: png, svg, pdf."""
    path = Path(path)
    check_plot_path(path)
    figure = plot_regret(results).get_figure()
    assert figure is not None  # noqa: S101 - axes made by plot_regret have one
    try:
        figure.savefig(path)  # type: ignore[union-attr]
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise InvalidInputError("plot file", f"must be writable ({reason})", str(path)) from None


def check_plot_path(path: Path) -> None:
    """Raise an error unless the file's ending names a kind of picture."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInputError("plot file", "must end in .png, .svg or .pdf", str(path))


def _legend(result: SimulationResult) -> str:
    policy = result.policy
    parts = [policy["policy"], policy["treatment"]]
    if policy["utility"] not in (None, "utilitarian"):
        parts.append(policy["utility"])
    if policy["coefficient"] is not None:
        parts.append(f"c = {policy['coefficient']:g}")
    return ", ".join(parts)
