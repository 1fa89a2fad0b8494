"""Conformance checks of commits: outcomes, counts, changes and versions."""

import numpy as np

from banditrank.storage._records import (
    DISCARDED,
    NOT_CLICKED,
    REWARD_UNITS,
    Click,
    CommitStatus,
    Event,
    Outcome,
    Snapshot,
    Versions,
    pack_ranking,
)
from banditrank.testing._store_events import CLICK, OpenStore, read_rounds, read_totals, shown


def check_outcomes_count_once(open_store: OpenStore) -> None:
    """Check that the first outcome counts, the same one again is repeated, and another is conflicting."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    one, two = shown(surface, 1), shown(surface, 2)
    assert store.commit([Event(one, None)]).statuses == [CommitStatus.RECORDED]
    receipt = store.commit([Event(one, CLICK), Event(two, NOT_CLICKED)])
    assert receipt.statuses == [CommitStatus.COUNTED, CommitStatus.COUNTED]
    assert [change.version for change in receipt.changes] == [1]
    again = open_store().commit([Event(one, CLICK), Event(two, CLICK), Event(one, None)])
    assert again.statuses == [CommitStatus.REPEATED, CommitStatus.CONFLICTING, CommitStatus.RECORDED]
    assert again.changes == []
    assert open_store().outcome(surface, one.key) == CLICK
    assert store.outcome(surface, shown(surface, 3).key) is None
    counts = read_totals(open_store(), surface).counts(range(4))
    assert counts.rounds == 2
    assert counts.arrivals.tolist() == [0, 2]
    assert counts.displays[1].tolist() == [[0, 0], [0, 2], [0, 0], [2, 0]]
    assert counts.rewards[1].tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]


def check_duplicates_in_a_group_count_once(open_store: OpenStore) -> None:
    """Check that an impression counts once within a group, too."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    one = shown(surface, 1)
    entries = [Event(one, None), Event(one, CLICK), Event(one, CLICK), Event(one, NOT_CLICKED)]
    expected = [CommitStatus.RECORDED, CommitStatus.COUNTED, CommitStatus.REPEATED, CommitStatus.CONFLICTING]
    assert store.commit(entries).statuses == expected
    assert read_rounds(store, surface) == 1


def check_arms_are_counted_apart(open_store: OpenStore) -> None:
    """Check that visits of the arms of an experiment count once, and apart, also from a snapshot."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    events = []
    for number, code in enumerate([0, 1, 63, 63, 63]):
        impression = shown(surface, number)._replace(ranking=pack_ranking(1, (3, 1), code))
        events.append(Event(impression, Outcome.of(0, REWARD_UNITS // 2) if number < 4 else NOT_CLICKED))
    assert set(store.commit(events[:3]).statuses) == {CommitStatus.COUNTED}
    assert open_store().commit(events[2:]).statuses == [CommitStatus.REPEATED, *[CommitStatus.COUNTED] * 2]
    totals = read_totals(open_store(), surface)
    store.save_snapshot(surface, Snapshot(2, totals.cells(), 1))
    for found in (totals, read_totals(open_store(), surface)):
        assert found.counts(range(4)).rounds == 5
        assert found.counts(range(4), {0, 1}).rounds == 2
        assert [sums[1] for sums in found.arm_sums(63)] == [3, 1.0, 0.5]


def check_empty_group(open_store: OpenStore) -> None:
    """Check that an empty group has no statuses and no changes."""
    assert open_store().commit([]) == ([], [])


def check_late_impressions_do_not_reopen(open_store: OpenStore) -> None:
    """Check that an impression that arrives after its outcome is not pending again."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.commit([Event(shown(surface, 1), CLICK)])
    store.commit([Event(shown(surface, 1), None), Event(shown(surface, 2), None)])
    store.commit([Event(shown(surface, 2), None)])
    found = open_store().pending_impressions(surface, since_ms=0, until_ms=10_000)
    assert found == [shown(surface, 2)]
    assert store.commit([Event(found[0], NOT_CLICKED)]).statuses == [CommitStatus.COUNTED]
    assert store.pending_impressions(surface, since_ms=0, until_ms=10_000) == []
    assert read_rounds(store, surface) == 2


def check_graded_rewards(open_store: OpenStore) -> None:
    """Check that a reward is stored to a millionth."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.commit([Event(shown(surface, 1), Outcome.of(1, REWARD_UNITS // 4))])
    assert read_totals(store, surface).counts(range(4)).rewards[1, 1, 1] == 0.25


def check_discarded_impressions_add_no_counts(open_store: OpenStore) -> None:
    """Check that a discarded impression is closed, and adds no change."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    assert store.commit([Event(shown(surface, 1), DISCARDED)]) == ([CommitStatus.COUNTED], [])
    assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.CONFLICTING]
    assert read_rounds(store, surface) == 0


