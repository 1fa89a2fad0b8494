"""Settings of the service come from options, the environment and a file, and errors name the source."""

import os
from dataclasses import fields
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.service._configuration import check_variables, load_settings, variable_of
from banditrank.service._settings import Settings

TEXTS = {  # of variables, with the settings that they stand for
    "host": ("0.0.0.0", "0.0.0.0"),  # noqa: S104 - not bound
    "port": ("9000", 9000),
    "store": ("memory:", "memory:"),
    "workers": ("1", 1),
    "http": ("uvicorn", "uvicorn"),
    "require_keys": ("true", True),
    "sync_seconds": ("2", 2.0),
    "max_body_bytes": ("4096", 4096),
    "body_timeout_seconds": ("0.5", 0.5),
    "max_streams": ("0", 0),
    "max_stream_seconds": ("60", 60.0),
    "bucket_seconds": ("1e3", 1000.0),
    "log_requests": ("1", True),
    "allow_origins": (" https://a.example, https://b.example loopback", None),
}
ORIGINS = ("https://a.example", "https://b.example", "loopback")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(environment: dict[str, str], config: str | None = None, **options: object) -> Settings:
    with load_settings(options, None if config is None else Path(config), environment) as settings:
        return settings


def test_every_setting_has_a_variable() -> None:
    assert set(TEXTS) == {setting.name for setting in fields(Settings)}
    settings = loaded({variable_of(name): text for name, (text, _) in TEXTS.items()})
    for name, (_, value) in TEXTS.items():
        assert getattr(settings, name) == (ORIGINS if value is None else value), name
        assert getattr(settings, name) != getattr(Settings(), name) or name == "workers"


def test_options_override_the_environment_and_that_the_file() -> None:
    Path("banditrank.toml").write_text("port = 1\nmax_streams = 2\nworkers = 3")
    environment = {"BANDITRANK_PORT": "10", "BANDITRANK_MAX_STREAMS": "20"}
    settings = loaded(environment, "banditrank.toml", port=100)
    assert (settings.port, settings.max_streams, settings.workers, settings.host) == (100, 20, 3, "127.0.0.1")


def test_the_environment_names_the_file() -> None:
    Path("banditrank.toml").write_text("port = 1")
    assert loaded({"BANDITRANK_CONFIG": "banditrank.toml"}).port == 1
    Path("other.toml").write_text("port = 2")
    assert loaded({"BANDITRANK_CONFIG": "banditrank.toml"}, "other.toml").port == 2


def test_empty_variables_count_as_unset() -> None:
    assert loaded({variable_of(setting.name): "" for setting in fields(Settings)}) == Settings()
    assert loaded({"BANDITRANK_CONFIG": "", "BANDITRANK_STORE_FILE": ""}) == Settings()


@pytest.mark.parametrize(("text", "value"), [("TRUE", True), ("1", True), ("False", False), ("0", False)])
def test_booleans_of_variables(text: str, value: bool) -> None:  # noqa: FBT001 - a value
    assert loaded({"BANDITRANK_LOG_REQUESTS": text}).log_requests is value


INVALID = [
    ({"PORT": "x"}, "BANDITRANK_PORT must be a whole number from 0 to 65,535, got 'x'"),
    ({"PORT": "70000"}, "BANDITRANK_PORT must be a whole number from 0 to 65,535, got 70000"),
    ({"PORT": "1.5"}, "BANDITRANK_PORT must be a whole number from 0 to 65,535, got '1.5'"),
    ({"SYNC_SECONDS": "soon"}, "BANDITRANK_SYNC_SECONDS must be a number from 0.01 to 60, got 'soon'"),
    ({"SYNC_SECONDS": "nan"}, "BANDITRANK_SYNC_SECONDS must be a number from 0.01 to 60, got nan"),
    ({"REQUIRE_KEYS": "maybe"}, "BANDITRANK_REQUIRE_KEYS must be true or false, got 'maybe'"),
    ({"ALLOW_ORIGINS": "shop"}, "BANDITRANK_ALLOW_ORIGINS must be origins such as https://shop.example"),
    ({"WORKERS": "2", "STORE": "memory:"}, "BANDITRANK_STORE must be shared by all workers"),
    ({"CONFIG": "missing.toml"}, "BANDITRANK_CONFIG must be a readable file"),
    ({"CONFIG": "bad.toml"}, "BANDITRANK_CONFIG must be a TOML file"),
    ({"CONFIG": "range.toml"}, "range.toml: port must be a whole number from 0 to 65,535, got 70000"),
    ({"CONFIG": "type.toml"}, "type.toml: require_keys must be true or false, got 'yes'"),
    ({"CONFIG": "list.toml"}, "list.toml: allow_origins must be a list, got 'loopback'"),
    (
        {"CONFIG": "unknown.toml"},
        r"^unknown.toml: setting must be one of .* \(did you mean port\?\), got 'prot'$",
    ),
    ({"PROT": "1"}, r"^environment variable must be one of .* \(did you mean BANDITRANK_PORT\?\), got"),
    (
        {"PORT": "tcp://10.0.0.1:8420", "SERVICE_HOST": "10.0.0.1"},
        "BANDITRANK_SERVICE_HOST must be unset: Kubernetes sets it .* unless enableServiceLinks is false",
    ),
]


