"""`recon close`: prepare the close of a month and list what blocks it. Preparing changes nothing.

Verdict and lists come from the month's statement (P1 to P8), from the breaks of the newest night
with the answers that people gave, and from the money in doubt in the database.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from recon.matching.breaks.result import subject_of
from recon.matching.classifying.severity import risk_of_break
from recon.model.business_date import BusinessMonth
from recon.model.errors import ArchiveBrokenError, NightPurgedError
from recon.model.money import Money, format_minor_units
from recon.model.resolutions import StoredAnswer, with_answers
from recon.month.stated import CLOSED_MONTHS_MAX, StatedMonth, stated_month
from recon.month.statement import (
    ALONE,
    AMOUNT,
    CLOSING,
    DIFFERENCES,
    GROUPS,
    IN_TRANSIT,
    ITEMS,
    MOVED,
    MOVEMENTS,
    OPEN,
    OPENING,
    RESERVE_MOVED,
    STRADDLES,
    TRANSIT,
    VANISHED,
    WAITS,
    MonthFigure,
    sums_of,
    unreported_refunds,
)
from recon.privacy.own_files import make_folder, replace_result
from recon.steps.approvals.people import DOUBTFUL
from recon.steps.approvals.sign_off import not_looked_after
from recon.steps.compare.csv_columns import csv_chunks
from recon.steps.runtime.closed_folders import (
    UNREAD,
    closed_folder,
)
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import StoredResult
from recon.steps.runtime.predecessor import STILL_OPEN
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.nights import runs
from recon.store.people import closed_months, resolution_rows
from recon.store.people.closed_months import ClosedMonth, MonthState

NO_BREAK = "Differs in the ledger, and no break shows it yet"
PROOF_SHEET = "sheet Assurance; statement.sql says how each is computed"
LEDGER_SHEET = (
    "sheet Ledger lists by order what no break shows; run the next night over those orders"
)
_LISTS = {"P5": LEDGER_SHEET, "P6": LEDGER_SHEET}
BATCHES_NAMED_MAX = 3
ENTRIES_NAMED_MAX = 3
WINDOW_MARGIN_DAYS = 5
"""Days added to the age of a batch, within which the next night runs."""
WINDOW_DAYS_MAX = 366
"""The maximum of [window] ledger_days in rules.toml."""


PROVEN, NOT_PROVEN = "PROVEN", "NOT PROVEN"


class CloseVerdict(StrEnum):
    """Whether a month can be closed, worst first."""

    NOT_READY = "NOT READY"
    WITH_OPEN_ITEMS = "READY WITH OPEN ITEMS"
    READY = "READY"
    CLOSED = "CLOSED"
    """Two people have signed."""

    @property
    def exit_code(self) -> int:
        """The exit code: 0 ready or closed, 3 with open items, 4 not ready."""
        return {CloseVerdict.NOT_READY: 4, CloseVerdict.WITH_OPEN_ITEMS: 3}.get(self, 0)


@dataclass(frozen=True, slots=True)
class CloseSignature:
    """One person's signature under a close."""

    role: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that blocks closing."""

    what: str
    owner: str
    """Who is responsible; "" where nobody is named."""
    where: str
    """A command or a file where it can be resolved."""
    code: str = ""
    """The code of its break; readers are shown the label of the code too."""

    @property
    def without_code(self) -> str:
        """The text without the code, where there is no room for the label of the code."""
        return self.what.replace(self.code, "break", 1) if self.code else self.what


@dataclass(frozen=True, slots=True)
class OpenItem:
    """Something open at the close that does not block it."""

    what: str
    count: int
    currency: str
    amount: int
    """Minor units; for breaks the amount at risk, as in sheet Breaks of the night."""
    sheet: str
    """The sheet of the workbook that lists it."""
    code: str = ""
    """The code of the breaks counted; readers are shown the label of the code too."""


@dataclass(frozen=True, slots=True)
class PreparedClose:
    """A month as it would be closed now."""

    stated: StatedMonth
    blockers: tuple[Blocker, ...]
    open_items: tuple[OpenItem, ...]
    answers: Mapping[str, StoredAnswer]
    """People's answers, by break."""
    workbook: str
    """The newest night's workbook, in which answers to its breaks are entered."""
    basis: str = ""
    """Digest of what the database had when this was prepared (`basis_of`)."""
    state: MonthState = field(default_factory=MonthState)
    """What people decided on the month until then."""
    signatures: tuple[CloseSignature, ...] = ()
    """Both signatures, when the close is rendered for closing."""

    @property
    def verdict(self) -> CloseVerdict:
        """CLOSED with both signatures, otherwise the prepared verdict."""
        return CloseVerdict.CLOSED if self.signatures else self.prepared_verdict

    @property
    def prepared_verdict(self) -> CloseVerdict:
        """NOT READY if anything blocks it; open items alone do not."""
        if self.blockers:
            return CloseVerdict.NOT_READY
        return CloseVerdict.WITH_OPEN_ITEMS if self.open_items else CloseVerdict.READY


