"""The studio's page and what it asks for: one address each, all of them small.

In:   a Desk, a Guard.
Out:  a Starlette application; `serve`, which runs it on 127.0.0.1 until it is interrupted.
Not here: guarding (studio/guard.py), planning and publishing (studio/desk.py).
"""

from __future__ import annotations

import json
import socket
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from sfumato.errors import InputError, SfumatoError
from sfumato.questions.registry import QUESTIONS
from sfumato.studio.desk import Desk, Drafted
from sfumato.studio.edit import AskedForm, add_publication, drop_publication, set_delta, set_epsilon, set_weight
from sfumato.studio.guard import Guard, GuardedApp
from sfumato.studio.view import form_of, problems_of, view_of

__all__ = ["serve", "studio_app"]

#: The largest request that is read; a study is a page of wishes.
_LARGEST = 2_000_000
#: After Ctrl-C for requests under way; a publication ends in its own thread.
_GOODBYE_SECONDS = 10
#: A report is one file with its own styles and pictures, and runs nothing.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
_STATIC = {"studio.css": "text/css", "studio.js": "text/javascript"}

_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("sfumato.studio"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def studio_app(desk: Desk, guard: Guard) -> GuardedApp:
    """The application, behind its guard."""
    actions: dict[str, Callable[[Desk, dict[str, Any]], dict[str, Any]]] = {
        "plan": _plan,
        "change": _change,
        "save": _save,
        "reload": _reload,
        "rehearse": _rehearse,
        "ask": _ask,
        "publish": _publish,
    }

    async def act(request: Request) -> Response:
        action = actions.get(request.path_params["action"])
        if action is None:
            return JSONResponse({"error": "There is no such action."}, 404)
        try:
            asked = await _body(request)
            return JSONResponse(await run_in_threadpool(action, desk, asked))
        except SfumatoError as error:
            return JSONResponse({"error": str(error)}, 409)

    async def page(request: Request) -> Response:
        drafted = await run_in_threadpool(lambda: desk.draft(desk.text_on_disk()))
        shown = _answer(desk, drafted)
        return HTMLResponse(_templates.get_template("page.html").render(desk=desk, **shown))

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return Response(status_code=404)
        return Response(files("sfumato.studio").joinpath("static", name).read_bytes(), media_type=_STATIC[name])

    async def report(request: Request) -> Response:
        folder = desk.reports.get(request.path_params["name"])
        if folder is None:
            return Response("There is no such report.", 404)
        return HTMLResponse(
            (folder / "report.html").read_text(encoding="utf-8"), headers={"content-security-policy": _REPORT_POLICY}
        )

    async def progress(request: Request) -> Response:
        return JSONResponse({"stage": desk.stage, "elsewhere": desk.is_changed_elsewhere})

    routes = [
        Route("/", page),
        Route("/static/{name}", static),
        Route("/report/{name}", report),
        Route("/progress", progress),
        Route("/do/{action}", act, methods=["POST"]),
    ]
    return GuardedApp(Starlette(routes=routes), guard)


async def _body(request: Request) -> dict[str, Any]:
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > _LARGEST:
            raise InputError("This is too long for a study.")
    try:
        asked = json.loads(bytes(read))
    except ValueError:
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("text", ""), str):
        raise InputError("This is no question the studio knows.")
    try:
        asked.get("text", "").encode()
    except UnicodeEncodeError:
        raise InputError("This text has half of a character in it. Write it again.") from None
    return asked


# ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plan(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    return _answer(desk, desk.draft(asked.get("text", "")))


def _change(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    """One change by a slider or the form, then the plan of the new text."""
    text, what, name = asked.get("text", ""), asked.get("what"), str(asked.get("name", ""))
    match what:
        case "epsilon":
            text = set_epsilon(text, name, _number(asked, 1e-6, 1e6))
        case "delta":
            text = set_delta(text, name, _number(asked, 0.0, 0.5))
        case "weight":
            text = set_weight(text, name, _number(asked, 1e-3, 1e6))
        case "drop":
            text = drop_publication(text, name)
        case "add":
            fields = {key: str(asked.get(key, "")).strip() for key in ("name", "what_of", "of", "goal", "requirement")}
            asked_for = QUESTIONS.get(fields["what_of"])
            reads = asked_for is None or any("value" in usage for usage in asked_for.form.usages)
            of = fields["of"] if reads else ""
            text = add_publication(
                text, AskedForm(fields["name"], fields["what_of"], of, fields["goal"], fields["requirement"])
            )
        case _:
            raise InputError("This is no change the studio knows.")
    return _answer(desk, desk.draft(text))


def _number(asked: dict[str, Any], low: float, high: float) -> float:
    try:
        value = float(asked.get("value", "nan"))
    except (TypeError, ValueError):
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"Give a number from {low:g} to {high:g}.")
    return value


def _save(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    saved = desk.save(asked.get("text", ""), over=asked.get("over") is True)
    return {"saved": saved, "file": desk.study.name}


def _reload(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    return _answer(desk, desk.draft(desk.reload()))


def _rehearse(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    return {"report": f"/report/{desk.rehearse(asked.get('text', ''))}"}


def _ask(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    return desk.ask(asked.get("text", ""))


def _publish(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    name = desk.publish(
        asked.get("text", ""), str(asked.get("nonce", "")), str(asked.get("word", "")), asked.get("grant") is True
    )
    return {"report": f"/report/{name}", "folder": str(desk.reports[name])}


def _answer(desk: Desk, drafted: Drafted) -> dict[str, Any]:
    """The parts of the page that depend on the text, as HTML."""
    problems = problems_of(drafted.problems)
    errors = sum(one["severity"] == "error" for one in problems)
    shown = {
        "view": view_of(drafted.plan, desk.before) if drafted.plan is not None else None,
        "form": form_of(drafted.spec) if drafted.spec is not None else None,
        "problems": problems,
        "errors": errors,
        "milliseconds": round(1000 * drafted.seconds),
    }
    parts = {
        name: _templates.get_template(f"{name}.html").render(**shown)
        for name in ("messages", "form", "promises", "results")
    }
    verdict = (
        f"{errors} error(s) in the text; the last plan is shown no longer."
        if errors
        else f"Planned in {shown['milliseconds']} ms."
    )
    return {
        "text": drafted.text,
        "parts": parts,
        "lines": [[one["line"], one["severity"]] for one in problems],
        "verdict": verdict,
    }


# ── serving ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(
    study: Path,
    data: Path | None,
    ledger: Path | None,
    sizes: dict[str, float],
    *,
    show: Callable[[str], None],
    browse: bool,
) -> None:
    """Serve the page until Ctrl-C. The port is free when it is taken, and nothing but 127.0.0.1 is listened to."""
    desk = Desk.open(study, data, ledger, sizes)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind(("127.0.0.1", 0))
        guard = Guard(listening.getsockname()[1])
        config = uvicorn.Config(
            studio_app(desk, guard),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_GOODBYE_SECONDS,
        )
        server = uvicorn.Server(config)
        show(guard.address)
        if browse:
            webbrowser.open(guard.address)
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        finally:
            desk.close()