def check_clicks_are_counted_when_final(open_store: OpenStore) -> None:
    """Check that clicks are recorded, the largest reward of a position stays, and all are counted once."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    one = shown(surface, 1)
    click, purchase = (Outcome.of(0, reward, is_final=False) for reward in (1000, 5000))
    second = Outcome.of(1, REWARD_UNITS, is_final=False)
    assert store.commit([Event(one, click)]) == ([CommitStatus.RECORDED], [])
    assert open_store().commit([Event(one, click)]) == ([CommitStatus.REPEATED], [])
    group = [Event(one, purchase), Event(one, click), Event(one, second), Event(one, second)]
    expected = [CommitStatus.RECORDED, CommitStatus.REPEATED, CommitStatus.RECORDED, CommitStatus.REPEATED]
    assert store.commit(group).statuses == expected
    assert store.outcome(surface, one.key) == purchase.merge(second)
    assert read_rounds(store, surface) == 0
    assert open_store().pending_impressions(surface, since_ms=0, until_ms=10_000) == [one]
    receipt = store.commit([Event(one, NOT_CLICKED), Event(one, click), Event(one, Outcome.of(1, 2))])
    assert receipt.statuses == [CommitStatus.COUNTED, CommitStatus.REPEATED, CommitStatus.REPEATED]
    assert [change.version for change in receipt.changes] == [1]
    settled = Outcome((Click(0, 5000), Click(1, REWARD_UNITS)), is_merged=True)
    assert open_store().outcome(surface, one.key) == settled
    larger = Outcome.of(0, 5001, is_final=False)
    again = open_store().commit([Event(one, settled), Event(one, larger), Event(one, NOT_CLICKED)])
    assert again.statuses == [CommitStatus.REPEATED, CommitStatus.CONFLICTING, CommitStatus.REPEATED]
    assert again.changes == []
    assert store.pending_impressions(surface, since_ms=0, until_ms=10_000) == []
    counts = read_totals(open_store(), surface).counts(range(4))
    assert counts.rounds == 1
    assert counts.rewards[1].tolist() == [[0, 0], [0, 1], [0, 0], [5000 / REWARD_UNITS, 0]]


def check_clicks_are_counted_once_in_any_order(open_store: OpenStore) -> None:
    """Check that clicks, larger rewards, repetitions and groups in any order end with the same counts."""
    rng = np.random.default_rng(6)
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    rewards = np.zeros((4, 2))
    for number in range(40):
        impression = shown(surface, number)
        clicks = [
            Outcome.of(int(rng.integers(2)), int(rng.integers(REWARD_UNITS)), is_final=False)
            for _ in range(rng.integers(5))
        ]
        events = [Event(impression, one) for one in (None, *clicks, *clicks)]
        order = rng.permutation(len(events))
        for group in np.array_split(order, int(rng.integers(1, 4))):
            open_store().commit([events[index] for index in group])
        last = DISCARDED if rng.random() < 0.5 and clicks else NOT_CLICKED
        final = [Event(impression, last), *events, Event(impression, NOT_CLICKED)]
        assert store.commit(final).statuses[0] == CommitStatus.COUNTED
        store.commit(final)
        merged = Outcome()
        for one in clicks:
            merged = merged.merge(one)
        for position, reward in merged.clicks:
            rewards[(3, 1)[position], position] += reward
    counts = read_totals(open_store(), surface).counts(range(4))
    assert counts.rounds == 40
    assert (counts.rewards[1] * REWARD_UNITS == rewards).all()


def check_discarded_impressions_keep_their_clicks(open_store: OpenStore) -> None:
    """Check that an impression with clicks is counted when it expires, and one without is not."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.commit([Event(shown(surface, 1), Outcome.of(0, REWARD_UNITS, is_final=False))])
    found = open_store().pending_impressions(surface, since_ms=0, until_ms=10_000)  # it was never written
    assert found == [shown(surface, 1)]
    expired = [Event(found[0], DISCARDED), Event(shown(surface, 2), DISCARDED)]
    assert store.commit(expired).statuses == [CommitStatus.COUNTED, CommitStatus.COUNTED]
    assert store.outcome(surface, found[0].key) == CLICK._replace(is_merged=True)
    assert store.outcome(surface, shown(surface, 2).key) == DISCARDED
    assert read_rounds(store, surface) == 1


