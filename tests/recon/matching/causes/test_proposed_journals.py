"""Proposed journals: balanced, from breaks that booking answers, never twice."""

from dataclasses import replace

import pytest

from recon.matching.causes.proposed_journals import BOOKED, booked_since
from recon.matching.frames.sources import AgreedWriteOffs, Exported
from recon.proof.engine import reconcile
from tests.recon.matching.reason_sets import a_thousand
from tests.recon.matching.written_cases import Written

ACCOUNTS = {
    "clearing": "1360",
    "sales": "8400",
    "refunds": "8700",
    "chargebacks": "6930",
    "payouts": "1200",
}


def journals_of(case, *exported):
    """What is proposed of the case when these were handed out before."""
    case.ruled(journal={"accounts": ACCOUNTS})
    told = replace(case.sources(), exported=exported)
    return reconcile(told, rules=case.rules, as_of=case.as_of, previous=None).journals


def lines_of(frame):
    """Account, debit and credit of every line."""
    return list(
        zip(frame["account"], frame["debit"].tolist(), frame["credit"].tolist(), strict=True)
    )


PROPOSED = {
    "order / payment / ledger": ["1360 8400 10000"],
    "order refunded / payment refunded / entry": ["8700 1360 10000"],
    "order / payment chargeback / entry": ["6930 1360 10000"],
    "order / payment / entry / entry": ["8400 1360 10000"],
    "payout / ledger": ["1200 1360 10000"],
    "order / payment / entry": [],
    # A person must judge the refund.
    "order / payment / entry / entry refund amount=0.01": [],
    "order / payment / ledger / entry refund amount=30.00": [],
    "order refunded / payment refunded / entry amount=90.00": ["1360 8400 1000", "8700 1360 10000"],
    "order refunded / payment refunded / entry / entry refund / entry refund": ["1360 8700 10000"],
    "order / payment chargeback / entry / entry chargeback / entry chargeback": ["1360 6930 10000"],
}
"""Rows of a set -> the account that is debited, the one that is credited, minor units."""


@pytest.mark.parametrize("rows", PROPOSED)
def test_what_is_proposed(case, rows):
    """Two equal lines between the clearing account and that of the kind of entry, or none."""
    journal = lines_of(journals_of(Written("", "", tuple(rows.split(" / ")), "").build(case)))

    pairs = [
        f"{debit[0]} {credit[0]} {debit[1]}"
        for debit, credit in zip(journal[::2], journal[1::2], strict=True)
    ]
    assert pairs == PROPOSED[rows]


def test_without_accounts_nothing_is_proposed(case):
    """No account is ever guessed."""
    result = case.order().payment().ledger().run()

    assert len(result.journals) == 0
    assert "proposed journals, T12: the rules name no [journal.accounts]" in result.not_covered


def test_the_id_is_that_of_the_break_with_a_version(case):
    """The same break is the same journal night after night, so that an import can refuse it."""
    result = case.order().payment().ledger().ruled(journal={"accounts": ACCOUNTS}).run()

    assert {*result.journals["journal_id"]} == {f"{result.breaks['break_id'].iloc[0]}-EUR-1"}
    assert {*result.journals["date"]} == {"2026-11-20"}


def test_an_exported_journal_is_never_proposed_again(case):
    """While it waits for the ledger nothing is proposed; once booked, a new difference is new."""
    case.order().payment().ledger()
    name = journals_of(case)["break_id"].iloc[0]

    waiting = journals_of(case, Exported(name, "EUR", 1, booked=False))
    after = journals_of(case, Exported(name, "EUR", 1, booked=True))

    assert len(waiting) == 0
    assert {*after["journal_id"]} == {f"{name}-EUR-2"}


def test_booked_is_what_the_ledger_shows(case, new_case):
    """An exported journal counts as booked once its break has no effect on the ledger any more."""
    before = case.order().payment().ledger().run()
    after = new_case().order().payment().entry().run()
    handed = [Exported(before.breaks["break_id"].iloc[0], "EUR", 1, booked=False)]

    assert booked_since(before.effects, exported=handed) == []
    assert booked_since(after.effects, exported=handed) == handed


def test_what_two_people_wrote_off_is_not_booked_as_well(case):
    """A write-off and a journal for one break would put the ledger wrong by its amount."""
    case.order().payment().ledger().ruled(journal={"accounts": ACCOUNTS})
    name = journals_of(case)["break_id"].iloc[0]
    told = replace(case.sources(), agreed_write_offs=AgreedWriteOffs({name: ("EUR", 10000)}))
    result = reconcile(told, rules=case.rules, as_of=case.as_of, previous=None)

    assert len(result.journals) == 0


ENTRY_OF_ACCOUNT = {"8400": "capture", "8700": "refund", "6930": "chargeback", "1200": "payout"}
"""Account of the ledger -> the type of entry that its journal is."""
BOOKED_AS_A_DEBIT = frozenset({"refund", "chargeback", "payout"})


def test_after_the_journals_are_booked_nothing_is_left_of_their_breaks_in_the_books(case):
    """Of a thousand random sets: each line is entered as its kind, and no difference remains."""
    case, planted = a_thousand(case, seed=7, covered=True)
    case.ruled(journal={"accounts": ACCOUNTS})
    before = case.run()
    lines = before.journals[before.journals["account"].ne(ACCOUNTS["clearing"])]
    for number, line in enumerate(lines.to_dict("records")):
        kind = ENTRY_OF_ACCOUNT[line["account"]]
        forward = bool(line["debit"]) == (kind in BOOKED_AS_A_DEBIT)
        case.entry(
            kind if forward else f"{kind}_reversal",
            entry_id=f"J{number}",
            merchant_id=line["merchant_id"],
            order_no=line["order_no"],
            reference_no=f"J{number}",
            currency=line["currency"],
            amount=line["debit"] + line["credit"],
        )
    after = case.run()

    assert len(lines) > 50
    left = after.breaks[after.breaks["break_id"].isin(lines["break_id"])]
    assert left["effect_ledger"].tolist() == [0] * len(left)
    assert len(after.journals) == 0
    alone = {name for name, rows in planted.items() if len(rows.get("gateway", [])) == 1}
    assert not {*left.loc[left["merchant_id"].isin(alone), "code"]} & LEDGER_CODES


LEDGER_CODES = {code.value for code in BOOKED}
