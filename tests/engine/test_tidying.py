"""What is left of a deleted surface goes while an engine is at work."""

from pathlib import Path

from helpers.live import a_ranker, play, wait_until

from banditrank.storage.sqlite import SqliteStore


def test_what_is_left_of_a_deleted_surface_is_thrown_away(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        with a_ranker(store=store) as ranker:
            play(ranker, 5, seed=1)
            assert store.changes(1, after=0)
        assert store.delete_surface("home")
        assert store.changes(1, after=0), "it is too much to be thrown away at once"
        with a_ranker(store=store, sync_seconds=0.01) as ranker:
            play(ranker, 5, seed=2)
            wait_until(lambda: store.changes(1, after=0) == [])
            wait_until(lambda: not store.purge_deleted())
            assert ranker.estimates().rounds == 5
