"""State a month of an account from the sealed folders of its nights, for `recon close`.

It changes nothing. Every file read is verified against its manifest, and the manifest against the
history. Days without a night, and NOT PROVEN nights that nobody released, are named; the figures
are those of all nights that ran.

The statement is computed in SQL, by DuckDB; the statements are in `sql/`: what took place with the
day of each event (facts), what is open at both closes (positions), why ledger and gateway differ
(differing), on which day journals are booked (dated_journals), lists, and figures; P1 to P8 compare
them. Only what batches leave open is computed here, by the rule of a night. The SQL that was run is
the script that goes with the statement.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import entry_of
from recon.config.rules import Rules
from recon.matching.bank.result import covered_to
from recon.matching.cash.batches import Batch, left_of_batches, left_of_reserves
from recon.matching.frames.arrays import texts_for
from recon.model.business_date import BusinessMonth, Grace, midnight
from recon.model.errors import ReconError, UsageError
from recon.model.terms import SourceKind, Verdict
from recon.model.uptime import give_back
from recon.month.statement import (
    COUNT,
    ClosedPeriod,
    MonthEquation,
    MonthFigure,
    MonthFrame,
    MonthNight,
    MonthStatement,
    UnknownRefund,
    age_of_month,
    days_around,
)
from recon.proof.night_tables import frame_of_table
from recon.proof.sql_session import SqlError, SqlSession, quoted, reading
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    PROOF,
    RESULTS,
    RULES,
    SealedNight,
    folder_of,
    sealed_night,
)
from recon.steps.runtime.predecessor import MISSING, missed_without_a_run
from recon.steps.runtime.window import ledger_start
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth

CLOSED_MONTHS_MAX = 24
"""How many earlier months are checked for being closed; older facts are no longer reported."""
NIGHTS_MAX = 400
"""Nights in one statement: those of the month, and all that ran since."""
EARLIER_DAYS = 62
"""Days before the first night of a statement whose nights are read if needed: a reversal is settled
within two months. For a payment that comes back after a close, nights since it was paid are
read."""
BEFORE_FIRST = "before the first night"


@dataclass(frozen=True, slots=True)
class NightOfMonth:
    """One business date of the month."""

    business_date: date
    run_id: str
    """Empty if none ran."""
    status: str
    """Its verdict, or why there is none."""
    trouble: str
    """Why the statement cannot rely on it; "" if it can."""


@dataclass(frozen=True, slots=True)
class StatedMonth:
    """A statement with the nights that it is based on."""

    statement: MonthStatement
    nights: Sequence[NightOfMonth]
    known_by: str
    """Business date of the newest night that was read."""
    is_first: bool
    """No night ran before the month: what was open then is only what later nights still show."""
    rules: Mapping[str, str]
    """Digest of the rules -> the first business date on which they were applied."""
    newest_run: str = ""
    """The run of the newest night that was read."""
    bank_to: str | None = None
    """The day up to which every bank of the account is covered, "" for none; None: no bank."""
    closed: Sequence[ClosedMonth] = ()
    """Earlier months that are closed, oldest first; their figures stay."""
    lacking: Run | None = None
    """The month's last night, if INCOMPLETE and no later live one was complete and proven."""

    @property
    def troubles(self) -> list[str]:
        """Why the figures are not proven, one sentence each."""
        sentences = []
        there = (night for night in self.nights if night.trouble or night.run_id)
        for trouble, group in groupby(there, key=lambda night: night.trouble):
            days = [night.business_date for night in group]
            if trouble:
                more = f" to {days[-1]} ({len(days)} nights)" if len(days) > 1 else ""
                sentences.append(f"{days[0]}{more}: {trouble}")
        return sentences + [
            f"{each.id} {each.name}, {each.currency}: {each.both_sides} ({each.measure})"
            for each in self.statement.equations
            if not each.holds
        ]

    @property
    def notes(self) -> list[str]:
        """What the figures do not cover, one sentence each."""
        first = "No night ran before: what was open then is what this month's nights still show."
        bare = "No settlement file was given: fees, reserves and payouts are not covered."
        return [first] * self.is_first + [bare] * (not self.statement.is_settled)

    @property
    def is_proven(self) -> bool:
        """Whether nothing contradicts the figures."""
        return not self.troubles


