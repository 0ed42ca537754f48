from dataclasses import replace

import pandas as pd
import pytest

from recon.model.business_date import BusinessMonth
from recon.month import close as month_closes
from recon.month.close import (
    LEDGER_SHEET,
    CloseVerdict,
    prepared_close,
)
from recon.month.stated import StatedMonth
from recon.month.statement import ALONE, DIFFERENCES, MonthEquation
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, capture

NOVEMBER = BusinessMonth.named("2026-11")
LAST = "2026-11-30"


def closed(merchant):
    with merchant.environment() as environment:
        return prepared_close(NOVEMBER, account=(MERCHANT, ACCOUNT), environment=environment)


def play(merchant):
    """A night in the month, one on its last day, and a reason for those between."""
    capture(merchant)
    merchant.night()
    merchant.wait(hours=10 * 24)
    merchant.night(date=LAST, skip="the cluster was down")


@pytest.fixture
def ended(begun):
    return begun(play)


def blocked(close):
    return "\n".join(f"{each.what} | {each.owner} | {each.where}" for each in close.blockers)


STATED: list[StatedMonth] = []
"""November as its nights have it, stated once for all tests that let it say something else."""


def given(merchant, monkeypatch, **fields):
    """The close of a statement that says something else."""
    real = month_closes.stated_month

    def other(*args, **named):
        if not STATED:
            STATED.append(real(*args, **named))
        (stated,) = STATED
        own = {key: fields[key] for key in fields if key in StatedMonth.__dataclass_fields__}
        more = {key: value for key, value in fields.items() if key not in own}
        changed = replace(stated.statement, **more)
        return replace(stated, **{"statement": changed, **own})

    monkeypatch.setattr(month_closes, "stated_month", other)
    return closed(merchant)


def test_a_month_that_is_over_and_proven_is_ready_and_nothing_is_changed(ended):
    files = [path for path in sorted(ended.folder.rglob("*")) if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files if "sqlite" not in path.name}

    close = closed(ended)

    has_breaks = len(close.stated.statement.breaks) > 0
    assert blocked(close) == ""
    assert (close.verdict is CloseVerdict.WITH_OPEN_ITEMS) is has_breaks
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_month_whose_last_night_lacks_something_is_never_ready_in_silence(ended):
    """What it lacks is an open item, until a night that lacks nothing judged the month again."""
    ended.as_owner("UPDATE run SET verdict = 'RECONCILED' WHERE business_date = '2026-11-30'")
    complete = closed(ended)
    ended.as_owner("UPDATE run SET verdict = 'INCOMPLETE' WHERE business_date = '2026-11-20'")
    before_last = closed(ended)
    ended.as_owner(
        "UPDATE run SET verdict = 'INCOMPLETE', problem = 'no order file came' "
        "WHERE business_date = '2026-11-30'"
    )
    close = closed(ended)

    assert "INCOMPLETE" not in "".join(each.what for each in complete.open_items)
    assert before_last.open_items == complete.open_items
    assert blocked(close) == ""
    assert close.verdict is CloseVerdict.WITH_OPEN_ITEMS
    (item,) = [each for each in close.open_items if each not in complete.open_items]
    again = f"get it, then recon nightly --business-date {LAST}"
    assert item.what == f"The last night, {LAST}, is INCOMPLETE: no order file came; {again}"
    assert item.sheet == "Assurance"
    ended.wait(hours=24)
    ended.night(date="2026-12-01")
    ended.as_owner("UPDATE run SET verdict = 'INCOMPLETE' WHERE business_date = '2026-12-01'")
    assert item in closed(ended).open_items
    ended.as_owner("UPDATE run SET verdict = 'NOT PROVEN' WHERE business_date = '2026-12-01'")
    assert item in closed(ended).open_items
    ended.as_owner("UPDATE run SET verdict = 'RECONCILED' WHERE business_date = '2026-12-01'")
    assert item not in closed(ended).open_items


def test_an_adjustment_that_no_batch_has_blocks_nothing_and_is_an_open_item(merchant):
    """No night compares it: the close lists it with its money, and every equation holds."""
    capture(merchant)
    merchant.night()
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        ledger.write(f"A1,{MERCHANT},{ACCOUNT},,adjustment,EUR,-7.77,2026-11-20T10:00:00Z\n")
    merchant.wait(hours=10 * 24)
    merchant.night(date=LAST, skip="the cluster was down")

    close = closed(merchant)

    assert blocked(close) == ""
    items = [each for each in close.open_items if each.sheet == "Ledger"]
    assert [(each.what, each.count, each.currency, each.amount) for each in items] == [
        (DIFFERENCES["not_in_batch"], 1, "EUR", -777)
    ]


