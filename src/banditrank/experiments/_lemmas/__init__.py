"""Lemmas 1 to 3 (3 is in the appendix): how often errors of estimates exceed the concentration bounds."""

from banditrank.experiments._lemmas.analysis import analyse
from banditrank.experiments._lemmas.sweep import QUICK_SCALE, sweep
from banditrank.experiments._study import Study

STUDY = Study(
    "lemmas",
    "Lemmas 1 to 3: the concentration bounds",
    "The estimated position preferences are off by more than a radius that the paper states at most with "
    "probability M K t^(−2ε), and the estimated item means with probability ε e^(1−ε) ln t. The share of a "
    "user type's arrivals times t is off by ε at most with probability exp(−2tε²).",
    sweep,
    analyse,
    QUICK_SCALE,
)