def stated_month(
    month: BusinessMonth, *, account: tuple[str, str], environment: Environment
) -> StatedMonth:
    """Return the statement of a month of one account, as known by now.

    Raises:
        UsageError: no live night of the account covers the month.
        ArchiveError: the archive cannot be reached, or a file is not as it was sealed.
        ReconError: DuckDB failed or reached a limit: nothing is stated.
    """
    with environment.store.reading() as connection:
        live = runs.live_nights(connection, account)
        held = {*runs.not_proven(connection, account)}
        read = _read(live, month=month, account=account)
        sealed = [sealed_night(connection, run, environment=environment) for run in read]
        before = closed_months.closed_before(
            connection, account, month=month.name, months=CLOSED_MONTHS_MAX
        )
    days = [*_days(month, live=live, held=held, environment=environment)]
    with ExitStack() as stack:
        seldom = [name for name in READ if name not in NEWEST_ONLY]
        nights = [
            _night(
                number, run, night=night, stack=stack, names=READ if night is sealed[-1] else seldom
            )
            for number, (run, night) in enumerate(zip(read, sealed, strict=True))
        ]
        periods = [ClosedPeriod(BusinessMonth.named(each.month), each.known_by) for each in before]
        frame = _frame(month, account=account, newest=sealed[-1], days=days, closed=periods)
        frame = _with_earlier(frame, live=live, nights=nights, stack=stack, environment=environment)
        statement = statement_of(frame, nights=nights)
    rules: dict[str, str] = {}
    for each in nights:
        rules.setdefault(each.rules_digest, each.business_date)
    return StatedMonth(
        statement=statement,
        nights=days,
        known_by=nights[-1].business_date,
        is_first=read[0].business_date >= month.first,
        rules=rules,
        newest_run=nights[-1].run_id,
        bank_to=_bank_to(sealed[-1], account=account),
        closed=before,
        lacking=_lacking(live, month=month),
    )


def _lacking(live: Mapping[date, Run], *, month: BusinessMonth) -> Run | None:
    """Return the month's last night if INCOMPLETE and no later one was complete and proven."""
    own = max((day for day in live if day <= month.last), default=None)
    if own is None or live[own].verdict != Verdict.INCOMPLETE:
        return None
    later = {run.verdict for day, run in live.items() if day > month.last}
    return live[own] if later <= {Verdict.INCOMPLETE, Verdict.NOT_PROVEN} else None


def _bank_to(night: SealedNight, *, account: tuple[str, str]) -> str | None:
    """Return the day up to which consecutive bank statements cover every bank of the payouts."""
    if not night.has("counted"):
        return None
    terms, counted = night.frame("terms"), night.frame("counted")
    own = terms["name"].eq("bank_of") & terms["key"].str.startswith("\x1f".join(account) + "\x1f")
    banks = sorted({*terms.loc[own, "label"]})
    days = covered_to(counted)
    return min((days.get(bank, "") for bank in banks), default=None)


def _read(live: Mapping[date, Run], *, month: BusinessMonth, account: tuple[str, str]) -> list[Run]:
    """Return the last night before the month and all since, oldest first, at most NIGHTS_MAX."""
    before = [day for day in sorted(live) if day < month.first][-1:]
    since = [day for day in sorted(live) if day >= month.first]
    if not since:
        which = "/".join(account)
        msg = f"no live night of {which} covers {month.name}: run `recon nightly` first"
        raise UsageError(msg)
    return [live[day] for day in (*before, *since)][:NIGHTS_MAX]


def _days(
    month: BusinessMonth,
    *,
    live: Mapping[date, Run],
    held: set[date],
    environment: Environment,
) -> Iterator[NightOfMonth]:
    """Yield every business date of the month with its night, or why there is none."""
    rules, now = environment.settings.rules, environment.clock()
    first = min(live)
    for number in range(month.last.day):
        day = month.first + timedelta(days=number)
        run = live.get(day)
        if run is None:
            status = missed_without_a_run(day, nights=live, rules=rules, now=now)
            status = BEFORE_FIRST if day < first else status
            trouble = "no night ran" if status == MISSING else ""
            yield NightOfMonth(day, "", status, trouble)
            continue
        is_held = run.verdict == Verdict.NOT_PROVEN.value and day in held
        trouble = "the night is NOT PROVEN and nobody released it" if is_held else ""
        yield NightOfMonth(day, run.run_id, run.verdict, trouble)


