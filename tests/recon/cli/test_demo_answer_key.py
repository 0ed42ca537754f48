"""A whole live night of the demo, held against its whole answer key: no more, and no less."""

import json
import os
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recon import cli
from recon.cli.demo_work import ACCOUNT
from recon.model.money import parse_minor_units
from recon.model.terms import BreakCode
from tests.recon.cli.conftest import DEMO_OF_60

pytestmark = pytest.mark.xdist_group(DEMO_OF_60)
DEMO = (2_000, 42)
"""Orders and seed of `recon demo`, as anybody starts it."""
DEMOS = [(60, 42), DEMO, (900, 8)][: int(os.environ.get("DEMOS_PLAYED", "1"))]
"""Those that are played: one by `make test`, the demo too by `make test-truths`."""
IN_LEDGER_AND_BANKS = {
    BreakCode.HELD_BACK,
    BreakCode.FEE_NOT_BOOKED,
    BreakCode.FEE_BOOKED_DIFFERS,
    BreakCode.RESERVE_NOT_BOOKED,
    BreakCode.RESERVE_BOOKED_DIFFERS,
    BreakCode.PAYOUT_NOT_BOOKED,
    BreakCode.PAYOUT_AMOUNT_MISMATCH,
    BreakCode.LEDGER_PAYOUT_ONLY,
    BreakCode.PAYOUT_TWICE_AT_BANK,
    BreakCode.PAYOUT_RETURNED,
    BreakCode.BANK_AMOUNT_DIFFERS,
    BreakCode.BANK_FX_DIFFERENCE,
    BreakCode.PAYOUT_NOT_AT_BANK,
    BreakCode.BANK_RECEIPT_UNKNOWN,
    BreakCode.AMBIGUOUS_MATCH,
    BreakCode.BANK_NOT_BOOKED,
}
NO_LEG = {"effect_ledger", "effect_bank"}
"""Columns that are blank where a break has no such leg."""
Legs = frozenset[tuple[str, str, int]]
"""Leg, currency and amount of every effect of a break; minor units."""


@dataclass(frozen=True, slots=True)
class Night:
    """What the sandbox planted, and what the night's sealed results say."""

    key: dict[str, Any]
    results: Path

    def rows(self, name):
        table = pd.read_parquet(self.results / f"{name}.parquet")
        table = table.assign(**{each: table[each].fillna(0) for each in NO_LEG & {*table.columns}})
        rows: list[dict[str, Any]] = table.to_dict("records")
        return rows

    def legs(self):
        """Break -> its effects."""
        legs = defaultdict(set)
        for row in self.rows("effects"):
            legs[row["break_id"]].add((row["leg"], row["currency"], row["amount"]))
        return {own: frozenset(each) for own, each in legs.items()}


@pytest.fixture(scope="module", params=DEMOS, ids=str)
def night(request, demo_of_60, tmp_path_factory):
    """`recon demo` of some size."""
    folder, (orders, seed) = demo_of_60.folder, request.param
    if (orders, seed) != DEMOS[0]:
        folder = tmp_path_factory.mktemp("demo") / "d"
        size = [] if request.param == DEMO else ["--orders", str(orders), "--seed", str(seed)]
        assert cli.main(["demo", "--dir", str(folder), *size]) == 0
    memory = json.loads((folder / "demo.json").read_text())
    assert (memory["orders"], memory["seed"]) == (orders, seed)
    (results,) = (folder / "archive/nights").glob("*/*/*/*/results")
    return Night(json.loads((folder / "answer-key.json").read_text()), results)


def minor(amount, currency):
    """An amount of the key, which has a sign."""
    size = parse_minor_units(amount.removeprefix("-"), currency=currency)
    return -size if amount.startswith("-") else size


