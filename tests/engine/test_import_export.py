"""An imported surface equals the exported one, including every reward."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from helpers.live import a_ranker, a_surface, play

from banditrank.engine._import_export import FORMAT, as_text, export_surface, import_surface, read_document
from banditrank.engine._surface import Surface
from banditrank.errors import AlreadyExistsError, InvalidInputError, UnknownSurfaceError
from banditrank.storage._base import Store
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Versions
from banditrank.storage._sqlite import SqliteStore


def a_store_with_counts() -> Store:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        for reward in (0.1, 1 / 3, 1e-6, 0.999999):
            shown = ranker.rank("new")
            ranker.feedback(shown.id, clicked=shown.items[0], reward=reward)
        play(ranker, 20, seed=1)
        ranker.add_items(["ä 'item'"])
        ranker.retire_items(["b"])
        play(ranker, 20, seed=2)
    return store


def test_counts_and_settings_are_imported_exactly(tmp_path: Path) -> None:
    store = a_store_with_counts()
    path = tmp_path / "home.json"
    path.write_text(as_text(export_surface(store, "home")), encoding="utf-8")
    with SqliteStore(tmp_path / "other.db") as other:
        record = import_surface(other, read_document(path))
        assert other.versions() == {record.surface_id: Versions(1, 1)}
        again, first = export_surface(other, "home"), export_surface(store, "home")
        assert again["counts"] == first["counts"]
        assert again["surface"] == first["surface"]
        surface = Surface.from_dict(first["surface"])
        with a_ranker(surface, store) as here, a_ranker(surface, other) as there:
            assert here.counts() == there.counts()
            assert here.estimates().user_types == there.estimates().user_types
            assert "b" not in there.rank("new").items
            play(there, 3, seed=3)
            assert there.counts().rounds == here.counts().rounds + 3


def test_counts_of_short_rankings_are_imported() -> None:
    store = MemoryStore()
    with a_ranker(a_surface(allow_short_rankings=True), store) as ranker:
        ranker.feedback(ranker.rank("new", candidates=["a"]).id, clicked="a")
        ranker.feedback(ranker.rank("new").id)
    document = export_surface(store, "home")
    import_surface(store, document, name="copy")
    assert export_surface(store, "copy")["counts"] == document["counts"]
    last = next(cell for cell in document["counts"] if cell["position"] == 2)
    last["displays"] += 2
    with pytest.raises(InvalidInputError, match="must not have more displays at a position than at the one"):
        import_surface(store, document, name="other")


def test_a_copy_in_the_same_store_needs_another_name() -> None:
    store = a_store_with_counts()
    document = export_surface(store, "home")
    with pytest.raises(AlreadyExistsError):
        import_surface(store, document)
    import_surface(store, document, name="copy")
    copy = export_surface(store, "copy")
    assert copy["counts"] == document["counts"]
    assert copy["surface"] == {**document["surface"], "name": "copy"}


def test_a_surface_without_counts_can_be_exported() -> None:
    store = MemoryStore()
    a_ranker(store=store).close()
    document = json.loads(as_text(export_surface(store, "home")))
    assert (document["counts"], document["version"]) == ([], 0)
    assert import_surface(MemoryStore(), document).name == "home"


def test_the_file_is_readable() -> None:
    text = as_text(export_surface(a_store_with_counts(), "home"))
    assert text.startswith(f'{{\n  "format": "{FORMAT}",\n  "banditrank": ')
    assert '"item": "ä \'item\'"' in text
    line = next(line for line in text.splitlines() if '"displays"' in line)
    assert sorted(json.loads(line.strip().rstrip(","))) == sorted(
        ["user_type", "position", "item", "displays", "rewards"]
    )


def test_the_error_for_an_unknown_surface_suggests_a_name() -> None:
    with pytest.raises(UnknownSurfaceError, match=r"surface 'hime' does not exist \(did you mean home\?\)"):
        export_surface(a_store_with_counts(), "hime")


def first_cell(change: Callable[[dict], Any]) -> Callable[[dict], Any]:
    return lambda document: change(document["counts"][0])


BAD: list[tuple[Callable[[dict], Any], str]] = [
    (lambda d: d.update(format="another"), "format must be 'banditrank surface 1', got 'another'"),
    (lambda d: d.pop("surface"), "surface must be an object of settings, got None"),
    (lambda d: d["surface"].pop("items"), "items must be given, got"),
    (lambda d: d["surface"].update(colour="red"), "colour is not a field, must be one of name"),
    (
        lambda d: d["surface"].update(n_positions=9),
        "n_positions must be a whole number from 1 to 5, the number of active items, got 9",
    ),
    (lambda d: d.update(counts={}), "counts must be a list of cells"),
    (first_cell(lambda c: c.update(user_type="unknown")), r"counts\[0\].user_type must be one of new, old"),
    (first_cell(lambda c: c.update(item=["a"])), r"counts\[0\].item must be one of a, b"),
    (first_cell(lambda c: c.update(position=0)), r"counts\[0\].position must be a whole number from 1 to 2"),
    (first_cell(lambda c: c.update(displays=1.5)), r"counts\[0\].displays must be a whole number"),
    (first_cell(lambda c: c.update(displays=-1)), r"counts\[0\].displays must be a whole number"),
    (first_cell(lambda c: c.update(rewards=1e6)), r"counts\[0\].rewards must be a number from 0 to"),
    (first_cell(lambda c: c.update(rewards=float("nan"))), r"counts\[0\].rewards must be a number"),
    (first_cell(lambda c: c.update(more=1)), r"counts\[0\] must be an object of user_type, position"),
    (
        first_cell(lambda c: c.update(displays=c["displays"] + 1)),
        "must have as many displays at each position",
    ),
    (lambda d: d["counts"].append(d["counts"][0]), "must be the only cell of its type, position and item"),
]


@pytest.mark.parametrize(("corrupt", "message"), BAD, ids=lambda one: one if isinstance(one, str) else "")
def test_a_corrupt_file_is_rejected_in_one_line_and_changes_nothing(
    corrupt: Callable[[dict], Any], message: str
) -> None:
    document = deepcopy(export_surface(a_store_with_counts(), "home"))
    corrupt(document)
    store = MemoryStore()
    with pytest.raises(InvalidInputError, match=message) as rejected:
        import_surface(store, document)
    assert "\n" not in str(rejected.value)
    assert store.surfaces() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "file must be JSON"),
        (b"\xff\xfe", "file must be JSON"),
        (b"[" * 100_000, "file must be JSON"),
        (None, r"file must be readable \(no such file or directory\)"),
    ],
)
def test_a_file_that_is_not_json_is_rejected(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "home.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        read_document(path)


@pytest.mark.parametrize("document", [[], 5, None, "text", {"surface": 1}])
def test_json_that_is_not_a_surface_is_rejected(document: object) -> None:
    with pytest.raises(InvalidInputError, match="format must be"):
        import_surface(MemoryStore(), document)


def test_names_must_be_ordered() -> None:
    for names in ({"a", "b"}, {"a": 1, "b": 2}, "ab", 5):
        with pytest.raises(InvalidInputError, match="items must be a list of 1 to 10,000 names"):
            a_surface(items=names)
