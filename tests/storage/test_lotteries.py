"""A surface with lotteries and guarantees, in every store that outlives a process."""

from dataclasses import replace

import pytest
from helpers.live import a_ranker, a_surface, seeded

from banditrank import KeptShare, LeastExposure
from banditrank.engine._surface import Surface
from banditrank.storage._factory import open_store

GUARANTEES = (LeastExposure(0.05), LeastExposure(0.3, ["c", "d"], is_group=True), KeptShare(0.2, ["old"]))


def test_a_lottery_is_reproduced_after_a_restart(address: str) -> None:
    surface = a_surface(treatment="equal-lottery", utility="maximin", n_positions=1)
    with open_store(address) as store, a_ranker(surface, store) as ranker:
        ranker.feedback(ranker.rank("new").id, clicked=None)
        ranker._engine.update_surface("home", lambda one: replace(one, guarantees=GUARANTEES))
        shown = [ranker.rank(name) for name in ("new", "old") * 10]
        for one in shown[1:]:
            ranker.feedback(one.id, clicked=one.items[0])
        explained = [ranker.explain(one.id) for one in shown]
        kept = ranker.equality().lottery
    with open_store(address) as store:  # another process
        (record,) = store.surfaces()
        stored = Surface.from_definition(record.definition)
        assert stored == replace(surface, guarantees=GUARANTEES, guarantees_since_version=1)
        with a_ranker(stored, store, random_bytes=seeded(2)) as ranker:
            assert [ranker.explain(one.id) for one in shown] == explained
            assert ranker.equality().lottery == kept
            shown_later = ranker.rank("new")
            assert ranker.explain(shown_later.id).is_reproduced
    for one, audit in zip(shown, explained, strict=True):
        assert audit.is_reproduced
        assert audit.lottery is not None
        drawn = audit.lottery.rankings[audit.lottery.drawn - 1]
        assert tuple(drawn.items) == one.items
    assert explained[0].outcome.state == "pending"
    assert {one.outcome.state for one in explained[1:]} == {"clicked"}
    # Exposures of the 5 items and of the group, and the value of a type, over the 19 visits since.
    assert len(kept.guarantees) == 7
    assert sum(one.realised for one in kept.guarantees[:5]) == pytest.approx(1)
    assert kept.guarantees[6].realised == pytest.approx(1)
