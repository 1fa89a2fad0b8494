"""By which names a service that demands no keys may be asked: those of the machine itself.

A page of any site can, after it was loaded, have that site's name lead to this machine (DNS rebinding). Its
browser then takes the service for the site, and lets the page ask anything. The name that it sends is still
the site's.
"""

import re
from ipaddress import ip_address

from banditrank.service.http import RequestHeaders
from banditrank.service.http_errors import WRONG_HOST, HttpError

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::[0-9]*)?", re.IGNORECASE)
_MAX_ACCEPTED = 100


def is_loopback(host: str) -> bool:
    """Return whether a name or an address, without a port, always leads to the machine itself.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "shop.example")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class HostCheck:
    """Tells whether requests ask for the machine itself."""

    def __init__(self) -> None:
        self._accepted: set[bytes] = set()  # as they were sent: clients send the same few over and over

    def check(self, headers: RequestHeaders) -> None:
        """Raise a problem if a request asks for a host that is not the machine itself.

        One without a host is none of a browser's.
        """
        host = headers.get(b"host")
        if host is None or host in self._accepted:
            return
        told = host.decode("latin-1")
        match = _HOST.fullmatch(told)
        if match is None or not is_loopback(match[1] or match[2]):
            raise HttpError(
                WRONG_HOST,
                f"without API keys it must be asked as localhost or 127.0.0.1, not as {told[:80]!r}; "
                "banditrank keys create makes a key",
            )
        if len(self._accepted) < _MAX_ACCEPTED:
            self._accepted.add(host)
