"""Months that people closed, as the history has them: signed, lapsed, closed, reopened.

There is no table beside it: the newest of these events of a month is its state, and the event that
closes it binds the manifest of its folder. Whoever changes one breaks the chain.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from recon.model.nights import Account
from recon.store.database.history import ChainLink, Event, append, links_of
from recon.store.schema.columns import ID_CHARACTERS

ENTITY = "period"
SIGNED, LAPSED, CLOSED, REOPENED = "signed", "lapsed", "closed", "reopened"
CLOSE, REOPEN = "close month", "reopen month"
"""What two people agree to (`decision_rows`)."""
_OF_SIGNED = ("digest", "by", "seen", "role")
_OF_CLOSE = ("month", "number", "digest", "folder", "manifest", "by", "known_by")


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
    def in_words(self) -> str:
        """When it was closed, and by whom."""
        return f"CLOSED on {self.at:%Y-%m-%d %H:%M} UTC by {self.by}"


@dataclass(frozen=True, slots=True)
class ReopenedMonth:
    """The word of two people that a closed month is open again."""

    by: str
    at: datetime
    reason: str


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


def period_of(account: Account, month: str) -> str:
    """By what the history names a month of an account."""
    return _name(account, month)


def _name(account: Account, own: str) -> str:
    """What is named alike in every account, such as a month or an accrual of it."""
    name = "/".join((*account, own))
    return name if len(name) <= ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()


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
    """The months of an account that are closed, in their order."""
    months = sorted({each.month for each in all_closes(connection)})
    states = _states(connection, account, months=months) if months else []
    return [state.closed for state in states if state.closed is not None]


def all_closes(connection: Connection) -> list[ClosedMonth]:
    """Every close of every account, oldest first, reopened or not."""
    return [*map(_closed, links_of(connection, entity=ENTITY, event=CLOSED))]


def all_reopened(connection: Connection) -> list[str]:
    """The manifests of closes that were taken back."""
    links = links_of(connection, entity=ENTITY, event=REOPENED)
    return [str(link.data["manifest"]) for link in links]


def note_signed(
    connection: Connection, account: Account, *, month: str, signed: SignedMonth
) -> None:
    """The first word under a month."""
    details = {name: getattr(signed, name) for name in _OF_SIGNED}
    _append(connection, account, month=month, event=SIGNED, details=details, at=signed.at)


def note_lapsed(
    connection: Connection, account: Account, *, month: str, why: str, at: datetime
) -> None:
    """A first word that no longer counts."""
    _append(connection, account, month=month, event=LAPSED, details={"why": why}, at=at)


def note_taken_back(connection: Connection, digest: str, *, why: str, at: datetime) -> None:
    """Whoever signed what has this digest took it back, under whichever month it stands."""
    links = links_of(connection, entity=ENTITY, event=SIGNED)
    periods = [link.entity_id for link in links if link.data["digest"] == digest]
    if periods:
        append(connection, [Event(ENTITY, periods[-1], LAPSED, {"why": why})], at=at)


def note_closed(connection: Connection, closed: ClosedMonth) -> None:
    """The second word: from here on the month is closed, with its folder."""
    merchant_id, account_id = closed.account
    details = {"merchant_id": merchant_id, "account_id": account_id}
    details |= {name: getattr(closed, name) for name in _OF_CLOSE}
    month = closed.month
    _append(connection, closed.account, month=month, event=CLOSED, details=details, at=closed.at)


def note_reopened(connection: Connection, closed: ClosedMonth, *, word: ReopenedMonth) -> None:
    """A closed month is open again; its folder stays."""
    details = {"by": word.by, "reason": word.reason, "manifest": closed.manifest}
    month = closed.month
    _append(connection, closed.account, month=month, event=REOPENED, details=details, at=word.at)


def _append(
    connection: Connection,
    account: Account,
    *,
    month: str,
    event: str,
    details: Mapping[str, Any],
    at: datetime,
) -> None:
    append(connection, [Event(ENTITY, period_of(account, month), event, details)], at=at)


def _states(connection: Connection, account: Account, *, months: Iterable[str]) -> list[MonthState]:
    """What people said of each of these months, by one question."""
    links: dict[str, list[ChainLink]] = {period_of(account, month): [] for month in months}
    for link in links_of(connection, [*links], entity=ENTITY):
        links[link.entity_id].append(link)
    return [*map(_state, links.values())]


def _state(links: list[ChainLink]) -> MonthState:
    if not links:
        return MonthState()
    newest = links[-1]
    lasting = [link for link in links if link.event in {CLOSED, REOPENED}]
    last = lasting[-1] if lasting else None
    reopened = signed = None
    if last is not None and last.event == REOPENED:
        reopened = ReopenedMonth(last.data["by"], last.at, last.data["reason"])
    if newest.event == SIGNED:
        signed = SignedMonth(at=newest.at, **{name: newest.data[name] for name in _OF_SIGNED})
    closes = tuple(_closed(link) for link in links if link.event == CLOSED)
    is_closed = last is not None and last.event == CLOSED
    return MonthState(closes, is_closed, signed, reopened)


def _closed(link: ChainLink) -> ClosedMonth:
    data = link.data
    account = (data["merchant_id"], data["account_id"])
    return ClosedMonth(account=account, at=link.at, **{name: data[name] for name in _OF_CLOSE})


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
    connection: Connection, account: Account, journal_ids: Iterable[str]
) -> dict[str, OutOfClose]:
    """Those of these journals that were handed out, by id."""
    names = {_name(account, each): each for each in journal_ids}
    links = links_of(connection, [*names], entity=JOURNAL)
    return {names[link.entity_id]: OutOfClose(int(link.data["close"]), link.at) for link in links}


def out_of_closes(connection: Connection) -> list[MonthJournalOut]:
    """What closes of every account handed out, as it was handed out last, the oldest first.

    Journals of nights are told of under the same name, without a close.
    """
    newest: dict[tuple[str, str, str], MonthJournalOut] = {}
    for link in links_of(connection, entity=JOURNAL):
        data = link.data
        if link.event in {EXPORTED, EXPORTED_AGAIN} and "journal" in data:
            cells = {name: data[name] for name in MonthJournal.__dataclass_fields__}
            journal = MonthJournal(**{**cells, "day": date.fromisoformat(data["day"])})
            account = (data["merchant_id"], data["account_id"])
            out = MonthJournalOut(account, data["month"], data["format"], journal, link.at)
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
    happened = EXPORTED_AGAIN if is_again else EXPORTED
    events = [
        Event(
            JOURNAL,
            _name(closed.account, each.journal),
            happened,
            {**of_close, **asdict(each), "day": each.day.isoformat()},
        )
        for each in journals
    ]
    append(connection, events, at=at)
