"""Errors of failed requests, parsed from the responses of the service."""

import json
from collections.abc import Mapping
from typing import Any

from banditrank.errors import (
    BanditRankError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    ServiceError,
    UnknownRankingError,
)

_URN_PREFIX = "urn:banditrank:problem:"
_ERRORS: dict[str, type[BanditRankError]] = {
    "conflicting-feedback": ConflictingFeedbackError,
    "expired": ExpiredRankingError,
    "unknown-ranking": UnknownRankingError,
}


def response_error(status: int, text: str) -> BanditRankError:
    """Return the error that a response describes."""
    try:
        details = json.loads(text)
    except (ValueError, RecursionError):
        details = None
    if not isinstance(details, dict) or "detail" not in details:
        return ServiceError(f"the service responded with {status}: {text[:200]}", status)
    return problem_error(details, status)


def problem_error(details: Mapping[str, Any], status: int | None = None) -> BanditRankError:
    """Return the error that problem details describe, with their status if `status` is None."""
    error_type = str(details.get("type", "")).removeprefix(_URN_PREFIX)
    if error_type in _ERRORS:
        return _ERRORS[error_type](details["detail"])
    message = f"{details.get('title')}: {details['detail']}"
    return ServiceError(message, status or details.get("status"), error_type, details.get("request_id"))
