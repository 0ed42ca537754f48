"""Run rows: who runs which night, how far it got and what it came to."""

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

import psutil
from sqlalchemy import ColumnElement, Connection, bindparam, insert, or_, select, update

from recon.config.rules import Rules, digest_of
from recon.model.errors import Defect, NightHeldError, StoreError
from recon.model.nights import Mode, NightRequest, Part
from recon.model.words import SourceKind, Verdict
from recon.store.database.history import Event, append, of_entity
from recon.store.database.night_lock import Owner
from recon.store.database.record import RUN, event_of, record
from recon.store.people.approval_rows import released
from recon.store.schema import history, order_file, rules_version, run
from recon.store.schema.columns import in_account, reason_that_fits, values_of


def keep(connection: Connection, rules: Rules, *, at: datetime) -> None:
    """Keep the rules unless they are kept already."""
    known = select(rules_version.c.digest).where(rules_version.c.digest == rules.digest)
    if connection.execute(known).scalar_one_or_none() is None:
        document = json.dumps(rules.document, sort_keys=True)
        connection.execute(
            insert(rules_version).values(digest=rules.digest, document=document, first_used_at=at)
        )


def load(connection: Connection, digest: str) -> Rules | None:
    """The rules with this digest; None when they were never kept.

    Raises:
        ConfigurationError: this version of the product no longer understands them.
        StoreError: what is kept under this digest does not have it.
    """
    document = text_of(connection, digest)
    if not document:
        return None
    if digest_of_text(document) != digest:
        raise StoreError(_changed(digest))
    return Rules.of(json.loads(document), source=f"the rules {digest[:12]}")


def text_of(connection: Connection, digest: str) -> str:
    """The document that is kept under this digest, as it stands there; "" for none."""
    return str(
        connection.execute(
            select(rules_version.c.document).where(rules_version.c.digest == digest)
        ).scalar_one_or_none()
        or ""
    )


def changed_rules(connection: Connection) -> Iterator[str]:
    """Every set of rules that is not the one whose digest the runs bind, in words."""
    kept = {each.digest: each.document for each in connection.execute(select(rules_version))}
    for digest, document in sorted(kept.items()):
        if digest_of_text(document) != digest:
            yield _changed(digest)
    judged = connection.execute(select(run.c.rules_digest).distinct()).scalars()
    for digest in sorted({*judged} - {*kept, ""}):
        yield f"the rules {digest}, by which runs were judged, were taken away; {_PAST}"


def _changed(digest: str) -> str:
    return f"the rules {digest} say something else than then; {_PAST}"


_PAST = "they were changed past the code, each night has its own in proof/rules.json of its folder"


def digest_of_text(text: str) -> str:
    """The digest of rules as they were written, whatever version reads them; "" of none."""
    try:
        return digest_of(json.loads(text))
    except (ValueError, RecursionError):
        return ""


ENTITY = "retention"
LET_GO = "lets a night go"
GONE = "let a night go"
"""Every file of it that goes is gone."""


