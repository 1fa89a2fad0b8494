"""Stores are opened by address, and no message contains a password."""

import subprocess
import sys

import pytest
from helpers.servers import PASSWORD, PostgresServer, RedisServer

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage._factory import open_store


def message_of(error: pytest.ExceptionInfo[BaseException]) -> str:
    """Return the message of an error, after checking that its traceback does not show the password."""
    texts = []
    reason: BaseException | None = error.value
    while reason is not None:
        texts.append(str(reason))
        reason = None if reason.__suppress_context__ and reason.__cause__ is None else reason.__context__
    assert PASSWORD not in " ".join(texts)
    assert "\n" not in texts[0]
    return texts[0]


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://me:{PASSWORD}@host/base",
        f"mysql:host password {PASSWORD}",
        f"host=here password={PASSWORD}",
        f"postgresql:host=here password={PASSWORD}",
        f"postgresql://me:x@{PASSWORD}@host/base",
        f"postgresql://me:x/{PASSWORD}@host/base",
        f"postgresql://me:x#{PASSWORD}@host/base",
        f"postgresql://me:1?{PASSWORD}@host/base",
        f"postgresql://me:{PASSWORD}/base",
        f"redis://:x@{PASSWORD}@host/0",
        f"redis://:1/{PASSWORD}@host/0",
        f"redis://:1#{PASSWORD}@host/0",
        f"redis://:1?{PASSWORD}@host/0",
        f"redis://:{PASSWORD}/0",
        f"postgresql://me:{PASSWORD}%zz@host/base",
        f"postgresql://me:{PASSWORD}@host/base?password={PASSWORD}&nonsense=1",
        f"postgresql://me:{PASSWORD}@host/base?schema=Robert'); DROP TABLE",
        f"redis://:{PASSWORD}@host:port/0",
        f"redis://:{PASSWORD}@host/0?nonsense={PASSWORD}",
        f"redis://:{PASSWORD}@host/0?durability=some",
        "store.db",
        "sqlite:",
        "sqlite:a\0b",
        "",
    ],
)
def test_malformed_addresses_are_rejected(address: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        open_store(address)
    assert message_of(error).startswith(("store must", "schema must", "durability must"))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "redis"])
def test_an_unreachable_server_is_reported_with_its_host(scheme: str) -> None:
    with pytest.raises(StoreUnavailableError) as error:
        open_store(f"{scheme}://me:{PASSWORD}@127.0.0.1:1/0")  # no server listens there
    assert "127.0.0.1" in message_of(error)


def test_a_wrong_password_is_reported(postgresql: PostgresServer, redis: RedisServer) -> None:
    for server in (postgresql, redis):
        with pytest.raises(StoreUnavailableError) as error:
            open_store(server.address().replace(PASSWORD, f"{PASSWORD}-2"))
        assert "password" in message_of(error)


def test_a_missing_database_is_reported(postgresql: PostgresServer) -> None:
    with pytest.raises(StoreError) as error:
        open_store(postgresql.address().replace("/postgres?", "/nowhere?"))
    assert "nowhere" in message_of(error)


@pytest.mark.parametrize(
    ("scheme", "driver", "name"), [("postgresql", "psycopg", "PostgreSQL"), ("redis", "redis", "Redis")]
)
def test_a_missing_driver_is_reported_with_the_extra_to_install(scheme: str, driver: str, name: str) -> None:
    code = f"""
import sys
sys.modules[{driver!r}] = None
from banditrank.storage._factory import open_store
try:
    open_store("{scheme}://me:{PASSWORD}@host/0")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{driver} is required for a {name} store: pip install 'banditrank[{scheme}]'\n"


def test_opening_a_file_imports_no_driver(tmp_path: object) -> None:
    code = f"""
import sys
from banditrank.storage._factory import open_store
open_store("sqlite:{tmp_path}/store.db").close()
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"psycopg", "redis"} & set(done.stdout.split())
