"""DBOS Transact: a workflow that waits in `recv`, and is sent the decision. A library in this process, without HTTP.

`dbos_peer.py URL` uses PostgreSQL, `dbos_peer.py sqlite FOLDER` SQLite, where waiting is polling: every second by
default, here every 10 ms so that a cycle is not a second long.
"""

import asyncio
import sys
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from effects import perform
from lines import Peer, serve

WAIT = 3600.0


@DBOS.workflow()
async def gate() -> str:
    return await DBOS.recv_async(timeout_seconds=WAIT)


@DBOS.step()
async def act(run: str, verdict: str) -> None:
    await asyncio.to_thread(perform, run, verdict)


@DBOS.workflow()
async def acting(run: str) -> str:
    verdict = await DBOS.recv_async(timeout_seconds=WAIT)
    await act(run, verdict)
    return verdict


class Dbos(Peer):
    async def cycle(self) -> None:
        handle = await DBOS.start_workflow_async(gate)
        await DBOS.send_async(handle.workflow_id, "yes")
        assert await handle.get_result() == "yes"

    async def begin(self, run: str) -> None:
        with SetWorkflowID(run):
            await DBOS.start_workflow_async(acting, run)

    async def decide(self, run: str, verdict: str) -> str:
        await DBOS.send_async(run, verdict)
        return "accepted"

    async def state(self, run: str) -> str:
        status = await DBOS.get_workflow_status_async(run)
        return "ended" if status and status.status == "SUCCESS" else f"{status.status if status else 'unknown'}"


async def open_peer() -> Peer:
    where = sys.argv[1]
    postgres = where.startswith("postgres")
    config: DBOSConfig = {
        "name": "peers",
        "system_database_url": where if postgres else f"sqlite:///{Path(sys.argv[2]) / 'dbos.sqlite'}",
        "application_version": "1",
        "log_level": "ERROR",
    }
    if not postgres:
        config["notification_listener_polling_interval_sec"] = 0.01
    DBOS(config=config)
    DBOS.launch()
    return Dbos()


if __name__ == "__main__":
    asyncio.run(serve(open_peer))
