"""What every store must satisfy. A new store proves itself by going through `STORE_CHECKS`.

>>> from banditrank.storage.memory import MemoryStore
>>> for check in STORE_CHECKS:
...     store = MemoryStore()
...     check(lambda: store)
"""

from collections.abc import Callable

import numpy as np

from banditrank.errors import NameTakenError
from banditrank.storage.records import (
    DISCARDED,
    NOT_CLICKED,
    NOTHING,
    REWARD_UNITS,
    Entry,
    KeyRecord,
    Outcome,
    Verdict,
    Versions,
)
from banditrank.testing.store_entries import CLICK, OpenStore, rounds_of, shown, totals_of
from banditrank.testing.store_forgetting import FORGETTING_CHECKS
from banditrank.testing.store_sharing import SHARING_CHECKS


def check_surfaces_are_kept(open_store: OpenStore) -> None:
    """What is created, changed and deleted is so for everybody; numbers are not used again."""
    store = open_store()
    first = store.create_surface("home", '{"a": "ä"}')
    other = store.create_surface("about", "{}")
    assert open_store().find_surface("home") == first
    assert [record.name for record in store.surfaces()] == ["about", "home"]
    changed = store.update_surface("home", "[]", revision=first.revision)
    assert changed is not None
    assert (changed.number, changed.definition, changed.revision) == (first.number, "[]", 2)
    assert open_store().find_surface("home") == changed
    assert open_store().definition(first.number, revision=1) == first.definition
    assert store.definition(first.number, revision=2) == "[]"
    assert store.definition(first.number, revision=3) is None
    assert store.delete_surface("home")
    assert not store.delete_surface("home")
    assert open_store().find_surface("home") is None
    again = store.create_surface("home", "{}")
    assert again.number not in (first.number, other.number)


def check_a_surface_may_begin_with_counts(open_store: OpenStore) -> None:
    """Cells that a surface is created with are its first change; versions go on from there."""
    store = open_store()
    source = store.create_surface("source", "{}").number
    store.commit([Entry(shown(source, 1), CLICK), Entry(shown(source, 2), NOT_CLICKED)])
    cells = totals_of(store, source).cells()
    copy = store.create_surface("copy", "{}", cells=cells).number
    assert open_store().versions()[copy] == Versions(1, 1)
    assert [(one.version, one.cells) for one in open_store().changes(copy, after=0)] == [(1, cells)]
    assert store.snapshot(copy) == NOTHING
    assert store.commit([Entry(shown(copy, 1), CLICK)]).changes[0].version == 2
    counts = totals_of(open_store(), copy).counts(range(4))
    assert (counts.rounds, counts.rewards.sum()) == (3, 2)
    try:
        store.create_surface("copy", "{}", cells=cells)
    except NameTakenError:
        assert rounds_of(store, copy) == 3
    else:
        raise AssertionError("a name was given twice")


def check_names_are_taken_once(open_store: OpenStore) -> None:
    """A second surface of the same name is refused, and the first stays as it is."""
    store = open_store()
    first = store.create_surface("home", "{}")
    try:
        open_store().create_surface("home", "[]")
    except NameTakenError:
        assert store.find_surface("home") == first
    else:
        raise AssertionError("a name was given twice")


def check_only_the_latest_revision_is_changed(open_store: OpenStore) -> None:
    """Of two changes made from the same revision the second is refused."""
    store = open_store()
    record = store.create_surface("home", "{}")
    assert store.update_surface("home", "1", revision=record.revision) is not None
    assert open_store().update_surface("home", "2", revision=record.revision) is None
    assert store.update_surface("nowhere", "2", revision=1) is None
    found = store.find_surface("home")
    assert found is not None
    assert found.definition == "1"


def check_outcomes_count_once(open_store: OpenStore) -> None:
    """The first outcome settles a ranking; the same again is repeated, another contradicts."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    one, two = shown(surface, 1), shown(surface, 2)
    assert store.commit([Entry(one, None)]).verdicts == [Verdict.NOTED]
    receipt = store.commit([Entry(one, CLICK), Entry(two, NOT_CLICKED)])
    assert receipt.verdicts == [Verdict.COUNTED, Verdict.COUNTED]
    assert [change.version for change in receipt.changes] == [1]
    again = open_store().commit([Entry(one, CLICK), Entry(two, CLICK), Entry(one, None)])
    assert again.verdicts == [Verdict.REPEATED, Verdict.CONTRADICTED, Verdict.NOTED]
    assert again.changes == []
    assert open_store().outcome(surface, one.key) == CLICK
    assert store.outcome(surface, shown(surface, 3).key) is None
    counts = totals_of(open_store(), surface).counts(range(4))
    assert counts.rounds == 2
    assert counts.arrivals.tolist() == [0, 2]
    assert counts.displays[1].tolist() == [[0, 0], [0, 2], [0, 0], [2, 0]]
    assert counts.rewards[1].tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]


def check_a_group_may_repeat_itself(open_store: OpenStore) -> None:
    """Within one group, too, a ranking counts once."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    one = shown(surface, 1)
    entries = [Entry(one, None), Entry(one, CLICK), Entry(one, CLICK), Entry(one, NOT_CLICKED)]
    expected = [Verdict.NOTED, Verdict.COUNTED, Verdict.REPEATED, Verdict.CONTRADICTED]
    assert store.commit(entries).verdicts == expected
    assert rounds_of(store, surface) == 1


