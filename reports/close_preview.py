"""The close of a month as shown to people and programs: prepared now, or as it was sealed.

For a merchant with several accounts one page has their balances and the clearing account's sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any

from recon.config.settings import Settings
from recon.model.business_date import BusinessMonth
from recon.model.money import Money
from recon.month.close import (
    PROVEN,
    ClosedView,
    CloseVerdict,
    PreparedClose,
    close_document,
    closed_view,
    differing_lines,
    name_of,
    prepared_close,
    reviewed_close,
    write_files,
)
from recon.month.stated import StatedMonth
from recon.month.statement import CLOSING, GATEWAY, MOVED, OPENING, MonthFigure, sums_of
from recon.steps.runtime.environment import Environment
from reports.drawing.blocks import (
    Block,
    Column,
    Listing,
    Sheet,
    TextLine,
    Workbook,
    check_of,
    put_in_place,
    saved,
)
from reports.drawing.look import Tone
from reports.month_workbook import close_workbook
from reports.reading.index_workbook import file_link
from reports.sheets.labels import as_text

BLOCKERS_DISPLAYED_MAX = OPEN_DISPLAYED_MAX = 20
"""Maximum number of lines of each on a terminal or page; the workbook has all of them."""


@dataclass(frozen=True, slots=True)
class AccountMonth:
    """A month of one account, as currently stated or as sealed."""

    account: tuple[str, str]
    status: str
    """PROVEN, NOT_PROVEN, or the verdict of its close."""
    figures: Sequence[MonthFigure]
    has_ledger: bool
    """Whether a ledger was compared."""
    workbook: Path


@dataclass(frozen=True, slots=True)
class ClosePreview:
    """The close of one account's month; `lines` tells where its workbook and files are."""

    lines: Sequence[str]
    blocked: Sequence[str]
    """Reasons why it cannot be closed."""
    document: Mapping[str, Any]
    """The same content for programs."""
    own: AccountMonth
    exit_code: int
    stated: StatedMonth | None
    """The statement; None where a sealed folder cannot be read by this version."""


def close_preview(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    folder: Path | None,
    environment: Environment,
    is_compared: bool = True,
) -> ClosePreview:
    """Load a close as it was sealed, or prepare it, and write its workbook.

    Args:
        month: the month.
        account: merchant and account.
        folder: for the workbook; by default the account's reports folder.
        environment: of this process.
        is_compared: whether to report what of a closed month would differ today.
    """
    folder = folder or environment.settings.account(account[0], account_id=account[1]).reports
    view = closed_view(month, account=account, environment=environment, is_compared=is_compared)
    if view is not None:
        return _sealed(view, folder=folder)
    prepared = prepared_close(month, account=account, environment=environment)
    seen = reviewed_close(prepared)
    name = name_of(prepared.stated, what="close")
    files = write_files(seen.files, folder=folder / name)
    workbook = put_in_place(close_workbook(prepared, seen), path=folder / f"{name}.xlsx")
    statement, verdict = prepared.stated.statement, prepared.verdict
    covered = statement.ledger is not None
    return ClosePreview(
        [
            *_lines(prepared, digest=seen.digest),
            f"Workbook: {workbook}",
            f"Tables and SQL: {files}",
        ],
        blocked(prepared),
        {**close_document(prepared), "digest": seen.digest},
        AccountMonth(account, verdict.value, statement.figures, covered, workbook),
        verdict.exit_code,
        prepared.stated,
    )


def _sealed(view: ClosedView, *, folder: Path) -> ClosePreview:
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
            f"{Money.of_minor_units(amount, currency=currency)}"
            for currency, amount in sorted(owed.items())
        ),
        *differing_lines(view.differs),
        f"Workbook: {workbook}",
        f"Folder: {closed.folder}, manifest {closed.manifest}",
    ]
    status = CloseVerdict.CLOSED.value
    document = {
        "verdict": status,
        "closed": asdict(closed) | {"at": closed.at.isoformat()},
        "sealed": view.document,
        "would_differ": [*(view.differs or ())],
    }
    covered = bool(view.document["statement"]["ledger_covered"])
    own = AccountMonth(closed.account, status, view.figures, covered, workbook)
    return ClosePreview(lines, (), document, own, 0, view.stated)


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
        shown = Money.of_minor_units(owed, currency=currency)
        yield f"The gateway owes {statement.closing_text}: {shown}"
    for each in prepared.open_items[:OPEN_DISPLAYED_MAX]:
        amount = each.currency and Money.of_minor_units(each.amount, currency=each.currency)
        what = as_text(each.what, code=each.code)
        yield f"Open: {what}, {each.count}, {amount}".rstrip(", ")
    left = len(prepared.open_items) - OPEN_DISPLAYED_MAX
    if left > 0:
        yield f"and {left} more that are open: see the sheet Close"
    yield f"Digest: {digest}"
    if (signed := prepared.state.signed) is not None:
        role, at = signed.says["role"], f"{signed.made_at:%Y-%m-%d %H:%M} UTC"
        yield f"Signed: {signed.as_text} ({role}, {at})"


