"""Journals of a close that no break proposes, accruals and reversals: which were handed out.

The history alone has them: none is held against the ledger of a night, which knows proposed ones.
So nothing shows when they are booked; whoever books them has their day, amount and format here.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from recon.store.database.history import Event, append
from recon.store.people.closed_months import ClosedMonth
from recon.store.schema import history
from recon.store.schema.columns import ID_CHARACTERS

ENTITY = "journal"
EXPORTED, AGAIN = "exported", "exported again"


@dataclass(frozen=True, slots=True)
class MonthJournal:
    """A journal of a close, as it is remembered that it left."""

    journal: str
    """Its id, unlike any other of its account."""
    kind: str
    day: date
    currency: str
    amount: int
    """Its debits, minor units."""


@dataclass(frozen=True, slots=True)
class MonthJournalOut:
    """A journal that a close handed out last."""

    account: tuple[str, str]
    month: str
    format: str
    journal: MonthJournal
    at: datetime


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


def out_of_closes(connection: Connection) -> list[MonthJournalOut]:
    """What closes of every account handed out, as it was handed out last, the oldest first.

    Journals of nights are told of under the same name, without a close.
    """
    rows = connection.execute(
        select(history.c.at, history.c.data)
        .where(history.c.entity == ENTITY, history.c.event.in_((EXPORTED, AGAIN)))
        .order_by(history.c.sequence)
    ).tuples()
    newest: dict[tuple[str, str, str], MonthJournalOut] = {}
    for at, text in rows:
        data = json.loads(text)
        if "journal" in data:
            cells = {name: data[name] for name in MonthJournal.__dataclass_fields__}
            journal = MonthJournal(**{**cells, "day": date.fromisoformat(data["day"])})
            account = (data["merchant_id"], data["account_id"])
            out = MonthJournalOut(account, data["month"], data["format"], journal, at)
            newest[(*account, journal.journal)] = out
    return sorted(newest.values(), key=lambda out: (out.at, out.journal.journal))


def note_handed_out(
    connection: Connection,
    closed: ClosedMonth,
    *,
    journals: Iterable[MonthJournal],
    written_as: str,
    is_again: bool,
    at: datetime,
) -> None:
    """These were handed out of a close; the caller has looked in the same transaction."""
    of_close = {
        "merchant_id": closed.account[0],
        "account_id": closed.account[1],
        "month": closed.month,
        "close": closed.number,
        "manifest": closed.manifest,
        "format": written_as,
    }
    happened = AGAIN if is_again else EXPORTED
    events = [
        Event(
            ENTITY,
            _name(closed.account, each.journal),
            happened,
            {**of_close, **asdict(each), "day": each.day.isoformat()},
        )
        for each in journals
    ]
    append(connection, events, at=at)


def _name(account: tuple[str, str], journal_id: str) -> str:
    """An accrual's id is its account's own: every account has one of the month."""
    name = "/".join((*account, journal_id))
    return name if len(name) <= ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()