def check_an_empty_group_is_nothing(open_store: OpenStore) -> None:
    """Whoever commits nothing is told nothing."""
    assert open_store().commit([]) == ([], [])


def check_what_is_settled_stays_so(open_store: OpenStore) -> None:
    """A note that a ranking was shown does not open it again if it comes after the outcome."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    store.commit([Entry(shown(surface, 1), CLICK)])
    store.commit([Entry(shown(surface, 1), None), Entry(shown(surface, 2), None)])
    store.commit([Entry(shown(surface, 2), None)])
    found = open_store().open_entries(surface, since=0, until=10_000)
    assert found == [Entry(shown(surface, 2), None)]
    assert store.commit([Entry(found[0].shown, NOT_CLICKED)]).verdicts == [Verdict.COUNTED]
    assert store.open_entries(surface, since=0, until=10_000) == []
    assert rounds_of(store, surface) == 2


def check_rewards_may_be_graded(open_store: OpenStore) -> None:
    """A reward is kept to a millionth."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    store.commit([Entry(shown(surface, 1), Outcome(1, REWARD_UNITS // 4))])
    assert totals_of(store, surface).counts(range(4)).rewards[1, 1, 1] == 0.25


def check_discarded_rankings_count_for_nothing(open_store: OpenStore) -> None:
    """A discarded ranking is settled, and adds no change."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    assert store.commit([Entry(shown(surface, 1), DISCARDED)]) == ([Verdict.COUNTED], [])
    assert store.commit([Entry(shown(surface, 1), CLICK)]).verdicts == [Verdict.CONTRADICTED]
    assert rounds_of(store, surface) == 0


def check_surfaces_learn_apart(open_store: OpenStore) -> None:
    """A group may be of several surfaces; those that are gone are told."""
    store = open_store()
    one, two = store.create_surface("one", "{}").number, store.create_surface("two", "{}").number
    receipt = store.commit(
        [Entry(shown(one, 1), CLICK), Entry(shown(two, 1), CLICK), Entry(shown(99, 1), CLICK)]
    )
    assert receipt.verdicts == [Verdict.COUNTED, Verdict.COUNTED, Verdict.GONE]
    assert {change.surface: change.version for change in receipt.changes} == {one: 1, two: 1}
    assert rounds_of(store, one) == 1
    assert rounds_of(store, two) == 1


def check_changes_come_in_order(open_store: OpenStore) -> None:
    """Changes are numbered without a gap, and are read from any version on."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    for number in range(5):
        store.commit([Entry(shown(surface, number), CLICK)])
    assert [change.version for change in open_store().changes(surface, after=0)] == [1, 2, 3, 4, 5]
    assert [change.version for change in store.changes(surface, after=3)] == [4, 5]
    assert [change.version for change in store.changes(surface, after=1, limit=2)] == [2, 3]
    assert store.changes(surface, after=5) == []


def check_versions_tell_who_is_behind(open_store: OpenStore) -> None:
    """Every commit that counts and every new definition is seen in the versions, and nothing else is."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    assert store.versions() == {surface: Versions(1, 0)}
    store.commit([Entry(shown(surface, 1), CLICK)])
    store.commit([Entry(shown(surface, 1), CLICK), Entry(shown(surface, 2), None)])
    store.update_surface("home", "[]", revision=1)
    assert open_store().versions() == {surface: Versions(2, 1)}


def check_open_rankings_are_found(open_store: OpenStore) -> None:
    """Rankings without an outcome are found by when they lapse."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    entries = [Entry(shown(surface, number, lapses=1000 * number), None) for number in (3, 1, 2, 4)]
    store.commit(entries)
    store.commit([Entry(entries[2].shown, CLICK)])
    store.forget(surface, before=1000)
    found = open_store().open_entries(surface, since=1000, until=4000)
    assert found == [entries[1], entries[0]]
    assert found[0].shown.lapses == 1000
    assert store.outcome(surface, found[0].shown.key) is None
    assert store.open_entries(surface, since=0, until=10_000, limit=1) == [entries[1]]


