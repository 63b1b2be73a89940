"""Introspections over real sockets, and from threads."""

import asyncio
import multiprocessing
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import active, settings

from gatehouse import AsyncGatehouse, Gatehouse, Settings, Unavailable


class RealService:
    """A service on a real socket, in a thread of its own."""

    def __init__(self) -> None:
        self.requests = 0
        self.connections = 0
        self.closes_after_answer = False
        self.closes_before_answer = False
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
        options = {"timeout_seconds": 30, **options}
        return settings(introspection_endpoint=self.endpoint, change_stream=False, **options)


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

                    def reason(token: str) -> str:
                        with self.assertRaises(Unavailable) as raised:
                            gate.introspect(token)
                        return raised.exception.reason

                    self.assertEqual(set(threads.map(reason, "abcdefgh")), {"timed_out"})
                deadline = time.monotonic() + 20
                while time.monotonic() < deadline:
                    try:
                        self.assertEqual(gate.introspect("later").subject, "acc_a")
                        return
                    except Unavailable:
                        pass
                self.fail("introspections did not recover")

    def test_a_second_event_loop_is_refused_with_the_remedy(self) -> None:
        with RealService() as service:
            gate = AsyncGatehouse(service.settings())
            asyncio.run(gate.introspect("a"))
            with self.assertRaisesRegex(RuntimeError, "use Gatehouse"):
                asyncio.run(gate.introspect("a"))
