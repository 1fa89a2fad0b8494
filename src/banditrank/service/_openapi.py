"""OpenAPI document, generated from the routes."""

import inspect
import re
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec

from banditrank import __version__
from banditrank.service._http_errors import (
    COMPILING,
    INVALID,
    MALFORMED,
    NO_KEY,
    NO_RIGHT,
    OVERLOADED,
    TOO_LARGE,
    TOO_SLOW,
    UNAVAILABLE,
    WRONG_CONTENT_TYPE,
    WRONG_HOST,
    HttpErrorType,
)
from banditrank.service._requests import JsonResponse, Request
from banditrank.service._routing import Parameter, Route
from banditrank.service._schemas import ProblemDetails

EXAMPLES_FILE = files("banditrank.service") / "api_examples.json"
"""Examples of all operations; ``make examples`` records them from a running service."""

_REFERENCE = "#/components/schemas/{name}"
_BODY_ERRORS = (MALFORMED, TOO_SLOW, TOO_LARGE, WRONG_CONTENT_TYPE, INVALID)
_AUTH_ERRORS = (NO_KEY, NO_RIGHT)

_PATH_PARAMETERS = {
    "surface": Parameter("surface", "Name of the surface.", {"type": "string"}),
    "item": Parameter("item", "Name of the item.", {"type": "string"}),
    "ranking": Parameter("ranking", "Id of the ranking.", {"type": "string"}),
    "file": Parameter("file", "Name of the file.", {"type": "string"}),
}
_TAGS = {
    "_ranking_routes": (
        "Rankings and feedback",
        "Request a ranking, show it, and report the click.",
    ),
    "_surface_routes": ("Surfaces", "Create and update surfaces and their items."),
    "_report_routes": (
        "Reports",
        "Estimates, the price of equality, experiments, and the reasons for a ranking.",
    ),
    "_dashboard_routes": ("Dashboard", "The data of a surface's dashboard."),
    "_auth": ("Access", "Rights of an API key."),
    "_health_routes": ("Health", "Health, readiness and metrics."),
    "_static_files": ("Pages", "The dashboard, the API page and their files."),
}
"""Name and description of the tag of each module with routes, in the order of the API page."""
_IF_NONE_MATCH = Parameter("If-None-Match", "Entity tags that the client has cached.", {"type": "string"})

_SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*)\n((?:[ ]{4}.*\n?|\n)+)", re.MULTILINE)


def openapi_document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the OpenAPI document of all routes but those of the document itself."""
    documented = [route for route in routes if route.path not in ("/openapi.json", "/docs")]
    types = [ProblemDetails]
    for route in documented:
        schemas = (route.request_schema, route.response_schema, *route.events.values())
        types += [schema for schema in schemas if schema is not None]
    references, components = _schemas(types)
    paths: dict[str, dict[str, Any]] = {}
    examples = api_examples()
    for route in documented:
        example = examples.get(route.operation_id, {})
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, references, example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "banditrank",
            "version": __version__,
            "description": "Ranks items for each type of user, and learns from clicks. The type of an error "
            "is urn:banditrank:problem:NAME; each operation lists the names of its errors in brackets.",
        },
        "tags": [{"name": name, "description": description} for name, description in _TAGS.values()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(types: list[Any]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return references to the schemas of types, and all schemas by name with plain descriptions."""
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    parents = {type_.__name__: type_.__mro__[1:] for type_ in types}
    for name, component in components.items():
        for parent in reversed(parents.get(name, ())):
            _describe_properties(component, parent.__doc__ or "")
        docstring = component.get("description", "")
        _describe_properties(component, docstring)
        component["description"] = _plain(_SECTION.split(inspect.cleandoc(docstring))[0])
    return dict(zip(types, schemas, strict=True)), components


def _describe_properties(component: dict[str, Any], docstring: str) -> None:
    """Set the descriptions of properties from the attributes of a numpy docstring."""
    _, *sections = _SECTION.split(inspect.cleandoc(docstring) + "\n")
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        if title not in ("Attributes", "Parameters"):
            continue
        for names, description in _ENTRY.findall(text):
            for name in names.split(", "):
                if name in component.get("properties", {}):
                    # A sibling of $ref is allowed since OpenAPI 3.1.
                    component["properties"][name]["description"] = _plain(description)


def _plain(text: str) -> str:
    """Return a text in one line without markup for code."""
    return " ".join(text.replace("`", "").split())


