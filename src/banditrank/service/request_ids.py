"""Request ids for log lines, responses and problem documents."""

import re
import secrets
from itertools import count

from banditrank.service.http import REQUEST_ID, RequestHeaders

_ACCEPTED = re.compile(rb"[A-Za-z0-9._~-]{1,64}")


class RequestIds:
    """Ids that are unique to a process and a request.

    Examples
    --------
    >>> ids = RequestIds("4f0c")
    >>> ids.for_request({}), ids.for_request({})
    ('4f0c-1', '4f0c-2')
    >>> ids.for_request({b"x-request-id": b"proxy-7"}), ids.for_request({b"x-request-id": b"a b"})
    ('proxy-7', '4f0c-3')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self._prefix = secrets.token_hex(4) if prefix is None else prefix
        self._numbers = count(1)

    def for_request(self, headers: RequestHeaders) -> str:
        """Return the id that the client sent if it is valid, or a new one."""
        sent = headers.get(REQUEST_ID)
        if sent is not None and _ACCEPTED.fullmatch(sent):
            return sent.decode("ascii")
        return f"{self._prefix}-{next(self._numbers):x}"
