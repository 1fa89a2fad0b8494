"""Routes of surfaces and their items."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._http import Request, Response
from banditrank.service._http_errors import ALREADY_EXISTS, UNKNOWN_SURFACE
from banditrank.service._routing import Route
from banditrank.service._schemas import (
    AddItemsRequest,
    CreateSurfaceRequest,
    ItemsResponse,
    SurfaceListResponse,
    SurfaceResponse,
    SyncItemsRequest,
    UpdateSurfaceRequest,
)

if TYPE_CHECKING:
    from banditrank.service._application import Application


def _surface_response(runtime: SurfaceRuntime) -> SurfaceResponse:
    return SurfaceResponse.from_surface(
        runtime.surface, revision=runtime.revision, version=runtime.version, rounds=runtime.rounds
    )


async def _update_items(
    application: "Application",
    request: Request,
    action: str,
    update: Callable[[Surface], Surface],
    **fields: str,
) -> Response:
    runtime = await application.surface(request)
    runtime, changes = await application.pools.administration.run(
        application.engine.update_items, runtime.surface.name, update
    )
    application.log_action(
        request,
        action,
        surface=runtime.surface.name,
        n_added=len(changes.added),
        n_revived=len(changes.revived),
        n_retired=len(changes.retired),
        **fields,
    )
    response = ItemsResponse.from_changes(_surface_response(runtime), changes)
    return Response(200, msgspec.json.encode(response))


def _response(runtime: SurfaceRuntime, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(_surface_response(runtime)))


def _present_fields(body: Any) -> dict[str, Any]:
    """Return the fields that the client sent."""
    values: dict[str, Any] = msgspec.structs.asdict(body)
    return {name: msgspec.to_builtins(value) for name, value in values.items() if value is not msgspec.UNSET}


async def _list(application: "Application", request: Request) -> Response:
    covered = [
        runtime for runtime in application.engine.surfaces() if request.principal.covers(runtime.surface.name)
    ]
    surfaces = [_surface_response(runtime) for runtime in covered]
    is_loading = not application.engine.has_loaded
    return Response(200, msgspec.json.encode(SurfaceListResponse(surfaces, is_loading)))


async def _create(application: "Application", request: Request) -> Response:
    request.principal.check_surface(request.body.name)
    surface = await application.pools.definitions.run(Surface.from_dict, _present_fields(request.body))
    runtime = await application.pools.definitions.run(application.engine.create_surface, surface)
    application.log_action(request, "surface created", surface=surface.name)
    return _response(runtime, 201)


async def _read(application: "Application", request: Request) -> Response:
    return _response(await application.surface(request))


async def _update(application: "Application", request: Request) -> Response:
    runtime = await application.surface(request)
    settings = _present_fields(request.body)

    def updated(surface: Surface) -> Surface:
        present = surface.to_dict()
        if settings.get("treatment") == "personalized":  # which has no utility
            present["utility"] = Surface.utility
        return Surface.from_dict(present | settings)

    runtime = await application.pools.definitions.run(
        application.engine.update_surface, runtime.surface.name, updated
    )
    application.log_action(
        request, "surface updated", surface=runtime.surface.name, settings=sorted(settings)
    )
    return _response(runtime)


async def _delete(application: "Application", request: Request) -> Response:
    name = request.parameters["surface"]  # also one whose settings this version cannot read
    await application.pools.administration.run(application.engine.delete_surface, name)
    application.log_action(request, "surface deleted", surface=name)
    return Response(204, b"")


async def _add_items(application: "Application", request: Request) -> Response:
    return await _update_items(
        application, request, "items added", lambda surface: surface.with_items(request.body.items)
    )


async def _sync_items(application: "Application", request: Request) -> Response:
    return await _update_items(
        application, request, "items synced", lambda surface: surface.with_catalogue(request.body.items)
    )


async def _retire_item(application: "Application", request: Request) -> Response:
    item = request.parameters["item"]
    return await _update_items(
        application, request, "item retired", lambda surface: surface.with_retired([item]), item=item
    )


ROUTES = (
    Route(
        "GET",
        "/v1/surfaces",
        "listSurfaces",
        "Return all surfaces that the key covers.",
        "read",
        _list,
        response_schema=SurfaceListResponse,
        scope="handler",
    ),
    Route(
        "POST",
        "/v1/surfaces",
        "createSurface",
        "Create a surface.",
        "administer",
        _create,
        request_schema=CreateSurfaceRequest,
        response_schema=SurfaceResponse,
        status=201,
        errors=(ALREADY_EXISTS,),
        scope="handler",
    ),
    Route(
        "GET",
        "/v1/surfaces/{surface}",
        "readSurface",
        "Return a surface.",
        "read",
        _read,
        response_schema=SurfaceResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "PATCH",
        "/v1/surfaces/{surface}",
        "updateSurface",
        "Update settings of a surface; its counts are kept.",
        "administer",
        _update,
        request_schema=UpdateSurfaceRequest,
        response_schema=SurfaceResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "DELETE",
        "/v1/surfaces/{surface}",
        "deleteSurface",
        "Delete a surface and its counts.",
        "administer",
        _delete,
        status=204,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "POST",
        "/v1/surfaces/{surface}/items",
        "addItems",
        "Add items to a surface; retired items are revived, and active ones stay. Safe to repeat.",
        "administer",
        _add_items,
        request_schema=AddItemsRequest,
        response_schema=ItemsResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "PUT",
        "/v1/surfaces/{surface}/items",
        "syncItems",
        "Make the items of a catalogue the active ones: add, revive and retire items in one step. "
        "Safe to repeat.",
        "administer",
        _sync_items,
        request_schema=SyncItemsRequest,
        response_schema=ItemsResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "DELETE",
        "/v1/surfaces/{surface}/items/{item}",
        "retireItem",
        "Retire an item, so that it is no longer ranked; its counts are kept.",
        "administer",
        _retire_item,
        response_schema=ItemsResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
)
