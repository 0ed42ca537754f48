import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import SourceKind
from recon.proof import books_bridge
from recon.steps.night.report import Workbooks

OTHER, NOBODYS = "100042002", "100042777"


def _night(merchant: Any, **more: Any) -> NightFigures:
    """The figures of a night's report, as they were handed to the writer."""
    plain, told = merchant.workbooks(), []

    def write(figures: NightFigures, path: Path) -> Path:
        told.append(figures)
        written: Path = plain.write(figures, path)
        return written

    merchant.night(workbooks=Workbooks(write=write, totals=plain.totals), **more)
    return told[-1]


def _drop(merchant: Any, name: str, *rows: Mapping[str, str]) -> None:
    """Put an order file with instants of change into the inbox."""
    with (merchant.inbox / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "updated_at"], restval="")
        writer.writeheader()
        writer.writerows(rows)


def _come_to(figures: NightFigures, kind: SourceKind) -> int:
    accepted = sum(file.rows_accepted for file in figures.files if file.kind == kind)
    return accepted + sum(figures.bridge[kind].values())


def _compared(figures: NightFigures, kind: SourceKind) -> int:
    sides = figures.sides
    return int(sides[sides["source"].eq(kind.value)]["count"].sum())


def test_every_row_that_was_accepted_has_a_way_to_the_comparison(merchant: Any) -> None:
    """Repeats, newer rows, other accounts, old orders and earlier files: each has its step."""
    config = merchant.folder / "config" / "merchants.toml"
    config.write_text(config.read_text() + config.read_text().replace("100042001", OTHER))
    first, second, third, fourth = map(merchant.order, merchant.payments("captured")[:4])
    older = {**second, "updated_at": "2026-11-20T08:00:00+00:00"}
    newer = {**second, "updated_at": "2026-11-20T09:00:00+00:00", "status": "refunded"}
    _drop(merchant, "a.csv", first, first, older, third)
    _drop(
        merchant,
        "b.csv",
        third | {"order_no": "X-3", "ordered_at": "2025-01-01T00:00:00+00:00"},
        newer,
        third | {"account_id": OTHER, "order_no": "X-1"},
        third | {"account_id": NOBODYS, "order_no": "X-2"},
        {name: name for name in third},
    )
    figures = _night(merchant)

    steps = figures.bridge[SourceKind.ORDERS]
    assert {step: steps[step] for step in books_bridge.STEPS} == {
        books_bridge.REPEATS: -1,
        books_bridge.REPLACED: -1,
        books_bridge.OTHER_ACCOUNTS: -1,
        books_bridge.UNDECLARED: -1,
        books_bridge.BEFORE_WINDOW: -1,
        books_bridge.KNOWN_BEFORE: 0,
        books_bridge.FROM_OTHERS: 0,
        books_bridge.SET_ASIDE: 0,
    }
    assert _come_to(figures, SourceKind.ORDERS) == _compared(figures, SourceKind.ORDERS) == 3
    assert _come_to(figures, SourceKind.LEDGER) == _compared(figures, SourceKind.LEDGER)
    assert any(f"(100042/{NOBODYS})" in note for note in figures.notes)
    # A header inside the file names an account that no night is of: it is told here.
    assert [(reject.line, reject.account_id) for reject in figures.rejects] == [(6, "")]

    merchant.wait(hours=24)
    _drop(merchant, "c.csv", fourth)
    figures = _night(merchant, date="2026-11-21")

    assert figures.bridge[SourceKind.ORDERS][books_bridge.KNOWN_BEFORE] == 3
    assert _come_to(figures, SourceKind.ORDERS) == _compared(figures, SourceKind.ORDERS) == 4
