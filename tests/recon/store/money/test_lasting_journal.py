"""Commits that lose their connection, on a real PostgreSQL behind a proxy that ends them."""

import time
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from recon.model.errors import StoreError
from recon.store.database.engine import open_store
from recon.store.money import journal as stored_journal
from recon.store.money.spill import NOT_SENT, REPLY, Spill
from tests.recon.store.dropping_proxy import DroppingProxy
from tests.recon.store.scripted import (
    ScriptedGateway,
    eligible_captures,
    journal_of,
    send,
    states_of,
)

CLAIM, KEEP, RECORD = 2, 3, 4
"""Which COMMIT it is; the first one ends the look before the batch."""
BACK, AWAY = False, True
pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.parametrize("store", ["postgresql"], indirect=True),
]


@pytest.fixture
def proxy(migrated_postgresql_url, monkeypatch):
    monkeypatch.setattr(stored_journal, "BACK_AFTER", (timedelta(milliseconds=300),) * 2)
    folder = parse_qs(urlsplit(migrated_postgresql_url).query)["host"][0]
    with DroppingProxy(f"{folder}/.s.PGSQL.5432") as made:
        yield made


def _send(store, run, *, spill, gateway, orders):
    journal = journal_of(
        store,
        run,
        run_id=run.run_id,
        spill=spill,
        pause=lambda much: time.sleep(much.total_seconds()),
    )
    return send(store, run, orders, gateway=gateway, journal=journal)


@pytest.mark.parametrize(
    ("commit", "mode", "away", "sent", "state", "saved"),
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
    store, run, proxy, tmp_path, *, commit, mode, away, sent, state, saved
):
    """Sent only under a claim that is there; an answer is in the database or in a file."""
    orders = eligible_captures(store, run, orders=2)
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
    assert states_of(store) == [state, state]
    assert [spilled.kind for _, spilled in spill.stored_files()] == saved
    assert ended == ("stopped" if away or saved else "sent")


def test_the_sentence_names_the_file(store, run, proxy, tmp_path):
    orders = eligible_captures(store, run, orders=1)
    through = open_store(f"postgresql://postgres@127.0.0.1:{proxy.port}/fresh")
    proxy.arm(commit=KEEP, mode="before", stay_away=True)
    with pytest.raises(StoreError, match=r"b1\.answer\.json, and the next night reads it"):
        _send(through, run, spill=Spill([tmp_path]), gateway=ScriptedGateway(), orders=orders)
    through.close()
