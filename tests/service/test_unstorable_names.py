"""Names that a store cannot hold get the same response with every store."""

from pathlib import Path

import pytest
from helpers.running_service import running

HOME = {"name": "home", "items": ["a", "b"], "n_positions": 1}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql", "redis"])
def test_names_with_nul_are_not_found(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if kind in {"postgresql", "redis"}:
        address = request.getfixturevalue(kind).address()
    else:
        address = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 'store.db'}"}[kind]
    with running(store=address) as service:
        assert service.ask("POST", "/v1/surfaces", HOME).status_code == 201
        for name in ("%00", "home%00", "%ff", "%ed%a0%80"):  # the last is a lone surrogate
            for method, path, body in (
                ("GET", f"/v1/surfaces/{name}", None),
                ("PATCH", f"/v1/surfaces/{name}", {}),
                ("DELETE", f"/v1/surfaces/{name}", None),
                ("POST", f"/v1/surfaces/{name}/rankings", {"user_type": "everybody"}),
                ("POST", f"/v1/surfaces/{name}/items", {"items": ["c"]}),
                ("DELETE", f"/v1/surfaces/{name}/items/a", None),
                ("GET", f"/v1/surfaces/{name}/dashboard", None),
                ("GET", f"/v1/rankings/{name}", None),
                ("POST", "/v1/feedback", {"ranking": "home\0"}),
            ):
                answer = service.ask(method, path, body)
                assert answer.status_code == 404, f"{method} {path}: {answer.text}"
            assert service.ask("DELETE", f"/v1/surfaces/home/items/{name}").status_code == 422
        surrogate = service._client.post(
            f"{service.address}/v1/feedback",
            content=b'{"ranking": "\\ud800"}',
            headers={"content-type": "application/json"},
        )
        assert surrogate.status_code == 400, surrogate.text
