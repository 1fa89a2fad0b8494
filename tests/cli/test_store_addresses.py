"""Addresses of stores in commands: what is rejected, and that no password is printed."""

import os
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, contents, run

from banditrank.service._settings import Settings
from banditrank.storage._factory import open_store

SECRET = "xyzzy"  # noqa: S105 - not a real one
WITH_PASSWORDS = [
    f"postgresql://u:{SECRET}@127.0.0.1:1/x?bogus=1",
    f"postgresql://u:{SECRET}@127.0.0.1:1/x",
    f"postgresql://u@127.0.0.1:1/x?password={SECRET}",
    f"postgresql://u@127.0.0.1:1/x?pass%77ord={SECRET}",
    f"postgresql:host=127.0.0.1 password={SECRET}",
    f"redis://:{SECRET}@127.0.0.1:x/0",
    f"redis://:{SECRET}@127.0.0.1:1/0",
    f"redis://127.0.0.1:1/0?password={SECRET}",
    f"mysql://u:{SECRET}@h/x",
    f"u:{SECRET}@h",
]
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


@pytest.mark.parametrize("address", WITH_PASSWORDS)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_password_in_the_arguments_is_refused(
    capsys: pytest.CaptureFixture, command: list[str], address: str
) -> None:
    status, output, complaint = run(capsys, *command, "--store", address)
    assert (status, output) == (2, "")
    assert complaint.startswith("banditrank: --store must hold no password, which other users of the machine")
    assert "--store-file" in complaint
    assert ("BANDITRANK_STORE" in complaint) == (command[0] != "demo")
    assert complaint.count("\n") == 1
    assert SECRET not in complaint


