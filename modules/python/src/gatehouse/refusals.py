"""What the API answers instead of a result (RFC 6750 section 3)."""

import json
from typing import Optional

CODES = {400: "BAD_REQUEST", 401: "UNAUTHENTICATED", 403: "FORBIDDEN", 503: "SERVICE_UNAVAILABLE"}


class Refusal(Exception):
    """A refused call: answer it with `status`, `headers` and `body`.

    `resource_metadata` is the address of the API's own metadata (RFC 9728), added to the challenge.
    """

    def __init__(self, status: int, message: str, error: Optional[str] = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.resource_metadata: Optional[str] = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer, a new dictionary each time."""
        parameters = []
        if self.error:
            parameters += [f'error="{self.error}"', f'error_description="{self}"']
        if self.resource_metadata:
            parameters.append(f'resource_metadata="{self.resource_metadata}"')
        return {
            "WWW-Authenticate": f"Bearer {', '.join(parameters)}".rstrip(),
            **_HEADERS,
        }

    @property
    def extensions(self) -> dict[str, str]:
        """The code of the refusal, which graphql-core adds to the error of a resolver."""
        return {"code": CODES[self.status]}

    @property
    def body(self) -> bytes:
        """JSON in the shape of a GraphQL response."""
        error = {"message": str(self), "extensions": self.extensions}
        return json.dumps({"errors": [error]}).encode()


class Unavailable(Refusal):
    """The token could not be checked (503): the caller retries the same call later.

    `reason` is for the operator of the API, never for the caller.
    """

    def __init__(self, reason: str, retry_after_seconds: int = 2) -> None:
        super().__init__(503, "the access token cannot be checked at the moment: try again")
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer, without a challenge: the token may be valid."""
        return {"Retry-After": str(self.retry_after_seconds), **_HEADERS}


_HEADERS = {
    "Cache-Control": "no-store",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After",
    "Content-Type": "application/json",
}
