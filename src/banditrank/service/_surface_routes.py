"""Routes of surfaces and their items."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._http_errors import ALREADY_EXISTS, UNKNOWN_SURFACE
from banditrank.service._requests import JsonResponse, Request
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


def _surface_response(runtime: SurfaceRuntime) -> SurfaceResponse:
    return SurfaceResponse.from_surface(
        runtime.surface, revision=runtime.revision, version=runtime.version, rounds=runtime.rounds
    )


async def _update_items(
    request: Request,
    action: str,
    update: Callable[[Surface], Surface],
    **fields: str,
) -> JsonResponse:
    service, runtime = request.service, await request.surface()
    runtime, changes = await service.pools.administration.run(
        service.engine.update_items, runtime.surface.name, update
    )
    service.log_action(
        request,
        action,
        surface=runtime.surface.name,
        n_added=len(changes.added),
        n_revived=len(changes.revived),
        n_retired=len(changes.retired),
        **fields,
    )
    return JsonResponse(ItemsResponse.from_changes(_surface_response(runtime), changes))


def _present_fields(body: Any) -> dict[str, Any]:
    """Return the fields that the client sent."""
    values: dict[str, Any] = msgspec.structs.asdict(body)
    return {name: msgspec.to_builtins(value) for name, value in values.items() if value is not msgspec.UNSET}


async def _list(request: Request) -> JsonResponse:
    engine, principal = request.service.engine, request.principal
    covered = [runtime for runtime in engine.surfaces() if principal.covers(runtime.surface.name)]
    surfaces = [_surface_response(runtime) for runtime in covered]
    return JsonResponse(SurfaceListResponse(surfaces, not engine.has_loaded))


async def _create(request: Request) -> JsonResponse:
    service = request.service
    request.principal.check_surface(request.content.name)
    surface = await service.pools.definitions.run(Surface.from_dict, _present_fields(request.content))
    runtime = await service.pools.definitions.run(service.engine.create_surface, surface)
    service.log_action(request, "surface created", surface=surface.name)
    return JsonResponse(_surface_response(runtime), 201)


async def _read(request: Request) -> JsonResponse:
    return JsonResponse(_surface_response(await request.surface()))


async def _update(request: Request) -> JsonResponse:
    service, runtime = request.service, await request.surface()
    settings = _present_fields(request.content)

    def updated(surface: Surface) -> Surface:
        present = surface.to_dict()
        if settings.get("treatment") == "personalized":  # which has no utility
            present["utility"] = Surface.utility
        return Surface.from_dict(present | settings)

    runtime = await service.pools.definitions.run(
        service.engine.update_surface, runtime.surface.name, updated
    )
    service.log_action(request, "surface updated", surface=runtime.surface.name, settings=sorted(settings))
    return JsonResponse(_surface_response(runtime))


async def _delete(request: Request) -> Response:
    # Also one whose settings this version cannot read.
    service, name = request.service, request.path_params["surface"]
    await service.pools.administration.run(service.engine.delete_surface, name)
    service.log_action(request, "surface deleted", surface=name)
    return Response(status_code=204)


async def _add_items(request: Request) -> JsonResponse:
    return await _update_items(
        request, "items added", lambda surface: surface.with_items(request.content.items)
    )


async def _sync_items(request: Request) -> JsonResponse:
    return await _update_items(
        request, "items synced", lambda surface: surface.with_catalogue(request.content.items)
    )


async def _retire_item(request: Request) -> JsonResponse:
    item = request.path_params["item"]
    return await _update_items(
        request, "item retired", lambda surface: surface.with_retired([item]), item=item
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
