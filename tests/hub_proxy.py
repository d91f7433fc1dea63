"""A proxy before a Hub on loopback that does what networks, gates and content hosts do."""

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

BLOCK = 4096  # bytes sent at once when throttled


@dataclass(frozen=True)
class Request:
    """One request: its method, the last part of its path, and its headers."""

    method: str
    name: str
    range: str | None
    token: str | None


@dataclass
class Proxy:
    """What the proxy does, and what it has seen.

    Attributes
    ----------
    upstream : str
        Endpoint of the Hub.
    token : str, optional
        Makes every model gated: files are for those who show it.
    gone : str
        Commit that the Hub no longer has. (`olah` fails on commits that it never had.)
    sent_on_to : str
        Endpoint that downloads are redirected to, as the Hub does to its content hosts.
    ranges : bool
        Whether a request for the rest of a file gets just the rest, or all of it.
    throttled : float
        Bytes per second of each download; 0 for no limit.
    stalled : str
        Name of the file whose download stops half-way, until `released` is set; `reached` is set there.
    damaged : str
        Name of the file that arrives with one bit turned.
    cut : dict of str to int
        File -> how many more downloads of it break off after half of what was asked for.
    failing : dict of str to int
        Last part of a path -> how many more requests for it are answered with `status`.
    status, retry_after : int, str
        The status of these answers and their header `Retry-After`, if any.
    requests : list of Request
        All so far.
    """

    upstream: str
    token: str | None = None
    gone: str = ""
    sent_on_to: str = ""
    ranges: bool = True
    throttled: float = 0
    stalled: str = ""
    damaged: str = ""
    cut: dict[str, int] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)
    status: int = 503
    retry_after: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def asked(self) -> list[str]:
        """The last part of the path of each GET request."""
        return [request.name for request in self.requests if request.method == "GET"]

    def ranges_of(self, name: str) -> list[str | None]:
        """The header `Range` of each GET request for a file."""
        return [r.range for r in self.requests if r.name == name and r.method == "GET"]

    def counts_down(self, counter: dict[str, int], name: str) -> bool:
        with self._lock:
            counter[name] = counter.get(name, 0) - 1
            return counter[name] >= 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _name(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _answer(self) -> None:
        proxy, shown = self.proxy, self.headers.get("Authorization")
        proxy.requests.append(Request(self.command, self._name(), self.headers.get("Range"), shown))
        downloads = "/resolve/" in self.path
        if proxy.gone and proxy.gone in self.path:
            self._start(404, {"X-Error-Code": "RevisionNotFound", "Content-Length": "0"})
        elif proxy.token and downloads and shown != f"Bearer {proxy.token}":
            # The Hub: 401 for nobody, 403 for somebody who has not accepted the licence.
            gate = {
                "X-Error-Code": "GatedRepo",
                "X-Error-Message": "Access to this model is restricted.",
            }
            self._start(403 if shown else 401, gate | {"Content-Length": "0"})
        elif proxy.counts_down(proxy.failing, self._name()):
            asked = {"Retry-After": proxy.retry_after} if proxy.retry_after else {}
            self._start(proxy.status, asked | {"Content-Length": "0"})
        elif proxy.sent_on_to and downloads:
            self._send_on(proxy.sent_on_to + self.path)
        else:
            self._forward(downloads)

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_on(self, location: str) -> None:
        """The Hub says what the file is before it sends on to where its content is."""
        _, headers, body = self._upstream()
        known = {
            "X-Repo-Commit": headers["x-repo-commit"],
            "X-Linked-Etag": headers["etag"],
            "X-Linked-Size": headers.get("content-length", str(len(body))),
        }
        self._start(302, known | {"Location": location, "Content-Length": "0"})

    def _forward(self, downloads: bool) -> None:
        status, headers, body = self._upstream()
        name = self._name()
        if name == self.proxy.damaged and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if self.command == "GET":  # a chunked body is whole now
            status, body, part = self._range(status, body)
            headers |= {"content-length": str(len(body))} | part
        self._start(status, headers)
        if self.command == "GET":
            try:
                self._send(name if downloads else "", body)
            except ConnectionError:  # whoever asked was killed, as planned
                self.close_connection = True

    def _upstream(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.upstream).netloc, timeout=30)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "range")}
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            kept = {k.lower(): v for k, v in answer.getheaders()}
            for hop_by_hop in ("transfer-encoding", "connection"):
                kept.pop(hop_by_hop, None)
            return answer.status, kept, answer.read()
        finally:
            connection.close()

    def _range(self, status: int, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """The part that was asked for; `olah` itself always sends the whole of its own files."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if status != 200 or not asked or not self.proxy.ranges:
            return status, body, {}
        start, total = int(asked[1]), len(body)
        if start >= total:
            return 416, b"", {"content-range": f"bytes */{total}"}
        return 206, body[start:], {"content-range": f"bytes {start}-{total - 1}/{total}"}

    def _send(self, name: str, body: bytes) -> None:
        half = len(body) // 2
        if self.proxy.counts_down(self.proxy.cut, name):
            self.wfile.write(body[:half])
            self.close_connection = True
        elif name == self.proxy.stalled and name:
            self.wfile.write(body[:half])
            self.wfile.flush()
            self.proxy.reached.set()
            self.proxy.released.wait(60)
            self.wfile.write(body[half:])
        elif name and self.proxy.throttled:
            for start in range(0, len(body), BLOCK):
                block = body[start : start + BLOCK]
                self.wfile.write(block)
                time.sleep(len(block) / self.proxy.throttled)
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxied(proxy: Proxy) -> Iterator[str]:
    """Serve the proxy and yield its endpoint."""
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            proxy.released.set()
            server.shutdown()
            thread.join()
