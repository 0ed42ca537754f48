"""Signatures under nights in the database, and every run that could replace one."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, and_, func, select

from recon.store.database.record import SIGN_OFF, record
from recon.store.nights.runs import Run
from recon.store.people.approval_rows import TAKEN_BACK, PersonsWord
from recon.store.schema import run, sign_off

ROLES = ("reviewer", "approver")
"""A night is signed when both are there, in whatever order."""
_SIGNED = sign_off.c.signed_by != ""
"""Nobody took it back."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One person's name under one workbook."""

    role: str
    by: str
    authenticated: bool
    at: datetime
    workbook_sha256: str


@dataclass(frozen=True, slots=True)
class NightRun:
    """One live run of a night, as the list of nights needs it."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    status: str
    verdict: str
    started_at: datetime
    workbook: str
    workbook_sha256: str


def save(
    connection: Connection, run_id: str, *, role: str, word: PersonsWord, workbook_sha256: str
) -> None:
    """Put a name under a workbook, with its event."""
    own = {"run_id": run_id, "role": role}
    signed = {"signed_by": word.by, "authenticated": word.authenticated, "signed_at": word.at}
    values = signed | {"workbook_sha256": workbook_sha256}
    signing: dict[str, Any] = {"event": "signed", "at": word.at, "details": {"by": word.in_words}}
    if not record(connection, SIGN_OFF, values, of=own, **signing):
        record(connection, SIGN_OFF, own | values, **signing)


def take_back(
    connection: Connection, run_id: str, *, signature: Signature, word: PersonsWord
) -> None:
    """Take a name away from under a workbook; the row stays, with nobody in it."""
    nobody = {"signed_by": "", "authenticated": False, "signed_at": word.at}
    own, by = {"run_id": run_id, "role": signature.role}, {"by": word.in_words}
    record(connection, SIGN_OFF, nobody, of=own, event=TAKEN_BACK, at=word.at, details=by)


def signatures(connection: Connection, run_id: str) -> dict[str, Signature]:
    """The names under a run's workbook, by role."""
    rows = connection.execute(
        select(sign_off).where(sign_off.c.run_id == run_id, _SIGNED)
    ).mappings()
    return {
        row["role"]: Signature(
            row["role"],
            row["signed_by"],
            row["authenticated"],
            row["signed_at"],
            row["workbook_sha256"],
        )
        for row in rows
    }


def all_signatures(connection: Connection) -> list[tuple[str, Signature]]:
    """Every name under every workbook, by run."""
    run_ids = connection.execute(select(sign_off.c.run_id).distinct()).scalars().all()
    return [
        (run_id, signature)
        for run_id in sorted(run_ids)
        for signature in signatures(connection, run_id).values()
    ]


def live_runs(connection: Connection, *, first: date, last: date) -> list[NightRun]:
    """Live runs of whole nights from `first` to `last`, oldest start first."""
    names = NightRun.__dataclass_fields__
    rows = connection.execute(
        select(*(run.c[name] for name in names))
        .where(run.c.business_date >= first, run.c.business_date <= last)
        .where(run.c.mode == "live", run.c.part == "")
        .order_by(run.c.started_at)
    ).mappings()
    return [NightRun(**row) for row in rows]


def replaced_by(connection: Connection, signed: NightRun, *, since: datetime) -> str:
    """The run that made a signature void: a later one of this night, or of an earlier one.

    It counts from its end, for it may have begun, and stopped, before the signature.
    """
    run_id = connection.execute(
        select(run.c.run_id)
        .where(
            run.c.merchant_id == signed.merchant_id,
            run.c.account_id == signed.account_id,
            run.c.business_date <= signed.business_date,
            run.c.status == "finished",
            run.c.mode == "live",
            run.c.started_at > signed.started_at,
            run.c.finished_at > since,
        )
        .order_by(run.c.started_at)
        .limit(1)
    ).scalar_one_or_none()
    return run_id or ""


def signed_earlier(connection: Connection, newest: NightRun) -> str | None:
    """The newest earlier run of the same night that somebody signed."""
    return connection.execute(
        select(run.c.run_id)
        .join(sign_off, and_(sign_off.c.run_id == run.c.run_id, _SIGNED))
        .where(
            run.c.merchant_id == newest.merchant_id,
            run.c.account_id == newest.account_id,
            run.c.business_date == newest.business_date,
            run.c.mode == "live",
            run.c.started_at < newest.started_at,
        )
        .order_by(run.c.started_at.desc())
        .limit(1)
    ).scalar_one_or_none()


def last_signed(connection: Connection, before: Run) -> NightRun | None:
    """The newest night before a run's that both people signed and nothing replaced since."""
    names = NightRun.__dataclass_fields__
    own = [run.c[name] for name in names]
    rows = connection.execute(
        select(*own, func.max(sign_off.c.signed_at).label("signed_at"))
        .join(sign_off, and_(sign_off.c.run_id == run.c.run_id, _SIGNED))
        .where(
            run.c.merchant_id == before.merchant_id,
            run.c.account_id == before.account_id,
            run.c.business_date < before.business_date,
        )
        .group_by(*own)
        .having(func.count() == len(ROLES))
        .order_by(run.c.business_date.desc(), run.c.started_at.desc())
    ).mappings()
    for row in rows:
        night = NightRun(**{name: row[name] for name in names})
        if not replaced_by(connection, night, since=row["signed_at"]):
            return night
    return None
