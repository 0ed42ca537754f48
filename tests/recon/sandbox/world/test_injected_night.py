import json
from datetime import date
from functools import cache

import pytest

from recon.model.terms import BreakCode, Flag
from recon.sandbox.options import CLOCK_START, SandboxOptions
from recon.sandbox.population import populate
from recon.sandbox.terms import load_terms
from recon.sandbox.world.cash import bank_month
from recon.sandbox.world.night import (
    NOT_DISPLAYED,
    Account,
    LedgerLine,
    SettlementLine,
    add_to_ledger_table,
    answer_key,
    file_text,
    inbox_texts,
    ledger_lines,
    payments_of,
    sample_night,
)

ACCOUNT = Account("100042", "100042001", "100042002")
BUSINESS_DATE = date(2026, 11, 20)


@cache
def seeded_payments(orders=2000):
    """What truly happened right after a sandbox's start, payment by payment, without one."""
    options = SandboxOptions(orders=orders, seed=42)
    _, effects = populate(options, terms=load_terms(), now=int(CLOCK_START.timestamp()))
    return payments_of(effects, now=CLOCK_START)


def night_of(payments, *, seed=42):
    """The demo's night over these payments."""
    return sample_night(payments, account=ACCOUNT, business_date=BUSINESS_DATE, seed=seed)


@pytest.fixture
def night():
    """The demo's own night."""
    return night_of(seeded_payments())


def written(night):
    """Everything the night writes, by name."""
    key = {"answer-key.json": json.dumps(answer_key(night))}
    return inbox_texts(night) | {"ledger.csv": file_text(LedgerLine, ledger_lines(night))} | key


def test_every_code_is_planted_or_has_a_reason(night):
    found = [scenario.expected.finding for scenario in night.scenarios if scenario.expected]
    injected = {finding for finding in found if isinstance(finding, BreakCode)}

    assert injected | set(NOT_DISPLAYED) == set(BreakCode)
    assert injected & set(NOT_DISPLAYED) == set()


def test_any_size_makes_a_night():
    """A population too small for every discrepancy still makes a night with files and a key."""
    files = written(night_of(seeded_payments(20)))

    assert len(json.loads(files["answer-key.json"])["breaks"]) >= 3


def test_the_ledger_behind_sql_has_each_entry_once(night, tmp_path):
    ledger = file_text(LedgerLine, ledger_lines(night))
    path = tmp_path / "ledger.sqlite"
    header, first, *_ = ledger.splitlines(keepends=True)
    assert add_to_ledger_table(header + first, path=path) == header + first

    assert add_to_ledger_table(ledger, path=path) == ledger
    assert add_to_ledger_table(ledger, path=path) == ledger


@pytest.mark.parametrize("currency", ["CHF", "ISK", "BHD", "XAF"])
def test_a_currency_without_a_bank_is_exchanged(currency):
    """Whatever the sandbox was paid in: two of them, one with what was ordered, one silently."""
    lines = [
        SettlementLine(
            f"SET-{number}",
            *("100042", "100042001", "2026-11-16", "payout", "", "", ""),
            *(currency, 5_000_000, 0, 5_000_000),
        )
        for number in range(4)
    ]
    month = bank_month(lines, day=date(2026, 11, 20), seed=1)

    of_payouts = {each.finding for each in month.injected if each.about.startswith("SET-")}
    assert of_payouts >= {Flag.EXCHANGED, BreakCode.BANK_FX_DIFFERENCE}
