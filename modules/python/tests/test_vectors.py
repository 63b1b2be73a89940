"""Checks the module with the vectors of docs/wire: what the service sends, and what follows."""

import asyncio
import json
import pathlib
import re
import unittest
from typing import Any, Optional
from unittest import mock

import httpx
from harness import ISSUER, FakeStream, VirtualClock, VirtualLoop, answered, plain, settings, settle

from gatehouse import AsyncGatehouse, Caller, Refusal, Request, Unavailable
from gatehouse.stream import StreamLost, StreamReader

WIRE = pathlib.Path(__file__).parents[3] / "docs" / "wire"
TOKEN = "gate_at_test"


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((WIRE / f"{name}.json").read_text())["cases"]
    return found


def refusal(raised: Refusal) -> dict[str, Any]:
    """Returns a refusal in the form of the vectors."""
    headers = raised.headers
    seen: dict[str, Any] = {"status": raised.status}
    if "WWW-Authenticate" in headers:
        text = r'error_description="[^"\\]+"'
        challenge = re.sub(text, 'error_description="…"', headers["WWW-Authenticate"])
        seen["www_authenticate"] = challenge
    if "Retry-After" in headers:
        seen["retry_after"] = headers["Retry-After"]
    return seen


class Vectors(unittest.TestCase):
    maxDiff = None

    def test_each_request_gives_the_token_or_the_refusal_of_its_vector(self) -> None:
        for case in cases("authorization-headers"):
            with self.subTest(case["title"]):
                asked: list[str] = []

                def answer(request: httpx.Request, asked: list[str] = asked) -> httpx.Response:
                    asked.append(dict(httpx.QueryParams(request.content.decode()))["token"])
                    return answered(200, b'{"active":false}')

                gate = AsyncGatehouse(
                    settings(live=False), transport=httpx.MockTransport(answer)
                )
                request = Request(case["query"], case["content_type"], tuple(case["authorization"]))
                with self.assertRaises(Refusal) as raised:
                    asyncio.run(gate.authenticate(request))
                if "token" in case["outcome"]:
                    self.assertEqual(asked, [case["outcome"]["token"]])
                else:
                    self.assertEqual(asked, [])
                    self.assertEqual(refusal(raised.exception), case["outcome"]["refusal"])

    def test_each_answer_gives_the_caller_or_the_refusal_of_its_vector(self) -> None:
        for case in cases("introspection"):
            with self.subTest(case["title"]):
                outcome = case["outcome"]

                def answer(request: httpx.Request, case: dict[str, Any] = case) -> httpx.Response:
                    return answered(case["status"], case["body"].encode(), case["headers"])

                gate = AsyncGatehouse(
                    settings(live=False), transport=httpx.MockTransport(answer)
                )
                try:
                    caller = asyncio.run(gate.introspect(TOKEN))
                    self.assertEqual(plain(caller), sorted_lists(outcome.get("caller")))
                except Refusal as raised:
                    self.assertEqual(refusal(raised), outcome.get("refusal"))
                    self.assertEqual(getattr(raised, "reason", None), outcome.get("reason"))
                    self.assertEqual(isinstance(raised, Unavailable), raised.status == 503)

    def test_each_stream_gives_the_events_of_its_vector(self) -> None:
        for case in cases("stream"):
            with self.subTest(case["title"]):
                now_ms, events = 0, []
                reader = StreamReader(now_ms)
                try:
                    for piece in case["pieces"]:
                        now_ms += piece["after_ms"]
                        if piece["text"] is None:
                            if reader.silence_left_ms(now_ms) <= 0:
                                raise StreamLost
                            continue
                        for kind, ids in reader.read(piece["text"], now_ms):
                            names = " ".join(ids) or "everything"
                            events.append(f"changed {names}" if kind == "changed" else kind)
                except StreamLost:
                    events.append("lost")
                self.assertEqual(events, case["events"])

    def test_each_sequence_is_decided_by_the_service_or_from_memory_as_its_vector_says(
        self,
    ) -> None:
        for case in cases("cache"):
            with self.subTest(case["title"]):
                loop = VirtualLoop()
                try:
                    with mock.patch("random.random", return_value=0.5):
                        loop.run_until_complete(Sequence(loop, case).run(self))
                finally:
                    loop.close()


