"""A peer that runs: a process group that is started, spoken to, and killed whole."""

import json
import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

# Longer than any command may take.
LONGEST_ANSWER = 120.0
STOPPING = 10.0


class Failed(Exception):
    """The peer said what went wrong, ended, or does not answer."""


class Process:
    """Started on its folder; what it writes to standard error is kept there."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.errors = folder / "errors"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=Path(__file__).parent,
                env={**os.environ, **environment},
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            self._read()
        except Failed:
            self.kill()
            raise

    def ask(self, **command: Any) -> Any:
        """Sends a command, and waits for its answer."""
        self.send(**command)
        return self._read()

    def send(self, **command: Any) -> None:
        """Sends a command whose answer may never come."""
        assert self.process.stdin
        print(json.dumps(command), file=self.process.stdin, flush=True)

    def _read(self) -> Any:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], LONGEST_ANSWER)[0]:
            raise Failed(f"no answer within {LONGEST_ANSWER:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            said = self.errors.read_text(errors="replace").strip().splitlines()
            raise Failed(f"it ended: {said[-1] if said else 'without a word'}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["answer"]

    def stop(self) -> None:
        """Asks all of it to end, and sees to it."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOPPING)
        self.kill()

    def kill(self) -> None:
        """`kill -9`, all of it."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        # It may have ended.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
