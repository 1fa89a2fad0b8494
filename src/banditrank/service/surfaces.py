"""Operations on surfaces."""

from typing import TYPE_CHECKING, Any

import msgspec

from banditrank.engine.surface import Surface
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.service.messages import Request, Response
from banditrank.service.models import NewItems, NewSurface, SurfaceAnswer, SurfaceChange, SurfaceList
from banditrank.service.operations import Operation
from banditrank.service.problems import NAME_TAKEN, UNKNOWN_SURFACE

if TYPE_CHECKING:
    from banditrank.service.application import Application


def _answer(live: SurfaceRuntime) -> SurfaceAnswer:
    return SurfaceAnswer.of(live.surface, revision=live.revision, version=live.version, rounds=live.rounds)


def _response(live: SurfaceRuntime, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(_answer(live)))


def _given(body: Any) -> dict[str, Any]:
    """Return what was given of a body's fields."""
    values: dict[str, Any] = msgspec.structs.asdict(body)
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}


async def _list(application: "Application", request: Request) -> Response:
    covered = [live for live in application.engine.surfaces() if request.principal.covers(live.surface.name)]
    answers = [_answer(live) for live in covered]
    return Response(200, msgspec.json.encode(SurfaceList(answers)))


async def _create(application: "Application", request: Request) -> Response:
    request.principal.check_surface(request.body.name)
    surface = await application.pools.administration.run(Surface.from_dict, _given(request.body))
    live = await application.pools.administration.run(application.engine.create_surface, surface)
    application.log_action(request, "surface created", surface=surface.name)
    return _response(live, 201)


async def _read(application: "Application", request: Request) -> Response:
    return _response(await application.surface(request))


async def _change(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    given = _given(request.body)

    def changed(surface: Surface) -> Surface:
        return Surface.from_dict(surface.to_dict() | given)

    live = await application.pools.administration.run(
        application.engine.update_surface, live.surface.name, changed
    )
    application.log_action(request, "surface changed", surface=live.surface.name, settings=sorted(given))
    return _response(live)


async def _delete(application: "Application", request: Request) -> Response:
    name = request.parameters["surface"]  # it may be one that cannot be read
    await application.pools.administration.run(application.engine.delete_surface, name)
    application.log_action(request, "surface deleted", surface=name)
    return Response(204, b"")


async def _add_items(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    names = request.body.items
    live = await application.pools.administration.run(
        application.engine.update_surface, live.surface.name, lambda surface: surface.with_items(names)
    )
    application.log_action(request, "items added", surface=live.surface.name, items=len(names))
    return _response(live)


async def _retire_item(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    item = request.parameters["item"]
    live = await application.pools.administration.run(
        application.engine.update_surface, live.surface.name, lambda surface: surface.with_retired([item])
    )
    application.log_action(request, "item retired", surface=live.surface.name, item=item)
    return _response(live)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surfaces",
        "listSurfaces",
        "List the surfaces that the key covers.",
        "read",
        _list,
        answer=SurfaceList,
        scope="handler",
    ),
    Operation(
        "POST",
        "/v1/surfaces",
        "createSurface",
        "Create a surface.",
        "administer",
        _create,
        body=NewSurface,
        answer=SurfaceAnswer,
        status=201,
        problems=(NAME_TAKEN,),
        scope="handler",
    ),
    Operation(
        "GET",
        "/v1/surfaces/{surface}",
        "readSurface",
        "One surface.",
        "read",
        _read,
        answer=SurfaceAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "PATCH",
        "/v1/surfaces/{surface}",
        "changeSurface",
        "Change settings of a surface; what was learned stays.",
        "administer",
        _change,
        body=SurfaceChange,
        answer=SurfaceAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "DELETE",
        "/v1/surfaces/{surface}",
        "deleteSurface",
        "Delete a surface and all that was learned.",
        "administer",
        _delete,
        status=204,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "POST",
        "/v1/surfaces/{surface}/items",
        "addItems",
        "Show items from now on: new ones, or such as were retired.",
        "administer",
        _add_items,
        body=NewItems,
        answer=SurfaceAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "DELETE",
        "/v1/surfaces/{surface}/items/{item}",
        "retireItem",
        "Show an item no more; what was learned of it stays.",
        "administer",
        _retire_item,
        answer=SurfaceAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
)
