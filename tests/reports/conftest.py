"""A small night with everything that spoils a workbook: three exponents, evil text, long ids."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    JOURNAL_COLUMNS,
    MATCH_COLUMNS,
    MOVEMENT_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.model.figures import (
    BATCH_COLUMNS,
    INSTRUCTION_SHEET_COLUMNS,
    Attention,
    NightFigures,
    TrendPoint,
    matched_of,
)
from recon.model.terms import ControlTotal, Reject, SourceFile, SourceKind, Verdict
from tests.reports.drawn_sheets import content_of

MERCHANT, ACCOUNT = "100042", "100042001"
LONG_ID = "00123456789012345678"
EVIL = '=HYPERLINK("http://evil.example","click")'
STRANGE = "\x00\u202eبسم 🙂 漢字"
SIDE_COLUMNS = ("source", "merchant_id", "account_id", "currency", "state", "count", "amount")
COUNTS = ("count", "rows", "attempt", "line", "confirmed", "rejected", "in_doubt", "not_sent")
INTEGERS = {*AMOUNT_COLUMNS, *COUNTS, "age_days", "exposure_before"}
Amounts = tuple[int | None, ...]

Build = Callable[..., NightFigures]


def frame(columns: tuple[str, ...], rows: list[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame of these columns with the engine's types; what a row does not name is blank."""
    whole: dict[str, Any] = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        if name in INTEGERS:
            whole[name] = pd.array(values, dtype="Int64")
        elif name.endswith("_at") or name == "in_doubt_since":
            instants = [pd.NaT if value is None else pd.Timestamp(value) for value in values]
            whole[name] = pd.Series(instants, dtype="datetime64[us, UTC]")
        else:
            texts = ["" if value is None else value for value in values]
            whole[name] = pd.Series(texts, dtype="str")
    return pd.DataFrame(whole, columns=list(columns))


def set_row(number: int, currency: str, amounts: Amounts, **more: Any) -> dict[str, Any]:
    """One set: order, gateway and ledger amount in minor units, effects from them."""
    order, gateway, ledger = amounts
    return {
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "order_no": f"A-{number:05d}",
        "transaction_id": f"{number:020d}",
        "currency": currency,
        "order_amount": order,
        "gateway_amount": gateway,
        "ledger_amount": ledger,
        "effect_orders": (gateway or 0) - (order or 0),
        "effect_ledger": (gateway or 0) - (ledger or 0),
        "state_orders": "paid",
        "state_gateway": "paid" if gateway is not None else "none",
        **more,
    }


CAUSE = "The gateway knows nearly no order of orders-2.csv: is it of another account?"


def break_row(number: int, currency: str, amounts: Amounts, **more: Any) -> dict[str, Any]:
    """One break; money at risk is its larger effect."""
    row = set_row(number, currency, amounts)
    exposure = max(abs(row["effect_orders"]), abs(row["effect_ledger"]))
    return {
        **row,
        "break_id": f"{number:016x}",
        "exposure": exposure,
        "owed_to": "merchant",
        "age_days": 0,
        "first_seen": "2026-11-20",
        "severity": "LOW",
        "cause": "",
        "reason": "the amounts differ",
        **more,
    }


BREAKS: tuple[tuple[str, Amounts, str, dict[str, Any]], ...] = (
    ("EUR", (10_000, 12_345, 12_345), "AMOUNT_OVER", {"age_days": 3}),
    ("EUR", (9_900, None, None), "MISSING_AT_GATEWAY", {"severity": "HIGH", "cause": CAUSE}),
    ("JPY", (94_771, None, None), "MISSING_AT_GATEWAY", {"age_days": 9, "cause": CAUSE}),
    ("KWD", (1_234, 1_234, None), "MISSING_IN_LEDGER", {"age_days": 40}),
    (
        *("EUR", (5_000_000,) * 3, "REFUND_UNCONFIRMED"),
        {"severity": "CRITICAL", "age_days": 1, "exposure": 5_000_000, "owed_to": "shopper"},
    ),
    ("USD", (None, 4_200, 4_200), "MISSING_IN_ORDERS", {"age_days": 5}),
    (
        *("EUR", (700, 700, 900), "LEDGER_AMOUNT_MISMATCH"),
        {"order_no": LONG_ID, "reason": EVIL, "flags": "#N/A"},
    ),
    ("EUR", (100, 100, 100), "CURRENCY_MISMATCH", {"reason": STRANGE}),
    ("KWD", (1_001, 1_003, 1_003), "AMOUNT_OVER", {"age_days": 2}),
    ("EUR", (2_500, 2_000, 2_000), "AMOUNT_UNDER", {"order_no": "-1+1"}),
)


def example_breaks() -> list[dict[str, Any]]:
    """Ten breaks over four currencies, codes, severities and ages."""
    return [
        break_row(number, currency, amounts, code=code, **more)
        for number, (currency, amounts, code, more) in enumerate(BREAKS, start=1)
    ]


