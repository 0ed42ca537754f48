"""Settlement files from their inbox into tables, as strictly as order files.

Each file goes in whole or not at all; the same content again is a no-op. One that cannot be read,
or that was expected and is not there, stands among the sources of the night as a rejected row: its
verdict is INCOMPLETE, and until it comes right no payment of its days is called unsettled.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from recon.config.file_layouts import layout_of
from recon.config.settlement_folder import SettlementFolder
from recon.files.formats.raw_table import refuse
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.archive import keep_read
from recon.files.kinds.settlement_file import SettlementFile
from recon.files.reader import settlement_file
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.errors import SourceMissingError, SourceUnreadableError, StoreLockedError
from recon.model.words import Reject, SourceFile, SourceKind
from recon.privacy.shown_text import shown_name
from recon.steps.files.arrivals import arrivals, left, unreadable
from recon.steps.files.breaking_files import guarded
from recon.steps.files.fewer_key_files import merge_keys
from recon.steps.files.settling import still_written
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store.database.engine import Turn
from recon.store.nights import settlement_plan, settlement_rows
from recon.store.nights.runs import Run

PLANNED_MAX = 10
"""So often a file is planned anew because another one came."""


def ingest_settlement(
    run: Run,
    *,
    figures: dict[str, int],
    environment: Environment,
    sleep: Callable[[float], None],
) -> str:
    """Read what is new of the account's settlement files; what happened, in sentences.

    Raises:
        SourceMissingError: the folder of settlement files does not exist.
    """
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    folder = account.settlement
    if folder is None:
        return ""
    if not folder.inbox.is_dir():
        msg = f"settlement.inbox {folder.inbox} does not exist; create it or correct merchants.toml"
        raise SourceMissingError(msg)
    kind = SourceKind.SETTLEMENT
    prefix = settlement_rows.NAME_PREFIX
    came = arrivals(
        run, account=folder, kind=kind, prefix=prefix, environment=environment, sleep=sleep
    )
    waiting = inbox(folder.inbox, layouts=folder.layouts)
    growing = still_written(
        waiting.files, account=account, layouts=folder.layouts, environment=environment
    )
    read = partial(_ingest_file, folder=folder, run=run, environment=environment, figures=figures)
    new, rows, sentence = 0, 0, ""
    for path in waiting.files:
        source, words = read(path, problem=growing.get(path, ""))
        new += source is not None
        rows += source.rows_accepted if source else 0
        sentence += words
    figures["settlement_files"], figures["settlement_lines"] = new, rows
    known = len(waiting.files) - new
    what = f" {new} new settlement files with {rows} lines accepted; {known} known or refused."
    if not waiting.files:
        what = " No settlement file has arrived."
    return what + sentence + left(waiting) + came.sentence()


def _ingest_file(
    path: Path,
    *,
    problem: str,
    folder: SettlementFolder,
    run: Run,
    environment: Environment,
    figures: dict[str, int],
) -> tuple[SourceFile | None, str]:
    """Store one file; nothing when its content was read before, and what is to be told of it."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    layout = layout_of(path.name, layouts=folder.layouts)
    shown, words = shown_name(path.name), ""
    name = f"{settlement_rows.NAME_PREFIX}{shown}"
    try:
        if problem:
            refuse(shown, problem)
        rules, keep = environment.settings.rules, account.archive is not None
        with guarded(path, run=run, environment=environment):
            lines, facts = settlement_file(path, rules=rules, layout=layout, keep=keep)
    except SourceMissingError:
        return None, f" {shown} was gone when it was to be read."
    except SourceUnreadableError as error:
        source, reject = unreadable(path, problem=str(error), kind=SourceKind.SETTLEMENT, name=name)
        nothing = SettlementFile(frame_of([], columns=SETTLEMENT_COLUMNS), (reject,), source)
        _save(nothing, name=name, run=run, environment=environment)
        figures["refused"] += 1
        return None, f" {shown} was refused as a whole and left where it is: {error}."
    sha256, private = facts.source_file.sha256, facts.private
    if account.archive is not None and (
        why := keep_read(path, sha256=sha256, private=private, archive=account.archive)
    ):
        words = f" Not archived: {shown}: {why}."
    read = SettlementFile(lines, facts.rejects, facts.source_file, facts.ignored_columns)
    return _save(read, name=name, run=run, environment=environment), words


def _save(
    read: SettlementFile, *, name: str, run: Run, environment: Environment
) -> SourceFile | None:
    """Store a file that was read whole; nothing when its content was read before.

    Its lines are held against all others, and written, before anybody waits for it; where another
    file comes meanwhile, once more.
    """
    store, source = environment.store, replace(read.source_file, name=name)
    rejects = [_under(reject, name=name) for reject in read.rejects]
    for _ in range(PLANNED_MAX):
        with store.reading() as connection:
            if settlement_rows.is_known(connection, run, name=name, sha256=source.sha256):
                return None
            planned = settlement_plan.plan(
                connection, run, lines=read.lines, source=source, storages=storages_of(environment)
            )
        environment.crash_point("archived the lines")
        with store.writing(turn=Turn.ORDERS) as connection:
            if settlement_plan.is_stale(connection, run, planned):
                continue
            settlement_rows.save_file(
                connection, run, planned=planned, rejects=rejects, at=environment.clock()
            )
        merge_keys(run, kind=SourceKind.SETTLEMENT, environment=environment)
        return source
    msg = (
        f"{name} was not stored: {PLANNED_MAX} other settlement files came while it was looked "
        "at, one after the other; start the night again"
    )
    raise StoreLockedError(msg)


def _under(reject: Reject, *, name: str) -> Reject:
    return replace(reject, source=name)
