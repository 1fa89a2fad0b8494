"""The service as an ASGI application, which runs by itself or mounted in another one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as StarletteRequest
from starlette.types import ExceptionHandler

from banditrank.errors import BanditRankError
from banditrank.service import _auth as auth
from banditrank.service import _dashboard_routes as dashboard_routes
from banditrank.service import _health_routes as health_routes
from banditrank.service import _openapi as openapi
from banditrank.service import _ranking_routes as ranking_routes
from banditrank.service import _report_routes as report_routes
from banditrank.service import _static_files as static_files
from banditrank.service import _surface_routes as surface_routes
from banditrank.service._cors import cors_middleware
from banditrank.service._endpoint import PercentEncodedPaths, starlette_route
from banditrank.service._host_check import HostCheck
from banditrank.service._http_errors import (
    NOT_FOUND,
    WRONG_METHOD,
    HttpError,
    error_response,
)
from banditrank.service._middleware import RequestMonitor
from banditrank.service._request_guard import RequestGuard
from banditrank.service._requests import JsonResponse, info_of
from banditrank.service._routing import Route
from banditrank.service._service import Service
from banditrank.service._settings import Settings

# Starlette tries them in this order: the most frequent first.
ROUTES: tuple[Route, ...] = (
    *ranking_routes.ROUTES,
    *surface_routes.ROUTES,
    *report_routes.ROUTES,
    *dashboard_routes.ROUTES,
    *health_routes.ROUTES,
    *auth.ROUTES,
    *static_files.ROUTES,
    *openapi.ROUTES,
)


def create_app(settings: Settings | None = None) -> Starlette:
    """Return the service as an ASGI application.

    Any ASGI server runs it, and FastAPI and Starlette mount it under a prefix, if their lifespan contains its
    own: see `lifespan`. Its lifespan opens the store, and raises the store's errors. Logging is the host's.

    Parameters
    ----------
    settings
        Settings of the service; the defaults without them. Environment variables are not read, and files by
        `Settings.from_file` only. ``port``, ``workers`` and ``http`` have no effect, and ``host`` decides if
        API keys are required: they are, unless it is a loopback address.

    Examples
    --------
    >>> from starlette.testclient import TestClient
    >>> with TestClient(create_app(Settings(store="memory:")), base_url="http://localhost") as client:
    ...     client.get("/healthz").json()["status"]
    'ok'
    """
    return application_of(Service(Settings() if settings is None else settings))


def lifespan(*applications: Starlette) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application that mounts services: servers start that application only.

    An application with a lifespan of its own enters it there: ``async with lifespan(ranking)(host): yield``.

    Parameters
    ----------
    *applications
        Services, from `create_app`.

    Returns
    -------
    callable
        Takes the host application, and returns an asynchronous context manager.

    Examples
    --------
    >>> from starlette.applications import Starlette
    >>> from starlette.routing import Mount
    >>> ranking = create_app(Settings(store="memory:"))
    >>> host = Starlette(routes=[Mount("/ranking", ranking)], lifespan=lifespan(ranking))
    """

    @asynccontextmanager
    async def run(_host: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in applications:
                await stack.enter_async_context(each.router.lifespan_context(each))
            yield

    return run


def application_of(service: Service) -> Starlette:
    """Return the ASGI application of a service."""

    def run(_application: Starlette) -> AbstractAsyncContextManager[None]:
        return service.running()

    application = Starlette(
        routes=[starlette_route(route, service) for route in ROUTES],
        middleware=[
            Middleware(RequestGuard),
            *cors_middleware(service.settings.allow_origins, sorted({route.method for route in ROUTES})),
            Middleware(RequestMonitor, service),
            Middleware(HostCheck, service),
            Middleware(PercentEncodedPaths),
        ],
        exception_handlers=_exception_handlers(service),
        lifespan=run,
    )
    application.router.redirect_slashes = False
    return application


def _exception_handlers(service: Service) -> dict[Any, ExceptionHandler]:
    async def handle_error(request: StarletteRequest, error: Exception) -> JsonResponse:
        info = info_of(request.scope)
        service.log_failure(info, error)
        return error_response(error, info.id)

    async def handle_not_found(request: StarletteRequest, _: Exception) -> JsonResponse:
        root_path = request.scope.get("root_path", "")
        detail = f"no such path; the API is at {root_path}/v1, its reference at {root_path}/docs"
        return await handle_error(request, HttpError(NOT_FOUND, detail))

    async def handle_wrong_method(request: StarletteRequest, _: Exception) -> JsonResponse:
        allowed = ", ".join(_methods(request))
        detail = f"method {request.method} is not allowed, only {allowed}"
        return await handle_error(request, HttpError(WRONG_METHOD, detail, {"allow": allowed}))

    return {
        HttpError: handle_error,
        BanditRankError: handle_error,
        404: handle_not_found,
        405: handle_wrong_method,
    }


def _methods(request: StarletteRequest) -> list[str]:
    """Return the methods of all routes with the path of the one that was found."""
    path = request.scope["route"].path
    return sorted({method for route in request.app.routes if route.path == path for method in route.methods})
