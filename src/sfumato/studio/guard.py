"""Who may speak to the studio: this machine's own browser, through the address that was printed, and nobody else.

In:   requests.
Out:  the same requests, or a refusal; headers that keep other pages out.
Not here: what is answered (studio/app.py).

The studio can spend a budget, so a page of somebody else that is open in the same browser must not reach it. The Host
is compared as a whole (a prefix would let 127.0.0.1.example.org in, and an address that is rebound has another name).
The token in the printed address works once and becomes a cookie that scripts cannot read and other sites do not send.
Whatever changes anything is a POST of JSON from the page's own origin.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "GuardedApp"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass
class Guard:
    """The secrets of one studio. `ticket` is in the printed address and is taken once."""

    port: int
    ticket: str | None = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?ticket={self.ticket}"

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset((f"127.0.0.1:{self.port}", f"localhost:{self.port}"))

    @property
    def cookie(self) -> str:
        """Cookies are not kept apart by port, so the port is in the name."""
        return f"sfumato-{self.port}"

    def take(self, ticket: str) -> bool:
        """Whether this is the ticket; it is worth nothing afterwards."""
        if self.ticket is None or not hmac.compare_digest(self.ticket.encode(), ticket.encode()):
            return False
        self.ticket = None
        return True

    def refusal(self, scope: Scope) -> Response | None:
        """Why a request is not answered, or nothing."""
        headers = Headers(scope=scope)
        if headers.get("host") not in self.hosts:
            return PlainTextResponse("Wrong host.", 400)
        ticket = _ticket(scope)
        if scope["method"] == "GET" and scope["path"] == "/" and ticket is not None:
            return self._admitted() if self.take(ticket) else _unknown()
        if not hmac.compare_digest(_cookie(headers, self.cookie).encode(), self.session.encode()):
            return _unknown()
        return None if scope["method"] in ("GET", "HEAD") else self._foreign(headers)

    def _admitted(self) -> Response:
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.cookie, self.session, httponly=True, samesite="strict", path="/")
        return answer

    def _foreign(self, headers: Headers) -> Response | None:
        own = {f"http://{host}" for host in self.hosts}
        if headers.get("origin") not in own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("Another page may not ask this.", 403)
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("Only JSON is read.", 415)
        return None


class GuardedApp:
    """An application behind a Guard."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refused = self.guard.refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (refused or self.app)(scope, receive, with_headers)


def _unknown() -> Response:
    return PlainTextResponse(
        "This studio does not know you. Open the address that `sfumato studio` printed; it works once, in one browser. "
        "Start the studio again for a new one.",
        401,
    )


def _ticket(scope: Scope) -> str | None:
    from urllib.parse import parse_qs

    return parse_qs(scope.get("query_string", b"").decode("latin-1")).get("ticket", [None])[0]


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
