"""Tests of Ctrl-C during calls of compiled functions."""

import signal
import subprocess
import sys
from types import FrameType

import pytest

from banditrank._interrupts import deferred_interrupts

# Numba calls `ctypes.cast` to unpack a generator. Here Ctrl-C comes during a call.
INTERRUPTED = """
import ctypes, signal, sys
import numpy as np
from banditrank import UCBRank, kdd2012, simulate, solve
from banditrank.policies import Policy

class FixedRanking(Policy):
    def rank(self, counts, user_type, *, rng=None, scratch=None):
        return np.arange(counts.n_positions)

def run():
    if sys.argv[1] == "solver":
        solve(kdd2012(), solver="enumeration")
    else:
        policy = UCBRank() if sys.argv[1] == "compiled" else FixedRanking()
        simulate(policy, kdd2012(), horizon=10, replications=1, seed=1)

def interrupted_cast(*arguments):
    global n_casts
    n_casts += 1
    if n_casts == interrupted:
        signal.raise_signal(signal.SIGINT)
    return cast(*arguments)

signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
cast, ctypes.cast, n_casts, interrupted = ctypes.cast, interrupted_cast, 0, 0
run()
for interrupted in range(1, n_casts + 1):
    n_casts = 0
    try:
        run()
    except KeyboardInterrupt:
        print(interrupted)
"""


@pytest.mark.parametrize("call", ["compiled", "interpreted", "solver"])
def test_ctrl_c_while_a_generator_is_unpacked(call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, call], capture_output=True, text=True, check=True
    )
    interrupted = done.stdout.split()
    assert interrupted == [str(number) for number in range(1, len(interrupted) + 1)]
    assert len(interrupted) >= 3


def test_a_signal_is_handled_after_the_block_and_the_handler_is_restored() -> None:
    calls = []

    def handle(number: int, _frame: FrameType | None) -> None:
        calls.append(number)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        with deferred_interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            assert calls == []
            interrupts.handle()
            interrupts.handle()
            assert len(calls) == 1
            signal.raise_signal(signal.SIGINT)
            assert len(calls) == 1
        assert len(calls) == 2
        assert signal.getsignal(signal.SIGINT) is handle
    finally:
        signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("default_interrupt")
def test_a_second_signal_is_handled_at_once() -> None:
    def block() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("not interrupted")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
