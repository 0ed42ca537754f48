"""`recon close --sign`: two people sign a month, and the second signature closes it.

Both sign the digest of what was prepared. Both signatures and the folder's manifest are in the
history: the folder is written first, and the month is closed once the transaction of the second
signature commits. A first signature lapses if a figure changes before the second is given. Two
people can reopen the month (`recon close --reopen`): its folder stays, closing makes another one.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from recon import __version__
from recon.archive.step_folder import About, Document, Sealed, write_step
from recon.archive.storage import reachable
from recon.desk.endorsement import Endorsement, Kind
from recon.model.business_date import BusinessMonth, Grace
from recon.model.errors import NightHeldError, UsageError
from recon.model.nights import Mode
from recon.model.terms import DIGITS_READ
from recon.month.close import (
    CloseSignature,
    PreparedClose,
    ReviewedClose,
    basis_of,
    close_document,
    moved_since,
    name_of,
    prepared_close,
    reviewed_close,
)
from recon.steps.approvals.sign_off import refuse_role
from recon.steps.runtime.closed_folders import DOCUMENT, period_folder
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person, decide, names_of, waiting_on
from recon.steps.runtime.night_folder import storage_at
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import CLOSING_SPACE, account_lock
from recon.store.nights import runs
from recon.store.nights.sign_off_rows import ROLES
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth, ReopenedMonth, period_of

SIGNATURES = "signatures.json"
UNWRITTEN = (
    "nobody's name was put under the month, and it is not closed: make the archive writable, then "
    "sign again"
)
DrawnClose = Callable[[PreparedClose, ReviewedClose], bytes]
"""Renders the workbook of a close as a person who signs sees it; `reports` provides it."""
VALID = Grace.parse("5bd")
"""How long a first signature waits for the second; what it covers is fixed by its digest anyway."""


@dataclass(frozen=True, slots=True)
class CloseDecision:
    """The result of one person's signature under a month."""

    closed: ClosedMonth | None = None
    """The close, if this was the second signature."""
    valid_until: datetime | None = None
    """How long a first signature is valid."""
    lapsed: str = ""
    """Whose earlier signature lapsed because of this one; "" if none did."""
    moved: tuple[str, ...] = ()
    """What changed since that lapsed signature."""


@dataclass(frozen=True, slots=True)
class MonthToSign:
    """The month to sign, in which role, and what the person looked at."""

    month: BusinessMonth
    account: tuple[str, str]
    role: str
    """One of ROLES; either role may sign first."""
    seen: str
    """The digest that the person was shown, or its first digits."""


def sign_close(
    to_sign: MonthToSign, *, person: Person, drawn: DrawnClose, environment: Environment
) -> CloseDecision:
    """Sign a month as one person.

    Raises:
        UsageError: the person may not sign, the month cannot be closed or differs from what they
            looked at, or what it is based on changed meanwhile.
        NightHeldError: somebody else is closing a month of the account at this moment.
        ArchiveError: its folder cannot be written, or those of the nights cannot be read.
    """
    if to_sign.role not in ROLES:
        msg = f"a role is one of {', '.join(ROLES)}"
        raise UsageError(msg)
    person.refuse_unproven()
    close = prepared_close(to_sign.month, account=to_sign.account, environment=environment)
    return _Signing(to_sign, close, reviewed_close(close), person, environment).decide(drawn)


