"""The receiver: a form in, an HTTP status out, everything between in one database transaction.

A message is acknowledged only when it stands in the database; what is refused stands there as a
case. Accounts that merchants.toml does not declare are not told apart from other wrong addresses,
and leave no trace.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from recon.config.settings import Settings
from recon.files.formats.form_pairs import form_pairs
from recon.gateway.account import GatewayAccount, gateway_account
from recon.gateway_client import UnsignedError
from recon.model.errors import SourceUnreadableError, StoreError
from recon.model.words import Clock
from recon.notifications.message import MessageRefusal, VerifiedMessage, read_message
from recon.store.database.engine import Store
from recon.store.nights.notification_rows import Kept, Told, keep, keep_case

ACKNOWLEDGED = 200
STATUS_OF: Mapping[str, int] = {
    "malformed": 400,
    "forged": 401,
    "other account": 403,
    "contradiction": 409,
}
"""What the sender of a refused message gets."""

NOWHERE = 404
UNAVAILABLE = 503
STORE_TRIES_MAX = 5
"""Two equal messages at the same instant meet on PostgreSQL; the second then counts up."""

CONTRADICTION = "another message about the same thing in the same state says something else"
"""Both are kept, and people see that they differ; only a flood of such messages is refused."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What the sender gets."""

    status: int
    text: str


class Receiver:
    """Receives for every declared account; lives as long as the server."""

    def __init__(self, settings: Settings, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[tuple[str, str], GatewayAccount] = {}
        for key in settings.accounts:
            merchant_id, _, account_id = key.partition("/")
            declared = gateway_account(settings, merchant_id=merchant_id, account_id=account_id)
            self._accounts[merchant_id, account_id] = declared

    def receive(self, body: bytes, *, merchant_id: str, account_id: str) -> Acknowledgement:
        """Judge and keep one message; blocks for as long as the database takes."""
        declared = self._accounts.get((merchant_id, account_id))
        if declared is None:
            return Acknowledgement(NOWHERE, "there is no such address")
        try:
            read = _read(body, account=declared)
        except UnsignedError:
            # Nobody holds its signature against ours: not acknowledged, so that it comes again.
            return Acknowledgement(UNAVAILABLE, "it could not be checked; send it again later")
        for _ in range(STORE_TRIES_MAX):
            try:
                return self._keep(read, body=body, account=declared)
            except StoreError:
                continue
        # Not acknowledged: the gateway repeats it.
        return Acknowledgement(UNAVAILABLE, "it could not be kept; send it again later")

    def _keep(
        self, read: VerifiedMessage | MessageRefusal, *, body: bytes, account: GatewayAccount
    ) -> Acknowledgement:
        ids = {
            "merchant_id": account.credentials.merchant_id,
            "account_id": account.credentials.account_id,
        }
        with self._store.writing() as connection:
            kept = None
            if isinstance(read, VerifiedMessage):
                kept = keep(connection, _told(read), at=self._clock(), **ids)
                if kept is Kept.ALONE:
                    return Acknowledgement(ACKNOWLEDGED, "success")
                read = MessageRefusal("contradiction", CONTRADICTION, read.fields)
            case = {
                "problem": read.problem,
                "reason": read.reason,
                "body_sha256": hashlib.sha256(body).hexdigest(),
                "fields": read.fields,
            }
            keep_case(connection, case, at=self._clock(), **ids)
        if kept is Kept.BESIDE_OTHERS:
            return Acknowledgement(ACKNOWLEDGED, "success")
        return Acknowledgement(STATUS_OF[read.problem], f"{read.problem}: {read.reason}")


def _read(body: bytes, *, account: GatewayAccount) -> VerifiedMessage | MessageRefusal:
    try:
        pairs = form_pairs(body)
    except SourceUnreadableError as error:
        return MessageRefusal("malformed", str(error), {})
    return read_message(pairs, credentials=account.credentials, interface=account.interface)


def _told(message: VerifiedMessage) -> Told:
    return Told(
        kind=message.kind,
        identity_sha256=message.identity_sha256,
        sha256=message.sha256,
        order_no=message.fields.get("order_no", ""),
        transaction_id=message.fields.get("transaction_id", ""),
        currency=message.currency,
        amount=message.amount,
        status=message.status,
        fields=message.fields,
    )
