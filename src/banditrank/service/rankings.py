"""Routes that pages call all the time: rankings and feedback."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from banditrank.engine.surface_runtime import SurfaceRuntime
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

_AT_ONCE = 64  # rankings
_TURN_SECONDS = 0.005  # that a batch may take of one turn of the event loop

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
        return await application.pools.store.run(lambda: _ranked(live, user_types))
    rankings, yielded = _ranked(live, user_types[:_AT_ONCE]), time.perf_counter()
    for start in range(_AT_ONCE, len(user_types), _AT_ONCE):
        if time.perf_counter() - yielded > _TURN_SECONDS:
            await asyncio.sleep(0)  # other requests do not wait for a large batch
            yielded = time.perf_counter()
        rankings += _ranked(live, user_types[start : start + _AT_ONCE])
    return rankings


def _check_user_types(live: SurfaceRuntime, user_types: Sequence[str], principal: Principal) -> None:
    known = live.user_type_numbers
    for user_type in user_types:
        if user_type in known:
            continue
        if "read" in principal.rights:
            raise UnknownNameError("user_type", user_type, known)
        # A key that may only rank is not told which types there are.
        raise ProblemError(INVALID, f"unknown user_type {user_type[:80]!r}")


def _ranked(live: SurfaceRuntime, user_types: Sequence[str]) -> list[RankingAnswer]:
    return [RankingAnswer(*ranking) for ranking in live.rank_batch(user_types)]


async def _feedback(application: "Application", request: Request) -> Response:
    (result,) = await _commit(application, request.principal, [request.body])
    if isinstance(result, Exception):
        raise result
    return Response(200, b'{"status":"%s"}' % result.encode())


async def _feedback_batch(application: "Application", request: Request) -> Response:
    results = await _commit(application, request.principal, request.body.feedback)
    failures = {str(one): one for one in results if isinstance(one, Exception)}
    for failure in failures.values():  # once each, however many feedbacks it concerns
        application.log_failure(request.id, "feedbackBatch", failure)
    answers = [_feedback_result(one, request.id) for one in results]
    return Response(200, _encode(FeedbackBatchAnswer(answers)))


def _feedback_result(result: str | Exception, request_id: str) -> FeedbackResult:
    if isinstance(result, Exception):
        return FeedbackResult("refused", problem_of(result, request_id))
    return FeedbackResult("repeated" if result == "repeated" else "counted")


async def _commit(
    application: "Application", principal: Principal, feedback: Sequence[Feedback]
) -> list[str | Exception]:
    """Return for each feedback ``counted`` or ``repeated`` once it is durable, or why it was rejected."""
    submissions = [_Submission(application, principal, one) for one in feedback]
    reading = [one for one in submissions if not one.submit()]
    if reading:  # in one call: a batch takes one place in the queue of the pool
        await application.pools.store.run(lambda: [one.submit(may_read_store=True) for one in reading])
    return [await one.result for one in submissions]


class _Submission:
    """One feedback on its way to a commit."""

    def __init__(self, application: "Application", principal: Principal, feedback: Feedback) -> None:
        self.result: asyncio.Future[str | Exception] = application.loop.create_future()
        self._application = application
        self._principal = principal
        self._feedback = feedback

    def submit(self, *, may_read_store: bool = False) -> bool:
        """Submit the feedback, or return False if the store must be read first."""
        engine, feedback = self._application.engine, self._feedback
        try:
            if self._principal.surfaces:
                find = engine.issued_ranking if may_read_store else engine.cached_ranking
                found = find(feedback.ranking)
                if found is None:
                    return False
                self._principal.check_surface(found[0].surface.name)
            return engine.submit_feedback(
                feedback.ranking,
                clicked=feedback.clicked,
                reward=feedback.reward,
                callback=self._finish,
                may_read_store=may_read_store,
            )
        except Exception as error:  # noqa: BLE001 - rejects this feedback, not others of a batch
            if may_read_store:  # in a thread of the pool
                self._application.loop.call_soon_threadsafe(self._finish, error)
            else:
                self._finish(error)
            return True

    def _finish(self, result: str | Exception) -> None:
        if not self.result.done():  # the request may have been cancelled
            self.result.set_result(result)


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
