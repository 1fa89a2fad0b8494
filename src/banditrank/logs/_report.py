"""Report of a click log: everything that it tells, and what it cannot tell, as values, a page and figures."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from banditrank import __version__
from banditrank._files import atomic_writes
from banditrank._frames import FrameBackend
from banditrank._report_page.rendering import RenderedFigure, make_environment, render_figure
from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._fit import ClickModelFit, fit_click_model
from banditrank.logs._diagnosis import MAX_LISTED, LogDiagnosis, diagnose
from banditrank.logs._report_figures import report_figures
from banditrank.logs._report_tables import describe_periods, report_sections
from banditrank.logs._user_types import UserTypeAssessment, assess_user_types
from banditrank.logs._withholding import (
    KnownEvaluation,
    Withheld,
    evaluate_known,
    find_missing_items,
    find_withheld,
    withhold_estimates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    import polars as pl

REPORT_TARGETS = ("current", "personalized", "equal:utilitarian", "equal:nash")
"""What a report evaluates."""


@dataclass(frozen=True, slots=True, eq=False)
class LogReport:
    """Everything that a log tells.

    Attributes
    ----------
    cube
        Counts of the log.
    diagnosis
        What the log can tell.
    withheld
        What is not reported, and why.
    fit
        Fitted click model, without estimates that the log does not tell; None if the log has no click rates.
    user_types
        Which columns tell users apart; None if the log has no such column, or does not tell.
    evaluation
        What the current, personalized and equal rankings would have earned.
    """

    cube: ClickCube
    diagnosis: LogDiagnosis
    withheld: Withheld
    fit: ClickModelFit | None
    user_types: UserTypeAssessment | None
    evaluation: KnownEvaluation

    @property
    def rankings(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Recommended rankings: items by user type, by target; none if the log does not teach rankings."""
        if self.evaluation.evaluation is None:
            return {}
        return {
            target.name: dict(zip(self.cube.user_types, target.rankings, strict=True))
            for target in self.evaluation.evaluation
            if target.rankings
        }

    def summary(self) -> str:
        """Return the report as text."""
        parts = [self.diagnosis.summary()]
        if self.fit is not None:
            parts.append(self.fit.summary())
        if self.user_types is not None:
            parts.append(self.user_types.summary())
        if self.evaluation.evaluation is not None:
            parts.append(self.evaluation.evaluation.summary())
        parts += [f"{name}: not identified. {reason}" for name, reason in self.evaluation.withheld.items()]
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values of JSON; None stands for what is not identified."""
        cube = self.cube
        return {
            "version": __version__,
            "verdict": self.diagnosis.verdict,
            "log": {
                "displays": float(cube.cells.displays.sum()),
                "clicks": float(cube.cells.clicks.sum()),
                "visits": cube.n_visits if cube.has_visits else None,
                "type_columns": list(cube.type_columns),
                "user_types": list(cube.user_types),
                "n_items": len(cube.items),
                "n_positions": cube.n_positions,
                "periods": list(cube.periods),
                **cube.metadata,
            },
            "diagnosis": self.diagnosis.to_dict(),
            "withheld": {
                "positions": self.withheld.positions,
                "items": self.withheld.items,
                "rankings": self.withheld.rankings,
            },
            "fit": None if self.fit is None else self.fit.to_dict(),
            "user_types": None if self.user_types is None else self.user_types.to_dict(),
            "evaluation": self.evaluation.to_dict(),
            "rankings": {
                target: {name: list(items) for name, items in types.items()}
                for target, types in self.rankings.items()
            },
        }

    @overload
    def to_frames(self, *, backend: Literal["pandas"] = "pandas") -> "dict[str, pd.DataFrame]": ...

    @overload
    def to_frames(self, *, backend: Literal["polars"]) -> "dict[str, pl.DataFrame]": ...

    def to_frames(self, *, backend: FrameBackend = "pandas") -> "Mapping[str, pd.DataFrame | pl.DataFrame]":
        """Return the parts of the report as data frames: diagnosis, estimates, user_types and evaluation.

        Parameters
        ----------
        backend
            ``pandas`` or ``polars``.

        Raises
        ------
        MissingDependencyError
            If the library is not installed.
        UnknownNameError
            If there is no backend of this name.
        """
        parts = {
            "diagnosis": self.diagnosis,
            "estimates": self.fit,
            "user_types": self.user_types,
            "evaluation": self.evaluation.evaluation,
        }
        return {name: part.to_frame(backend=backend) for name, part in parts.items() if part is not None}

    def save(
        self,
        path: str | Path,
        *,
        figures: str | Path | None = None,
        json_file: str | Path | None = None,
    ) -> None:
        """Write the report to one file: an HTML page that works offline, or JSON if the name ends in .json.

        All files are written or none: an interruption or a full disk leaves earlier ones intact.

        Parameters
        ----------
        path
            File to write.
        figures
            Directory to write all figures to as well, as PNG and SVG.
        json_file
            File to write all values to as well, as JSON.

        Raises
        ------
        InvalidInputError
            If the name ends in neither .html nor .json, or a file cannot be written.
        MissingDependencyError
            If Matplotlib or Jinja is not installed, for a page or figures.
        """
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm", ".json"):
            raise InvalidInputError("report file", "must end in .html or .json", str(path))
        is_json = target.suffix.lower() == ".json"
        rendered = [] if is_json and figures is None else self._render()
        content = self._json() if is_json else self._page(rendered)
        files = [_ReportFile("report file", target, content.encode())]
        if figures is not None:
            files += _figure_files(Path(figures), rendered)
        if json_file is not None:
            files.append(_ReportFile("json_file", Path(json_file), self._json().encode()))
        _write_files(files)

    def save_figures(self, directory: str | Path) -> list[Path]:
        """Write all figures as PNG and SVG to a directory, and return the files.

        All files are written or none.

        Raises
        ------
        InvalidInputError
            If a file cannot be written.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        files = _figure_files(Path(directory), self._render())
        _write_files(files)
        return [file.path for file in files]

    def _json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def _render(self) -> list[RenderedFigure]:
        return [render_figure(figure) for figure in report_figures(self)]

    def _page(self, rendered: Sequence[RenderedFigure]) -> str:
        figures = {figure.source.name: figure for figure in rendered}
        cells = self.cube.cells
        return (
            make_environment("banditrank.logs")
            .get_template("log_report.html")
            .render(
                report=self,
                sections=report_sections(self),
                figures=figures,
                version=__version__,
                max_swaps=MAX_LISTED,
                periods=describe_periods(self.cube),
                selection=self.cube.metadata.get("selection", ()),
                displays=f"{cells.displays.sum():,.0f}",
                clicks=f"{cells.clicks.sum():,.0f}",
                visits=f"{self.cube.n_visits:,.0f}" if self.cube.has_visits else "",
            )
        )


