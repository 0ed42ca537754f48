"""Months made from the truth: every break of the bank found once, none too much, to the unit."""

import os
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.config.rules import Rules
from recon.files.reader import bank_file
from recon.matching.frames.bank_sources import together
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Sources,
    frame_of,
)
from tests.proving import reconcile_proven
from tests.recon.matching.bank.cases import booked
from tests.recon.matching.bank.truth import IBAN, RATES, truth_of
from tests.recon.matching.bank.writing import as_camt, as_csv, as_mt940

FEW = 4
"""Months that have every code among them."""
SEEDS = int(os.environ.get("BANK_SEEDS", FEW))
"""Months that are played; `make test-truths` plays more, BANK_SEEDS=250 many."""
AS_OF = datetime(2026, 11, 28, tzinfo=UTC)
RULES = Rules.of(
    {
        "bank": {
            "main": {
                "iban": IBAN,
                "currency": "EUR",
                "accounts": ["M/A"],
                "counterparty": ["Gateway"],
            }
        },
        "rate": RATES,
    },
    source="test",
)


def read(files, folder):
    """The statements as their reader gives them."""
    parts = []
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        with bank_file(path, rules=RULES) as read:
            parts.append(read.source)
    return together(parts)


def classified(truth, bank, *, chance):
    """What the engine makes of the month; the settlement in any order."""
    lines: list[dict[str, Any]] = []
    for batch, day, currency, amount in truth.payouts:
        row = {"batch_id": batch, "merchant_id": "M", "account_id": "A", "currency": currency}
        row |= {"settled_on": day.isoformat(), "gross": amount, "fee": 0, "net": amount}
        row |= {"source": "s.csv", "line": 2}
        lines += [{**row, "entry_type": "adjustment"}, {**row, "entry_type": "payout"}]
    chance.shuffle(lines)
    sources = Sources(
        orders=frame_of([], columns=ORDER_COLUMNS),
        gateway=frame_of([], columns=GATEWAY_COLUMNS),
        ledger=frame_of(booked(lines), columns=LEDGER_COLUMNS),
        instructions=None,
        settlement=frame_of(lines, columns=SETTLEMENT_COLUMNS),
        bank=bank,
    )
    return reconcile_proven(sources, rules=RULES, as_of=AS_OF)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_planted_break_is_found_once_whatever_the_format(seed, tmp_path):
    """Code, id and effect of each; no other; every total holds; one digest of all formats."""
    truth, chance = truth_of(seed), random.Random(seed)
    writers = [as_camt, as_csv] if truth.in_full else [as_camt, as_csv, as_mt940]
    digests = set()
    for write in writers:
        folder = tmp_path / write.__name__
        folder.mkdir()
        result = classified(truth, read(write(truth, chance=chance), folder), chance=chance)
        breaks = result.breaks[result.breaks["effect_bank"].notna()]
        names = ("code", "break_id", "effect_bank")
        found = Counter(zip(*(breaks[name].tolist() for name in names), strict=True))
        assert found == Counter(truth.key), write.__name__
        totals = [one for one in result.control_totals if one.id in {"T15", "T16", "T17"}]
        assert [one for one in totals if not one.passed] == []
        assert {one.id for one in totals} == {"T15", "T16", "T17"}
        digests.add(result.digest)
    assert len(digests) == 1
