"""Settlement, books and statements of the sandbox, held against one another by the demo's rules."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.cli.demo_folder import BANK_FORMS, rules_toml
from recon.cli.demo_work import ACCOUNT
from recon.model.figures import NightFigures
from recon.model.words import BreakCode
from recon.sandbox import DEMO_BUSINESS_DATE, SandboxOptions, serving
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files

DAY = DEMO_BUSINESS_DATE
DEMO = (2_000, 42)
"""Orders and seed of `recon demo`."""
PATIENCE_SECONDS = 120
"""For the files of a date, which are made when the first is asked for."""
GATEWAY_HEADER = (
    "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,"
    "reference_no,transaction_date\n"
)
IN_BOOKS_AND_BANKS = {
    BreakCode.HELD_BACK,
    BreakCode.FEE_NOT_BOOKED,
    BreakCode.FEE_BOOKED_DIFFERS,
    BreakCode.RESERVE_NOT_BOOKED,
    BreakCode.RESERVE_BOOKED_DIFFERS,
    BreakCode.PAYOUT_NOT_BOOKED,
    BreakCode.PAYOUT_AMOUNT_MISMATCH,
    BreakCode.LEDGER_PAYOUT_ONLY,
    BreakCode.PAYOUT_TWICE_AT_BANK,
    BreakCode.PAYOUT_RETURNED,
    BreakCode.BANK_AMOUNT_DIFFERS,
    BreakCode.BANK_FX_DIFFERENCE,
    BreakCode.PAYOUT_NOT_AT_BANK,
    BreakCode.BANK_RECEIPT_UNKNOWN,
    BreakCode.AMBIGUOUS_MATCH,
    BreakCode.BANK_NOT_BOOKED,
}
Found = Counter[tuple[str, str, str]]
"""Code, effect on the books, effect at the bank."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer key, and what `recon reconcile` makes of the files beside it."""

    demo: bool
    key: Mapping[str, Any]
    breaks: tuple[Mapping[str, str], ...]
    """Those of batches, fees, reserves and arrivals: of no order."""
    failed: tuple[str, ...]
    """Control totals that do not tie."""


@pytest.fixture(scope="module", params=[DEMO, (900, 8), (300, 7), (60, 42)], ids=str)
def compared(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Compared:
    """A sandbox's files of the demo's business date, through the demo's rules."""
    orders, seed = request.param
    folder: Path = tmp_path_factory.mktemp("files")
    with (
        serving(SandboxOptions(orders=orders, seed=seed)) as running,
        httpx.Client(timeout=PATIENCE_SECONDS) as http,
    ):
        site = f"{running.base_url}/_sandbox/files/{ACCOUNT.account_id}/{DAY}/"
        for name in re.findall(rf"/{DAY}/([^/\"]+)\"", http.get(site).text):
            (folder / name).write_bytes(http.get(site + name).content)
    (folder / "rules.toml").write_text(rules_toml(ACCOUNT))
    (folder / "gateway.csv").write_text(GATEWAY_HEADER)
    reconcile_files(
        PlainFilesRequest(
            orders=(*folder.glob("orders-*.csv"),),
            gateway=(folder / "gateway.csv",),
            ledger=(folder / f"ledger-{DAY}.csv",),
            settlement=(
                folder / f"settlement-before-{DAY}.csv",
                folder / f"settlement-{DAY}.csv",
            ),
            bank=(
                *(folder / f"statements-{name}-{DAY}.{BANK_FORMS[name]}" for name in BANK_FORMS),
            ),
            rules_file=folder / "rules.toml",
            as_of=DAY,
            out=folder / "out",
        ),
        clock=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        write_workbook=no_workbook,
    )
    summary = json.loads((folder / "out" / "summary.json").read_text())
    return Compared(
        request.param == DEMO,
        json.loads((folder / f"answer-key-{DAY}.json").read_text()),
        tuple(row for row in rows_in(folder / "out" / "breaks.csv") if not row["order_no"]),
        tuple(total["id"] for total in summary["control_totals"] if not total["passed"]),
    )


def no_workbook(_: NightFigures, path: Path) -> Path:
    """Stands in for the workbook, which says nothing more than the files."""
    path.write_bytes(b"")
    return path


def rows_in(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a result file."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def cell(amount: str) -> str:
    """An amount without the decimals that say nothing; a blank is none."""
    return str(Decimal(amount or "0").normalize() + 0)


def of_key(key: Mapping[str, Any]) -> Found:
    """Every planted break of books and banks."""
    found: Found = Counter()
    for planted in (*key["held_back"], *key["books"], *key["bank"]["breaks"]):
        books, bank = planted.get("effect_ledger", ""), planted.get("effect_bank", "")
        found[planted["code"], cell(books), cell(bank)] += 1
    return found


def test_what_is_planted_into_books_and_banks_is_found_and_nothing_else(
    compared: Compared,
) -> None:
    """Every break with both effects, from a night of 60 orders to the demo's."""
    found: Found = Counter(
        (row["code"], cell(row["effect_ledger"]), cell(row["effect_bank"]))
        for row in compared.breaks
    )
    assert found == of_key(compared.key)
    assert compared.failed == ()


def test_the_demo_shows_every_code_of_books_and_banks(compared: Compared) -> None:
    """What rules.md names of settlement, fees, reserves and banks stands in its answer key."""
    planted = {code for code, *_ in of_key(compared.key)}
    assert planted & set(compared.key["not_shown"]) == set()
    if compared.demo:
        assert planted == IN_BOOKS_AND_BANKS