def sorted_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: sorted_lists(each) for name, each in value.items()}
    return (
        sorted((sorted_lists(each) for each in value), key=str)
        if isinstance(value, list)
        else value
    )


class Sequence(httpx.AsyncBaseTransport):
    """Runs the steps of one vector against the module, and is the service that it asks."""

    def __init__(self, loop: VirtualLoop, case: dict[str, Any]) -> None:
        self.loop, self.case = loop, case
        self.clock = VirtualClock(loop)
        self.answers = dict(case["answers"])
        self.asked: list[str] = []
        self.answered_at_ms: Optional[int] = None
        self.requested: list[asyncio.Future[FakeStream]] = []
        self.streams: list[FakeStream] = []
        self.latest: dict[str, Caller] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            opening = self.loop.create_future()
            self.requested.append(opening)
            stream = await opening
            return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=stream)
        token = dict(httpx.QueryParams((await request.aread()).decode()))["token"]
        self.asked.append(token)
        members = self.answers[token]
        answer: dict[str, Any] = {"active": False}
        if members is not None:
            organizations = [
                {"id": each, "name": each, "role": "member", "warehouses": []}
                for each in members["organizations"]
            ]
            token_type = "api_key" if "api_key" in members else "Bearer"
            common = {"active": True, "iss": ISSUER, "token_type": token_type}
            answer = {**common, **members, "organizations": organizations}
        if self.answered_at_ms is not None:
            await asyncio.sleep((self.answered_at_ms - self.loop.now_ms) / 1_000)
        return answered(200, json.dumps(answer).encode())

    async def run(self, test: unittest.TestCase) -> None:
        gate = AsyncGatehouse(
            settings(timeout_seconds=60, remember_for_seconds=600), self.clock, transport=self
        )
        calls: list[asyncio.Task[None]] = []
        async with gate:
            for step in self.case["steps"]:
                # A step earlier than the one before belongs to the same moment.
                await asyncio.sleep(max(0, step["at_ms"] - self.loop.now_ms) / 1_000)
                await settle()
                await self.step(test, gate, step, calls)
                await settle()
                if "ended" in step:
                    ended = [token for token, each in self.latest.items() if each.ended.is_set()]
                    test.assertEqual(sorted(ended), step["ended"], step)
            await asyncio.gather(*calls)
            for stream in self.streams:
                stream.end()

    async def step(
        self, test: unittest.TestCase, gate: AsyncGatehouse, step: dict[str, Any], calls: Any
    ) -> None:
        if "answer" in step:
            self.answers.update(step["answer"])
        if "clock_set_to_ms" in step:
            self.clock.set_by_ms = step["clock_set_to_ms"] - self.loop.now_ms
        if step.get("stream") == "opens":
            opening = [each for each in self.requested if not each.done()]
            test.assertEqual(len(opening), 1, "exactly one stream is asked for")
            self.streams.append(FakeStream(step.get("first_heartbeat_ms", 0)))
            opening[0].set_result(self.streams[-1])
        elif step.get("stream") == "old ends":
            self.streams[-2].end()
        elif "stream" in step:
            self.streams[-1].end()
        if step.get("heartbeats") == "stop":
            self.streams[-1].beats.cancel()
        if "line" in step:
            is_old = step.get("on") == "old"
            self.streams[-2 if is_old else -1].lines.put_nowait(step["line"])
        if "call" in step:
            self.answered_at_ms = step.get("answered_at_ms")
            calls.append(self.loop.create_task(self.call(test, gate, step)))

    async def call(
        self, test: unittest.TestCase, gate: AsyncGatehouse, step: dict[str, Any]
    ) -> None:
        before = len(self.asked)
        try:
            self.latest[step["call"]] = await gate.introspect(step["call"])
            test.assertFalse(step.get("refused"), step)
        except Refusal as raised:
            test.assertEqual((raised.status, step.get("refused")), (401, True), step)
        decided_by = "service" if len(self.asked) > before else "memory"
        test.assertEqual(decided_by, step["decided_by"], step)