@pytest.mark.parametrize(("variables", "message"), INVALID, ids=lambda value: str(value)[:40])
def test_errors_name_the_source(variables: dict[str, str], message: str) -> None:
    Path("bad.toml").write_text("port = ")
    Path("range.toml").write_text("port = 70000")
    Path("type.toml").write_text('require_keys = "yes"')
    Path("list.toml").write_text('allow_origins = "loopback"')
    Path("unknown.toml").write_text("prot = 1")
    with pytest.raises(InvalidInputError, match=message):
        loaded({f"BANDITRANK_{name}": text for name, text in variables.items()})


@pytest.mark.parametrize(
    "content", [b'store = "\xff"', b"\xff = 1", b"port = " + b"9" * 5000, b"port = " + b"[" * 5000]
)
def test_a_damaged_file_is_one_line(content: bytes, capsys: pytest.CaptureFixture) -> None:
    """Finding 14: bytes, digits and brackets of a file are no traceback."""
    Path("bad.toml").write_bytes(content)
    check_refusal(capsys, ["serve", "--config", "bad.toml"], r"--config must be a TOML file \(.*\), got 'bad")


def test_errors_of_the_running_service_name_the_source() -> None:
    with (
        pytest.raises(InvalidInputError, match=r"^BANDITRANK_PORT must be free"),
        load_settings({}, None, {"BANDITRANK_PORT": "1"}),
    ):
        raise InvalidInputError("port", "must be free to listen on", 1)
    with pytest.raises(InvalidInputError, match=r"^port must be free"), load_settings({"port": 1}, None, {}):
        raise InvalidInputError("port", "must be free to listen on", 1)


def test_only_variables_with_the_prefix_are_checked() -> None:
    check_variables({"BANDIT": "1", "PATH": "/bin", "banditrank_port": "x"})
    with pytest.raises(UnknownNameError):
        check_variables({"BANDITRANK_": ""})


def test_serve_exits_with_2_and_names_the_variable(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITRANK_PORT", "x")
    check_refusal(capsys, ["serve"], "BANDITRANK_PORT must be a whole number from 0 to 65,535, got 'x'")
    check_refusal(capsys, ["serve", "--port", "70000"], "--port must be a whole number from 0")
    monkeypatch.setenv("BANDITRANK_PORT", "0")
    for host in ("shop..example", "x" * 300):
        monkeypatch.setenv("BANDITRANK_HOST", host)
        check_refusal(
            capsys, ["serve", "--store", "memory:"], f"BANDITRANK_HOST must be an address, got '{host[:9]}"
        )
    monkeypatch.setenv("BANDITRANK_PROT", "1")
    check_refusal(capsys, ["serve", "--port", "1"], "did you mean BANDITRANK_PORT")


def test_an_option_switches_off_what_a_variable_switches_on(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Settings] = []
    monkeypatch.setattr("banditrank.service._server.serve", started.append)
    monkeypatch.setenv("BANDITRANK_REQUIRE_KEYS", "true")
    for options in ([], ["--no-require-keys"]):
        assert run(capsys, "serve", *options)[0] == 0
    assert [settings.require_keys for settings in started] == [True, False]


def test_the_store_comes_from_a_file_that_the_environment_names(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("secret").write_text("sqlite:secret.db\n")
    monkeypatch.setenv("BANDITRANK_STORE_FILE", "secret")
    assert run(capsys, "keys", "create", "page")[0] == 0
    assert Path("secret.db").exists()
    started: list[Settings] = []
    monkeypatch.setattr("banditrank.service._server.serve", started.append)
    assert run(capsys, "serve")[0] == 0
    assert started[0].store == "sqlite:secret.db"
    monkeypatch.setenv("BANDITRANK_STORE", "memory:")
    check_refusal(capsys, ["serve"], "BANDITRANK_STORE_FILE must be unset if BANDITRANK_STORE is set")
    assert "BANDITRANK_STORE" not in os.environ
    Path("secret").unlink()
    check_refusal(capsys, ["serve"], "BANDITRANK_STORE_FILE must be a readable file")


@pytest.mark.parametrize(("secrets", "n_warnings"), [("elsewhere", 1), (".", 0)])
def test_secrets_of_containers_may_be_readable(
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    secrets: str,
    n_warnings: int,
) -> None:
    monkeypatch.setattr("banditrank._cli.store._SECRETS_DIRECTORY", Path(secrets).absolute())
    path = Path("store").absolute()
    path.write_text("redis://:password@127.0.0.1:1/0")
    path.chmod(0o444)
    monkeypatch.setenv("BANDITRANK_STORE_FILE", str(path))
    monkeypatch.setattr("banditrank.service._server.serve", lambda _: None)
    assert run(capsys, "serve")[0] == 0
    assert [record.levelname for record in caplog.records] == ["WARNING"] * n_warnings
