#!/usr/bin/env python3
"""Asks a person, waits for the answer for as long as it takes, and prints it.

COUNTERSIGN_SERVER and COUNTERSIGN_TOKEN (with the role asker) come from the environment.
"""
import json, os, sys, time, urllib.error, urllib.request, uuid


def call(method, path, body=None, key=None):
    headers = {"Authorization": "Bearer " + os.environ["COUNTERSIGN_TOKEN"], "Content-Type": "application/json"}
    headers |= {"Idempotency-Key": key} if key else {}
    url = os.environ["COUNTERSIGN_SERVER"] + "/api/v1/reviews" + path
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers, method=method)
    return json.load(urllib.request.urlopen(request, timeout=90))


def ask(question):
    review = call("POST", "", question, str(uuid.uuid4()))
    known = 0
    while review["status"] == "pending":
        try:
            review = call("GET", f"/{review['id']}?wait=60s&comments_after={known}")
            for comment in review["comments"][known:]:  # answer them in the console, or with POST /{id}/comments
                print(f"{comment['by']} asks: {json.dumps(comment['text'])}", file=sys.stderr)
            known = len(review["comments"])
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise  # such as a token that was revoked
            time.sleep(5)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(5)  # the server is being restarted: the question waits there
    return review["resolution"]


if __name__ == "__main__":
    resolution = ask({"kind": "clarification", "question": " ".join(sys.argv[1:]) or "What should I do?"})
    print(resolution.get("answer") or resolution.get("reason"))
