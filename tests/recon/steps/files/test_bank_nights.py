"""Statements of a bank in live nights: read once, in scope alone, carried from night to night."""

import csv
import os
import random
from pathlib import Path

import pytest

from recon.files.inbox.arrived_files import inbox as waiting_in
from recon.files.kinds.bank_file import ENDINGS
from recon.model.terms import Verdict
from recon.steps.admin.doctor import checks
from recon.steps.admin.housekeeping import housekeeping
from recon.steps.compare.rebuild import rebuild_night
from tests.recon.steps.files.test_settlement_files import (
    booked,
    declare,
    line,
    paid_out,
    place,
    send,
    stored,
)

IBAN = "DE89370400440532013000"
RULES = """
[bank."main"]
iban = "{iban}"
currency = "EUR"
accounts = {accounts}
counterparty = ["Gateway Ltd"]

[journal]
"""
FOLDER = """
[bank."main"]
inbox = "{inbox}"
"""
SECOND, THIRD = "2026-11-23", "2026-11-24"
COLUMNS = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text"),
)
OTHERS = "Rent of Mrs Example-Canary"
"""What stands in an entry that is nobody's business here."""


@pytest.fixture
def banking(merchant):
    """A merchant with settlement files and a bank."""
    place(merchant).mkdir()
    inbox(merchant).mkdir()
    declare(merchant)
    name_bank(merchant)
    return merchant


def inbox(merchant):
    found: Path = merchant.folder / "bank"
    return found


def name_bank(merchant, *more):
    config = merchant.folder / "config"
    accounts = str(["100042/100042001", *more]).replace("'", '"')
    rules = config / "rules.toml"
    text = RULES.format(iban=IBAN, accounts=accounts)
    rules.write_text(rules.read_text() + text.removesuffix("\n[journal]\n"))
    merchants = config / "merchants.toml"
    merchants.write_text(merchants.read_text() + FOLDER.format(inbox=inbox(merchant)))


def entry(amount, text="", *, who="Gateway Ltd", on):
    return {"amount": amount, "text": text, "counterparty": who, "booked_on": on, "value_on": on}


def tell(merchant, number, *entries, day, opening, closing, iban=IBAN):
    head = {"iban": iban, "statement_no": str(number), "from_date": day, "to_date": day}
    head |= {"opening": opening, "closing": closing, "currency": "EUR"}
    rows = [{**head, **one, "entry_no": f"{at}"} for at, one in enumerate(entries, start=1)]
    path = inbox(merchant) / f"statement-{number}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows or [head])
    return path


def sale(merchant):
    (payment,) = booked(merchant, 1)
    settled = line(payment, batch_id="BATCH-0001")
    send(merchant, "S1.csv", settled, paid_out(settled))
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        ledger.write(
            f"P-1,100042,100042001,BATCH-0001,payout,EUR,{payment.amount},2026-11-20T12:00:00Z\n"
        )
    return payment


def sealed(merchant):
    frames = stored(merchant).bank
    return {name: frame.to_dict("records") for name, frame in frames.items()}


@pytest.mark.parametrize("ending", ["sta", "940", "mt940", "swi", "txt"])
def test_an_inbox_of_a_bank_takes_what_banks_send(tmp_path, ending):
    """An MT940 file is taken by its ending; an order file of that ending is left where it is."""
    (tmp_path / f"s.{ending}").write_text("")
    assert [path.suffix for path in waiting_in(tmp_path, endings=ENDINGS).files] == [f".{ending}"]
    assert waiting_in(tmp_path).files == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"day": "2026-12-24"}, "after the business date"),
        ({"iban": "DE02120300000000202051"}, "no [bank] of the rules"),
    ],
)
def test_a_statement_that_cannot_count_is_named(banking, change, told):
    sale(banking)
    day = change.pop("day", "2026-11-20")
    tell(banking, 3, day=day, opening="5.00", closing="5.00", **change)
    assert banking.night() is Verdict.INCOMPLETE
    said = [one for one in stored(banking).not_covered if "statement 3" in one]
    assert len(said) == 1
    assert told in said[0]


def test_a_night_can_be_rebuilt_after_later_statements(banking):
    payment = sale(banking)
    ours = entry(payment.amount, "BATCH-0001", on="2026-11-20")
    tell(banking, 1, ours, day="2026-11-20", opening="0.00", closing=payment.amount)
    banking.night()
    run = banking.newest()
    amount = payment.amount
    tell(banking, 2, day="2026-11-23", opening=amount, closing=amount)
    banking.wait(hours=72)
    banking.night(date=SECOND)
    with banking.environment() as environment:
        assert rebuild_night(run.run_id, out=None, environment=environment).same


def test_a_batch_that_is_told_later_puts_its_entry_into_scope(banking):
    """Read before the settlement file, without the gateway as its other side: read once more."""
    (payment,) = booked(banking, 1)
    ours = entry(payment.amount, "BATCH-0001", who="Some clearing", on="2026-11-20")
    tell(banking, 1, ours, day="2026-11-20", opening="0.00", closing=payment.amount)
    banking.night()
    assert sealed(banking)["received"] == []
    settled = line(payment, batch_id="BATCH-0001")
    send(banking, "S1.csv", settled, paid_out(settled))
    banking.wait(hours=72)
    banking.night(date=SECOND)
    assert [one["state"] for one in sealed(banking)["paid"]] == ["MATCHED"]


def reported_of_bank(merchant):
    every = checks(merchant.variables, clock=merchant.clock, randomness=random.Random(1))
    (check,) = [check for check in every if check.name == "bank main"]
    return check


def test_the_doctor_reads_the_statements_of_each_bank(banking):
    """One that does not add up fails its line with both figures, as a missing folder does."""
    day = {"day": "2026-11-20", "opening": "0.00"}
    tell(banking, 1, entry("5.00", on="2026-11-20"), closing="5.00", **day)
    assert reported_of_bank(banking).ok
    assert "1 files: 1 rows can be taken" in reported_of_bank(banking).sentence
    tell(banking, 2, entry("5.00", on="2026-11-20"), closing="6.00", **day)
    assert not reported_of_bank(banking).ok
    assert "its closing balance is 6.00 EUR" in reported_of_bank(banking).sentence
    inbox(banking).rename(banking.folder / "elsewhere")
    assert "does not exist" in reported_of_bank(banking).sentence


def test_only_statements_that_a_night_read_grow_too_old(banking):
    """What was refused, what nobody read and what is young stays in the inbox."""
    sale(banking)
    day = {"day": "2026-11-20", "opening": "0.00"}
    read = tell(banking, 1, entry("5.00", on="2026-11-20"), closing="5.00", **day)
    refused = tell(banking, 2, entry("5.00", on="2026-11-20"), closing="6.00", **day)
    young = tell(banking, 3, entry("5.00", on="2026-11-20"), closing="5.00", **day)
    banking.night()
    unread = tell(banking, 4, entry("5.00", on="2026-11-20"), closing="5.00", **day)
    for path in (read, refused, unread):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    retention = banking.folder / "config" / "retention.toml"
    retention.write_text("[retention]\nstatements_days = 90\n")
    with banking.environment() as environment:
        ((expired,), _) = housekeeping(environment)
        assert expired.files == (read,)
        housekeeping(environment, by="Otto Ops")
    assert not read.exists()
    assert all(path.exists() for path in (refused, young, unread))
