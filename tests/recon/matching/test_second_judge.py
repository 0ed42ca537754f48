"""Random tiny sets, judged by the engine and by a second judge that shares nothing with it."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from tests.proving import failed
from tests.recon.matching.second_judge import Classified, Judge, Set

LONG_AGO = datetime(2026, 10, 1, 12, tzinfo=UTC)
AHEAD = datetime(9999, 12, 31, 23, tzinfo=UTC)
JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)
SIZE = 1_500
AMOUNTS = (1000, 2000, 3000, 7000, 10000, 10000, 10000, 12000)
STATES = ("pending", "authorised", "paid", "paid", "paid", "partially_refunded", "refunded")
CODES = {
    "pending": "1000",
    "authorised": "2000",
    "paid": "3000",
    "partially_refunded": "4000",
    "refunded": "4100",
    "cancelled": "5000",
    "failed": "6000",
    "expired": "6100",
    "chargeback": "7000",
}
ENTRIES = ("capture", "capture", "capture", "refund", "refund", "chargeback", "adjustment")
HIDING = ("partially_refunded", "refunded")


def drawn(pick, *, covered, shown):
    """A set of a few rows whose amounts often agree."""
    one = Set(late=pick.random() < 0.6, covered=covered, shown=shown)
    if pick.random() < 0.9:
        label = pick.choice(
            ["authorised", "pending", "cancelled", "failed", *("paid",) * 5, *HIDING]
        )
        one.order = {"status": label, "amount": pick.choice(AMOUNTS)}
        if label == "partially_refunded" or (label == "refunded" and pick.random() < 0.3):
            one.order["refund_amount"] = pick.choice(AMOUNTS[:4])
    usual = one.order["amount"] if one.order else 10000
    for _ in range(pick.choice([0, 1, 1, 1, 1, 1, 2])):
        label = pick.choice([*STATES, "cancelled", "expired", "failed", "chargeback"])
        row: dict[str, Any] = {"state": label, "amount": pick.choice([usual, usual, *AMOUNTS])}
        given = label == "partially_refunded" and pick.random() < 0.7
        if given or (label == "refunded" and pick.random() < 0.2):
            row["refunded_amount"] = pick.choice(AMOUNTS[:4])
        if row["state"] in shown or row["state"] not in HIDING:
            one.payments.append(row)
    for _ in range(pick.choice([0, 0, 1, 1, 2])):
        kind = pick.choice(["capture", "refund", "refund", "refund", "cancel"])
        label = pick.choice([*("confirmed",) * 3, "in_doubt", "rejected", "approved", "planned"])
        one.moves.append(
            {"kind": kind, "state": label, "amount": pick.choice([usual, *AMOUNTS[:4]])}
        )
    if covered:
        told = pick.random() < 0.5
        one.entries = [*(booked_as_reported(one, pick=pick) if told else booked(usual, pick=pick))]
    return one


def booked(usual, *, pick):
    """A few entries of any kind."""
    for _ in range(pick.choice([0, 1, 1, 2, 2, 3])):
        kind = pick.choice([*ENTRIES, "write_off", "refund_reversal", "chargeback_reversal"])
        yield {"entry_type": kind, "amount": usual if kind == "capture" else pick.choice(AMOUNTS)}


def booked_as_reported(one, *, pick):
    """Entries of what the gateway or the first reply tells."""
    refunds = [row["amount"] for row in one.moves if row["kind"] == "refund"]
    for row in one.payments:
        if row["state"] in {"paid", "chargeback", *HIDING}:
            yield {"entry_type": "capture", "amount": row["amount"]}
        if row["state"] == "chargeback":
            yield {"entry_type": "chargeback", "amount": row["amount"]}
        if row["state"] == "refunded":
            refunds = [row.get("refunded_amount", row["amount"])]
        if row["state"] == "partially_refunded":
            refunds = [row.get("refunded_amount"), *refunds]
    told = [amount for amount in refunds if amount is not None]
    if told and pick.random() < 0.9:
        yield {"entry_type": "refund", "amount": told[0]}


def put(case, one, *, name):
    """The rows of the set under one order key."""
    at = AHEAD if one.ahead else LONG_AGO if one.late else JUST_NOW
    if one.order is not None:
        case.order(one.order["status"], order_no=name, ordered_at=at, **_rest(one.order, "status"))
    for place, row in enumerate(one.payments):
        ids = {"order_no": name, "transaction_id": f"{name}-{place}"}
        # The later of two equal payments speaks for the dead.
        day = at.replace(minute=place)
        case.payment(row["state"], transaction_date=day, **ids, **_rest(row, "state"))
    for place, row in enumerate(one.entries):
        ids = {"order_no": name, "entry_id": f"{name}-{place}", "reference_no": f"{name}-{place}"}
        case.entry(row["entry_type"], booked_at=at, **ids, **_rest(row, "entry_type"))
    for place, row in enumerate(one.moves):
        ids = {"order_no": name, "transaction_id": f"{name}-0", "instruction_id": f"{name}-{place}"}
        case.move(row["kind"], row["state"], amount=row["amount"], approved_at=at, **ids)


def _rest(row, label):
    return {name: value for name, value in row.items() if name != label}


def found(case):
    """What the engine makes of each set."""
    result = case.proven()
    assert failed(result) == []
    outcomes: dict[str, Classified] = {}
    frames = {
        "BREAK": result.breaks,
        "MATCHED": result.matches[result.matches["rule"].ne("not_compared")],
        "PENDING": result.pending,
        "UNVERIFIED": result.unverified,
    }
    for state, frame in frames.items():
        for row in frame.to_dict("records"):
            labels = {*row["flags"].split(";")}
            told = labels | {row["code"]} if state == "BREAK" else labels & FLAGS
            codes = frozenset(label for label in told if label.isupper() or label in FLAGS)
            effects = tuple(0 if pd.isna(row[n]) else int(row[n]) for n in LEGS)
            outcomes[row["order_no"]] = Classified(state, codes, (effects[0], effects[1]), (0, 0))
    return outcomes


LEGS = ("effect_orders", "effect_ledger")
FLAGS = {"date_ahead", "entry_vanished"}
ALL = frozenset(CODES)


@pytest.mark.parametrize("covered", [True, False], ids=["ledger", "no-ledger"])
@pytest.mark.parametrize("lacking", [False, True], ids=["", "order-file-lacking"])
@pytest.mark.parametrize(
    ("shown", "mapped"),
    [(ALL, ALL), (ALL - {*HIDING}, ALL - {*HIDING}), (ALL - {*HIDING}, ALL)],
    ids=["all-shown", "refunds-hidden", "refunds-declared-hidden"],
)
def test_a_second_judge_agrees_on_every_random_set(new_case, *, covered, lacking, shown, mapped):
    """State, codes and both effects are what the contract gives; of no match anything is left."""
    pick = random.Random(f"{covered}{sorted(shown)}")
    case = new_case().ruled(
        payment_status={CODES[label]: label for label in mapped},
        gateway={"shows_refunds": mapped == shown},
    )
    if covered:
        case.ledger()
    if lacking:
        case.lacking(LONG_AGO - timedelta(seconds=1))
    case.rows["instructions"] = []
    sets = {f"N{number}": drawn(pick, covered=covered, shown=shown) for number in range(SIZE)}
    for name, one in sets.items():
        one.ahead = one.late and pick.random() < 0.2
        one.lacking = lacking
        one.gone = covered and pick.random() < 0.1
        put(case, one, name=name)
    case.gone(*(name for name, one in sets.items() if one.gone))

    told = found(case)
    classified = {name: Judge(one).classified() for name, one in sets.items()}

    nothing = Classified("", frozenset(), (0, 0), (0, 0))
    other = {
        name: (one, told.get(name, nothing), sets[name])
        for name, one in classified.items()
        if (one.state, one.codes, one.effects)
        != ((mine := told.get(name, nothing)).state, mine.codes, mine.effects)
    }
    assert other == {}
    matched = [one for one in classified.values() if one.state == "MATCHED"]
    assert {one.left for one in matched} == {(0, 0)}
    assert len(matched) > SIZE / 20