@dataclass(frozen=True, slots=True)
class LetGo:
    """What went of the folder of one run."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    by: str
    at: datetime
    files: int
    size_bytes: int
    list_sha256: str
    """Over the names and sizes of what went."""

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of {self.business_date}: the folder of this night was let go on "
            f"{self.at:%Y-%m-%d} by {self.by} under retention; its totals and manifests are kept"
        )


def let_go_of(connection: Connection, run_id: str) -> LetGo | None:
    """How the folder of a run was let go; None while it is kept."""
    row = connection.execute(
        select(history.c.at, history.c.data)
        .where(history.c.entity_id == run_id)
        .where(history.c.entity == ENTITY, history.c.event == LET_GO)
        .order_by(history.c.sequence)
        .limit(1)
    ).one_or_none()
    return None if row is None else _let_go(run_id, at=row.at, data=json.loads(row.data))


def all_let_go(connection: Connection) -> list[LetGo]:
    """Every folder that was let go, oldest link first."""
    rows = connection.execute(
        select(history.c.entity_id, history.c.at, history.c.data)
        .where(history.c.entity == ENTITY, history.c.event == LET_GO)
        .order_by(history.c.sequence)
    ).tuples()
    return [_let_go(run_id, at=at, data=json.loads(data)) for run_id, at, data in rows]


def half_gone(connection: Connection) -> list[LetGo]:
    """Those of which files may still lie there: whoever let them go was ended."""
    gone = set(
        connection.execute(
            select(history.c.entity_id).where(history.c.entity == ENTITY, history.c.event == GONE)
        ).scalars()
    )
    return [each for each in all_let_go(connection) if each.run_id not in gone]


def note_let_go(connection: Connection, going: LetGo, *, details: Mapping[str, Any]) -> None:
    """Say that a folder goes, before its first file does."""
    listed = {
        "merchant_id": going.merchant_id,
        "account_id": going.account_id,
        "business_date": going.business_date.isoformat(),
        "by": going.by,
        "count": going.files,
        "bytes": going.size_bytes,
        "list_sha256": going.list_sha256,
        **details,
    }
    append(connection, [Event(ENTITY, going.run_id, LET_GO, listed)], at=going.at)


def note_gone(connection: Connection, run_id: str, *, at: datetime) -> None:
    """Say that nothing of it is left but what is kept."""
    append(connection, [Event(ENTITY, run_id, GONE, {})], at=at)


def _let_go(run_id: str, *, at: datetime, data: Mapping[str, Any]) -> LetGo:
    return LetGo(
        run_id,
        data["merchant_id"],
        data["account_id"],
        date.fromisoformat(data["business_date"]),
        data["by"],
        at,
        data["count"],
        data["bytes"],
        data["list_sha256"],
    )


BY_HAND = "by-hand-"
"""How the run id of what a person sends begins; no night has such a run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one night."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    mode: Mode
    status: str
    step: str
    owner: str
    started_at: datetime
    as_of: datetime
    verdict: str
    workbook: str
    problem: str
    part: str = ""
    """Of the words of `Part`; "" is a whole night."""
    predecessor: str = ""
    """What stands in place of the night before; "" where it is there."""


@dataclass(frozen=True, slots=True)
class Stop:
    """That a run stopped sending; falsy where it did not."""

    why: str = ""
    not_sent: str = ""
    """What was approved and not sent then, in counts and sums; "" for nothing."""

    def __bool__(self) -> bool:
        """Whether it stopped."""
        return bool(self.why)

    def __str__(self) -> str:
        """Both, as sentences; "" where it did not stop."""
        left = f" Not sent: {self.not_sent}." if self.not_sent else ""
        return f"Sending stopped: {self.why}.{left}" if self else ""


PART_ENDED = "part"
"""Status of a part of a night that came to its end: no night is finished by it."""

STARTED, TAKEN_OVER = "started", "taken over"
ENDED = ("finished", "stopped", PART_ENDED)
"""Events of a run that are its status from then on."""

RECONCILED = "reconciled"
"""The event of a run that compared."""

RESUMED = "resumed"
"""The event of a stopped run that goes on as itself."""

SENDING_STOPPED = "sending stopped"
"""The event of a live run that did not send what it was to send."""

NOT_VERIFIED = "not verified"
"""The event of an answer that a run could not believe and that is of no set."""

OF_DAYS = (SourceKind.SETTLEMENT.value, SourceKind.BANK.value)
"""Files that tell of days, not of nights: whoever read one, it counts."""

_ACTIVE = select(run).where(
    *in_account(run),
    run.c.status == "active",
)
_BY_ID = select(run).where(run.c.run_id == bindparam("of_run"))
_STATUS = select(run.c.status).where(run.c.run_id == bindparam("of_run"))
_STEP = update(run).where(run.c.run_id == bindparam("of_run")).values(step=bindparam("done"))
_JUDGED = (
    select(run)
    .where(
        *in_account(run),
        run.c.status == "finished",
        run.c.verdict != "",
    )
    # A dry run after a live night never stands for it: it would lift, or put, a hold on money.
    .order_by(run.c.mode == Mode.LIVE.value, run.c.started_at)
)


def this_process() -> str:
    """Host, process and its start, so that a person can find who holds a night."""
    process = psutil.Process(os.getpid())
    started = datetime.fromtimestamp(process.create_time(), UTC)
    return (
        f"process {process.pid} on {socket.gethostname()}, started {started:%Y-%m-%d %H:%M:%S} UTC"
    )


