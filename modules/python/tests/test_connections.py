"""Introspections over real sockets, and from threads."""

import asyncio
import gc
import logging
import multiprocessing
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional
from unittest import mock

from harness import active, settings

from gatehouse import AsyncGatehouse, Gatehouse, Settings, Unavailable, connection


class RealService:
    """A service on a real socket, in a thread of its own."""

    def __init__(self) -> None:
        self.requests = 0
        self.connections = 0
        self.closes_after_answer = False
        self.closes_before_answer = False
        # Sends one byte every 10 ms, for ever: of the headers, or of the body.
        self.drips: Optional[bytes] = None
        self.hosts: list[str] = []

    def __enter__(self) -> "RealService":
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        opening = asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.server = asyncio.run_coroutine_threadsafe(opening, self.loop).result()
        port = self.server.sockets[0].getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}/oauth/introspect"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.close(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def close(self) -> None:
        self.server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
                await reader.readexactly(int(headers.get("content-length", 0)))
                self.hosts.append(headers["host"])
                self.requests += 1
                if self.closes_before_answer:
                    break
                drips = self.drips
                while drips is not None:
                    writer.write(drips)
                    await writer.drain()
                    await asyncio.sleep(0.01)
                    drips = drips[-1:]
                body = active()
                length = f"Content-Length: {len(body)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode() + body)
                await writer.drain()
                if self.closes_after_answer:
                    # Close the connection only when the next request has arrived.
                    await reader.readuntil(b"\r\n\r\n")
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def settings(self, **options: Any) -> Settings:
        # The tests may run on a busy machine.
        options = {"timeout_seconds": 30, "live": False, **options}
        return settings(introspection_endpoint=self.endpoint, **options)


class Connections(unittest.TestCase):
    def test_a_request_on_a_reused_connection_that_was_closed_is_sent_again(self) -> None:
        with RealService() as service, Gatehouse(service.settings()) as gate:
            service.closes_after_answer = True
            for _ in range(3):
                self.assertEqual(gate.introspect("a").subject, "acc_a")
            self.assertEqual((service.requests, service.connections), (3, 3))

    def test_a_request_on_a_new_connection_that_was_closed_is_not_sent_again(self) -> None:
        with RealService() as service, Gatehouse(service.settings()) as gate:
            service.closes_before_answer = True
            with self.assertRaises(Unavailable) as raised:
                gate.introspect("a")
            self.assertEqual(raised.exception.reason, "unreachable")
            self.assertEqual(service.requests, 1)

    def test_an_internal_address_gets_the_host_of_the_issuer(self) -> None:
        with RealService() as service, Gatehouse(service.settings()) as gate:
            gate.introspect("a")
            self.assertEqual(service.hosts, ["auth.example.com"])

    def test_calls_in_many_threads_keep_to_the_limit_of_connections(self) -> None:
        with RealService() as service, Gatehouse(service.settings(max_connections=4)) as gate:
            with ThreadPoolExecutor(16) as threads:
                callers = list(threads.map(gate.introspect, (f"t{n}" for n in range(200))))
            self.assertEqual(len(callers), 200)
            self.assertLessEqual(service.connections, 4)

    def test_a_process_that_forked_has_connections_of_its_own(self) -> None:
        with RealService() as service, Gatehouse(service.settings()) as gate:
            gate.introspect("a")
            fork = multiprocessing.get_context("fork")
            answers = fork.SimpleQueue()
            child = fork.Process(target=lambda: answers.put(gate.introspect("b").subject))
            child.start()
            child.join(20)
            child.kill()  # Does nothing to a child that has ended.
            self.assertEqual(child.exitcode, 0)
            self.assertEqual(answers.get(), "acc_a")
            self.assertEqual(gate.introspect("c").subject, "acc_a")

    def test_a_service_that_does_not_answer_is_timed_out_and_keeps_no_place(self) -> None:
        with RealService() as service:
            options = {"timeout_seconds": 0.2, "max_connections": 2}
            with Gatehouse(service.settings(**options)) as gate:
                service.loop.call_soon_threadsafe(time.sleep, 1.5)
                with ThreadPoolExecutor(8) as threads:
                    reasons = set(threads.map(lambda each: self.reason(gate, each), "abcdefgh"))
                self.assertEqual(reasons, {"timed_out"})
                self.expect_recovery(gate)

    def reason(self, gate: Gatehouse, token: str) -> str:
        with self.assertRaises(Unavailable) as raised:
            gate.introspect(token)
        return raised.exception.reason

    def expect_recovery(self, gate: Gatehouse) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.assertEqual(gate.introspect("later").subject, "acc_a")
                return
            except Unavailable:
                pass
        self.fail("introspections did not recover")

    def test_an_answer_that_arrives_byte_by_byte_is_timed_out_and_keeps_no_place(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n"
        for drips in (head + b"X: x", head + b"\r\n "):
            with self.subTest(drips), RealService() as service:
                options = {"timeout_seconds": 0.2, "max_connections": 2}
                with Gatehouse(service.settings(**options)) as gate:
                    service.drips = drips
                    with ThreadPoolExecutor(4) as threads:
                        reasons = set(threads.map(lambda each: self.reason(gate, each), "abcd"))
                    self.assertEqual(reasons, {"timed_out"})
                    # The connections that drip go on.
                    service.drips = None
                    self.expect_recovery(gate)

    def test_a_stream_whose_headers_arrive_byte_by_byte_is_given_up(self) -> None:
        with RealService() as service, mock.patch.object(connection, "STREAM_OPENING_SECONDS", 0.1):
            service.drips = b"HTTP/1.1 200 OK\r\nX: x"
            with Gatehouse(service.settings(live=True)):
                deadline = time.monotonic() + 20
                while service.requests < 2 and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertGreater(service.requests, 1)

    def test_closing_during_introspections_ends_them_and_leaves_no_task(self) -> None:
        complaints: list[str] = []
        handler = logging.Handler()
        handler.addFilter(lambda record: complaints.append(record.getMessage()) is not None)
        logging.getLogger("asyncio").addHandler(handler)
        self.addCleanup(logging.getLogger("asyncio").removeHandler, handler)
        with RealService() as service, ThreadPoolExecutor(4) as threads:
            service.drips = b"HTTP/1.1 200 OK\r\nX: x"
            gate = Gatehouse(service.settings(timeout_seconds=0.3, max_connections=2))
            gate.start()
            asked = [threads.submit(self.reason, gate, each) for each in "aabc"]
            while service.requests < 2:
                time.sleep(0.01)
            gate.close()
            self.assertEqual({each.result() for each in asked}, {"timed_out"})
        gc.collect()
        self.assertEqual(complaints, [])

    def test_a_second_event_loop_is_refused_with_the_remedy(self) -> None:
        with RealService() as service:
            gate = AsyncGatehouse(service.settings())
            asyncio.run(gate.introspect("a"))
            with self.assertRaisesRegex(RuntimeError, "use Gatehouse"):
                asyncio.run(gate.introspect("a"))
