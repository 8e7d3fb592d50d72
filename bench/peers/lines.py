"""What a peer is, and how the harness speaks to it: one line of JSON for a command, one line for its answer.

A peer is a process group of its own, so that `kill -9` takes all of it, and it can be started again on the same data.
"""

import asyncio
import json
import os
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any


class Peer(ABC):
    """One system under comparison."""

    @abstractmethod
    async def begin(self, run: str) -> None:
        """Starts a run that asks a person and then has an effect; answers when the system says that it is started."""

    @abstractmethod
    async def decide(self, run: str, verdict: str) -> str:
        """Sends a decision; answers with what the sender is told."""

    @abstractmethod
    async def state(self, run: str) -> str:
        """`ended`, or where the run stands."""

    async def go_on(self, run: str) -> str:
        """What has to be done by hand to a run that a crash interrupted; most need nothing."""
        return "nothing to do"

    async def cycle(self) -> None:
        """One run, without an effect, from its start to its end."""
        raise NotImplementedError

    async def load(self, callers: int, seconds: float) -> dict[str, float]:
        """Cycles for so long, by so many callers at once, each of which begins a cycle when its last one has ended."""
        took: list[float] = []
        started = time.perf_counter()

        async def caller() -> None:
            while (began := time.perf_counter()) - started < seconds:
                await self.cycle()
                took.append(time.perf_counter() - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        return {"cycles_per_second": len(took) / (time.perf_counter() - started), "median_ms": median(took) * 1000}


def new_run() -> str:
    """A name for a run."""
    return uuid.uuid4().hex


async def serve(open_peer: Callable[[], Awaitable[Peer]]) -> None:
    """Carries out commands from standard input until it ends."""
    # Libraries that print must not write between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer = await open_peer()
    print(json.dumps({"answer": "ready"}), file=answers)
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            answer: dict[str, Any] = {"answer": await _carry_out(peer, json.loads(line))}
        except Exception as error:  # Whatever went wrong is for the harness to report.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


async def _carry_out(peer: Peer, command: dict[str, Any]) -> Any:
    match command:
        case {"do": "load", "callers": callers, "seconds": seconds}:
            return await peer.load(callers, seconds)
        case {"do": "begin", "run": run}:
            return await peer.begin(run)
        case {"do": "decide", "run": run, "verdicts": verdicts}:
            said = await asyncio.gather(*(peer.decide(run, verdict) for verdict in verdicts), return_exceptions=True)
            return [f"error: {one}" if isinstance(one, BaseException) else one for one in said]
        case {"do": "state", "run": run}:
            return await peer.state(run)
        case {"do": "go_on", "run": run}:
            return await peer.go_on(run)
    raise ValueError(f"not a command: {command}")