class _ReportFile(NamedTuple):
    """A file of a report: its name in errors, its path and its content."""

    field: str
    path: Path
    content: bytes


def _figure_files(directory: Path, rendered: Sequence[RenderedFigure]) -> list[_ReportFile]:
    """Make the directory of figures, and return its files."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError.from_os("figures", "must be writable", directory, error) from None
    return [
        _ReportFile("figures", directory / f"{figure.source.name}.{suffix}", content)
        for figure in rendered
        for suffix, content in (("png", figure.png), ("svg", figure.light_svg))
    ]


def _write_files(files: Sequence[_ReportFile]) -> None:
    """Write all files or none; raise the error of the first that cannot be written."""
    file = files[0]
    try:
        with atomic_writes() as stage:
            for file in files:
                stage(file.path).write_bytes(file.content)
    except OSError as error:
        raise InvalidInputError.from_os(file.field, "must be writable", file.path, error) from None


def log_report(cube: ClickCube, *, level: float = 0.95) -> LogReport:
    """Return everything that a log tells, and what it cannot tell.

    Parameters
    ----------
    cube
        Counts of the log.
    level
        Confidence level of the intervals.

    Raises
    ------
    InvalidInputError
        If the log has no displays or too many cells, or the level is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)
    >>> chances = np.array([0.5, 0.3, 0.2])[items] * [1.0, 0.6, 0.4]
    >>> cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random((20_000, 3)) < chances)
    >>> report = log_report(cube)
    >>> print(report.diagnosis.verdict)
    The log tells positions and items apart: the worth of positions is known to ±10%.
    >>> report.rankings["personalized"]
    {'type-1': ('item-1', 'item-2', 'item-3')}
    """
    diagnosis = diagnose(cube)
    withheld = find_withheld(diagnosis)
    fit = user_types = None
    if not withheld.items:
        fit = withhold_estimates(fit_click_model(cube, level=level), diagnosis)
    if not withheld.rankings and len(cube.type_values) > 1:
        user_types = assess_user_types(cube)
    targets: tuple[str, ...] = REPORT_TARGETS
    if not withheld.rankings:
        withheld = Withheld(withheld.positions, withheld.items, find_missing_items(cube))
    if withheld.rankings:
        targets = ("current",)
    evaluation = evaluate_known(cube, diagnosis, targets, level=level)
    if withheld.rankings:
        hidden = {**dict.fromkeys(REPORT_TARGETS[1:], withheld.rankings), **evaluation.withheld}
        evaluation = KnownEvaluation(evaluation.evaluation, hidden)
    return LogReport(cube, diagnosis, withheld, fit, user_types, evaluation)
