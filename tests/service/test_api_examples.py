"""Examples in the OpenAPI document conform to its schemas and to a running service."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from helpers import api_examples
from helpers.running_service import running
from jsonschema import Draft202012Validator

from banditrank.service._application import ROUTES
from banditrank.service._openapi import openapi_document

DOCUMENT = openapi_document(ROUTES)
OPERATIONS = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}
RECORD_AGAIN = "run make examples"


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    with running(**api_examples.SETTINGS) as service:
        return api_examples.record(service)


def validate(value: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the request body, and all responses, of an operation."""
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    for one in [*bodies, *operation["responses"].values()]:
        yield from one.get("content", {}).values()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_example_conforms_to_its_schema(operation: dict[str, Any]) -> None:
    for parameter in operation["parameters"]:
        validate(parameter["example"], parameter["schema"])
    for content in contents(operation):
        values = [one["value"] for one in content["examples"].values()] if "examples" in content else []
        values += [content["example"]] if "example" in content else []
        assert values, RECORD_AGAIN
        for value in values:
            validate(value, content["schema"])


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_every_example_is_as_the_service_responds(operation_id: str, recorded: Mapping[str, Any]) -> None:
    operation, now = OPERATIONS[operation_id], recorded[operation_id]
    parameters = {one["name"]: one["example"] for one in operation["parameters"]}
    assert same_shape(parameters, now["parameters"]), RECORD_AGAIN
    if "requestBody" in operation:
        (content,) = operation["requestBody"]["content"].values()
        assert same_shape(content["example"], now["request"]), RECORD_AGAIN
        validate(now["request"], content["schema"])
    success = next(response for status, response in operation["responses"].items() if status.startswith("2"))
    assert ("content" in success) == ("response" in now)
    for content in success.get("content", {}).values():
        assert same_shape(content["example"], now["response"]), RECORD_AGAIN
        validate(now["response"], content["schema"])


def test_examples_of_errors_are_as_the_service_responds(recorded: Mapping[str, Any]) -> None:
    from banditrank.service._openapi import api_examples as stored

    assert stored()["problems"] == recorded["problems"], RECORD_AGAIN
    assert set(stored()) - {"problems"} == set(OPERATIONS), RECORD_AGAIN


def test_the_comparison_finds_a_missing_field_and_another_type() -> None:
    assert same_shape({"a": [1, 2.5], "b": None}, {"a": [3], "b": "x"})
    assert not same_shape({"a": 1}, {"a": 1, "b": 2})
    assert not same_shape({"a": [{"b": 1}]}, {"a": [{"c": 1}]})
    assert not same_shape({"a": 1}, {"a": "1"})


def same_shape(one: Any, other: Any) -> bool:
    """Return whether two JSON values have the same fields and types; null and no elements fit anything."""
    if one is None or other is None:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_shape(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return all(same_shape(first, second) for first, second in zip(one, other, strict=False))
    return kind(one) is kind(other)


def kind(value: Any) -> type:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float if is_number else type(value)
