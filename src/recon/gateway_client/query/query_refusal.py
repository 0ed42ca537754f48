"""When the gateway refuses a query: repeat it, halve it, or stop and tell a person what to do."""

from datetime import datetime
from typing import Any, NoReturn

from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.query.pace import AccountPace
from recon.gateway_client.query.query_bounds import retry_after_seconds
from recon.gateway_client.query.query_reading import GroupAnswer
from recon.gateway_client.wire.wire_errors import (
    AddressNotRegisteredError,
    MerchantRefusedError,
    SignatureRefusedError,
)

OK_STATUS = 200
SLOW_DOWN_STATUSES = frozenset({429, 503})
REPEATED_STATUSES = frozenset({408, 425, 429}) | frozenset(range(500, 600))
HALVED_STATUSES = frozenset({400, 413, 414, 422})
NO_ACCESS_STATUSES = frozenset({401, 403})


class AgainError(Exception):
    """This call may be repeated."""


def asked_to_wait(raw: RawReply, *, now: datetime) -> float:
    """The seconds for which the gateway wants no further call; 0 when it says nothing of it."""
    if raw.status not in REPEATED_STATUSES:
        return 0.0
    return retry_after_seconds(raw.headers.get("retry-after", ""), now=now)


def note_pace(raw: RawReply, *, pace: AccountPace, turn: int, now: datetime) -> None:
    """Let the account be called slower, or not at all for a while, as a reply asks for.

    Args:
        raw: The reply.
        pace: Of the account.
        turn: `pace.slowed` when the call began.
        now: The time, for a Retry-After that is a date.
    """
    if raw.status in SLOW_DOWN_STATUSES:
        pace.slow_down(turn)
    pace.hold(asked_to_wait(raw, now=now))


def judged_by_status(raw: RawReply, *, now: datetime) -> GroupAnswer[Any] | None:
    """What the HTTP status alone decides; None when the body must be read.

    Raises:
        AgainError: the call may be repeated.
    """
    reason = f"the gateway answered HTTP {raw.status}"
    if raw.status in REPEATED_STATUSES:
        wait_seconds = asked_to_wait(raw, now=now)
        if wait_seconds:
            reason = f"{reason} and asked to wait {wait_seconds:.0f} s"
        raise AgainError(reason)
    if raw.status in NO_ACCESS_STATUSES:
        return GroupAnswer("address", reason)
    if raw.status in HALVED_STATUSES:
        return GroupAnswer("parameters", reason)
    return None if raw.status == OK_STATUS else GroupAnswer("system", reason)


def stop_for(answer: GroupAnswer[Any]) -> NoReturn:
    """Raise what a person must cure before any query can succeed."""
    if answer.refusal == "address":
        msg = (
            f"the gateway refuses queries from this address ({answer.reason}):"
            " register the outgoing IP address of this machine with the gateway"
        )
        raise AddressNotRegisteredError(msg)
    if answer.refusal == "signature":
        msg = (
            f"the gateway refused our signature ({answer.reason}):"
            " check the sign key and the templates of signature.toml"
        )
        raise SignatureRefusedError(msg)
    msg = f"the gateway does not know this merchant or account ({answer.reason}): check both ids"
    raise MerchantRefusedError(msg)
