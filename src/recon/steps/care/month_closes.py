"""`recon close`: may a month be closed, and what stands against it? Preparing changes nothing.

Verdict and list come from the month's statement (P1 to P8), from the newest night's breaks with
the answers that people gave, and from what the database knows of money in doubt.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path

import pandas as pd

from recon.matching.breaks.result import subject_of
from recon.matching.judging.severity import risk_of_break
from recon.model.money import format_minor_units
from recon.model.resolutions import KeptAnswer, with_answers
from recon.period.business_month import BusinessMonth
from recon.period.month_statement import (
    ALONE,
    CLOSING,
    DIFFERENCES,
    GROUPS,
    ITEMS,
    OPEN,
    OPENING,
    STRADDLES,
    VANISHED,
    WAITS,
    sums_of,
    untold_refunds,
)
from recon.steps.care.close_folders import closed_folder, sealed_figures
from recon.steps.care.month_statements import CLOSED_MONTHS_MAX, StatedMonth, stated_month
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.ground.predecessor import STILL_OPEN
from recon.steps.people.people import DOUBTFUL
from recon.steps.people.sign_off import not_looked_after
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.nights import runs
from recon.store.people import closed_months, resolution_rows
from recon.store.people.closed_months import MonthState

NO_BREAK = "Differs in the books, and no break shows it yet"
PROOF_SHEET = "sheet Proof; statement.sql says how each is computed"
BOOKS_SHEET = "sheet Books lists by order what no break shows; run the next night over those orders"
_LISTS = {"P5": BOOKS_SHEET, "P6": BOOKS_SHEET}
BATCHES_NAMED_MAX = 3
ENTRIES_NAMED_MAX = 3
WINDOW_MARGIN_DAYS = 5
"""Days beyond the age of a batch, for the next night to run in."""
WINDOW_DAYS_MAX = 366
"""What rules.toml takes as [window] ledger_days."""


class CloseVerdict(StrEnum):
    """What a month is worth, worst first."""

    NOT_READY = "NOT READY"
    WITH_OPEN_ITEMS = "READY WITH OPEN ITEMS"
    READY = "READY"
    CLOSED = "CLOSED"
    """Two people signed."""

    @property
    def exit_code(self) -> int:
        """0 ready or closed, 3 with open items, 4 not ready."""
        return {CloseVerdict.NOT_READY: 4, CloseVerdict.WITH_OPEN_ITEMS: 3}.get(self, 0)


@dataclass(frozen=True, slots=True)
class CloseSignature:
    """One person's name under a close."""

    role: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that stands against closing."""

    what: str
    owner: str
    """Who looks after it; "" where nobody is named."""
    where: str
    """A command or a file that leads to it."""
    code: str = ""
    """Of the break it is about; readers see its words beside it."""

    @property
    def without_code(self) -> str:
        """For a sentence that has no room for the words of the code."""
        return self.what.replace(self.code, "break", 1) if self.code else self.what


@dataclass(frozen=True, slots=True)
class OpenItem:
    """Something that is open at the close and may stay so."""

    what: str
    count: int
    currency: str
    amount: int
    """Minor units; of breaks what is at risk, as Breaks of the night has it."""
    sheet: str
    """Of the workbook: where it is listed."""
    code: str = ""
    """Of the breaks that it counts; readers see its words beside it."""


@dataclass(frozen=True, slots=True)
class PreparedClose:
    """A month as it would be closed now."""

    stated: StatedMonth
    blockers: tuple[Blocker, ...]
    open_items: tuple[OpenItem, ...]
    answers: Mapping[str, KeptAnswer]
    """What people answered, by break."""
    workbook: str
    """Of the newest night, where answers to its breaks go."""
    basis: str = ""
    """What the database knew when it was prepared (`basis_of`)."""
    state: MonthState = field(default_factory=MonthState)
    """What people said of the month by then."""
    signatures: tuple[CloseSignature, ...] = ()
    """Both names, where it is drawn as it is closed."""

    @property
    def verdict(self) -> CloseVerdict:
        """CLOSED with both names; else as it is prepared."""
        return CloseVerdict.CLOSED if self.signatures else self.prepared_verdict

    @property
    def prepared_verdict(self) -> CloseVerdict:
        """NOT READY with anything that blocks it; open items alone do not."""
        if self.blockers:
            return CloseVerdict.NOT_READY
        return CloseVerdict.WITH_OPEN_ITEMS if self.open_items else CloseVerdict.READY


def prepared_close(
    month: BusinessMonth, *, account: tuple[str, str], environment: Environment
) -> PreparedClose:
    """What closing a month of one account would rest on, and what blocks it.

    Raises:
        UsageError: no live night of the account says anything of the month.
        ArchiveError: the archive cannot be reached, or a file is not as it was sealed.
    """
    with environment.store.reading() as connection:
        basis = basis_of(connection, account, month=month)
        state = closed_months.state_of(connection, account, month=month.name)
    stated = stated_month(month, account=account, environment=environment)
    with environment.store.reading() as connection:
        answers = resolution_rows.kept_answers(connection, account)
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
    """A digest of all rows that a close of the account is prepared from.

    Whoever prepares takes it first, and whoever closes compares it in the transaction that does.
    """
    merchant_id, account_id = account
    finished = runs.last_finished(connection, merchant_id=merchant_id, account_id=account_id)
    nights = [(str(day), run.run_id, run.verdict, run.mode.value) for day, run in finished.items()]
    held = runs.not_proven(connection, merchant_id=merchant_id, account_id=account_id)
    answers = resolution_rows.kept_answers(connection, account)
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
    """Days that are not over, and nights that are missing or proved nothing."""
    month = stated.statement.month
    waits = [night for night in stated.nights if night.standing == STILL_OPEN]
    if waits:
        day = waits[-1].business_date
        what = f"{waits[0].business_date}: the business date is not closed yet"
        what += f"; the month's last one is {day}" if len(waits) > 1 else ""
        yield Blocker(what, "", f"recon close {month.name} again, once the night of {day} ran")
    for night in stated.nights:
        if night.trouble:
            day = night.business_date
            lead = f"recon release {day} (two people), or run it again" if night.run_id else ""
            lead = lead or f"recon nights --from {day} --to {day}; run it, or --skip with a reason"
            yield Blocker(f"{day}: {night.trouble}", "", lead)


def _of_equations(stated: StatedMonth) -> Iterator[Blocker]:
    """Equations that do not hold."""
    for each in stated.statement.equations:
        if not each.holds:
            currency = f", {each.currency}" if each.currency else ""
            yield Blocker(
                f"{each.id} {each.name}{currency}, by {each.measure}: {each.both_sides}",
                "",
                _read_again(stated) if each.name == ALONE else _LISTS.get(each.id, PROOF_SHEET),
            )


def _read_again(stated: StatedMonth) -> str:
    """What gives a month the lines of old batches whose sums a late file changed: a wider window.

    A night has a batch of its window line by line; from then on the month counts those.
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
    """A bank whose statements end before the month does."""
    last = stated.statement.month.last.isoformat()
    if stated.bank_to is not None and stated.bank_to < last:
        known = f"to {stated.bank_to}" if stated.bank_to else "by no statement"
        yield Blocker(
            f"the bank is covered {known}, not to {last}: pay-outs after that cannot be proven",
            "",
            "put the missing statements into the inbox, then run the next night",
        )