def prepared_close(
    month: BusinessMonth, *, account: tuple[str, str], environment: Environment
) -> PreparedClose:
    """Return what closing a month of one account would be based on, and what blocks it.

    Raises:
        UsageError: no live night of the account covers the month.
        ArchiveError: the archive cannot be reached, or a file is not as it was sealed.
    """
    with environment.store.reading() as connection:
        basis = basis_of(connection, account, month=month)
        state = closed_months.state_of(connection, account, month=month.name)
    stated = stated_month(month, account=account, environment=environment)
    with environment.store.reading() as connection:
        answers = resolution_rows.stored_answers(connection, account)
        workbook = runs.get(connection, stated.newest_run).workbook
    blockers = (
        *_of_nights(stated),
        *_of_equations(stated),
        *_of_bank(stated),
        *_of_money(stated, environment=environment),
        *_of_breaks(stated, answers=answers, workbook=workbook, environment=environment),
    )
    open_items = (*_open_items(stated), *_openings(stated, environment=environment))
    return PreparedClose(stated, blockers, open_items, answers, workbook, basis, state)


def basis_of(connection: Connection, account: tuple[str, str], *, month: BusinessMonth) -> str:
    """Return a digest of all rows that a close of the account is prepared from.

    It is computed before preparing, and compared again inside the transaction that closes.
    """
    finished = runs.last_finished(connection, account)
    nights = [(str(day), run.run_id, run.verdict, run.mode.value) for day, run in finished.items()]
    held = runs.not_proven(connection, account)
    answers = resolution_rows.stored_answers(connection, account)
    closed = closed_months.closed_before(
        connection, account, month=month.name, months=CLOSED_MONTHS_MAX
    )
    newest = max(finished.values(), key=lambda run: run.business_date, default=None)
    money = (
        []
        if newest is None
        else instruction_rows.find(connection, newest, state=instruction_rows.UNFINISHED)
    )
    rows = (
        sorted(nights),
        sorted(map(str, held)),
        sorted((name, answer.version, answer.waits) for name, answer in answers.items()),
        sorted((each.instruction_id, each.state.value) for each in money),
        [each.manifest for each in closed],
    )
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _of_nights(stated: StatedMonth) -> Iterator[Blocker]:
    """Yield days that are not over, and nights that are missing or NOT PROVEN and not released."""
    month = stated.statement.month
    waits = [night for night in stated.nights if night.status == STILL_OPEN]
    if waits:
        day = waits[-1].business_date
        what = f"{waits[0].business_date}: the business date is not closed yet"
        what += f"; the month's last one is {day}" if len(waits) > 1 else ""
        yield Blocker(what, "", f"recon close {month.name} again, once the night of {day} ran")
    for night in stated.nights:
        if night.trouble:
            day = night.business_date
            lead = (
                f"recon approve --hold {day} (two people), or run it again" if night.run_id else ""
            )
            lead = lead or f"recon nights --from {day} --to {day}; run it, or --skip with a reason"
            yield Blocker(f"{day}: {night.trouble}", "", lead)


