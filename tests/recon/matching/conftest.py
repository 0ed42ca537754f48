"""Tiny tables of rows: what a case needs is written, the rest is an order of 100.00 EUR."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTRUCTION_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    VANISHED_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.model.terms import BreakCode, Reject
from recon.proof.engine import reconcile
from recon.proof.proven import proven
from tests.injected.word_groups import CASH_CODES

LONG_AGO = datetime(2026, 10, 1, 12, tzinfo=UTC)
"""Every grace has ended."""
JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)
"""Every grace runs."""
AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
"""The end of Friday 2026-11-20."""

CODES = {
    "pending": "1000",
    "in_review": "1500",
    "authorised": "2000",
    "paid": "3000",
    "partially_refunded": "4000",
    "refunded": "4100",
    "cancelled": "5000",
    "failed": "6000",
    "expired": "6100",
    "chargeback": "7000",
    "unmapped": "9999",
}
OF_GROUPS = {
    *CASH_CODES,
    *(BreakCode.PAYOUT_NOT_BOOKED, BreakCode.PAYOUT_AMOUNT_MISMATCH, BreakCode.LEDGER_PAYOUT_ONLY),
    *(BreakCode.UNEXPECTED_RECEIPT, BreakCode.CURRENCY_MISMATCH),
}
PLACE = {"source": "rows", "line": 2}


class Case:
    """The rows of one case, then its reconciliation."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"orders": [], "gateway": []}
        self.rejects: list[Reject] = []
        self.universe: list[Mapping[str, str]] | None = None
        self.previous: Previous | None = None
        self.as_of = AS_OF
        self.lack_since: datetime | None = None
        self.tables: dict[str, Any] = {
            "payment_status": {code: label for label, code in CODES.items() if label != "unmapped"},
            "authorisation": {"valid_days": 365},
        }

    def order(self, status: str = "paid", **cells: object) -> "Case":
        """An order row."""
        row = {"order_no": "A1", "currency": "EUR", "amount": 10000, "ordered_at": LONG_AGO}
        return self._add("orders", {**row, "status": status, **cells})

    def payment(self, state: str = "paid", **cells: object) -> "Case":
        """An answer `found` of the gateway."""
        row = {
            "order_no": "A1",
            "transaction_id": "T1",
            "currency": "EUR",
            "amount": 10000,
            "payment_status": CODES[state],
            "query_result": "1",
            "answer": "found",
            "transaction_date": LONG_AGO,
        }
        return self._add("gateway", {**row, **cells})

    def answer(self, answer: str, **cells: object) -> "Case":
        """An answer without a payment."""
        row = {"order_no": "A1", "query_result": "5", "answer": answer}
        return self._add("gateway", {**row, **cells})

    def ledger(self) -> "Case":
        """A ledger is covered, maybe without entries."""
        self.rows.setdefault("ledger", [])
        return self

    def entry(self, entry_type: str = "capture", **cells: object) -> "Case":
        """A ledger entry."""
        number = len(self.rows.get("ledger", []))
        row = {"entry_id": f"E{number}", "order_no": "A1", "currency": "EUR", "amount": 10000}
        return self._add(
            "ledger", {**row, "booked_at": LONG_AGO, "entry_type": entry_type, **cells}
        )

    def move(self, kind: str, state: str, **cells: object) -> "Case":
        """An instruction of ours."""
        number = len(self.rows.get("instructions", []))
        row = {"instruction_id": f"I{number}", "order_no": "A1", "transaction_id": "T1"}
        row |= {"kind": kind, "state": state, "currency": "EUR", "amount": 10000}
        return self._add("instructions", {**row, "approved_at": LONG_AGO, **cells})

    def line(self, entry_type: str = "capture", **cells: object) -> "Case":
        """A line of a settlement file; its net is gross less fee."""
        row = {"batch_id": "B1", "settled_on": "2026-10-01", "order_no": "A1"}
        row |= {"transaction_id": "T1", "currency": "EUR", "gross": 10000, "fee": 0}
        row |= {"entry_type": entry_type, **cells}
        net = int(str(row["gross"])) - int(str(row["fee"]))
        return self._add("settlement", {"net": net, **row})

    def payout(self, state: str = "confirmed", **cells: object) -> "Case":
        """A payout of ours."""
        row = {"order_no": "", "transaction_id": "", "request_id": "P1", "outcome_at": LONG_AGO}
        return self.move("payout", state, **{**row, **cells})

    def reject(self, **cells: Any) -> "Case":
        """A row that could not be read."""
        values: dict[str, Any] = {"kind": "orders", "source": "rows", "line": 3, "column": "amount"}
        values |= {"reason": "not an amount", "value": "x", "merchant_id": "M"}
        values |= {"account_id": "1", "order_no": "A1", **cells}
        self.rejects.append(Reject(**values))
        return self

    def asked(self, *order_nos: str) -> "Case":
        """The keys a night asked for."""
        key = {"merchant_id": "M", "account_id": "1"}
        self.universe = [{**key, "order_no": number} for number in order_nos]
        return self

    def lacking(self, since: datetime) -> "Case":
        """An order file that may tell of payments since then is lacking."""
        self.lack_since = since
        return self

    def after(self, earlier: Reconciliation, *, charged_back: tuple[str, ...] = ()) -> "Case":
        """An earlier run."""
        keys = [{"merchant_id": "M", "account_id": "1", "order_no": n} for n in charged_back]
        chargebacks = frame_of(keys, columns=KEY_COLUMNS)
        self.previous = Previous(earlier.as_of, earlier.breaks, chargebacks)
        return self

    def gone(self, *order_nos: str) -> "Case":
        """Ledger entries of orders that the night before counted and this one has no more."""
        place = {"merchant_id": "M", "account_id": "1", "currency": "EUR", "amount": 700}
        entries = [
            {**place, "entry_id": f"G{n}", "order_no": name} for n, name in enumerate(order_nos)
        ]
        return self.lost(entries)

    def lost(self, entries: list[dict[str, Any]]) -> "Case":
        """More of such entries."""
        before = self.previous or Case().after(Case().run()).previous
        more = frame_of(entries, columns=VANISHED_COLUMNS)
        self.previous = replace(before, vanished=pd.concat([before.vanished, more]))
        return self

    def ruled(self, **tables: Any) -> "Case":
        """Other rules."""
        self.tables |= tables
        return self

    def _add(self, source: str, row: dict[str, Any]) -> "Case":
        self.rows.setdefault(source, []).append(
            {"merchant_id": "M", "account_id": "1", **PLACE, **row}
        )
        return self

    def sources(self) -> Sources:
        """The typed frames."""
        columns = {
            "ledger": LEDGER_COLUMNS,
            "instructions": INSTRUCTION_COLUMNS,
            "settlement": SETTLEMENT_COLUMNS,
        }
        optional = {
            name: frame_of(self.rows[name], columns=kinds) if name in self.rows else None
            for name, kinds in columns.items()
        }
        universe = None
        if self.universe is not None:
            universe = frame_of(self.universe, columns=KEY_COLUMNS)
        return Sources(
            orders=frame_of(self.rows["orders"], columns=ORDER_COLUMNS),
            gateway=frame_of(self.rows["gateway"], columns=GATEWAY_COLUMNS),
            ledger=optional["ledger"],
            instructions=optional["instructions"],
            settlement=optional["settlement"],
            rejects=tuple(self.rejects),
            universe=universe,
            orders_lack_since=self.lack_since,
        )

    @property
    def rules(self) -> Rules:
        """The rules of the case."""
        return Rules.of(self.tables, source="the case")

    def run(self) -> Reconciliation:
        """The reconciliation."""
        return reconcile(self.sources(), rules=self.rules, as_of=self.as_of, previous=self.previous)

    def proven(self) -> Reconciliation:
        """It with its control totals."""
        return proven(self.run(), sources=self.sources(), rules=self.rules, previous=self.previous)

    def outcome(self) -> str:
        """`MATCHED flags`, `PENDING flags`, `UNVERIFIED reason` or `CODE flags` of the one set."""
        return " + ".join(_words_of(self.run())).strip()