def start(
    connection: Connection,
    request: NightRequest,
    *,
    run_id: str,
    as_of: datetime,
    now: datetime,
    part: Part | None = None,
    predecessor: str = "",
) -> tuple[str, ...]:
    """Begin a run; runs of this account that are still active had owners that are gone.

    The caller holds the account's lock and saw no owner alive (`living`), so an active run is one
    whose process is gone, or lost its lock on another machine: it is closed as stopped, and what it
    left in flight goes to doubt. Returns the ids of those runs.
    """
    dead = connection.execute(_ACTIVE, _place(request.merchant_id, request.account_id)).all()
    for row in dead:
        values, of, by = _end("stopped", now), {"run_id": row.run_id}, {"by": run_id}
        record(connection, RUN, values, of=of, event=TAKEN_OVER, at=now, details=by)
    began = {
        "run_id": run_id,
        "merchant_id": request.merchant_id,
        "account_id": request.account_id,
        "business_date": request.business_date,
        "mode": request.mode.value,
        "status": "active",
        "part": part or "",
        "predecessor": predecessor,
        "started_at": now,
        "as_of": as_of,
        **_owner(),
    }
    record(connection, RUN, began, event=STARTED, at=now)
    return tuple(row.run_id for row in dead)


def resume(connection: Connection, run_id: str, *, now: datetime) -> None:
    """Make a run that stopped this process's; the caller holds the account's lock."""
    values = {"status": "active", "finished_at": None, "problem": "", **_owner()}
    record(connection, RUN, values, of={"run_id": run_id}, event=RESUMED, at=now)


def _end(status: str, at: datetime) -> dict[str, Any]:
    return {"status": status, "finished_at": at}


def _owner() -> dict[str, str]:
    return {"owner": this_process(), "owner_process": str(Owner.this())}


def active(connection: Connection, *, merchant_id: str, account_id: str) -> Run | None:
    """The active run of an account, for the sentence that names the holder."""
    newest_first = _ACTIVE.order_by(run.c.started_at.desc())
    first = connection.execute(newest_first, _place(merchant_id, account_id)).mappings().first()
    return None if first is None else _run_of(first)


def living(connection: Connection, *, merchant_id: str, account_id: str) -> Run | None:
    """An active run of the account whose process lives on this machine, and is not this one."""
    for row in connection.execute(_ACTIVE, _place(merchant_id, account_id)).mappings():
        owner = Owner.parsed(row["owner_process"])
        if owner is not None and owner.is_alive_here():
            return _run_of(row)
    return None


def get(connection: Connection, run_id: str) -> Run:
    """One run by its id."""
    row = connection.execute(_BY_ID, {"of_run": run_id}).mappings().one_or_none()
    if row is None:
        msg = f"there is no run {run_id}"
        raise Defect(msg)
    return _run_of(row)


def is_known(connection: Connection, run_id: str) -> bool:
    """Whether there is such a run."""
    rows = connection.execute(select(run.c.run_id).where(run.c.run_id == run_id))
    return rows.one_or_none() is not None


def is_closed(connection: Connection, run_id: str) -> bool:
    """Whether a run has ended or was taken over; calls made by hand have no run and never are."""
    status = connection.execute(_STATUS, {"of_run": run_id}).scalar()
    return status not in {None, "active"}


def note_step(connection: Connection, run_id: str, *, step: str) -> None:
    """Remember the last finished step."""
    connection.execute(_STEP, {"of_run": run_id, "done": step})


def note_result(connection: Connection, run_id: str, *, values: Mapping[str, str]) -> None:
    """Keep verdict, digests, workbook and the like on the run; `result_event` binds them."""
    connection.execute(update(run).where(run.c.run_id == run_id).values(**values))


def result_event(
    run_id: str,
    *,
    values: Mapping[str, str],
    event: str,
    details: Mapping[str, Any] | None = None,
) -> Event:
    """The event of what `note_result` keeps."""
    return event_of(RUN, {"run_id": run_id, **values}, event=event, details=details)


def note_stop(connection: Connection, run_id: str, *, stop: Stop, now: datetime) -> None:
    """Keep in the history that a live run stopped sending, why, and what was not sent."""
    append(connection, [Event("run", run_id, SENDING_STOPPED, asdict(stop))], at=now)


