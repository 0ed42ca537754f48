"""Since when payments may lack their order because an order file was refused, or none has come."""

from datetime import UTC, date, datetime

from recon.model.business_date import BusinessCalendar
from recon.steps.files.never_read import ABSENT, WHOLE_FILE
from recon.steps.files.short_files import sender_of
from recon.store import Connection
from recon.store.nights import order_rows
from recon.store.nights.runs import Run

EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Nothing was complete before."""


def orders_lack_since(
    connection: Connection, run: Run, *, until: int, calendar: BusinessCalendar
) -> datetime | None:
    """The end of what the last complete files cover, where tonight one is lacking; else None.

    A refused file is lacking until its sender gives a complete one; one of nobody who ever gave a
    complete one, on its night only.
    """
    files = order_rows.versions_until(connection, run, until=until, whole_file=WHOLE_FILE)
    complete = [(sender_of(file.name), day) for file, day, is_refused in files if not is_refused]
    newest = {file.name: (file, day, is_refused) for file, day, is_refused in files}
    covered: list[date | None] = []
    for file, refused_on, is_refused in newest.values():
        if not is_refused:
            continue
        own = [day for sender, day in complete if sender == sender_of(file.name)]
        if not own and file.sha256.startswith(ABSENT):  # a folder elsewhere, whoever sends it
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
