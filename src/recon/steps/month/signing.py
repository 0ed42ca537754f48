"""`recon close --sign`: two people put their names under a month, and the second closes it.

Signed is the digest of what was prepared. Both words and the folder's manifest stand in the
history: the folder is written first, the transaction of the second word is the moment from which
the month is closed. A first word lapses when a figure moved before the second was said. Two people
open it again (`recon reopen`): its folder stays, closing makes another.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recon import __version__
from recon.archive.step_folder import About, Document, Sealed, write_step
from recon.archive.storage import reachable
from recon.model.business_date import BusinessMonth, Grace
from recon.model.errors import NightHeldError, UsageError
from recon.model.nights import Mode
from recon.model.words import DIGITS_READ
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, refuse_unproven
from recon.steps.ground.night_folder import storage_at
from recon.steps.ground.two_words import agreed, ended, refuse_two
from recon.steps.month.close import (
    CloseSignature,
    CloseVerdict,
    PreparedClose,
    SeenClose,
    basis_of,
    close_document,
    close_name,
    moved_since,
    prepared_close,
    seen_close,
)
from recon.steps.month.folders import DOCUMENT, period_folder
from recon.steps.people.sign_off import refuse_role
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import closing_lock
from recon.store.nights import runs
from recon.store.nights.sign_off_rows import ROLES
from recon.store.people import agreement_rows, closed_months
from recon.store.people.agreement_rows import FirstWord
from recon.store.people.closed_months import (
    CLOSE,
    REOPEN,
    ClosedMonth,
    MonthState,
    ReopenedMonth,
    SignedMonth,
)

SIGNATURES = "signatures.json"
UNWRITTEN = (
    "nobody's name was put under the month, and it is not closed: make the archive writable, then "
    "sign again"
)
DrawnClose = Callable[[PreparedClose, SeenClose], bytes]
"""Draws the workbook of a close as somebody sees it who signs; `reports` provides it."""
VALID = Grace.parse("5bd")
"""How long a first word under a month waits for the second; what it says is bound anyhow."""
PREPARED_MAX = 3
"""Times that a close is prepared while others change what it rests on."""


@dataclass(frozen=True, slots=True)
class CloseWord:
    """What became of one person's word under a month."""

    closed: ClosedMonth | None = None
    """The close, where it was the second."""
    valid_until: datetime | None = None
    """Of a first word."""
    lapsed: str = ""
    """Who had signed and did not any more; "" where nobody had, or both say the same."""
    moved: tuple[str, ...] = ()
    """What moved since that signature."""


@dataclass(frozen=True, slots=True)
class MonthToSign:
    """Which month is signed, how, and by what the person looked at."""

    month: BusinessMonth
    account: tuple[str, str]
    role: str
    """One of ROLES; who of the two comes first is free."""
    seen: str
    """The digest that the person was shown, or its first digits."""


