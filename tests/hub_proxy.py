"""A proxy before a Hub on loopback that does what networks and gates do."""

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class Proxy:
    """What the proxy does, and what it has seen.

    Attributes
    ----------
    upstream : str
        Endpoint of the Hub.
    token : str, optional
        Makes every model gated: files are for those who show it.
    damaged : str
        Name of the file that arrives with one bit turned.
    cut : dict of str to int
        File -> how many more downloads of it break off after half of what was asked for.
    failing : dict of str to int
        Last part of a path -> how many more requests for it are answered with `status`.
    asked : list of str
        The last part of the path of each GET request so far.
    """

    upstream: str
    token: str | None = None
    damaged: str = ""
    cut: dict[str, int] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)
    status: int = 503
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

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
        self.proxy.asked.append(self._name())
        self._answer()

    def _name(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _answer(self) -> None:
        proxy, shown = self.proxy, self.headers.get("Authorization")
        is_gated = "/resolve/" in self.path or self._name() == "auth-check"
        if proxy.token and is_gated and shown != f"Bearer {proxy.token}":
            # The Hub: 401 for nobody, 403 for somebody who has not accepted the licence.
            self._start(403 if shown else 401, {"X-Error-Code": "GatedRepo", "Content-Length": "0"})
        elif proxy.token and self._name() == "auth-check":  # of which olah knows nothing
            self._start(200, {"Content-Length": "0"})
        elif proxy.counts_down(proxy.failing, self._name()):
            self._start(proxy.status, {"Content-Length": "0"})
        else:
            self._forward()

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _forward(self) -> None:
        status, headers, body = self._upstream()
        name = self._name()
        if name == self.proxy.damaged and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if self.command == "GET":  # a chunked body is whole now
            status, body, part = self._range(status, body)
            headers |= {"content-length": str(len(body))} | part
        self._start(status, headers)
        if self.command == "GET":
            if self.proxy.counts_down(self.proxy.cut, name):
                body = body[: len(body) // 2]
                self.close_connection = True
            self.wfile.write(body)

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
        if status != 200 or not asked:
            return status, body, {}
        start, total = int(asked[1]), len(body)
        if start >= total:
            return 416, b"", {"content-range": f"bytes */{total}"}
        return 206, body[start:], {"content-range": f"bytes {start}-{total - 1}/{total}"}

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxied(proxy: Proxy, port: int = 0) -> Iterator[str]:
    """Serve the proxy and yield its endpoint."""
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
