from collections.abc import Callable

import pytest

from recon.proof import totals_in_sql
from recon.proof.totals_in_sql import BEFORE_MONEY
from recon.steps.night import whole_night as night
from tests.recon.steps.conftest import UP_TO_COMPARE, Merchant, capture, plain_workbooks


def settled(merchant: Merchant) -> str:
    """What the step that sends said."""
    return next(step.sentence for step in merchant.told if step.step == "settle")


@pytest.mark.parametrize("name", [BEFORE_MONEY[0], BEFORE_MONEY[-1]])
def test_money_waits_where_its_proof_died_and_leaves_once_with_the_next_one(
    merchant: Merchant, killed_at: Callable[[str], list[int]], name: str
) -> None:
    killed = killed_at(totals_in_sql._text(name).partition("\n")[0])
    capture(merchant)
    merchant.move_money()

    assert len(killed) == 1
    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": 1}
    assert f"{name}: the process that asks DuckDB ended (SIGKILL)" in settled(merchant)

    merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


@pytest.mark.parametrize(
    ("spoilt", "red"),
    [
        ("UPDATE order_file SET rows_read = rows_read + 1", "T1 orders orders.csv: read"),
        (
            "UPDATE order_file SET rows_read = rows_read + 1, rows_accepted = rows_accepted + 1",
            "T2 orders.csv (1) stored",
        ),
        ("UPDATE answer_part SET answered = 0", "T3 keys asked"),
        ("UPDATE instruction SET amount = 2 * amount", "T9 payments out of bounds: 1 is not 0"),
    ],
)
def test_what_does_not_tie_before_money_lets_nothing_leave(
    merchant: Merchant, spoilt: str, red: str
) -> None:
    """Whatever else closes the gate: a capture of the night before, and one that was to leave."""
    capture(merchant)
    merchant.move_money()
    merchant.inbox.joinpath("orders.csv").unlink()
    another = merchant.payments("authorised")[-1]
    merchant.drop("more.csv", merchant.order(another, status="paid", action="capture"))
    names = iter(UP_TO_COMPARE)
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):

        def walk(*steps: str) -> None:
            night.walk(
                steps,
                run_id,
                environment=environment,
                workbooks=plain_workbooks(),
                progress=merchant.told.append,
            )

        walk(next(names), next(names))
        merchant.as_owner(spoilt)
        merchant.told = []
        walk(next(names))

    assert len(merchant.effects()) == 1
    assert red in settled(merchant)
