"""A second judge of one set: the contract read aloud, row by row, in plain Python.

It shares nothing with the engine but the words of states and codes. A set here is one order key of
one account and currency; sums are whole minor units. Grace has run out for all of its rows, or for
none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
MONEY = ("paid", "partially_refunded", "refunded")
DEAD = ("cancelled", "expired", "failed")
GATEWAY = (
    *("none", "pending", "in_review", "authorised", "paid", "partially_refunded"),
    *("refunded", "cancelled", "expired", "failed"),
)
CONTRACT = """
paid MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CAPTURE_DUE MATCHED REFUND_UNEXPECTED REFUND_UNEXPECTED STATUS_CONFLICT AUTHORISATION_EXPIRED STATUS_CONFLICT
authorised MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING MATCHED STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT AUTHORISATION_EXPIRED STATUS_CONFLICT
partially_refunded MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CAPTURE_DUE REFUND_DUE MATCHED REFUND_UNEXPECTED STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT
refunded MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CANCEL_DUE REFUND_DUE REFUND_DUE MATCHED MATCHED MATCHED STATUS_CONFLICT
cancelled MATCHED STALE_PENDING STALE_PENDING CANCEL_DUE STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED MATCHED
failed MATCHED STALE_PENDING STALE_PENDING CANCEL_DUE STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED MATCHED
pending MATCHED PENDING PENDING PENDING STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED
none - PENDING PENDING MISSING_IN_ORDERS MISSING_IN_ORDERS MISSING_IN_ORDERS MISSING_IN_ORDERS MATCHED MATCHED MATCHED
"""  # noqa: E501 - a table is read by its columns
"""Written from the contract: a line for each order state, after grace, in the order of GATEWAY."""
TABLE = {
    (order, gateway): label
    for order, *cells in map(str.split, CONTRACT.strip().splitlines())
    for gateway, label in zip(GATEWAY, cells, strict=True)
}
DELAYED = ("MISSING_AT_GATEWAY", "STALE_PENDING", "MISSING_IN_ORDERS")
STATUS = {
    "confirmed": "sure",
    "resolved_applied": "sure",
    "in_doubt": "doubt",
    "needs_human": "doubt",
    "planned": "waits",
    "approved": "waits",
    "rejected": "refused",
}
UNSENT = "unsent"
"""The grace of an instruction that is still to be sent."""
DOUBTS = ("CAPTURE_UNCONFIRMED", "REFUND_UNCONFIRMED", "CANCEL_UNCONFIRMED", "OVER_REFUND")
"""No write-off closes these."""


@dataclass(frozen=True, slots=True)
class Classified:
    """What a set comes to."""

    state: str
    codes: frozenset[str]
    effects: tuple[int, int]
    left: tuple[int, int]
    """What nothing explains of the effect on orders and on the ledger."""


@dataclass(slots=True)
class Set:
    """The rows of one set, and what they add up to."""

    order: Row | None = None
    payments: list[Row] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    moves: list[Row] = field(default_factory=list)
    late: bool = True
    ahead: bool = False
    """Its rows are dated long after the night; then they are late, too."""
    covered: bool = True
    gone: bool = False
    """The night before had an entry of it that the ledger has no more."""
    lacking: bool = False
    """An order file is lacking that may tell of its payments."""
    shown: frozenset[str] = frozenset()
    """States that the query can show."""

    @property
    def status(self) -> str:
        """The order's word."""
        return "none" if self.order is None else str(self.order["status"])

    @property
    def ordered(self) -> tuple[int, int]:
        """Captured and refunded as the order has them."""
        if self.order is None or self.status not in (*MONEY, "authorised"):
            return 0, 0
        taken = int(self.order["amount"])
        back = self.order.get("refund_amount")
        if self.status == "refunded" and back is None:
            return taken, taken
        return taken, int(back or 0) if "refunded" in self.status else 0

    @property
    def state(self) -> str:
        """The word of all payments together."""
        labels = [str(row["state"]) for row in self.payments]
        alive = [label for label in labels if label not in DEAD]
        for label in ("chargeback", "authorised", "pending"):
            if label in alive and (label == "chargeback" or not {*alive} & {*MONEY}):
                return label
        if not alive:
            return labels[-1] if labels else "none"
        money = [row for row in self.payments if row["state"] in MONEY]
        if len(money) == 1:
            return str(money[0]["state"])
        if "partially_refunded" in alive:
            return "partially_refunded"
        return "paid" if "paid" in alive else "refunded"

    def paid(self) -> Iterator[tuple[int, int]]:
        """Captured and refunded, payment by payment."""
        for row in self.payments:
            if row["state"] in (*MONEY, "chargeback"):
                back = row.get("refunded_amount")
                in_full = row["state"] == "refunded" and back is None
                yield row["amount"], row["amount"] if in_full else int(back or 0)

    def booked(self, kind: str) -> int:
        """Entries of one type less their reversals."""
        plain = sum(row["amount"] for row in self.entries if row["entry_type"] == kind)
        return plain - sum(
            row["amount"] for row in self.entries if row["entry_type"] == f"{kind}_reversal"
        )

    def ours(self, kind: str, standing: str) -> int:
        """What we instructed."""
        return sum(
            row["amount"]
            for row in self.moves
            if (row["kind"], STATUS[row["state"]]) == (kind, standing)
        )

    def any_of(self, kind: str, standing: str) -> bool:
        """Whether we instructed it, over whatever amount."""
        return any((row["kind"], STATUS[row["state"]]) == (kind, standing) for row in self.moves)


