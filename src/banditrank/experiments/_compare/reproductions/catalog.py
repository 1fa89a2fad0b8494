"""Reproductions by policy."""

from banditrank.experiments._compare.reproductions import hossain2021, li2019
from banditrank.experiments._compare.reproductions.chen2016 import CUCB
from banditrank.experiments._compare.reproductions.chen2022 import FTRL_PBM
from banditrank.experiments._compare.reproductions.gauthier2021_grab import GRAB
from banditrank.experiments._compare.reproductions.gauthier2021_pb_mhb import PB_MHB
from banditrank.experiments._compare.reproductions.gauthier2022 import UNI_RANK
from banditrank.experiments._compare.reproductions.komiyama2017 import PMED
from banditrank.experiments._compare.reproductions.kveton2015_cascading import CASCADE_KL_UCB
from banditrank.experiments._compare.reproductions.kveton2015_combinatorial import COMB_UCB1
from banditrank.experiments._compare.reproductions.lagree2016 import PBM_PIE, PBM_TS, PBM_UCB
from banditrank.experiments._compare.reproductions.lattimore2018 import TOP_RANK
from banditrank.experiments._compare.reproductions.radlinski2008 import RANKED_BANDITS
from banditrank.experiments._compare.reproductions.wang2018 import CTS
from banditrank.experiments._compare.reproductions.zhong2021 import CASCADE_TS
from banditrank.experiments._compare.reproductions.zoghi2017 import BATCH_RANK
from banditrank.experiments._study import Study

_REGRET_REPRODUCTIONS = (
    *(PBM_UCB, PBM_TS, PBM_PIE),
    *(TOP_RANK, BATCH_RANK, CASCADE_KL_UCB, CASCADE_TS, UNI_RANK, RANKED_BANDITS),
    *(PB_MHB, GRAB, COMB_UCB1, PMED, CUCB, CTS, FTRL_PBM),
)

REPRODUCTIONS: dict[str, Study] = {
    **{reproduction.policy: reproduction.study() for reproduction in _REGRET_REPRODUCTIONS},
    "bubble-rank": li2019.STUDY,
    "nash-ucb": hossain2021.STUDY,
}
