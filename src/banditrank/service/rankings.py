"""Operations that pages call all the time: rankings and feedback."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from banditrank.engine.journal import Answer
from banditrank.engine.live_surface import ShownRanking
from banditrank.errors import BanditRankError
from banditrank.service.messages import Request, Response
from banditrank.service.models import (
    BatchAnswer,
    BatchResult,
    Feedback,
    FeedbackAnswer,
    FeedbackBatch,
    RankingAnswer,
    RankingRequest,
)
from banditrank.service.operations import Operation, Tell
from banditrank.service.problems import (
    CONTRADICTION,
    LAPSED,
    UNKNOWN_RANKING,
    UNKNOWN_SURFACE,
    problem_of,
)

if TYPE_CHECKING:
    from banditrank.service.application import Application

_encode = msgspec.json.Encoder().encode


def _rank_directly(application: "Application", request: Request, tell: Tell) -> bool:
    live = application.engine.known(request.parameters["surface"])
    if live is None or live.surface.refresh_seconds == 0:
        return False  # the store is asked, or counts are taken in: others shall not wait for that
    tell(_ranking_response(live.rank(request.body.user_type)))
    return True


async def _rank(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    if live.surface.refresh_seconds == 0:
        return _ranking_response(await asyncio.to_thread(live.rank, request.body.user_type))
    return _ranking_response(live.rank(request.body.user_type))


def _ranking_response(shown: ShownRanking) -> Response:
    expires = datetime.fromtimestamp(shown.expires, UTC)
    return Response(200, _encode(RankingAnswer(shown.id, shown.items, expires)))


async def _count(application: "Application", feedback: Feedback) -> str:
    """Return ``counted`` or ``repeated`` once feedback is durable, or raise an error."""
    engine = application.engine
    found = engine.known_ticket(feedback.ranking)
    if found is None:  # the store is asked: others shall not wait for that
        found = await asyncio.to_thread(engine.ticket, feedback.ranking)
    live, ticket = found
    entry = live.entry(ticket, feedback.clicked, feedback.reward)
    if live.has_lapsed(ticket):
        await asyncio.to_thread(live.check_lapsed, entry)
        return "repeated"
    told: asyncio.Future[Answer] = application.loop.create_future()

    def answered(answer: Answer) -> None:
        if not told.done():  # whoever asked may be gone
            told.set_result(answer)

    engine.journal.settle(entry, answered)
    return live.told(entry, await told)


def _feedback_directly(application: "Application", request: Request, tell: Tell) -> bool:
    engine, feedback = application.engine, request.body
    found = engine.known_ticket(feedback.ranking)
    if found is None or found[0].has_lapsed(found[1]):
        return False
    live, ticket = found
    entry = live.entry(ticket, feedback.clicked, feedback.reward)

    def answered(answer: Answer) -> None:
        try:
            response = _feedback_response(live.told(entry, answer))
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            tell(error)
        else:
            tell(response)

    engine.journal.settle(entry, answered)
    return True


async def _feedback(application: "Application", request: Request) -> Response:
    return _feedback_response(await _count(application, request.body))


def _feedback_response(status: str) -> Response:
    return Response(200, b'{"status":"%s"}' % status.encode())


async def _feedback_batch(application: "Application", request: Request) -> Response:
    waiting = (_result(application, feedback) for feedback in request.body.feedback)
    return Response(200, _encode(BatchAnswer(await asyncio.gather(*waiting))))


async def _result(application: "Application", feedback: Feedback) -> BatchResult:
    try:
        status = await _count(application, feedback)
    except BanditRankError as error:
        return BatchResult("refused", problem_of(error))
    except Exception as error:  # the others are counted, and are to be told so
        application.log.exception("feedback failed")
        return BatchResult("refused", problem_of(error))
    return BatchResult("repeated" if status == "repeated" else "counted")


OPERATIONS = (
    Operation(
        "POST",
        "/v1/surfaces/{surface}/rankings",
        "rank",
        "What to show to a user.",
        "rank",
        _rank,
        body=RankingRequest,
        answer=RankingAnswer,
        problems=(UNKNOWN_SURFACE,),
        direct=_rank_directly,
    ),
    Operation(
        "POST",
        "/v1/feedback",
        "feedback",
        "What became of a ranking. Answered when it is counted for good; safe to repeat.",
        "rank",
        _feedback,
        body=Feedback,
        answer=FeedbackAnswer,
        problems=(UNKNOWN_RANKING, CONTRADICTION, LAPSED),
        direct=_feedback_directly,
    ),
    Operation(
        "POST",
        "/v1/feedback/batch",
        "feedbackBatch",
        "What became of several rankings; each is counted or refused by itself. Safe to repeat.",
        "rank",
        _feedback_batch,
        body=FeedbackBatch,
        answer=BatchAnswer,
    ),
)