def sign_close(
    wanted: MonthToSign, *, person: Person, drawn: DrawnClose, environment: Environment
) -> CloseWord:
    """Put one person's name under a month.

    Raises:
        UsageError: the person may not, the month cannot be closed, it is not the one that they
            looked at, or nights keep changing it.
        NightHeldError: somebody else closes a month of the account at this moment.
        ArchiveError: its folder cannot be written, or the nights' cannot be read.
    """
    if wanted.role not in ROLES:
        msg = f"a role is one of {', '.join(ROLES)}"
        raise UsageError(msg)
    refuse_unproven(person, environment=environment)
    for _ in range(PREPARED_MAX):
        close = prepared_close(wanted.month, account=wanted.account, environment=environment)
        word = _Signing(wanted, close, seen_close(close), person, environment).say(drawn)
        if word is not None:
            return word
    msg = (
        f"what {wanted.month.name} rests on changed {PREPARED_MAX} times while it was signed; "
        "nothing was signed: wait until nobody works at it, then sign again"
    )
    raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class _Signing:
    """One word under one prepared close."""

    wanted: MonthToSign
    close: PreparedClose
    seen: SeenClose
    person: Person
    environment: Environment

    def say(self, drawn: DrawnClose) -> CloseWord | None:
        """The word; None where the close is not as it was prepared any more."""
        with self.environment.store.reading() as connection:
            first = self._first(connection, state=self.close.state)
        _refuse_state(self.wanted, close=self.close)
        self._refuse_unready()
        self._refuse_unseen()
        self._refuse_person(first)
        if first is None or self._lapsed(first):
            return self._note_first()
        return self._close(first, drawn=drawn)

    def _first(
        self, connection: Connection, *, state: MonthState
    ) -> tuple[SignedMonth, FirstWord] | None:
        """The first word that still stands, as both tables have it."""
        if state.signed is None:
            return None
        word = agreement_rows.open_word(connection, CLOSE, subject=state.signed.digest)
        if word is None or ended(word, environment=self.environment):
            return None
        return state.signed, word

    def _lapsed(self, first: tuple[SignedMonth, FirstWord]) -> bool:
        return first[0].digest != self.seen.digest

    def _refuse_unready(self) -> None:
        if self.close.verdict is CloseVerdict.NOT_READY:
            blockers = self.close.blockers
            more = f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
            month = self.wanted.month.name
            msg = (
                f"{month} is NOT READY: {blockers[0].without_code}{more}; nothing was signed: "
                f"`recon close {month}` says what blocks it"
            )
            raise UsageError(msg)

    def _refuse_unseen(self) -> None:
        asked, digest = self.wanted.seen, self.seen.digest
        if len(asked) < DIGITS_READ:
            msg = f"say what you looked at: the first {DIGITS_READ} digits of the close's digest"
            raise UsageError(msg)
        if not digest.startswith(asked):
            msg = (
                f"{self.wanted.month.name} is not what you looked at: its digest begins with "
                f"{digest[:DIGITS_READ]}, yours with {asked[:DIGITS_READ]}; nothing was signed: "
                f"look at it again (`recon close {self.wanted.month.name}`), and sign that one"
            )
            raise UsageError(msg)

    def _refuse_person(self, first: tuple[SignedMonth, FirstWord] | None) -> None:
        role = self.wanted.role
        refuse_role(role, person=self.person, environment=self.environment)
        if first is None or self._lapsed(first):
            return
        if role == first[0].role:
            msg = (
                f"{first[0].by} signed {self.wanted.month.name} as {role} already; the "
                f"{other_role(role)} signs next"
            )
            raise UsageError(msg)
        refuse_two(self.person, first=first[1].by.by, environment=self.environment)

    def _note_first(self) -> CloseWord | None:
        """The first word; one of another digest before it lapses, and what moved is told."""
        account, month = self.wanted.account, self.wanted.month.name
        by, at = self.person.word.in_words, self.person.word.at
        with self.environment.store.writing() as connection:
            if not self._stands(connection):
                return None
            first = self._first(connection, state=self.close.state)
            lapsed, moved = "", tuple[str, ...]()
            if first is not None:
                lapsed = first[0].by
                moved = tuple(moved_since(first[0].seen, now=self.seen))
                why = f"{len(moved)} figures or lists moved after it"
                agreement_rows.void(connection, first[1], why=why, at=at)
                closed_months.note_lapsed(connection, account, month=month, why=why, at=at)
            self._agreed(connection)
            role = self.wanted.role
            signed = SignedMonth(self.seen.digest, by, at, self.seen.document, role)
            closed_months.note_signed(connection, account, month=month, signed=signed)
            word = agreement_rows.open_word(connection, CLOSE, subject=self.seen.digest)
            until = word.valid_until if word else None
        return CloseWord(valid_until=until, lapsed=lapsed, moved=moved)

    def _close(
        self, first: tuple[SignedMonth, FirstWord], *, drawn: DrawnClose
    ) -> CloseWord | None:
        """The second word: the folder under its name, then the transaction that closes."""
        account, store = self.wanted.account, self.environment.store
        at = self.person.word.at
        names = sorted(
            (
                CloseSignature(first[0].role, first[0].by, first[0].at),
                CloseSignature(self.wanted.role, self.person.word.in_words, at),
            ),
            key=lambda name: ROLES.index(name.role),
        )
        try:
            with closing_lock(store, account):
                with store.reading() as connection:
                    if not self._stands(connection):
                        return None
                sealed = write_close_folder(
                    replace(self.close, signatures=tuple(names)),
                    seen=self.seen,
                    drawn=drawn,
                    environment=self.environment,
                )
                self.environment.crash_point("before a month is closed")
                with store.writing() as connection:
                    if not self._stands(connection):
                        return None
                    closed = ClosedMonth(
                        account,
                        self.wanted.month.name,
                        len(self.close.state.closes) + 1,
                        self.seen.digest,
                        sealed.folder,
                        sealed.sha256,
                        self._completed(connection, first=first[0]),
                        at,
                        self.close.stated.known_by,
                    )
                    closed_months.note_closed(connection, closed)
                self.environment.crash_point("after a month is closed")
        except NightHeldError as error:
            msg = (
                f"somebody closes a month of {'/'.join(account)} at this moment; nothing was "
                "signed: look at what became of it (`recon close`), then sign again"
            )
            raise NightHeldError(msg) from error
        return CloseWord(closed=closed)

    def _stands(self, connection: Connection) -> bool:
        """Whether everything is as it was prepared; inside the transaction nobody changes it.

        Raises:
            UsageError: a night of the month is at work, or a later month is closed.
        """
        account, month = self.wanted.account, self.wanted.month
        run = runs.active(connection, account)
        is_live = run is not None and run.mode is Mode.LIVE
        if run is not None and is_live and run.business_date <= month.last:
            msg = (
                f"run {run.run_id} of {run.business_date} is at work ({run.owner}), and may "
                f"change {month.name}; nothing was signed: sign when it has ended"
            )
            raise UsageError(msg)
        later = closed_months.closed_since(
            connection, account, month=month.after.name, until=self.environment.clock().date()
        )
        if later is not None:
            msg = (
                f"{later.month} is CLOSED already and begins with the figures of {month.name} as "
                f"they were; nothing was signed: reopen {later.month} first, then close both"
            )
            raise UsageError(msg)
        state = closed_months.state_of(connection, account, month=month.name)
        return (
            state == self.close.state
            and basis_of(connection, account, month=month) == self.close.basis
        )

    def _completed(self, connection: Connection, *, first: SignedMonth) -> str:
        """Both names.

        Raises:
            UsageError: the first word ran out while this one was said; it completes nothing.
        """
        both = self._agreed(connection)
        if not both:
            msg = (
                f"the word of {first.by} for {self.wanted.month.name} counts no more; nothing was "
                "signed: sign anew, and the other after you"
            )
            raise UsageError(msg)
        return both

    def _agreed(self, connection: Connection) -> str:
        """The word itself, under the desk's signature; both names when it is the second."""
        which = f"{self.wanted.month.name} of {'/'.join(self.wanted.account)}"
        return agreed(
            connection,
            CLOSE,
            subject=self.seen.digest,
            reason=f"{which}, as {self.wanted.role}",
            person=self.person,
            environment=self.environment,
            says={"role": self.wanted.role, "month": self.wanted.month.name},
            valid=VALID,
        )


