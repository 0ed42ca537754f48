"""What of a bank is kept: ours whole, of others their sum."""

import hashlib
import random
from dataclasses import replace

import pytest

from recon.config.rules import Rules
from recon.matching.bank.receipts import lists_of_ours, stored_of
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    DETAILS,
    BankSource,
    BankStatement,
    content_digest,
)
from recon.matching.frames.sources import frame_of
from tests.recon.matching.bank.cases import IBAN

BANK = {"iban": IBAN, "currency": "EUR", "accounts": ["M/A"], "counterparty": ["Gateway Ltd"]}
RULES = Rules.of({"bank": {"main": BANK}}, source="test")


def source_of(*entries, form="statement"):
    """A statement of these entries."""
    plain = {"statement": 0, "part": 0, "booked_on": "2026-11-20", "value_on": "2026-11-20"}
    plain |= {"currency": "EUR", "status": "booked", "charges": 0}
    rows = [{"entry_no": f"E{at}", **plain, **one} for at, one in enumerate(entries)]
    moved = sum(one["amount"] for one in rows if not one["part"])
    statement = BankStatement(
        *("b.xml", "s", IBAN, "1", "EUR", "2026-11-20", "2026-11-20", form), booked=moved
    )
    return BankSource(frame_of(rows, columns=BANK_ENTRY_COLUMNS), (statement,))


def kept(source, *batches, listed=()):
    """What is kept of it."""
    return stored_of(source, batches=batches, listed=listed, rules=RULES)


def test_what_names_us_or_comes_from_the_gateway_is_kept_and_nothing_else():
    """By its other side, by a batch; the rest is a sum."""
    source = source_of(
        {"amount": 100, "counterparty": "GATEWAY LTD London", "text": "no batch"},
        {"amount": 200, "counterparty": "Clearing", "text": "payment batch-00001 of today"},
        {"amount": -70, "counterparty": "Landlord", "text": "rent"},
        {"amount": 5, "counterparty": "Gateway Ltdx", "text": "xBATCH-00001"},
    )
    less = kept(source, "BATCH-00001")
    assert less.entries["amount"].tolist() == [100, 200]
    assert less.statements[0].others == -65
    assert less.statements[0].booked == source.statements[0].booked


def test_a_short_or_plain_number_needs_the_gateway_beside_it():
    """Other people's entries hold numbers, too."""
    source = source_of({"amount": 100, "text": "1234567"}, {"amount": 1, "text": "AB1"})
    assert kept(source, "1234567", "AB1").entries.empty


def test_of_an_entry_that_is_partly_ours_the_others_have_no_text():
    """Amounts are needed, words are not."""
    source = source_of(
        {"amount": 300, "text": "collected"},
        {"entry_no": "E0", "part": 1, "amount": 100, "text": "BATCH-00001"},
        {"entry_no": "E0", "part": 2, "amount": 200, "text": "Mrs Canary"},
    )
    rows = kept(source, "BATCH-00001").entries
    assert rows["amount"].tolist() == [300, 100, 200]
    assert rows["text"].tolist() == ["", "BATCH-00001", ""]


def test_an_entry_whose_payments_a_notification_lists_is_kept():
    """The statement has the sum alone, the list came by itself."""
    lists = source_of(
        {"amount": 300, "reference": "COLLECT-7"},
        {"entry_no": "E0", "part": 1, "amount": 300, "text": "BATCH-00001"},
        form=DETAILS,
    )
    listed = lists_of_ours(kept(lists, "BATCH-00001"))
    entry = {"amount": 300, "reference": "COLLECT-7", "text": "collected"}
    source = source_of(entry, {**entry, "amount": 301})
    assert kept(source, "BATCH-00001", listed=listed).entries["amount"].tolist() == [300]
    assert kept(source, "BATCH-00001").entries.empty


def test_a_statement_says_its_content_without_its_entries():
    """Two readings of one statement have one digest, whatever was in scope."""
    source = source_of({"amount": 100, "text": "BATCH-00001"}, {"amount": 5})
    turned = replace(source, entries=source.entries.iloc[::-1])
    digests = {
        kept(one, *batches).statements[0].content
        for one in (source, turned)
        for batches in ((), ("BATCH-00001",))
    }
    assert len(digests) == 1
    less = kept(source, "BATCH-00001")
    assert {kept(less).statements[0].content} == digests


@pytest.mark.parametrize("size", [0, 1, 300])
def test_what_entries_say_is_one_digest_in_any_order(size):
    """Of booked entries alone, as lines of text in their order: nights that are kept have it."""
    chance = random.Random(size)
    rows = [
        {
            "statement": 0,
            "charges": 0,
            "part": int(at % 7 == 3),
            "amount": chance.randrange(-500, 500),
        }
        | {"status": chance.choice(("booked", "booked", "pending"))}
        | {name: f"2026-11-{chance.randrange(1, 30):02}" for name in ("booked_on", "value_on")}
        for at in range(size)
    ]
    counted = [row for row in rows if not row["part"] and row["status"] == "booked"]
    lines = sorted(f"{row['booked_on']} {row['value_on']} {row['amount']}" for row in counted)
    chance.shuffle(rows)
    entries = frame_of(rows, columns=BANK_ENTRY_COLUMNS)
    expected = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert content_digest(entries) == expected
