"""Run rows: who runs which night, how far it got and what it came to."""

import json
import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import psutil
from sqlalchemy import ColumnElement, Connection, insert, or_, select, update

from recon.config.rules import Rules, digest_of
from recon.model.errors import Defect, NightHeldError, StoreError
from recon.model.nights import Account, Mode, NightRequest, Part
from recon.model.terms import SourceKind, Verdict
from recon.store.database.history import Event, append, document_of, links_of
from recon.store.database.night_lock import Process
from recon.store.database.record import RUN, event_of, record
from recon.store.people.decision_rows import released
from recon.store.schema import order_file, rules_version, run
from recon.store.schema.columns import Owner, in_account, reason_that_fits


def save(connection: Connection, rules: Rules, *, at: datetime) -> None:
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
    saved = {each.digest: each.document for each in connection.execute(select(rules_version))}
    for digest, document in sorted(saved.items()):
        if digest_of_text(document) != digest:
            yield _changed(digest)
    evaluated = connection.execute(select(run.c.rules_digest).distinct()).scalars()
    for digest in sorted({*evaluated} - {*saved, ""}):
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
            f"{self.at:%Y-%m-%d} by {self.by} under retention; its totals and manifests are kept: "
            "look at a later night, or the close of its month"
        )


def let_go_of(connection: Connection, run_id: str) -> LetGo | None:
    """How the folder of a run was let go; None while it is kept."""
    return next(iter(all_let_go(connection, [run_id])), None)


def all_let_go(connection: Connection, run_ids: Collection[str] | None = None) -> list[LetGo]:
    """Every folder that was let go, or those of some runs, oldest link first."""
    links = links_of(connection, run_ids, entity=ENTITY, event=LET_GO)
    return [link.value(LetGo, run_id=link.entity_id) for link in links]


def all_gone(connection: Connection) -> set[str]:
    """Runs of whose folders nothing is left that goes; of others whoever let them go was ended."""
    return {link.entity_id for link in links_of(connection, entity=ENTITY, event=GONE)}


def note_let_go(connection: Connection, going: LetGo, *, days: int) -> None:
    """Say that a folder goes, before its first file does; `days`: how long they are kept."""
    listed = {**document_of(going, "run_id", "at"), "days": days}
    append(connection, [Event(ENTITY, going.run_id, LET_GO, listed)], at=going.at)


def note_gone(connection: Connection, run_id: str, *, at: datetime) -> None:
    """Say that nothing of it is left but what is kept."""
    append(connection, [Event(ENTITY, run_id, GONE, {})], at=at)


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
    workbook_sha256: str = ""
    replaced: bool = False
    """Of a run that `finished` gives: a later one of its night wrote its own workbook."""

    @property
    def account(self) -> Account:
        """Whose night it is."""
        return self.merchant_id, self.account_id


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
SEALED = "sealed"

RECONCILED = "reconciled"
"""The event of a run that compared."""

RESUMED = "resumed"
"""The event of a stopped run that goes on as itself."""

SENDING_STOPPED = "sending stopped"
"""The event of a live run that did not send what it was to send."""

NOT_VERIFIED = "not verified"
"""The event of an answer that a run could not believe and that is of no set."""

OF_DAYS = (SourceKind.SETTLEMENT, SourceKind.BANK)
"""Files that tell of days, not of nights: whoever read one, it counts."""

_COLUMNS = tuple(run.c[name] for name in Run.__dataclass_fields__ if name != "replaced")
LIVE_NIGHT = (run.c.mode == Mode.LIVE, run.c.part == "")
_ACTIVE = run.c.status == "active"
_LAST_FIRST = run.c.started_at.desc()


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
    dead = [each.run_id for each in select_runs(connection, *in_account(run, request), _ACTIVE)]
    for run_dead in dead:
        values, of, by = _end("stopped", now), {"run_id": run_dead}, {"by": run_id}
        record(connection, RUN, values, of=of, event=TAKEN_OVER, at=now, details=by)
    began = {
        "run_id": run_id,
        "merchant_id": request.merchant_id,
        "account_id": request.account_id,
        "business_date": request.business_date,
        "mode": request.mode,
        "status": "active",
        "part": part or "",
        "predecessor": predecessor,
        "started_at": now,
        "as_of": as_of,
        **_owner(),
    }
    record(connection, RUN, began, event=STARTED, at=now)
    return tuple(dead)


