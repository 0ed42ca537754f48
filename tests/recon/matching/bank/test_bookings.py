"""What the ledger has of what arrived at the bank, each rule by its own case."""

import pandas as pd
import pytest

from recon.matching.breaks.result import BANKED
from tests.recon.matching.bank.cases import Case

BOOKS = {"ledger": {"bank": True}}
GATEWAY = "Gateway"
ACCOUNTS = {
    "clearing": "1360",
    "sales": "4400",
    "refunds": "4410",
    "chargebacks": "4420",
    "payouts": "1370",
    "bank": "1200",
}


def case():
    """Books that have what arrives."""
    return Case(rules=BOOKS)


def found(result):
    """Code, flags and effect of every break of the ledger of the bank, of effects.csv."""
    legs = result.effects[result.effects["leg"].eq("bank_ledger")]
    amounts = dict(zip(legs["break_id"].tolist(), legs["amount"].tolist(), strict=True))
    breaks = result.breaks[result.breaks["break_id"].isin(amounts)]
    rows = zip(*(breaks[name].tolist() for name in ("code", "flags", "break_id")), strict=True)
    assert {one.difference for one in t19(result.control_totals)} == {0}
    assert all(one.passed for one in result.control_totals)
    return sorted((code, flags, amounts[own]) for code, flags, own in rows)


def t19(totals):
    """The total of the ledger of the bank."""
    return [one for one in totals if one.id == "T19" and one.name.startswith("bank")]


def of_cash(result):
    """The breaks of no payment."""
    breaks: pd.DataFrame = result.breaks[result.breaks["order_no"].eq("")]
    return breaks


B, TWO = "came BATCH-01 500", "paid BATCH-02 300 / came BATCH-01 500 / came BATCH-02 300"
FROM_NOBODY = 'came "" 77 counterparty=Gateway'
CASES: list[tuple[str, str, str]] = [
    ("by its batch", f"{B} / took BATCH-01 500", ""),
    ("by its amount", f'{B} / took "" 500', ""),
    ("not booked", B, "BANK_NOT_BOOKED  500"),
    ("booked otherwise", f"{B} / took BATCH-01 450", "BANK_NOT_BOOKED booked_differs 50"),
    (
        "twice",
        f"{B} / took BATCH-01 500 / took BATCH-01 500",
        "BANK_NOT_BOOKED booked_differs -500",
    ),
    ("taken back", f"{B} / took BATCH-01 500 / took BATCH-01 -500", "BANK_NOT_BOOKED  500"),
    ("a flag of another code", "came BATCH-01 400", "BANK_AMOUNT_DIFFERS BANK_NOT_BOOKED 400"),
    (
        *("booked, and not at the bank", "took BATCH-01 500"),
        "PAYOUT_NOT_AT_BANK BANK_NOT_BOOKED;booked_differs -500",
    ),
    (
        "went back, and the books have both",
        f"{B} / came BATCH-01 -500 on=2026-11-13 / took BATCH-01 500 / took BATCH-01 -500",
        "",
    ),
    (
        "nobody expects it, and the books have it",
        f'{B} / took BATCH-01 500 / {FROM_NOBODY} / took "" 77',
        "",
    ),
    (
        "nobody expects it, nor do the books",
        f"{B} / took BATCH-01 500 / {FROM_NOBODY}",
        "BANK_RECEIPT_UNKNOWN BANK_NOT_BOOKED 77",
    ),
    ("as one balance", f"{TWO} / took November 800", ""),
    ("as one that differs", f"{TWO} / took November 790", "BANK_NOT_BOOKED booked_differs 10"),
    (
        "two payouts in one entry, booked as one",
        'paid BATCH-02 300 / came "BATCH-01 BATCH-02" 800 / took BATCH-02 800',
        "",
    ),
    ("written off by its batch", f"{B} / took BATCH-01 450 / wrote_off BATCH-01 50", ""),
    ("written off the other way round", f"{B} / took BATCH-01 550 / wrote_off BATCH-01 50", ""),
    ("written off by its key", f'{B} / wrote_off "" 500 order_no=payout:EUR:BATCH-01', ""),
    ("adjusted", f"{B} / wrote_off BATCH-01 500 entry_type=adjustment", ""),
    ("written off in two pieces", f"{B} / wrote_off BATCH-01 450 / wrote_off BATCH-01 50", ""),
    (
        "written off and taken back",
        f"{B} / wrote_off BATCH-01 500 / wrote_off BATCH-01 500 entry_type=write_off_reversal",
        "BANK_NOT_BOOKED  500",
    ),
    (
        "written off too much, and the rest taken back",
        f"{B} / wrote_off BATCH-01 700 / wrote_off BATCH-01 200 entry_type=write_off_reversal",
        "",
    ),
    ("by another amount", f"{B} / wrote_off BATCH-01 499", "BANK_NOT_BOOKED  500"),
    ("in another currency", f"{B} / wrote_off BATCH-01 500 currency=USD", "BANK_NOT_BOOKED  500"),
    (
        "one write-off closes one of two",
        f"paid BATCH-02 500 / {B} / came BATCH-02 500 / wrote_off BATCH-02 500",
        "BANK_NOT_BOOKED  500",
    ),
    ("a balance by its key", f"{TWO} / took November 790 / wrote_off bank:EUR 10", ""),
    ("missing at the bank", "took BATCH-01 500 / wrote_off BATCH-01 500", ""),
    ("before the first statement", f'{B} / took "" 500 / took "" 9 on=2026-10-30', ""),
    (
        "booked on a day far ahead",
        f'{B} / took BATCH-01 500 / took "" 77 on=2027-11-30',
        "BANK_NOT_BOOKED booked_differs;date_ahead -77",
    ),
    ("young at the bank", f"{B} on=2026-11-30", ""),
    ("young in the books", "took BATCH-01 500 on=2026-11-30", ""),
]
"""Name, steps beside a payout of 500, and the break: code, flags and effect."""


