"""The Grafana dashboard and the alert rules use metrics and labels that the service exports."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.service._application import ROUTES
from banditrank.service._metrics import Metrics
from banditrank.storage._memory import MemoryStore

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())
GRAFANA = json.loads((DEPLOY / "grafana.json").read_text())
OF_PROMETHEUS = {"job", "instance"}  # labels that Prometheus adds
OPERATIONS = {route.operation_id for route in ROUTES}


@pytest.fixture(scope="module")
def labels() -> Iterator[dict[str, set[str]]]:
    """Return the labels of each exported metric."""
    engine = Engine(MemoryStore(), sync_seconds=60.0)
    engine.create_surface(Surface("home", items=["a", "b"], n_positions=1))
    metrics = Metrics(engine)
    metrics.record_request("rank", 200, 0.25)
    families = text_string_to_metric_families(metrics.exposition().decode())
    found = {"up": set()}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    yield found
    engine.close()


def rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield where each expression is used, and the expression."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in GRAFANA["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")
    for variable in GRAFANA["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["definition"].startswith("label_values(")
            yield variable["name"], variable["definition"].removeprefix("label_values(").rsplit(",", 1)[0]


def selectors(node: Any) -> Iterator[Any]:
    """Yield all selectors of metrics below a node."""
    if isinstance(node, promql.VectorSelector):
        yield node
    elif isinstance(node, promql.MatrixSelector):
        yield node.vector_selector
    elif isinstance(node, promql.BinaryExpr):
        yield from (*selectors(node.lhs), *selectors(node.rhs))
    elif isinstance(node, promql.AggregateExpr | promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr):
        yield from selectors(node.expr)
    elif isinstance(node, promql.Call):
        for argument in node.args:
            yield from selectors(argument)
    else:
        assert isinstance(node, promql.NumberLiteral | promql.StringLiteral), type(node)


def grouping_labels(node: Any) -> Iterator[set[str]]:
    """Yield the labels of each aggregation, each with those that its metrics must have."""
    if isinstance(node, promql.AggregateExpr):
        if node.modifier is not None:
            yield set(node.modifier.labels)
        yield from grouping_labels(node.expr)
    elif isinstance(node, promql.BinaryExpr):
        yield from (*grouping_labels(node.lhs), *grouping_labels(node.rhs))
    elif isinstance(node, promql.Call):
        for argument in node.args:
            yield from grouping_labels(argument)
    elif isinstance(node, promql.ParenExpr):
        yield from grouping_labels(node.expr)


@pytest.mark.parametrize(("used_in", "text"), list(expressions()))
def test_metrics_and_labels_exist(used_in: str, text: str, labels: dict[str, set[str]]) -> None:
    parsed = promql.parse(text)
    found = list(selectors(parsed))
    assert found, used_in
    for selector in found:
        assert selector.name in labels, f"{used_in}: {selector.name}"
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels[selector.name] | OF_PROMETHEUS, f"{used_in}: {matcher.name}"
            if matcher.name == "operation":
                assert set(matcher.value.split("|")) <= OPERATIONS, f"{used_in}: {matcher.value}"
    known = OF_PROMETHEUS.union(*(labels[selector.name] for selector in found))
    for group in grouping_labels(parsed):
        assert group <= known, f"{used_in}: {group - known}"


def test_every_metric_is_on_the_dashboard(labels: dict[str, set[str]]) -> None:
    shown = " ".join(text for _, text in expressions())
    for name in labels:
        base = name.removesuffix("_count").removesuffix("_sum").removesuffix("_bucket")
        assert base in shown, name


def test_alerts_are_complete() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) >= 10
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]


def test_the_scraped_job_is_the_one_that_alerts_select() -> None:
    configuration = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    (scraped,) = configuration["scrape_configs"]
    assert f'job="{scraped["job_name"]}"' in " ".join(rule["expr"] for rule in rules())
    assert all((DEPLOY / name).exists() for name in configuration["rule_files"])


def test_the_dashboard_can_be_imported() -> None:
    ids = [panel["id"] for panel in GRAFANA["panels"]]
    assert len(set(ids)) == len(ids)
    assert GRAFANA["schemaVersion"] >= 39
    variables = {one["name"] for one in GRAFANA["templating"]["list"]}
    assert variables == {"datasource", "job", "surface"}
    for panel in GRAFANA["panels"]:
        box = panel["gridPos"]
        assert box["x"] + box["w"] <= 24
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"
