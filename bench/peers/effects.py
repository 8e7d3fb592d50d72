"""The effect that a decided run has in the world: a request to a server that counts, and can be slow to answer."""

import os
import threading
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL = "PEERS_EFFECTS"


def perform(run: str, verdict: str) -> str:
    """Has the effect, once."""
    request = urllib.request.Request(f"{os.environ[URL]}/{run}/{verdict}", data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


class Effects:
    """Counts requests by run. While `held`, requests count and get no answer."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = defaultdict(list)
        self.arrived = threading.Event()
        self.released = threading.Event()
        self.released.set()
        effects = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                _, run, verdict = self.path.split("/")
                effects.seen[run].append(verdict)
                effects.arrived.set()
                effects.released.wait(60)
                try:
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", "4")
                    self.end_headers()
                    self.wfile.write(b"true")
                except OSError:
                    pass  # Whoever asked was killed.

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def hold(self) -> None:
        """Lets the next effects happen without an answer."""
        self.arrived.clear()
        self.released.clear()

    def release(self) -> None:
        """Answers again."""
        self.released.set()
