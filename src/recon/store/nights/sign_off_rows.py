"""Sign-offs of runs in the database, and the runs that make a sign-off void."""

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from recon.desk.endorsement import DecisionState, Kind
from recon.desk.held_keys import HeldKeys
from recon.store.nights.runs import LIVE_NIGHT, Run, select_runs
from recon.store.people.decision_rows import state_of, states_of
from recon.store.schema import endorsement, run
from recon.store.schema.columns import in_account

ROLES = ("reviewer", "approver")
"""A night is signed off when both roles have signed, in any order."""

_MAY_BE_SIGNED = run.c.run_id.in_(
    select(endorsement.c.subject).where(endorsement.c.kind == Kind.SIGN_OFF)
)


@dataclass(frozen=True, slots=True)
class Signature:
    """One person's signature under one workbook."""

    role: str
    by: str
    authenticated: bool
    at: datetime
    workbook_sha256: str


def signatures(connection: Connection, run_id: str, *, desk: HeldKeys) -> dict[str, Signature]:
    """Return the signatures under a run's workbook, by role."""
    return _by_role(state_of(connection, Kind.SIGN_OFF, subject=run_id, desk=desk))


def signed_runs(connection: Connection, *, desk: HeldKeys) -> frozenset[str]:
    """Return the runs with a signature."""
    found = states_of(connection, Kind.SIGN_OFF, desk=desk)
    return frozenset(run_id for run_id, agreed in found.items() if _by_role(agreed))


def _by_role(agreed: DecisionState) -> dict[str, Signature]:
    """Return the two that agree, else the one that waits."""
    both = agreed.pairs[-1] if agreed.pairs else agreed.waiting
    signed = (
        Signature(
            each.says["role"], each.name, each.proven, each.made_at, each.says["workbook_sha256"]
        )
        for each in both
        if each.says.keys() >= {"role", "workbook_sha256"}
    )
    return {each.role: each for each in signed}


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


def signed_earlier(connection: Connection, newest: Run, *, desk: HeldKeys) -> str | None:
    """Return the newest earlier run of the same night with a signature; None if there is none."""
    found = select_runs(
        connection,
        *in_account(run, newest),
        run.c.business_date == newest.business_date,
        run.c.mode == "live",
        run.c.started_at < newest.started_at,
        _MAY_BE_SIGNED,
    )
    signed = [each.run_id for each in found if signatures(connection, each.run_id, desk=desk)]
    return signed[-1] if signed else None


def last_signed(connection: Connection, before: Run, *, desk: HeldKeys) -> Run | None:
    """Return the newest earlier night that both roles signed and no run has replaced since."""
    earlier = select_runs(
        connection,
        *in_account(run, before),
        run.c.business_date < before.business_date,
        _MAY_BE_SIGNED,
        order=[run.c.business_date.desc(), run.c.started_at.desc()],
    )
    for night in earlier:
        signed = signatures(connection, night.run_id, desk=desk).values()
        since = max((each.at for each in signed), default=night.started_at)
        if len(signed) == len(ROLES) and not replaced_by(connection, night, since=since):
            return night
    return None
