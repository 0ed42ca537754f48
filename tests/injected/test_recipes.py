"""Every code is planted from the truth and found again: nothing missed, nothing too much."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from recon.matching.breaks.result import Reconciliation
from recon.model.terms import BreakCode, Verdict
from recon.proof.engine import reconcile
from tests.injected import RECIPES, Injected, planted
from tests.injected.word_groups import BANK_CODES, CASH_CODES
from tests.proving import failed, reconcile_proven

SIZE, EACH = 1_500, 3
"""Orders, and how often each code is planted among them."""


@pytest.fixture(scope="module")
def files() -> Injected:
    """Plain files with every code planted three times."""
    return planted(size=SIZE, broken=EACH * len(RECIPES), seed=7)


@pytest.fixture(scope="module")
def result(files: Injected) -> Reconciliation:
    """What the engine makes of the files."""
    return reconcile_proven(files.sources, rules=files.rules, as_of=files.as_of)


def scores(files: Injected, result: Reconciliation) -> pd.DataFrame:
    """By code: planted, found in its place under its name, and found too much."""
    found = result.breaks
    name = found["order_no"].where(found["order_no"].ne(""), found["transaction_id"])
    told = set(zip(found["code"], name, strict=True))
    key = set(zip(files.key["code"], files.key["name"], strict=True))
    rows = [
        {
            "code": code.value,
            "planted": sum(one == code for one, _ in key),
            "found": sum(one == code for one, _ in key & told),
            "too_much": sum(one == code for one, _ in told - key),
        }
        for code in RECIPES
    ]
    return pd.DataFrame(rows).set_index("code")


def test_every_code_has_a_recipe() -> None:
    """A code that nobody can plant cannot be proven."""
    assert set(RECIPES) == set(BreakCode) - BANK_CODES - CASH_CODES


def test_precision_and_recall_are_one_for_every_code(
    files: Injected, result: Reconciliation
) -> None:
    """Each planted break is found once, under its own code, and no other break is told."""
    table = scores(files, result)

    assert table[table["found"].ne(EACH) | table["planted"].ne(EACH)].empty, table
    assert int(table["too_much"].sum()) == 0
    assert len(result.breaks) == EACH * len(RECIPES)
    assert not result.breaks["cause"].str.contains("time zone").any()


def test_effects_are_those_of_the_answer_key(files: Injected, result: Reconciliation) -> None:
    """Both effects of every break, worked out by hand in its recipe."""
    breaks = result.breaks
    name = breaks["order_no"].where(breaks["order_no"].ne(""), breaks["transaction_id"])
    place = dict(zip(breaks["break_id"], name, strict=True))
    sums = result.effects.assign(name=result.effects["break_id"].map(place))
    legs = sums.groupby(["name", "leg"])["amount"].sum().to_dict()

    found = {
        one: (legs.get((one, "orders"), 0), legs.get((one, "ledger"), 0)) for one in place.values()
    }

    key: Any = files.key.set_index("name")[["effect_orders", "effect_ledger"]]
    assert found == {row.Index: (row.effect_orders, row.effect_ledger) for row in key.itertuples()}


def test_nothing_else_is_open_and_every_total_holds(result: Reconciliation) -> None:
    """The orders that agree all match, with a settlement file and its payout booked."""
    assert result.verdict is Verdict.BREAKS_OPEN
    assert len(result.pending) == len(result.unverified) == 0
    assert failed(result) == []
    assert {total.id for total in result.control_totals} >= {"T4", "T5A", "T5B", "T8", "T11"}


def test_any_order_of_the_rows_gives_the_same_result(
    files: Injected, result: Reconciliation
) -> None:
    """Payouts, chargebacks and settled lines among all other codes: a shuffle changes nothing."""
    names = ("orders", "gateway", "ledger", "instructions", "settlement")
    moved: dict[str, Any] = {
        name: getattr(files.sources, name).sample(frac=1, random_state=11).reset_index(drop=True)
        for name in names
    }

    other = reconcile(replace(files.sources, **moved), rules=files.rules, as_of=files.as_of)

    pd.testing.assert_frame_equal(other.breaks, result.breaks)
    pd.testing.assert_frame_equal(other.effects, result.effects)
    assert other.digest == result.digest


def test_an_unsettled_sample_leaves_the_codes_of_settlement_out() -> None:
    """Without a settlement file its codes and the payouts' cannot be planted, and none is found."""
    files = planted(size=400, broken=80, seed=3, settled=False)

    result = reconcile(files.sources, rules=files.rules, as_of=files.as_of)

    assert sorted(result.breaks["code"]) == sorted(files.key["code"])
    assert "settlement, T11 and T18: no settlement file was given" in result.not_covered
