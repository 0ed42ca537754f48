"""Months made from the truth: every break of fees, reserves and held-back money, none too much."""

import csv
import io
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.model.money import format_minor_units
from recon.model.terms import Reject, SourceKind
from tests.proving import reconcile_proven
from tests.recon.files.whole_read import read_table
from tests.recon.matching.cash.truth import MERCHANT, Found, Row, Truth, truth_of

FEW = range(35, 38)
"""Months that have every code among them."""
SEEDS = range(int(os.environ["FEES_SEEDS"])) if "FEES_SEEDS" in os.environ else FEW
"""Months that are played; `make test-truths` plays more, FEES_SEEDS=250 many."""
AS_OF = datetime(2026, 11, 28, tzinfo=UTC)
CODES = {
    *("FEE_NOT_BOOKED", "FEE_BOOKED_DIFFERS", "RESERVE_NOT_BOOKED", "RESERVE_BOOKED_DIFFERS"),
    *("HELD_BACK", "UNEXPECTED_RECEIPT", "PAYOUT_NOT_BOOKED", "PAYOUT_AMOUNT_MISMATCH"),
    *("LEDGER_PAYOUT_ONLY", "CURRENCY_MISMATCH"),
}
KINDS = {kind: SourceKind(kind) for kind in ("orders", "gateway", "ledger", "settlement")}
OPTIONAL = {
    "ledger": ("transaction_id", "reference_no"),
    "settlement": ("order_no", "transaction_id", "reference_no"),
}
AMOUNTS = frozenset({"amount", "gross", "fee", "net"})


def texts(rows: Iterable[Row], *, kind: str) -> list[dict[str, str]]:
    """The rows as files have them: every column, amounts with the decimals of their currency."""
    names = sorted({name for row in rows for name in row} | {*OPTIONAL.get(kind, ())})
    return [
        {
            name: format_minor_units(row[name], currency=row["currency"])
            if name in AMOUNTS
            else str(row.get(name, ""))
            for name in names
        }
        for row in rows
    ]


def as_csv(rows: list[dict[str, str]], path: Path) -> Path:
    """A CSV file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=[*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    path = path.with_suffix(".csv")
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


def as_parquet(rows: list[dict[str, str]], path: Path) -> Path:
    """A Parquet file of texts."""
    path = path.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


FORMATS: tuple[Callable[[list[dict[str, str]], Path], Path], ...] = (as_csv, as_parquet)


def month_of(
    truth: Truth, write: Any, *, chance: random.Random, folder: Path
) -> tuple[Sources, Rules]:
    """The month as files tell it, its rows in any order."""
    rules = Rules.of(
        {"ledger": {"fees_per": truth.fees_per}, "payment_status": STATES}, source="the truth"
    )
    frames: dict[str, Any] = {}
    for kind, label in KINDS.items():
        rows = texts(chance.sample(truth.rows[kind], len(truth.rows[kind])), kind=kind)
        path = write(rows, folder / kind)
        read = read_table(path, kind=label, rules=rules)
        assert not read.rejects, read.rejects[0]
        frames[kind] = read.frame
    rejects = tuple(
        Reject(
            *(SourceKind.SETTLEMENT, "other.csv", 9, "net", "not an amount", "x"),
            merchant_id=MERCHANT,
            account_id=account,
            batch_id=batch,
            currency=currency,
        )
        for account, batch, currency in truth.unreadable
    )
    return Sources(**frames, instructions=None, rejects=rejects), rules


def classified(truth: Truth, write: Any, *, chance: random.Random, folder: Path) -> Reconciliation:
    """What the engine makes of the month."""
    sources, rules = month_of(truth, write, chance=chance, folder=folder)
    return reconcile_proven(sources, rules=rules, as_of=AS_OF)


STATES = {"3000": "paid", "4100": "refunded"}


def found(result: Reconciliation) -> Counter[Found]:
    """Every break of the result."""
    names = ("code", "break_id", "effect_ledger", "exposure", "flags")
    rows = zip(*(result.breaks[name].tolist() for name in names), strict=True)
    return Counter(Found(*row) for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_planted_break_is_found_once_whatever_the_format(seed: int, tmp_path: Path) -> None:
    """Code, id, effect and exposure of each; no other; every total holds; one digest."""
    truth, chance, digests = truth_of(seed), random.Random(seed), set()
    for write in FORMATS:
        folder = tmp_path / write.__name__
        folder.mkdir()
        result = classified(truth, write, chance=chance, folder=folder)
        assert found(result) == Counter(truth.key), (write.__name__, truth.told)
        assert [total for total in result.control_totals if not total.passed] == []
        assert {"T11", "T18", "T19"} <= {total.id for total in result.control_totals}
        digests.add(result.digest)
    assert len(digests) == 1
    if "FEES_COUNTS" in os.environ:
        counts = json.dumps(Counter(row.code for row in truth.key))
        with Path(os.environ["FEES_COUNTS"]).open("a") as file:
            file.write(counts + "\n")


def test_every_code_is_among_the_months() -> None:
    """A code that no month has is proven by none."""
    assert {row.code for seed in FEW for row in truth_of(seed).key} == CODES
