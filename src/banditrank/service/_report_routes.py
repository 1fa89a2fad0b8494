"""Routes of reports: estimates, the equality report, experiments and explanations of rankings."""

from collections.abc import Callable
from typing import Any

import msgspec

from banditrank.dashboard._estimates_report import EstimatesReport, report_estimates
from banditrank.dashboard._explain import Explanation, explain
from banditrank.dashboard._treatment_report import TreatmentReport, report_treatments
from banditrank.engine._experiment_results import ExperimentResults
from banditrank.errors import InvalidInputError
from banditrank.estimators._intervals import MAX_LEVEL, MIN_LEVEL
from banditrank.service._http_errors import NO_EXPERIMENT, PRUNED, UNKNOWN_RANKING, UNKNOWN_SURFACE
from banditrank.service._requests import JsonResponse, Request
from banditrank.service._routing import Parameter, Route

_LEVEL = Parameter(
    "level",
    "Confidence level of the intervals.",
    {"type": "number", "minimum": MIN_LEVEL, "maximum": MAX_LEVEL, "default": 0.95},
)


def _parse_level(request: Request) -> float:
    value = request.query_params.get("level", "0.95")
    try:
        return float(value)
    except ValueError:
        raise InvalidInputError("level", "must be a number", value) from None


async def _estimates(request: Request) -> JsonResponse:
    runtime, level = await request.surface(), _parse_level(request)
    return await _report(request, lambda: report_estimates(runtime.counts(), level=level))


async def _equality(request: Request) -> JsonResponse:
    runtime = await request.surface()
    return await _report(request, lambda: report_treatments(runtime.counts()))


async def _experiment(request: Request) -> JsonResponse:
    runtime = await request.surface()
    return await _report(request, runtime.experiment_results)


async def _explain(request: Request) -> JsonResponse:
    engine, ranking_id = request.service.engine, request.path_params["ranking"]

    def make() -> Explanation:
        runtime, _ = engine.issued_ranking(ranking_id)
        request.principal.check_surface(runtime.surface.name)
        return explain(engine, ranking_id)

    return await _report(request, make)


async def _report(request: Request, make: Callable[[], Any]) -> JsonResponse:
    """Return a report that is computed and encoded in a thread."""
    return JsonResponse(await request.service.pools.reports.run(lambda: msgspec.json.encode(make())))


ROUTES = (
    Route(
        "GET",
        "/v1/surfaces/{surface}/estimates",
        "estimates",
        "Return the estimated position preferences and item means of each user type, with intervals.",
        "read",
        _estimates,
        response_schema=EstimatesReport,
        errors=(UNKNOWN_SURFACE,),
        is_cancellable=True,
        query=(_LEVEL,),
    ),
    Route(
        "GET",
        "/v1/surfaces/{surface}/equality",
        "equality",
        "Return the value of each treatment for each user type, the best lottery, and the exposure of items.",
        "read",
        _equality,
        response_schema=TreatmentReport,
        errors=(UNKNOWN_SURFACE,),
        is_cancellable=True,
    ),
    Route(
        "GET",
        "/v1/surfaces/{surface}/experiment",
        "experiment",
        "Return the results of the surface's experiment: the lift of the policy over each arm.",
        "read",
        _experiment,
        response_schema=ExperimentResults,
        errors=(UNKNOWN_SURFACE, NO_EXPERIMENT),
        is_cancellable=True,
    ),
    Route(
        "GET",
        "/v1/rankings/{ranking}",
        "explain",
        "Explain a ranking: the counts that it was made from, and the reasons for its order.",
        "read",
        _explain,
        response_schema=Explanation,
        errors=(UNKNOWN_RANKING, PRUNED),
        scope="handler",
        is_cancellable=True,
    ),
)
