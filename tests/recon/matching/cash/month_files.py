"""The files of a month made from the truth, as their reader gives them."""

import csv
import random
from pathlib import Path
from typing import Any

from recon.config.rules import Rules
from recon.matching.frames.sources import Sources
from recon.model.money import format_minor_units
from recon.model.terms import Reject, SourceKind
from tests.recon.files.whole_read import read_table
from tests.recon.matching.cash.truth import MERCHANT, Truth

AMOUNTS = frozenset({"amount", "gross", "fee", "net"})
BLANK = ("order_no", "transaction_id", "reference_no")


def month_of(truth: Truth, *, chance: random.Random, folder: Path) -> tuple[Sources, Rules]:
    """The month as CSV files tell it, its rows in any order."""
    states = {"3000": "paid", "4100": "refunded"}
    tables = {"ledger": {"fees_per": truth.fees_per}, "payment_status": states}
    rules = Rules.of(tables, source="the truth")
    frames: dict[str, Any] = {}
    for kind, rows in truth.rows.items():
        names = sorted({name for row in rows for name in row} | {*BLANK})
        path = folder / f"{kind}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for row in chance.sample(rows, len(rows)):
                shown = {
                    name: format_minor_units(row[name], currency=row["currency"])
                    for name in AMOUNTS & row.keys()
                }
                writer.writerow([str({**row, **shown}.get(name, "")) for name in names])
        read = read_table(path, kind=SourceKind(kind), rules=rules)
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
