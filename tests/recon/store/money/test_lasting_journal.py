"""Commits that lose their connection, on a real PostgreSQL behind a proxy that ends them."""

import asyncio
import time
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from recon.instructions.sender import Sender, Sent
from recon.model.errors import StoreError
from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import Store, open_store
from recon.store.database.night_lock import account_lock
from recon.store.money import lasting_journal
from recon.store.money.journal import StoredJournal
from recon.store.money.lasting_journal import NOT_SENT, REPLY, LastingJournal, Spill
from recon.store.nights import runs
from recon.store.nights.runs import Run
from tests.recon.store.dropping_proxy import DroppingProxy
from tests.recon.store.scripted import AT, ScriptedGateway, cleared_captures, states_of

CLAIM, KEEP, RECORD = 2, 3, 4
"""Which COMMIT it is; the first one ends the look before the batch."""
BACK, AWAY = False, True


@pytest.fixture
def direct(migrated_postgresql_url: str) -> Iterator[Store]:
    """The database as it truly is."""
    opened = open_store(migrated_postgresql_url)
    yield opened
    opened.close()


@pytest.fixture
def run(direct: Store) -> Iterator[Run]:
    """An active run that holds its account."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with direct.writing() as connection:
        runs.start(connection, request, run_id="r1", as_of=AT, now=AT)
    with direct.reading() as connection:
        found = runs.get(connection, "r1")
    with account_lock(direct, found):
        yield found


@pytest.fixture
def proxy(migrated_postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DroppingProxy]:
    """What stands between the journal and the server."""
    monkeypatch.setattr(lasting_journal, "BACK_AFTER", (timedelta(milliseconds=300),) * 2)
    folder = parse_qs(urlsplit(migrated_postgresql_url).query)["host"][0]
    with DroppingProxy(f"{folder}/.s.PGSQL.5432") as made:
        yield made


def _send(store: Store, run: Run, *, spill: Spill, gateway: ScriptedGateway, orders: list) -> Sent:
    stored = StoredJournal(store, run, run_id=run.run_id)
    numbers = count(1)
    sender = Sender(
        gateway=gateway,
        journal=LastingJournal(
            stored,
            spill=spill,
            pause=lambda much: time.sleep(much.total_seconds()),
            note_outside=lambda: None,
        ),
        clock=lambda: AT,
        new_id=lambda: f"b{next(numbers)}",
        crash_point=str,
    )
    return asyncio.run(sender.send_all(orders))


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("commit", "mode", "away", "sent", "state", "kept"),
    [
        (CLAIM, "before", BACK, 0, "approved", [NOT_SENT]),
        (CLAIM, "before", AWAY, 0, "approved", [NOT_SENT]),
        (CLAIM, "after", BACK, 1, "confirmed", []),
        (CLAIM, "after", AWAY, 0, "in_flight", [NOT_SENT]),
        (KEEP, "before", BACK, 1, "confirmed", []),
        (KEEP, "before", AWAY, 1, "in_flight", [REPLY]),
        (KEEP, "after", BACK, 1, "confirmed", []),
        (KEEP, "after", AWAY, 1, "in_flight", [REPLY]),
        (RECORD, "before", BACK, 1, "confirmed", []),
        (RECORD, "before", AWAY, 1, "in_flight", []),
        (RECORD, "after", BACK, 1, "confirmed", []),
        (RECORD, "after", AWAY, 1, "confirmed", []),
    ],
)
def test_a_connection_that_ends_in_a_commit(
    direct: Store,
    run: Run,
    proxy: DroppingProxy,
    tmp_path: Path,
    *,
    commit: int,
    mode: str,
    away: bool,
    sent: int,
    state: str,
    kept: list[str],
) -> None:
    """Sent only under a claim that is there; an answer is in the database or in a file."""
    orders = cleared_captures(direct, run, orders=2)
    gateway, spill = ScriptedGateway(), Spill([tmp_path])
    through = open_store(f"postgresql://postgres@127.0.0.1:{proxy.port}/fresh")
    proxy.arm(commit=commit, mode=mode, stay_away=away)
    ended = "sent"
    try:
        _send(through, run, spill=spill, gateway=gateway, orders=orders)
    except StoreError:
        ended = "stopped"
    through.close()

    assert len(gateway.reached) == sent
    assert states_of(direct) == [state, state]
    assert [spilled.kind for _, spilled in spill.kept_files()] == kept
    assert ended == ("stopped" if away or kept else "sent")


@pytest.mark.postgresql
def test_the_sentence_names_the_file(
    direct: Store, run: Run, proxy: DroppingProxy, tmp_path: Path
) -> None:
    """The operator reads what was kept, where, and what to do."""
    orders = cleared_captures(direct, run, orders=1)
    through = open_store(f"postgresql://postgres@127.0.0.1:{proxy.port}/fresh")
    proxy.arm(commit=KEEP, mode="before", stay_away=True)
    with pytest.raises(StoreError, match=r"b1\.answer\.json, and the next night reads it"):
        _send(through, run, spill=Spill([tmp_path]), gateway=ScriptedGateway(), orders=orders)
    through.close()