def check_the_first_open_rankings_are_found(open_store: OpenStore) -> None:
    """Whoever asks for some is given those that lapse first, in whatever groups and order they came."""
    rng = np.random.default_rng(5)
    store = open_store()
    surface = store.create_surface("home", "{}").number
    numbers = rng.permutation(400)
    for group in np.split(numbers, 100):
        store.commit([Entry(shown(surface, int(one), lapses=1000 + int(one)), None) for one in group])
    settled = {int(one) for one in numbers[::3]}
    store.commit([Entry(shown(surface, one, lapses=1000 + one), CLICK) for one in settled])
    still_open = [one for one in range(400) if one not in settled]
    found = store.open_entries(surface, since=1050, until=1350, limit=100)
    assert [entry.shown.lapses - 1000 for entry in found] == [one for one in still_open if one >= 50][:100]
    assert len(store.open_entries(surface, since=0, until=5000)) == len(still_open)


def check_times_are_kept(open_store: OpenStore) -> None:
    """A change says when it was made, unless it came with the surface."""
    store = open_store()
    surface = store.create_surface("home", "{}", cells=bytes(22)).number
    told = store.commit([Entry(shown(surface, 1), CLICK)], at=1_700_000_000_123).changes
    assert [change.at for change in told] == [1_700_000_000_123]
    assert [change.at for change in open_store().changes(surface, after=0)] == [0, 1_700_000_000_123]


def check_cells_add_up(open_store: OpenStore) -> None:
    """The counts are those of the rounds that were committed, whatever the groups."""
    rng = np.random.default_rng(4)
    store = open_store()
    surface = store.create_surface("home", "{}").number
    displays, rewards = np.zeros((2, 4, 2)), np.zeros((2, 4, 2))
    for group in range(12):
        entries = []
        for number in range(int(rng.integers(1, 6))):
            items = tuple(rng.permutation(4)[:2].tolist())
            position = int(rng.integers(-1, 2))
            entries.append(Entry(shown(surface, 100 * group + number, items=items), Outcome(position, 0)))
            if position >= 0:
                entries[-1] = Entry(entries[-1].shown, Outcome(position, REWARD_UNITS))
                rewards[1, items[position], position] += 1
            displays[1, items, [0, 1]] += 1
        store.commit(entries)
    counts = totals_of(open_store(), surface).counts(range(4))
    assert (counts.displays == displays).all()
    assert (counts.rewards == rewards).all()


def check_keys_are_kept(open_store: OpenStore) -> None:
    """API keys are kept in the order of their making, and are revoked once."""
    store = open_store()
    one = KeyRecord("k1", "page", ("rank",), b"\x00\xff", 5)
    two = KeyRecord("k2", "ops", ("read", "administer"), b"\x01", 6)
    store.add_key(one)
    store.add_key(two)
    open_store().add_key(one)
    assert open_store().api_keys() == [one, two]
    assert store.revoke_key("k1", at=9)
    assert not store.revoke_key("k1", at=10)
    assert not store.revoke_key("k3", at=10)
    assert [key.revoked for key in open_store().api_keys()] == [9, None]


def check_the_secret_is_shared(open_store: OpenStore) -> None:
    """All who open a store have the same secret."""
    secret = open_store().secret()
    assert len(secret) == 32
    assert open_store().secret() == secret


def check_a_store_at_work_is_well(open_store: OpenStore) -> None:
    """A store that can be written to says so, and nothing changes."""
    store = open_store()
    store.check()
    assert store.surfaces() == []


STORE_CHECKS: tuple[Callable[[OpenStore], None], ...] = (
    check_surfaces_are_kept,
    check_a_surface_may_begin_with_counts,
    check_names_are_taken_once,
    check_only_the_latest_revision_is_changed,
    check_outcomes_count_once,
    check_a_group_may_repeat_itself,
    check_an_empty_group_is_nothing,
    check_what_is_settled_stays_so,
    check_rewards_may_be_graded,
    check_discarded_rankings_count_for_nothing,
    check_surfaces_learn_apart,
    check_changes_come_in_order,
    check_versions_tell_who_is_behind,
    check_open_rankings_are_found,
    check_the_first_open_rankings_are_found,
    check_times_are_kept,
    check_cells_add_up,
    check_keys_are_kept,
    check_the_secret_is_shared,
    check_a_store_at_work_is_well,
    *FORGETTING_CHECKS,
    *SHARING_CHECKS,
)