def stop_of(connection: Connection, run_id: str) -> Stop:
    """Why a run stopped sending and what it did not send, as it was then."""
    stops = [
        Stop(**json.loads(str(event["data"])))
        for event in of_entity(connection, run_id)
        if event["event"] == SENDING_STOPPED
    ]
    return stops[-1] if stops else Stop()


def note_unverified(
    connection: Connection, run_id: str, *, sentences: Iterable[str], now: datetime
) -> None:
    """Keep what a run could not believe, each as one item that is not verified."""
    events = [Event("run", run_id, NOT_VERIFIED, {"what": sentence}) for sentence in sentences]
    append(connection, events, at=now)


def unverified(connection: Connection, run_id: str) -> list[str]:
    """What a run could not believe."""
    return [
        str(json.loads(str(event["data"]))["what"])
        for event in of_entity(connection, run_id)
        if event["event"] == NOT_VERIFIED
    ]


def digests_of(connection: Connection, run_id: str) -> dict[str, str]:
    """The digests of a run's rules and result."""
    names = ("rules_digest", "result_digest")
    row = connection.execute(select(*(run.c[name] for name in names)).where(run.c.run_id == run_id))
    return {name: str(value) for name, value in row.mappings().one().items()}


def finish(
    connection: Connection, run_id: str, *, status: str, problem: str, now: datetime
) -> None:
    """Close a run as finished (a part: PART_ENDED), or as stopped with the problem in words.

    Raises:
        NightHeldError: another run took its account over and closed it; it stays as that one said.
    """
    values = _end(status, now) | ({"problem": reason_that_fits(problem)} if problem else {})
    of, details = {"run_id": run_id, "status": "active"}, {"problem": problem}
    if not record(connection, RUN, values, of=of, event=status, at=now, details=details):
        msg = f"run {run_id} was closed: another run took the account over, and tells what became"
        raise NightHeldError(f"{msg} of it")


def last_finished(connection: Connection, *, merchant_id: str, account_id: str) -> dict[date, Run]:
    """The newest finished run of each business date of an account, live before dry, by date."""
    rows = connection.execute(_JUDGED, _place(merchant_id, account_id)).mappings()
    return {row["business_date"]: _run_of(row) for row in rows}


def of_night(connection: Connection, request: NightRequest) -> Run | None:
    """The newest live run of a whole night; None when it never ran."""
    rows = connection.execute(
        select(run)
        .where(run.c.merchant_id == request.merchant_id, run.c.account_id == request.account_id)
        .where(run.c.business_date == request.business_date)
        .where(run.c.mode == Mode.LIVE.value, run.c.part == "")
        .order_by(run.c.started_at.desc())
        .limit(1)
    ).mappings()
    first = rows.first()
    return None if first is None else _run_of(first)


def newest_live(connection: Connection, *, merchant_id: str, account_id: str) -> Run | None:
    """The live run of a whole night that started last; None before the first."""
    rows = connection.execute(
        select(run)
        .where(run.c.merchant_id == merchant_id, run.c.account_id == account_id)
        .where(run.c.mode == Mode.LIVE.value, run.c.part == "")
        .order_by(run.c.started_at.desc())
        .limit(1)
    ).mappings()
    first = rows.first()
    return None if first is None else _run_of(first)


def said_of_predecessor(connection: Connection, request: NightRequest) -> str:
    """What was last said of the missing predecessor of a live night; "" when nothing was."""
    rows = connection.execute(
        select(run.c.predecessor)
        .where(run.c.merchant_id == request.merchant_id, run.c.account_id == request.account_id)
        .where(run.c.business_date == request.business_date, run.c.mode == Mode.LIVE.value)
        .where(run.c.predecessor != "")
        .order_by(run.c.started_at.desc())
        .limit(1)
    )
    return rows.scalar_one_or_none() or ""


def later(connection: Connection, earlier: Run) -> str:
    """A run of the account that began after another, whatever its night or part; "" without one."""
    rows = connection.execute(
        select(run.c.run_id)
        .where(run.c.merchant_id == earlier.merchant_id, run.c.account_id == earlier.account_id)
        .where(run.c.started_at > earlier.started_at)
        .limit(1)
    )
    return rows.scalar_one_or_none() or ""


