"""The address of a store, as commands take it: what is refused, and that no password is printed."""

from pathlib import Path

import pytest
from command_line import check_refusal, contents, run

from banditrank.service.settings import Settings
from banditrank.storage.opening import open_store

SECRET = "xyzzy"  # noqa: S105 - of nobody
COMMANDS = [
    ["serve"],
    ["demo", "--rounds", "1"],
    ["keys", "create", "name"],
    ["keys", "list"],
    ["keys", "revoke", "id"],
    ["state", "show"],
    ["state", "export", "home"],
    ["state", "import", "home.json"],
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("home.json").write_text(
        '{"format": "banditrank surface 1", "surface": {"name": "home", "items": ["a"], "n_positions": 1}, '
        '"counts": []}'
    )


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:{SECRET}@127.0.0.1:1/x?bogus=1",
        f"postgresql://u:{SECRET}@127.0.0.1:1/x",
        f"postgresql:host=127.0.0.1 password={SECRET}",
        f"redis://:{SECRET}@127.0.0.1:x/0",
        f"redis://:{SECRET}@127.0.0.1:1/0",
        f"mysql://u:{SECRET}@h/x",
        f"u:{SECRET}@h",
    ],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_password_is_printed(capsys: pytest.CaptureFixture, command: list[str], address: str) -> None:
    status, output, complaint = run(capsys, *command, "--store", address)
    assert status == 2
    assert complaint.count("\n") == 1
    assert "store" in complaint or "127.0.0.1" in complaint
    assert SECRET not in output + complaint


@pytest.mark.parametrize("value", [f'["{SECRET}"]', f'{{password = "{SECRET}"}}'])
def test_no_password_is_printed_of_a_settings_file(capsys: pytest.CaptureFixture, value: str) -> None:
    Path("settings.toml").write_text(f"store = {value}")
    _, output, complaint = run(capsys, "serve", "--config", "settings.toml")
    assert "store must be like" in complaint
    assert SECRET not in output + complaint
    assert SECRET not in repr(Settings(store=f"redis://:{SECRET}@host/0"))


@pytest.mark.parametrize("command", [one for one in COMMANDS if one[0] in ("keys", "state")], ids=" ".join)
@pytest.mark.parametrize("address", ["memory:", "MEMORY:"])
def test_what_is_gone_with_the_command_is_refused(
    capsys: pytest.CaptureFixture, command: list[str], address: str
) -> None:
    check_refusal(capsys, [*command, "--store", address], "--store must outlive this command")


@pytest.mark.parametrize(
    "command",
    [["keys", "list"], ["keys", "revoke", "id"], ["state", "show"], ["state", "export", "home"]],
    ids=" ".join,
)
@pytest.mark.parametrize("address", ["sqlite:none.db", "SQLITE:none.db", f"sqlite:{'long' * 100}"])
def test_looking_makes_no_store(capsys: pytest.CaptureFixture, command: list[str], address: str) -> None:
    check_refusal(capsys, [*command, "--store", address], "--store must be a store that exists, got '")


@pytest.mark.parametrize("command", [["serve"], ["keys", "create", "x"], ["state", "import", "home.json"]])
def test_a_name_that_is_too_long_is_told_as_the_stores(
    capsys: pytest.CaptureFixture, command: list[str]
) -> None:
    too_long = f"sqlite:{'long' * 100}"
    check_refusal(capsys, [*command, "--store", too_long], "--store must be a file that can be written")


def test_a_key_may_be_made_before_anything_else(capsys: pytest.CaptureFixture) -> None:
    before = contents()
    assert run(capsys, "keys", "create", "page", "--store", "sqlite:new.db")[0] == 0
    assert before.keys() < contents().keys()
    with open_store("sqlite:new.db") as store:
        assert [key.name for key in store.api_keys()] == ["page"]