@pytest.mark.parametrize(
    ("steps", "expected"), [one[1:] for one in CASES], ids=[one[0] for one in CASES]
)
def test_each_rule(steps, expected):
    """A payout of 500 that is booked as a payout, and this of the bank: no other break."""
    result = case().paid("BATCH-01", 500).played(steps).come_to()

    assert [" ".join(map(str, row)) for row in found(result)] == [expected] * bool(expected)


def test_a_group_that_is_written_off_says_so_and_is_no_difference_that_is_gone():
    """Its effect stays to be seen."""
    one = case().paid("BATCH-01", 500).came("BATCH-01", 500).took("BATCH-01", 450)
    result = one.wrote_off("BATCH-01", 50).come_to()
    assert found(result) == []
    (group,) = result.bank[BANKED][["state", "flags", "effect"]].itertuples(index=False, name=None)
    assert group == ("MATCHED", "written_off", 50)


def test_what_is_written_off_of_the_pay_out_is_not_written_off_of_its_arrival():
    """One entry closes one group: that of the ledger first."""
    one = case().paid("BATCH-01", 500).came("BATCH-01", 500)
    one.misbooked = 500
    result = one.wrote_off("BATCH-01", 500).come_to()
    assert found(result) == [("BANK_NOT_BOOKED", "", 500)]


def test_a_pay_out_that_is_not_booked_keeps_its_code():
    """What the ledger lacks of the bank is a flag, and its effect has a leg of its own."""
    one = case().paid("BATCH-01", 500).came("BATCH-01", 500)
    one.misbooked = 100
    result = one.come_to()
    assert found(result) == [("PAYOUT_AMOUNT_MISMATCH", "BANK_NOT_BOOKED", 500)]
    (row,) = of_cash(result).to_dict("records")
    assert (row["effect_ledger"], row["exposure"]) == (-100, 500)
    assert result.effects[["leg", "amount"]].to_numpy().tolist() == [
        ["bank_ledger", 500],
        ["ledger", -100],
    ]


