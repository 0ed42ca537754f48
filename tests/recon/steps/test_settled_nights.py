"""The sandbox's settlement files in whole nights: the planted is found, the truth closes."""

import json
import urllib.request
from datetime import date

import pytest

from recon.sandbox.world.cash import FEE_BASIS_POINTS, FEE_FIXED_MINOR_UNITS
from tests.recon.steps.files.test_settlement_files import broken, declare, passed, place, stored
from tests.recon.steps.in_parts import with_orders

FIRST, SECOND = "2026-11-20", "2026-11-23"
CURRENCIES = ("EUR", "GBP", "JPY", "KWD", "USD")
OF_SETTLEMENT = ("SETTLEMENT", "FEE", "UNEXPECTED")


def download(merchant, name, *, day):
    """A file of the sandbox."""
    url = f"{merchant.sandbox.base_url}/_sandbox/files/100042001/{day}/{name}"
    with urllib.request.urlopen(url) as reply:  # noqa: S310 - loopback
        return str(reply.read().decode())


@pytest.fixture
def sampled(merchant):
    """A merchant with the sandbox's own files, and the fees that were agreed with it."""
    place(merchant).mkdir()
    declare(merchant)
    for shop in ("web", "app", "stores", "marketplace"):
        name = f"orders-{FIRST}-{shop}.csv"
        (merchant.inbox / name).write_text(download(merchant, name, day=FIRST))
    ledger = download(merchant, f"ledger-{FIRST}.csv", day=FIRST)
    (merchant.folder / "ledger.csv").write_text(ledger)
    rules = merchant.folder / "config" / "rules.toml"
    fee = f"basis_points = {FEE_BASIS_POINTS}\nfixed_minor_units = {FEE_FIXED_MINOR_UNITS}\n"
    fees = "".join(f"\n[fees.{currency}]\n{fee}" for currency in CURRENCIES)
    rules.write_text(rules.read_text() + fees)
    return merchant


def settle(merchant, day, *, true):
    """Put the sandbox's settlement file of a day where the night looks."""
    text = download(merchant, f"settlement-{'true-' * true}{day}.csv", day=day)
    path = place(merchant) / f"settlement-{day}.csv"
    path.write_text(text)
    return path


def test_what_is_planted_is_found_and_the_true_files_close_it(sampled):
    """Each planted case has its code in the first night, and no other set has one.

    The files of what was really settled, our own captures among it, leave nothing open of it.
    """
    settle(sampled, FIRST, true=False)
    key = json.loads(download(sampled, f"answer-key-{FIRST}.json", day=FIRST))["settlement"]
    sampled.night()
    planted = {(one["shown"] or one["true"])["order_no"]: one["code"] for one in key}
    missing = {order for order, code in planted.items() if code == "SETTLEMENT_MISSING"}
    assert len(missing) == 1
    assert set(planted.values()) == {
        *("SETTLEMENT_MISSING", "SETTLEMENT_AMOUNT_MISMATCH"),
        *("FEE_VARIANCE", "UNEXPECTED_RECEIPT"),
    }
    waits = {order: code for order, code in planted.items() if order not in missing}
    assert of_settlement(sampled) == waits
    assert missing <= set(stored(sampled).pending["order_no"])
    assert set(passed(sampled, "T11")) == {True}

    sampled.wait(hours=72)
    for number in range(4):
        day = date.fromordinal(date.fromisoformat(FIRST).toordinal() + number).isoformat()
        settle(sampled, day, true=True)
    sampled.night(date=SECOND)
    assert of_settlement(sampled) == {}
    sides = stored(sampled).pending["expected_side"]
    assert list(sides[sides.eq("settlement")]) == []
    assert set(passed(sampled, "T11")) == {True}


def test_what_is_planted_is_found_in_parts_too(sampled, monkeypatch):
    """Lines belong to groups as well, which no part of the order numbers holds."""
    with_orders(monkeypatch, 20)
    test_what_is_planted_is_found_and_the_true_files_close_it(sampled)


def of_settlement(merchant):
    """The breaks of the newest night that are about settlement."""
    return {o: code for o, code in broken(merchant).items() if code.startswith(OF_SETTLEMENT)}
