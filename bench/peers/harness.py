"""Countersign beside its peers: the same gate cycle on each, what becomes of opposite verdicts, what a crash leaves.

Each peer is started for each round, loaded alone, and stopped, one after another and round by round, so that whatever
else the machine does meets all of them. Two tests follow that count effects on a server of the harness's own. What
cannot run is reported as not run, with the reason.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import psycopg

from effects import URL, Effects
from lines import new_run
from processes import Failed, Process
from report import CALLERS, SENDERS, Peer, machine, promises, table

HERE = Path(__file__).parent
RESTATE = HERE / "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server"

WARM_UP = 1.0
# How long a crashed run may take to go on: leases and retries wait.
RECOVERY = 25.0
SETTLED = 1.0


def peers(options: argparse.Namespace, scratch: Path) -> list[Peer]:
    """Each with a folder and a database of its own; those on PostgreSQL where there is one."""
    server, load, python = str(Path(options.server).resolve()), str(Path(options.load).resolve()), sys.executable
    lg, dbos = f"LangGraph {version('langgraph')}", f"DBOS {version('dbos')}"
    http, library = "HTTP", "library"
    found: list[Peer] = []

    def add(name: str, store: str, reached: str, command: list[str], *, tested: bool = True) -> None:
        folder = scratch / str(len(found))
        place = {"FOLDER": str(folder), "DATABASE": f"{options.postgres}/peer_{len(found)}"}
        if store == "PostgreSQL":
            if not options.postgres:
                return
            with psycopg.connect(f"{options.postgres}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS peer_{len(found)} WITH (FORCE)")
                connection.execute(f"CREATE DATABASE peer_{len(found)}")
        folder.mkdir()
        filled = [place.get(word, word.replace("FOLDER", str(folder))) for word in command]
        found.append(Peer(name, store, reached, filled, folder, tested))

    add("Countersign", "SQLite", http, [python, "countersign_peer.py", server, load, "FOLDER"])
    add("Countersign", "SQLite", library, [load, "embedded", "sqlite:FOLDER/runs.db"], tested=False)
    add(lg, "SQLite", library, [python, "langgraph_peer.py", "sqlite", "FOLDER"])
    add(dbos, "SQLite", library, [python, "dbos_peer.py", "sqlite", "FOLDER"])
    add("Countersign", "PostgreSQL", http, [python, "countersign_peer.py", server, load, "FOLDER", "DATABASE"])
    add("Countersign", "PostgreSQL", library, [load, "embedded", "DATABASE"], tested=False)
    add(lg, "PostgreSQL", library, [python, "langgraph_peer.py", "DATABASE", "1"])
    add(f"{lg}, 16 savers", "PostgreSQL", library, [python, "langgraph_peer.py", "DATABASE", "16"], tested=False)
    add(dbos, "PostgreSQL", library, [python, "dbos_peer.py", "DATABASE"])
    package = json.loads((HERE / "package.json").read_text())["dependencies"]
    restate = f"Restate {package['@restatedev/restate-server']}"
    add(restate, "its own", http, [python, "restate_peer.py", str(RESTATE), load, "FOLDER"])
    if not RESTATE.exists():
        found[-1].failure = "not run: npm, or its package of Restate's server for Linux on x86-64, is not here"
    return found


def attempt(what: Callable[[Peer, Effects], None], peer: Peer, effects: Effects) -> str:
    """Does something with a peer; answers with why it could not be done."""
    try:
        what(peer, effects)
    except (Failed, OSError) as failure:
        print(f"{peer.name} on {peer.store}: {failure}", file=sys.stderr)
        return f"not run: {failure}"
    return ""


def start(peer: Peer, effects: Effects) -> Process:
    return Process(peer.command, peer.folder, {URL: effects.url, "PYTHONDONTWRITEBYTECODE": "1"})


def measure(peer: Peer, effects: Effects, seconds: float) -> None:
    """One round: a warm-up that does not count, then each number of callers."""
    process = start(peer, effects)
    try:
        process.ask(do="load", callers=max(CALLERS), seconds=WARM_UP)
        for callers in CALLERS:
            seen = process.ask(do="load", callers=callers, seconds=seconds)
            peer.figures[callers].append((seen["cycles_per_second"], seen["median_ms"]))
    finally:
        process.stop()


def contradict(peer: Peer, effects: Effects) -> None:
    """Sends opposite verdicts to a waiting run, all at once, and counts what comes of them: first two, then many."""
    process, cells = start(peer, effects), []
    try:
        for senders in SENDERS:
            run = new_run()
            process.ask(do="begin", run=run)
            time.sleep(SETTLED)
            answers = process.ask(do="decide", run=run, verdicts=["yes", "no"] * (senders // 2))
            told = Counter(re.split("[:,]", answer)[0] for answer in answers)
            until_ended(process, run)
            time.sleep(SETTLED)
            done = Counter(effects.seen[run])
            cells.append(", ".join(f"{count} {what}" for what, count in told.most_common()))
            cells.append(f"{done.total()} ({done['yes']} yes, {done['no']} no)")
        peer.seen["contradict"] = cells
    finally:
        process.stop()


def crash(peer: Peer, effects: Effects) -> None:
    """Kills the peer when the effect of a decided run has happened and nobody has been told, and starts it again."""
    process, run = start(peer, effects), new_run()
    try:
        process.ask(do="begin", run=run)
        time.sleep(SETTLED)
        effects.hold()
        process.send(do="decide", run=run, verdicts=["yes"])
        if not effects.arrived.wait(RECOVERY):
            raise Failed("a decided run had no effect")
        process.kill()
        effects.release()
        before = len(effects.seen[run])
        process = start(peer, effects)
        left = until_ended(process, run)
        by_itself = len(effects.seen[run])
        if left != "ended":
            left += f"; then {process.ask(do='go_on', run=run)}: {until_ended(process, run)}"
        if set(effects.seen[run]) != {"yes"}:
            raise Failed(f"the decision was yes, and the effects were {effects.seen[run]}")
        peer.seen["crash"] = [left, str(before), str(by_itself), str(len(effects.seen[run]))]
    finally:
        effects.release()
        process.stop()


def until_ended(process: Process, run: str) -> str:
    """Waits until a run has ended or asks somebody, and says where it stands."""
    until = time.monotonic() + RECOVERY
    while True:
        state = process.ask(do="state", run=run)
        if state == "ended" or state.startswith("asks") or time.monotonic() > until:
            return state
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="Countersign's release binary")
    parser.add_argument("--load", required=True, help="the binary of `bench`, which calls peers over HTTP")
    parser.add_argument("--postgres", help="a PostgreSQL administrator's address without a database")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement in a round")
    parser.add_argument("--only", default="", help="peers whose name contains this")
    options = parser.parse_args()
    on, effects = machine(options.postgres), Effects()
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        found = [peer for peer in peers(options, Path(scratch)) if options.only in peer.name]
        for number in range(options.rounds):
            for peer in found:
                print(f"round {number + 1}: {peer.name}, {peer.store}, {peer.reached}", file=sys.stderr)
                if not peer.failure:
                    peer.failure = attempt(partial(measure, seconds=options.seconds), peer, effects)
        for peer in (peer for peer in found if peer.tested):
            print(f"verdicts and crash: {peer.name}, {peer.store}", file=sys.stderr)
            for test in (contradict, crash):
                failure = peer.failure or attempt(test, peer, effects)
                if failure:
                    peer.seen[test.__name__] = [failure]
        print("\n".join([f"{on} and {os.getloadavg()[0]:.1f} at the end", "", *table(found), *promises(found)]))


if __name__ == "__main__":
    main()