@dataclass(frozen=True, slots=True)
class _Signing:
    """One signature under one prepared close."""

    to_sign: MonthToSign
    close: PreparedClose
    seen: ReviewedClose
    person: Person
    environment: Environment

    def decide(self, drawn: DrawnClose) -> CloseDecision:
        """Record the signature, if the person may give it."""
        with self.environment.store.reading() as connection:
            first = self._first(connection)
        if problem := next(self._problems(), ""):
            raise UsageError(problem)
        refuse_role(self.to_sign.role, person=self.person)
        if first is None or first.says["digest"] != self.seen.digest:
            return self._note_first()
        if self.to_sign.role == first.says["role"]:
            role, month = self.to_sign.role, self.to_sign.month.name
            msg = (
                f"{first.as_text} signed {month} as {role} already; the {other_role(role)} signs "
                "next"
            )
            raise UsageError(msg)
        self.person.refuse_second(first.name)
        return self._close(first, drawn=drawn)

    @property
    def _period(self) -> str:
        return period_of(self.to_sign.account, self.to_sign.month.name)

    def _first(self, connection: Connection) -> Endorsement | None:
        """Return the first signature that is still valid."""
        waiting = waiting_on(
            connection, Kind.CLOSE, subject=self._period, environment=self.environment
        )
        return waiting[-1] if waiting else None

    def _problems(self) -> Iterator[str]:
        close, month, digest = self.close, self.to_sign.month.name, self.seen.digest
        if (closed := close.state.closed) is not None:
            yield (
                f"{closed.month} is CLOSED: {closed.by} closed it on {closed.at:%Y-%m-%d %H:%M} "
                f"UTC; nothing was signed: `recon close {month} --reopen` (two people) opens it "
                "again"
            )
        if blockers := close.blockers:
            more = f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
            yield (
                f"{month} is NOT READY: {blockers[0].without_code}{more}; nothing was signed: "
                f"`recon close {month}` says what blocks it"
            )
        given = self.to_sign.seen
        if len(given) < DIGITS_READ:
            yield f"say what you looked at: the first {DIGITS_READ} digits of the close's digest"
        if not digest.startswith(given):
            yield (
                f"{month} is not what you looked at: its digest begins with "
                f"{digest[:DIGITS_READ]}, yours with {given[:DIGITS_READ]}; nothing was signed: "
                f"look at it again (`recon close {month}`), and sign that one"
            )

    def _note_first(self) -> CloseDecision:
        """Store a first signature; an older one of another digest lapses, with what changed."""
        with self.environment.store.writing() as connection:
            self._refuse_changed(connection)
            before = self._first(connection)
            self._signed(connection)
            now = self._first(connection)
        return CloseDecision(
            valid_until=now.ends_at if now else None,
            lapsed=before.as_text if before else "",
            moved=tuple(moved_since(json.loads(before.says["seen"]), now=self.seen))
            if before
            else (),
        )

    def _close(self, signed: Endorsement, *, drawn: DrawnClose) -> CloseDecision:
        """Store the second signature: write the folder, then commit the transaction that closes."""
        account, store, at = self.to_sign.account, self.environment.store, self.person.at
        month = self.to_sign.month.name
        names = (
            CloseSignature(signed.says["role"], signed.as_text, signed.made_at),
            CloseSignature(self.to_sign.role, self.person.as_text, at),
        )
        ordered = tuple(sorted(names, key=lambda name: ROLES.index(name.role)))
        try:
            with account_lock(store, account, space=CLOSING_SPACE):
                with store.reading() as connection:
                    self._refuse_changed(connection)
                sealed = write_close_folder(
                    replace(self.close, signatures=ordered),
                    seen=self.seen,
                    drawn=drawn,
                    environment=self.environment,
                )
                self.environment.crash_point("before a month is closed")
                with store.writing() as connection:
                    self._refuse_changed(connection)
                    if (both := self._signed(connection)) is None:
                        # The first signature expired meanwhile; this one completes nothing.
                        msg = (
                            f"the word of {signed.as_text} for {month} counts no more; nothing was "
                            "signed: sign anew, and the other after you"
                        )
                        raise UsageError(msg)
                    closed = ClosedMonth(
                        account,
                        month,
                        len(self.close.state.closes) + 1,
                        self.seen.digest,
                        sealed.folder,
                        sealed.sha256,
                        names_of(both),
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
        return CloseDecision(closed=closed)

    def _refuse_changed(self, connection: Connection) -> None:
        """Check that everything is as it was prepared; inside the transaction nobody can change it.

        Raises:
            UsageError: it is not, a night of the month is running, or a later month is closed.
        """
        account, month = self.to_sign.account, self.to_sign.month
        run = runs.active(connection, account)
        is_live = run is not None and run.mode is Mode.LIVE
        if run is not None and is_live and run.business_date <= month.last:
            msg = (
                f"run {run.run_id} of {run.business_date} is at work ({run.owner}), and may "
                f"change {month.name}; nothing was signed: sign when it has ended"
            )
            raise UsageError(msg)
        later = closed_months.closed_since(connection, account, month=month.after.name)
        if later is not None:
            msg = (
                f"{later.month} is CLOSED already and begins with the figures of {month.name} as "
                f"they were; nothing was signed: reopen {later.month} first, then close both"
            )
            raise UsageError(msg)
        state = closed_months.state_of(connection, account, month=month.name)
        basis = basis_of(connection, account, month=month)
        if (state, basis) != (self.close.state, self.close.basis):
            msg = (
                f"what {month.name} rests on changed while it was signed; nothing was signed: "
                f"look at it again (`recon close {month.name}`), then sign that one"
            )
            raise UsageError(msg)

    def _signed(self, connection: Connection) -> tuple[Endorsement, Endorsement] | None:
        """Take in the signature; return both if it is the second."""
        which = f"{self.to_sign.month.name} of {'/'.join(self.to_sign.account)}"
        return decide(
            connection,
            Kind.CLOSE,
            self._period,
            person=self.person,
            says={
                "reason": f"{which}, as {self.to_sign.role}",
                "role": self.to_sign.role,
                "digest": self.seen.digest,
                "seen": json.dumps(self.seen.document, sort_keys=True),
            },
            valid=VALID,
        )


def other_role(role: str) -> str:
    """Return the role that must sign the same close."""
    return ROLES[1 - ROLES.index(role)]


@dataclass(frozen=True, slots=True)
class ReopenDecision:
    """The result of one person's decision to reopen a month."""

    closed: ClosedMonth
    """The close that is reopened."""
    reopened: bool
    """Whether this was the second decision."""


def reopen_month(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    reason: str,
    person: Person,
    environment: Environment,
) -> ReopenDecision:
    """Record one person's decision to reopen a month.

    Raises:
        UsageError: it is not closed, a later one is, or the decision does not count (`decide`).
    """
    with environment.store.writing() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
        if closed is None:
            msg = f"{month.name} of {'/'.join(account)} is not closed; nothing was changed"
            raise UsageError(msg)
        later = closed_months.closed_since(connection, account, month=month.after.name)
        if later is not None:
            msg = (
                f"{later.month} was closed after {month.name} and begins with its figures; nothing "
                f"was changed: reopen {later.month} first"
            )
            raise UsageError(msg)
        both = decide(
            connection,
            Kind.REOPEN,
            closed.manifest,
            person=person,
            says={"reason": reason, "month": month.name, "folder": closed.folder},
        )
        if both is not None:
            decision = ReopenedMonth(names_of(both), person.at, reason.strip(), closed.manifest)
            closed_months.note_reopened(connection, closed, decision=decision)
    return ReopenDecision(closed, both is not None)


def write_close_folder(
    close: PreparedClose, *, seen: ReviewedClose, drawn: DrawnClose, environment: Environment
) -> Sealed:
    """Write the folder of a close that is about to be closed; it has no effect before that.

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
    files = [Document(name, text.encode()) for name, text in sorted(texts.items())]
    files.append(Document(f"{name_of(close.stated, what='close')}.xlsx", drawn(close, seen)))
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
            # From a close that stopped before its transaction; its writer has ended.
            storage.clear(attempt)
        return write_step(
            storage, night=folder, about=about, files=files, crash_point=environment.crash_point
        )


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