def resume(connection: Connection, run_id: str, *, now: datetime) -> None:
    """Make a run that stopped this process's; the caller holds the account's lock."""
    values = {"status": "active", "finished_at": None, "problem": "", **_owner()}
    record(connection, RUN, values, of={"run_id": run_id}, event=RESUMED, at=now)


def _end(status: str, at: datetime) -> dict[str, Any]:
    return {"status": status, "finished_at": at}


def _owner() -> dict[str, str]:
    return {"owner": this_process(), "owner_process": str(Process.this())}


def select_runs(
    connection: Connection,
    *which: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]] = (run.c.started_at,),
    count: int | None = None,
) -> list[Run]:
    """The runs of some conditions; in the order of their start, unless another is said."""
    query = select(*_COLUMNS).where(*which).order_by(*order).limit(count)
    rows = connection.execute(query).mappings()
    return [Run(**{**row, "mode": Mode(row["mode"])}) for row in rows]


def _last(connection: Connection, *which: ColumnElement[bool]) -> Run | None:
    return next(iter(select_runs(connection, *which, order=[_LAST_FIRST], count=1)), None)


def active(connection: Connection, owner: Owner) -> Run | None:
    """The active run of an account, for the sentence that names the holder."""
    return _last(connection, *in_account(run, owner), _ACTIVE)


def living(connection: Connection, owner: Owner) -> Run | None:
    """An active run of the account whose process lives on this machine, and is not this one."""
    query = select(run.c.run_id, run.c.owner_process).where(*in_account(run, owner), _ACTIVE)
    for run_id, process in connection.execute(query).tuples():
        held_by = Process.parsed(process)
        if held_by is not None and held_by.is_alive_here():
            return get(connection, run_id)
    return None


def get(connection: Connection, run_id: str) -> Run:
    """One run by its id."""
    found = select_runs(connection, run.c.run_id == run_id)
    if not found:
        msg = f"there is no run {run_id}"
        raise Defect(msg)
    return found[0]


def is_known(connection: Connection, run_id: str) -> bool:
    """Whether there is such a run."""
    own = run.c.run_id == run_id
    return connection.execute(select(run.c.run_id).where(own)).first() is not None


def is_closed(connection: Connection, run_id: str) -> bool:
    """Whether a run has ended or was taken over; calls made by hand have no run and never are."""
    status = connection.execute(select(run.c.status).where(run.c.run_id == run_id)).scalar()
    return status not in {None, "active"}


def note_step(connection: Connection, run_id: str, *, step: str) -> None:
    """Remember the last finished step."""
    connection.execute(update(run).where(run.c.run_id == run_id).values(step=step))


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


def result_told(connection: Connection, run_id: str) -> Mapping[str, Any]:
    """Data of the newest event of a run's result; empty before the first."""
    links = links_of(connection, [run_id], entity="run", event=RECONCILED)
    return links[-1].data if links else {}


def note_stop(connection: Connection, run_id: str, *, stop: Stop, now: datetime) -> None:
    """Keep in the history that a live run stopped sending, why, and what was not sent."""
    append(connection, [Event("run", run_id, SENDING_STOPPED, asdict(stop))], at=now)


def stop_of(connection: Connection, run_id: str) -> Stop:
    """Why a run stopped sending and what it did not send, as it was then."""
    stops = links_of(connection, [run_id], entity="run", event=SENDING_STOPPED)
    return Stop(**stops[-1].data) if stops else Stop()


def note_unverified(
    connection: Connection, run_id: str, *, sentences: Iterable[str], now: datetime
) -> None:
    """Keep what a run could not believe, each as one item that is not verified."""
    events = [Event("run", run_id, NOT_VERIFIED, {"what": sentence}) for sentence in sentences]
    append(connection, events, at=now)


def unverified(connection: Connection, run_id: str) -> list[str]:
    """What a run could not believe."""
    links = links_of(connection, [run_id], entity="run", event=NOT_VERIFIED)
    return [str(link.data["what"]) for link in links]


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


