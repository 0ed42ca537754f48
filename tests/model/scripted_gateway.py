"""A gateway with its own truth at the sender's seam: it does as scripted, and forgets nothing.

Requests and replies are the client's real bytes, judged by the real code; only the socket is gone.
It takes any row at any time, also a second time: what protects the money must be on our side.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recon.gateway_client import (
    BatchReply,
    NotSentError,
    Operation,
    PreparedRequest,
    RawReply,
    UnknownOutcomeError,
)
from recon.instructions.eligibility import Eligible
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.queries import AnswersTo, KeyAnswers
from recon.model.terms import KeyAnswer

EFFECTS = ("now", "none", "late", "half")
"""`half`: every other row takes effect, the rest are refused."""
SILENT = ("reset", "silence", "http_500", "garbage", "truncated", "wrong_signature")
"""Ways in which nothing usable comes back, whatever happened."""
TWISTED = ("missing_row", "doubled_row", "contradiction", "foreign_row", "other_amount", "code_9")
"""Readable replies that are wrong in one row."""
ANSWERS = ("good", *SILENT, *TWISTED, "not_sent")
LATE = timedelta(minutes=10)
"""Less than the quarantine; what comes later than that nobody can tell from nothing."""
NEXT_WEEK = timedelta(days=6)
"""More than every time-out, quarantine and bound of patience that there is."""
DELAYS = {"late": LATE, "next week": NEXT_WEEK}
NUMBERS = ("own", "repeat", "skip")
"""Which number a refund is told under: its own; the last one, and it never happened (`repeat`); or
its own, behind a refund that somebody made in the portal at that moment (`skip`)."""
ROWS = ("twice", "at odds", "at odds, truth last")
"""How a query shows payments: each in two equal rows; or with a second row that says otherwise."""
OTHERWISE = {"1500": "2000", "2000": "3000", "3000": "2000", "4000": "3000", "4100": "3000"}
"""What the untrue row of two says, where the true one says this."""
BY_HAND = 100
"""Minor units that somebody refunds in the portal at once."""
PAYMENT = 1_000
"""Minor units of every payment."""


@dataclass(frozen=True)
class Script:
    """What the gateway does with one request."""

    effect: str = "now"
    answer: str = "good"
    numbers: str = "own"

    @property
    def is_honest(self) -> bool:
        """A gateway that says what did not happen is beyond any protocol."""
        if self.answer == "not_sent":
            return self.effect == "none"
        return self.effect != "late" or self.answer in SILENT


GOOD = Script()
SCRIPTS = tuple(script for e in EFFECTS for a in ANSWERS if (script := Script(e, a)).is_honest)
BEYOND = tuple(Script("next week", answer) for answer in SILENT)
"""What no protocol can know in time; it must not cost more than a wrong belief, and be found."""
MISCOUNTED = tuple(Script("now", "good", numbers) for numbers in NUMBERS[1:])


@dataclass(frozen=True)
class Effect:
    """Money that moved: the row of a request, by the hash of its bytes; "" when by hand."""

    body_sha256: str
    position: int
    kind: str
    transaction_id: str
    amount: int
    at: timedelta
    beyond: bool = False
    """It comes later than any evidence is waited for."""
    batch_id: str = ""
    """The one that was on the wire then; requests for two equal refunds have the same bytes."""


@dataclass
class PlayedGateway:
    """The gateway; `elapsed` is true time, which no test can set back."""

    real: GatewayOfMoney
    elapsed: Callable[[], timedelta]
    now: Callable[[], datetime]
    reach: Callable[[str], None]
    """Told before and after a request takes effect; may end the process."""
    on_the_wire: Callable[[str], str] = str
    """Hash of a request's bytes -> the batch that was claimed for it; "" for none."""
    authorised: tuple[str, ...] = ()
    captured: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    """Payments that wait for a review."""
    lag: timedelta = timedelta(0)
    deaf: bool = False
    """The query fails."""
    falls_silent: bool = False
    """The query fails from the next request for money on."""
    epoch: datetime | None = None
    """By its own clock, when `elapsed` was 0; None while its replies have no Date."""
    rows: str = ""
    """One of ROWS; "" while each payment is shown once, as it is."""
    at_odds: set[str] = field(default_factory=set)
    """Payments that the last answer showed in two ways."""
    scripts: list[Script] = field(default_factory=list)
    requests: int = 0
    happened: list[Effect] = field(default_factory=list)
    unheard: set[tuple[str, int]] = field(default_factory=set)
    """Rows that were told as done, under a number that stands for another refund."""
    forbidden: str = ""
    """Why the next request should never have left."""
    broken: list[str] = field(default_factory=list)
    """What left although it was forbidden."""

    @property
    def miscounted(self) -> bool:
        """It told one number twice."""
        return bool(self.unheard)

    def problem(self, eligible: Eligible) -> str:
        return self.real.problem(eligible)

    def prepare(self, rows: Sequence[Eligible]) -> PreparedRequest:
        return self.real.prepare(rows)

    def read(self, request: PreparedRequest, reply: RawReply) -> BatchReply:
        return self.real.read(request, reply)

    async def send(self, prepared: PreparedRequest) -> RawReply:
        script = self.scripts.pop(0) if self.scripts else GOOD
        self.requests += 1
        self.deaf |= self.falls_silent
        if self.forbidden:
            self.broken.append(f"I14: a {prepared.operation} left although {self.forbidden}")
            self.forbidden = ""
        self.reach("before effect")
        document = json.loads(prepared.body)
        rows = document[f"{prepared.operation}_orders"]
        self.broken += [
            f"I15: a {prepared.operation} left for {row['transaction_id']}, shown in two ways"
            for row in rows
            if row["transaction_id"] in self.at_odds
        ]
        told = self._take(prepared, rows, script=script)
        self.reach("after effect")
        if script.answer == "not_sent":
            raise NotSentError("refused to connect", kind="ConnectError")
        if script.answer in {"reset", "silence"}:
            msg = f"the connection ended in a {script.answer}"
            raise UnknownOutcomeError(msg, kind="ReadError")
        return self._reply(document, prepared=prepared, script=script, told=told)

    def by_hand(self, transaction_id: str, *, amount: int) -> None:
        self.happened.append(Effect("", 0, "refund", transaction_id, amount, self.elapsed()))

    def awaited(self) -> list[Effect]:
        return [one for one in self.happened if one.at > self.elapsed()]

    def effects(self) -> list[Effect]:
        """What truly happened by now."""
        return [one for one in self.happened if one.at <= self.elapsed()]

    @asynccontextmanager
    async def asking(self, **_: object) -> AsyncIterator[AnswersTo]:
        """The query, as far behind as `lag` says."""
        yield self._answers_to

    async def _answers_to(self, keys: Sequence[str]) -> KeyAnswers:
        if self.deaf:
            return KeyAnswers(dict.fromkeys(keys, (KeyAnswer.FAILED, "no answer")), ())
        shown = [row for key in keys for row in self._rows(key)]
        dated = self.epoch and self.epoch + self.elapsed()
        found = dict.fromkeys(keys, (KeyAnswer.FOUND, ""))
        return KeyAnswers(found, tuple(shown), gateway_at=dated)

    def _rows(self, transaction_id: str) -> list[dict[str, Any]]:
        """What the query shows of a payment: one row, or two that agree or do not."""
        row = self._row(transaction_id)
        self.at_odds.discard(transaction_id)
        if not self.rows:
            return [row]
        if self.rows == "twice" or row["payment_status"] not in OTHERWISE:
            return [row, dict(row)]
        self.at_odds.add(transaction_id)
        untrue = row | {"payment_status": OTHERWISE[row["payment_status"]]}
        return [row, untrue] if self.rows == "at odds" else [untrue, row]

    def _take(self, prepared: PreparedRequest, rows: Sequence[Any], *, script: Script) -> list[int]:
        """Let rows take effect; the number under which each refund is told, 0 for what is none."""
        after = DELAYS.get(script.effect, timedelta(0))
        told = []
        for position, row in enumerate(rows):
            place, is_refund = row["transaction_id"], prepared.operation is Operation.REFUND
            before = self._refunds_of(place)
            if not takes(script, position) or not is_refund:
                told.append(0)
            elif script.numbers == "repeat" and before:
                told.append(before)
                self.unheard.add((self.on_the_wire(prepared.body_sha256), position))
                continue
            else:
                if script.numbers == "skip":
                    self.by_hand(place, amount=BY_HAND)
                told.append(self._refunds_of(place) + 1)
            if takes(script, position):
                amount = row.get("refund_amount", row["amount"])
                self.happened.append(
                    Effect(
                        prepared.body_sha256,
                        position,
                        prepared.operation.value,
                        place,
                        int(amount.replace(".", "")),
                        self.elapsed() + after,
                        beyond=after > LATE,
                        batch_id=self.on_the_wire(prepared.body_sha256),
                    )
                )
        return told

    def _refunds_of(self, transaction_id: str) -> int:
        """How many refunds of a payment have taken effect: each got the next number."""
        return sum(
            one.kind == "refund" and one.transaction_id == transaction_id for one in self.effects()
        )

    def _reply(
        self, document: Any, *, prepared: PreparedRequest, script: Script, told: Sequence[int]
    ) -> RawReply:
        kind = prepared.operation.value
        rows = document[f"{kind}_orders"]
        for position, row in enumerate(rows):
            row[f"{kind}_status"] = "1" if takes(script, position) else "0"
            if told[position]:
                row["refund_reference_id"] = f"{row['transaction_id']}-{told[position]:02}"
        _twist(document, rows, kind=kind, answer=script.answer)
        document |= {"return_status": "1", "return_message": "OK"}
        body = json.dumps(document).encode()
        if script.answer == "truncated":
            body = body[: len(body) // 2]
        if script.answer == "garbage":
            body = b"<html>welcome</html>"
        return RawReply(500 if script.answer == "http_500" else 200, {}, body, self.now())

    def _row(self, transaction_id: str) -> dict[str, Any]:
        return {
            "order_no": transaction_id,
            "transaction_id": transaction_id,
            "currency": "EUR",
            "amount": PAYMENT,
            "payment_status": self._status(transaction_id),
            "query_result": "1",
            "reference_no": "",
            "transaction_date": None,
            "queried_at": self.now(),
            "detail": "{}",
        }

    def _status(self, transaction_id: str) -> str:
        visible = [
            one
            for one in self.happened
            if one.transaction_id == transaction_id and one.at + self.lag <= self.elapsed()
        ]
        kinds = {one.kind for one in visible}
        if "cancel" in kinds:
            return "5000"
        refunded = sum(one.amount for one in visible if one.kind == "refund")
        if refunded:
            return "4100" if refunded >= PAYMENT else "4000"
        if "capture" in kinds or transaction_id in self.captured:
            return "3000"
        return "1500" if transaction_id in self.reviewed and "review" not in kinds else "2000"


def takes(script: Script, position: int) -> bool:
    """Whether this row of a request takes effect, now or later."""
    return script.effect in {"now", *DELAYS} or (script.effect == "half" and position % 2 == 0)


def _twist(document: dict[str, Any], rows: list[Any], *, kind: str, answer: str) -> None:
    """Make one row of the reply wrong."""
    first = rows[0]
    if answer == "wrong_signature":
        document["encryption_data"] = "0" * 64
    if answer == "missing_row":
        rows.pop(0)
    if answer == "doubled_row":
        rows.append(dict(first))
    if answer == "contradiction":
        rows.append(first | {f"{kind}_status": "0" if first[f"{kind}_status"] == "1" else "1"})
    if answer == "foreign_row":
        rows.append(first | {"transaction_id": "T-of-nobody"})
    if answer == "other_amount":
        first["amount"] = "99.99"
    if answer == "code_9":
        first[f"{kind}_status"] = "9"
