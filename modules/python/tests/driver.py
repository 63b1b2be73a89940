"""Calls the module for test/modules/python.slow.ts: one JSON object per line in and out.

`call` authenticates a token, `ended` looks at the signal of the latest caller, and `wait` waits for
that signal. The first argument is `sync` or `async`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable
from typing import Any, Callable, Optional

from harness import plain

from gatehouse import AsyncGatehouse, Caller, Gatehouse, Refusal, Request, Settings
from gatehouse.connection import Connection

asked = 0
send = Connection.introspect


async def counted(self: Connection, token: str) -> Any:
    global asked
    asked += 1
    return await send(self, token)


Connection.introspect = counted  # type: ignore[method-assign]


async def drive(
    authenticate: Callable[[Request], Awaitable[Caller]],
    wait: Callable[[Caller], Awaitable[bool]],
) -> None:
    latest: Optional[Caller] = None
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        before, started = asked, time.monotonic()
        answer: dict[str, Any] = {}
        if "call" in command:
            try:
                request = Request("", "application/json", (f"Bearer {command['call']}",))
                latest = await authenticate(request)
                answer = {"caller": plain(latest)}
            except Refusal as refusal:
                answer = {"status": refusal.status, "headers": refusal.headers}
                answer["reason"] = getattr(refusal, "reason", None)
            answer["decided_by"] = "service" if asked > before else "memory"
        elif latest is not None:
            answer = {"ended": await wait(latest) if "wait" in command else latest.ended.is_set()}
        answer["ms"] = round((time.monotonic() - started) * 1_000)
        print(json.dumps(answer), flush=True)


async def drive_async(settings: Settings) -> None:
    async def wait(caller: Caller) -> bool:
        await asyncio.wait_for(caller.ended.wait_async(), 30)
        return True

    async with AsyncGatehouse(settings) as gate:
        await drive(gate.authenticate, wait)


def drive_sync(settings: Settings) -> None:
    with Gatehouse(settings) as gate:

        async def authenticate(request: Request) -> Caller:
            return gate.authenticate(request)

        async def wait(caller: Caller) -> bool:
            return caller.ended.wait(30)

        asyncio.run(drive(authenticate, wait))


if __name__ == "__main__":
    chosen = Settings(**json.loads(sys.stdin.readline()))
    if sys.argv[1] == "sync":
        drive_sync(chosen)
    else:
        asyncio.run(drive_async(chosen))
