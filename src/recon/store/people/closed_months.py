"""Months that people closed, as the history has them: signed, lapsed, closed, reopened.

There is no table beside it: the newest of these events of a month is its state, and the event that
closes it binds the manifest of its folder. Whoever changes one breaks the chain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from recon.model.nights import Account
from recon.store.database.history import ChainLink, Event, append, document_of, links_of
from recon.store.schema.columns import id_of

ENTITY = "period"
SIGNED, LAPSED, CLOSED, REOPENED = "signed", "lapsed", "closed", "reopened"
CLOSE, REOPEN = "close month", "reopen month"
"""What two people agree to (`decision_rows`)."""


@dataclass(frozen=True, slots=True)
class SignedMonth:
    """The first word under a month: what its person saw."""

    digest: str
    by: str
    at: datetime
    seen: Mapping[str, Any]
    """Figures and the digests of lists, to say later what moved."""
    role: str
    """As what: a reviewer, or the approver who came first."""


@dataclass(frozen=True, slots=True)
class ClosedMonth:
    """One close of a month."""

    account: Account
    month: str
    """`2026-11`."""
    number: int
    """1 for the first; one more after each reopening."""
    digest: str
    """Of what both people signed."""
    folder: str
    """Below the archive."""
    manifest: str
    """SHA-256 of the folder's manifest."""
    by: str
    """Both names."""
    at: datetime
    known_by: str
    """Business date of the newest night that was known."""

    @property
    def as_text(self) -> str:
        """When it was closed, and by whom."""
        return f"CLOSED on {self.at:%Y-%m-%d %H:%M} UTC by {self.by}"


@dataclass(frozen=True, slots=True)
class ReopenedMonth:
    """The word of two people that a closed month is open again."""

    by: str
    at: datetime
    reason: str
    manifest: str
    """SHA-256 of the manifest of the close that it ends."""


@dataclass(frozen=True, slots=True)
class MonthState:
    """What people said of a month so far."""

    closes: tuple[ClosedMonth, ...] = ()
    """Every close, oldest first; the folder of each is kept."""
    is_closed: bool = False
    signed: SignedMonth | None = None
    """A first word that nothing ended."""
    reopened: ReopenedMonth | None = None
    """The newest reopening, while the month is open."""

    @property
    def closed(self) -> ClosedMonth | None:
        """The close that stands; None while the month is open."""
        return self.closes[-1] if self.is_closed else None


def period_of(account: Account, name: str) -> str:
    """By what the history names a month of an account, or what is named alike in every account."""
    return id_of(*account, name)


def state_of(connection: Connection, account: Account, *, month: str) -> MonthState:
    """What people said of a month."""
    (state,) = _states(connection, account, months=[month])
    return state


def closed_since(connection: Connection, account: Account, *, month: str) -> ClosedMonth | None:
    """The first month from one on that is closed; None where none is."""
    return next((each for each in _closed_now(connection, account) if each.month >= month), None)


def closed_before(
    connection: Connection, account: Account, *, month: str, months: int
) -> list[ClosedMonth]:
    """Closed months before one, the newest so many; the oldest first."""
    return [each for each in _closed_now(connection, account) if each.month < month][-months:]


def _closed_now(connection: Connection, account: Account) -> list[ClosedMonth]:
    months = sorted({each.month for each in all_closes(connection)})
    states = _states(connection, account, months=months) if months else []
    return [state.closed for state in states if state.closed is not None]


def all_closes(connection: Connection) -> list[ClosedMonth]:
    """Every close of every account, oldest first, reopened or not."""
    links = links_of(connection, entity=ENTITY, event=CLOSED)
    return [link.value(ClosedMonth) for link in links]


def all_reopened(connection: Connection) -> list[str]:
    """The manifests of closes that were taken back."""
    links = links_of(connection, entity=ENTITY, event=REOPENED)
    return [link.value(ReopenedMonth).manifest for link in links]


