"""The money and what needs a person, as the page of a night has them."""

from typing import Any

from sqlalchemy import select

from flows.artifacts import money_rows, status_lines
from recon.store.schema import run
from tests.conftest import migrated, sqlite_url  # noqa: F401 - fixtures
from tests.recon.steps.conftest import database_url, merchant, profile  # noqa: F401 - fixtures


def shown(night: Any) -> list[str]:
    """The lines of the newest run."""
    with night.environment() as environment:
        with environment.store.reading() as connection:
            newest = select(run.c.run_id).order_by(run.c.started_at.desc()).limit(1)
            run_id = str(connection.execute(newest).scalar_one())
        return status_lines(run_id, environment=environment)


def shown_in_doubt(night: Any) -> list[str]:
    """The lines once replies to captures were lost, and the gateway answered no question of it."""
    silent = {"operation": "retrievalTrans", "kind": "status", "status": 500, "when": "before"}
    night.fault({"operation": "capture", "kind": "fin", "when": "after"}, {**silent, "nth": 2})
    night.move_money()
    return shown(night)


def test_a_night_without_instructions_says_so(merchant: Any) -> None:  # noqa: F811 - the fixture
    """Nothing was to move, and nobody is needed."""
    merchant.night()

    assert [line for line in shown(merchant) if line] == [
        "## Money",
        "No instruction: no money was to move.",
        "## What needs a person",
        "No instruction does.",
    ]


def test_money_in_doubt_stands_first_with_what_to_do(
    merchant: Any,  # noqa: F811 - the fixture
) -> None:
    """By outcome and currency; the doubt again below, with its order and the next step."""
    doubtful = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    merchant.drop("a.csv", merchant.order(doubtful, status="paid", action="capture"))
    lines = shown_in_doubt(merchant)

    (money,) = [line for line in lines if line.startswith("| in doubt")]
    assert money == f"| in doubt | capture | 1 | {doubtful.amount} EUR |"
    (needs,) = [line for line in lines if line.startswith("- ")]
    assert f"capture in doubt: order {doubtful.order_no}, {doubtful.amount} EUR, since " in needs


def test_what_several_need_is_said_once_above_them(
    merchant: Any,  # noqa: F811 - the fixture
) -> None:
    """Three captures whose reply was lost need the same, and each has a line of its own."""
    lost = [one for one in merchant.payments("authorised") if one.currency == "EUR"][:3]
    merchant.drop("a.csv", *(merchant.order(one, status="paid", action="capture") for one in lost))
    lines = shown_in_doubt(merchant)
    said = lines[lines.index("## What needs a person") + 2 : -1]

    assert said[0].startswith("- Each of these 3: The connection failed")
    assert sorted(line.partition(", since ")[0] for line in said[1:]) == sorted(
        f"    - capture in doubt: order {one.order_no}, {one.amount} EUR" for one in lost
    )


def test_no_sum_of_a_line_is_cut_where_the_page_does_not_wrap_it() -> None:
    """More than three currencies go on below, under the same outcome, whole to the last one."""
    sums = dict.fromkeys(("EUR", "GBP", "JPY", "KWD", "USD", "CHF", "SEK"), 12_345_678_901)
    lines = money_rows("confirmed", "capture", count=395, sums=sums)

    assert lines == [
        "| confirmed | capture | 395 | 123456789.01 CHF, 123456789.01 EUR, 123456789.01 GBP |",
        "|  |  |  | 12345678901 JPY, 12345678.901 KWD, 123456789.01 SEK |",
        "|  |  |  | 123456789.01 USD |",
    ]
