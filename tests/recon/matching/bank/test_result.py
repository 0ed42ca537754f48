"""What banks say of payouts, as rows of the result."""

from typing import Any

import pandas as pd
import pytest

from recon.matching.classifying.severity import risk_of_break
from recon.matching.frames.bank_sources import NightOfBank
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from tests.recon.matching.bank.cases import Case, of_bank, t17

PAID, ABROAD = "paid BATCH-01 10000", "paid BATCH-01 10000 currency=USD / came BATCH-01 9000"
OF = "Batch BATCH-01 of 100.00 EUR, settled on 10 Nov 2026"
OF_DOLLARS = "Batch BATCH-01 of 100.00 USD, settled on 10 Nov 2026: the bank has 90.00 EUR on"
FAR = (
    "Batch BATCH-01 of 100.00 EUR, settled on 31 Dec {}, a day long after this night: no statement"
)
RATES = {"2026-11-05": "0.92", "2026-11-13": "0.5"}
RATE: dict[str, Any] = {"rate": {"USD.EUR": {"on": RATES, "basis_points": 10}}}
INJECTED: dict[str, tuple[str, list[tuple[str, int, int]], str]] = {
    "named and whole": (f'{PAID} / came "payout BATCH-01 thanks" 10000', [], ""),
    "twice": (
        f"{PAID} / came BATCH-01 10000 / came BATCH-01 10000",
        [("PAYOUT_TWICE_AT_BANK", 20_000, 10_000)],
        (
            f"{OF}, came more than once: the bank has 100.00 EUR on 12 Nov 2026 and 100.00 EUR on "
            "12 Nov 2026."
        ),
    ),
    "returned": (
        f'{PAID} / came BATCH-01 10000 / came "BATCH-01 return" -10000 on=2026-11-16',
        [("PAYOUT_RETURNED", 0, -10_000)],
        f"{OF}, went back: the bank has 100.00 EUR on 12 Nov 2026 and -100.00 EUR on 16 Nov 2026.",
    ),
    "another amount": (
        f"{PAID} / came BATCH-01 9750",
        [("BANK_AMOUNT_DIFFERS", 9_750, -250)],
        f"{OF}: the bank has 97.50 EUR on 12 Nov 2026, 2.50 EUR too little.",
    ),
    "another currency by the rate": (
        ABROAD,
        [("BANK_FX_DIFFERENCE", 9_000, -200)],
        f"{OF_DOLLARS} 12 Nov 2026, by the rate 0.92 of 5 Nov 2026 2.00 EUR too little.",
    ),
    "another currency without a rate": (
        ABROAD,
        [("BANK_FX_DIFFERENCE", 9_000, 0)],
        (
            f"{OF_DOLLARS} 12 Nov 2026, the bank does not say from what, and [rate] of the rules "
            "names no rate USD.EUR of 12 Nov 2026 or before."
        ),
    ),
    "not there": (
        PAID,
        [("PAYOUT_NOT_AT_BANK", 0, -10_000)],
        f"{OF}, was due on 13 Nov 2026: no statement up to that day has it.",
    ),
    "paid out in two parts, due after the last of them": (
        "paid BATCH-01 6000 / paid BATCH-01 4000 on=2026-11-04",
        [("PAYOUT_NOT_AT_BANK", 0, -10_000)],
        f"{OF}, was due on 13 Nov 2026: no statement up to that day has it.",
    ),
    **{
        f"dated in {year}": (
            f"{PAID} on={year}-12-31",
            [("PAYOUT_NOT_AT_BANK", 0, -10_000)],
            f"{FAR.format(year)} has it yet.",
        )
        for year in (2099, 9999)
    },
    "unknown": (
        'came greetings 700 counterparty="The Gateway Ltd"',
        [("BANK_RECEIPT_UNKNOWN", 700, 700)],
        (
            "The bank main has 7.00 EUR on 12 Nov 2026 (entry E1 of statement 1), and no payout "
            "explains it."
        ),
    ),
    "unclear": (
        f'{PAID} / paid BATCH-02 10000 / came "" 10000 counterparty=Gateway',
        [("AMBIGUOUS_MATCH", 0, -10_000), ("AMBIGUOUS_MATCH", 10_000, 0)],
        (
            "Batch BATCH-02 of 100.00 EUR, settled on 10 Nov 2026: the bank has 100.00 EUR on "
            "12 Nov 2026, which may be of this or of another payout."
        ),
    ),
}


@pytest.mark.parametrize("name", INJECTED)
def test_each_code_is_found_with_its_effect_and_its_sentence(name):
    """A planted case of each code: what the bank has, what is missing, and why, in a sentence."""
    steps, expected, reason = INJECTED[name]

    result = Case(rules=RATE if name.endswith("by the rate") else {}).played(steps).come_to()

    assert of_bank(result) == expected
    assert not any(t17(result)), result.control_totals
    assert {reason} <= {"", *result.breaks["reason"]}