def _of_equations(stated: StatedMonth) -> Iterator[Blocker]:
    for each in stated.statement.equations:
        if not each.holds:
            currency = f", {each.currency}" if each.currency else ""
            yield Blocker(
                f"{each.id} {each.name}{currency}, by {each.measure}: {each.both_sides}",
                "",
                _read_again(stated) if each.name == ALONE else _LISTS.get(each.id, PROOF_SHEET),
            )


def _read_again(stated: StatedMonth) -> str:
    """Return how a month gets the lines of old batches changed by a late file: a wider window.

    A night has the lines of each batch in its window; from then on the month counts those.
    """
    batches = stated.statement.lost_batches
    names = ", ".join(name for _, name in batches[:BATCHES_NAMED_MAX])
    more = len(batches) - BATCHES_NAMED_MAX
    names += f" and {more} more" if more > 0 else ""
    oldest = date.fromisoformat(min(batches)[0])
    # The next night runs a day or two later, and its window begins within a day.
    days = (date.fromisoformat(stated.known_by) - oldest).days + WINDOW_MARGIN_DAYS
    if days > WINDOW_DAYS_MAX:
        return f"batch {names} is older than any window reaches ({WINDOW_DAYS_MAX} days)"
    return (
        f"a late file changed batch {names}: say [window] ledger_days = {days} in rules.toml, run "
        "the next night, then set it back; that night has each line of it, and the month with it"
    )


def _of_bank(stated: StatedMonth) -> Iterator[Blocker]:
    last = stated.statement.month.last.isoformat()
    if stated.bank_to is not None and stated.bank_to < last:
        known = f"to {stated.bank_to}" if stated.bank_to else "by no statement"
        yield Blocker(
            f"the bank is covered {known}, not to {last}: payouts after that cannot be proven",
            "",
            "put the missing statements into the inbox, then run the next night",
        )


def _of_money(stated: StatedMonth, *, environment: Environment) -> Iterator[Blocker]:
    """Yield instructions sent before the month's close whose outcome is unknown."""
    last = stated.statement.month.last
    calendar = environment.settings.rules.business_calendar
    with environment.store.reading() as connection:
        run = runs.get(connection, stated.newest_run)
        money = instruction_rows.find(connection, run, state=instruction_rows.UNFINISHED)
    closes = calendar.closes_at(last)
    for item in sorted(money, key=lambda each: each.instruction_id):
        left_at = item.sent_at or item.approved_at
        if item.state in DOUBTFUL and left_at is not None and left_at < closes:
            amount = Money.of_minor_units(item.amount, currency=item.currency)
            yield Blocker(
                f"{item.kind} of {item.subject}, {amount}: sent "
                f"{left_at:%Y-%m-%d %H:%M} UTC, and nobody knows whether it took effect",
                "",
                f"recon resolve {item.instruction_id} (two people), or a later night finds out",
            )


def _of_breaks(
    stated: StatedMonth,
    *,
    answers: Mapping[str, StoredAnswer],
    workbook: str,
    environment: Environment,
) -> Iterator[Blocker]:
    """Yield high-severity breaks of the newest night without an owner or a comment.

    Of those first seen after the close only the ones about the month's own facts: for an order by
    its facts, for payouts, fees and bank entries by the age of the difference.
    """
    with environment.store.reading() as connection:
        breaks = StoredResult(connection, stated.newest_run, environment).open_breaks()
    if breaks is None:
        return
    month, known_by = stated.statement.month, date.fromisoformat(stated.known_by)
    calendar = environment.settings.rules.business_calendar
    # Breaks from days off right after the month have the same age, and are included.
    age = calendar.business_days_between(month.last, end=known_by)
    orders = {*stated.statement.facts["order_no"]}
    for row in with_answers(not_looked_after(breaks, saved=answers), answers):
        is_seen = str(row["first_seen"]) <= month.last.isoformat()
        is_old = not row["order_no"] and pd.notna(row["age_days"]) and row["age_days"] >= age
        if not is_seen and not is_old and row["order_no"] not in orders - {""}:
            continue
        currency, owner = str(row["currency"]), row["owner"]
        money = Money.of_minor_units(risk_of_break(row), currency=currency)
        named = f"{row['code']} {subject_of(row) or row['transaction_id']}".strip()
        yield Blocker(
            f"{named}, {money}, {row['severity']}: {'no comment' if owner else 'no owner'}",
            owner,
            f"{Path(workbook).name}, Breaks, {row['break_id']}; then recon import-resolutions",
            str(row["code"]),
        )