def _of_money(stated: StatedMonth, *, environment: Environment) -> Iterator[Blocker]:
    """Instructions that left by the month's close, and nobody knows what became of them."""
    last = stated.statement.month.last
    calendar = environment.settings.rules.business_calendar
    with environment.store.reading() as connection:
        run = runs.get(connection, stated.newest_run)
        money = instruction_rows.find(connection, run, state=instruction_rows.UNFINISHED)
    closes = calendar.closes_at(last)
    for item in sorted(money, key=lambda each: each.instruction_id):
        left_at = item.sent_at or item.approved_at
        if item.state in DOUBTFUL and left_at is not None and left_at < closes:
            amount = format_minor_units(item.amount, currency=item.currency)
            yield Blocker(
                f"{item.kind} of {item.subject}, {amount} {item.currency}: sent "
                f"{left_at:%Y-%m-%d %H:%M} UTC, and nobody knows whether it took effect",
                "",
                f"recon resolve {item.instruction_id} (two people), or a later night finds out",
            )


def _of_breaks(
    stated: StatedMonth,
    *,
    answers: Mapping[str, KeptAnswer],
    workbook: str,
    environment: Environment,
) -> Iterator[Blocker]:
    """Grave breaks of the newest night without an owner or a comment.

    Of those that it saw first after the close only the ones about the month's own facts: of an
    order by its facts, of pay-outs, fees and entries of a bank by the age of what differs.
    """
    with environment.store.reading() as connection:
        breaks = kept_results.open_breaks(connection, stated.newest_run, environment=environment)
    if breaks is None:
        return
    month, known_by = stated.statement.month, date.fromisoformat(stated.known_by)
    calendar = environment.settings.rules.business_calendar
    # What began on days off right after the month has the same age: it is asked for as well.
    age = calendar.business_days_between(month.last, end=known_by)
    orders = {*stated.statement.facts["order_no"]}
    for row in with_answers(not_looked_after(breaks, kept=answers), answers):
        is_seen = str(row["first_seen"]) <= month.last.isoformat()
        is_old = not row["order_no"] and pd.notna(row["age_days"]) and row["age_days"] >= age
        if not is_seen and not is_old and row["order_no"] not in orders - {""}:
            continue
        currency, owner = str(row["currency"]), row["owner"]
        money = f"{format_minor_units(risk_of_break(row), currency=currency)} {currency}"
        named = f"{row['code']} {subject_of(row) or row['transaction_id']}".strip()
        yield Blocker(
            f"{named}, {money}, {row['severity']}: {'no comment' if owner else 'no owner'}",
            owner,
            f"{Path(workbook).name}, Breaks, {row['break_id']}; then recon import-resolutions",
            str(row["code"]),
        )


