#!/usr/bin/env python3
"""A program that decides reviews: hears of them by signed webhook, and decides over REST with a token.

COUNTERSIGN_SERVER, COUNTERSIGN_TOKEN (with the role reviewer) and WEBHOOK_SECRET (whsec_…) come from the environment.
"""
import base64, hashlib, hmac, json, os, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER, TOKEN = os.environ["COUNTERSIGN_SERVER"], os.environ["COUNTERSIGN_TOKEN"]
SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def is_signed(headers, body):
    sent, at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(at)) > 300:
        return False
    mine = base64.b64encode(hmac.digest(SECRET, f"{sent}.{at}.".encode() + body, hashlib.sha256)).decode()
    return any(hmac.compare_digest("v1," + mine, theirs) for theirs in headers["webhook-signature"].split())


def verdict(review):
    """What this program knows: short drafts are fine. None leaves the review to people."""
    texts = [item["value"] for item in review.get("items", []) if isinstance(item["value"], str)]
    approve = next((option["id"] for option in review.get("options", []) if option["kind"] == "accept"), None)
    return {"type": "choose", "option": approve} if approve and sum(map(len, texts)) < 2000 else None


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not is_signed(self.headers, body):
            return self.answer(400)
        message = json.loads(body)
        review = message["data"]["review"]
        said = verdict(review) if message["type"] == "review.requested" else None
        # Decided before it is answered: what fails comes again, with the same id, and counts once.
        self.answer(decide(review, said, self.headers["webhook-id"]) if said else 204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


def decide(review, said, key):
    seen = {"revision": review["revision"], "digest": review["digest"], "verdict": said}
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Idempotency-Key": key}
    url = f"{SERVER}/api/v1/reviews/{review['id']}/decisions"
    try:
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(seen).encode(), headers), timeout=8)
    except urllib.error.HTTPError as error:
        print(review["title"], error.code, error.read().decode())  # 409: somebody else was first, or it has changed
        return 503 if error.code >= 500 else 204
    except OSError:
        return 503  # the server is away: the message comes again
    print(review["title"], "decided")
    return 204


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8090"))), Hook).serve_forever()