def check_single_clicks_contradict_each_other(open_store: OpenStore) -> None:
    """Check that a click at another position conflicts where one is possible at most."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    one = shown(surface, 1)
    first, other = (
        Outcome.of(position, 1000, is_final=False)._replace(is_single=True) for position in (0, 1)
    )
    purchase = Outcome.of(0, REWARD_UNITS)
    statuses = [CommitStatus.RECORDED, CommitStatus.CONFLICTING, CommitStatus.CONFLICTING]
    assert (
        store.commit([Event(one, first), Event(one, other), Event(one, Outcome.of(1, 5))]).statuses
        == statuses
    )
    assert open_store().commit([Event(one, other)]).statuses == [CommitStatus.CONFLICTING]
    assert open_store().outcome(surface, one.key) == first
    assert store.commit([Event(one, purchase), Event(one, first)]).statuses == [
        CommitStatus.COUNTED,
        CommitStatus.REPEATED,
    ]
    assert read_totals(store, surface).counts(range(4)).rewards.sum() == 1


def check_contradicting_clicks_keep_others_of_their_group(open_store: OpenStore) -> None:
    """Check that what is committed together with a contradicting click is counted."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    first, other = (
        Outcome.of(position, 1000, is_final=False)._replace(is_single=True) for position in (0, 1)
    )
    for number, final in enumerate([Outcome.of(0, REWARD_UNITS), NOT_CLICKED]):
        one = shown(surface, number)
        assert store.commit([Event(one, first)]).statuses == [CommitStatus.RECORDED]
        result = open_store().commit([Event(one, other), Event(one, first), Event(one, final)])
        assert result.statuses == [CommitStatus.CONFLICTING, CommitStatus.REPEATED, CommitStatus.COUNTED]
        assert [change.version for change in result.changes] == [number + 1]
        assert store.outcome(surface, one.key) == first.merge(final)
    counts = read_totals(store, surface).counts(range(4))
    assert counts.rounds == 2
    assert counts.rewards.sum() == 1 + 1000 / REWARD_UNITS


def check_rankings_of_any_length(open_store: OpenStore) -> None:
    """Check that rankings may be shorter than the number of positions."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    rankings = [shown(surface, 1), shown(surface, 2, items=(2,)), shown(surface, 3, items=(0, 2))]
    store.commit([Event(one, None) for one in rankings])
    assert open_store().pending_impressions(surface, since_ms=0, until_ms=10_000) == rankings
    store.commit([Event(one, CLICK) for one in rankings])
    counts = read_totals(open_store(), surface).counts(range(4))
    assert counts.rounds == 3
    assert counts.displays[1].tolist() == [[1, 0], [0, 1], [1, 1], [1, 0]]
    assert counts.rewards[1].tolist() == [[1, 0], [0, 0], [1, 0], [1, 0]]


def check_commits_are_atomic(open_store: OpenStore) -> None:
    """Check that a group with one invalid event changes nothing."""
    store = open_store()
    one, two = store.create_surface("one", "{}").surface_id, store.create_surface("two", "{}").surface_id
    no_position = Outcome.of(7, REWARD_UNITS)
    good = [Event(shown(one, 1), CLICK), Event(shown(one, 2), None), Event(shown(two, 1), CLICK)]
    try:
        store.commit([*good, Event(shown(two, 2), no_position)])
    except IndexError:
        pass
    else:
        raise AssertionError("a click below the last position was counted")
    for surface in (one, two):
        assert open_store().outcome(surface, shown(surface, 1).key) is None
        assert open_store().pending_impressions(surface, since_ms=0, until_ms=10_000) == []
        assert open_store().versions()[surface] == Versions(1, 0)
    assert store.commit(good).statuses == [CommitStatus.COUNTED, CommitStatus.RECORDED, CommitStatus.COUNTED]


def check_commit_of_several_surfaces(open_store: OpenStore) -> None:
    """Check that a group may contain several surfaces, and deleted ones are reported."""
    store = open_store()
    one, two = store.create_surface("one", "{}").surface_id, store.create_surface("two", "{}").surface_id
    receipt = store.commit(
        [Event(shown(one, 1), CLICK), Event(shown(two, 1), CLICK), Event(shown(99, 1), CLICK)]
    )
    assert receipt.statuses == [CommitStatus.COUNTED, CommitStatus.COUNTED, CommitStatus.DELETED]
    assert {change.surface_id: change.version for change in receipt.changes} == {one: 1, two: 1}
    assert read_rounds(store, one) == 1
    assert read_rounds(store, two) == 1


def check_changes_are_ordered(open_store: OpenStore) -> None:
    """Check that changes are numbered without gaps, and can be read from any version."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    for number in range(5):
        store.commit([Event(shown(surface, number), CLICK)])
    assert [change.version for change in open_store().changes(surface, after=0)] == [1, 2, 3, 4, 5]
    assert [change.version for change in store.changes(surface, after=3)] == [4, 5]
    assert [change.version for change in store.changes(surface, after=1, limit=2)] == [2, 3]
    assert store.changes(surface, after=5) == []