def _openings(stated: StatedMonth, *, environment: Environment) -> Iterator[OpenItem]:
    """Yield the sums with which the month does not open as the previous one was closed.

    Facts reported since then count in this month under their own date. What is listed here changed
    otherwise: a fact has another date or amount, or entries of the ledger and the bank are newer.
    """
    before = stated.statement.month.before.strftime("%Y-%m")
    closed = next((each for each in stated.closed if each.month == before), None)
    if closed is None:
        return
    figures = sealed_figures(closed_folder(closed, environment=environment).document)
    then, now = sums_of(figures), sums_of(stated.statement.figures)
    for of, currency in sorted({(of, currency) for currency, of, _ in (*then, *now)}):
        if moved := now[currency, of, OPENING] - then[currency, of, CLOSING]:
            what = f"{of.capitalize()}: opens otherwise than {before} was closed with"
            yield OpenItem(what, 1, currency, moved, "Prior periods")


def _open_items(stated: StatedMonth) -> Iterator[OpenItem]:
    """Yield what is open but does not block: what the last night lacked, breaks, unexplained items.

    A night that lacked something does not block: what arrives later is a prior-period item.
    """
    if (night := stated.lacking) is not None:
        lacks = f": {night.problem}" if night.problem else ""
        again = f"recon nightly --business-date {night.business_date}"
        what = f"The last night, {night.business_date}, is INCOMPLETE{lacks}; get it, then {again}"
        yield OpenItem(what, 1, "", 0, "Assurance")
    statement = stated.statement
    for (code, currency), rows in statement.breaks.groupby(["code", "currency"]):
        amount = sum(risk_of_break(row) for row in rows.to_dict("records"))
        yield OpenItem(f"Break {code}", len(rows), str(currency), amount, "Open breaks", str(code))
    for what in ("never_shown", "debt", "beyond"):
        yield from _listed(statement.closing_items, what, words=ITEMS, sheet="Open items")
    if (ledger := statement.ledger) is not None:
        for what in (*WAITS, GROUPS[1]):
            yield from _listed(ledger, what, words=DIFFERENCES, sheet="Ledger")
        named = {*statement.breaks["order_no"], *statement.breaks["transaction_id"]}
        own = ledger[~ledger["key"].isin(named)]
        yield from _listed(own, OPEN, words={OPEN: NO_BREAK}, sheet="Ledger")
    for what, sheet in (("late", "Straddling"), ("prior", "Prior periods")):
        yield from _listed(statement.straddling, what, words=STRADDLES, sheet=sheet)
    yield from _deleted(statement.straddling)
    for unreported in unreported_refunds(statement.unknown_refunds):
        yield OpenItem(unreported.sentence, unreported.payments, "", 0, "")


def _deleted(straddling: pd.DataFrame) -> Iterator[OpenItem]:
    """Yield deleted ledger entries, naming the first of them by number, order and amount."""
    for item in _listed(straddling, VANISHED, words=STRADDLES, sheet="Straddling"):
        own = straddling["what"].eq(VANISHED) & straddling["currency"].eq(item.currency)
        named = [
            f"{row['key']} ({row['order_no'] or 'no order'}, "
            f"{format_minor_units(-row['amount'], currency=item.currency)} {item.currency}, "
            f"gone by the night of {row['then_on']})"
            for row in straddling[own].head(ENTRIES_NAMED_MAX).to_dict("records")
        ]
        more = f" and {item.count - len(named)} more" if item.count > len(named) else ""
        yield replace(item, what=f"{item.what}: {', '.join(named)}{more}")