def outcomes_of(cases: Mapping[str, Case]) -> dict[str, str]:
    """The outcome of many cases, each of a merchant of its own; alike ones share a run."""
    some = _alike(cases)
    return {name: labels for those in some for name, labels in _together(those).items()}


def breaks_of(cases: Mapping[str, Case]) -> pd.DataFrame:
    """The breaks of many cases, `merchant_id` the name of the case."""
    return pd.concat([_run_together(those).breaks for those in _alike(cases)])


def _alike(cases: Mapping[str, Case]) -> list[dict[str, Case]]:
    alike: dict[str, dict[str, Case]] = {}
    for name, one in cases.items():
        kind = str((sorted(one.rows), one.universe is None, one.tables, one.lack_since))
        alike.setdefault(kind, {})[name] = one
    return [*alike.values()]


def _run_together(cases: Mapping[str, Case]) -> Reconciliation:
    first = next(iter(cases.values()))
    one = Case().ruled(**first.tables)
    one.lack_since = first.lack_since
    for merchant, each in cases.items():
        for source, rows in each.rows.items():
            moved = [{**row, "merchant_id": merchant} for row in rows]
            one.rows.setdefault(source, []).extend(moved)
        one.rejects += [replace(reject, merchant_id=merchant) for reject in each.rejects]
        if each.universe is not None:
            asked = [{**key, "merchant_id": merchant} for key in each.universe]
            one.universe = [*(one.universe or []), *asked]
        if each.previous is not None and len(each.previous.vanished):
            gone = each.previous.vanished.assign(merchant_id=merchant)
            one.lost(gone.to_dict("records"))
    return one.run()


