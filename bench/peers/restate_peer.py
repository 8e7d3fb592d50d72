"""Restate: a workflow that waits for a durable promise, which a shared handler resolves; its server, and the service
beside it with the Python SDK under Hypercorn. Every call goes over HTTP to the server's ingress.

`restate_peer.py SERVER LOAD FOLDER` starts both, the server with the binary SERVER, and loads it with the program LOAD.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import DEVNULL, Popen

import httpx
import restate

from effects import perform
from lines import Peer, serve
from load import measured

gate = restate.Workflow("Gate")


@gate.main()
async def run(ctx: restate.WorkflowContext, effect: bool) -> str:
    verdict = await ctx.promise("verdict", type_hint=str)
    if effect:
        await ctx.run_typed("act", in_thread, run=ctx.key(), verdict=verdict)
    return verdict


@gate.handler()
async def decide(ctx: restate.WorkflowSharedContext, verdict: str) -> None:
    await ctx.promise("verdict", type_hint=str).resolve(verdict)


async def in_thread(run: str, verdict: str) -> str:
    return await asyncio.to_thread(perform, run, verdict)


app = restate.app([gate])


class Restate(Peer):
    def __init__(self, load: str, ingress: int) -> None:
        self.program = load
        self.address = f"127.0.0.1:{ingress}"
        self.http = httpx.AsyncClient(base_url=f"http://{self.address}", timeout=60)

    async def load(self, callers: int, seconds: float) -> dict[str, float]:
        return await measured(self.program, "restate", self.address, "x-nobody: 1", callers, seconds)

    async def begin(self, run: str) -> None:
        (await self.http.post(f"/Gate/{run}/run/send", json=True)).raise_for_status()

    async def decide(self, run: str, verdict: str) -> str:
        answer = await self.http.post(f"/Gate/{run}/decide", json=verdict)
        return "accepted" if answer.is_success else f"refused: {answer.status_code} {answer.json()['message']}"

    async def state(self, run: str) -> str:
        answer = await self.http.get(f"/restate/workflow/Gate/{run}/output")
        return "ended" if answer.is_success else answer.json()["message"]


def ports(folder: Path) -> list[int]:
    """Free ones, the same at each start on this folder: the server knows the service by its address."""
    kept = folder / "ports.json"
    if not kept.exists():
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
        kept.write_text(json.dumps([one.getsockname()[1] for one in sockets]))
        for one in sockets:
            one.close()
    return json.loads(kept.read_text())


async def until(what: str, succeeds: Callable[[], Awaitable[httpx.Response]]) -> None:
    for _ in range(300):
        try:
            if (await succeeds()).is_success:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{what} does not answer")


async def open_peer() -> Peer:
    server, load, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    ingress, admin, node, service = ports(folder)
    settings = {
        "RESTATE_BASE_DIR": str(folder / "restate"),
        "RESTATE_BIND_IP": "127.0.0.1",
        "RESTATE_BIND_PORT": str(node),
        "RESTATE_INGRESS__BIND_PORT": str(ingress),
        "RESTATE_ADMIN__BIND_PORT": str(admin),
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_NODE_NAME": "peers",
        "RESTATE_AUTO_PROVISION": "true",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RUST_LOG": "error",
    }
    log = (folder / "log").open("ab")
    Popen([server, "--no-logo"], env={**os.environ, **settings}, stdin=DEVNULL, stdout=log, stderr=log)
    command = [sys.executable, "-m", "hypercorn", "--bind", f"127.0.0.1:{service}", "restate_peer:app"]
    Popen(command, cwd=Path(__file__).parent, stdin=DEVNULL, stdout=log, stderr=log)
    async with httpx.AsyncClient(timeout=30) as http:
        await until("Restate", lambda: http.get(f"http://127.0.0.1:{admin}/health"))
        there = {"uri": f"http://127.0.0.1:{service}", "force": True}
        await until("its service", lambda: http.post(f"http://127.0.0.1:{admin}/deployments", json=there))
        await until("its ingress", lambda: http.get(f"http://127.0.0.1:{ingress}/restate/health"))
    return Restate(load, ingress)


if __name__ == "__main__":
    asyncio.run(serve(open_peer))