def _listed(
    rows: pd.DataFrame, what: str, *, words: Mapping[str, str], sheet: str
) -> Iterator[OpenItem]:
    for currency, own in rows[rows["what"].eq(what)].groupby("currency"):
        amount = int(own["amount"].sum())
        yield OpenItem(words[what], len(own), str(currency), amount, sheet)


ORDER = {OPENING: 0, MOVED: 1, CLOSING: 2}
FIGURE_COLUMNS = ("currency", "of", "at", "name", "count", "amount")
_AMOUNTS = frozenset({"amount", "shown", "debit", "credit"})
"""Columns in minor units."""


def name_of(stated: StatedMonth, *, what: str = "statement") -> str:
    """Return the name of its workbook or folder, as `statement-<merchant>-<account>-2026-11`."""
    statement = stated.statement
    return "-".join((what, *statement.account, statement.month.name))


def write_files(files: Mapping[str, str], *, folder: Path) -> Path:
    """Write files by name into a folder, which is created if needed; return the folder.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(folder)
    for name, text in files.items():
        replace_result(folder / name, text)
    return folder


def month_files(stated: StatedMonth) -> dict[str, str]:
    """Return name -> content of every file; amounts have the decimals of their currency."""
    statement = stated.statement
    frames = {
        "opening-items.csv": statement.opening_items,
        "closing-items.csv": statement.closing_items,
        "facts.csv": statement.facts,
        "straddling.csv": statement.straddling,
        "in-transit.csv": statement.transit,
        "ledger.csv": statement.ledger,
        "reported-by-night.csv": statement.reported,
        "journals.csv": statement.journals,
    }
    nights = [
        {"night": f"{each.business_date}", "run": each.run_id}
        | {"status": each.status, "trouble": each.trouble}
        for each in stated.nights
    ]
    return {
        "figures.csv": _csv(FIGURE_COLUMNS, _figures(statement.figures)),
        **{name: _table(frame) for name, frame in frames.items() if frame is not None},
        "proof.csv": _csv(_PROOF, proof_rows(stated)),
        "nights.csv": _csv(("night", "run", "status", "trouble"), nights),
        "statement.sql": statement.sql,
    }


_PROOF = ("id", "name", "currency", "measure", "left", "right", "holds")


def proof_rows(stated: StatedMonth) -> list[dict[str, Any]]:
    """Return the equations with both sides; amounts as text."""
    rows = []
    for each in stated.statement.equations:
        cells = {name: getattr(each, name) for name in _PROOF}
        if each.measure == AMOUNT:
            for side in ("left", "right"):
                cells[side] = format_minor_units(cells[side], currency=each.currency)
        rows.append(cells)
    return rows


def document_of(stated: StatedMonth) -> dict[str, Any]:
    """Return the statement as a document for programs; amounts as text."""
    statement = stated.statement
    return {
        "merchant": statement.account[0],
        "account": statement.account[1],
        "month": statement.month.name,
        "known_by": stated.known_by,
        "proven": stated.is_proven,
        "troubles": stated.troubles,
        "first_month": stated.is_first,
        "settlement_covered": statement.is_settled,
        "bank_covered": statement.transit is not None,
        "ledger_covered": statement.ledger is not None,
        "rules": dict(stated.rules),
        "figures": _figures(statement.figures),
        "proof": proof_rows(stated),
        "refunds_not_measured": [refund.payment for refund in statement.unknown_refunds],
    }


def sealed_figures(document: Mapping[str, Any]) -> list[MonthFigure]:
    """Return the figures of a close as they were sealed."""
    return [MonthFigure(*each) for each in document["signed"]["figures"]]


def in_order(figures: Sequence[MonthFigure]) -> list[MonthFigure]:
    """Sort by currency and subject, with opening before movements before closing."""
    return sorted(figures, key=lambda each: (each.currency, each.of, ORDER[each.at], each.name))


def _figures(figures: Sequence[MonthFigure]) -> list[dict[str, Any]]:
    return [
        {name: getattr(figure, name) for name in FIGURE_COLUMNS}
        | {"amount": format_minor_units(figure.amount, currency=figure.currency)}
        for figure in in_order(figures)
    ]


def _table(frame: pd.DataFrame) -> str:
    columns = [*map(str, frame.columns)]
    parts = csv_chunks(frame, columns=columns, amounts=_AMOUNTS.intersection(columns))
    return b"".join(parts).decode()


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    target = io.StringIO()
    writer = csv.DictWriter(target, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue()


BLOCKER_COLUMNS = ("what", "owner", "where")
OPEN_COLUMNS = ("what", "count", "currency", "amount")
BREAK_COLUMNS = (
    *("break_id", "code", "order_no", "transaction_id", "currency", "exposure", "severity"),
    *("first_seen", "resolution", "owner", "comment", "about"),
)


def close_files(close: PreparedClose) -> dict[str, str]:
    """Return name -> content of every file, those of the statement and the close's own."""
    return {
        **month_files(close.stated),
        "blockers.csv": _csv(BLOCKER_COLUMNS, _blockers(close)),
        "open-at-close.csv": _csv(OPEN_COLUMNS, _open_at_close(close)),
        "open-breaks.csv": _csv(BREAK_COLUMNS, _open_breaks(close)),
    }


