"""Nights one after the other over one gateway: what opens, closes and comes back can be signed."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from python_calamine import CalamineWorkbook

from recon.cli.workbooks import workbooks
from recon.steps.ground import kept_results
from recon.steps.ground.identity import identify
from recon.steps.people.sign_off import sign
from recon.store.nights import runs

pytestmark = pytest.mark.xdist_group("chains")
"""They share what takes longer to make than to look at."""

PEOPLE = """
[approvers.anna]
name = "Anna Berg"
[approvers.dan]
name = "Dan Orr"
role = "reviewer"
"""
DAYS = ("2026-11-20", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26")
"""Business days; the first two have a weekend between them."""
LEDGER_HEADER = (
    "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "reverses_entry_id\n"
)
NOBODY_LISTENS = "http://127.0.0.1:9"


class Night(NamedTuple):
    """What the books say of two orders on one night, and whether the gateway answers."""

    ledger: str
    """CSV lines; {a}, {b} and {a_amount}, {b_amount} are the two orders."""
    gateway: bool = True


BOTH = """\
E1,100042,100042001,{a},capture,EUR,{a_amount},2026-11-19T10:00:00Z,
E2,100042,100042001,{b},capture,EUR,{b_amount},2026-11-19T10:00:00Z,
"""
ONLY_B = "E2,100042,100042001,{b},capture,EUR,{b_amount},2026-11-19T10:00:00Z,\n"
A_REVERSED = (
    BOTH
    + """\
E3,100042,100042001,{a},capture_reversal,EUR,{a_amount},2026-11-19T11:00:00Z,E1
"""
)
A_BOOKED_AGAIN = (
    A_REVERSED + "E4,100042,100042001,{a},capture,EUR,{a_amount},2026-11-19T12:00:00Z,\n"
)
A_REVERSED_AGAIN = (
    A_BOOKED_AGAIN
    + """\
E5,100042,100042001,{a},capture_reversal,EUR,{a_amount},2026-11-19T13:00:00Z,E4
"""
)
B_REVERSED = "E6,100042,100042001,{b},capture_reversal,EUR,{b_amount},2026-11-19T13:00:00Z,E2\n"
BOTH_REVERSED = A_REVERSED + B_REVERSED
A_SMALL = A_REVERSED + "E7,100042,100042001,{a},capture,EUR,0.01,2026-11-19T12:00:00Z,\n"


def settled_folder(merchant: Any) -> None:
    """People who sign, and authorisations that do not lapse."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + "\n[authorisation]\nvalid_days = 365\n")


def play(merchant: Any, nights: Sequence[Night]) -> list[tuple[str, Path]]:
    """Every night, on its business day; run id and workbook of each."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"]
    a, b = [one for one in paid if one.ordered_at < "2026-11-18"][:2]
    named = {"a": a.order_no, "b": b.order_no, "a_amount": a.amount, "b_amount": b.amount}
    gateway = merchant.variables["RECON_GATEWAY_BASE_URL"]
    done = []
    for before, day, one in zip(("", *DAYS), DAYS, nights, strict=False):
        if before:
            merchant.wait(hours=24 * (_day(day) - _day(before)).days)
        other = merchant.order(a, order_no=f"N-{day}", status="cancelled")
        merchant.drop(f"orders-{day}.csv", merchant.order(a), merchant.order(b), other)
        (merchant.folder / "ledger.csv").write_text(LEDGER_HEADER + one.ledger.format(**named))
        merchant.variables["RECON_GATEWAY_BASE_URL"] = gateway if one.gateway else NOBODY_LISTENS
        verdict = merchant.night(date=day, workbooks=workbooks())
        done.append(_agreed(merchant, verdict=verdict.value))
    return done


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _agreed(merchant: Any, *, verdict: str) -> tuple[str, Path]:
    """The newest night, once all that tell its verdict tell the same."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        done = runs.finished(connection)[-1]
        run = runs.get(connection, done.run_id)
        kept = kept_results.load(connection, done.run_id, environment=environment)
    assert kept is not None
    path = Path(done.workbook)
    said = {one.step: one.figures.get("verdict") for one in merchant.told}
    page_one = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Summary")
    failing = [total for total in kept.control_totals if not total.passed]
    told = [
        verdict,
        run.verdict,
        said["reconcile"],
        said["report"],
        page_one.to_python(skip_empty_area=False)[3][1],
    ]
    assert (set(told), failing) == ({verdict}, []), (told, failing)
    return done.run_id, path