def _with_earlier(
    frame: MonthFrame,
    *,
    live: Mapping[date, Run],
    nights: Sequence[MonthNight],
    stack: ExitStack,
    environment: Environment,
) -> MonthFrame:
    """Return the frame with the earlier nights that are needed, if any.

    A night whose folder was purged is not among them; the others are numbered up to -1.
    """
    first = date.fromisoformat(nights[0].business_date)
    if min(live) >= first or not (of_earlier := earlier_query(frame, nights=nights)).payments:
        return frame
    paid_on = (
        None if of_earlier.since is None else frame.calendar.business_date_of(of_earlier.since)
    )
    days = earlier_days(live, first=first, paid_on=paid_on, nights_max=NIGHTS_MAX - len(nights))
    before = [live[day] for day in days]
    with environment.store.reading() as connection:
        sealed = [(run, sealed_night(connection, run, environment=environment)) for run in before]
    there = [(run, night) for run, night in sealed if night.purged is None]
    earlier = [
        _night(number, run, night=night, stack=stack, names=EARLIER_READ)
        for number, (run, night) in enumerate(there, start=-len(there))
    ]
    return replace(frame, earlier=earlier)


def earlier_days(
    days: Iterable[date], *, first: date, paid_on: date | None, nights_max: int
) -> list[date]:
    """Return the days of the nights to read before the first one, the newest of too many.

    Args:
        days: Of all nights.
        first: Of the first night that is read.
        paid_on: When the oldest payment that comes back was paid; None if none does.
        nights_max: How many may be read, 0 or more.
    """
    since = first - timedelta(days=EARLIER_DAYS)
    since = since if paid_on is None else min(since, paid_on)
    of_earlier = sorted(day for day in days if since <= day < first)
    return of_earlier[max(len(of_earlier) - nights_max, 0) :]


def _night(
    number: int, run: Run, *, night: SealedNight, stack: ExitStack, names: Sequence[str]
) -> MonthNight:
    """Return the files of a night on this machine, each verified as sealed."""
    folder = stack.enter_context(night.storage.local(folder_of(run)))
    moved = night.moved
    files = {}
    for name in names:
        if not night.has(name):
            continue
        night.content(name)
        path = SCHEMAS[name].path
        files[name] = folder / moved.get(path, path)
    about = night.steps[RESULTS].manifest.about
    since = _ledger_since(run, night=night)
    return MonthNight(
        number,
        run.run_id,
        run.business_date.isoformat(),
        about.rules_digest,
        files,
        about.predecessor,
        since,
    )


def _ledger_since(run: Run, *, night: SealedNight) -> tuple[datetime, datetime] | None:
    """Return since when the ledger of a night is complete (`MonthNight.ledger_since`).

    In the first days ever settled, payouts may be of earlier batches: they are not missed.
    """
    terms, rejects = night.frame("terms"), night.frame("rejects")
    given = terms["name"].eq("given") & terms["key"].eq("ledger")
    if not given.any() or rejects["kind"].eq(SourceKind.LEDGER.value).any():
        return None
    if PROOF not in night.steps or entry_of(night.steps[PROOF], name=RULES) is None:
        return None
    rules = _rules(night)
    since, calendar = ledger_start(run, rules=rules), rules.business_calendar
    settled = terms["name"].eq("settled_days") & terms["key"].eq("first")
    days = [date.fromisoformat(str(day)) for day in terms.loc[settled, "label"]]
    grace = Grace.parse(rules.grace.gateway_to_ledger)
    begins = [calendar.due_at(midnight(day, zone=calendar.zone), grace=grace) for day in days]
    return since, begins[0] if begins else since


def _frame(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    newest: SealedNight,
    days: Sequence[NightOfMonth],
    closed: Sequence[ClosedPeriod],
) -> MonthFrame:
    """Return the month with zone, cut-off and accounts of the newest night's rules."""
    rules = _rules(newest)
    return MonthFrame(
        month=month,
        account=account,
        calendar=rules.business_calendar,
        due=[day.business_date.isoformat() for day in days if day.run_id or day.trouble],
        accounts=rules.journal.accounts,
        closed=closed,
    )