class Judge:
    """One set under the contract."""

    def __init__(self, one: Set) -> None:
        self.one = one
        self.captured = sum(taken for taken, _ in one.paid())
        self.refunded = sum(back for _, back in one.paid())
        self.money = one.state in MONEY
        self.unknown = any(
            row["state"] == "partially_refunded" and row.get("refunded_amount") is None
            for row in one.payments
        )
        sure, doubt = one.ours("refund", "sure"), one.ours("refund", "doubt")
        wanted = "refunded" if sure + doubt >= self.captured else "partially_refunded"
        unseen = sure > self.refunded or (self.unknown and sure > 0)
        self.reply = self.money and unseen and (self.unknown or wanted not in one.shown)
        self.unseen = unseen
        more = max(sure - self.refunded, 0)
        self.hidden = more if self.reply else 0
        self.running = more if self.money and not self.reply and not one.late else 0
        self.tells = one.status in ("partially_refunded", "refunded")

    @property
    def net(self) -> int:
        """What the gateway's answers leave the merchant."""
        rows = [row for row in self.one.payments if row["state"] in MONEY]
        return sum(taken - back for taken, back in Set(payments=rows).paid())

    @property
    def effects(self) -> tuple[int, int]:
        """Gateway less order, gateway less ledger."""
        taken, back = self.one.ordered
        order = taken - back if self.one.status in MONEY else 0
        return self.net - order, self.net - self.ledger if self.one.covered else 0

    @property
    def ledger(self) -> int:
        """The net of the ledger."""
        signs = {"capture": 1, "refund": -1, "chargeback": -1, "adjustment": 1}
        return sum(sign * self.one.booked(kind) for kind, sign in signs.items())

    def classified(self) -> Classified:
        """State, codes, effects and what is left."""
        one = self.one
        ours = one.any_of("refund", "sure") or one.any_of("refund", "doubt")
        if one.state == "partially_refunded" and self.unknown and not ours:
            return Classified("UNVERIFIED", self._flagged(frozenset()), self.effects, (0, 0))
        left = [self._left_of_orders(), self._left_of_ledger()]
        written = one.booked("write_off") if one.covered else 0
        closed = [written > 0 and abs(amount) == written for amount in left]
        found = [
            (code, waits)
            for leg, code, waits in self._findings()
            if code in DOUBTS or not (leg < 2 and closed[leg])
        ]
        left = [0 if shut else amount for shut, amount in zip(closed, left, strict=True)]
        endless = ("PENDING", True) in found
        codes = {code for code, waits in found if code and (one.late or not waits)} - {"PENDING"}
        waiting = endless or (any(waits for _, waits in found) and not one.late)
        state = "BREAK" if codes else "PENDING" if waiting else "MATCHED"
        if one.lacking and one.order is None and "MISSING_IN_ORDERS" in codes - {*DOUBTS}:
            state, codes = ("BREAK", codes) if codes & {*DOUBTS} else ("UNVERIFIED", set())
        if state == "MATCHED" and not (one.order or one.payments or one.entries):
            state = ""
        return Classified(state, self._flagged(frozenset(codes)), self.effects, (left[0], left[1]))

    def _flagged(self, codes: frozenset[str]) -> frozenset[str]:
        """The codes with the flags that are held against the engine's."""
        one = self.one
        if not (one.order or one.payments or one.entries or one.moves):
            return codes
        told = {"date_ahead": one.ahead, "entry_vanished": one.gone}
        return codes | {flag for flag, is_told in told.items() if is_told}

    def _left_of_orders(self) -> int:
        if self._explained():
            return 0
        left = self.effects[0] - (self.hidden + self.running) * self.tells
        if left < 0 and (self.one.booked("chargeback") > 0 or not self._ledger_closed()):
            rows = [row for row in self.one.payments if row["state"] == "chargeback"]
            left += sum(taken - back for taken, back in Set(payments=rows).paid())
        return left

    def _ledger_closed(self) -> bool:
        written = self.one.booked("write_off")
        return self.one.covered and written == abs(self._left_of_ledger()) > 0

    def _left_of_ledger(self) -> int:
        return self.effects[1] - (self._for_ledger() - self.refunded) if self.one.covered else 0

    def _for_ledger(self) -> int:
        """What the ledger should have as refunded."""
        early = self.running and self.one.booked("refund") == self.refunded + self.running
        return self.refunded + self.hidden + (self.running if early else 0)

    def _explained(self) -> bool:
        one, (ordered, back) = self.one, self.one.ordered
        if one.order is None:
            return False
        if one.state == "cancelled":
            return one.any_of("cancel", "sure")
        single = sum(row["state"] in MONEY for row in one.payments) == 1
        if not single or not self.money or self.unknown:
            return False
        limit = one.order["amount"] if one.status == "pending" else ordered
        taken, given = one.ours("capture", "sure"), one.ours("refund", "sure")
        captures = 0 < taken == self.captured <= limit
        refunds = 0 < given == self.refunded and not (self.tells and given > back)
        return (
            (captures or refunds)
            and (captures or self.captured == ordered)
            and (refunds or self.refunded == back)
        )

    def _findings(self) -> Iterator[tuple[int, str, bool | str]]:
        """Leg (0 orders, 1 ledger, 2 ours), code, and whether a grace delays it."""
        ours = [(2, code, waits) for code, waits in self._of_ours()]
        yield from ours
        yield from self._beyond_bounds()
        told = {code for _, code, _ in ours}
        unsent = any(waits == UNSENT for _, _, waits in ours) and not self.one.late
        for code, waits in self._of_orders(told, unsent=unsent):
            yield 0, code, waits
        if self.one.covered or self.one.state == "chargeback":
            for code, waits in self._of_ledger():
                yield 1, code, waits

    def _beyond_bounds(self) -> Iterator[tuple[int, str, bool]]:
        one = self.one
        given = one.ours("refund", "sure") + one.ours("refund", "doubt")
        beyond = max(self.refunded, given) > self.captured
        beyond |= any(back > taken for taken, back in one.paid())
        if beyond and (self.money or one.state == "authorised"):
            yield 0, "OVER_REFUND", False

    def _of_ours(self) -> Iterator[tuple[str, bool | str]]:
        one = self.one
        quiet = {"capture": (*MONEY, "chargeback"), "cancel": DEAD}
        for kind, seen in quiet.items():
            if one.state in seen:
                continue
            label = kind.upper()
            if one.any_of(kind, "doubt"):
                yield f"{label}_UNCONFIRMED", False
            if one.any_of(kind, "refused"):
                yield f"{label}_REJECTED", False
            if one.any_of(kind, "sure"):
                yield f"{label}_UNCONFIRMED", True
            if one.any_of(kind, "waits"):
                yield f"{label}_DUE", UNSENT
        sure, doubt = one.ours("refund", "sure"), one.ours("refund", "doubt")
        if one.any_of("refund", "doubt") and sure + doubt > self.refunded:
            yield "REFUND_UNCONFIRMED", False
        refused = one.ours("refund", "refused")
        if one.any_of("refund", "refused") and sure + doubt + refused > self.refunded:
            yield "REFUND_REJECTED", False
        if self.unseen and not self.reply:
            yield "REFUND_UNCONFIRMED", True
        if one.any_of("refund", "waits"):
            yield "REFUND_DUE", UNSENT

    def _of_orders(self, told: set[str], *, unsent: bool) -> Iterator[tuple[str, bool]]:
        one = self.one
        if one.state == "chargeback":
            if one.order is None:
                yield "MISSING_IN_ORDERS", False
            elif self._left_of_orders():
                yield "AMOUNT_OVER" if self._left_of_orders() > 0 else "AMOUNT_UNDER", False
            return
        spoken = one.covered and self.ledger and not self._ledger_closed()
        if (one.state == "none" and spoken) or self._explained():
            return
        states, amounts = [*self._of_table(told)], [*self._of_amounts()]
        if unsent:
            # Whatever the states say, nothing is due before the move is.
            states = [(code, waits) for code, waits in states if not code]
            if self._only_refunds_lack():
                amounts = []
        differing = [*states, *amounts]
        doubted = dict(self._shown_doubts()) if any(c and not w for c, w in differing) else {}
        yield from ((c, w) for c, w in differing if c not in doubted.values())
        yield from ((code, False) for code in doubted)
        if (self.tells and self.reply) or self.running:
            sent = self.refunded + self.hidden + self.running
            if self.tells and sent > one.ordered[1]:
                yield "REFUND_UNEXPECTED", False
            elif self.tells and sent < one.ordered[1] and self.reply and not unsent:
                yield "REFUND_DUE", False

    def _only_refunds_lack(self) -> bool:
        one, (ordered, back) = self.one, self.one.ordered
        sent = self.refunded + (self.hidden + self.running) * self.tells
        single = sum(row["state"] in MONEY for row in one.payments) <= 1
        waits = one.any_of("refund", "waits")
        return waits and sent < back and self.captured == ordered and single

    def _shown_doubts(self) -> Iterator[tuple[str, str]]:
        """Doubts whose effect may be what the gateway shows, each with what it would explain."""
        one = self.one
        if one.any_of("capture", "doubt") and self.money:
            same = (one.status, one.state) == ("authorised", "paid")
            yield "CAPTURE_UNCONFIRMED", "STATUS_CONFLICT" if same else "nothing"
        if one.any_of("cancel", "doubt") and one.state == "cancelled":
            yield (
                "CANCEL_UNCONFIRMED",
                "STATUS_CONFLICT" if one.status == "authorised" else "nothing",
            )
        ours = one.ours("refund", "sure") + one.ours("refund", "doubt")
        if one.any_of("refund", "doubt") and (ours <= self.refunded or self.unknown):
            yield "REFUND_UNCONFIRMED", "nothing" if ours < self.refunded else "REFUND_UNEXPECTED"

    def _of_table(self, told: set[str]) -> Iterator[tuple[str, bool]]:
        one = self.one
        label = TABLE[one.status, one.state]
        if (one.status, one.state) == ("pending", "none"):
            yield "", True
        elif one.status in ("cancelled", "failed") and one.state == "refunded" and self.net:
            yield "STATUS_CONFLICT", False
        elif one.status == "refunded" and one.state in ("cancelled", "expired"):
            if one.ordered[0] != one.ordered[1]:
                yield "STATUS_CONFLICT", False
        elif label not in ("MATCHED", "-"):
            kind = label.split("_")[0]
            instead = {code for code in told if code.startswith(kind)}
            if label == "MISSING_IN_ORDERS" and one.state not in (*MONEY, "authorised"):
                return
            if kind in ("CAPTURE", "CANCEL", "REFUND") and label.endswith("DUE") and instead:
                return
            if self.reply and kind == "REFUND":
                return
            yield label, label in (*DELAYED, "PENDING")

    def _of_amounts(self) -> Iterator[tuple[str, bool]]:
        one, (ordered, back) = self.one, self.one.ordered
        net = self.effects[0] - (self.hidden + self.running) * self.tells
        pair = one.status in MONEY and self.money
        if one.order is not None and sum(row["state"] in MONEY for row in one.payments) > 1:
            if net > 0:
                yield "DUPLICATE_PAYMENT", False
            elif net < 0 and pair:
                yield "SPLIT_INCOMPLETE", False
            return
        if not pair:
            return
        if self.captured != ordered:
            over = (net or self.captured - ordered) > 0
            yield "AMOUNT_OVER" if over else "AMOUNT_UNDER", False
        compares = TABLE[one.status, one.state] == "MATCHED"
        told = not self.reply and not self.running and not self.unknown
        if compares and told and self.refunded != back:
            over = (net or self.captured - ordered or back - self.refunded) > 0
            yield "AMOUNT_OVER" if over else "AMOUNT_UNDER", False

    def _of_ledger(self) -> Iterator[tuple[str, bool]]:
        one, taken = self.one, self.one.booked("capture") + self.one.booked("adjustment")
        back, charged = one.booked("refund"), one.booked("chargeback")
        mismatch = ("LEDGER_AMOUNT_MISMATCH", False)
        if one.state == "none":
            if charged > 0:
                yield "CHARGEBACK_UNPROVEN", True
            if self.ledger:
                yield "LEDGER_ONLY" if one.order is None else "BOOKED_NOT_AT_GATEWAY", True
            return
        if one.state == "chargeback":
            if any((self.refunded, one.ours("refund", "sure"), one.ordered[1], back > 0)):
                yield "CHARGEBACK_AFTER_REFUND", False
            if charged <= 0:
                yield "CHARGEBACK_NOT_BOOKED", True
            elif self._left_of_ledger():
                yield mismatch
            return
        if charged > 0:
            yield "CHARGEBACK_UNPROVEN", False
        if self.money:
            if charged < 0:
                yield mismatch
            if self.captured and not one.booked("capture") and not one.booked("adjustment"):
                yield "MISSING_IN_LEDGER", True
            elif self.captured != taken:
                yield mismatch
            yield from self._refunds_booked(back)
        elif self.ledger:
            yield "LEDGER_AMOUNT_MISMATCH", one.state == "pending"

    def _refunds_booked(self, back: int) -> Iterator[tuple[str, bool]]:
        if self.unknown and not self.reply:
            return
        due = self._for_ledger()
        if due and not back:
            yield "REFUND_NOT_BOOKED", True
        elif (due or back < 0) and due != back:
            yield "LEDGER_AMOUNT_MISMATCH", False
        elif back > 0 and not due:
            yield "LEDGER_REFUND_ONLY", False