def rolled(path: Path) -> dict[str, int]:
    """The line of counts of the roll-forward, as it stands in the file."""
    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Control totals").to_python()
    at = next(place for place, row in enumerate(rows) if "Open the night before" in row)
    line = dict(zip(rows[at], rows[at + 1], strict=True))
    return {
        str(title): int(cell) for title, cell in line.items() if isinstance(cell, float) and cell
    }


OPEN_AGAIN = {"Open again": 1, "Open now": 1, "Rows on Breaks": 1}
CHAINS = {
    "booked, then reversed": ([Night(ONLY_B), Night(BOTH), Night(A_REVERSED)], OPEN_AGAIN),
    "an outage": ([Night(ONLY_B), Night(ONLY_B, gateway=False), Night(ONLY_B)], OPEN_AGAIN),
    "closed twice": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED),
            Night(A_BOOKED_AGAIN),
            Night(A_REVERSED_AGAIN),
        ],
        OPEN_AGAIN,
    ),
    "an outage before it comes again": (
        [Night(ONLY_B), Night(BOTH), Night(A_REVERSED, gateway=False), Night(A_REVERSED)],
        OPEN_AGAIN,
    ),
    "an outage while it is open again": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED),
            Night(A_REVERSED, gateway=False),
            Night(A_REVERSED),
        ],
        OPEN_AGAIN,
    ),
    "closed behind an outage, then open": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED, gateway=False),
            Night(A_BOOKED_AGAIN),
            Night(A_REVERSED_AGAIN),
        ],
        OPEN_AGAIN,
    ),
    "another code on return": ([Night(ONLY_B), Night(BOTH), Night(A_SMALL)], OPEN_AGAIN),
    "another code after an outage": (
        [Night(ONLY_B), Night(ONLY_B, gateway=False), Night(A_SMALL)],
        OPEN_AGAIN,
    ),
    "two at once": (
        [Night(""), Night(BOTH), Night(BOTH_REVERSED)],
        {"Open again": 2, "Open now": 2, "Rows on Breaks": 2},
    ),
    "two at once, one from out of sight": (
        [Night(""), Night(ONLY_B), Night(ONLY_B, gateway=False), Night(A_REVERSED + B_REVERSED)],
        {"Open again": 2, "Open now": 2, "Rows on Breaks": 2},
    ),
    "one ends as another comes again": (
        [Night(ONLY_B), Night(BOTH), Night(A_REVERSED), Night(A_BOOKED_AGAIN + B_REVERSED)],
        {
            "Open the night before": 1,
            "New": 1,
            "Matched late": -1,
            "Open now": 1,
            "Rows on Breaks": 1,
        },
    ),
}


@pytest.mark.parametrize(
    ("nights", "last"), [pytest.param(*chain, id=name) for name, chain in CHAINS.items()]
)
def test_a_night_on_which_breaks_come_back_is_signed(
    begun: Any, nights: list[Night], last: dict[str, int]
) -> None:
    """Whatever came back, all that tell the verdict agree, and two people sign every night."""
    merchant = begun(settled_folder)
    played = play(merchant, nights)
    for run_id, _ in played:
        with merchant.environment() as environment:
            for role, name in (("reviewer", "dan"), ("approver", "anna")):
                person = identify(name, code=None, environment=environment)
                night = sign(run_id, role=role, person=person, environment=environment)
    assert [one.role for one in night.signed] == ["reviewer", "approver"]
    assert rolled(played[-1][1]) == last