@cache
def api_examples() -> dict[str, dict[str, Any]]:
    """Return an example of each operation by its id: its parameters, its request body and its response.

    The item ``problems`` has examples of errors by their types.
    """
    examples: dict[str, dict[str, Any]] = msgspec.json.decode(EXAMPLES_FILE.read_bytes())
    return examples


def _operation(route: Route, references: dict[Any, Any], example: dict[str, Any]) -> dict[str, Any]:
    path_parameters = [_PATH_PARAMETERS[name] for name in re.findall(r"{(\w+)}", route.path)]
    parameters = [_parameter(one, "path") for one in path_parameters]
    parameters += [_parameter(one, "query") for one in route.query]
    parameters += [_parameter(_IF_NONE_MATCH, "header")] if route.has_etag else []
    for parameter in parameters:
        parameter.update(_example(example.get("parameters", {}), parameter["name"]))
    response: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    if route.response_schema is not None:
        response["content"] = {route.content_type: {"schema": references[route.response_schema]}}
    elif route.events:
        response["content"] = {route.content_type: {"schema": _event_schema(route, references)}}
    elif route.content_type != "application/json":
        response["content"] = {route.content_type: {"schema": {"type": "string"}}}
    for content in response.get("content", {}).values():
        content.update(_example(example, "response"))
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "tags": [_TAGS[route.handler.__module__.rpartition(".")[2]][0]],
        "summary": route.summary,
        "parameters": parameters,
        "responses": {str(route.status): response} | _error_responses(route, references),
    }
    if route.has_etag:
        operation["responses"]["304"] = {"description": "The cached response is still valid."}
    if route.request_schema is not None:
        schema = references[route.request_schema]
        body = {"schema": schema, **_example(example, "request")}
        operation["requestBody"] = {"required": True, "content": {"application/json": body}}
    if route.right is not None:
        operation["security"] = [{"key": []}, {}]
        operation["description"] = f"Needs the right to {route.right} where API keys are required."
    return operation


def _example(examples: dict[str, Any], name: str) -> dict[str, Any]:
    return {"example": examples[name]} if name in examples else {}


def _event_schema(route: Route, references: dict[Any, Any]) -> dict[str, Any]:
    """Return the schema of one event: before OpenAPI 3.2 the schema of a stream is that of its events."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "event": {"const": name},
                    "data": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "contentSchema": references[schema],
                    },
                },
                "required": ["event", "data"],
            }
            for name, schema in route.events.items()
        ]
    }


def _parameter(parameter: Parameter, location: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": location,
        "required": location == "path",
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _error_responses(route: Route, references: dict[Any, Any]) -> dict[str, Any]:
    error_types: list[HttpErrorType] = [*route.errors, WRONG_HOST]
    if route.request_schema is not None:
        error_types += _BODY_ERRORS
    elif route.query or "{item}" in route.path:
        error_types.append(INVALID)
    if route.right is not None:
        error_types += [*_AUTH_ERRORS, UNAVAILABLE, COMPILING, OVERLOADED]
    by_status: dict[int, list[HttpErrorType]] = {}
    for error_type in dict.fromkeys(error_types):
        by_status.setdefault(error_type.status, []).append(error_type)
    return {
        str(status): {
            "description": " ".join(f"{one.title} ({one.name})." for one in types),
            "content": {
                "application/problem+json": {
                    "schema": references[ProblemDetails],
                    "examples": {one.name: {"value": _problem_example(one)} for one in types},
                }
            },
        }
        for status, types in sorted(by_status.items())
    }


def _problem_example(error_type: HttpErrorType) -> dict[str, Any]:
    recorded = api_examples().get("problems", {}).get(error_type.name, {})
    return {
        "type": error_type.urn,
        "title": error_type.title,
        "status": error_type.status,
        "detail": error_type.title,
        "request_id": "4f0c7a1e-2b",
        **recorded,
    }


@cache
def _encoded_document() -> bytes:
    from banditrank.service._application import ROUTES  # noqa: PLC0415 - which include the routes of this module

    return msgspec.json.format(msgspec.json.encode(openapi_document(ROUTES)))


async def _json(request: Request) -> JsonResponse:
    root_path = request.scope.get("root_path", "")
    if not root_path:
        return JsonResponse(_encoded_document())
    document = msgspec.json.decode(_encoded_document())
    return JsonResponse({**document, "servers": [{"url": root_path}]})


ROUTES = (Route("GET", "/openapi.json", "openapi", "Return the OpenAPI document.", None, _json),)
