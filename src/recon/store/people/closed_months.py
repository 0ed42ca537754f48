"""The state of closed months in the history: closed and reopened; who signed is endorsed.

There is no table for it: the latest of these events of a month is its state, and the event that
closes it contains the SHA-256 of its folder's manifest. Changing one breaks the hash chain.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from sqlalchemy import Connection

from recon.desk.endorsement import Endorsement, Kind
from recon.model.nights import Account
from recon.store.database.history import ChainLink, Event, append, document_of, links_of
from recon.store.people import decision_rows
from recon.store.schema.columns import id_of

ENTITY = "period"
CLOSED, REOPENED = "closed", "reopened"


@dataclass(frozen=True, slots=True)
class ClosedMonth:
    """One close of a month."""

    account: Account
    month: str
    """Name of the month such as `2026-11`."""
    number: int
    """1 for the first close; increased by each reopening."""
    digest: str
    """Digest of what both people signed."""
    folder: str
    """Path relative to the archive."""
    manifest: str
    """SHA-256 of the folder's manifest."""
    by: str
    """The names of both people."""
    at: datetime
    known_by: str
    """Business date of the latest run that was known."""

    @property
    def as_text(self) -> str:
        """When and by whom it was closed."""
        return f"CLOSED on {self.at:%Y-%m-%d %H:%M} UTC by {self.by}"


@dataclass(frozen=True, slots=True)
class ReopenedMonth:
    """The decision of two people to reopen a closed month."""

    by: str
    at: datetime
    reason: str
    manifest: str
    """SHA-256 of the manifest of the close that it ends."""


@dataclass(frozen=True, slots=True)
class MonthState:
    """The decisions of people on a month so far."""

    closes: tuple[ClosedMonth, ...] = ()
    """Every close, oldest first; the folder of each is kept."""
    is_closed: bool = False
    signed: Endorsement | None = None
    """A first signature that waits for the second."""
    reopened: ReopenedMonth | None = None
    """The latest reopening, while the month is open."""

    @property
    def closed(self) -> ClosedMonth | None:
        """The current close; None while the month is open."""
        return self.closes[-1] if self.is_closed else None


def period_of(account: Account, name: str) -> str:
    """Entity id in the history of an account's month, or of any name used in every account."""
    return id_of(*account, name)


def state_of(connection: Connection, account: Account, *, month: str) -> MonthState:
    """The current state of a month."""
    (state,) = _states(connection, account, months=[month])
    period = period_of(account, month)
    waiting = decision_rows.state_of(connection, Kind.CLOSE, subject=period).waiting
    return replace(state, signed=waiting[-1] if waiting else None)


def closed_since(connection: Connection, account: Account, *, month: str) -> ClosedMonth | None:
    """The first closed month that is not before `month`; None if there is none."""
    return next((each for each in _closed_now(connection, account) if each.month >= month), None)


def closed_before(
    connection: Connection, account: Account, *, month: str, months: int
) -> list[ClosedMonth]:
    """The latest `months` closed months before one, oldest first."""
    return [each for each in _closed_now(connection, account) if each.month < month][-months:]


def _closed_now(connection: Connection, account: Account) -> list[ClosedMonth]:
    months = sorted({each.month for each in all_closes(connection)})
    states = _states(connection, account, months=months) if months else []
    return [state.closed for state in states if state.closed is not None]


def all_closes(connection: Connection) -> list[ClosedMonth]:
    """Every close of every account, oldest first, whether reopened or not."""
    links = links_of(connection, entity=ENTITY, event=CLOSED)
    return [link.value(ClosedMonth) for link in links]


def all_reopened(connection: Connection) -> list[str]:
    """The manifests of closes that were reopened."""
    links = links_of(connection, entity=ENTITY, event=REOPENED)
    return [link.value(ReopenedMonth).manifest for link in links]


def note_closed(connection: Connection, closed: ClosedMonth) -> None:
    """Record the second signature: the month is closed from here on, with its folder."""
    period = period_of(closed.account, closed.month)
    append(connection, [Event(ENTITY, period, CLOSED, document_of(closed, "at"))], at=closed.at)


def note_reopened(connection: Connection, closed: ClosedMonth, *, decision: ReopenedMonth) -> None:
    """Record that a closed month is open again; its folder stays."""
    period = period_of(closed.account, closed.month)
    event = Event(ENTITY, period, REOPENED, document_of(decision, "at"))
    append(connection, [event], at=decision.at)


def _states(connection: Connection, account: Account, *, months: Iterable[str]) -> list[MonthState]:
    """The states of these months, by a single query."""
    links: dict[str, list[ChainLink]] = {period_of(account, month): [] for month in months}
    for link in links_of(connection, [*links], entity=ENTITY):
        links[link.entity_id].append(link)
    return [*map(_state, links.values())]


def _state(links: list[ChainLink]) -> MonthState:
    lasting = next((each for each in reversed(links) if each.event in {CLOSED, REOPENED}), None)
    is_open_again = lasting is not None and lasting.event == REOPENED
    return MonthState(
        closes=tuple(link.value(ClosedMonth) for link in links if link.event == CLOSED),
        is_closed=lasting is not None and not is_open_again,
        reopened=lasting.value(ReopenedMonth) if lasting and is_open_again else None,
    )


JOURNAL = "journal"
EXPORTED, EXPORTED_AGAIN = "exported", "exported again"


@dataclass(frozen=True, slots=True)
class MonthJournal:
    """A journal of a close, as recorded when it was exported."""

    journal: str
    """Its id, unique within its account."""
    kind: str
    day: date
    currency: str
    amount: int
    """Sum of its debits, minor units."""


@dataclass(frozen=True, slots=True)
class MonthJournalOut:
    """The latest export of a journal of a close."""

    account: Account
    month: str
    number: int
    """Number of the close."""
    manifest: str
    format: str
    journal: MonthJournal
    at: datetime


def exported_of_closes(
    connection: Connection, account: Account, journal_ids: Iterable[str]
) -> dict[str, MonthJournalOut]:
    """Those of these journals that were exported, by id."""
    names = {period_of(account, each): each for each in journal_ids}
    links = links_of(connection, [*names], entity=JOURNAL)
    return {names[link.entity_id]: link.value(MonthJournalOut) for link in links}


def out_of_closes(connection: Connection) -> list[MonthJournalOut]:
    """The latest export of each journal of a close, for all accounts, oldest first.

    Journals of runs are recorded as the same entity, without a close.
    """
    of_closes = (
        link.value(MonthJournalOut)
        for link in links_of(connection, entity=JOURNAL)
        if link.event in {EXPORTED, EXPORTED_AGAIN} and "journal" in link.data
    )
    newest = {(*out.account, out.journal.journal): out for out in of_closes}
    return sorted(newest.values(), key=lambda out: (out.at, out.journal.journal))


def note_close_exported(
    connection: Connection,
    closed: ClosedMonth,
    *,
    journals: Iterable[MonthJournal],
    written_as: str,
    is_again: bool,
    at: datetime,
) -> None:
    """Record an export from a close; the caller has checked for one in the same transaction."""
    account, of_close = closed.account, (closed.month, closed.number, closed.manifest, written_as)
    happened = EXPORTED_AGAIN if is_again else EXPORTED
    events = []
    for each in journals:
        out = document_of(MonthJournalOut(account, *of_close, each, at), "at")
        events.append(Event(JOURNAL, period_of(account, each.journal), happened, out))
    append(connection, events, at=at)
