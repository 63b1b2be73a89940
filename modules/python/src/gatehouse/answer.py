"""Reads an introspection answer into a caller."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Optional, Union

from .ended import Ended

ROLES = frozenset({"owner", "admin", "member", "viewer"})
RIGHTS = frozenset({"read", "write", "manage"})
# The end of the year 9999, in seconds: there are no dates after it.
MAX_TIME = 253_402_300_799


class MalformedAnswer(Exception):
    """The answer is a failure of the service, and says nothing about the token."""


@dataclass(frozen=True)
class Warehouse:
    """A warehouse in which the caller has rights."""

    id: str
    name: str
    rights: frozenset[str]
    external_id: Optional[str] = None


@dataclass(frozen=True)
class Organization:
    """An organization that the caller reaches. The role is for display: decide by the rights."""

    id: str
    name: str
    role: str
    warehouses: tuple[Warehouse, ...]
    external_id: Optional[str] = None


@dataclass(frozen=True)
class Caller:
    """The authenticated caller of the API.

    `method` is `authorization_code`, `api_key` or `client_credentials`. A machine client has no
    `account_id`, an API key no `client_id`. `expires_at` is in seconds since 1970. `ended` fires
    when the access may have ended, for work that outlives its request.
    """

    method: str
    subject: str
    organizations: tuple[Organization, ...]
    account_id: Optional[str] = None
    client_id: Optional[str] = None
    authorization: Optional[str] = None
    api_key: Optional[str] = None
    username: Optional[str] = None
    external_id: Optional[str] = None
    expires_at: Union[int, float, None] = None
    # The ids by which the change stream may name this caller.
    names: tuple[str, ...] = field(default=(), repr=False)
    ended: Ended = field(default_factory=Ended, repr=False, compare=False)

    @cached_property
    def rights(self) -> dict[str, frozenset[str]]:
        """The rights by the id of the warehouse."""
        return {
            warehouse.id: warehouse.rights
            for organization in self.organizations
            for warehouse in organization.warehouses
        }

    def can(self, warehouse_id: str, right: str) -> bool:
        """Returns whether the caller has `read`, `write` or `manage` in the warehouse."""
        return right in self.rights.get(warehouse_id, ())


def read_answer(body: bytes, issuer: str) -> Optional[Caller]:
    """Returns the caller, or None for an inactive token. Raises MalformedAnswer."""
    try:
        answer = json.loads(body.decode(), parse_constant=_no_json)
    except (ValueError, RecursionError):
        raise MalformedAnswer from None
    if not isinstance(answer, dict) or not isinstance(answer.get("active"), bool):
        raise MalformedAnswer
    if not answer["active"]:
        return None
    subject = _text(answer, "sub")
    token_type = _text(answer, "token_type").lower()
    expires_at = _time(answer, "exp")
    _time(answer, "iat")
    if answer.get("iss") != issuer or token_type not in ("bearer", "api_key"):
        raise MalformedAnswer
    client_id = _text(answer, "client_id") if token_type == "bearer" else None
    method = "api_key" if client_id is None else "authorization_code"
    if subject == client_id:
        method = "client_credentials"
    # Sorted: the order has no meaning, and must not make two answers differ.
    organizations = tuple(sorted(_organizations(answer), key=_BY_ID))
    authorization, api_key = _optional(answer, "authorization"), _optional(answer, "api_key")
    names = {subject, client_id, authorization, api_key, *(each.id for each in organizations)}
    # Organizations that are left out, and that changes can concern.
    names.update(_list({"withheld": [], **answer}, "withheld", str))
    return Caller(
        method=method,
        subject=subject,
        organizations=organizations,
        account_id=None if method == "client_credentials" else subject,
        client_id=client_id,
        authorization=authorization,
        api_key=api_key,
        username=_optional(answer, "username"),
        external_id=_optional(answer, "external_id"),
        expires_at=expires_at,
        names=tuple(sorted(filter(None, names))),
    )


def _organizations(answer: dict[str, Any]) -> Iterator[Organization]:
    for element in _list(answer, "organizations", dict):
        role = element.get("role")
        if not isinstance(role, str) or role not in ROLES:
            continue
        warehouses = map(_warehouse, _list(element, "warehouses", dict))
        yield Organization(
            _text(element, "id"),
            _text(element, "name"),
            role,
            tuple(sorted(warehouses, key=_BY_ID)),
            _optional(element, "external_id"),
        )


def _warehouse(element: dict[str, Any]) -> Warehouse:
    rights = _list(element, "rights", object)
    return Warehouse(
        _text(element, "id"),
        _text(element, "name"),
        frozenset(right for right in rights if isinstance(right, str)) & RIGHTS,
        _optional(element, "external_id"),
    )


_BY_ID = attrgetter("id")


def _list(parent: dict[str, Any], name: str, kind: type) -> list[Any]:
    elements = parent.get(name)
    if not isinstance(elements, list) or not all(isinstance(each, kind) for each in elements):
        raise MalformedAnswer
    return elements


def _text(parent: dict[str, Any], name: str) -> str:
    value = parent.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedAnswer
    return value


def _optional(parent: dict[str, Any], name: str) -> Optional[str]:
    value = parent.get(name, "")
    if not isinstance(value, str):
        raise MalformedAnswer
    return value if name in parent else None


def _time(parent: dict[str, Any], name: str) -> Union[int, float, None]:
    """A wrong `exp` must not be read as an absent one: an access without `exp` never expires."""
    value = parent.get(name, 0)
    # A bool is an int, and no comparison with NaN is true.
    if type(value) not in (int, float) or not 0 <= value <= MAX_TIME:
        raise MalformedAnswer
    return value if name in parent else None


def _no_json(_: str) -> None:
    """Refuses NaN and Infinity, which Python would read."""
    raise MalformedAnswer
