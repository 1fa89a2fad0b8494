"""The reproductions by policy."""

from banditrank.experiments.compare.reproductions import safety
from banditrank.experiments.compare.reproductions.cascading import CASCADE_KL_UCB
from banditrank.experiments.compare.reproductions.diverse import RANKED_BANDITS
from banditrank.experiments.compare.reproductions.generic import BATCH_RANK, TOP_RANK, UNI_RANK
from banditrank.experiments.compare.reproductions.lagree import PBM_PIE, PBM_TS, PBM_UCB
from banditrank.experiments.compare.reproductions.unknown_positions import COMB_UCB1, GRAB, PB_MHB, PMED
from banditrank.experiments.study import Study

_TRIALS = (
    *(PBM_UCB, PBM_TS, PBM_PIE),
    *(TOP_RANK, BATCH_RANK, CASCADE_KL_UCB, UNI_RANK, RANKED_BANDITS),
    *(PB_MHB, GRAB, COMB_UCB1, PMED),
)

REPRODUCTIONS: dict[str, Study] = {
    **{trial.policy: trial.study() for trial in _TRIALS},
    "bubble-rank": safety.STUDY,
}
