"""Countersign: a flow with a human node, its release server spoken to over HTTP.

`countersign_peer.py SERVER LOAD FOLDER [URL]` starts the binary SERVER on SQLite, or on the PostgreSQL at URL, and
loads it with the program LOAD.
"""

import asyncio
import os
import secrets
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import urlsplit

import httpx

from effects import URL
from lines import Peer, serve
from load import measured

HUMAN = {"prompt": "Go on?", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]}
FLOWS = {
    # As in `cargo xtask bench -- --only cycles`.
    "ask": {"id": "ask", "nodes": {"ask": {"human": {"prompt": "Go on?", "options": HUMAN["options"][:1]}}}},
    "acting": {
        "id": "acting",
        "input": {"type": "object", "properties": {"name": {"type": "string"}}},
        "tools": {
            "act": {
                "description": "Has the effect",
                "parameters": {
                    "type": "object",
                    "properties": {"run": {"type": "string"}, "verdict": {"type": "string"}},
                },
                "http": {"url": f"{os.environ[URL]}/{{{{ arguments.run }}}}/{{{{ arguments.verdict }}}}"},
            }
        },
        "nodes": {
            "ask": {"human": HUMAN, "next": "act"},
            "act": {"tool": "act", "arguments": {"run": "{{ name }}", "verdict": "{{ decisions.ask.option }}"}},
        },
    },
}


class Countersign(Peer):
    def __init__(self, load: str, http: httpx.AsyncClient, kept: Path) -> None:
        self.program = load
        self.http = http
        self.kept = kept

    async def load(self, callers: int, seconds: float) -> dict[str, float]:
        header = f"authorization: {self.http.headers['authorization']}"
        return await measured(self.program, "countersign", self.http.base_url.netloc.decode(), header, callers, seconds)

    async def begin(self, run: str) -> None:
        answer = await self.http.post("/api/v1/runs", json={"flow": "acting", "input": {"name": run}})
        (self.kept / run).write_text(answer.raise_for_status().json()["id"])

    async def review(self, run: str) -> dict[str, Any]:
        """The newest of the run."""
        there = (self.kept / run).read_text()
        return (await self.http.get(f"/api/v1/runs/{there}/reviews")).json()["items"][0]

    async def send(self, review: dict[str, Any], verdict: dict[str, Any]) -> httpx.Response:
        body = {"revision": review["revision"], "digest": review["digest"], "verdict": verdict}
        return await self.http.post(f"/api/v1/reviews/{review['id']}/decisions", json=body)

    async def decide(self, run: str, verdict: str) -> str:
        answer = await self.send(await self.review(run), {"type": "choose", "option": verdict})
        return "accepted" if answer.is_success else f"refused: {answer.status_code} {answer.json()['code']}"

    async def state(self, run: str) -> str:
        there = (await self.http.get(f"/api/v1/runs/{(self.kept / run).read_text()}")).json()
        if there["status"] == "completed":
            return "ended"
        if there["status"] == "waiting_for_human":
            return f"asks a person: “{(await self.review(run))['prompt'].split(';')[0]}”"
        return there["status"]

    async def go_on(self, run: str) -> str:
        review = await self.review(run)
        happened = {"type": "respond", "message": "It took effect."}
        verdict = {"type": "actions", "decisions": {review["actions"][0]["id"]: happened}}
        await self.send(review, verdict)
        return "a person said that it took effect"


async def open_peer() -> Peer:
    server, load, folder, *postgres = sys.argv[1:]
    effects = urlsplit(os.environ[URL]).netloc
    (Path(folder) / "countersign.toml").write_text(f'[tools]\nallowed_hosts = ["{effects}"]\n')
    password = secrets.token_urlsafe()
    command = [server, "serve", "--listen", "127.0.0.1:0", "--data", folder]
    command += [argument for url in postgres for argument in ("--database", url)]
    settings = {"COUNTERSIGN_ADMIN_PASSWORD": password, "COUNTERSIGN_LOG": "error"}
    process = Popen(command, env={**os.environ, **settings}, stdout=PIPE, text=True)
    assert process.stdout
    address = next(line.split()[-1] for line in process.stdout if line.startswith("listening on "))
    http = httpx.AsyncClient(base_url=address, timeout=60, limits=httpx.Limits(max_connections=64))
    kept = Path(folder) / "token"
    if not kept.exists():
        signed_in = await http.post("/api/v1/session", json={"username": "admin", "password": password})
        signed_in.raise_for_status()
        made = await http.post("/api/v1/tokens", json={"name": "peers", "roles": ["admin"]})
        kept.write_text(made.raise_for_status().json()["secret"])
    http.cookies.clear()
    http.headers["authorization"] = f"Bearer {kept.read_text()}"
    for name, flow in FLOWS.items():
        (await http.put(f"/api/v1/flows/{name}", json=flow)).raise_for_status()
    return Countersign(load, http, Path(folder))


if __name__ == "__main__":
    asyncio.run(serve(open_peer))