def test_what_is_at_risk_of_an_exchange_is_told_in_the_currency_it_arrived_in():
    """Without a rate the whole that came; 100.00 USD would be called 100.00 EUR otherwise."""
    case = Case().paid("BATCH-01", 10_000, currency="USD").came("BATCH-01", 9_000)
    result = case.come_to()
    found = result.breaks[result.breaks["code"].eq("BANK_FX_DIFFERENCE")]
    assert found[["currency", "exposure"]].to_numpy().tolist() == [["EUR", 9_000]]


NAMED, NOT_NAMED = "BANK_AMOUNT_DIFFERS", "PAYOUT_NOT_AT_BANK"


@pytest.mark.parametrize(
    ("batch", "text", "counterparty", "code"),
    [
        ("BATCH-01", "batch-01", "", NAMED),
        ("BATCH-01", "XBATCH-01", "", NOT_NAMED),
        ("BATCH-01", "BATCH-01-A", "", NOT_NAMED),
        ("BATCH-01", "BATCH-01_", "", NOT_NAMED),
        ("BATCH-01", "(BATCH-01)", "", NAMED),
        ("B-01", "B-01", "", NOT_NAMED),
        ("B-01", "B-01", "Gateway", NAMED),
        ("20261110", "20261110", "", NOT_NAMED),
        ("20261110", "20261110", "gateway", NAMED),
        ("B#7/2026", "paid b#7/2026.", "", NAMED),
        ("B#7/2026", "paid b#7/20261", "", NOT_NAMED),
    ],
)
def test_a_batch_id_is_found_as_a_word_of_its_own(batch, text, counterparty, code):
    """No letter, digit, `_` or `-` beside it; a weak id needs the gateway on the other side."""
    case = Case().paid(batch, 500).came(text, 400, counterparty=counterparty)
    assert [found for found, _, _ in of_bank(case.come_to())] == [code]


def test_two_accounts_with_one_batch_id_are_told_apart_by_the_amount():
    """Else nobody can say which of them came."""
    case = Case().also("M/B").paid("BATCH-01", 500).paid("BATCH-01", 700, account_id="B")
    result = case.came("BATCH-01", 700).came("BATCH-01", 500).come_to()
    assert of_bank(result) == []
    unclear = Case().also("M/B").paid("BATCH-01", 500).paid("BATCH-01", 700, account_id="B")
    found = unclear.came("BATCH-01", 600).come_to()
    assert [code for code, _, _ in of_bank(found)] == ["AMBIGUOUS_MATCH", "AMBIGUOUS_MATCH"]
    assert sum(effect for _, _, effect in of_bank(found)) == 600 - 1200
    assert not any(t17(found))


def test_an_unknown_receipt_bears_the_account_that_can_be_known():
    """Of one account its own; of several none; of a batch that is paid out elsewhere that one's."""
    alone = Case().came("", 700, counterparty="Gateway").come_to()
    assert alone.breaks["account_id"].tolist() == ["A"]
    several = Case().also("M/B").came("", 700, counterparty="Gateway").come_to()
    assert several.breaks["account_id"].tolist() == [""]
    other = Case().paid("BATCH-77", 700, account_id="C").came("BATCH-77", 700).come_to()
    found = other.breaks[other.breaks["code"].eq("BANK_RECEIPT_UNKNOWN")]
    assert found["account_id"].tolist() == ["C"]
    assert other.verdict.value == "INCOMPLETE"


def test_other_peoples_entries_are_not_looked_at():
    """They count in the balance, and no word of them is anywhere in the result."""
    case = Case().paid("BATCH-01", 500).came("BATCH-01", 500)
    case.came("CANARY rent", -900, counterparty="CANARY Landlord")
    result = case.come_to()
    shown = [*result.breaks.to_numpy().ravel(), *result.matches.to_numpy().ravel()]
    assert not any("CANARY" in str(cell) for cell in shown)
    assert of_bank(result) == []


def test_a_statement_without_balances_is_never_reconciled():
    """T15 is not asked of it, and the night is INCOMPLETE by name."""
    case = Case(balanced=False).paid("BATCH-01", 500).came("BATCH-01", 500)
    result = case.come_to()
    assert result.verdict.value == "INCOMPLETE"
    assert any("no balances" in one for one in result.not_covered)


def test_a_pay_out_that_neither_books_nor_bank_have_right_is_as_grave_as_the_worse():
    """One break of a cent in the ledger and of a million at the bank is about the million."""
    case = Case(misbooked=1).paid("BATCH-01", 100_000_000)
    breaks = case.come_to().breaks
    (row,) = breaks[breaks["effect_bank"].notna()].to_dict("records")

    assert (row["code"], row["flags"]) == ("PAYOUT_AMOUNT_MISMATCH", "PAYOUT_NOT_AT_BANK")
    assert (row["effect_ledger"], row["effect_bank"]) == (-1, -100_000_000)
    assert (row["exposure"], row["severity"]) == (100_000_000, "CRITICAL")
    assert row["owed_to"] == "merchant"
    assert risk_of_break(row) == 100_000_000


