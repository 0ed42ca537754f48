"""Journals of a close that no break proposes, accruals and reversals: which were handed out.

The history alone has them: none is held against the ledger of a night, which knows proposed ones.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from recon.store.database.history import Event, append
from recon.store.people.closed_months import ClosedMonth
from recon.store.schema import history
from recon.store.schema.columns import ID_CHARACTERS

ENTITY = "journal"
EXPORTED, AGAIN = "exported", "exported again"


@dataclass(frozen=True, slots=True)
class OutOfClose:
    """A journal that was handed out of a close."""

    number: int
    """Of the close that handed it out last."""
    at: datetime


def handed_out_of_closes(
    connection: Connection, account: tuple[str, str], journal_ids: Iterable[str]
) -> dict[str, OutOfClose]:
    """Those of these journals that were handed out, by id."""
    names = {_name(account, each): each for each in journal_ids}
    rows = connection.execute(
        select(history.c.entity_id, history.c.at, history.c.data)
        .where(history.c.entity == ENTITY, history.c.entity_id.in_(names))
        .order_by(history.c.sequence)
    ).tuples()
    return {names[name]: OutOfClose(int(json.loads(data)["close"]), at) for name, at, data in rows}


def note_handed_out(
    connection: Connection,
    closed: ClosedMonth,
    *,
    journal_ids: Iterable[str],
    is_again: bool,
    at: datetime,
) -> None:
    """These were handed out of a close; the caller has looked in the same transaction."""
    details = {"month": closed.month, "close": closed.number, "manifest": closed.manifest}
    event = AGAIN if is_again else EXPORTED
    append(
        connection,
        [Event(ENTITY, _name(closed.account, each), event, details) for each in journal_ids],
        at=at,
    )


def _name(account: tuple[str, str], journal_id: str) -> str:
    """An accrual's id is its account's own: every account has one of the month."""
    name = "/".join((*account, journal_id))
    return name if len(name) <= ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()
