"""Refusals, requests of both kinds of servers, and settings."""

import json
import unittest
from typing import Any

from harness import ISSUER, Service, in_virtual_time

from gatehouse import (
    AsyncGatehouse,
    Refusal,
    Request,
    Settings,
    Unavailable,
    from_asgi,
    from_wsgi,
)
from gatehouse.request import read_token


class Rules(unittest.TestCase):
    def test_a_value_with_a_wrong_checksum_is_refused_and_another_form_is_not(self) -> None:
        right = "gate_key_0123456789012345678901234567890123456789abcAUwE0T"
        for token in (right, right[:-6], "gate_at_short"):
            self.assertEqual(read_token(Request("", "", (f"Bearer {token}",))), token)
        for token in (f"{right[:-1]}U", f"gate_at_{'a' * 95}", f"gate_mt_{'a' * 49}"):
            with self.assertRaises(Refusal) as raised:
                read_token(Request("", "", (f"Bearer {token}",)))
            self.assertEqual(raised.exception.error, "invalid_token")

    def test_two_authorization_headers_are_refused_in_asgi_and_in_wsgi(self) -> None:
        pair = (b"authorization", b"Bearer a")
        scope = {"headers": [pair, pair], "query_string": b""}
        environ = {"HTTP_AUTHORIZATION": "Bearer a,Bearer a", "QUERY_STRING": ""}
        for request in (from_asgi(scope), from_wsgi(environ)):
            with self.assertRaises(Refusal) as raised:
                read_token(request)
            self.assertEqual(raised.exception.status, 400)
        self.assertEqual(read_token(from_asgi({"headers": [pair]})), "a")
        self.assertEqual(read_token(from_wsgi({"HTTP_AUTHORIZATION": "Bearer a"})), "a")

    def test_only_the_beginning_of_a_long_header_is_read(self) -> None:
        with self.assertRaises(Refusal) as raised:
            read_token(Request("", "", (f"Bearer {'a' * 1_100},",)))
        self.assertEqual(raised.exception.status, 401)

    def test_each_refusal_is_json_that_is_not_cached_and_whose_headers_web_pages_may_read(
        self,
    ) -> None:
        for refused, code in (
            (Refusal(400, "a", "invalid_request"), "BAD_REQUEST"),
            (Refusal(401, "a"), "UNAUTHENTICATED"),
            (Refusal(403, "a", "insufficient_scope"), "FORBIDDEN"),
            (Unavailable("failed"), "SERVICE_UNAVAILABLE"),
        ):
            error = {"message": str(refused), "extensions": {"code": code}}
            self.assertEqual(json.loads(refused.body), {"errors": [error]})
            self.assertEqual(refused.headers["Cache-Control"], "no-store")
            exposed = refused.headers["Access-Control-Expose-Headers"]
            self.assertEqual(exposed, "WWW-Authenticate, Retry-After")
            self.assertEqual("Retry-After" in refused.headers, refused.status == 503)

    def test_each_challenge_names_the_metadata_of_the_api(self) -> None:
        async def test(service: Service, gate: AsyncGatehouse) -> None:
            url = "https://api.example.com/.well-known/oauth-protected-resource"
            caller = await gate.introspect("a")
            gate.require(caller, "wh_a", "read")
            for warehouse, right in (("wh_a", "write"), ("wh_b", "read")):
                with self.assertRaises(Refusal) as raised:
                    gate.require(caller, warehouse, right)
                self.assertEqual(raised.exception.status, 403)
                challenge = raised.exception.headers["WWW-Authenticate"]
                self.assertRegex(challenge, f'^Bearer error="insufficient_scope", .*="{url}"$')
            with self.assertRaises(Refusal) as raised:
                await gate.authenticate(Request("", "", ()))
            challenge = raised.exception.headers["WWW-Authenticate"]
            self.assertEqual(challenge, f'Bearer resource_metadata="{url}"')

        in_virtual_time(test, live=False, resource="https://api.example.com/")

    def test_a_setting_that_cannot_work_is_refused_with_its_remedy(self) -> None:
        right: dict[str, Any] = {
            "issuer": ISSUER,
            "client_id": "gate_ci_a",
            "client_secret": "gate_cs_a",
        }
        for wrong, name in (
            ({"issuer": f"{ISSUER}/"}, "issuer"),
            ({"issuer": "auth.example.com"}, "issuer"),
            ({"issuer": "http://auth.example.com"}, "which is http.*allow_insecure_issuer"),
            ({"issuer": "http://10.0.0.7:3000"}, "which is http"),
            ({"issuer": "http://localhost.example"}, "which is http"),
            ({"client_secret": ""}, "client_secret"),
            ({"introspection_endpoint": "http://10.0.0.7:3000/x?y"}, "introspection_endpoint"),
            ({"resource": "api.example.com"}, "resource"),
            ({"remember_for_seconds": 601}, "remember_for_seconds"),
        ):
            with self.assertRaisesRegex(ValueError, name):
                Settings(**{**right, **wrong})
        for issuer in ("http://localhost:3000", "http://127.9.9.9", "http://[::1]:3000"):
            Settings(**{**right, "issuer": issuer})
        Settings(**{**right, "issuer": "http://auth.example.com"}, allow_insecure_issuer=True)
        api = Settings(**right, resource="https://api.example.com/graphql?v=2")
        address = "https://api.example.com/.well-known/oauth-protected-resource/graphql?v=2"
        self.assertEqual(api.resource_metadata, address)
        self.assertNotIn("gate_cs_a", repr(Settings(**right)))