def _rules(night: SealedNight) -> Rules:
    return Rules.model_validate(json.loads(night.as_sealed(f"{PROOF}/{RULES}")))


READ = (
    *("orders", "answers", "instructions", "settlement", "ledger", "terms"),
    *("held", "paid", "received", "explained", "breaks", "effects", "pending", "matches"),
    *("unverified", "movements", "journals"),
)
"""Files of a night that a month reads; those in NEWEST_ONLY only of the newest night."""
EARLIER_READ = ("answers", "instructions", "ledger", "terms")
"""Files read of the nights before those of a month, about some payments only."""
NEWEST_ONLY = frozenset({"paid", "received", "explained", "held", "journals"})
"""Files with the current status only, and nothing of how it came about."""
SMALL_BYTES = 6 << 20
"""Size of a month's files (36 nights of ten orders a day) up to which rows are held in memory."""
SECONDS_MAX = 600
"""DuckDB is stopped after this time, and nothing is stated."""
EARLIER, POSITIONS = "asked.sql", "positions.sql"
TABLES = (EARLIER, "facts.sql", POSITIONS, "differing.sql", "dated_journals.sql", "lists.sql")
"""Statements that create what the others read, in this order."""
EQUATIONS = tuple(f"P{number}.sql" for number in range(1, 9))
FIGURES = "figures.sql"
OPENINGS = ("opening_payable", "opening_reserve")
ACCOUNTS: Mapping[str, str] = {
    "capture": "sales",
    "adjustment": "sales",
    "refund": "refunds",
    "chargeback": "chargebacks",
    "won_back": "chargebacks",
    "payout": "payouts",
    "pay_out": "payouts",
    "payee": "payouts",
    "reserve": "reserves",
}
"""Kind of fact, or type of entry -> the account it is booked on besides the clearing account."""
_ITEMS = "what, currency, key, order_no, since, amount"
_LISTS: Mapping[str, tuple[str, str]] = {
    "opening_items": (_ITEMS, "FROM open_items WHERE side = 'opening' ORDER BY 2, 1, 5, 3"),
    "closing_items": (_ITEMS, "FROM open_items WHERE side = 'closing' ORDER BY 2, 1, 5, 3"),
    "transit": (
        "finding, currency, amount, batch_id, since, state, code",
        "FROM open_transit WHERE side = 'closing' ORDER BY currency, since, batch_id, finding",
    ),
    "ledger": (
        "what, currency, key, amount, shown",
        "FROM listed_differences WHERE side = 'closing' ORDER BY currency, what, key",
    ),
    "straddling": (
        "what, currency, key, order_no, first_on, then_on, amount",
        "FROM straddling ORDER BY currency, what, first_on, key, then_on, order_no, amount",
    ),
    "facts": (
        """kind, currency, amount, event_on, order_no, payment, batch_id, dated_by, reported,
        is_outside, own_on, reported_on, is_late""",
        """FROM own_facts ORDER BY event_on, kind, currency, payment, batch_id, reported, amount,
        order_no, dated_by, own_on""",
    ),
    "reported": (
        'night, currency, "count", amount',
        "FROM reported_by_night ORDER BY night, currency",
    ),
    "journals": (
        "kind, journal_id, date, account, debit, credit, currency, order_no, break_id, text",
        """FROM month_journals
        ORDER BY kind <> 'permanent', if(kind = 'permanent', '', currency), journal_id, date, place
        """,
    ),
}
"""List of a statement -> its columns, and the source of its rows in order."""
_SQL = Path(__file__).parent / "sql"


class EarlierQuery(NamedTuple):
    """What the nights before those of a month must show."""

    payments: int
    """How many payments, or orders of rows without a payment; with 0 no earlier night is read."""
    since: datetime | None
    """When the oldest payment that comes back was paid."""


