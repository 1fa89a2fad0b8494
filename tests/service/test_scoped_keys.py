"""Rights of keys that are limited to surfaces."""

from typing import Any

import pytest
from helpers.running_service import running

from banditrank.engine._api_keys import create_key
from banditrank.service._application import ROUTES
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

READS = [one.path for one in ROUTES if one.right == "read" and "{surface}" in one.path]


def surface(name: str) -> dict[str, Any]:
    return {"name": name, "items": ["a", "b"], "n_positions": 1}


def test_a_scoped_key_has_its_rights_on_its_surfaces_only(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    full = create_key(store, "all", ["rank", "read", "administer"])
    scoped = create_key(store, "home", ["rank", "read", "administer"], surfaces=["home", "later"])
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:

        def ask(key: str, method: str, path: str, body: object = None) -> Any:
            return service.ask(method, path, body, headers={"authorization": f"Bearer {key}"})

        for name in ("home", "ads"):
            assert ask(full, "POST", "/v1/surfaces", surface(name)).status_code == 201
        assert len(READS) >= 6
        refusals = set()
        for other in ("ads", "none"):  # of which one exists
            for method, path, body in (
                *(("GET", path.replace("{surface}", other), None) for path in READS),
                ("PATCH", f"/v1/surfaces/{other}", {}),
                ("DELETE", f"/v1/surfaces/{other}", None),
                ("POST", f"/v1/surfaces/{other}/rankings", {"user_type": "everybody"}),
                ("POST", f"/v1/surfaces/{other}/rankings/batch", {"user_types": ["everybody"]}),
                ("POST", "/v1/surfaces", surface(other)),
            ):
                answer = ask(scoped, method, path, body)
                assert answer.status_code == 403, f"{method} {path}"
                refusals.add(answer.json()["detail"])
        assert len(refusals) == 1, "nothing tells whether a surface exists"
        assert [one["name"] for one in ask(scoped, "GET", "/v1/surfaces").json()["surfaces"]] == ["home"]
        missing = ask(scoped, "DELETE", "/v1/surfaces/later")
        assert missing.status_code == 404
        assert "ads" not in missing.text
        assert ask(scoped, "POST", "/v1/surfaces", surface("later")).status_code == 201
        assert ask(scoped, "GET", "/metrics").status_code == 403
        assert ask(full, "GET", "/metrics").status_code == 200
        ids = {
            name: ask(full, "POST", f"/v1/surfaces/{name}/rankings", {"user_type": "everybody"}).json()["id"]
            for name in ("home", "ads")
        }
        assert ask(scoped, "GET", f"/v1/rankings/{ids['ads']}").status_code == 403
        assert ask(scoped, "POST", "/v1/feedback", {"ranking": ids["ads"]}).status_code == 403
        batch = {"feedback": [{"ranking": ids["ads"]}, {"ranking": ids["home"]}]}
        results = ask(scoped, "POST", "/v1/feedback/batch", batch).json()["results"]
        assert [one["status"] for one in results] == ["rejected", "counted"]
        assert results[0]["problem"]["status"] == 403
        assert ask(full, "GET", "/v1/surfaces/ads").json()["rounds"] == 0
