"""The sealed folder of a close: statement, equations, SQL, lists, journals, workbook, names.

It is written under its name before the transaction of the second word, which binds its manifest. A
folder that no such event binds is nobody's: the next signature under its month removes it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from recon import __version__
from recon.archive.manifest import About
from recon.archive.step_folder import (
    Document,
    Sealed,
    sealed_step,
    write_step,
)
from recon.archive.storage import reachable
from recon.desk.endorsement import Kind
from recon.model.errors import ArchiveError, ConfigurationError
from recon.model.nights import Mode
from recon.steps.care.close_digest import SeenClose
from recon.steps.care.close_files import close_document, close_name
from recon.steps.care.close_folders import (
    DOCUMENT,
    FOLDER,
    UNREAD,
    folder_problems,
    period_folder,
)
from recon.steps.care.month_closes import PreparedClose
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment, account_of
from recon.steps.ground.night_folder import storage_at
from recon.store import Connection
from recon.store.database import history
from recon.store.money.endorsement_rows import override
from recon.store.people import closed_months
from recon.store.people.closed_months import CLOSE, REOPEN

SIGNATURES = "signatures.json"
UNWRITTEN = (
    "nobody's name was put under the month, and it is not closed: make the archive writable, then "
    "sign again"
)
DrawnClose = Callable[[PreparedClose, SeenClose], bytes]
"""Draws the workbook of a close as somebody sees it who signs; `reports` provides it."""


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
        _clear_unbound(folder, bound={each.folder for each in closes}, storage=storage)
        return write_step(
            storage, night=folder, about=about, parts=parts, crash_point=environment.crash_point
        )


def _clear_unbound(folder: str, *, bound: set[str], storage: Any) -> None:
    """Remove what a close left that ended before its transaction; its writer is gone."""
    for attempt in storage.folders(folder):
        if attempt not in bound:
            for name in storage.names(attempt):
                storage.remove(name)


def close_problems(connection: Connection, *, environment: Environment) -> Iterator[str]:
    """What of the closed months is not as it was signed and sealed, each as a sentence."""
    words = endorsed(environment)
    for closed in closed_months.all_closes(connection):
        which = f"{closed.month} of {'/'.join(closed.account)}"
        subject = override(CLOSE, subject=closed.digest)
        if problem := words.problem(connection, Kind.OVERRIDE, subject=subject):
            yield f"{which} counts as closed, but {problem}"
        for problem in folder_problems(closed, environment=environment):
            yield f"{which}: {problem}"
    for manifest in closed_months.all_reopened(connection):
        subject = override(REOPEN, subject=manifest)
        if problem := words.problem(connection, Kind.OVERRIDE, subject=subject):
            yield f"a month was reopened (its folder's manifest is {manifest[:12]}…), but {problem}"
    yield from _forgotten(connection, environment=environment)


def _forgotten(connection: Connection, *, environment: Environment) -> Iterator[str]:
    """Folders of closes that only a later state of the database can have known."""
    newest = history.head(connection).sequence
    bound = {closed.folder for closed in closed_months.all_closes(connection)}
    for name in sorted(environment.settings.accounts):
        account = account_of(name)
        try:
            storage = storage_at(account, environment=environment)
            with reachable(storage, doing=UNREAD):
                for month in storage.folders("/".join((FOLDER, *account))):
                    for folder in storage.folders(month):
                        sealed = sealed_step(storage, folder=folder)
                        after = sealed.manifest.about.history_before if sealed else "0:"
                        if folder not in bound and int(after.partition(":")[0]) > newest:
                            yield (
                                f"the archive {storage.shown} has {folder}, which was written "
                                f"after link {newest} of the history, the newest that this "
                                "database has: it is older than the archive; put the newest "
                                "database back"
                            )
        except (ArchiveError, ConfigurationError) as error:
            yield str(error)


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
