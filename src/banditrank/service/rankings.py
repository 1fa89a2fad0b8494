"""Routes that pages call all the time: rankings and feedback."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from banditrank.engine.live_surface import LiveSurface
from banditrank.errors import UnknownNameError
from banditrank.service.messages import Request, Response
from banditrank.service.models import (
    Feedback,
    FeedbackAnswer,
    FeedbackBatch,
    FeedbackBatchAnswer,
    FeedbackResult,
    RankingAnswer,
    RankingBatch,
    RankingBatchAnswer,
    RankingRequest,
)
from banditrank.service.operations import Operation
from banditrank.service.problems import (
    CONTRADICTION,
    INVALID,
    LAPSED,
    UNKNOWN_RANKING,
    UNKNOWN_SURFACE,
    ProblemError,
    problem_of,
)
from banditrank.service.rights import Principal

if TYPE_CHECKING:
    from banditrank.service.application import Application

_encode = msgspec.json.Encoder().encode


async def _rank(application: "Application", request: Request) -> Response:
    (ranking,) = await _rankings(application, request, [request.body.user_type])
    return Response(200, _encode(ranking))


async def _rank_batch(application: "Application", request: Request) -> Response:
    rankings = await _rankings(application, request, request.body.user_types)
    return Response(200, _encode(RankingBatchAnswer(rankings)))


async def _rankings(
    application: "Application", request: Request, user_types: Sequence[str]
) -> list[RankingAnswer]:
    """Return a ranking for a user of each type, all of them or none."""
    live = await application.surface(request)
    _check_user_types(live, user_types, request.principal)
    if live.surface.refresh_seconds == 0:  # the latest counts are added up first, which takes long
        return await application.pools.writes.run(lambda: [_ranking(live, one) for one in user_types])
    return [_ranking(live, one) for one in user_types]


def _check_user_types(live: LiveSurface, user_types: Sequence[str], principal: Principal) -> None:
    known = live.surface.user_types
    for user_type in user_types:
        if user_type in known:
            continue
        if "read" in principal.rights:
            raise UnknownNameError("user_type", user_type, known)
        # A key that may only rank is not told which types there are.
        raise ProblemError(INVALID, f"user_type must be one of the surface's, got {user_type[:80]!r}")


def _ranking(live: LiveSurface, user_type: str) -> RankingAnswer:
    shown = live.rank(user_type)
    return RankingAnswer(shown.id, shown.items, datetime.fromtimestamp(shown.expires, UTC))


async def _feedback(application: "Application", request: Request) -> Response:
    status = await _commit(application, request.principal, request.body)
    return Response(200, b'{"status":"%s"}' % status.encode())


async def _feedback_batch(application: "Application", request: Request) -> Response:
    waiting = (_feedback_result(application, request, feedback) for feedback in request.body.feedback)
    return Response(200, _encode(FeedbackBatchAnswer(await asyncio.gather(*waiting))))


async def _feedback_result(
    application: "Application", request: Request, feedback: Feedback
) -> FeedbackResult:
    try:
        status = await _commit(application, request.principal, feedback)
    except Exception as error:  # noqa: BLE001 - the others of the batch are counted
        application.log_failure(request.id, "feedbackBatch", error)
        return FeedbackResult("refused", problem_of(error, request.id))
    return FeedbackResult("repeated" if status == "repeated" else "counted")


async def _commit(application: "Application", principal: Principal, feedback: Feedback) -> str:
    """Return ``counted`` or ``repeated`` once feedback is durable, or raise if it was rejected."""
    engine, writes = application.engine, application.pools.writes
    if principal.surfaces:
        known = engine.known_ticket(feedback.ranking)
        live, _ = await writes.run(engine.ticket, feedback.ranking) if known is None else known
        principal.check_surface(live.surface.name)
    committed: asyncio.Future[str] = application.loop.create_future()

    def done(result: str | Exception) -> None:
        if committed.done():  # the client left
            return
        if isinstance(result, Exception):
            committed.set_exception(result)
        else:
            committed.set_result(result)

    submit = partial(
        engine.submit_feedback,
        feedback.ranking,
        clicked=feedback.clicked,
        reward=feedback.reward,
        done=done,
    )
    if not submit():  # the store must be read first
        await writes.run(submit, may_read_store=True)
    return await committed


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surfaces/{surface}/rankings",
        "rank",
        "Return a ranking for one user.",
        "rank",
        _rank,
        body=RankingRequest,
        answer=RankingAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "POST",
        "/v1/surfaces/{surface}/rankings/batch",
        "rankBatch",
        "Return a ranking for each of several users, all of them or none.",
        "rank",
        _rank_batch,
        body=RankingBatch,
        answer=RankingBatchAnswer,
        problems=(UNKNOWN_SURFACE,),
    ),
    Operation(
        "POST",
        "/v1/feedback",
        "feedback",
        "Count the feedback for a ranking. Answered after a durable commit; safe to repeat.",
        "rank",
        _feedback,
        body=Feedback,
        answer=FeedbackAnswer,
        problems=(UNKNOWN_RANKING, CONTRADICTION, LAPSED),
        scope="handler",
    ),
    Operation(
        "POST",
        "/v1/feedback/batch",
        "feedbackBatch",
        "Count the feedback for several rankings; each is counted or refused by itself. Safe to repeat.",
        "rank",
        _feedback_batch,
        body=FeedbackBatch,
        answer=FeedbackBatchAnswer,
        scope="handler",
    ),
)
