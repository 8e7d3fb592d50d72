"""LangGraph: a graph with `interrupt`, resumed by `Command(resume=…)`. A library in this process, without HTTP.

`langgraph_peer.py sqlite FOLDER` uses `AsyncSqliteSaver`; `langgraph_peer.py URL SAVERS` uses `PostgresSaver`, called
from threads, on a pool of connections: of the two kinds of savers the quicker one for each database. A saver does one
thing at a time whatever its pool, so there may be several, which callers take in turn. Durability is the library's
default ("async"): what a step wrote is on its way while the next step runs, and committed when the call answers.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from effects import perform
from lines import Peer, new_run, serve

# As many as callers at once, and more.
THREADS = 64


class Gate(TypedDict, total=False):
    run: str
    verdict: str
    done: bool


def ask(state: Gate) -> Gate:
    return {"verdict": interrupt("Go on?")}


def act(state: Gate) -> Gate:
    perform(state["run"], state["verdict"])
    return {"done": True}


def thread(run: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run}}


class LangGraph(Peer):
    def __init__(self, savers: Sequence[BaseCheckpointSaver[str]], *, threads: bool) -> None:
        gate = StateGraph(Gate).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
        self.gates = itertools.cycle([gate.compile(checkpointer=saver) for saver in savers])
        acting = StateGraph(Gate).add_node("ask", ask).add_node("act", act)
        acting.add_edge(START, "ask").add_edge("ask", "act").add_edge("act", END)
        self.acting = acting.compile(checkpointer=savers[0])
        self.threads = threads

    async def invoke(self, graph: Any, run: str, what: Any) -> dict[str, Any]:
        if self.threads:
            return await asyncio.to_thread(graph.invoke, what, thread(run))
        return await graph.ainvoke(what, thread(run))

    async def cycle(self) -> None:
        run, gate = new_run(), next(self.gates)
        waiting = await self.invoke(gate, run, {"run": run})
        assert waiting["__interrupt__"], waiting
        ended = await self.invoke(gate, run, Command(resume="yes"))
        assert ended["verdict"] == "yes", ended

    async def begin(self, run: str) -> None:
        await self.invoke(self.acting, run, {"run": run})

    async def decide(self, run: str, verdict: str) -> str:
        ended = await self.invoke(self.acting, run, Command(resume=verdict))
        return f"accepted, ended with {ended['verdict']}"

    async def state(self, run: str) -> str:
        if self.threads:
            now = await asyncio.to_thread(self.acting.get_state, thread(run))
        else:
            now = await self.acting.aget_state(thread(run))
        if now.values.get("done"):
            return "ended"
        return f"stands where it stood, verdict {now.values.get('verdict', 'not in the state')}"

    async def go_on(self, run: str) -> str:
        await self.invoke(self.acting, run, None)
        return "somebody calls `invoke(None)`"


async def open_peer() -> Peer:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    where, argument = sys.argv[1:]
    if where == "sqlite":
        sqlite = AsyncSqliteSaver(await aiosqlite.connect(Path(argument) / "checkpoints.sqlite"))
        await sqlite.setup()
        return LangGraph([sqlite], threads=False)
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: ConnectionPool[Connection[dict[str, Any]]] = ConnectionPool(where, min_size=1, max_size=20, kwargs=settings)
    savers = [PostgresSaver(pool) for _ in range(int(argument))]
    savers[0].setup()
    return LangGraph(savers, threads=True)


if __name__ == "__main__":
    asyncio.run(serve(open_peer))
