"""Figures of simulation results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from banditrank._extras import requires
from banditrank._figures import COLOURS, check_plot_path, escape_mathtext, style_axes, write_figure
from banditrank.errors import InvalidInputError
from banditrank.simulation._result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = {"personalized": "-", "equal": (0, (5, 2))}


def plot_regret(results: Sequence[SimulationResult], axes: "Axes | None" = None) -> "Axes":
    """Plot regret over rounds: the median of each policy, with each replication as a faint line.

    Both axes are logarithmic: linear regret, as of a replication that has locked in, has slope 1.

    Parameters
    ----------
    results
        Results to plot, labelled by policy.
    axes
        Axes to plot into; those of a new figure by default.

    Raises
    ------
    InvalidInputError
        If there are no results.
    """
    with requires("plots", "plotting"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    if not results:
        raise InvalidInputError("results", "must hold at least one result", results)
    if axes is None:
        axes = Figure(figsize=(7.5, 4.6), dpi=150, layout="constrained").add_subplot()
    for index, result in enumerate(results):
        colour, dashes = _style(index, result)
        axes.plot(result.checkpoints, result.regret.T, color=colour, linewidth=0.6, alpha=0.35)
        axes.plot(
            result.checkpoints,
            result.median,
            color=colour,
            linestyle=dashes,
            linewidth=2.2,
            label=escape_mathtext(result.label),
            zorder=3,
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.3)
    horizon = max(result.horizon for result in results)
    axes.set_xlim(min(10, horizon / 2), horizon)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("round")
    axes.set_ylabel("regret")
    axes.set_title("regret over time: median, and every replication", fontsize="medium", loc="left")
    axes.legend(frameon=False, fontsize="small", loc="upper left", handlelength=2.6)
    style_axes(axes)
    return axes


def plot_final_regret(results: Sequence[SimulationResult], axes: "Axes") -> None:
    """Plot the regret at the horizon: a dot for each replication and a bar at the median."""
    with requires("plots", "plotting"):
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - heavy, and optional

    for row, result in enumerate(results):
        colour, _ = _style(row, result)
        spread = np.random.default_rng(0).uniform(-0.22, 0.22, len(result.final_regret))
        axes.scatter(result.final_regret, row + spread, s=14, color=colour, alpha=0.6, linewidth=0, zorder=3)
        median = result.median[-1]
        axes.plot([median, median], [row - 0.36, row + 0.36], color=colour, linewidth=2.2, alpha=0.8)
    axes.set_yticks(range(len(results)), [_two_line_label(result) for result in results])
    axes.tick_params(axis="y", labelsize="small", length=0)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.margins(x=0.08)
    axes.set_xlabel("regret")
    axes.set_title("final regret of every replication", fontsize="medium", loc="left")
    style_axes(axes)
    low, high = axes.get_xlim()
    if sum(low <= tick <= high for tick in axes.get_xticks()) < 2:  # too few powers of ten
        axes.xaxis.set_major_locator(MaxNLocator(4))


def save_plot(results: Sequence[SimulationResult], path: str | Path, changes: str | None = None) -> None:
    """Plot results to a file.

    Parameters
    ----------
    results
        Results to plot.
    path
        File to write; its suffix is the format: png, svg, pdf.
    changes
        Name of the problem's changes, for the title.

    Raises
    ------
    InvalidInputError
        If there are no results, or the file cannot be written.
    """
    with requires("plots", "plotting"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    path = Path(path)
    check_plot_path(path)
    figure = Figure(figsize=(11, 4.8), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    plot_regret(results, left)
    plot_final_regret(results, right)
    first = results[0]
    count = max(len(result.replications) for result in results)
    made = f"seed {first.seed}, banditrank {first.version}"
    title = f"{first.problem_summary(changes)}: {first.horizon:,} rounds, {count} replications, {made}"
    figure.suptitle(escape_mathtext(title), x=0.01, ha="left", fontsize="large", wrap=True)
    write_figure(figure, path, title)


def _style(index: int, result: SimulationResult) -> tuple[str, Any]:
    return COLOURS[index % len(COLOURS)], DASHES[result.policy["treatment"]]


def _two_line_label(result: SimulationResult) -> str:
    """Return the label, with a line break after the policy's name."""
    name = result.policy["policy"]
    return escape_mathtext(f"{name}\n{result.label.removeprefix(f'{name}-')}")