def close_document(close: PreparedClose) -> dict[str, Any]:
    """Return the close as a document for programs; amounts as text."""
    return {
        "verdict": close.verdict.value,
        "blockers": _blockers(close),
        "open_items": _open_at_close(close),
        "statement": document_of(close.stated),
    }


def _blockers(close: PreparedClose) -> list[dict[str, Any]]:
    return [{name: getattr(each, name) for name in BLOCKER_COLUMNS} for each in close.blockers]


def _open_at_close(close: PreparedClose) -> list[dict[str, Any]]:
    rows = [{name: getattr(each, name) for name in OPEN_COLUMNS} for each in close.open_items]
    for row in rows:
        currency = row["currency"]
        row["amount"] = format_minor_units(row["amount"], currency=currency) if currency else ""
    return rows


def _open_breaks(close: PreparedClose) -> Iterator[Mapping[str, Any]]:
    """Yield the open breaks of the last night before the close, with people's answers."""
    rows = close.stated.statement.breaks.sort_values("break_id").to_dict("records")
    for row in with_answers(rows, close.answers):
        cells = {name: row[name] for name in BREAK_COLUMNS}
        at_risk, currency = row["exposure"], str(row["currency"])
        amount_text = (
            "" if pd.isna(at_risk) else format_minor_units(int(at_risk), currency=currency)
        )
        cells["exposure"] = amount_text
        yield cells


LISTS = (
    *("opening-items.csv", "closing-items.csv", "facts.csv", "in-transit.csv", "ledger.csv"),
    *("journals.csv", "nights.csv", "open-breaks.csv", "blockers.csv", "open-at-close.csv"),
)
"""Files of a close that are signed together with its figures; the other files repeat these, or show
how the known nights proved them."""
_NAMES: Mapping[str, str] = {
    **MOVEMENTS,
    **ITEMS,
    **TRANSIT,
    **IN_TRANSIT,
    **DIFFERENCES,
    "reserve": RESERVE_MOVED,
}


@dataclass(frozen=True, slots=True)
class ReviewedClose:
    """What a person who signs has looked at."""

    digest: str
    figures: Sequence[Sequence[Any]]
    """Rows of currency, of, at, name, count, amount in minor units."""
    lists: Mapping[str, str]
    """File -> SHA-256."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name -> content of all files of the close, generated only once."""

    @property
    def document(self) -> dict[str, Any]:
        """The document stored in the history."""
        return {"figures": [[*figure] for figure in self.figures], "lists": dict(self.lists)}


