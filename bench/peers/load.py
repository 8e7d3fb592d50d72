"""The load on peers that speak HTTP: a program outside Python, so that the callers take little of the machine."""

import asyncio
import json
from subprocess import PIPE


async def measured(
    program: str, peer: str, address: str, header: str, callers: int, seconds: float
) -> dict[str, float]:
    """Runs the program `bench load` against a peer; it prints what it measured."""
    arguments = ["load", peer, address, header, str(callers), str(seconds)]
    process = await asyncio.create_subprocess_exec(program, *arguments, stdout=PIPE, stderr=PIPE)
    said, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode().strip())
    return json.loads(said)