def blocked(prepared: PreparedClose) -> list[str]:
    """Text of the reasons why a month cannot be closed, for a terminal or a page."""
    lines = []
    for each in prepared.blockers[:BLOCKERS_DISPLAYED_MAX]:
        owner = f" Owner: {each.owner}." if each.owner else ""
        lines.append(f"Blocked: {as_text(each.what, code=each.code)}.{owner} Next: {each.where}")
    if (left := len(prepared.blockers) - BLOCKERS_DISPLAYED_MAX) > 0:
        lines.append(f"and {left} more: see the sheet Close")
    return lines


ACCOUNTS_MIN = 2
"""Below this number of accounts a merchant needs no page over all of them."""
SENTENCE = "The ledger has one clearing account for these: it stands at the sums, at no line alone."
STATUS_TONES: Mapping[str, Tone] = {
    "": "",
    **dict.fromkeys((PROVEN, CloseVerdict.CLOSED, CloseVerdict.READY), "good"),
    CloseVerdict.WITH_OPEN_ITEMS: "warn",
}
"""Any other status is bad."""
MONEY = ("before", "moved", "owed", "booked", "apart")
COLUMNS = (
    Column("Account", 16, "account"),
    Column("Status", 22, "status", tone=lambda row: STATUS_TONES.get(row["status"], "bad")),
    Column("Ccy", 6, "currency"),
    Column("Owed before", 20, "before", "money"),
    Column("Moved", 20, "moved", "money"),
    Column("The gateway owes", 20, "owed", "money"),
    Column("Check", 10, "check", "check"),
    Column("The ledger, derived", 20, "booked", "money"),
    Column("Ledger less gateway", 20, "apart", "money"),
    Column("Workbook", 52, "workbook"),
)


def index_of_months(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, out: Path | None, settings: Settings
) -> list[str]:
    """Write a page over all accounts for each merchant with several; return lines with its path.

    `out`: folder for all of them; by default the reports folder of a merchant's first account.

    Raises:
        OutputError: a folder cannot be written.
    """
    names, lines = settings.rules.journal.accounts, []
    ordered = sorted(accounts, key=lambda each: each.account)
    for merchant, group in groupby(ordered, key=lambda each: each.account[0]):
        if len(own := [*group]) >= ACCOUNTS_MIN:
            folder = out or settings.account(merchant, account_id=own[0].account[1]).reports
            clearing = names.clearing if names else ""
            path = write_months_index(own, month=month, clearing=clearing, folder=folder)
            lines.append(f"All accounts of {merchant}: {path}")
    return lines


def write_months_index(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, clearing: str, folder: Path
) -> Path:
    """Write `months-<merchant>-2026-11.xlsx`, or -v2 where a different one exists.

    Args:
        accounts: those of one merchant.
        month: the month.
        clearing: the ledger's clearing account as the rules name it, "" where they do not.
        folder: for the file; its links are relative to it.

    Raises:
        OutputError: the folder cannot be written.
    """
    merchant = accounts[0].account[0]
    named = f"Clearing account: {clearing}" if clearing else "The rules name no clearing account."
    about = f"Accounts of {merchant}, {month.name}"
    sheet = Sheet(
        "Accounts",
        [TextLine(named, "note"), *_blocks(accounts, folder=folder)],
        heading=about,
        about=SENTENCE,
    )
    return saved(
        Workbook(about.replace(",", ""), [sheet], datetime.combine(month.last, time())),
        path=folder / f"months-{merchant}-{month.name}.xlsx",
        what="the page over all accounts",
        advice="; the accounts' own workbooks are kept: name a folder that can be written (--out)",
    )


def _blocks(accounts: Sequence[AccountMonth], *, folder: Path) -> Iterator[Block]:
    """A list of the accounts and their sum for each currency."""
    in_order = sorted(accounts, key=lambda each: each.account)
    every = [row for account in in_order for row in _rows(account, folder=folder)]
    for currency in sorted({row["currency"] for row in every}):
        rows = [row for row in every if row["currency"] == currency]
        # The sum is blank where the ledger of one account was not compared.
        total = {name: _sum([row[name] for row in rows]) for name in MONEY}
        blank = {"status": "", "check": None, "workbook": ""}
        named = {"account": f"Sum {currency}", "currency": currency}
        yield Listing(COLUMNS, rows, total={**blank, **named, **total})


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [each for each in amounts if each is not None]
    return sum(known) if len(known) == len(amounts) else None


def _rows(of: AccountMonth, *, folder: Path) -> Iterator[dict[str, Any]]:
    """One row per currency of an account, minor units; a currency without figures has none.

    It has the difference between ledger and gateway; the account's workbook explains it.
    """
    sums = sums_of(of.figures)
    for currency in sorted({each.currency for each in of.figures}):
        before, moved, owed = (sums[currency, "gateway", at] for at in (OPENING, MOVED, CLOSING))
        # Derived as in a statement: the gateway's figures plus the differences to the ledger.
        booked = before + sums[currency, "ledger", OPENING] + sums[currency, "ledger", MOVED]
        yield {
            "account": of.account[1],
            "status": of.status,
            "currency": currency,
            "before": before,
            "moved": moved,
            "owed": owed,
            "booked": booked if of.has_ledger else None,
            "apart": booked - owed if of.has_ledger else None,
            "check": check_of(holds=before + moved == owed),
            "workbook": file_link(of.workbook, folder=folder),
        }
