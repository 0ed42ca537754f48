"""Sign-offs of runs in the database, and the runs that make a sign-off void."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, func, select

from recon.store.database.record import SIGN_OFF, record
from recon.store.nights import runs
from recon.store.nights.runs import LIVE_NIGHT, Run, select_runs
from recon.store.people.decision_rows import TAKEN_BACK, PersonsDecision
from recon.store.schema import run, sign_off
from recon.store.schema.columns import in_account

ROLES = ("reviewer", "approver")
"""A night is signed off when both roles have signed, in any order."""
_SIGNED = sign_off.c.signed_by != ""
"""The signature is not withdrawn."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One person's signature under one workbook."""

    role: str
    by: str
    authenticated: bool
    at: datetime
    workbook_sha256: str


def save(
    connection: Connection,
    run_id: str,
    *,
    role: str,
    decision: PersonsDecision,
    workbook_sha256: str,
) -> None:
    """Store a signature under a workbook, with its event."""
    own = {"run_id": run_id, "role": role}
    signed = {
        "signed_by": decision.by,
        "authenticated": decision.authenticated,
        "signed_at": decision.at,
    }
    values = signed | {"workbook_sha256": workbook_sha256}
    signing: dict[str, Any] = {
        "event": "signed",
        "at": decision.at,
        "details": {"by": decision.as_text},
    }
    if not record(connection, SIGN_OFF, values, of=own, **signing):
        record(connection, SIGN_OFF, own | values, **signing)


def take_back(
    connection: Connection, run_id: str, *, signature: Signature, decision: PersonsDecision
) -> None:
    """Withdraw a signature; the row remains without a name."""
    nobody = {"signed_by": "", "authenticated": False, "signed_at": decision.at}
    own, by = {"run_id": run_id, "role": signature.role}, {"by": decision.as_text}
    record(connection, SIGN_OFF, nobody, of=own, event=TAKEN_BACK, at=decision.at, details=by)


def signatures(connection: Connection, run_id: str) -> dict[str, Signature]:
    """Return the signatures under a run's workbook, by role."""
    own = [each for name, each in all_signatures(connection) if name == run_id]
    return {each.role: each for each in own}


def all_signatures(connection: Connection) -> list[tuple[str, Signature]]:
    """Return all signatures as (run id, signature), ordered by run id."""
    names = ("role", "signed_by", "authenticated", "signed_at", "workbook_sha256")
    columns = (sign_off.c[name] for name in ("run_id", *names))
    query = select(*columns).where(_SIGNED).order_by(sign_off.c.run_id)
    return [(run_id, Signature(*cells)) for run_id, *cells in connection.execute(query)]


def live_runs(connection: Connection, *, first: date, last: date) -> list[Run]:
    """Return live runs of whole nights from `first` to `last`, in the order of their start."""
    return select_runs(connection, run.c.business_date.between(first, last), *LIVE_NIGHT)


def replaced_by(connection: Connection, signed: Run, *, since: datetime) -> str:
    """Return the later run, of this night or an earlier one, that made a signature void; or "".

    It counts from its end, because it may have started, and stopped, before the signature.
    """
    found = select_runs(
        connection,
        *in_account(run, signed),
        run.c.business_date <= signed.business_date,
        run.c.status == "finished",
        run.c.mode == "live",
        run.c.started_at > signed.started_at,
        run.c.finished_at > since,
        count=1,
    )
    return found[0].run_id if found else ""


def signed_earlier(connection: Connection, newest: Run) -> str | None:
    """Return the newest earlier run of the same night with a signature; None if there is none."""
    found = select_runs(
        connection,
        *in_account(run, newest),
        run.c.business_date == newest.business_date,
        run.c.mode == "live",
        run.c.started_at < newest.started_at,
        run.c.run_id.in_(select(sign_off.c.run_id).where(_SIGNED)),
    )
    return found[-1].run_id if found else None


def last_signed(connection: Connection, before: Run) -> Run | None:
    """Return the newest earlier night that both roles signed and no run has replaced since."""
    rows = connection.execute(
        select(run.c.run_id, func.max(sign_off.c.signed_at).label("signed_at"))
        .join(sign_off, sign_off.c.run_id == run.c.run_id)
        .where(*in_account(run, before), run.c.business_date < before.business_date, _SIGNED)
        .group_by(run.c.run_id)
        .having(func.count() == len(ROLES))
        .order_by(run.c.business_date.desc(), run.c.started_at.desc())
    ).all()
    for run_id, signed_at in rows:
        night = runs.get(connection, run_id)
        if not replaced_by(connection, night, since=signed_at):
            return night
    return None