@dataclass(frozen=True, slots=True)
class MonthInSql:
    """DuckDB with the files of some nights, and the statements run so far."""

    connection: SqlSession
    frame: MonthFrame
    is_small: bool
    script: list[str] = field(default_factory=list)

    def run(self, text: str) -> None:
        """Run a statement, and add it to the script."""
        # Few rows are read once and held; many are read by each statement that needs them.
        held = text.replace("TEMP VIEW", "TEMP TABLE") if self.is_small else text
        self.connection.execute(held if text.startswith(_VIEW) else text)
        self.script.append(f"{text.rstrip().removesuffix(';')};")

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        return self.connection.rows(text)

    def frame_of(self, name: str) -> pd.DataFrame:
        """Return one of the lists."""
        columns, source = _LISTS[name]
        # Only constants of ours.
        table = self.connection.table(f"SELECT {columns} {source}")
        return frame_of_table(
            table.cast(pa.schema([each.with_nullable(False) for each in table.schema]))
        )


def earlier_query(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> EarlierQuery:
    """Return what earlier nights must show: chargebacks won back, and payments that come back.

    Raises:
        ReconError: DuckDB could not read the nights.
    """
    with _opened(frame, nights=nights, files=("answers", "settlement")) as month:
        month.run(_text(EARLIER))
        of_earlier = month.connection.table(
            "SELECT count(*), min(paid_at) FROM ("
            "SELECT *, NULL AS paid_at FROM won UNION ALL BY NAME FROM came_back) "
            "WHERE transaction_id <> '' OR order_no <> ''"
        )
    return EarlierQuery(*(column[0].as_py() for column in of_earlier.columns))


def statement_of(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> MonthStatement:
    """Return the statement of a month; `nights` begin before it, if there is an earlier one.

    Raises:
        ReconError: DuckDB could not read the nights, or reached a limit: nothing is stated.
    """
    with month_in_sql(frame, nights=nights) as month:
        (given,) = month.rows(
            "SELECT list(key) FROM terms SEMI JOIN newest_night USING (number) WHERE name = 'given'"
        )
        covered = {*(given[0] or ())}
        ((has_bank,),) = month.rows("SELECT count(*) > 0 FROM paid WHERE is_own")
        lists = {name: month.frame_of(name) for name in _LISTS}
        refunds = month.rows("SELECT payment, order_no, currency FROM unknown_refunds ORDER BY ALL")
        before = month.rows(
            "SELECT currency, sum(amount)::BIGINT FROM paid "
            "WHERE is_own AND state = 'OPENING' GROUP BY currency"
        )
        tables = [_in_order(_text(name)) for name in (*EQUATIONS, FIGURES)]
        lost = month.rows("SELECT DISTINCT settled_on, batch_id FROM lost_lines ORDER BY ALL")
        return MonthStatement(
            month=frame.month,
            account=frame.account,
            figures=[MonthFigure(*row) for row in month.rows(_text(FIGURES))],
            equations=equations_of(month),
            opening_items=lists["opening_items"],
            closing_items=lists["closing_items"],
            transit=lists["transit"] if has_bank else None,
            ledger=lists["ledger"] if "ledger" in covered else None,
            straddling=lists["straddling"],
            facts=lists["facts"],
            reported=lists["reported"],
            journals=lists["journals"],
            before_bank=dict(before),
            unknown_refunds=[UnknownRefund(*row) for row in refunds],
            is_settled="settlement" in covered,
            known_by=nights[-1].business_date,
            breaks=_breaks(nights, frame=frame),
            estimates=dict(month.rows("SELECT currency, amount FROM estimates ORDER BY ALL")),
            lost_batches=lost,
            sql="\n\n".join((*month.script, *(f"{text.rstrip()};" for text in tables))) + "\n",
        )


@contextmanager
def month_in_sql(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> Iterator[MonthInSql]:
    """Open DuckDB with all tables of a month, which lists and equations read."""
    with _opened(frame, nights=nights, files=READ) as month:
        for name in TABLES:
            month.run(_text(name))
            if name == POSITIONS:
                month.run(_held_items(month))
        yield month


def equations_of(month: MonthInSql) -> list[MonthEquation]:
    """Return both sides of P1 to P8, without money equations of no currency where both are 0."""
    every = [
        MonthEquation(*row) for name in EQUATIONS for row in month.rows(_in_order(_text(name)))
    ]
    return [
        each
        for each in every
        if each.currency or each.measure == COUNT or (each.left, each.right) != (0, 0)
    ]


@contextmanager
def _opened(
    frame: MonthFrame, *, nights: Sequence[MonthNight], files: Sequence[str]
) -> Iterator[MonthInSql]:
    give_back(frames=True)
    files_read = [file for night in (*frame.earlier, *nights) for file in night.files.values()]
    # A missing file is left for its reader to report.
    size = sum(file.stat().st_size for file in files_read if file.exists())
    is_small = size <= SMALL_BYTES
    folders = sorted({file.parent for file in files_read})
    try:
        with (
            texts_for(few=is_small),
            reading(*folders, seconds_max=SECONDS_MAX) as connection,
        ):
            month = MonthInSql(connection, frame, is_small)
            for statement in _inputs(frame, nights=nights, files=files):
                month.run(statement)
            yield month
    except SqlError as error:
        msg = (
            f"{frame.month.name} could not be stated, so nothing of it is proven and nothing was "
            f"changed: DuckDB says {error.reason!r}; run the command again, on a machine with more "
            "memory where that is what it lacks"
        )
        raise ReconError(msg) from error


def _breaks(nights: Sequence[MonthNight], *, frame: MonthFrame) -> pd.DataFrame:
    last = frame.month.last.isoformat()
    by_then = [night for night in nights if night.business_date <= last]
    file = (by_then or nights)[-1].files["breaks"]
    rows = frame_of_table(pq.ParquetFile(file).read())
    merchant_id, account_id = frame.account
    own = rows["merchant_id"].eq(merchant_id) & rows["account_id"].eq(account_id)
    return rows[own].reset_index(drop=True)


def _held_items(month: MonthInSql) -> str:
    """Return SQL that adds what batches and reserves left at both closes to `open_items`."""
    keys = month.rows("SELECT DISTINCT currency FROM lines UNION SELECT key FROM openings")
    balance_keys = {(side, str(key)) for side in ("opening", "closing") for (key,) in keys}
    batches: dict[tuple[str, str], list[Batch]] = {balance_key: [] for balance_key in balance_keys}
    reserves: dict[tuple[str, str], dict[str, int]] = {
        balance_key: {} for balance_key in balance_keys
    }
    for side, currency, name, day, settled, paid, is_paid in month.rows("FROM batches"):
        is_closed = is_paid or settled < 0
        batch = Batch(day, name, settled, paid, is_closed, is_foreign=False, is_unsure=False)
        batches[side, currency].append(batch)
    for side, currency, day, amount in month.rows("FROM reserve_days"):
        reserves[side, currency][day] = amount
    first = {
        (name, key): amount
        for name, key, amount in month.rows("SELECT name, key, number FROM openings")
    }
    rows = [
        f"({', '.join(map(quoted, cells))}, {item.amount})"
        for side, currency in sorted(balance_keys)
        for holder in [(*month.frame.account, currency)]
        for payable, reserve in [[first.get((name, currency), 0) for name in OPENINGS]]
        for item in (
            *left_of_batches(sorted(batches[side, currency]), account_key=holder, opening=payable),
            *left_of_reserves(reserves[side, currency], account_key=holder, opening=reserve),
        )
        for cells in [(side, item.what, currency, item.batch_id, "", item.settled_on)]
    ]
    if not rows:
        return "-- No batch left anything, and nothing is kept as a reserve."
    values = ",\n    ".join(rows)
    return f"INSERT INTO open_items VALUES\n    {values}"


def _in_order(text: str) -> str:
    """Return a SELECT of ours with its rows sorted by all columns."""
    return f"{text.rstrip().removesuffix(';')}\nORDER BY ALL"


_VIEW = "CREATE OR REPLACE TEMP VIEW"
_TABLE = "CREATE OR REPLACE TEMP TABLE"


def _inputs(
    frame: MonthFrame, *, nights: Sequence[MonthNight], files: Sequence[str]
) -> Iterator[str]:
    """Yield the input tables: the month, the nights, and a view over each kind of file."""
    month, every = frame.month, (*frame.earlier, *nights)
    yield _values(
        "days",
        ("business_date", "opens_at"),
        [(quoted(day), _instant(at)) for day, at in days_around(month, calendar=frame.calendar)],
    )
    days = (month.before, month.first, month.last, month.after.first)
    cells = [*(quoted(day.isoformat()) for day in days), quoted(month.name)]
    yield _values("month", ("before", "first", "last", "first_after", "month_name"), [cells])
    yield _values(
        "nights",
        ("number", "business_date", "run_id", "predecessor", "ledger_since", "cash_since"),
        [
            (
                f"{night.number}",
                *map(quoted, (night.business_date, night.run_id, night.predecessor)),
                *map(_instant, night.ledger_since or (None, None)),
            )
            for night in every
        ],
    )
    yield _values("due", ("day",), [(quoted(day),) for day in frame.due])
    yield _values(
        "closed",
        ("last_day", "next_day", "known_by"),
        [
            tuple(map(quoted, (f"{each.month.last}", f"{each.month.after.first}", each.known_by)))
            for each in frame.closed
        ],
    )
    accounts = {} if frame.accounts is None else frame.accounts.model_dump()
    age = age_of_month(month, calendar=frame.calendar, newest=nights[-1].business_date)
    cells = [*(quoted(accounts.get(name) or "") for name in ("clearing", "fees")), f"{age}"]
    yield _values("booking", ("clearing", "fees", "age_of_month"), [cells])
    named = {kind: accounts.get(name) for kind, name in ACCOUNTS.items()}
    booked_on = [(quoted(kind), quoted(account)) for kind, account in named.items() if account]
    yield _values("booked_on", ("kind", "account"), booked_on)
    yield _values(
        "night_files",
        ("filename", "number"),
        [
            (quoted(str(file.resolve())), f"{night.number}")
            for night in every
            for file in night.files.values()
        ],
    )
    for name in files:
        own = nights[-1:] if name in NEWEST_ONLY else every if name == "terms" else nights
        yield f"{_VIEW} {name} AS\n{_view(name, nights=own, account=frame.account)}"
    if "terms" not in files:
        return
    for name in ("answers", "instructions", "ledger"):
        own = frame.earlier
        yield f"{_VIEW} earlier_{name} AS\n{_view(name, nights=own, account=frame.account)}"
    yield (
        f"{_TABLE} openings AS\nSELECT name, key, value AS number FROM terms\n"  # noqa: S608
        f"WHERE number = (SELECT max(number) FROM nights) AND name IN {OPENINGS}"
    )


def _values(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return SQL for a table of rows whose cells are already quoted; it may be empty."""
    none = [[quoted("") for _ in columns]]
    values = ",\n    ".join(f"({', '.join(cells)})" for cells in rows or none)
    empty = "" if rows else " LIMIT 0"
    return f"{_TABLE} {name} AS FROM (VALUES\n    {values}) t({', '.join(columns)}){empty}"


def _instant(moment: datetime | None) -> str:
    return f"{'NULL' if moment is None else quoted(moment.isoformat())}::TIMESTAMPTZ"


def _view(name: str, *, nights: Iterable[MonthNight], account: tuple[str, str]) -> str:
    """Return a SELECT of one kind of file of all nights, with the night; only the account's rows.

    The files are read as one: parts combined with UNION ALL each keep their own memory for
    grouping, and some sixty nights reached the limit.
    """
    files = [quoted(str(night.files[name].resolve())) for night in nights if name in night.files]
    if not files:
        kinds = {"int64": "BIGINT", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
        cells = [
            f'NULL::{kinds.get(str(column.type), "VARCHAR")} AS "{column.name}"'
            for column in SCHEMAS[name].columns
            if column.name != "number"
        ]
        cells += ["0 AS number", "0 AS value", "false AS is_own"]
        return f"SELECT {', '.join(cells)} WHERE false"  # names of our own schemas
    listed = ",\n    ".join(files)
    read = f"FROM read_parquet([\n    {listed}], filename = true, union_by_name = true)"
    columns, own = "f.* EXCLUDE (filename)", ""
    if name == "terms":
        columns = "f.* EXCLUDE (filename, number), f.number AS value"
    is_own = f"f.merchant_id = {quoted(account[0])} AND f.account_id = {quoted(account[1])}"
    if name == "paid":
        columns += f", {is_own} AS is_own"
    elif "merchant_id" in SCHEMAS[name].columns.names:
        own = f" WHERE {is_own}"
    # Names and paths are quoted; nothing else is put into the statement.
    return f"SELECT {columns}, n.number FROM ({read}) f JOIN night_files n USING (filename){own}"  # noqa: S608


@cache
def _text(name: str) -> str:
    return (_SQL / name).read_text(encoding="utf-8")