def _openings(stated: StatedMonth, *, environment: Environment) -> Iterator[OpenItem]:
    """Where the month does not begin with what the one before it was closed with.

    Facts told since count in this month, with their own date; what is said here moved otherwise:
    a fact has another date or amount than it had, or entries of the books and the bank are newer.
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
    """What is open and may stay so: what the last night lacked, breaks, what nothing explained.

    A night that lacked something does not block: what comes later is a prior-period item.
    """
    if (night := stated.lacking) is not None:
        lacks = f": {night.problem}" if night.problem else ""
        again = f"recon nightly --business-date {night.business_date}"
        what = f"The last night, {night.business_date}, is INCOMPLETE{lacks}; get it, then {again}"
        yield OpenItem(what, 1, "", 0, "Nights")
    statement = stated.statement
    for (code, currency), rows in statement.breaks.groupby(["code", "currency"]):
        amount = sum(risk_of_break(row) for row in rows.to_dict("records"))
        yield OpenItem(f"Break {code}", len(rows), str(currency), amount, "Open breaks", str(code))
    for what in ("never_shown", "debt", "beyond"):
        yield from _listed(statement.closing_items, what, words=ITEMS, sheet="Open items")
    if (books := statement.books) is not None:
        for what in (*WAITS, GROUPS[1]):
            yield from _listed(books, what, words=DIFFERENCES, sheet="Books")
        named = {*statement.breaks["order_no"], *statement.breaks["transaction_id"]}
        own = books[~books["key"].isin(named)]
        yield from _listed(own, OPEN, words={OPEN: NO_BREAK}, sheet="Books")
    for what, sheet in (("late", "Straddling"), ("prior", "Prior periods")):
        yield from _listed(statement.straddling, what, words=STRADDLES, sheet=sheet)
    yield from _deleted(statement.straddling)
    for untold in untold_refunds(statement.unknown_refunds):
        yield OpenItem(untold.sentence, untold.payments, "", 0, "")


def _deleted(straddling: pd.DataFrame) -> Iterator[OpenItem]:
    """Entries of the books that were deleted, the first of them by number, order and amount."""
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
    """One class of listed rows, by currency."""
    for currency, own in rows[rows["what"].eq(what)].groupby("currency"):
        amount = int(own["amount"].sum())
        yield OpenItem(words[what], len(own), str(currency), amount, sheet)
