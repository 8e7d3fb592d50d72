#!/usr/bin/env python3
"""A webhook that decides: it is asked by a flow's handler, decides clear cases at once, and the others later.

HANDLER_SECRET (whsec_…, the server's COUNTERSIGN_HANDLER_SECRET) comes from the environment.
"""
import base64, hashlib, hmac, json, os, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = base64.b64decode(os.environ["HANDLER_SECRET"].removeprefix("whsec_"))


def is_signed(headers, body):
    sent, at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(at)) > 300:
        return False
    mine = base64.b64encode(hmac.digest(SECRET, f"{sent}.{at}.".encode() + body, hashlib.sha256)).decode()
    return any(hmac.compare_digest("v1," + mine, theirs) for theirs in headers["webhook-signature"].split())


def decision(review):
    """What this program knows. None: it needs longer."""
    if review["severity"] == "critical":
        return {"approved": False, "reason": "What is critical is not for a program."}
    texts = [item["value"] for item in review.get("items", []) if isinstance(item["value"], str)]
    return {"approved": True} if sum(map(len, texts)) < 2000 else None


def answer_later(data):
    """Stands for whatever takes long. Until the handler's timeout is over people may decide too: then this is a 409."""
    time.sleep(5)
    review = data["review"]
    seen = {"revision": review["revision"], "digest": review["digest"], "approved": True, "reason": "Long, but fine."}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(data["callback_url"], json.dumps(seen).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=8)
    except urllib.error.HTTPError as error:
        print(review["title"], error.code, error.read().decode())


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not is_signed(self.headers, body):
            return self.answer(400)
        data = json.loads(body)["data"]
        said = decision(data["review"])
        if said is None:
            threading.Thread(target=answer_later, args=[data], daemon=True).start()
            return self.answer(202)
        self.answer(200, json.dumps(said).encode())

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8091"))), Hook).serve_forever()
