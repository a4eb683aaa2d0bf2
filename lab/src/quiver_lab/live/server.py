"""The live page's server: the page, and the journal's lines as server-sent events."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from quiver_lab.runs.journal import JOURNAL

POLL_S = 0.5
KEEP_ALIVE_S = 15.0
LINE_BYTES_MAX = 1 << 20
LOOPBACK = "127.0.0.1"
EVENT_STREAM = "text/event-stream"


def application(folder: Path) -> FastAPI:
    """What is served for one run's folder."""
    app = FastAPI(title="quiver-lab live", docs_url=None, redoc_url=None, openapi_url=None)
    own = files("quiver_lab.live")

    @app.get("/")
    def page() -> HTMLResponse:
        """The page; everything it needs is in it."""
        style = (files("quiver_lab.report") / "page.css").read_text(encoding="utf-8")
        text = (own / "live.html").read_text(encoding="utf-8")
        return HTMLResponse(text.replace("/* STYLE */", style))

    @app.get("/events")
    async def stream(request: Request) -> Response:
        """The journal from its beginning, and then what is added, until the browser leaves."""
        return StreamingResponse(
            tail(folder / JOURNAL, request), media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"}
        )

    return app


async def tail(path: Path, request: Request) -> AsyncIterator[str]:
    """Whole lines of a file that grows, each as an event. A file that begins anew is read anew, and the
    browser is told to forget."""
    place, rest, quiet_s, inode = 0, b"", 0.0, -1
    while not await request.is_disconnected():
        data = b""
        try:
            state = path.stat()
            if state.st_ino != inode or state.st_size < place:
                inode, place, rest = state.st_ino, 0, b""
                yield "event: reset\ndata: {}\n\n"
            with path.open("rb") as file:
                file.seek(place)
                data = file.read(LINE_BYTES_MAX)
        except OSError:
            pass  # not there yet
        place += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield f"data: {line.decode(errors='replace')}\n\n"
        if data:
            quiet_s = 0.0
            continue
        await asyncio.sleep(POLL_S)
        quiet_s += POLL_S
        if quiet_s >= KEEP_ALIVE_S:
            quiet_s = 0.0
            yield ": still here\n\n"


def listening(port: int) -> socket.socket:
    """A socket on the loopback; port 0 is any. An OSError says what is wrong with the port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def serve(folder: Path, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        application(folder), log_level="critical", lifespan="off", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listener])
