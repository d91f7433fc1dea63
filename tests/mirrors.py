"""HTTP servers on loopback that misbehave in the ways of real mirrors."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


@dataclass
class Mirror:
    """One file at any path; what it does at each request is set here.

    Attributes
    ----------
    content : bytes
        The file.
    cuts : list of int
        Bytes after which the connection is broken, one for each of the first requests.
    statuses : list of int
        Answers to the first requests, instead of the file.
    stall : Event, optional
        Hangs half-way through each download until it is set.
    stalled : Event
        Set when it hangs for the first time.
    asked : int
        Requests so far.
    authorisation : str, optional
        What the last of them had for a password.
    """

    content: bytes
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    stall: Event | None = None
    stalled: Event = field(default_factory=Event)
    asked: int = 0
    authorisation: str | None = None


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve on loopback, without a line for each request, and yield the address."""
    handler.log_message = lambda *arguments: None
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(mirror: Mirror) -> Iterator[str]:
    """Serve a mirror; yields the URL of its file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.asked += 1
            mirror.authorisation = self.headers["Authorization"]
            if mirror.statuses:
                self.send_error(mirror.statuses.pop(0))
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(mirror.content)))
            self.end_headers()
            sent = mirror.content[: mirror.cuts.pop(0) if mirror.cuts else None]
            half = len(sent) // 2
            self.wfile.write(sent[:half])
            if mirror.stall:
                self.wfile.flush()
                mirror.stalled.set()
                mirror.stall.wait(300)
            with suppress(ConnectionError):  # whoever asked was killed, as planned
                self.wfile.write(sent[half:])
            self.close_connection = True

    with serving(Handler) as address:
        yield f"{address}/corpus.zip"
