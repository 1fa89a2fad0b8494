"""Additive counts of displays, rewards and arrivals, from which policies learn."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.counts._click_cube import ClickCube, merge_cubes
    from banditrank.counts._counts import Counts
    from banditrank.counts._cube_files import load_cube
    from banditrank.counts._feature_statistics import FeatureStatistics
    from banditrank.counts._forgetting import Forgetting, as_forgetting, discount, sliding_window

__all__ = [
    "ClickCube",
    "Counts",
    "FeatureStatistics",
    "Forgetting",
    "as_forgetting",
    "discount",
    "load_cube",
    "merge_cubes",
    "sliding_window",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_feature_statistics": ("FeatureStatistics",),
            "_click_cube": (
                "ClickCube",
                "merge_cubes",
            ),
            "_counts": ("Counts",),
            "_cube_files": ("load_cube",),
            "_forgetting": (
                "Forgetting",
                "as_forgetting",
                "discount",
                "sliding_window",
            ),
        },
    )
