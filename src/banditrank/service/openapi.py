"""The description of the API, for programs and for people, made from the table of operations."""

import base64
import hashlib
import re
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from banditrank import __version__
from banditrank.service.http import Request, Response
from banditrank.service.http_errors import (
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
from banditrank.service.routing import Parameter, Route
from banditrank.service.schemas import ProblemDetails

if TYPE_CHECKING:
    from banditrank.service.application import Application

_REFERENCE = "#/components/schemas/{name}"
_WITH_BODY = (MALFORMED, TOO_SLOW, TOO_LARGE, WRONG_CONTENT_TYPE, INVALID)
_WITH_KEY = (NO_KEY, NO_RIGHT)

_PARAMETERS = {
    "surface": Parameter("surface", "The surface's name.", {"type": "string"}),
    "item": Parameter("item", "The item's name.", {"type": "string"}),
    "ranking": Parameter("ranking", "The ranking's id.", {"type": "string"}),
    "file": Parameter("file", "The file's name.", {"type": "string"}),
}
_TAG = Parameter("If-None-Match", "Entity tags of what the client has.", {"type": "string"})


def document(operations: tuple[Route, ...]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    described = [operation for operation in operations if operation.path not in ("/openapi.json", "/docs")]
    told = [kind for one in described for kind in (one.body, one.answer, *one.events.values())]
    types = [kind for kind in told if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, ProblemDetails], ref_template=_REFERENCE)
    references = dict(zip([*types, ProblemDetails], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in described:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "banditrank",
            "version": __version__,
            "description": "Learns from clicks which item to show in which position to which kind of user. "
            "The type of a problem is its name, here in brackets, after urn:banditrank:problem:",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Route, references: dict[Any, Any]) -> dict[str, Any]:
    in_path = [_PARAMETERS[name] for name in re.findall(r"{(\w+)}", operation.path)]
    parameters = [_parameter(one, "path") for one in in_path]
    parameters += [_parameter(one, "query") for one in operation.query]
    parameters += [_parameter(_TAG, "header")] if operation.conditional else []
    answer: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        answer["content"] = {operation.content_type: {"schema": references[operation.answer]}}
    elif operation.events:
        answer["content"] = {operation.content_type: {"schema": _event(operation, references)}}
    elif operation.content_type != "application/json":
        answer["content"] = {operation.content_type: {"schema": {"type": "string"}}}
    said: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {str(operation.status): answer} | _problems(operation, references),
    }
    if operation.conditional:
        said["responses"]["304"] = {"description": "The client has it already."}
    if operation.body is not None:
        schema = references[operation.body]
        said["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.right is not None:
        said["security"] = [{"key": []}, {}]
        said["description"] = f"If keys are demanded, one with the right to {operation.right}."
    return said


def _event(operation: Route, references: dict[Any, Any]) -> dict[str, Any]:
    """Return what an event of a stream is: until OpenAPI 3.2 a stream's schema is that of its events."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "event": {"const": name},
                    "data": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "contentSchema": references[kind],
                    },
                },
                "required": ["event", "data"],
            }
            for name, kind in operation.events.items()
        ]
    }


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _problems(operation: Route, references: dict[Any, Any]) -> dict[str, Any]:
    kinds: list[HttpErrorType] = [*operation.problems, WRONG_HOST]
    if operation.body is not None:
        kinds += _WITH_BODY
    elif operation.query or "{item}" in operation.path:
        kinds.append(INVALID)
    if operation.right is not None:
        kinds += [*_WITH_KEY, UNAVAILABLE, OVERLOADED]
    by_status: dict[int, list[str]] = {}
    for kind in dict.fromkeys(kinds):
        by_status.setdefault(kind.status, []).append(f"{kind.title} ({kind.name}).")
    content = {"application/problem+json": {"schema": references[ProblemDetails]}}
    return {
        str(status): {"description": " ".join(titles), "content": content}
        for status, titles in sorted(by_status.items())
    }


@cache
def _encoded() -> bytes:
    from banditrank.service.application import ROUTES  # noqa: PLC0415 - this module is part of them

    return msgspec.json.format(msgspec.json.encode(document(ROUTES)))


@cache
def _page() -> tuple[bytes, bytes]:
    """Return the page for people, and the content policy that allows its style and nothing else."""
    style = (files("banditrank.service") / "docs.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("banditrank.service", "."), autoescape=True, undefined=StrictUndefined
    )
    described = msgspec.json.decode(_encoded())
    html = environment.get_template("docs.html").render(document=described, style=style)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'; base-uri 'none'"
    return html.encode(), policy.encode()


async def _json(_application: "Application", _: Request) -> Response:
    return Response(200, _encoded())


async def _html(_application: "Application", _: Request) -> Response:
    html, policy = _page()
    headers = ((b"content-security-policy", policy), (b"referrer-policy", b"no-referrer"))
    return Response(200, html, b"text/html; charset=utf-8", headers)


ROUTES = (
    Route("GET", "/openapi.json", "openapi", "The description of the API.", None, _json),
    Route("GET", "/docs", "docs", "The same, for people.", None, _html, content_type="text/html"),
)