def _refuse_state(wanted: MonthToSign, *, close: PreparedClose) -> None:
    closed = close.state.closed
    if closed is not None:
        msg = (
            f"{closed.month} is CLOSED: {closed.by} closed it on {closed.at:%Y-%m-%d %H:%M} UTC; "
            f"nothing was signed: `recon reopen {wanted.month.name}` (two people) opens it again"
        )
        raise UsageError(msg)


def names_of(close: PreparedClose) -> Sequence[str]:
    """Who signed so far, for people."""
    signed = close.state.signed
    return (
        [] if signed is None else [f"{signed.by} ({signed.role}, {signed.at:%Y-%m-%d %H:%M} UTC)"]
    )


def other_role(role: str) -> str:
    """Who must sign the same."""
    return ROLES[1 - ROLES.index(role)]


@dataclass(frozen=True, slots=True)
class ReopenWord:
    """What became of one person's word that a month is opened again."""

    closed: ClosedMonth
    """The close that it is about."""
    reopened: bool
    """Whether it was the second."""


def reopen_month(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    reason: str,
    person: Person,
    environment: Environment,
) -> ReopenWord:
    """One person's word that a month is open again.

    Raises:
        UsageError: it is not closed, a later one is, or the word does not count (`two_words`).
    """
    with environment.store.writing() as connection:
        closed = _closed(connection, month, account=account, environment=environment)
        both = agreed(
            connection,
            REOPEN,
            subject=closed.manifest,
            reason=reason,
            person=person,
            environment=environment,
            says={"month": month.name, "folder": closed.folder},
        )
        if both:
            word = ReopenedMonth(both, person.word.at, reason.strip())
            closed_months.note_reopened(connection, closed, word=word)
    return ReopenWord(closed, bool(both))


def _closed(
    connection: Connection,
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    environment: Environment,
) -> ClosedMonth:
    closed = closed_months.state_of(connection, account, month=month.name).closed
    if closed is None:
        msg = f"{month.name} of {'/'.join(account)} is not closed; nothing was changed"
        raise UsageError(msg)
    later = closed_months.closed_since(
        connection, account, month=month.after.name, until=environment.clock().date()
    )
    if later is not None:
        msg = (
            f"{later.month} was closed after {month.name} and begins with its figures; nothing "
            f"was changed: reopen {later.month} first"
        )
        raise UsageError(msg)
    return closed


def write_close_folder(
    close: PreparedClose, *, seen: SeenClose, drawn: DrawnClose, environment: Environment
) -> Sealed:
    """Write the folder of a close as it is about to be closed; it counts for nothing yet.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
    """
    statement = close.stated.statement
    account, month = statement.account, statement.month
    storage = storage_at(account, environment=environment)
    names = [
        {"role": each.role, "by": each.by, "at": each.at.isoformat(), "digest": seen.digest}
        for each in close.signatures
    ]
    texts = {
        **seen.files,
        DOCUMENT: _json({**close_document(close), "signed": seen.document}),
        SIGNATURES: _json(names),
    }
    parts = [Document(name, text.encode()) for name, text in sorted(texts.items())]
    parts.append(Document(f"{close_name(close)}.xlsx", drawn(close, seen)))
    with environment.store.reading() as connection:
        head = history.head(connection)
    closes = close.state.closes
    about = About(
        run_id=close.stated.newest_run,
        merchant_id=account[0],
        account_id=account[1],
        business_date=month.last.isoformat(),
        mode=Mode.LIVE.value,
        step=f"close-{len(closes) + 1}",
        predecessor=closes[-1].manifest if closes else "",
        rules_digest=[*close.stated.rules][-1],
        product_version=__version__,
        history_before=f"{head.sequence}:{head.hash}",
    )
    folder = period_folder(account, month.name)
    with reachable(storage, doing=UNWRITTEN):
        for attempt in {*storage.folders(folder)} - {each.folder for each in closes}:
            # Of a close that ended before its transaction; its writer is gone.
            storage.clear(attempt)
        return write_step(
            storage, night=folder, about=about, parts=parts, crash_point=environment.crash_point
        )


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
