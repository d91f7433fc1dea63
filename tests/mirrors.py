"""HTTP servers on loopback that misbehave in the ways of real mirrors."""

from collections.abc import Iterator
from contextlib import contextmanager
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
    ranges : bool
        Whether it honours ``Range``.
    statuses : list of int
        Answers to the first requests, instead of the file.
    tag : str, optional
        ETag of the content. Without it, nothing tells one version from another.
    stall : Event, optional
        Breaks the connection only once it is set: before that, a mirror that hangs.
    asked : list of str or None
        ``Range`` header of each request so far.
    """

    content: bytes
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    tag: str | None = None
    stall: Event | None = None
    asked: list[str | None] = field(default_factory=list)


@contextmanager
def served(mirror: Mirror) -> Iterator[str]:
    """Serve a mirror; yields the URL of its file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            mirror.asked.append(wanted)
            if mirror.statuses:
                self.send_error(mirror.statuses.pop(0))
                return
            first = 0
            if wanted and mirror.ranges and self.headers.get("If-Range") in (None, mirror.tag):
                first = int(wanted.removeprefix("bytes=").rstrip("-"))
            size = len(mirror.content)
            if first >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{size - 1}/{size}")
            if mirror.tag:
                self.send_header("ETag", mirror.tag)
            self.send_header("Content-Length", str(size - first))
            self.end_headers()
            end = first + mirror.cuts.pop(0) if mirror.cuts else size
            self.wfile.write(mirror.content[first:end])
            if mirror.stall:
                self.wfile.flush()
                mirror.stall.wait(30)
            self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/corpus.zip"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
