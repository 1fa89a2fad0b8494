"""Operations for those who want to know what was learned, and why a ranking was made as it was."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from banditrank.dashboard.estimates_report import EstimatesReport, report_estimates
from banditrank.dashboard.explain import Explanation, explain
from banditrank.dashboard.treatment_report import TreatmentReport, report_treatments
from banditrank.errors import InvalidInputError
from banditrank.estimators.intervals import MAX_LEVEL, MIN_LEVEL
from banditrank.service.messages import Request, Response
from banditrank.service.operations import Operation, Parameter
from banditrank.service.problems import FORGOTTEN, UNKNOWN_RANKING, UNKNOWN_SURFACE

if TYPE_CHECKING:
    from banditrank.service.application import Application

_LEVEL = Parameter(
    "level",
    "How probably each interval is to hold the truth.",
    {"type": "number", "minimum": MIN_LEVEL, "maximum": MAX_LEVEL, "default": 0.95},
)


def _level(request: Request) -> float:
    given = request.query.get("level", "0.95")
    try:
        return float(given)
    except ValueError:
        raise InvalidInputError("level", "must be a number", given) from None


async def _estimates(application: "Application", request: Request) -> Response:
    live, level = await application.surface(request), _level(request)
    return await _report(application, lambda: report_estimates(live.counts(), level=level))


async def _equality(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    return await _report(application, lambda: report_treatments(live.counts()))


async def _explain(application: "Application", request: Request) -> Response:
    def explained() -> Explanation:
        live, _ = application.engine.issued_ranking(request.parameters["ranking"])
        request.principal.check_surface(live.surface.name)
        return explain(application.engine, request.parameters["ranking"])

    return await _report(application, explained)


async def _report(application: "Application", make: Callable[[], Any]) -> Response:
    """Return a report that is made and encoded in a thread."""
    return Response(200, await application.pools.reports.run(lambda: msgspec.json.encode(make())))


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surfaces/{surface}/estimates",
        "estimates",
        "What was learned of positions and items for each user type, with intervals.",
        "read",
        _estimates,
        answer=EstimatesReport,
        problems=(UNKNOWN_SURFACE,),
        cancellable=True,
        query=(_LEVEL,),
    ),
    Operation(
        "GET",
        "/v1/surfaces/{surface}/equality",
        "equality",
        "What each user type gets under personalized and equal treatment, and each item's exposure.",
        "read",
        _equality,
        answer=TreatmentReport,
        problems=(UNKNOWN_SURFACE,),
        cancellable=True,
    ),
    Operation(
        "GET",
        "/v1/rankings/{ranking}",
        "explain",
        "One ranking explained: the counts it was made of, and why this order.",
        "read",
        _explain,
        answer=Explanation,
        problems=(UNKNOWN_RANKING, FORGOTTEN),
        scope="handler",
        cancellable=True,
    ),
)
