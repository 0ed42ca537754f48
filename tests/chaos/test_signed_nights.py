"""A chain of whole nights with their workbooks: whatever comes and goes, each is proven and signed.

Only a night with money in doubt waits for answers, as `recon sign-off` tells; none is refused else.
"""

import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from clerk import Clerk
from many_nights import days
from python_calamine import CalamineWorkbook
from shop import ENDINGS, PEOPLE, Shop

from recon.model.errors import UsageError
from recon.steps.ground.environment import environment_of
from recon.steps.ground.identity import identify
from recon.steps.people.sign_off import nights
from recon.store.nights.sign_off_rows import ROLES
from tests.recon.steps.signing import sign_seen

NIGHTS = int(os.environ.get("CHAOS_SIGNED", "6"))
SEED = int(os.environ.get("CHAOS_SEED", "0"))
OUTAGE_SHARE = 0.1 if os.environ.get("CHAOS") else 0.4
"""The ordinary run has few nights; some of them have to be bad ones."""
OUTAGES = (
    {"operation": "retrievalTrans", "kind": "status", "when": "before", "status": 503},
    {"operation": "retrievalTrans", "kind": "lag", "seconds": 90_000},
    {"operation": "*", "kind": "reset", "when": "before"},
)
SECONDS_A_NIGHT_MAX = 60
ANSWER_FIRST = "have no owner or no comment"
"""Why a proven night with money in doubt is not signed before its workbook came back."""
BREAK_ID = re.compile("[0-9a-f]{16}")
WINDOW_DAYS = 30 if os.environ.get("CHAOS") else 2
"""Orders leave the window also in the few nights of the ordinary run."""
DENIED = {"CAPTURE_UNCONFIRMED": "capture", "CANCEL_UNCONFIRMED": "cancel"}
"""Breaks that say that the gateway does not know of a move, by its operation."""

pytestmark = [
    pytest.mark.timeout(NIGHTS * SECONDS_A_NIGHT_MAX),
    pytest.mark.process,
    pytest.mark.xdist_group("signed nights"),
]


def _newest(shop: Shop) -> sqlite3.Row:
    with closing(sqlite3.connect(shop.database_url.removeprefix("sqlite:///"))) as connection:
        connection.row_factory = sqlite3.Row
        run: sqlite3.Row = connection.execute(
            "SELECT * FROM run ORDER BY started_at DESC LIMIT 1"
        ).fetchone()
    return run


def _breaks(shop: Shop, run_id: str) -> list[dict[str, Any]]:
    beside = Path(shop.database_url.removeprefix("sqlite:///")).parent / "archive"
    (path,) = beside.glob(f"nights/*/*/*/{run_id}/results/breaks.parquet")
    return pq.read_table(path, columns=["break_id", "code", "order_no"]).to_pylist()


def _open_breaks(shop: Shop, run_id: str) -> set[str]:
    return {one["break_id"] for one in _breaks(shop, run_id)}


def _untrue(shop: Shop) -> list[str]:
    """Breaks of the newest night that deny what the gateway has done."""
    done = {(one["operation"], one["order_no"]) for one in shop.truth()}
    return [
        f"{one['code']} of {one['order_no']}"
        for one in _breaks(shop, _newest(shop)["run_id"])
        if (DENIED.get(one["code"]), one["order_no"]) in done
    ]


def _shown(path: Path, sheet: str) -> list[str]:
    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name(sheet).to_python()
    return [str(cell) for row in rows for cell in row]


def _disagreements(shop: Shop) -> list[str]:
    """What console, database and workbook of the newest night do not say alike."""
    run = _newest(shop)
    workbook, verdict = Path(run["workbook"]), run["verdict"]
    page_one = "\n".join(_shown(workbook, "Summary"))
    listed = {cell for cell in _shown(workbook, "Breaks") if BREAK_ID.fullmatch(cell)}
    found = []
    if verdict not in shop.told.read_text().splitlines():
        found.append(f"the console does not say {verdict}")
    if verdict not in page_one:
        found.append(f"page one does not say {verdict}")
    if listed != _open_breaks(shop, run["run_id"]):
        found.append(f"the sheet lists {listed ^ _open_breaks(shop, run['run_id'])} otherwise")
    return found


def _is_signed(shop: Shop) -> bool:
    """Two people sign the newest night; False where money in doubt has to be answered first."""
    shop.wait(timedelta(hours=6))
    run = _newest(shop)
    with environment_of(shop.variables, clock=shop.tick) as environment:
        for role, short in zip(ROLES, PEOPLE, strict=True):
            person = identify(short, code=None, environment=environment)
            try:
                sign_seen(run["run_id"], role=role, person=person, environment=environment)
            except UsageError as error:
                if ANSWER_FIRST not in str(error):
                    raise
                return False
    return True


def test_each_night_of_a_chain_can_be_signed(
    shop_of: Callable[[random.Random], Shop], tell: Callable[..., None]
) -> None:
    """Breaks that open, end and return, outages in between: every night is proven and signed."""
    chance = random.Random(SEED)
    shop = shop_of(chance)
    shop.look_back(days=WINDOW_DAYS)
    clerk = Clerk(shop.folder / "ledger.csv", random.Random(SEED))
    outages = breaks = signed = 0
    for number in days(shop, chance, nights=NIGHTS):
        clerk.book(shop.truth(), now=shop.now)
        is_bad = chance.random() < OUTAGE_SHARE
        outages += is_bad
        shop.fault(*([chance.choice(OUTAGES)] if is_bad else []))
        ended = shop.night(real_workbook=True)
        where = f"night {number} of seed {SEED}: {shop.told.read_text()}"
        assert ended in ENDINGS, where
        assert _newest(shop)["verdict"] != "NOT PROVEN", where
        assert _disagreements(shop) == [], where
        # In a bad night the gateway answers with what it knew a day ago.
        assert is_bad or _untrue(shop) == [], where
        breaks += len(_open_breaks(shop, _newest(shop)["run_id"]))
        signed += _is_signed(shop)
        shop.decide()

    with environment_of(shop.variables, clock=shop.tick) as environment:
        first, last = date.fromisoformat("2026-11-20"), date.fromisoformat(shop.date)
        told = nights(first, last=last, environment=environment)
    due = [one for one in told if one.due]
    assert [len(one.signed) for one in due].count(len(ROLES)) == signed
    assert (len(due), breaks > 0) == (NIGHTS, True)
    assert signed > NIGHTS / 2
    tell(nights=NIGHTS, outages=outages, breaks=breaks, signed=signed)
