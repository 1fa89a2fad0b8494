"""What whoever asks may do: a page asks before it shows what cannot be done."""

from typing import TYPE_CHECKING

import msgspec

from banditrank.service.messages import Request, Response
from banditrank.service.models import Access
from banditrank.service.operations import Operation

if TYPE_CHECKING:
    from banditrank.service.application import Application


async def _access(application: "Application", request: Request) -> Response:
    rights = list(application.rights.of(request.headers))
    return Response(200, msgspec.json.encode(Access(application.rights.demanded, rights)))


OPERATIONS = (
    Operation(
        "GET",
        "/v1/access",
        "access",
        "What the key that is sent with this request may do; everything, if keys are not demanded.",
        None,
        _access,
        answer=Access,
    ),
)