def note_signed(
    connection: Connection, account: Account, *, month: str, signed: SignedMonth
) -> None:
    """The first word under a month."""
    event = Event(ENTITY, period_of(account, month), SIGNED, document_of(signed, "at"))
    append(connection, [event], at=signed.at)


def note_lapsed(
    connection: Connection, account: Account, *, month: str, why: str, at: datetime
) -> None:
    """A first word that no longer counts."""
    append(connection, [Event(ENTITY, period_of(account, month), LAPSED, {"why": why})], at=at)


def note_taken_back(connection: Connection, digest: str, *, why: str, at: datetime) -> None:
    """Whoever signed what has this digest took it back, under whichever month it stands."""
    links = links_of(connection, entity=ENTITY, event=SIGNED)
    periods = [link.entity_id for link in links if link.data["digest"] == digest]
    if periods:
        append(connection, [Event(ENTITY, periods[-1], LAPSED, {"why": why})], at=at)


def note_closed(connection: Connection, closed: ClosedMonth) -> None:
    """The second word: from here on the month is closed, with its folder."""
    period = period_of(closed.account, closed.month)
    append(connection, [Event(ENTITY, period, CLOSED, document_of(closed, "at"))], at=closed.at)


def note_reopened(connection: Connection, closed: ClosedMonth, *, decision: ReopenedMonth) -> None:
    """A closed month is open again; its folder stays."""
    period = period_of(closed.account, closed.month)
    event = Event(ENTITY, period, REOPENED, document_of(decision, "at"))
    append(connection, [event], at=decision.at)


def _states(connection: Connection, account: Account, *, months: Iterable[str]) -> list[MonthState]:
    """What people said of each of these months, by one question."""
    links: dict[str, list[ChainLink]] = {period_of(account, month): [] for month in months}
    for link in links_of(connection, [*links], entity=ENTITY):
        links[link.entity_id].append(link)
    return [*map(_state, links.values())]


def _state(links: list[ChainLink]) -> MonthState:
    newest = links[-1] if links else None
    lasting = next((each for each in reversed(links) if each.event in {CLOSED, REOPENED}), None)
    is_open_again = lasting is not None and lasting.event == REOPENED
    return MonthState(
        closes=tuple(link.value(ClosedMonth) for link in links if link.event == CLOSED),
        is_closed=lasting is not None and not is_open_again,
        signed=newest.value(SignedMonth) if newest and newest.event == SIGNED else None,
        reopened=lasting.value(ReopenedMonth) if lasting and is_open_again else None,
    )


JOURNAL = "journal"
EXPORTED, EXPORTED_AGAIN = "exported", "exported again"


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

    account: Account
    month: str
    number: int
    """Of the close."""
    manifest: str
    format: str
    journal: MonthJournal
    at: datetime


def handed_out_of_closes(
    connection: Connection, account: Account, journal_ids: Iterable[str]
) -> dict[str, MonthJournalOut]:
    """Those of these journals that were handed out, by id."""
    names = {period_of(account, each): each for each in journal_ids}
    links = links_of(connection, [*names], entity=JOURNAL)
    return {names[link.entity_id]: link.value(MonthJournalOut) for link in links}


def out_of_closes(connection: Connection) -> list[MonthJournalOut]:
    """What closes of every account handed out, as it was handed out last, the oldest first.

    Journals of nights are told of under the same name, without a close.
    """
    of_closes = (
        link.value(MonthJournalOut)
        for link in links_of(connection, entity=JOURNAL)
        if link.event in {EXPORTED, EXPORTED_AGAIN} and "journal" in link.data
    )
    newest = {(*out.account, out.journal.journal): out for out in of_closes}
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
    account, of_close = closed.account, (closed.month, closed.number, closed.manifest, written_as)
    happened = EXPORTED_AGAIN if is_again else EXPORTED
    events = []
    for each in journals:
        out = document_of(MonthJournalOut(account, *of_close, each, at), "at")
        events.append(Event(JOURNAL, period_of(account, each.journal), happened, out))
    append(connection, events, at=at)
