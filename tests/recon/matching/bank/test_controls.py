"""Controls of the matching that nothing else would miss: each was broken once and seen red."""

from recon.matching.breaks.result import Reconciliation
from tests.recon.matching.bank.cases import Case, of_bank, t17

GATEWAY = "Gateway"


def flags_of(result: Reconciliation) -> list[str]:
    """Words beside what matched by the bank."""
    rows = result.matches[result.matches["rule"].eq("bank")]
    return rows["flags"].tolist()


def test_an_entry_behind_the_due_day_is_no_sum_of_a_day() -> None:
    """Two pay-outs together are only looked for up to the day by which they are due."""
    case = Case().paid("BATCH-01", 500).paid("BATCH-02", 700)
    result = case.came("", 1_200, on="2026-11-20", counterparty=GATEWAY).come_to()
    assert [code for code, *_ in of_bank(result)] == [
        *("BANK_RECEIPT_UNKNOWN", "PAYOUT_NOT_AT_BANK", "PAYOUT_NOT_AT_BANK")
    ]
    assert set(t17(result)) == {0}


def test_an_entry_from_before_the_pay_out_is_not_it() -> None:
    """Equal amounts count from one bank day before the batch was settled."""
    result = Case().paid("BATCH-01", 500).came("", 500, on="2026-11-06", counterparty=GATEWAY)
    assert of_bank(result.come_to()) == [
        ("BANK_RECEIPT_UNKNOWN", 500, 500),
        ("PAYOUT_NOT_AT_BANK", 0, -500),
    ]
    nearer = Case().paid("BATCH-01", 500).came("", 500, on="2026-11-09", counterparty=GATEWAY)
    assert of_bank(nearer.come_to()) == []


def test_two_entries_of_one_sum_decide_nothing() -> None:
    """Exactly one entry may stand for the pay-outs of a day."""
    case = Case().paid("BATCH-01", 500).paid("BATCH-02", 700)
    case.came("", 1_200, counterparty=GATEWAY).came("", 1_200, counterparty=GATEWAY)
    codes = [code for code, *_ in of_bank(case.come_to())]
    assert codes.count("BANK_RECEIPT_UNKNOWN") == 2
    assert codes.count("PAYOUT_NOT_AT_BANK") == 2


def test_charges_explain_a_difference_exactly_or_not_at_all() -> None:
    """What the bank took is 20; 30 are missing."""
    result = Case().paid("BATCH-01", 800).came("BATCH-01", 770, charges=-20).come_to()
    assert of_bank(result) == [("BANK_AMOUNT_DIFFERS", 770, -30)]


def test_a_due_day_on_which_no_bank_works_moves_behind_it() -> None:
    """A day after Friday is Monday: what comes then is not late."""
    case = Case(rules={"grace": {"payout_to_bank": "24h"}})
    case.paid("BATCH-01", 500, on="2026-11-27").came("BATCH-01", 500, on="2026-11-30")
    assert flags_of(case.come_to()) == [""]
    later = Case(rules={"grace": {"payout_to_bank": "24h"}})
    later.paid("BATCH-01", 500, on="2026-11-26").came("BATCH-01", 500, on="2026-11-30")
    assert flags_of(later.come_to()) == ["late"]


def test_who_is_owed_follows_the_sign() -> None:
    """Too little is owed to the merchant, too much to nobody."""
    case = Case().paid("BATCH-01", 500).came("BATCH-01", 400)
    breaks = case.paid("BATCH-02", 500).came("BATCH-02", 600).come_to().breaks
    mine = breaks[breaks["effect_bank"].notna()]
    assert dict(zip(mine["effect_bank"].tolist(), mine["owed_to"].tolist(), strict=True)) == {
        -100: "merchant",
        100: "none",
    }


def test_a_pay_out_that_went_back_is_at_risk_as_a_whole() -> None:
    """Also where a part of it came once more."""
    case = Case().paid("BATCH-01", 1_000).came("BATCH-01", 1_000)
    case.came("BATCH-01", -1_000, on="2026-11-16").came("BATCH-01", 300, on="2026-11-18")
    breaks = case.come_to().breaks
    (row,) = breaks[breaks["effect_bank"].notna()].to_dict("records")
    assert (row["code"], row["effect_bank"], row["exposure"]) == ("PAYOUT_RETURNED", -700, 1_000)


def test_an_entry_of_several_batches_that_differs_is_one_break_on_the_first() -> None:
    """The others of the entry bear its code as a flag, and no effect of their own."""
    case = Case().paid("BATCH-01", 500).paid("BATCH-02", 700)
    result = case.came("BATCH-01/BATCH-02", 1_150).come_to()
    assert of_bank(result) == [("BANK_AMOUNT_DIFFERS", 1_150, -50)]
    assert result.bank is not None
    paid = {row["batch_id"]: row for row in result.bank["paid"].to_dict("records")}
    assert {name: row["code"] for name, row in paid.items()} == dict.fromkeys(
        ("BATCH-01", "BATCH-02"), "BANK_AMOUNT_DIFFERS"
    )
    assert len({row["result_id"] for row in paid.values()}) == 1
    assert set(t17(result)) == {0}


def test_what_never_came_and_what_is_unclear_is_at_risk_as_a_whole() -> None:
    """The pay-out itself, however little the two entries differ by together."""
    case = Case().paid("BATCH-01", 500).paid("BATCH-02", 500)
    case.paid("BATCH-03", 800).came("", 500, counterparty=GATEWAY)
    breaks = case.come_to().breaks
    mine = breaks[breaks["effect_bank"].notna()]
    rows = zip(*(mine[name].tolist() for name in ("code", "exposure")), strict=True)
    assert sorted(rows) == [
        *[("AMBIGUOUS_MATCH", 500)] * 2,
        ("PAYOUT_NOT_AT_BANK", 800),
    ]


def test_what_is_not_booked_at_the_bank_yet_is_shown_and_never_counted() -> None:
    """A pending entry neither brings a pay-out nor is a receipt that nobody expects."""
    case = Case().paid("BATCH-01", 500).came("BATCH-01", 500, status="pending", part=1)
    result = case.come_to()
    assert [code for code, *_ in of_bank(result)] == ["PAYOUT_NOT_AT_BANK"]
    assert set(t17(result)) == {0}
