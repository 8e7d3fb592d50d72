"""What was seen of the peers, as tables in Markdown."""

import os
import platform
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psycopg

CALLERS = (1, 16)
# Of opposite verdicts to one run, at once.
SENDERS = (2, 64)


@dataclass
class Peer:
    """A system on a store, and what was seen of it."""

    name: str
    store: str
    reached: str
    """`HTTP`, or `library` where the callers are in its process."""
    command: list[str]
    folder: Path
    tested: bool
    """Whether the two tests are made, or the rounds only."""
    figures: dict[int, list[tuple[float, float]]] = field(default_factory=lambda: {callers: [] for callers in CALLERS})
    """By callers, of each round: cycles a second, and the median of milliseconds a cycle."""
    seen: dict[str, list[str]] = field(default_factory=dict)
    """By test, the cells of its row."""
    failure: str = ""
    """Why it has no figures."""

    def rate(self, callers: int) -> float:
        return median(rate for rate, _ in self.figures[callers])


def table(found: list[Peer]) -> list[str]:
    """Medians over the rounds with the least and the most, and how many times as quick Countersign over HTTP was."""
    head = [
        "system",
        "store",
        "reached by",
        "callers",
        "cycles/s",
        "least to most",
        "ms per cycle",
        "relative to Countersign over HTTP",
    ]
    lines = row(head) + row(["---"] * len(head))
    ours = {peer.store: peer for peer in found if peer.name == "Countersign" and peer.reached == "HTTP"}
    for peer in found:
        if peer.failure:
            lines += row([peer.name, peer.store, peer.reached, "", peer.failure, "", "", ""])
            continue
        # A system with a store of its own is compared with SQLite, which is in the server's process too.
        rival = ours.get(peer.store) or ours.get("SQLite")
        for callers in CALLERS:
            rates = [rate for rate, _ in peer.figures[callers]]
            took = median(took for _, took in peer.figures[callers])
            spread = f"{min(rates):.0f} to {max(rates):.0f}"
            ratio = f"{peer.rate(callers) / rival.rate(callers):.3f}" if rival and not rival.failure else ""
            rate = f"{peer.rate(callers):.0f}"
            lines += row([peer.name, peer.store, peer.reached, str(callers), rate, spread, f"{took:.1f}", ratio])
    return lines


def promises(found: list[Peer]) -> list[str]:
    """What came of opposite verdicts, and of the crash."""
    lines: list[str] = []
    for test, head in (
        ("contradict", [cell for senders in SENDERS for cell in (f"{senders} opposite verdicts at once", "effects")]),
        ("crash", ["the run after `kill -9` and a restart", "effects before", "by itself", "in the end"]),
    ):
        lines += ["", *row(["system", "store", *head]), *row(["---"] * (2 + len(head)))]
        for peer in found:
            if peer.tested:
                cells = peer.seen[test]
                lines += row([peer.name, peer.store, *cells, *[""] * (len(head) - len(cells))])
    return lines


def row(cells: list[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def machine(postgres: str | None) -> str:
    """What it was measured on."""
    processors = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(": ")[1] for line in processors if line.startswith("model name")), platform.machine())
    said = [
        f"{os.cpu_count()} processors ({model})",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}",
    ]
    if postgres:
        with psycopg.connect(f"{postgres}/postgres") as connection:
            for setting in ("server_version", "fsync", "synchronous_commit"):
                found = connection.execute("SELECT current_setting(%s)", [setting]).fetchone()
                said.append(f"PostgreSQL's {setting} {found[0] if found else '?'}")
    return ", ".join([*said, f"load {os.getloadavg()[0]:.1f} at the start"])
