"""The service over HTTP: bounded bodies, one sentence for whatever is refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from omma.cli.json_lines import parsed
from omma.cli.prometheus import CONTENT_TYPE, Requests, exposition
from omma.cli.service import NothingYetError, Service
from omma.online.pending import (
    AlreadyWaitingError,
    ForgottenIdError,
    LabelledTwiceError,
    UnknownIdError,
)

# The first that fits says how an answer ends; all are sentences of the library.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (AlreadyWaitingError, 409),
    (LabelledTwiceError, 409),
    (ForgottenIdError, 410),
    (UnknownIdError, 404),
    (NothingYetError, 404),
    (ValueError, 400),
    (TypeError, 400),
    (OSError, 507),  # the journal or the state could not be written: nothing was counted
)
PATIENCE = 30.0  # seconds for a body to come

Handler = Callable[[Request], Awaitable[Response]]


def application(service: Service, most_bytes: int) -> Starlette:
    """The application: each request is answered before the next one is looked at.

    A decision takes some microseconds, less than to hand it to another thread.
    """
    requests = Requests()

    async def decide(request: Request) -> Response:
        return _json(service.decide(parsed(await _body(request, most_bytes))))

    async def labels(request: Request) -> Response:
        return _json(service.label(parsed(await _body(request, most_bytes))))

    async def rule(request: Request) -> Response:
        return Response(service.rule(), media_type="application/json")

    async def stats(request: Request) -> Response:
        return _json(service.stats())

    async def metrics(request: Request) -> Response:
        learner = service.learner
        found = None if learner is None else service.stats()
        name = None if learner is None or learner.metric is None else learner.metric.name
        return Response(exposition(found, name, requests), media_type=CONTENT_TYPE)

    async def health(request: Request) -> Response:
        return _json({"status": "ok"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        service.save()

    gets = {"/rule": rule, "/stats": stats, "/metrics": metrics, "/health": health}
    posts = {"/decide": decide, "/labels": labels}
    routes = [
        Route(path, _answering(path, handler, requests), methods=[method])
        for method, handlers in (("GET", gets), ("POST", posts))
        for path, handler in handlers.items()
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _no_such})


def _answering(path: str, handler: Handler, requests: Requests) -> Handler:
    """The handler with its errors as sentences, and with what it took counted."""

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        try:
            response = await handler(request)
        except HTTPException as error:
            response = _refused(error.detail, error.status_code)
        except tuple(kind for kind, _ in STATUS) as error:
            status = next(code for kind, code in STATUS if isinstance(error, kind))
            response = _refused(str(error), status)
        requests.note(path, response.status_code, time.perf_counter() - started)
        return response

    return answer


async def _body(request: Request, most: int) -> bytes:
    """The body of a request, no longer than allowed.

    Pages of other sites may send what forms send, but no JSON without asking: only that is taken.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"expected Content-Type: application/json, got {kind or 'none'}")
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > most:
        raise _too_long(most)
    try:
        return await asyncio.wait_for(_collected(request, most), PATIENCE)
    except asyncio.TimeoutError as error:
        sentence = f"expected the body within {PATIENCE:g} seconds"
        raise HTTPException(408, sentence) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "expected a whole body, got a part of it") from error


async def _collected(request: Request, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_long(most)
        parts.append(part)
    return b"".join(parts)


def _too_long(most: int) -> HTTPException:
    return HTTPException(413, f"expected a body of at most {most:,} bytes; send fewer rows at once")


def _json(content: Any, status: int = 200) -> Response:
    text = json.dumps(content, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _refused(sentence: str, status: int) -> Response:
    return _json({"error": sentence}, status)


async def _no_such(request: Request, error: Exception) -> Response:
    """A path or a method that is not there."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        sentence = f"{request.method} is not for {request.url.path}"
    else:
        sentence = "there are GET /health, /metrics, /rule, /stats and POST /decide, /labels"
    return _refused(sentence, error.status_code)
