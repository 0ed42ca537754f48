"""The gateway: recon's own sandbox as a process, told what it holds through its public doors.

Payments are made by the API's client, then captured, refunded and cancelled through the portal's
door, each at its own time. The sandbox's clock only goes forward, so everything lies after 22:00
UTC of 2026-11-20, where it begins.
"""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from pydantic import SecretStr

from recon.gateway_client import CardPayment, Connection, Gateway

PROGRAM = (sys.executable, "-c", "import sys; from recon.cli import main; sys.exit(main())")
MERCHANT, ACCOUNT = "M1", "A1"
PROFILES = ("base", "extended")
CARDS = {
    "failed": "4000000000000002",
    "in_review": "4000000000009235",
    "pending": "4000000000003220",
}
CARD = "4111111111111111"
CHARGEBACK_CODE = "7000"
AFTER_AUTHORISATION = timedelta(hours=1)
ENDS_WITHIN_SECONDS = 10
WIRE_DECIMALS_MIN = -2
"""As an exponent: yen, too, go out with two decimals."""


class Moment(NamedTuple):
    """What is done to one payment, and when."""

    at: datetime
    number: int
    row: dict[str, str]
    act: str
    amount: str = ""


@dataclass
class PlayedGateway:
    """One sandbox process; scenarios take turns, and each begins with an empty one."""

    profile: str
    payments: dict[str, list[str]] = field(default_factory=dict)
    """Order -> its transactions, in the order in which they were made."""
    base_url: str = "http://127.0.0.1:9"
    """As RECON_GATEWAY_BASE_URL has it; nobody answers there before it was started."""
    _process: "subprocess.Popen[str] | None" = None
    _waiting: list[Moment] = field(default_factory=list)
    _standing_rules: list[dict[str, Any]] = field(default_factory=list)
    _seen_effects: int = 0

    def start(self) -> None:
        """A new process of `recon sandbox` on a free port of 127.0.0.1."""
        words = [*PROGRAM, "sandbox", "--orders", "0", "--merchant", MERCHANT, "--account", ACCOUNT]
        self._process = subprocess.Popen(
            [*words, "--profile", self.profile],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End the process, if one was started."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=ENDS_WITHIN_SECONDS)

    def begin(self, holds: Path | None) -> None:
        """Forget everything; remember what is to happen from now on."""
        if self._process is None:
            self.start()
        self.post("reset", {})
        self.payments, self._waiting, self._standing_rules, self._seen_effects = {}, [], [], 0
        if holds is not None:
            with holds.open(newline="") as file:
                for number, row in enumerate(csv.DictReader(file)):
                    self._waiting += _moments(row, number=number)
            self._waiting.sort(key=lambda moment: (moment.at, moment.number))

    def advance(self, now: datetime) -> None:
        """Let time pass: what was to happen by then happens at its own time."""
        while self._waiting and self._waiting[0].at <= now:
            moment = self._waiting.pop(0)
            self._move_clock(moment.at)
            self._do(moment)
        self._move_clock(now)

    def plan(self, rules: list[dict[str, Any]]) -> None:
        """What goes wrong on the wire from now on."""
        self.post("faults", {"rules": [*self._standing_rules, *rules]})

    def played(self) -> int:
        """How often the newest rule of the plan played."""
        return int(self.get("faults").json()["rules"][-1].get("played", 0))

    def by_hand(self, stated: str) -> None:
        """`refund A-1 5.00`: somebody acts in the gateway's own pages."""
        action, key, *amount = stated.split()
        self.post("portal", {"action": action, "key": key} | _amount("".join(amount)))

    def new_effects(self) -> list[dict[str, str]]:
        """What truly happened by the API since this was last asked."""
        lines = self.get("effects").text.splitlines()
        new = [json.loads(line) for line in lines[self._seen_effects :]]
        self._seen_effects = len(lines)
        return [row for row in new if row["origin"] != "portal"]

    def invariants(self) -> dict[str, int]:
        """What must be 0: effects twice, more refunded than captured, and the like."""
        return dict(self.get("invariants").json())

    def get(self, path: str) -> httpx.Response:
        """What one of the sandbox's own pages says."""
        return httpx.get(f"{self.base_url}/_sandbox/{path}").raise_for_status()

    def post(self, path: str, document: dict[str, Any]) -> None:
        """Tell the sandbox what it is to do."""
        reply = httpx.post(f"{self.base_url}/_sandbox/{path}", json=document)
        if not reply.is_success:
            raise RuntimeError(f"the sandbox refuses {path} {document}: {reply.text}")

    def _move_clock(self, to: datetime) -> None:
        now = datetime.fromisoformat(self.get("clock").json()["now"])
        if (seconds := int((to - now).total_seconds())) > 0:
            self.post("clock", {"seconds": seconds})

    def _do(self, moment: Moment) -> None:
        order = moment.row["order_no"]
        if moment.act == "authorise":
            self.payments.setdefault(order, []).append(self._authorise(moment.row))
            if moment.row["state"] == "chargeback":
                self._standing_rules.append(_shown_as(CHARGEBACK_CODE, order=order))
        else:
            document = {"action": moment.act, "key": self.payments[order][-1]}
            self.post("portal", document | _amount(moment.amount))
        self.new_effects()  # they are no effects of the next night

    def _authorise(self, row: dict[str, str]) -> str:
        connection = Connection(
            base_url=self.base_url,
            merchant_id=MERCHANT,
            account_id=row.get("account_id") or ACCOUNT,
            sign_key=SecretStr("sandbox"),
        )
        payment = CardPayment(
            order_no=row["order_no"],
            currency=row["currency"],
            amount=_on_wire(row["amount"]),
            card=SecretStr(CARDS.get(row["state"], CARD)),
            expiration_month=SecretStr("12"),
            expiration_year=SecretStr("2040"),
            security_code=SecretStr("123"),
            open3d="do3DS" if row["state"] == "pending" else "",
            first_name="A",
            last_name="Shopper",
            shopper_email="shopper@example.com",
        )
        with Gateway(connection) as gateway:
            reply = gateway.pay(payment)
        if reply.record is None:
            raise RuntimeError(f"the sandbox refuses the payment of {row['order_no']}: {reply}")
        return reply.record.transaction_id


def _on_wire(amount: str) -> Decimal:
    value = Decimal(amount)
    exponent = value.as_tuple().exponent
    short = isinstance(exponent, int) and exponent > WIRE_DECIMALS_MIN
    return value.quantize(Decimal("0.01")) if short else value


def _amount(text: str) -> dict[str, str]:
    return {"amount": text} if text else {}


def _shown_as(code: str, *, order: str) -> dict[str, Any]:
    """The sandbox has no door for disputes: its answers show the code, its own book does not."""
    return {"kind": "unknown_code", "operation": "retrievalTrans", "key": order, "code": code}


def _moments(row: dict[str, str], *, number: int) -> list[Moment]:
    """What happens to a payment until it is as its row states."""
    paid_at = datetime.fromisoformat(row["paid_at"]).astimezone(UTC)
    changed_at = paid_at + AFTER_AUTHORISATION
    if row.get("changed_at"):
        changed_at = datetime.fromisoformat(row["changed_at"]).astimezone(UTC)
    moments = [Moment(paid_at, number, row, "authorise")]
    state = row["state"]
    if state in {"paid", "partially_refunded", "refunded", "chargeback"}:
        moments.append(Moment(changed_at, number, row, "capture", row.get("captured") or ""))
    if state in {"partially_refunded", "refunded"}:
        moments.append(Moment(changed_at, number, row, "refund", row.get("refunded") or ""))
    if state == "cancelled":
        moments.append(Moment(changed_at, number, row, "cancel"))
    return moments
