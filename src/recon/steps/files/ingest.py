"""Step 1: order files, and settlement files, into tables, each file whole or not at all.

The same content again is a no-op with a clear line; a file that is not what its name says stays in
the inbox, is reported, and the night goes on without it (its verdict is INCOMPLETE then).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from recon.config.file_layouts import FileLayout, layout_of
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_table import refuse
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.archive import is_kept, keep_read
from recon.files.kinds.instruction_file import is_instruction_file
from recon.files.reader import OrderRead, SpooledRows, instruction_file, order_file
from recon.instructions.sealing import Seal
from recon.model.business_date import BusinessCalendar
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.headway import Way
from recon.model.nights import Mode, StepSummary
from recon.model.words import SourceFile, SourceKind
from recon.privacy.shown_text import shown_name
from recon.steps.files.arrivals import (
    arrivals,
    left,
    still_written,
    unreadable,
    unreadable_identity,
)
from recon.steps.files.arrived_rows import short_files_told
from recon.steps.files.bank_statements import ingest_banks
from recon.steps.files.file_endorsements import counting
from recon.steps.files.lost_facts import missing_read_again, reading_lost_facts
from recon.steps.files.order_files import refused_actions
from recon.steps.files.settlement_files import ingest_settlement
from recon.steps.files.words_on_files import guarded
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.database.engine import Turn
from recon.store.nights import file_words, order_rows, runs
from recon.store.nights.facts_rows import Account
from recon.store.nights.runs import Run

AFTER_CUT_OFF = timedelta(hours=6)
"""Rows of the first hours after the cut-off belong to the day that closed: files are made then."""
STRAY_ROWS_SHARE = 0.01
"""Of the rows with the newest times so many may be wrong; they say nothing of the file."""


def left_for_later(read: OrderRead, *, run: Run, environment: Environment) -> str:
    """Why a file is not taken by this night, in words; "" when it is this night's.

    A first run of a night takes what reaches into a day that is still open: there is no other night
    to come for it yet. A corrected version of a file of this night is always this night's.
    """
    calendar, now = environment.settings.rules.business_calendar, environment.clock()
    day = run.business_date
    following = _business_day(day + timedelta(days=1), calendar=calendar)
    had_file, same_name = _known_of_night(
        run, name=read.facts.source_file.name, environment=environment
    )
    if same_name or not (had_file or calendar.closes_at(following) <= now):
        return ""
    newest = _reach(read)
    if newest is None:
        return ""
    own = _business_day(calendar.business_date_of(newest - AFTER_CUT_OFF), calendar=calendar)
    if own <= day or not (had_file or calendar.closes_at(own) <= now):
        return ""
    return f"its newest rows are of {newest:%Y-%m-%d %H:%M} UTC: the night of {own} takes it"


def _known_of_night(run: Run, *, name: str, environment: Environment) -> tuple[bool, bool]:
    """Whether a finished live night of this date had an order file, and whether it had this one."""
    with environment.store.reading() as connection:
        nights = runs.last_finished(connection, run)
        files = [file for file, _ in order_rows.files_of_night(connection, run)]
    night = nights.get(run.business_date)
    live = night is not None and night.mode is Mode.LIVE
    orders = [file for file in files if file.kind is SourceKind.ORDERS and file.rows_accepted]
    return live and bool(orders), any(file.name == name for file in orders)


def _reach(read: OrderRead) -> datetime | None:
    """Up to when its rows go, without the few newest that may be mistakes; None without rows."""
    instants = [_newest_of_rows(part.orders) for part in read.parts()]
    every = np.sort(np.concatenate(instants)) if instants else np.array([], dtype=np.int64)
    if not every.size:
        return None
    rank = every.size - 1 - int(every.size * STRAY_ROWS_SHARE)
    return datetime.fromtimestamp(int(every[rank]) / 1_000_000, UTC)


def _newest_of_rows(orders: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Microseconds of each row's newest time; rows without one are left out."""
    times = orders[["ordered_at", "updated_at"]].max(axis=1).dropna()
    return times.astype("datetime64[us, UTC]").to_numpy("datetime64[us]").astype(np.int64)


