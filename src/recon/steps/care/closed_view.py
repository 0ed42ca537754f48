"""A closed month as it was sealed, and what would be different if it were closed today."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recon.model.errors import ArchiveBrokenError, NightLetGoError
from recon.period.business_month import BusinessMonth
from recon.period.month_statement import MonthFigure
from recon.steps.care.close_folders import (
    UNREAD,
    closed_folder,
    sealed_figures,
)
from recon.steps.care.month_closes import prepared_close
from recon.steps.care.month_files import moved_since, seen_close
from recon.steps.care.month_statements import StatedMonth
from recon.steps.ground.environment import Environment
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth

WORKBOOK = ".xlsx"
MOVED_SHOWN_MAX = 20
"""Lines on a terminal or a page; the workbook has them all."""


@dataclass(frozen=True, slots=True)
class ClosedView:
    """A closed month, read from its folder."""

    closed: ClosedMonth
    document: dict[str, Any]
    """As it was sealed, for programs."""
    workbook: bytes
    """As it was sealed, with both names."""
    name: str
    """Of the workbook's file."""
    differs: tuple[str, ...] | None
    """What a close of today would have otherwise, each as a sentence; None: nobody asked."""
    today: StatedMonth | None
    """The month as it would be stated today; None: nobody asked, or its nights were let go."""

    @property
    def stated(self) -> StatedMonth | None:
        """The statement with the figures that were sealed, as people read it."""
        if self.today is None:
            return None
        sealed = replace(self.today.statement, figures=self.figures)
        return replace(self.today, statement=sealed, known_by=self.closed.known_by)

    @property
    def figures(self) -> Sequence[MonthFigure]:
        """As they were sealed."""
        return sealed_figures(self.document)


def closed_view(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    environment: Environment,
    is_compared: bool = True,
) -> ClosedView | None:
    """The month as it was closed; None while it is open. `is_compared`: with a close of today.

    Raises:
        ArchiveError: its folder is gone, changed, or cannot be reached.
    """
    with environment.store.reading() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
    if closed is None:
        return None
    folder = closed_folder(closed, environment=environment)
    document = folder.document
    named = [entry.name for entry in folder.sealed.manifest.files if entry.name.endswith(WORKBOOK)]
    if len(named) != 1:
        msg = f"{UNREAD}: {closed.folder} has {len(named)} workbooks, not one"
        raise ArchiveBrokenError(msg)
    workbook = folder.file(named[0])
    if not is_compared:
        return ClosedView(closed, document, workbook, named[0], None, None)
    try:
        today = prepared_close(month, account=account, environment=environment)
    except NightLetGoError as error:
        unknown = (f"that is not known any more: {error}",)
        return ClosedView(closed, document, workbook, named[0], unknown, None)
    differs = tuple(moved_since(document["signed"], now=seen_close(today)))
    return ClosedView(closed, document, workbook, named[0], differs, today.stated)


def differing_lines(differs: Sequence[str] | None) -> Iterator[str]:
    """What would be different today, for a terminal; nothing where nobody asked."""
    if differs is None:
        return
    for sentence in differs[:MOVED_SHOWN_MAX]:
        yield f"Would be different today: {sentence}"
    more = len(differs) - MOVED_SHOWN_MAX
    if more > 0:
        yield f"and {more} more that would be different today"
    if not differs:
        yield "Nothing would be different today."