def last_finished(connection: Connection, owner: Owner) -> dict[date, Run]:
    """The newest finished run of each business date of an account, live before dry, by date."""
    evaluated = (*in_account(run, owner), run.c.status == "finished", run.c.verdict != "")
    # A dry run after a live night never stands for it: it would lift, or put, a hold on money.
    order = (run.c.mode == Mode.LIVE, run.c.started_at)
    return {each.business_date: each for each in select_runs(connection, *evaluated, order=order)}


def of_night(connection: Connection, request: NightRequest) -> Run | None:
    """The newest live run of a whole night; None when it never ran."""
    night = run.c.business_date == request.business_date
    return _last(connection, *in_account(run, request), night, *LIVE_NIGHT)


def newest_live(connection: Connection, owner: Owner) -> Run | None:
    """The live run of a whole night that started last; None before the first."""
    return _last(connection, *in_account(run, owner), *LIVE_NIGHT)


def stated_of_predecessor(connection: Connection, request: NightRequest) -> str:
    """What was last said of the missing predecessor of a live night; "" when nothing was."""
    night = run.c.business_date == request.business_date, run.c.mode == Mode.LIVE
    last = _last(connection, *in_account(run, request), *night, run.c.predecessor != "")
    return last.predecessor if last else ""


def later(connection: Connection, earlier: Run) -> str:
    """A run of the account that began after another, whatever its night or part; "" without one."""
    found = _last(connection, *in_account(run, earlier), run.c.started_at > earlier.started_at)
    return found.run_id if found else ""


def any_finished_since(connection: Connection, owner: Owner, *, since: datetime) -> bool:
    """Whether a whole live night of the account that began after an instant came to its end."""
    nights = last_finished(connection, owner).values()
    return any(night.mode is Mode.LIVE and night.started_at > since for night in nights)


def unfinished(connection: Connection) -> list[Run]:
    """Runs that stopped or still run, newest first."""
    open_ones = run.c.status.not_in(("finished", PART_ENDED))
    return select_runs(connection, open_ones, order=[_LAST_FIRST])


def counting(night: Run) -> tuple[ColumnElement[bool], ...]:
    """Of files: for a live night those that not only a dry run of a whole night read."""
    if night.mode is not Mode.LIVE:
        return ()
    dry = select(run.c.run_id).where(run.c.mode == Mode.DRY_RUN, run.c.part == "")
    return (or_(order_file.c.kind.in_(OF_DAYS), order_file.c.run_id.not_in(dry)),)


def finished(connection: Connection) -> list[Run]:
    """All finished runs, oldest first."""
    every = select_runs(connection, run.c.status == "finished")
    # A dry run after a live one replaces nothing.
    last = sorted(every, key=lambda one: (one.mode is Mode.LIVE, one.started_at))
    newest = {(*one.account, one.business_date): one.run_id for one in last}
    saved = {*newest.values()}
    return [replace(one, replaced=one.run_id not in saved) for one in every]


def newest_of_accounts(connection: Connection) -> list[Run]:
    """The newest run of each account's last business date; a part where no night has run."""
    nights_last = (run.c.part == "", run.c.business_date, run.c.started_at)
    newest = {each.account: each for each in select_runs(connection, order=nights_last)}
    return [each for _, each in sorted(newest.items())]


def newest(connection: Connection, *, count: int) -> list[Run]:
    """The runs that started last, newest first."""
    return select_runs(connection, order=[_LAST_FIRST], count=count)


def not_proven(
    connection: Connection, owner: Owner, *, problem_of: Callable[[str], str] | None = None
) -> dict[date, str]:
    """Business dates whose newest finished run is NOT PROVEN, not released: they hold refunds.

    Each has why its release does not count, "" where there is none; `problem_of` tells that of a
    released run, without it all are believed.
    """
    nights = last_finished(connection, owner)
    free = released(connection)
    held: dict[date, str] = {}
    for day, night in sorted(nights.items()):
        if night.verdict != Verdict.NOT_PROVEN:
            continue
        is_free = night.run_id in free
        why = problem_of(night.run_id) if is_free and problem_of is not None else ""
        if why or not is_free:
            held[day] = why
    return held