def test_what_waits_in_the_books_keeps_a_month_from_ready(ended, monkeypatch):
    statement = closed(ended).stated.statement
    rows = [
        ("open", "EUR", "WEB-1", -2_246, -2_246),
        ("open", "EUR", "WEB-2", -100, -100),
        ("open", "EUR", "TX-9", -300, -300),
        ("fees", "EUR", "fees", 2_561, 2_561),
        ("payouts", "JPY", "payouts", 8_869, 8_869),
        ("booked_later", "EUR", "WEB-3", -5, 0),
    ]
    differences = pd.DataFrame(rows, columns=["what", "currency", "key", "amount", "shown"])
    of_order = statement.breaks.head(1).assign(order_no="WEB-2")
    of_payment = of_order.assign(order_no="", transaction_id="TX-9")
    breaks = pd.concat([of_order, of_payment])

    close = given(ended, monkeypatch, ledger=differences, breaks=breaks)

    items = {
        (each.what, each.currency): each for each in close.open_items if each.sheet == "Ledger"
    }
    assert {place: (each.count, each.amount) for place, each in items.items()} == {
        ("Differs in the ledger, and no break shows it yet", "EUR"): (1, -2_246),
        (DIFFERENCES["payouts"], "JPY"): (1, 8_869),
    }
    assert close.prepared_verdict is CloseVerdict.WITH_OPEN_ITEMS


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "run SET verdict = 'NOT PROVEN' WHERE business_date = '2026-11-20'",
            ["2026-11-20: the night is NOT PROVEN", "recon approve --hold 2026-11-20 (two people)"],
        ),
        (
            "instruction SET state = 'in_doubt'",
            ["nobody knows whether it took effect", "recon resolve "],
        ),
        ("instruction SET state = 'in_doubt', sent_at = '2026-12-02 00:00:00.000000'", []),
    ],
    ids=["a night that proved nothing", "money in doubt", "a doubt of December"],
)
def test_what_stands_open_in_the_database_blocks_with_the_way_out(ended, statement, says):
    """With its date or order, and what to do; what left after the month's last day does not."""
    ended.as_owner(f"UPDATE {statement}")

    close = closed(ended)

    assert [words for words in says if words not in blocked(close)] == []
    assert (close.verdict is CloseVerdict.NOT_READY) is (blocked(close) != "") is bool(says)


AT_BANK = "the bank is covered"
OLD_BATCHES = "a late file changed batch B1, B2, B3 and 1 more: say [window] ledger_days"
WIDER = "ledger_days = 56 in rules.toml, run the next night"


def lost(settled_on):
    """Four batches of a day that no night knows any more, and the equation that lacks them."""
    lacking = MonthEquation("P2", ALONE, "EUR", "amount", 41, 0)
    batches = [(settled_on, f"B{number}") for number in range(1, 5)]
    return {"equations": [lacking], "lost_batches": batches}


@pytest.mark.parametrize(
    ("fields", "says", "says_not"),
    [
        (
            {"equations": [MonthEquation("P1", "days", "", "count", 41, 3)]},
            ["P1 days, by count: 41 and 3"],
            [],
        ),
        (
            {"equations": [MonthEquation("P5", "open", "KWD", "amount", 3700, 0)]},
            ["P5 open, KWD, by amount: 3.700 and 0.000", LEDGER_SHEET],
            [],
        ),
        (lost("2026-10-10"), [OLD_BATCHES, WIDER], []),
        (lost("2025-10-10"), ["older than any window reaches (366 days)"], [WIDER]),
        ({"bank_to": "2026-11-29"}, [AT_BANK], []),
        ({"bank_to": ""}, [AT_BANK], []),
        ({"bank_to": LAST}, [], [AT_BANK]),
    ],
    ids=[
        "an equation does not hold",
        "the ledger differs, in the currency's own decimals",
        "lines of batches that a wider window reaches",
        "lines of batches that none reaches",
        "the bank is covered for a part",
        "the bank is not covered",
        "the bank is covered",
    ],
)
def test_what_a_statement_says_blocks_with_the_way_out(ended, monkeypatch, fields, says, says_not):
    """Both sides of what does not tie, the sheet where it stands, and what to do."""
    close = given(ended, monkeypatch, **fields)

    named = blocked(close)
    assert [words for words in says if words not in named] == []
    assert [words for words in says_not if words in named] == []
    assert (close.verdict is CloseVerdict.NOT_READY) is bool(says)


@pytest.mark.parametrize(
    ("first_seen", "order", "age", "is_blocked"),
    [
        ("2026-11-03", "other", 3, True),
        ("2026-12-02", "other", 3, False),
        ("2026-12-02", "own", 0, True),
        ("2026-12-02", "", 3, True),
        ("2026-12-02", "", 2, False),
        ("2026-12-02", "", None, False),
    ],
)
def test_a_grave_break_that_nobody_looks_after_blocks(
    ended, monkeypatch, first_seen, order, age, *, is_blocked
):
    """Of the month, of an order of its facts, or of a payout, batch or entry that is so old.

    With the money at risk that its night shows.
    """
    close = given(ended, monkeypatch, known_by="2026-12-03")
    known = str(close.stated.statement.facts["order_no"].iloc[0])
    row = {
        "break_id": "b" * 16,
        "code": "REFUND_DUE",
        "order_no": (named := {"own": known}.get(order, order)),
        "about": "" if named else "BATCH-7",
        "transaction_id": "T1",
        "currency": "EUR",
        "exposure": 500,
        "effect_orders": -200,
        "effect_ledger": None,
        "effect_bank": None,
        "flags": "",
        "severity": "HIGH",
        "first_seen": first_seen,
        "age_days": age,
    }
    monkeypatch.setattr(month_closes.StoredResult, "open_breaks", lambda _: pd.DataFrame([row]))

    text = blocked(closed(ended))

    blocker = f"REFUND_DUE {named or 'BATCH-7'}, 2.00 EUR, HIGH: no owner"
    assert (blocker in text) is is_blocked
    assert ("recon import-resolutions" in text) is is_blocked
