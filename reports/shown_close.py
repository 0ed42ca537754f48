"""The close of a month as people and programs are shown it: prepared now, or as it was sealed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recon.model.business_date import BusinessMonth
from recon.model.money import format_minor_units
from recon.steps.month.close import (
    ClosedView,
    PreparedClose,
    close_document,
    closed_view,
    differing_lines,
    name_of,
    prepared_close,
    seen_close,
    write_files,
)
from recon.steps.month.stated import StatedMonth
from recon.steps.month.statement import CLOSING, GATEWAY, sums_of
from recon.steps.runtime.environment import Environment
from reports.drawing.blocks import put_in_place
from reports.month_workbook import close_workbook
from reports.reading.months_index import AccountMonth
from reports.sheets.labels import as_text

BLOCKERS_SHOWN_MAX = OPEN_SHOWN_MAX = 20
"""Lines of each on a terminal or a page; the workbook has them all."""


@dataclass(frozen=True, slots=True)
class ShownClose:
    """A month of one account; its workbook and files lie where `lines` says."""

    lines: Sequence[str]
    blocked: Sequence[str]
    """What keeps it from being closed."""
    document: Mapping[str, Any]
    """The same for programs."""
    own: AccountMonth
    exit_code: int
    stated: StatedMonth | None
    """Its figures; None where a sealed folder cannot be read by this version."""


def shown_close(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    folder: Path | None,
    environment: Environment,
    is_compared: bool = True,
) -> ShownClose:
    """A month closed as it was sealed, or prepared; its workbook is written.

    Args:
        month: the month.
        account: merchant and account.
        folder: of the workbook; else the account's reports.
        environment: of this process.
        is_compared: whether to say what of a closed month would be different today.
    """
    folder = folder or environment.settings.account(account[0], account_id=account[1]).reports
    view = closed_view(month, account=account, environment=environment, is_compared=is_compared)
    if view is not None:
        return _sealed(view, folder=folder)
    prepared = prepared_close(month, account=account, environment=environment)
    seen = seen_close(prepared)
    name = name_of(prepared.stated, what="close")
    files = write_files(seen.files, folder=folder / name)
    workbook = put_in_place(close_workbook(prepared, seen), path=folder / f"{name}.xlsx")
    return ShownClose(
        [
            *_lines(prepared, digest=seen.digest),
            f"Workbook: {workbook}",
            f"Tables and SQL: {files}",
        ],
        blocked(prepared),
        {**close_document(prepared), "digest": seen.digest},
        AccountMonth.of_stated(prepared.stated, status=prepared.verdict.value, workbook=workbook),
        prepared.verdict.exit_code,
        prepared.stated,
    )


def _sealed(view: ClosedView, *, folder: Path) -> ShownClose:
    closed = view.closed
    sums = sums_of(view.figures)
    owed = {key: sums[key, of, at] for key, of, at in sums if (of, at) == (GATEWAY, CLOSING)}
    name = f"{view.name.removesuffix('.xlsx')}-closed.xlsx"
    workbook = put_in_place(view.workbook, path=folder / name)
    lines = [
        f"Close of {'/'.join(closed.account)} for {closed.month}: {closed.as_text}",
        f"Sealed by what the night of {closed.known_by} knew; close {closed.number}.",
        *(
            "The gateway owes at the close, as sealed: "
            f"{format_minor_units(amount, currency=currency)} {currency}"
            for currency, amount in sorted(owed.items())
        ),
        *differing_lines(view.differs),
        f"Workbook: {workbook}",
        f"Folder: {closed.folder}, manifest {closed.manifest}",
    ]
    document = {
        "verdict": "CLOSED",
        "closed": asdict(closed) | {"at": closed.at.isoformat()},
        "sealed": view.document,
        "would_differ": [*(view.differs or ())],
    }
    own = AccountMonth.of_closed(view, workbook=workbook)
    return ShownClose(lines, (), document, own, 0, view.stated)


def _lines(prepared: PreparedClose, *, digest: str) -> Iterator[str]:
    stated = prepared.stated
    statement = stated.statement
    which = "/".join(statement.account)
    yield f"Close of {which} for {statement.month.name}: {prepared.verdict.value}"
    if (reopened := prepared.state.reopened) is not None:
        at = f"{reopened.at:%Y-%m-%d %H:%M} UTC"
        yield f"REOPENED on {at} by {reopened.by}: {reopened.reason}"
    yield f"By what the night of {stated.known_by} knows."
    held = sum(each.holds for each in statement.equations)
    yield f"Proof: {held} of {len(statement.equations)} equations hold."
    for currency in statement.currencies:
        owed = statement.sum_of(currency, of="gateway", at="closing")
        shown = format_minor_units(owed, currency=currency)
        yield f"The gateway owes {statement.closing_text}: {shown} {currency}"
    for each in prepared.open_items[:OPEN_SHOWN_MAX]:
        amount = format_minor_units(each.amount, currency=each.currency) if each.currency else ""
        what = as_text(each.what, code=each.code)
        yield f"Open: {what}, {each.count}, {amount} {each.currency}".rstrip(", ")
    left = len(prepared.open_items) - OPEN_SHOWN_MAX
    if left > 0:
        yield f"and {left} more that are open: see the sheet Close"
    yield f"Digest: {digest}"
    if (signed := prepared.state.signed) is not None:
        yield f"Signed: {signed.by} ({signed.role}, {signed.at:%Y-%m-%d %H:%M} UTC)"


def blocked(prepared: PreparedClose) -> list[str]:
    """What keeps a month from being closed, for a terminal or a page."""
    lines = []
    for each in prepared.blockers[:BLOCKERS_SHOWN_MAX]:
        owner = f" Owner: {each.owner}." if each.owner else ""
        lines.append(f"Blocked: {as_text(each.what, code=each.code)}.{owner} Next: {each.where}")
    if (left := len(prepared.blockers) - BLOCKERS_SHOWN_MAX) > 0:
        lines.append(f"and {left} more: see the sheet Close")
    return lines
