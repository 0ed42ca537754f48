"""Random months at the bank, judged by the engine and by a judge that shares nothing with it."""

import os
import random
from collections import Counter

import pandas as pd
import pytest

from tests.recon.matching.bank.cases import FIRST, Case
from tests.recon.matching.bank.second_bank_judge import Came, Paid, classify

MONTHS = int(os.environ.get("BANK_SEEDS", "25"))
"""Of each test; campaign `bank-truth` plays more."""
PAID_ON = ("2026-10-27", "2026-10-29", "2026-11-06", "2026-11-09", "2026-11-10", "2026-11-26")
CAME_ON = ("2026-11-05", "2026-11-09", "2026-11-10", "2026-11-13", "2026-11-24", "2026-11-27")
AMOUNTS = (100, 100, 200, 300)
"""So few that sums and amounts often agree."""
TODAY = "2026-11-30"
EVERY = {
    *("MATCHED", "OPENING", "AMBIGUOUS_MATCH", "PAYOUT_NOT_AT_BANK", "PAYOUT_RETURNED"),
    *("PAYOUT_TWICE_AT_BANK", "BANK_AMOUNT_DIFFERS", "known", "unknown"),
    *("repaid", "late", "by_amount", "bank_charges", "joined"),
}


def month_of(pick):
    """Payouts, and entries that name one of them, two together, or nothing."""
    paid = [
        Paid(f"BATCH-{n}", pick.choice(PAID_ON), pick.choice((*AMOUNTS, -100)))
        for n in range(pick.randint(1, 6))
    ]
    free, came = [*paid], []
    while free:
        first = free.pop()
        way = pick.choice(("named", "named", "two", "nothing", "nothing"))
        mine = [first, *([free.pop()] if way == "two" and free else [])]
        names = () if way == "nothing" else tuple(one.batch for one in mine)
        whole = sum(one.amount for one in mine)
        amounts = ((whole,), (whole,), (whole, -whole), (whole, whole), (whole, -whole, whole))
        for amount in pick.choice((*amounts, (), (50,))):
            less = pick.choice((0, 0, 0, 7)) if names else 0
            day, charges = pick.choice(CAME_ON), pick.choice((less, 0, 0, 5))
            came.append(Came(names, day, amount - less, charges))
    more = pick.randint(0, 2)
    came += [Came((), pick.choice(CAME_ON), pick.choice(AMOUNTS)) for _ in range(more)]
    return paid, came


def engine_of(paid, came, *, covered):
    """What the engine makes of a month."""
    case = Case(to_date=covered)
    for one in paid:
        case.paid(one.batch, one.amount, on=one.on)
    for entry in came:
        text = f"Gateway {' and '.join(entry.names)}"
        case.came(text, entry.amount, on=entry.on, charges=-entry.charges)
    return case.compared().result


@pytest.mark.parametrize("covered", ["2026-11-12", TODAY])
def test_the_second_judge_comes_to_the_same(covered):
    """State, code, flags, effect and exposure of each payout, and what each entry is of."""
    pick, seen = random.Random(f"bank {covered}"), set[str]()
    for number in range(MONTHS):
        paid, came = month_of(pick)
        shuffled = (pick.sample(several, len(several)) for several in (paid, came))
        result = engine_of(*shuffled, covered=covered)  # type: ignore[arg-type]  # a pair of lists
        classify(paid, came, first=FIRST, covered=covered, today=TODAY)

        expected = [(o.batch, o.state, o.code, o.flags, o.effect, o.exposure) for o in paid]
        assert [*_payouts(result)] == expected, number
        assert Counter(_entries(result)) == Counter(one.state for one in came), number
        in_transit = [one.batch for one in paid if one.state == "PENDING"]
        assert result.pending["expected_side"].tolist() == ["bank"] * len(in_transit)
        for one in paid:
            seen |= {one.code or one.state, *one.flags}
        seen |= {one.state for one in came}
    assert seen == EVERY | {"PENDING"} | ({"waits"} if covered < TODAY else set())


def _payouts(result):
    """Every payout as its rows have it; the first of a result bears effect and exposure."""
    broken = result.breaks.set_index("break_id")
    borne: set[str] = set()
    rows = result.bank["paid"].sort_values(["settled_on", "batch_id"]).to_dict("records")
    for row in rows:
        own = row["result_id"]
        bears = own in broken.index and own not in borne
        borne.add(own)
        sums = broken.loc[own, ["effect_bank", "exposure"]].tolist() if bears else (0, 0)
        flags = {*row["flags"].split(";")} - {""}
        yield row["batch_id"], row["state"], row["code"], flags, *map(int, sums)


def _entries(result):
    of_payouts = {*result.bank["paid"]["result_id"]}
    received: pd.DataFrame = result.bank["received"]
    for state, own in zip(received["state"], received["result_id"], strict=True):
        yield "waits" if state == "WAITING" else "known" if own in of_payouts else "unknown"
