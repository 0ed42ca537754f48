"""Statements that the sandbox's banks send: what is planted is found, whatever the format."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.kinds.bank_file import bank_file_of
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.bank_sources import BankSource, together
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.money import parse_signed_minor_units
from recon.model.words import BreakCode, Flag
from recon.sandbox import DEMO_BUSINESS_DATE, SandboxOptions, serving
from recon.sandbox.world.banks import BANKS, DATED_RATES, PAYER, STRANGERS, bank_month
from recon.sandbox.world.records import SettlementLine
from tests.proving import reconcile_proven
from tests.recon.matching.bank.cases import booked

pytestmark = pytest.mark.xdist_group("statements of banks")
DAY = DEMO_BUSINESS_DATE
AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
ACCOUNT = "100042001"
BANK_RULES = {
    bank.name: {
        "iban": bank.iban,
        "currency": bank.currency,
        "accounts": [f"100042/{ACCOUNT}"],
        "counterparty": [PAYER],
    }
    for bank in BANKS
}
RATES = {f"{currency}.EUR": {"on": days} for currency, days in DATED_RATES.items()}
RULES = Rules.of({"bank": BANK_RULES, "rate": RATES}, source="test")
POPULATIONS = [(7, 300), (8, 900), (42, 2_000)][: int(os.environ.get("POPULATIONS_PLAYED", "1"))]
"""Seed and orders of the sandboxes that send them; `make test-truths` plays all."""


@pytest.fixture(scope="module", params=POPULATIONS)
def files(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Every file of the demo's business date."""
    seed, orders = request.param
    with serving(SandboxOptions(orders=orders, seed=seed)) as running:
        folder = f"{running.base_url}/_sandbox/files/{ACCOUNT}/{DAY}/"
        names = re.findall(rf"/{DAY}/([^/\"]+)\"", httpx.get(folder).text)
        return {name: httpx.get(f"{folder}{name}").text for name in names}


def read(name: str, text: str) -> BankSource:
    """A file as its reader gives it."""
    return bank_file_of(FileBytes(Path(name), text.encode(), name), rules=RULES).source