def _together(cases: Mapping[str, Case]) -> dict[str, str]:
    result = _run_together(cases)
    return {
        merchant: " + ".join(_words_of(result, merchant=merchant)).strip() for merchant in cases
    }


def _words_of(result: Reconciliation, *, merchant: str = "M") -> list[str]:
    matches = result.matches[result.matches["rule"].ne("not_compared")]
    parts: list[tuple[pd.DataFrame, str, str]] = [
        (result.breaks, "", "code"),
        (matches, "MATCHED", "flags"),
        (result.pending, "PENDING", "flags"),
        (result.unverified, "UNVERIFIED", "reason"),
    ]
    labels = []
    for frame, label, column in parts:
        for row in frame[frame["merchant_id"].eq(merchant)].to_dict("records"):
            if _of_a_group(row):
                continue
            shown = [label, row[column], row["flags"] if label == "" else ""]
            labels.append(" ".join(filter(None, shown)))
    return labels


def _of_a_group(row: Mapping[Any, Any]) -> bool:
    """Fees, reserves, payouts and what is held back have tests of their own (matching/cash)."""
    keyless = row["order_no"] == "" and row["transaction_id"] == ""
    if "code" in row:
        return keyless and row["code"] in OF_GROUPS
    return keyless and row["entry_id"].split(":")[0] in {"fees", "reserves", "payout", "held"}


@pytest.fixture
def case() -> Case:
    """An empty case."""
    return Case()


@pytest.fixture
def new_case() -> Callable[[], Case]:
    """Several cases in one test."""
    return Case


@pytest.fixture(scope="module")
def outcomes_together() -> Callable[[Mapping[str, Case]], dict[str, str]]:
    """Many cases in few runs, for fixtures that many tests share."""
    return outcomes_of


@pytest.fixture(scope="module")
def breaks_together() -> Callable[[Mapping[str, Case]], pd.DataFrame]:
    """The breaks of many cases in few runs, for fixtures that many tests share."""
    return breaks_of


@pytest.fixture(scope="module")
def make_case() -> Callable[[], Case]:
    """Cases for fixtures that many tests share."""
    return Case