def any_finished_since(
    connection: Connection, *, merchant_id: str, account_id: str, since: datetime
) -> bool:
    """Whether a whole live night of the account that began after an instant came to its end."""
    nights = last_finished(connection, merchant_id=merchant_id, account_id=account_id)
    return any(night.mode is Mode.LIVE and night.started_at > since for night in nights.values())


def newest_start(connection: Connection) -> datetime | None:
    """When the newest run began; None before the first."""
    rows = connection.execute(select(run.c.started_at).order_by(run.c.started_at.desc()).limit(1))
    return rows.scalar_one_or_none()


def unfinished(connection: Connection) -> list[Run]:
    """Runs that stopped or still run, newest first."""
    rows = connection.execute(
        select(run)
        .where(run.c.status.not_in(("finished", PART_ENDED)))
        .order_by(run.c.started_at.desc())
    ).mappings()
    return [_run_of(row) for row in rows]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run with what it left behind."""

    run_id: str
    business_date: date
    workbook: str
    workbook_sha256: str
    replaced: bool
    """A later run of the same night wrote its own workbook."""


def counting(night: Run) -> tuple[ColumnElement[bool], ...]:
    """Of files: for a live night those that not only a dry run of a whole night read."""
    if night.mode is not Mode.LIVE:
        return ()
    dry = select(run.c.run_id).where(run.c.mode == Mode.DRY_RUN.value, run.c.part == "")
    return (or_(order_file.c.kind.in_(OF_DAYS), order_file.c.run_id.not_in(dry)),)


def finished(connection: Connection) -> list[FinishedRun]:
    """All finished runs, oldest first."""
    runs_found = connection.execute(
        select(run).where(run.c.status == "finished").order_by(run.c.started_at)
    ).mappings()
    rows = list(runs_found)
    # A dry run after a live one replaces nothing.
    last = sorted(rows, key=lambda row: (row["mode"] == Mode.LIVE.value, row["started_at"]))
    newest = {(r["merchant_id"], r["account_id"], r["business_date"]): r["run_id"] for r in last}
    return [
        FinishedRun(
            row["run_id"],
            row["business_date"],
            row["workbook"],
            row["workbook_sha256"],
            newest[row["merchant_id"], row["account_id"], row["business_date"]] != row["run_id"],
        )
        for row in rows
    ]


def newest_of_accounts(connection: Connection) -> list[Run]:
    """The newest run of each account's last business date; a part where no night has run."""
    nights_last = (run.c.part == "", run.c.business_date, run.c.started_at)
    rows = connection.execute(select(run).order_by(*nights_last)).mappings()
    newest = {(row["merchant_id"], row["account_id"]): row for row in rows}
    return [_run_of(row) for _, row in sorted(newest.items())]


def newest(connection: Connection, *, count: int) -> list[Run]:
    """The runs that started last, newest first."""
    rows = connection.execute(select(run).order_by(run.c.started_at.desc()).limit(count)).mappings()
    return [_run_of(row) for row in rows]


def not_proven(
    connection: Connection,
    *,
    merchant_id: str,
    account_id: str,
    problem_of: Callable[[str], str] | None = None,
) -> dict[date, str]:
    """Business dates whose newest finished run is NOT PROVEN, not released: they hold refunds.

    Each has why its release does not count, "" where there is none; `problem_of` tells that of a
    released run, without it all are believed.
    """
    nights = last_finished(connection, merchant_id=merchant_id, account_id=account_id)
    free = released(connection)
    held: dict[date, str] = {}
    for day, night in sorted(nights.items()):
        if night.verdict != Verdict.NOT_PROVEN.value:
            continue
        is_free = night.run_id in free
        why = problem_of(night.run_id) if is_free and problem_of is not None else ""
        if why or not is_free:
            held[day] = why
    return held


def _place(merchant_id: str, account_id: str) -> dict[str, str]:
    return values_of(merchant_id, account_id)


def _run_of(row: Mapping[Any, Any]) -> Run:
    names = Run.__dataclass_fields__
    return Run(**{name: row[name] for name in names if name != "mode"}, mode=Mode(row["mode"]))