def effects_of(breaks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every effect that is not 0, and one in a second currency for break 8."""
    found = [
        {**row, "leg": leg, "amount": row[f"effect_{leg}"]}
        for row in breaks
        for leg in ("orders", "ledger")
        if row[f"effect_{leg}"]
    ]
    second = {**breaks[7], "currency": "USD", "amount": 111}
    return [*found, {**second, "leg": "orders"}, {**second, "leg": "ledger"}]


def sides_of(parts: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What each source says per currency and state; gateway has 1.11 USD more for break 8.

    A payout of 50.00 EUR of ours stands in the ledger.
    """
    sums: Counter[tuple[str, str, str]] = Counter()
    counts: Counter[tuple[str, str, str]] = Counter()
    told = [
        ((source, row["currency"], state), row[f"{source.removesuffix('s')}_amount"])
        for state, rows in parts.items()
        for row in rows
        for source in ("orders", "gateway", "ledger")
        if row[f"{source.removesuffix('s')}_amount"] is not None
    ]
    payout = (("ledger", "EUR", "MATCHED"), -5_000), (("payouts", "EUR", "MATCHED"), -5_000)
    for key, amount in (*told, *payout):
        sums[key] += amount
        counts[key] += 1
    sums["gateway", "USD", "BREAK"] += 111
    own = {"merchant_id": MERCHANT, "account_id": ACCOUNT}
    return [
        dict(zip(("source", "currency", "state"), key, strict=True), **own)
        | {"count": counts[key], "amount": sums[key]}
        for key in sorted(sums)
    ]


def example_movements(breaks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two breaks stay, one has another amount and code, two are there again; three ended."""
    names = ("break_id", "merchant_id", "account_id", "order_no", "transaction_id", "code")
    shown = [{name: row[name] for name in (*names, "currency", "exposure")} for row in breaks]
    for row in shown[:3]:
        row |= {"movement": "stays", "currency_before": row["currency"]}
        row |= {"code_before": row["code"], "exposure_before": row["exposure"]}
    shown[2] |= {"movement": "reclassified", "currency_before": "EUR", "exposure_before": 4_711}
    for row, movement in zip(shown[3:], ["reopened", "returned", *["new"] * 9], strict=False):
        row |= {"movement": movement, "exposure_before": 0}
    ended = [
        {**dict.fromkeys(names, ""), "merchant_id": MERCHANT, "account_id": ACCOUNT}
        | {"break_id": f"{number:016x}", "order_no": f"A-{number:05d}", "movement": movement}
        | {"currency_before": currency, "exposure_before": amount, "exposure": 0}
        for number, (movement, currency, amount) in enumerate(
            [("matched late", "KWD", 1_234), ("written off", "EUR", 99), ("not seen", "JPY", 500)],
            start=500,
        )
    ]
    return [*shown, *ended]


def example_journals() -> list[dict[str, Any]]:
    """One proposal: a break of the ledger is booked between clearing and sales."""
    shared = {"journal_id": f"{4:016x}-KWD-1", "date": "2026-11-20", "currency": "KWD"}
    shared |= {"merchant_id": MERCHANT, "account_id": ACCOUNT, "order_no": "A-00004"}
    shared |= {"break_id": f"{4:016x}", "text": "missing in ledger A-00004"}
    return [
        {**shared, "account": "1190", "debit": 1_234, "credit": 0},
        {**shared, "account": "4000", "debit": 0, "credit": 1_234},
    ]


def example_instructions() -> list[dict[str, Any]]:
    """Captures and refunds: confirmed, rejected with evil text, in doubt."""
    sent = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
    common = {"source": "orders.csv", "approved_by": "a.okafor", "attempt": 1, "line": 2}
    common |= {"sent_at": sent, "outcome_at": sent}
    names = ("number", "kind", "currency", "amount", "state", "outcome", "message")
    rows = (
        (101, "capture", "EUR", 12_345, "confirmed", "done", ""),
        (102, "capture", "JPY", 5_000, "confirmed", "done", ""),
        (103, "capture", "KWD", 1_234, "rejected", "failed", "=1+1"),
        (5, "refund", "EUR", 5_000_000, "in_doubt", "unknown", "no answer within 30 s"),
        (104, "refund", "EUR", 700, "confirmed", "accepted", ""),
        (105, "cancel", "EUR", 900, "approved", "", ""),
    )
    return [
        {**common, **row, "instruction_id": f"i-{row['number']:04d}"}
        | {"order_no": f"A-{row['number']:05d}", "transaction_id": f"{row['number']:020d}"}
        | {"batch_id": f"b-{row['kind']}"}
        | {"in_doubt_since": sent if row["state"] == "in_doubt" else None}
        for row in (dict(zip(names, cells, strict=True)) for cells in rows)
    ]


@pytest.fixture
def build() -> Build:
    """Makes the night; what is named is replaced."""

    def made(**changes: Any) -> NightFigures:
        return replace(example_night(), **changes)

    return made


@pytest.fixture
def figures(build: Build) -> NightFigures:
    """The night as it stands."""
    return build()


@pytest.fixture(scope="session")
def night_workbook() -> bytes:
    """The example night as a file, for whoever reads it or changes a copy."""
    return content_of(example_night())


@pytest.fixture
def workbook(night_workbook: bytes, tmp_path: Path) -> Path:
    """The example night on disk."""
    path = tmp_path / "night.xlsx"
    path.write_bytes(night_workbook)
    return path


def example_night() -> NightFigures:
    """The whole night."""
    breaks = example_breaks()
    matched = [
        set_row(number, currency, (amount,) * 3, match_id=f"m{number}", rule="order_no")
        for number, (currency, amount) in enumerate(
            [("EUR", 123_456_789), ("JPY", 98_882_101), ("KWD", 33_686_157), ("USD", 1_999)] * 12,
            start=200,
        )
    ]
    matched[0] |= {"order_no": EVIL, "flags": "rounding", "gateway_amount": 123_456_790}
    matched[0] |= {"effect_orders": 1, "effect_ledger": 1, "transaction_id": LONG_ID}
    pending = [
        set_row(
            300, "EUR", (4_500, None, None), expected_side="gateway", due_at="2026-11-22T00:00:00Z"
        )
    ]
    unverified = [set_row(400, "JPY", (880, None, 880), reason="QUERY_FAILED")]
    parts = {"MATCHED": matched, "BREAK": breaks, "PENDING": pending, "UNVERIFIED": unverified}
    return NightFigures(
        merchant_id=MERCHANT,
        account_id=ACCOUNT,
        merchant_name="Northwind & Søn",
        business_date=date(2026, 11, 20),
        run_id="7c1f-2031",
        mode="live",
        as_of=datetime(2026, 11, 21, 0, 0, tzinfo=UTC),
        generated_at=datetime(2026, 11, 21, 1, 58, 11, 5, tzinfo=UTC),
        timezone="Europe/Copenhagen",
        bank_until=date(2026, 12, 4),
        verdict=Verdict.BREAKS_OPEN,
        breaks=frame(BREAK_COLUMNS, breaks),
        effects=frame(EFFECT_COLUMNS, effects_of(breaks)),
        matches=matched_of(frame(MATCH_COLUMNS, matched)),
        pending=frame(PENDING_COLUMNS, pending),
        unverified=frame(UNVERIFIED_COLUMNS, unverified),
        movements=frame(MOVEMENT_COLUMNS, example_movements(breaks)),
        journals=frame(JOURNAL_COLUMNS, example_journals()),
        sides=frame(SIDE_COLUMNS, sides_of(parts)),
        control_totals=example_totals(),
        instructions=frame(INSTRUCTION_SHEET_COLUMNS, example_instructions()),
        batches=frame(
            BATCH_COLUMNS,
            [
                {"batch_id": "b-capture", "kind": "capture", "currency": currency, "rows": 1}
                | {"amount": amount, "confirmed": 1, "rejected": 0, "in_doubt": 0, "not_sent": 0}
                | {"return_status": "1", "body_sha256": "ab" * 32, "sent_at": "2026-11-21T01:05Z"}
                for currency, amount in (("EUR", 12_345), ("JPY", 5_000))
            ],
        ),
        files=(
            SourceFile(SourceKind.ORDERS, "orders-2026-11-20.csv", "0" * 64, 4_096, 62, 60, 1, 1),
            SourceFile(SourceKind.LEDGER, "ledger.csv", "f" * 64, 2_048, 58, 58, 0, 0),
        ),
        rejects=(
            Reject(SourceKind.ORDERS, "orders-2026-11-20.csv", 17, "amount", "not EUR", "@10.5"),
        ),
        attention=(
            Attention(
                what="refund in doubt",
                order_no="A-00005",
                transaction_id=f"{5:020d}",
                currency="EUR",
                amount=5_000_000,
                since=datetime(2026, 11, 21, 1, 5, tzinfo=UTC),
                next_step="No answer within 30 s. Do not send it again; ask the gateway, then "
                "resolve it with `recon resolve`.",
                is_urgent=True,
            ),
        ),
        trend=tuple(
            TrendPoint(date(2026, 11, 6 + night), count)
            for night, count in enumerate([14, 12, 11, 11, 9, 13, 12, 10, 8, 9, 11, 12, 8])
        ),
        opening_breaks=8,
        scope_of_assurance=(
            {"statement": "refunds only the reply confirms", "currency": "EUR", "count": 1}
            | {"amount": 700},
        ),
        unmapped_codes=({"field": "payment_status", "code": "=9", "count": 1},),
        rules_digest="d" * 64,
        history_head="1204:aa55",
        notes=("Reply signatures are not enforced (warn).",),
    )


def example_totals() -> tuple[ControlTotal, ...]:
    """Some proofs, by count and by amount of three exponents; all hold."""
    place = {"merchant_id": MERCHANT, "account_id": ACCOUNT}
    amounts = (("EUR", 130_000), ("JPY", 99_000), ("KWD", 33_688))
    return (
        ControlTotal(
            id="T1",
            name="read = accepted + rejected + skipped",
            currency="",
            measure="count",
            left=62,
            right=62,
            **place,
        ),
        *(
            ControlTotal(
                id="T4",
                name="in scope = matched + pending + broken + unverified",
                currency=currency,
                measure="amount",
                left=amount,
                right=amount,
                **place,
            )
            for currency, amount in amounts
        ),
    )
