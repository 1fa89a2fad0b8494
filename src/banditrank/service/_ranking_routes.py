"""Routes of rankings and feedback."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.service._auth import Principal
from banditrank.service._http_errors import (
    CONFLICTING_FEEDBACK,
    EXPIRED,
    UNKNOWN_RANKING,
    UNKNOWN_SURFACE,
    problem_details,
)
from banditrank.service._requests import JsonResponse, Request, info_of
from banditrank.service._routing import Route
from banditrank.service._schemas import (
    BatchRanking,
    FeedbackBatchRequest,
    FeedbackBatchResponse,
    FeedbackBatchResult,
    FeedbackRequest,
    FeedbackResponse,
    FeedbackStatus,
    RankingBatchRequest,
    RankingBatchResponse,
    RankingRequest,
    RankingResponse,
)

if TYPE_CHECKING:
    from banditrank.service._service import Service

_CHUNK_SIZE = 64  # rankings
_RESTRICTED_CHUNK_SIZE = 8  # rankings of candidates, which are not prepared
_MAX_BLOCKING_SECONDS = 0.005  # of the event loop, by the rankings of a batch


async def _rank(request: Request) -> JsonResponse:
    body: RankingRequest = request.content
    visitors = None if body.visitor is None else (body.visitor,)
    (shown,) = await _rankings(request, (body.user_type,), visitors)
    return JsonResponse(RankingResponse(shown.id, shown.items, shown.expires_at, shown.arm, shown.ignored))


async def _rank_batch(request: Request) -> JsonResponse:
    user_types, visitors = request.content.user_types, request.content.visitors
    if visitors is not None and len(visitors) != len(user_types):
        rule = f"must be {len(user_types)}, one for each user type"
        raise InvalidInputError("visitors", rule, len(visitors))
    shown = await _rankings(request, user_types, visitors, is_batch=True)
    rankings = [BatchRanking(each.id, each.items, each.expires_at, each.arm) for each in shown]
    # The surface may have changed between two chunks.
    ignored = dict.fromkeys(item for each in shown for item in each.ignored)
    return JsonResponse(RankingBatchResponse(rankings, tuple(ignored)))


async def _rankings(
    request: Request,
    user_types: Sequence[str],
    visitors: Sequence[str | None] | None,
    *,
    is_batch: bool = False,
) -> list[ShownRanking]:
    """Return a ranking for a user of each type, all of them or none."""
    runtime = await request.surface()
    _check_user_types(runtime, user_types, request.principal, is_batch=is_batch)
    allowed = _allowed_items(request.content)
    if "pinned" in allowed and "read" not in request.principal.rights:
        _check_pinned(runtime, allowed["pinned"].values())
    if not runtime.ranks_fast(is_restricted=bool(allowed)):
        return await request.service.pools.store.run(
            lambda: runtime.rank_batch(user_types, visitors=visitors, **allowed)
        )
    size = _RESTRICTED_CHUNK_SIZE if allowed else _CHUNK_SIZE
    # Fast path.
    if len(user_types) <= size:
        return runtime.rank_batch(user_types, visitors=visitors, **allowed)
    shown: list[ShownRanking] = []
    yielded_at = time.perf_counter()
    for start in range(0, len(user_types), size):
        if time.perf_counter() - yielded_at > _MAX_BLOCKING_SECONDS:
            # Other requests do not wait for a large batch.
            await asyncio.sleep(0)
            yielded_at = time.perf_counter()
        chunk = slice(start, start + size)
        shown += runtime.rank_batch(user_types[chunk], visitors=visitors and visitors[chunk], **allowed)
    return shown


def _check_user_types(
    runtime: SurfaceRuntime, user_types: Sequence[str], principal: Principal, *, is_batch: bool
) -> None:
    known = runtime.user_type_numbers
    for number, user_type in enumerate(user_types):
        if user_type in known:
            continue
        field = f"user_types[{number}]" if is_batch else "user_type"
        if "read" in principal.rights:
            raise UnknownNameError(field, user_type, known)
        # The message with all user types needs the right to read.
        raise InvalidInputError(field, "must be a user type of the surface", user_type)


def _allowed_items(body: RankingRequest | RankingBatchRequest) -> dict[str, Any]:
    """Return the fields of a body that restrict the items of its rankings."""
    # Fast path.
    if not (body.candidates or body.exclude or body.pinned):
        return {}
    fields = {"candidates": body.candidates, "exclude": body.exclude, "pinned": body.pinned}
    return {name: value for name, value in fields.items() if value}


def _check_pinned(runtime: SurfaceRuntime, items: Iterable[str]) -> None:
    """Reject unknown items without the names of the others, which need the right to read."""
    known = runtime.surface.active_item_numbers
    for item in items:
        if item not in known:
            raise InvalidInputError("pinned", "must be active items of the surface", item)


async def _feedback(request: Request) -> JsonResponse:
    (result,) = await _commit(request, [request.content])
    if isinstance(result, Exception):
        raise result
    return JsonResponse(FeedbackResponse(cast("FeedbackStatus", result)))


async def _feedback_batch(request: Request) -> JsonResponse:
    results = await _commit(request, request.content.feedback)
    failures = {str(each): each for each in results if isinstance(each, Exception)}
    # One log line per message.
    for failure in failures.values():
        request.service.log_failure(info_of(request.scope), failure)
    return JsonResponse(
        FeedbackBatchResponse(
            [_feedback_result(each, number, request.id) for number, each in enumerate(results)]
        )
    )


def _feedback_result(result: str | Exception, number: int, request_id: str) -> FeedbackBatchResult:
    if isinstance(result, InvalidInputError):
        result = result.within(f"feedback[{number}]")
    if isinstance(result, Exception):
        return FeedbackBatchResult("rejected", problem_details(result, request_id))
    return FeedbackBatchResult(cast("FeedbackStatus", result))


async def _commit(request: Request, feedback: Sequence[FeedbackRequest]) -> list[str | Exception]:
    """Return the status or an error for each feedback, after a durable commit."""
    service = request.service
    submissions = [_Submission(service, request.principal, each) for each in feedback]
    pending = [each for each in submissions if not each.submit()]
    if pending:
        # In one call: a batch takes one place in the queue of the pool.
        await service.pools.store.run(lambda: [each.submit(may_read_store=True) for each in pending])
    return [await each.result for each in submissions]


class _Submission:
    """A feedback that is submitted to the engine."""

    def __init__(self, service: "Service", principal: Principal, feedback: FeedbackRequest) -> None:
        self.result: asyncio.Future[str | Exception] = service.loop.create_future()
        self._service = service
        self._principal = principal
        self._feedback = feedback

    def submit(self, *, may_read_store: bool = False) -> bool:
        """Submit the feedback, or return False if the store must be read first."""
        engine, feedback = self._service.engine, self._feedback
        try:
            if self._principal.surfaces:
                find = engine.issued_ranking if may_read_store else engine.cached_ranking
                found = find(feedback.ranking)
                if found is None:
                    return False
                self._principal.check_surface(found[0].surface.name)
            return engine.submit_feedback(
                Feedback(feedback.ranking, feedback.clicked, feedback.reward, feedback.final),
                callback=self._finish,
                may_read_store=may_read_store,
            )
        except Exception as error:  # noqa: BLE001 - rejects this feedback, not others of a batch
            if may_read_store:  # in a thread of the pool
                self._service.loop.call_soon_threadsafe(self._finish, error)
            else:
                self._finish(error)
            return True

    def _finish(self, result: str | Exception) -> None:
        if not self.result.done():  # the request may have been cancelled
            self.result.set_result(result)


ROUTES = (
    Route(
        "POST",
        "/v1/surfaces/{surface}/rankings",
        "rank",
        "Return a ranking for one user.",
        "rank",
        _rank,
        request_schema=RankingRequest,
        response_schema=RankingResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "POST",
        "/v1/surfaces/{surface}/rankings/batch",
        "rankBatch",
        "Return a ranking for each of several users, all of them or none.",
        "rank",
        _rank_batch,
        request_schema=RankingBatchRequest,
        response_schema=RankingBatchResponse,
        errors=(UNKNOWN_SURFACE,),
    ),
    Route(
        "POST",
        "/v1/feedback",
        "feedback",
        "Count or record the feedback for a ranking. The response follows a durable commit; safe to repeat.",
        "rank",
        _feedback,
        request_schema=FeedbackRequest,
        response_schema=FeedbackResponse,
        errors=(UNKNOWN_RANKING, CONFLICTING_FEEDBACK, EXPIRED),
        scope="handler",
    ),
    Route(
        "POST",
        "/v1/feedback/batch",
        "feedbackBatch",
        "Count or record the feedback for several rankings, each on its own. Safe to repeat.",
        "rank",
        _feedback_batch,
        request_schema=FeedbackBatchRequest,
        response_schema=FeedbackBatchResponse,
        scope="handler",
    ),
)