def test_what_is_young_waits():
    """Neither side is late for two business days; then it is a break."""
    young = case().paid("BATCH-01", 500).came("BATCH-01", 500, on="2026-11-30").come_to()
    assert of_cash(young).empty
    (waiting,) = young.pending.to_dict("records")
    assert (waiting["entry_id"], waiting["expected_side"]) == ("payout:EUR:BATCH-01", "ledger")
    older = case().paid("BATCH-01", 500).came("BATCH-01", 500, on="2026-11-26").come_to()
    assert of_cash(older)["code"].tolist() == ["BANK_NOT_BOOKED"]


def test_what_is_young_and_cannot_explain_it_does_not_wait():
    """Ten more on the last day explain no gap of 500."""
    one = case().paid("BATCH-01", 510).came("BATCH-01", 500).came("BATCH-01", 10, on="2026-11-30")
    assert found(one.come_to()) == [("BANK_NOT_BOOKED", "", 510)]


def test_what_the_books_took_behind_the_last_statement_waits():
    """No statement of that day can have it yet, however long it is booked."""
    one = case().paid("BATCH-01", 500, on="2026-11-19").took("BATCH-01", 500, on="2026-11-23")
    one.to_date = "2026-11-20"
    result = one.come_to()
    assert found(result) == []
    assert "bank" in result.pending["expected_side"].tolist()


def test_without_the_rule_nothing_of_it_is_compared():
    """The entries stand as ones that have nothing to be compared with."""
    one = Case().paid("BATCH-01", 500).came("BATCH-01", 500).took("BATCH-01", 9)
    result = one.come_to()
    assert (of_cash(result).empty, t19(result.control_totals)) == (True, [])
    mine = result.matches[result.matches["entry_id"].eq("K1")]
    assert mine[["flags", "rule"]].to_numpy().tolist() == [["not_compared", "not_compared"]]
    assert "banked" not in result.bank


def test_an_entry_that_is_held_against_the_bank_says_so():
    """It is not among those that are not compared."""
    result = case().paid("BATCH-01", 500).came("BATCH-01", 500).took("BATCH-01", 500).come_to()
    mine = result.matches[result.matches["entry_id"].eq("K1")]
    assert mine["flags"].tolist() == ["with_bank"]


def test_the_journal_moves_what_arrived_from_its_way_to_the_bank():
    """Debit the bank, credit what is on its way; T12 holds by its own total."""
    rules = {**BOOKS, "journal": {"accounts": ACCOUNTS}}
    one = Case(rules=rules).paid("BATCH-01", 500).came("BATCH-01", 500).took("BATCH-01", 450)
    result = one.come_to()
    lines = result.journals[["account", "debit", "credit"]].to_numpy().tolist()
    assert sorted(lines) == [["1200", 50, 0], ["1370", 0, 50]]
    assert all(text.endswith(" BATCH-01") for text in result.journals["text"])
    assert all(one.passed for one in result.control_totals)
    names = [one.name for one in result.control_totals if one.id == "T12"]
    assert "proposed journals of the bank = effects of their breaks" in names


def test_the_pay_out_and_its_arrival_are_one_journal():
    """From the clearing account on its way, and from there to the bank."""
    rules = {**BOOKS, "journal": {"accounts": ACCOUNTS}}
    one = Case(rules=rules).paid("BATCH-01", 500).came("BATCH-01", 500)
    one.misbooked = 100
    result = one.come_to()
    lines = result.journals[["account", "debit", "credit"]].to_numpy().tolist()
    assert sorted(lines) == [
        ["1200", 500, 0],
        ["1360", 0, 100],
        ["1370", 0, 500],
        ["1370", 100, 0],
    ]
    assert len({*result.journals["journal_id"]}) == 1
    assert all(one.passed for one in result.control_totals)
