"""The rules that the vectors of docs/wire do not cover: requests, connections, signals, threads."""

import asyncio
import hashlib
import traceback
import unittest
from typing import Any, Optional

import httpx
from harness import (
    ORGANIZATION,
    Service,
    VirtualClock,
    active,
    in_virtual_time,
    settings,
    settle,
)

from gatehouse import (
    AsyncGatehouse,
    Unavailable,
)
from gatehouse.connection import MAX_ANSWER_BYTES


class Calls(unittest.TestCase):
    def clock(self, gate: AsyncGatehouse) -> VirtualClock:
        assert isinstance(gate._clock, VirtualClock)
        return gate._clock

    def test_parallel_calls_with_one_token_share_the_request_after_the_one_in_progress(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            service.delay_seconds = 0.1
            first = asyncio.ensure_future(gate.introspect("a"))
            await asyncio.sleep(0.05)
            service.body = active(username="later")
            later = await asyncio.gather(*(gate.introspect("a") for _ in range(100)))
            self.assertEqual(service.asked, ["a", "a"])
            self.assertIsNone((await first).username)
            self.assertEqual({caller.username for caller in later}, {"later"})

        in_virtual_time(test, live=False)

    def test_a_cancelled_call_does_not_cancel_the_request_that_others_share(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            service.delay_seconds = 0.1
            calls = [asyncio.ensure_future(gate.introspect("a")) for _ in range(3)]
            await asyncio.sleep(0.05)
            calls[1].cancel()
            self.assertEqual((await calls[2]).subject, "acc_a")

        in_virtual_time(test, live=False)

    def test_an_answer_is_used_for_at_most_sixty_seconds_by_default(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            for wait_seconds, count in ((0, 1), (59.9, 1), (0.1, 2)):
                await asyncio.sleep(wait_seconds)
                await gate.introspect("a")
                self.assertEqual(len(service.asked), count)

        in_virtual_time(test)

    def test_a_full_cache_forgets_the_oldest_answer_and_fires_its_signal(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            callers = [await gate.introspect(token) for token in ("a", "b", "c")]
            self.assertEqual([each.ended.is_set() for each in callers], [True, False, False])
            await gate.introspect("c")
            await gate.introspect("a")
            self.assertEqual(service.asked, ["a", "b", "c", "a"])
            # An answer that was requested again is a new one.
            await asyncio.sleep(61)
            await gate.introspect("c")
            latest = await gate.introspect("d")
            self.assertEqual([callers[2].ended.is_set(), latest.ended.is_set()], [False, False])

        in_virtual_time(test, most_remembered=2)

    def test_a_later_answer_that_differs_fires_the_signal_and_an_equal_one_keeps_it(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            first = await gate.introspect("a")
            await asyncio.sleep(61)
            self.assertIs((await gate.introspect("a")).ended, first.ended)
            self.assertFalse(first.ended.is_set())
            service.body = active(username="new")
            await asyncio.sleep(61)
            self.assertFalse((await gate.introspect("a")).ended.is_set())
            self.assertTrue(first.ended.is_set())

        in_virtual_time(test)

    def test_the_signal_of_an_answer_soon_after_a_change_fires_five_seconds_after_the_change(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(2)
            caller = await gate.introspect("a")
            await asyncio.sleep(2.9)
            self.assertFalse(caller.ended.is_set())
            await asyncio.wait_for(caller.ended.wait_async(), 0.2)

        in_virtual_time(test)

    def test_an_answer_that_is_not_remembered_ends_with_the_next_change_or_different_answer(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            assert service.stream
            await asyncio.sleep(1)
            first = await gate.introspect("a")
            self.assertIs((await gate.introspect("a")).ended, first.ended)
            service.stream.lines.put_nowait("data: acc_a")
            await settle()
            self.assertTrue(first.ended.is_set())
            second = await gate.introspect("a")
            service.body = active(username="new")
            self.assertFalse((await gate.introspect("a")).ended.is_set())
            self.assertTrue(second.ended.is_set())
            self.assertEqual(len(service.asked), 4)

        in_virtual_time(test)

    def test_an_answer_is_not_used_after_exp_if_the_clock_was_set_forward(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            service.body = active(exp=30)
            for set_by_ms, count in ((0, 1), (23_999, 1), (24_000, 2)):
                self.clock(gate).set_by_ms = set_by_ms
                await gate.introspect("a")
                self.assertEqual(len(service.asked), count)

        in_virtual_time(test)

    def test_no_answer_is_used_after_a_silence_in_which_the_event_loop_was_stalled(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            await gate.introspect("a")
            key = hashlib.sha256(b"a").digest()
            self.assertIsNotNone(gate.remembered(key))
            self.clock(gate).loop.now_ms += 900
            self.assertIsNone(gate.remembered(key))

        in_virtual_time(test)

    def test_a_silent_stream_fires_the_signals_without_a_call_and_another_stream_is_opened(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            assert service.stream
            await asyncio.sleep(6)
            caller = await gate.introspect("a")
            service.stream.beats.cancel()
            await asyncio.sleep(0.91)
            self.assertTrue(caller.ended.is_set())
            await asyncio.sleep(1.01)
            self.assertEqual(len(service.streams_asked_ms), 2)

        in_virtual_time(test)

    def test_an_answer_with_another_content_type_is_no_change_stream(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            await gate.introspect("a")
            await gate.introspect("a")
            self.assertEqual(len(service.asked), 2)

        in_virtual_time(test, stream_type="text/html")

    def test_the_signal_fires_at_exp_also_if_the_answer_was_not_remembered(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            for exp in (2, 8):
                await asyncio.sleep(exp - 1 - gate._clock.unix_ms() / 1_000)
                service.body = active(exp=exp)
                caller = await gate.introspect(f"until {exp}")
                self.assertFalse(caller.ended.is_set())
                await asyncio.sleep(1.01)
                self.assertTrue(caller.ended.is_set())

        in_virtual_time(test)

    def test_a_callback_that_was_withdrawn_is_not_called_and_one_that_fails_harms_no_other(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(6)
            called: list[str] = []
            ended = (await gate.introspect("a")).ended
            withdraw = ended.on_end(lambda: called.append("withdrawn"))
            ended.on_end(lambda: called.remove("absent"))
            ended.on_end(lambda: called.append("kept"))
            withdraw()
            await gate.aclose()
            ended.on_end(lambda: called.append("late"))
            self.assertEqual(called, ["kept", "late"])

        in_virtual_time(test)

    def test_refused_streams_are_opened_again_after_growing_times_and_after_retry_after(
        self,
    ) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            await asyncio.sleep(20)
            asked_ms = service.streams_asked_ms
            gaps_ms = [later - earlier for earlier, later in zip(asked_ms, asked_ms[1:])]
            for gap_ms, least_ms in zip(gaps_ms, (250, 500, 1_000, 2_000, 2_000)):
                self.assertTrue(least_ms <= gap_ms <= least_ms * 1.5 + 1, gaps_ms)
            service.stream_refusal = {"Retry-After": "60"}
            await asyncio.sleep(200)
            last_gap_ms = asked_ms[-1] - asked_ms[-2]
            self.assertTrue(60_000 <= last_gap_ms <= 90_001, last_gap_ms)

        in_virtual_time(test, stream_refusal={})

    def test_an_answer_that_is_too_long_is_a_failure(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            service.body = active(padding="x" * MAX_ANSWER_BYTES)
            with self.assertRaises(Unavailable) as raised:
                await gate.introspect("a")
            self.assertEqual(raised.exception.reason, "malformed_answer")

        in_virtual_time(test, live=False)

    def test_roles_rights_and_elements_of_any_type_are_no_error_of_the_api(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            odds: list[Any] = [[], {}, 7, None, True, "x"]
            for odd in odds:
                for members in (
                    {"organizations": [{**ORGANIZATION, "role": odd}]},
                    {"organizations": [{**ORGANIZATION, "warehouses": odd}]},
                    {"organizations": odd},
                    {"organizations": [odd]},
                    {"exp": odd},
                    {"iss": odd},
                    {"sub": odd},
                    {"token_type": odd},
                ):
                    service.body = active(**members)
                    try:
                        await gate.introspect("a")
                    except Unavailable as refusal:
                        self.assertEqual(refusal.reason, "malformed_answer")

        in_virtual_time(test, live=False)

    def test_an_error_never_contains_the_token(self) -> None:
        class Broken(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                raise httpx.ReadError("broken", request=request)

        gate = AsyncGatehouse(settings(live=False), transport=Broken())
        with self.assertRaises(Unavailable) as raised:
            asyncio.run(gate.introspect("gate_at_secret"))
        error: Optional[BaseException] = raised.exception
        self.assertNotIn("secret", "".join(traceback.format_exception(None, error, None)))
        while error is not None:
            self.assertNotIsInstance(error, httpx.RequestError)
            error = error.__context__
