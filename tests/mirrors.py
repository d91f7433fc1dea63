"""HTTP servers on loopback that misbehave in the ways of real mirrors."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


@dataclass
class Mirror:
    """A server of one file at any path, and how it misbehaves.

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
    has_stalled : Event
        Set when it hangs for the first time.
    request_count : int
        Requests so far.
    authorisation : str, optional
        The header `Authorization` of the last request.
    """

    content: bytes
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    stall: Event | None = None
    has_stalled: Event = field(default_factory=Event)
    request_count: int = 0
    authorisation: str | None = None


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
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
def serve_mirror(mirror: Mirror) -> Iterator[str]:
    """Serve a mirror and yield the URL of its file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.request_count += 1
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
                mirror.has_stalled.set()
                mirror.stall.wait(300)
            with suppress(ConnectionError):  # the test may have killed the client
                self.wfile.write(sent[half:])
            self.close_connection = True

    with serve(Handler) as address:
        yield f"{address}/corpus.zip"
