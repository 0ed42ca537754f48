"""Order files that look cut short, are missing, or name undeclared accounts."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from statistics import median

from recon.config.file_layouts import layout_of
from recon.model.business_date import BusinessCalendar
from recon.model.nights import Account
from recon.model.terms import SourceFile, SourceKind
from recon.steps.files.incomplete import ABSENT, WHOLE_FILE
from recon.steps.runtime.environment import Environment, account_of
from recon.steps.runtime.night_folder import storages_of
from recon.store import Connection
from recon.store.nights import order_rows
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import StoredOrders

USUAL_FILES_MAX = 10
"""Number of earlier files of a sender from which its usual size is taken."""
USUAL_FILES_MIN = 3
"""With fewer earlier files the usual size is not known."""
UNJUDGED_DISPLAYED_MAX = 3
"""Senders that a sentence names."""
UNDECLARED_DISPLAYED_MAX = 3
SHORT_SHARE = 0.5
"""A file with fewer rows than this share of the usual number is reported."""
_DIGITS = re.compile(r"[0-9]+")


def short_files_reported(run: Run, *, until: int | None, environment: Environment) -> list[str]:
    """A sentence for each order file of the night that looks cut short."""
    files, earlier = _without_an_end(run, until=until, environment=environment)
    return _short(files, earlier=earlier)


def _short(files: Sequence[SourceFile], *, earlier: Sequence[tuple[str, int]]) -> list[str]:
    return [*filter(None, (short_of(file, earlier=earlier) for file in files))]


def _unjudged(files: Sequence[SourceFile], *, earlier: Sequence[tuple[str, int]]) -> list[str]:
    """Sentence naming the senders with too few earlier nights to know their usual size."""
    known = {sender_of(file.name): len(_usual(file.name, earlier=earlier)) for file in files}
    few = {sender: nights for sender, nights in sorted(known.items()) if nights < USUAL_FILES_MIN}
    if not few:
        return []
    named = [f"{sender} has {nights}" for sender, nights in [*few.items()][:UNJUDGED_DISPLAYED_MAX]]
    more = [f"{len(few) - len(named)} more"] if len(few) > len(named) else []
    sentence = (
        f"whether an order file was cut short: that takes {USUAL_FILES_MIN} earlier nights with "
        f"files of its sender ({', '.join([*named, *more])}), or files that say where they end"
    )
    return [sentence]


def _without_an_end(
    run: Run, *, until: int | None, environment: Environment
) -> tuple[list[SourceFile], list[tuple[str, int]]]:
    """Order files of the night without a trailer, control or done file; rows of earlier files."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    with environment.store.reading() as connection:
        files = [file for file, _ in order_rows.files_of_night(connection, run, until=until)]
        earlier = order_rows.rows_before(connection, run)
    orders = [file for file in files if file.kind is SourceKind.ORDERS]
    layouts = [layout_of(file.name, layouts=account.layouts) for file in orders]
    return [
        file
        for file, layout in zip(orders, layouts, strict=True)
        if not (layout.trailer or layout.control_file or layout.done_file)
    ], earlier


def short_of(file: SourceFile, *, earlier: Sequence[tuple[str, int]]) -> str:
    """Sentence on a file much shorter than its sender's last ones; "" where its size is usual.

    Args:
        file: The file.
        earlier: Name and rows read of earlier nights' files, one per night and name, newest first.
    """
    usual = _usual(file.name, earlier=earlier)
    if len(usual) < USUAL_FILES_MIN or file.rows_read >= SHORT_SHARE * median(usual):
        return ""
    return (
        f"{file.name} has {file.rows_read:,} rows; its sender's last {len(usual)} files had "
        f"{min(usual):,} to {max(usual):,}, and neither a trailer nor a control or done file says "
        "that it is whole: ask the sender whether it was cut."
    )


def _usual(name: str, *, earlier: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """Rows of the last files of the same sender."""
    rows = [rows for other, rows in earlier if sender_of(other) == sender_of(name) and rows]
    return tuple(rows[:USUAL_FILES_MAX])


def sender_of(name: str) -> str:
    """The sender's name pattern of a file: each number in the name becomes `#`."""
    return _DIGITS.sub("#", name)


EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Used where no complete file came before."""


def orders_lack_since(
    connection: Connection, run: Run, *, until: int, calendar: BusinessCalendar
) -> datetime | None:
    """End of what the last complete files cover, where an order file is missing tonight; else None.

    A refused file counts as missing until its sender delivers a complete one; that of a sender who
    has never delivered a complete one, on its own night only.
    """
    files = order_rows.versions_until(connection, run, until=until, whole_file=WHOLE_FILE)
    complete = [(sender_of(file.name), day) for file, day, is_refused in files if not is_refused]
    newest = {file.name: (file, day, is_refused) for file, day, is_refused in files}
    covered: list[date | None] = []
    for file, refused_on, is_refused in newest.values():
        if not is_refused:
            continue
        own = [day for sender, day in complete if sender == sender_of(file.name)]
        if not own and file.sha256.startswith(ABSENT):  # a remote folder, whose sender is not known
            own = [day for _, day in complete]
        before = max((day for day in own if day < refused_on), default=None)
        since_then = any(day > refused_on for day in own)
        if refused_on == run.business_date or (before is not None and not since_then):
            covered.append(before)
    if all(day != run.business_date for _, day, _ in files):
        covered.append(max((day for _, day in complete), default=None))
    if not covered:
        return None
    return min(EVER if day is None else calendar.closes_at(day) for day in covered)


def declared_accounts(environment: Environment) -> frozenset[Account]:
    """Every account that has a night of its own."""
    return frozenset(map(account_of, environment.settings.accounts))


def files_reported(
    run: Run, *, until: int, environment: Environment
) -> tuple[list[str], list[str]]:
    """Sentences on the files for page one, and sentences on what is not covered.

    On page one: accounts that order rows name and nobody declared, as no night compares them, and
    files that look cut short. Not covered: senders whose usual size is not known yet.
    """
    with environment.store.reading() as connection:
        orders = StoredOrders(connection, run, storages_of(environment), until)
        undeclared = orders.undeclared_accounts(declared_accounts(environment))
    files, earlier = _without_an_end(run, until=until, environment=environment)
    sentences = [*_short(files, earlier=earlier)]
    if undeclared:
        named = ", ".join(undeclared[:UNDECLARED_DISPLAYED_MAX])
        sentence = (
            f"Order rows name accounts that nobody declared ({named}): no night compares them. "
            "Declare them in merchants.toml, or have the file corrected."
        )
        sentences.insert(0, sentence)
    return sentences, _unjudged(files, earlier=earlier)
