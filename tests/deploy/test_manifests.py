"""Compose files, Kubernetes manifests and the systemd unit agree with the service and with each other."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from helpers.dockerfile import environment_of, read_stages
from helpers.running_service import running
from helpers.servers import NginxServer, free_port, private_directory

from banditrank import __version__
from banditrank.engine._api_keys import create_key
from banditrank.service._application import ROUTES
from banditrank.service._configuration import check_variables
from banditrank.service._settings import Settings
from banditrank.storage._factory import open_store

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
FINAL = read_stages(DEPLOY / "Dockerfile")[-1]
PATHS = {route.path for route in ROUTES}
UNIT = DEPLOY / "systemd" / "banditrank.service"
ANALYZER = shutil.which("systemd-analyze")


def manifest(name: str) -> Any:
    return yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text())


def compose(name: str) -> Any:
    return yaml.safe_load((DEPLOY / f"compose.{name}.yaml").read_text())


def environments() -> Iterator[dict[str, str]]:
    """Yield the variables that each file sets."""
    yield environment_of(FINAL)
    for name in ("sqlite", "postgresql"):
        yield compose(name)["services"]["service"]["environment"]
    yield {**manifest("configmap")["data"], **{one["name"]: one["value"] for one in container()["env"]}}
    lines = (DEPLOY / "systemd" / "banditrank.env").read_text().splitlines()
    yield dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def container() -> Any:
    (only,) = manifest("deployment")["spec"]["template"]["spec"]["containers"]
    return only


def test_variables_are_known_to_the_service() -> None:
    for environment in environments():
        assert environment
        check_variables(environment)
        assert all(isinstance(value, str) for value in environment.values())


def test_ports_are_that_of_the_service() -> None:
    port = Settings().port
    assert [one.text for one in FINAL if one.name == "EXPOSE"] == [str(port)]
    assert [one["containerPort"] for one in container()["ports"]] == [port]
    assert [one["port"] for one in manifest("service")["spec"]["ports"]] == [port]
    assert compose("sqlite")["services"]["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"server service:{port} " in (DEPLOY / "nginx" / "banditrank.conf").read_text()


def test_probes_are_routes_of_the_service() -> None:
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container()[probe]["httpGet"]["path"] in PATHS
    assert container()["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container()["livenessProbe"]["httpGet"]["path"] == "/healthz", (
        "an outage of the store restarts none"
    )


def test_pods_have_no_privileges_and_no_service_links() -> None:
    pod = manifest("deployment")["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    user = next(one.text for one in FINAL if one.name == "USER").split(":")
    assert [str(pod["securityContext"][key]) for key in ("runAsUser", "runAsGroup")] == user
    assert pod["securityContext"]["runAsNonRoot"] is True
    own = container()["securityContext"]
    assert own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert "/tmp" in [mount["mountPath"] for mount in container()["volumeMounts"]]  # noqa: S108


def test_kubernetes_objects_refer_to_each_other() -> None:
    listed = manifest("kustomization")
    assert all((KUBERNETES / name).exists() for name in listed["resources"])
    assert listed["images"][0]["newTag"] == __version__
    assert listed["images"][0]["name"] == container()["image"]
    labels = manifest("deployment")["spec"]["template"]["metadata"]["labels"]
    assert manifest("service")["spec"]["selector"] == labels
    assert manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("horizontalpodautoscaler")["spec"]["scaleTargetRef"]["name"] == "banditrank"
    (store, _) = manifest("deployment")["spec"]["template"]["spec"]["volumes"]
    secret = manifest("secret.example")
    assert store["secret"]["secretName"] == secret["metadata"]["name"]
    (mount,) = [one for one in container()["volumeMounts"] if one["name"] == store["name"]]
    (variable,) = container()["env"]
    assert variable["value"] == f"{mount['mountPath']}/{next(iter(secret['stringData']))}"


def test_compose_replicas_share_a_store_with_a_secret() -> None:
    files = compose("postgresql")
    service = files["services"]["service"]
    assert service["deploy"]["replicas"] == 2
    assert service["environment"]["BANDITRANK_STORE_FILE"] == f"/run/secrets/{service['secrets'][0]}"
    assert set(files["secrets"]) == {"store", *files["services"]["database"]["secrets"]}
    assert "deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text()


def test_containers_of_compose_files_have_no_privileges() -> None:
    for name in ("sqlite", "postgresql"):
        for service in ("service", "proxy"):
            if settings := compose(name)["services"].get(service):
                assert settings["read_only"] is True
                assert settings["cap_drop"] == ["ALL"]
                assert settings["security_opt"] == ["no-new-privileges:true"]


def test_the_proxy_serves_and_streams(tmp_path: Path) -> None:
    text, port = (DEPLOY / "nginx" / "banditrank.conf").read_text(), free_port()
    store = f"sqlite:{tmp_path / 'store.db'}"
    with open_store(store) as opened:
        key = create_key(opened, "shop", ["rank", "read", "administer"])
    with running(store=store) as service, private_directory() as directory:
        text = text.replace("listen 8080", f"listen 127.0.0.1:{port}")
        text = text.replace("service:8420 resolve", service.address.removeprefix("http://"))  # since 1.27.3
        headers = {"authorization": f"Bearer {key}"}
        with (
            NginxServer(directory, text, [port]),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=300.0) as client,
        ):
            body = {"name": "ads", "items": ["a", "b"], "n_positions": 1}
            assert client.post("/v1/surfaces", json=body).status_code == 201
            with client.stream("GET", "/v1/surfaces/ads/events") as response:
                events = (line for line in response.iter_lines() if line.startswith("event: "))
                assert next(events) == "event: state"


def test_the_unit_is_valid(tmp_path: Path) -> None:
    if ANALYZER is None:
        pytest.skip("there is no systemd-analyze")
    text = UNIT.read_text()
    programs = set(re.findall(r"^Exec\w+=(\S+)", text, re.MULTILINE))
    assert programs == {"/opt/banditrank/bin/banditrank"}
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("/opt/banditrank/bin/banditrank", sys.executable))
    done = subprocess.run([ANALYZER, "verify", str(copy)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert complaints == []


def test_the_unit_is_hardened() -> None:
    if ANALYZER is None:
        pytest.skip("there is no systemd-analyze")
    done = subprocess.run(
        [ANALYZER, "security", "--offline=yes", "--threshold=20", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