def check_versions(open_store: OpenStore) -> None:
    """Check that versions change with every counted commit and every new definition, and otherwise stay."""
    store = open_store()
    record = store.create_surface("home", "{}")
    surface = record.surface_id
    assert store.versions() == {surface: Versions(1, 0)}
    store.commit([Event(shown(surface, 1), CLICK)])
    store.commit([Event(shown(surface, 1), CLICK), Event(shown(surface, 2), None)])
    store.update_surface(record, "[]")
    assert open_store().versions() == {surface: Versions(2, 1)}


def check_pending_impressions(open_store: OpenStore) -> None:
    """Check that impressions without an outcome are found by their expiry."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    entries = [Event(shown(surface, number, expires_at_ms=1000 * number), None) for number in (3, 1, 2, 4)]
    store.commit(entries)
    store.commit([Event(entries[2].impression, CLICK)])
    store.prune(surface, before_ms=1000)
    found = open_store().pending_impressions(surface, since_ms=1000, until_ms=4000)
    assert found == [entries[1].impression, entries[0].impression]
    assert found[0].expires_at_ms == 1000
    assert store.outcome(surface, found[0].key) is None
    first = store.pending_impressions(surface, since_ms=0, until_ms=10_000, limit=1)
    assert first == [entries[1].impression]


def check_pending_impressions_are_ordered_by_expiry(open_store: OpenStore) -> None:
    """Check that impressions are returned in order of expiry, whatever the order of their commits."""
    rng = np.random.default_rng(5)
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    numbers = rng.permutation(400)
    for group in np.split(numbers, 100):
        store.commit([Event(shown(surface, int(one), expires_at_ms=1000 + int(one)), None) for one in group])
    settled = {int(one) for one in numbers[::3]}
    store.commit([Event(shown(surface, one, expires_at_ms=1000 + one), CLICK) for one in settled])
    still_open = [one for one in range(400) if one not in settled]
    found = store.pending_impressions(surface, since_ms=1050, until_ms=1350, limit=100)
    expected = [one for one in still_open if one >= 50][:100]
    assert [impression.expires_at_ms - 1000 for impression in found] == expected
    assert len(store.pending_impressions(surface, since_ms=0, until_ms=5000)) == len(still_open)


def check_change_times(open_store: OpenStore) -> None:
    """Check that a change has the time of its commit, and initial counts the time 0."""
    store = open_store()
    surface = store.create_surface("home", "{}", cells=bytes(22)).surface_id
    changes = store.commit([Event(shown(surface, 1), CLICK)], at_ms=1_700_000_000_123).changes
    assert [change.committed_at_ms for change in changes] == [1_700_000_000_123]
    assert [change.committed_at_ms for change in open_store().changes(surface, after=0)] == [
        0,
        1_700_000_000_123,
    ]


def check_counts_add_up(open_store: OpenStore) -> None:
    """Check that the counts are those of the committed rounds, whatever the groups."""
    rng = np.random.default_rng(4)
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    displays, rewards = np.zeros((2, 4, 2)), np.zeros((2, 4, 2))
    for group in range(12):
        entries = []
        for number in range(int(rng.integers(1, 6))):
            items = tuple(rng.permutation(4)[:2].tolist())
            position = int(rng.integers(-1, 2))
            outcome = NOT_CLICKED if position < 0 else Outcome.of(position, REWARD_UNITS)
            entries.append(Event(shown(surface, 100 * group + number, items=items), outcome))
            if position >= 0:
                rewards[1, items[position], position] += 1
            displays[1, items, [0, 1]] += 1
        store.commit(entries)
    counts = read_totals(open_store(), surface).counts(range(4))
    assert (counts.displays == displays).all()
    assert (counts.rewards == rewards).all()


COMMIT_CHECKS = (
    check_outcomes_count_once,
    check_duplicates_in_a_group_count_once,
    check_arms_are_counted_apart,
    check_empty_group,
    check_late_impressions_do_not_reopen,
    check_graded_rewards,
    check_discarded_impressions_add_no_counts,
    check_clicks_are_counted_when_final,
    check_clicks_are_counted_once_in_any_order,
    check_discarded_impressions_keep_their_clicks,
    check_single_clicks_contradict_each_other,
    check_contradicting_clicks_keep_others_of_their_group,
    check_rankings_of_any_length,
    check_commits_are_atomic,
    check_commit_of_several_surfaces,
    check_changes_are_ordered,
    check_versions,
    check_pending_impressions,
    check_pending_impressions_are_ordered_by_expiry,
    check_change_times,
    check_counts_add_up,
)