def orders_of_key(key):
    """Order -> code and effects; of what only the settlement file shows, the code.

    A break of the other account alone is found by that account's night.
    """
    found: dict[str, tuple[str, Legs | None]] = {}
    for planted in key["breaks"]:
        if ACCOUNT.account_id not in {
            planted["account_id"],
            *(leg["account_id"] for leg in planted["effects"]),
        }:
            continue
        legs = frozenset(
            (leg["leg"], leg["currency"], minor(leg["amount"], leg["currency"]))
            for leg in planted["effects"]
        )
        found[planted["order_no"]] = planted["code"], legs
    waiting = {planted["order_no"] for planted in key["pending"]}
    for planted in key["settlement"]:
        order_no = (planted["shown"] or planted["true"])["order_no"]
        if order_no not in waiting:
            found[order_no] = planted["code"], None
    return found


def groups_of_key(key):
    """Code, effect on the ledger and effect at the bank of everything that is of no order."""
    found: Counter[tuple[str, int, int]] = Counter()
    for planted in (*key["held_back"], *key["ledger"], *key["bank"]["breaks"]):
        effects = (planted.get(name, "") for name in ("effect_ledger", "effect_bank"))
        ledger, bank = (minor(each, planted["currency"]) if each else 0 for each in effects)
        found[planted["code"], ledger, bank] += 1
    return found


def test_every_order_of_the_key_is_the_break_it_says_and_no_other_is(night):
    legs, planted = night.legs(), orders_of_key(night.key)
    found = {
        row["order_no"]: (row["code"], legs.get(row["break_id"], frozenset()))
        for row in night.rows("breaks")
        if row["order_no"]
    }
    assert {no: code for no, (code, _) in found.items()} == {
        no: code for no, (code, _) in planted.items()
    }
    differing = {
        no: (found[no][1], wanted) for no, (_, wanted) in planted.items() if wanted is not None
    }
    assert {no: pair for no, pair in differing.items() if pair[0] != pair[1]} == {}


def test_every_group_of_books_and_banks_is_the_break_it_says_and_no_other_is(night):
    found = Counter(
        (row["code"], int(row["effect_ledger"]), int(row["effect_bank"]))
        for row in night.rows("breaks")
        if not row["order_no"]
    )
    assert found == groups_of_key(night.key)


def test_every_code_of_books_and_banks_is_planted_or_not_shown(night, request):
    planted = {code for code, *_ in groups_of_key(night.key)}
    assert planted & {*night.key["not_shown"]} == set()
    if request.node.callspec.params["night"] == DEMO:
        assert planted == IN_LEDGER_AND_BANKS


def test_every_row_is_accounted_for(night):
    totals = pd.read_parquet(night.results.parent / "proof" / "totals.parquet")
    rejects = pd.read_parquet(night.results.parent / "inputs" / "rejects.parquet")
    places = {*zip(rejects["source"], rejects["line"], rejects["column"], strict=True)}
    spoilt = {(each["file"], each["line"], each["column"]) for each in night.key["rejected_rows"]}
    assert totals[totals["left"] != totals["right"]].empty
    assert len(totals) > 0
    assert spoilt - places == set()


def test_what_waits_and_what_nobody_can_judge_is_what_the_key_says(night):
    own = [each for each in night.key["unverified"] if each["account_id"] == ACCOUNT.account_id]
    found = Counter((row["order_no"], row["reason"]) for row in night.rows("unverified"))
    flags = {row["order_no"]: row["flags"].split(";") for row in night.rows("matches")}
    waiting = {row["order_no"] for row in night.rows("pending")}
    assert found == Counter((each["order_no"], each["reason"]) for each in own)
    assert {each["order_no"] for each in night.key["pending"]} <= waiting
    assert [
        each
        for each in night.key["matched_with_flag"]
        if each["flag"] not in flags.get(each["order_no"], [])
    ] == []


def test_every_flag_of_a_bank_stands_at_its_pay_out(night):
    flags = {row["batch_id"]: row["flags"].split(";") for row in night.rows("paid")}
    keys = {f"{each['batch_id']}": each["flag"] for each in night.key["bank"]["matched_with_flag"]}
    assert {batch: flag for batch, flag in keys.items() if flag not in flags[batch]} == {}
