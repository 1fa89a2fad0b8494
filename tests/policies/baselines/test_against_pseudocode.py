"""The compiled policies against the papers' pseudocode in plain Python."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
import pytest
from helpers.baseline_runs import ManualRun

from banditrank.policies._base import CompiledPolicy
from banditrank.policies.baselines._batch_rank import BatchRank
from banditrank.policies.baselines._bubble_rank import BubbleRank
from banditrank.policies.baselines._top_rank import TopRank

LOOKS = np.array([0.9, 0.7, 0.5, 0.3, 0.2])
MEANS = np.array([0.15, 0.9, 0.3, 0.75, 0.45, 0.6])


class Pseudocode(Protocol):
    def follow(self, shown: list[int], clicks: list[int]) -> None:
        """Check that the pseudocode may show this ranking, and learn from the clicks."""

    def summary(self) -> list[list[int]]:
        """Return the state that the compiled policy should have."""


class PlainTopRank:
    def __init__(self, n_items: int, horizon: int) -> None:
        self.sums = {(i, j): 0 for i in range(n_items) for j in range(n_items) if i != j}
        self.sizes = dict.fromkeys(self.sums, 0)
        self.graph: set[tuple[int, int]] = set()  # (j, i): i is better
        self.n_items, self.delta = n_items, 1 / horizon

    def summary(self) -> list[list[int]]:
        left, blocks = set(range(self.n_items)), []
        while left:
            blocks.append(sorted(i for i in left if not any((i, j) in self.graph for j in left)))
            left -= set(blocks[-1])
        return blocks

    def follow(self, shown: list[int], clicks: list[int]) -> None:
        blocks = self.summary()
        block_of = {item: number for number, block in enumerate(blocks) for item in block}
        places = [number for number, block in enumerate(blocks) for _ in block][: len(shown)]
        assert [block_of[item] for item in shown] == places
        clicked = dict.fromkeys(range(self.n_items), 0) | dict(zip(shown, clicks, strict=True))
        scale = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        for i, j in self.sums:
            if block_of[i] == block_of[j]:
                self.sums[i, j] += clicked[i] - clicked[j]
                self.sizes[i, j] += abs(clicked[i] - clicked[j])
            s, n = self.sums[i, j], self.sizes[i, j]
            if n > 0 and s >= math.sqrt(2 * n * math.log(scale * math.sqrt(n) / self.delta)):
                self.graph.add((j, i))


class PlainBubbleRank:
    def __init__(self, n_items: int, horizon: int) -> None:
        self.base = list(range(n_items))
        self.s, self.n = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
        self.t, self.bound = 0, math.log(horizon**4)

    def summary(self) -> list[list[int]]:
        return [list(self.base)]

    def knows(self, i: int, j: int) -> bool:
        return bool(self.s[i, j] > 2 * math.sqrt(self.n[i, j] * self.bound))

    def follow(self, shown: list[int], clicks: list[int]) -> None:
        self.t += 1
        size, h = len(self.base), self.t % 2
        firsts = [2 * k - 1 + h - 1 for k in range(1, (size - h) // 2 + 1)]  # counted from 0
        allowed = list(self.base)
        for first in firsts:
            pair = self.base[first : first + 2]
            if not self.knows(*pair) and shown[first : first + 2] == pair[::-1]:
                allowed[first : first + 2] = pair[::-1]
        assert shown == allowed
        for first in firsts:
            i, j = shown[first : first + 2]
            difference = clicks[first] - clicks[first + 1]
            if abs(difference) == 1:
                self.s[i, j] += difference
                self.s[j, i] -= difference
                self.n[i, j] += 1
                self.n[j, i] += 1
        for k in range(size - 1):
            i, j = self.base[k : k + 2]
            if self.knows(j, i):
                self.base[k : k + 2] = j, i


@dataclass
class Batch:
    first: int
    length: int
    stage: int
    n: dict[int, int]
    c: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.c = dict(self.n)


class PlainBatchRank:
    def __init__(self, n_items: int, n_positions: int, horizon: int) -> None:
        self.log, self.level = math.log(horizon), math.log(horizon) + 3 * math.log(math.log(horizon))
        self.active: list[Batch] = []
        self.add(0, n_positions, range(n_items), 0)

    def add(self, first: int, length: int, items: Iterable[int], stage: int) -> None:
        self.active.append(Batch(first, length, stage, dict.fromkeys(items, 0)))

    def summary(self) -> list[list[int]]:
        ordered = sorted(self.active, key=lambda batch: batch.first)
        return [[batch.length, batch.stage, *sorted(batch.n)] for batch in ordered]

    def follow(self, shown: list[int], clicks: list[int]) -> None:
        for batch in list(self.active):
            places = range(batch.first, batch.first + batch.length)
            n, items = batch.n, [shown[place] for place in places]
            assert set(items) <= set(n)
            assert sorted(n[item] for item in items) == sorted(n.values())[: batch.length]
            least = min(n.values())
            for place in places:
                if n[shown[place]] == least:
                    batch.c[shown[place]] += clicks[place]
                    n[shown[place]] += 1
            quota = math.ceil(16 * 2 ** (2 * batch.stage) * self.log)
            if min(n.values()) == quota:
                self.update(batch, quota)

    def update(self, batch: Batch, quota: int) -> None:
        low = {d: self.bound(count / quota, quota, 0.0) for d, count in batch.c.items()}
        high = {d: self.bound(count / quota, quota, 1.0) for d, count in batch.c.items()}
        ranked = sorted(low, key=lambda d: -low[d])
        first, length = batch.first, batch.length
        splits = [k for k in range(1, length) if low[ranked[k - 1]] > max(high[d] for d in ranked[k:])]
        self.active.remove(batch)
        if splits:
            s = max(splits)
            self.add(first, s, ranked[:s], 0)
            self.add(first + s, length - s, ranked[s:], 0)
        else:
            kept = [d for d in ranked if high[d] >= low[ranked[length - 1]]]
            self.add(first, length, kept, batch.stage + 1)

    def bound(self, mean: float, n: int, end: float) -> float:
        inside, outside = mean, end
        for _ in range(100):
            q = (inside + outside) / 2
            divergence = 0.0
            if mean > 0:
                divergence += mean * math.log(mean / q) if q > 0 else math.inf
            if mean < 1:
                divergence += (1 - mean) * math.log((1 - mean) / (1 - q)) if q < 1 else math.inf
            inside, outside = (q, outside) if n * divergence <= self.level else (inside, q)
        return inside


def _blocks(run: ManualRun) -> list[list[int]]:
    blocks = run.state.blocks
    starts = sorted(set(blocks.starts[0].tolist()))
    return [sorted(blocks.items[0, start : blocks.ends[0, start]].tolist()) for start in starts]


def _batches(run: ManualRun) -> list[list[int]]:
    batches, found, first = run.state.batches, [], 0
    while first < len(run.ranking):
        items = batches.items[0, first : first + batches.sizes[0, first]]
        found.append([batches.lengths[0, first], batches.stages[0, first], *sorted(items.tolist())])
        first += batches.lengths[0, first]
    return found


def _base_list(run: ManualRun) -> list[list[int]]:
    return run.state.lists.items.tolist()


@pytest.mark.parametrize(
    ("policy", "plain", "n_items", "n_positions", "summary_of"),
    [
        (TopRank(horizon=50), PlainTopRank(6, 50), 6, 4, _blocks),
        (BubbleRank(horizon=2), PlainBubbleRank(5, 2), 5, 5, _base_list),
        (BatchRank(horizon=5), PlainBatchRank(6, 4, 5), 6, 4, _batches),
    ],
    ids=["top-rank", "bubble-rank", "batch-rank"],
)
def test_it_does_what_the_pseudocode_does(
    policy: CompiledPolicy,
    plain: Pseudocode,
    n_items: int,
    n_positions: int,
    summary_of: Callable[[ManualRun], list[list[int]]],
) -> None:
    """Positions are examined independently, so that several items are clicked."""
    run = ManualRun(policy, n_items, n_positions, seed=3)
    rng = np.random.default_rng(4)
    summaries = []
    for _ in range(4000):
        shown = run.rank().tolist()
        clicks = rng.random(n_positions) < LOOKS[:n_positions] * MEANS[shown]
        plain.follow(shown, clicks.astype(int).tolist())
        run.observe(clicks)
        assert summary_of(run) == plain.summary()
        summaries.append(plain.summary())
    assert sum(before != after for before, after in pairwise(summaries)) >= 3  # something was learned
