"""An addition to the paper: equal treatment by one lottery over rankings for all user types."""

from banditrank.experiments._lotteries.analysis import analyse
from banditrank.experiments._lotteries.sweep import QUICK_SCALE, sweep
from banditrank.experiments._study import Study

STUDY = Study(
    "lotteries",
    "An addition: one lottery for all",
    "The paper has no lotteries. If all users draw from the same lottery over rankings, treatment is still "
    "equal, and where tastes conflict the expected values are fairer than those of any fixed ranking; "
    "ThompsonRank learns the best lottery with sub-linear regret.",
    sweep,
    analyse,
    QUICK_SCALE,
    claim_heading="We add",
    has_agreement=False,
)