def _business_day(day: date, *, calendar: BusinessCalendar) -> date:
    """The day itself, or the first business day after it: other days have no night of their own."""
    while not calendar.is_business_day(day):
        day += timedelta(days=1)
    return day


STEP = "ingest"
NAMED_MAX = 3
"""Refused instructions that the step names; `recon order-file check` shows more."""
LET_GO = "was not read: somebody let it go (`recon file list`)"


@reading_lost_facts
def ingest(
    run_id: str, *, environment: Environment, sleep: Callable[[float], None] = time.sleep
) -> StepSummary:
    """Read what is new in the account's inbox, after what is elsewhere was fetched into it.

    Raises:
        SourceMissingError: the inbox folder does not exist.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    if not account.inbox.is_dir():
        msg = f"the inbox {account.inbox} does not exist; create it or correct merchants.toml"
        raise SourceMissingError(msg)
    figures = dict.fromkeys(("files", "known_files", "rows", "rejected", "refused"), 0)
    later: dict[str, str] = {}
    refused: list[str] = []
    against: list[str] = []
    copies: list[str] = []
    private: list[str] = []
    inbox_of = (run.merchant_id, run.account_id)
    lost = [*missing_read_again(inbox_of, environment=environment)]
    came = arrivals(run, account=account, environment=environment, sleep=sleep)
    waiting = inbox(account.inbox, layouts=account.layouts)
    growing = still_written(
        waiting.files, account=account, layouts=account.layouts, environment=environment
    )
    read = partial(
        _ingest_file,
        run=run,
        environment=environment,
        private=private,
        later=later,
        against=against,
    )
    for path in waiting.files:
        source, problem = read(path, problem=growing.get(path, ""))
        if problem:
            refused.append(f"{shown_name(path.name)}: {problem}")
            continue
        if source is None:
            figures["known_files"] += shown_name(path.name) not in later
            continue
        if order_rows.is_copy(source):
            copies.append(f"{shown_name(source.name)} ({source.rows_read} rows)")
        counted = {"files": 1, "rows": source.rows_accepted, "rejected": source.rows_rejected}
        figures |= {name: figures[name] + more for name, more in counted.items()}
    figures["refused"] = len(refused)
    figures["refused_instructions"] = len(against)
    sentence = _sentence(figures, refused=refused, later=later) + _against_told(against)
    sentence += f" Told before, and counted once: {', '.join(copies)}." if copies else ""
    sentence += left(waiting) + came.sentence()
    sentence += _not_archived(private) + _short_told(run, figures=figures, environment=environment)
    sentence += "".join(f" {each}" for each in lost)
    for others in (ingest_settlement, ingest_banks):
        sentence += others(run, figures=figures, environment=environment, sleep=sleep)
    with environment.store.writing() as connection:
        runs.note_step(connection, run_id, step=STEP)
    return StepSummary(STEP, sentence, figures)


def _against_told(against: Sequence[str]) -> str:
    if not against:
        return ""
    more = f"; and {len(against) - NAMED_MAX} more" if len(against) > NAMED_MAX else ""
    return (
        f" {len(against)} instructions refused; their rows are compared, and two people approve "
        f"what is meant so: {'; '.join(against[:NAMED_MAX])}{more}."
    )


def _not_archived(private: Sequence[str]) -> str:
    return f" Not archived: {'; '.join(private)}." if private else ""


def _short_told(run: Run, *, figures: dict[str, int], environment: Environment) -> str:
    short = short_files_told(run, until=None, environment=environment)
    figures["short_files"] = len(short)
    return "".join(f" {sentence}" for sentence in short)


def _ingest_file(
    path: Path,
    *,
    problem: str,
    run: Run,
    environment: Environment,
    private: list[str],
    later: dict[str, str],
    against: list[str],
) -> tuple[SourceFile | None, str]:
    """Store one file; nothing when its content was read before, and why it cannot be read.

    `later` gets the files that are left for a later night, and why; `against` the instructions
    that their own rows contradict.
    """
    try:
        if _let_go(path, run=run, environment=environment):
            later[shown_name(path.name)] = LET_GO
            return None, ""
        if problem:
            refuse(shown_name(path.name), problem)
        sha256 = sha256_of(path)
        is_known, copy = _taken_before(path, sha256=sha256, run=run, environment=environment)
        if is_known:
            return copy, ""
        with guarded(path, run=run, environment=environment, sha256=sha256):
            if is_instruction_file(path):
                return _ingest_instructions(path, run=run, environment=environment, private=private)
            return _ingest_orders(
                path,
                run=run,
                environment=environment,
                private=private,
                later=later,
                against=against,
            )
    except SourceMissingError:
        return None, "was gone when it was to be read"
    except SourceUnreadableError as error:
        return None, _refused(path, str(error), run=run, environment=environment)


def _taken_before(
    path: Path, *, sha256: str, run: Run, environment: Environment
) -> tuple[bool, SourceFile | None]:
    """Whether this very content was read whole in an earlier night, and is kept if it is to be.

    And what was noted of it where it was read under another name. Files that stay in an inbox
    would otherwise cost each night what they cost the first.
    """
    with environment.store.reading() as connection:
        known = file_words.known_file(
            connection,
            run,
            name=path.name,
            sha256=sha256,
            counts=counting(connection, environment=environment),
        )
    if known is None:  # nor is what was refused known by its content: it is told each night
        return False, None
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    if account.archive is not None and not is_kept(path, sha256=sha256, archive=account.archive):
        return False, None
    if known.name == path.name:
        return True, None
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        return _known(connection, run, name=path.name, sha256=sha256, environment=environment)


def _let_go(path: Path, *, run: Run, environment: Environment) -> bool:
    """Whether somebody let go of this very version of a file that could not be read."""
    name = shown_name(path.name)
    with environment.store.reading() as connection:
        identity = file_words.dismissed(
            connection, run, name=name, counts=counting(connection, environment=environment)
        )
    return identity != "" and identity == unreadable_identity(path, name=name)


def _ingest_orders(
    path: Path,
    *,
    run: Run,
    environment: Environment,
    private: list[str],
    later: dict[str, str],
    against: list[str],
) -> tuple[SourceFile | None, str]:
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    rules, layout = environment.settings.rules, _layout(path, run, environment)
    archive = account.archive
    with order_file(path, rules=rules, layout=layout, keep=archive is not None) as read:
        if why := left_for_later(read, run=run, environment=environment):
            later[path.name] = why
            return None, ""
        _archive(
            path, read.facts.source_file, why=read.facts.private, archive=archive, private=private
        )
        found: dict[int, str] = {}
        source = _save(read, run=run, environment=environment, refused=found)
        if source is not None:
            name = shown_name(path.name)
            against += [f"{name} line {line}: {why}" for line, why in found.items()]
        return source, ""


def _save(
    read: OrderRead, *, run: Run, environment: Environment, refused: dict[int, str]
) -> SourceFile | None:
    """Store a file that was read whole; nothing when its content was read before.

    Its rows are written before anybody waits for it. `refused` gets lines and why their
    instructions wait for a person.
    """
    store, source = environment.store, read.facts.source_file
    inbox_of = (run.merchant_id, run.account_id)
    orders = order_rows.written(
        run,
        source=source,
        parts=lambda: _counted(read),
        sender=sender_of(inbox_of, environment=environment),
        storage=storages_of(environment)(inbox_of),
    )
    environment.crash_point("archived the orders")
    with store.writing(turn=Turn.ORDERS) as connection:
        is_known, copy = _known(
            connection, run, name=source.name, sha256=source.sha256, environment=environment
        )
        if is_known:
            return copy
        order_rows.save_file(
            connection,
            run,
            orders=orders,
            parts=lambda: _looked_through(read, refused=refused),
            rejects=read.facts.rejects,
            at=environment.clock(),
        )
        return source


def sender_of(account: Account, *, environment: Environment) -> str:
    """Whose inbox it is: the first of the accounts that share it, for they have one sender."""
    every = environment.settings.accounts
    own = "/".join(account)
    return min(name for name, each in every.items() if each.inbox == every[own].inbox)


def _looked_through(read: OrderRead, *, refused: dict[int, str]) -> Iterator[SpooledRows]:
    """The rows of a file; what contradicts itself in them is noted as they pass."""
    for part in read.parts():
        refused.update(refused_actions(part.actions))
        yield part


def _counted(read: OrderRead) -> Iterator[SpooledRows]:
    """The rows of a file, told as they are stored."""
    source = read.facts.source_file
    way = Way(f"rows of {shown_name(source.name)} stored", of=source.rows_accepted)
    for part in read.parts():
        yield part
        way.more(len(part.orders))


def _layout(path: Path, run: Run, environment: Environment) -> FileLayout:
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    return layout_of(path.name, layouts=account.layouts)


def _archive(
    path: Path, source: SourceFile, *, why: str, archive: Path | None, private: list[str]
) -> None:
    """Keep what was read before anything of it is stored, unless it is private."""
    if archive is None:
        return
    if why := keep_read(path, sha256=source.sha256, private=why, archive=archive):
        private.append(f"{shown_name(path.name)}: {why}")


def _ingest_instructions(
    path: Path, *, run: Run, environment: Environment, private: list[str]
) -> tuple[SourceFile | None, str]:
    settings = environment.settings
    archive = settings.account(run.merchant_id, account_id=run.account_id).archive
    read, why = instruction_file(
        path,
        rules=settings.rules,
        seal=Seal(settings.seal_key) if settings.seal_key else None,
        review_flags=settings.gateway.review_flags,
        interface=settings.interface,
        layout=_layout(path, run, environment),
        keep=archive is not None,
    )
    _archive(path, read.source_file, why=why, archive=archive, private=private)
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        name, sha256 = read.source_file.name, read.source_file.sha256
        is_known, copy = _known(connection, run, name=name, sha256=sha256, environment=environment)
        if is_known:
            return copy, ""
        order_rows.save_instruction_file(
            connection,
            run,
            actions=read.actions,
            rejects=read.rejects,
            source=read.source_file,
            at=environment.clock(),
        )
    return read.source_file, ""


def _refused(path: Path, problem: str, *, run: Run, environment: Environment) -> str:
    """Note a file that could not be read as one rejected row, so that no total forgets it."""
    source, reject = unreadable(
        path, problem=problem, kind=SourceKind.ORDERS, name=shown_name(path.name)
    )
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        is_known, _ = _known(
            connection, run, name=source.name, sha256=source.sha256, environment=environment
        )
        if not is_known:
            order_rows.insert_file(
                connection,
                run,
                rejects=[reject],
                source=source,
                at=environment.clock(),
            )
    return problem


def _known(
    connection: Connection, run: Run, *, name: str, sha256: str, environment: Environment
) -> tuple[bool, SourceFile | None]:
    """Whether content is known, and what was noted of it where that is so under another name."""
    known = file_words.known_file(
        connection,
        run,
        name=name,
        sha256=sha256,
        counts=counting(connection, environment=environment),
    )
    if known is None or known.name == name:
        return known is not None, None
    return True, order_rows.save_copy(connection, run, of=known, name=name, at=environment.clock())


def _sentence(figures: dict[str, int], *, refused: Sequence[str], later: Mapping[str, str]) -> str:
    if not figures["files"] and not figures["known_files"] and not refused and not later:
        return "The inbox is empty: no order file has arrived."
    sentence = (
        f"{figures['files']} new order files with {figures['rows']} rows accepted and "
        f"{figures['rejected']} rejected; {figures['known_files']} files were known already."
    )
    for name, why in later.items():
        sentence += f" {name} {why}." if why == LET_GO else f" {name} was left: {why}."
    if refused:
        sentence += (
            f" {len(refused)} refused as a whole and left in the inbox: {'; '.join(refused)}."
        )
    return sentence