@pytest.mark.parametrize("address", WITH_PASSWORDS)
@pytest.mark.parametrize(
    ("command", "source"),
    [
        *((command, "--store-file") for command in COMMANDS),
        *((command, "BANDITRANK_STORE") for command in COMMANDS if command[0] != "demo"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_no_password_is_printed(
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    address: str,
    source: str,
) -> None:
    if source == "--store-file":
        Path("address").write_text(f"{address}\n")
        Path("address").chmod(0o600)
        command = [*command, "--store-file", "address"]
    else:
        monkeypatch.setenv("BANDITRANK_STORE", address)
    status, output, complaint = run(capsys, *command)
    assert (status, output) == (2, "")
    assert complaint.count("\n") == 1
    assert source in complaint or "127.0.0.1" in complaint
    assert SECRET not in complaint
    assert "BANDITRANK_STORE" not in os.environ


def test_the_demo_does_not_touch_the_store_of_the_environment(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITRANK_STORE", "sqlite:real.db")
    assert run(capsys, "demo", "--rounds", "1", "--speed", "0", "--port", "0")[0] == 0
    assert not Path("real.db").exists()


def served(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, *options: str) -> Settings:
    """Return the settings of a started service; child processes do not inherit the address."""
    started: list[Settings] = []

    def serve(settings: Settings) -> None:
        assert "BANDITRANK_STORE" not in os.environ
        started.append(settings)

    monkeypatch.setattr("banditrank.service._server.serve", serve)
    status, _, complaint = run(capsys, "serve", *options)
    assert (status, complaint) == (0, "")
    return started[0]


def test_options_come_before_the_environment_and_that_before_the_settings_file(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("settings.toml").write_text('store = "sqlite:settings.db"')
    Path("address").write_text("sqlite:file.db\n")
    options = ["--config", "settings.toml"]
    assert served(capsys, monkeypatch).store == "sqlite:banditrank.db"
    assert served(capsys, monkeypatch, *options).store == "sqlite:settings.db"
    for more, store in (
        ([], "sqlite:environment.db"),
        (["--store-file", "address"], "sqlite:file.db"),
        (["--store-file", "address", "--store", "sqlite:option.db"], "sqlite:option.db"),
    ):
        monkeypatch.setenv("BANDITRANK_STORE", "sqlite:environment.db")
        assert served(capsys, monkeypatch, *options, *more).store == store


def test_keys_and_state_find_the_store_as_the_service_does(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITRANK_STORE", "sqlite:environment.db")
    assert run(capsys, "keys", "create", "page")[0] == 0
    Path("address").write_text("sqlite:file.db")
    assert run(capsys, "state", "import", "home.json", "--store-file", "address")[1].startswith(
        "sqlite:file.db"
    )
    assert {"environment.db", "file.db"} < {path.name for path in contents()}
    assert not Path("banditrank.db").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "--store-file must hold one line, the address of a store, got 'address'"),
        (b"sqlite:a.db\nsqlite:b.db\n", "--store-file must hold one line"),
        (b"\xff", "--store-file must hold one line"),
        (None, r"--store-file must be a readable file \(no such file or directory\), got 'address'"),
        (b"sqlite:none.db", "--store-file must be a store that exists, got 'sqlite:none.db'"),
    ],
)
def test_bad_store_files_are_refused(
    capsys: pytest.CaptureFixture, content: bytes | None, message: str
) -> None:
    if content is not None:
        Path("address").write_bytes(content)
    check_refusal(capsys, ["keys", "list", "--store-file", "address"], message)


def test_a_bad_address_in_the_environment_names_the_variable(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITRANK_STORE", f"mysql://u:{SECRET}@h")
    check_refusal(capsys, ["keys", "list"], r"BANDITRANK_STORE must be sqlite:FILE.* got 'mysql://…'")


@pytest.mark.parametrize(
    ("mode", "address", "warned"),
    [
        (0o644, f"redis://:{SECRET}@h/0", True),
        (0o640, f"redis://:{SECRET}@h/0", True),
        (0o600, f"redis://:{SECRET}@h/0", False),
        (0o644, "redis://h/0", False),
    ],
)
@pytest.mark.parametrize("option", ["--store-file", "--config"])
def test_a_file_with_a_password_that_others_can_read_is_warned_about(
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    option: str,
    mode: int,
    address: str,
    warned: bool,  # noqa: FBT001
) -> None:
    Path("secret").write_text(address if option == "--store-file" else f'store = "{address}"')
    Path("secret").chmod(mode)
    assert served(capsys, monkeypatch, option, "secret").store == address
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert logged == [("WARNING", "file with a password is accessible to other users: secret")] * warned


@pytest.mark.parametrize("value", [f'["{SECRET}"]', f'{{password = "{SECRET}"}}'])
def test_no_password_is_printed_of_a_settings_file(capsys: pytest.CaptureFixture, value: str) -> None:
    Path("settings.toml").write_text(f"store = {value}")
    _, output, complaint = run(capsys, "serve", "--config", "settings.toml")
    assert "store must be text" in complaint
    assert SECRET not in output + complaint
    assert SECRET not in repr(Settings(store=f"redis://:{SECRET}@host/0"))


@pytest.mark.parametrize("command", [one for one in COMMANDS if one[0] in ("keys", "state")], ids=" ".join)
@pytest.mark.parametrize("address", ["memory:", "MEMORY:"])
def test_a_store_in_memory_is_refused(
    capsys: pytest.CaptureFixture, command: list[str], address: str
) -> None:
    check_refusal(capsys, [*command, "--store", address], "--store must outlive this command")


@pytest.mark.parametrize(
    "command",
    [["keys", "list"], ["keys", "revoke", "id"], ["state", "show"], ["state", "export", "home"]],
    ids=" ".join,
)
@pytest.mark.parametrize("address", ["sqlite:none.db", "SQLITE:none.db", f"sqlite:{'long' * 100}"])
def test_reading_creates_no_store(capsys: pytest.CaptureFixture, command: list[str], address: str) -> None:
    check_refusal(capsys, [*command, "--store", address], "--store must be a store that exists, got '")


@pytest.mark.parametrize("command", [["serve"], ["keys", "create", "x"], ["state", "import", "home.json"]])
def test_a_name_that_is_too_long_is_an_error_of_the_store(
    capsys: pytest.CaptureFixture, command: list[str]
) -> None:
    too_long = f"sqlite:{'long' * 100}"
    check_refusal(capsys, [*command, "--store", too_long], "--store must be a file that can be written")


def test_creating_a_key_creates_the_store(capsys: pytest.CaptureFixture) -> None:
    before = contents()
    assert run(capsys, "keys", "create", "page", "--store", "sqlite:new.db")[0] == 0
    assert before.keys() < contents().keys()
    with open_store("sqlite:new.db") as store:
        assert [key.name for key in store.api_keys()] == ["page"]