def test_the_graver_side_of_a_pay_out_may_be_the_books():
    """A million wrong in the ledger stays critical where the bank lacks a cent."""
    case = Case(misbooked=100_000_000).paid("BATCH-01", 100_000_001)
    breaks = case.came("BATCH-01", 100_000_000).come_to().breaks
    (row,) = breaks[breaks["effect_bank"].notna()].to_dict("records")

    assert (row["effect_ledger"], row["effect_bank"]) == (-100_000_000, -1)
    assert (row["severity"], row["owed_to"]) == ("CRITICAL", "merchant")
    assert risk_of_break(row) == 100_000_000


def test_a_payout_that_we_asked_for_is_a_line_of_its_batch():
    """What a batch comes to counts it, so that nothing of it seems held back."""
    case = Case().paid("BATCH-01", 7_000).came("BATCH-01", 7_000)
    capture, paid = case.lines
    asked = {**paid, "gross": -3_000, "net": -3_000, "own_reference": "P1"}
    case.lines = [{**capture, "gross": 10_000, "fee": 20, "net": 9_980}, asked, paid]
    (row,) = case.come_to().bank["paid"].to_dict("records")

    assert (row["gross"], row["fees"], row["amount"]) == (7_000, 20, 7_000)


GATEWAY = "Gateway"


def test_two_entries_of_one_name_are_two_new_breaks():
    """A bank that numbers its statements alike: neither opens the other again."""
    case = Case().came("", 700, counterparty=GATEWAY, entry_no="E1")
    result = case.came("", 800, counterparty=GATEWAY, entry_no="E1").come_to()
    moved = result.movements[["movement", "reopens"]].to_numpy().tolist()
    assert (len(result.breaks), moved) == (2, [["new", ""]] * 2)


def test_who_is_owed_follows_the_sign():
    """Too little is owed to the merchant, too much to nobody."""
    case = Case().paid("BATCH-01", 500).came("BATCH-01", 400)
    breaks = case.paid("BATCH-02", 500).came("BATCH-02", 600).come_to().breaks
    mine = breaks[breaks["effect_bank"].notna()]
    assert dict(zip(mine["effect_bank"].tolist(), mine["owed_to"].tolist(), strict=True)) == {
        -100: "merchant",
        100: "none",
    }


def test_what_is_not_booked_at_the_bank_yet_is_shown_and_never_counted():
    """A pending entry neither brings a payout nor is a receipt that nobody expects."""
    case = Case().paid("BATCH-01", 500).came("BATCH-01", 500, status="pending", part=1)
    result = case.come_to()
    assert [code for code, *_ in of_bank(result)] == ["PAYOUT_NOT_AT_BANK"]
    assert set(t17(result)) == {0}


def both(known_to=""):
    """The same bank in the nights of M/A and M/B."""
    cases = {}
    for account in ("A", "B"):
        case = Case().also("M/B").paid("BATCH-A1", 500).paid("BATCH-B1", 700, account_id="B")
        case.came("BATCH-A1", 450).came("BATCH-B1", 700).came("", 90, counterparty="Gateway")
        case.paid("BATCH-B2", 310, account_id="B", on="2026-11-12")
        case.came("", 310, on="2026-11-13", counterparty="Gateway")
        payouts = frame_of(
            [one for one in case.lines if one["entry_type"] == "payout"], columns=SETTLEMENT_COLUMNS
        )
        known = {"main": known_to} if known_to else {}
        case.night = NightOfBank(("M", account), ("main",), payouts, known, "2026-11-01")
        case.lines = [one for one in case.lines if one["account_id"] == account]
        cases[account] = case
    return cases


def test_each_night_shows_what_is_of_its_account():
    """No payout of B is a break of A; what nobody expects is told by the first account alone."""
    results = {account: case.come_to() for account, case in both().items()}
    assert of_bank(results["A"]) == [
        ("BANK_AMOUNT_DIFFERS", 450, -50),
        ("BANK_RECEIPT_UNKNOWN", 90, 90),
    ]
    assert of_bank(results["B"]) == []
    batches = pd.concat([one.matches for one in results.values()])
    assert len(batches[batches["rule"].eq("bank")]) == 2


@pytest.mark.parametrize("account", ["A", "B"])
def test_t17_holds_for_the_whole_bank_in_each_night(account):
    """Effects that another night shows are a part of the difference."""
    assert set(t17(both()[account].come_to())) == {0}


def test_what_names_nothing_waits_until_all_pay_outs_are_known():
    """While B's settlement files are behind, an entry of an unknown batch may be B's."""
    result = both(known_to="2026-11-11")["A"].come_to()
    assert of_bank(result) == [("BANK_AMOUNT_DIFFERS", 450, -50)]
    assert set(t17(result)) == {0}
    assert any("name no batch" in one for one in result.not_covered)