def settled(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines of both settlement files."""
    lines: list[dict[str, Any]] = []
    for name in (f"settlement-before-{DAY}.csv", f"settlement-{DAY}.csv"):
        for number, row in enumerate(csv.DictReader(io.StringIO(files[name])), start=2):
            amounts = {
                kind: parse_signed_minor_units(row[kind], currency=row["currency"])
                for kind in ("gross", "fee", "net")
            }
            lines.append({**row, **amounts, "source": name, "line": number})
    return lines


def judged(files: Mapping[str, str], bank: BankSource) -> Reconciliation:
    """What the engine makes of settlement and statements."""
    lines = settled(files)
    sources = Sources(
        orders=frame_of([], columns=ORDER_COLUMNS),
        gateway=frame_of([], columns=GATEWAY_COLUMNS),
        ledger=frame_of(booked(lines), columns=LEDGER_COLUMNS),
        instructions=None,
        settlement=frame_of(lines, columns=SETTLEMENT_COLUMNS),
        bank=bank,
    )
    return reconcile_proven(sources, rules=RULES, as_of=AS_OF)


def statements(files: Mapping[str, str], form: str) -> BankSource:
    """The statements of all banks, in this format where a bank sends it."""
    parts = []
    for bank in BANKS:
        stem = f"statements-{bank.name}-{DAY}"
        name = f"{stem}.{form}" if f"{stem}.{form}" in files else f"{stem}.csv"
        parts.append(read(name, files[name]))
    return together(parts)


@pytest.fixture(scope="module")
def results(files: Mapping[str, str]) -> Mapping[str, Reconciliation]:
    """Format -> what the engine makes of the statements in it."""
    return {form: judged(files, statements(files, form)) for form in ("xml", "csv", "sta")}


def planted(files: Mapping[str, str]) -> Mapping[str, Any]:
    """What the answer key says of banks."""
    key: dict[str, Any] = json.loads(files[f"answer-key-{DAY}.json"])
    return dict(key["bank"])


def of_bank(result: Reconciliation) -> Counter[tuple[str, int]]:
    """Code and effect of every break of the bank."""
    breaks = result.breaks[result.breaks["effect_bank"].notna()]
    rows = zip(breaks["code"].tolist(), breaks["effect_bank"].tolist(), strict=True)
    return Counter((str(code), int(effect)) for code, effect in rows)


def expected(files: Mapping[str, str]) -> Counter[tuple[str, int]]:
    """The same from the answer key."""
    return Counter(
        (one["code"], parse_signed_minor_units(one["effect_bank"], currency=one["currency"]))
        for one in planted(files)["breaks"]
    )


def test_what_is_planted_is_found_whatever_the_format(
    files: Mapping[str, str], results: Mapping[str, Reconciliation]
) -> None:
    """Every code with its effect, none too much, T15 to T17 hold, one digest of all formats."""
    digests = set()
    for form, result in results.items():
        assert of_bank(result) == expected(files), form
        totals = [one for one in result.control_totals if one.id in {"T15", "T16", "T17"}]
        assert {one.id for one in totals} == {"T15", "T16", "T17"}
        assert [one for one in totals if not one.passed] == []
        digests.add(result.digest)
    assert len(digests) == 1
    assert {*results} == {"xml", "csv", "sta"}


@pytest.mark.parametrize("currency", ["CHF", "ISK", "BHD", "XAF"])
def test_a_currency_without_a_bank_is_exchanged(currency: str) -> None:
    """Whatever the sandbox was paid in: two of them, one with what was ordered, one silently."""
    lines = [
        SettlementLine(
            f"SET-{number}",
            *("100042", ACCOUNT, "2026-11-16", "payout", "", "", ""),
            *(currency, 5_000_000, 0, 5_000_000),
        )
        for number in range(4)
    ]
    month = bank_month(lines, day=date(2026, 11, 20), seed=1)

    of_payouts = {each.finding for each in month.planted if each.about.startswith("SET-")}
    assert of_payouts >= {Flag.EXCHANGED, BreakCode.BANK_FX_DIFFERENCE}


def test_flags_of_what_matches_are_in_the_key(
    files: Mapping[str, str], results: Mapping[str, Reconciliation]
) -> None:
    """Joined credits, charges, exchanges and what came again match with the flag that is told."""
    flags = results["xml"].matches["flags"].tolist()
    told = Counter(one["flag"] for one in planted(files)["matched_with_flag"])
    told["joined"] //= 2  # one result of two batches
    shown = Counter(flag for each in flags for flag in str(each).split(";") if flag in told)
    assert shown == +told


@pytest.mark.parametrize("word", ["repeated", "corrected"])
def test_a_statement_that_comes_again_counts_once(files: Mapping[str, str], word: str) -> None:
    """The same breaks as without it: a repeat is one statement, a correction the newer one."""
    bank = BANKS[0].name
    others = [f"statements-{one.name}-{DAY}.csv" for one in BANKS[1:]]
    name = f"statements-{bank}-{DAY}-{word}.xml"
    result = judged(files, together([read(each, files[each]) for each in (name, *others)]))
    assert of_bank(result) == expected(files)


def test_a_lost_statement_leaves_the_bank_covered_to_the_gap(files: Mapping[str, str]) -> None:
    """Nothing behind the gap counts, and it is said by name."""
    name = f"statements-{BANKS[0].name}-{DAY}-lost.xml"
    result = judged(files, read(name, files[name]))
    assert [one for one in result.not_covered if "gap behind 2026-11-12" in one]
    assert "PAYOUT_NOT_AT_BANK" not in {code for code, _ in of_bank(result)}


def test_nothing_of_other_people_is_in_a_result(
    files: Mapping[str, str], results: Mapping[str, Reconciliation]
) -> None:
    """Names and texts of entries that are not ours stand in no frame, whatever is asked."""
    whole = "".join(files[name] for name in files if name.startswith("statements-"))
    result = results["csv"]
    shown = "".join(
        frame.to_csv() for frame in (result.breaks, result.matches, result.pending, result.effects)
    )
    for party, text in STRANGERS:
        assert party in whole
        assert party not in shown
        assert text not in shown
