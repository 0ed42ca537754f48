"""Settlement files from their inbox into tables, as strictly as order files.

Each file goes in whole or not at all; the same content again is a no-op. One that cannot be read,
or that was expected and is not there, stands among the sources of the night as a rejected row: its
verdict is INCOMPLETE, and until it comes right no payment of its days is called unsettled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from recon.config.file_layouts import layout_of
from recon.config.file_sources import SettlementFolder
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_table import refuse
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.archive import is_kept, keep_read
from recon.files.reader import settlement_file
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.words import Reject, SourceFile, SourceKind
from recon.privacy.shown_text import shown_name
from recon.steps.files.arrivals import arrivals, left, still_written, unreadable
from recon.steps.files.words_on_files import guarded
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storage_of, storages_of
from recon.store.database.engine import Turn
from recon.store.nights import settlement_rows
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements


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
    with environment.store.reading() as connection:
        known = Settlements(connection, run, storages_of(environment)).contents()
    sources: list[SourceFile] = []
    words = ""
    for path in waiting.files:
        problem = growing.get(path, "")
        if not problem and _taken_before(path, known=known, archive=account.archive):
            continue
        source, sentence = read(path, problem=problem)
        words += sentence
        sources += [source] if source else []
    what = _counted(sources, waiting=waiting.files, figures=figures)
    return what + words + left(waiting) + came.sentence()


def _counted(
    sources: Sequence[SourceFile], *, waiting: Sequence[Path], figures: dict[str, int]
) -> str:
    """What was read, in numbers and in a sentence."""
    new, rows = len(sources), sum(source.rows_accepted for source in sources)
    figures["settlement_files"], figures["settlement_lines"] = new, rows
    if not waiting:
        return " No settlement file has arrived."
    known = len(waiting) - new
    return f" {new} new settlement files with {rows} lines accepted; {known} known or refused."


def _taken_before(path: Path, *, known: Mapping[str, str], archive: Path | None) -> bool:
    """Whether this very content was read in an earlier night, and is kept if it is to be.

    Files that stay in their folder would otherwise cost each night what they cost the first.
    """
    name = _name_of(path)
    if name not in known:
        return False
    try:
        sha256 = sha256_of(path)
    except (SourceMissingError, SourceUnreadableError):
        return False  # whoever reads it says so
    if known[name] != sha256:
        return False
    return archive is None or is_kept(path, sha256=sha256, archive=archive)


def _name_of(path: Path) -> str:
    """Under which the database knows it."""
    return f"{settlement_rows.NAME_PREFIX}{shown_name(path.name)}"


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
    name = _name_of(path)
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
        nothing = frame_of([], columns=SETTLEMENT_COLUMNS)
        _save(nothing, source, [reject], name=name, run=run, environment=environment)
        figures["refused"] += 1
        return None, f" {shown} was refused as a whole and left where it is: {error}."
    sha256, private = facts.source_file.sha256, facts.private
    if account.archive is not None and (
        why := keep_read(path, sha256=sha256, private=private, archive=account.archive)
    ):
        words = f" Not archived: {shown}: {why}."
    source, rejects = facts.source_file, facts.rejects
    return _save(lines, source, rejects, name=name, run=run, environment=environment), words


def _save(
    lines: pd.DataFrame,
    source: SourceFile,
    rejects: Iterable[Reject],
    *,
    name: str,
    run: Run,
    environment: Environment,
) -> SourceFile | None:
    """Store a file that was read whole; nothing when its content was read before.

    Its lines are written before anybody waits for it.
    """
    store, source = environment.store, replace(source, name=name)
    storage = storage_of(run, environment=environment)
    with store.reading() as connection:
        known = Settlements(connection, run, storages_of(environment)).contents()
        if known.get(name) == source.sha256:
            return None
    settled = settlement_rows.written(lines, run=run, storage=storage)
    environment.crash_point("archived the lines")
    with store.writing(turn=Turn.ORDERS) as connection:
        settlement_rows.save_file(
            connection,
            run,
            source=source,
            settled=settled,
            rejects=[replace(reject, source=name) for reject in rejects],
            at=environment.clock(),
        )
    return source