def reviewed_close(close: PreparedClose) -> ReviewedClose:
    """Return the digest of a close, with the figures and files it covers."""
    statement = close.stated.statement
    figures = [
        (each.currency, each.of, each.at, each.name, each.count, each.amount)
        for each in in_order(statement.figures)
    ]
    files = close_files(close)
    lists = {
        name: hashlib.sha256(files[name].encode()).hexdigest() for name in LISTS if name in files
    }
    which = (statement.account, statement.month.name, len(close.state.closes) + 1)
    whole = (which, close.prepared_verdict.value, figures, lists)
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return ReviewedClose(digest, figures, lists, files)


def moved_since(seen: Mapping[str, Any], *, now: ReviewedClose) -> list[str]:
    """Return a sentence for each figure, then each list, that changed since a person looked."""
    then, today = (
        {tuple(key): (count, amount) for *key, count, amount in figures}
        for figures in (seen["figures"], now.figures)
    )
    moved = []
    for key in sorted({*then, *today}):
        before, after = then.get(key, (0, 0)), today.get(key, (0, 0))
        if before != after:
            currency, of, at, name = key
            sides = (
                f"{Money.of_minor_units(amount, currency=currency)} ({count})"
                for count, amount in (before, after)
            )
            named = _NAMES.get(name, name.replace("_", " "))
            moved.append("{}, {}, {}: {} then, {} now".format(of, at, named, *sides))
    lists = seen["lists"]
    return moved + [
        f"{name} is another list"
        for name in sorted({*lists, *now.lists})
        if lists.get(name) != now.lists.get(name)
    ]


WORKBOOK = ".xlsx"
MOVED_DISPLAYED_MAX = 20
"""Lines shown on a terminal or a page; the workbook has them all."""


@dataclass(frozen=True, slots=True)
class ClosedView:
    """A closed month, read from its folder."""

    closed: ClosedMonth
    document: dict[str, Any]
    """As it was sealed, for programs."""
    workbook: bytes
    """As it was sealed, with both signatures."""
    name: str
    """The name of the workbook's file."""
    differs: tuple[str, ...] | None = None
    """What a close of today would change, each as a sentence; None if not compared."""
    today: StatedMonth | None = None
    """The month as it would be stated today; None if not compared, or its nights were purged."""

    @property
    def stated(self) -> StatedMonth | None:
        """The statement with the figures that were sealed, for people."""
        if self.today is None:
            return None
        sealed = replace(self.today.statement, figures=self.figures)
        return replace(self.today, statement=sealed, known_by=self.closed.known_by)

    @property
    def figures(self) -> Sequence[MonthFigure]:
        """The figures as they were sealed."""
        return sealed_figures(self.document)


def closed_view(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    environment: Environment,
    is_compared: bool = True,
) -> ClosedView | None:
    """Return the month as it was closed, None while open; `is_compared`: with a close of today.

    Raises:
        ArchiveError: its folder is missing, changed, or cannot be reached.
    """
    with environment.store.reading() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
    if closed is None:
        return None
    folder = closed_folder(closed, environment=environment)
    names = (entry.name for entry in folder.sealed.manifest.files)
    named = [name for name in names if name.endswith(WORKBOOK)]
    if len(named) != 1:
        msg = f"{UNREAD}: {closed.folder} has {len(named)} workbooks, not one"
        raise ArchiveBrokenError(msg)
    view = ClosedView(closed, folder.document, folder.file(named[0]), named[0])
    if not is_compared:
        return view
    try:
        today = prepared_close(month, account=account, environment=environment)
    except NightPurgedError as error:
        return replace(view, differs=(f"that is not known any more: {error}",))
    differs = tuple(moved_since(view.document["signed"], now=reviewed_close(today)))
    return replace(view, differs=differs, today=today.stated)


def differing_lines(differs: Sequence[str] | None) -> Iterator[str]:
    """Yield lines for a terminal on what would be different today; nothing if not compared."""
    if differs is None:
        return
    for sentence in differs[:MOVED_DISPLAYED_MAX]:
        yield f"Would be different today: {sentence}"
    if (more := len(differs) - MOVED_DISPLAYED_MAX) > 0:
        yield f"and {more} more that would be different today"
    if not differs:
        yield "Nothing would be different today."
