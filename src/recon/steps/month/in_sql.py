"""The month of an account, stated in SQL over the sealed folders of its nights, by DuckDB.

`sql/` says it: what took place with the day of each event (facts), what is open at both closes
(positions), why the books differ (differing), on which day journals are booked (dated_journals),
lists, and figures; P1 to P8 hold them against each other. Only what batches leave, one after the
other in time, is walked through here, by the rule of a night. What was run is the script that goes
with the statement.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.matching.cash.batches import Batch, left_of_batches, left_of_reserves
from recon.matching.frames.arrays import texts_for
from recon.model.errors import ReconError
from recon.model.uptime import give_back
from recon.proof.night_tables import frame_of_table
from recon.proof.sql_session import SqlError, SqlSession, quoted, reading
from recon.steps.month.statement import (
    COUNT,
    MonthEquation,
    MonthFigure,
    MonthFrame,
    MonthNight,
    MonthStatement,
    UnknownRefund,
    age_of_month,
    days_around,
)

READ = (
    *("orders", "answers", "instructions", "settlement", "ledger", "terms"),
    *("held", "paid", "received", "explained", "breaks", "effects", "pending", "matches"),
    *("unverified", "movements", "journals"),
)
"""Files of a night that a month reads; of NEWEST_ONLY those of the newest night alone."""
EARLIER_READ = ("answers", "instructions", "ledger", "terms")
"""Files of the nights before those of a month: of payments that they are asked about."""
NEWEST_ONLY = frozenset({"paid", "received", "explained", "held", "journals"})
"""Files that say how things stand, and nothing of how they came to."""
SMALL_BYTES = 6 << 20
"""Of all files of a month: 36 nights of ten orders a day; their rows are read once and held."""
SECONDS_MAX = 600
"""After so long DuckDB is given up, and nothing is stated."""
ASKED, POSITIONS = "asked.sql", "positions.sql"
TABLES = (ASKED, "facts.sql", POSITIONS, "differing.sql", "dated_journals.sql", "lists.sql")
"""Statements that make what the others read, in their order."""
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
"""Kind of fact, or type of entry, -> what it is booked on beside the clearing account."""
_ITEMS = "what, currency, key, order_no, since, amount"
_LISTS: Mapping[str, tuple[str, str]] = {
    "opening_items": (_ITEMS, "FROM open_items WHERE side = 'opening' ORDER BY 2, 1, 5, 3"),
    "closing_items": (_ITEMS, "FROM open_items WHERE side = 'closing' ORDER BY 2, 1, 5, 3"),
    "transit": (
        "finding, currency, amount, batch_id, since, state, code",
        "FROM open_transit WHERE side = 'closing' ORDER BY currency, since, batch_id, finding",
    ),
    "books": (
        "what, currency, key, amount, shown",
        "FROM listed_differences WHERE side = 'closing' ORDER BY currency, what, key",
    ),
    "straddling": (
        "what, currency, key, order_no, first_on, then_on, amount",
        "FROM straddling ORDER BY currency, what, first_on, key, then_on, order_no, amount",
    ),
    "facts": (
        """kind, currency, amount, event_on, order_no, payment, batch_id, dated_by, told,
        is_outside, own_on, told_on, is_late""",
        """FROM own_facts ORDER BY event_on, kind, currency, payment, batch_id, told, amount,
        order_no, dated_by, own_on""",
    ),
    "told": ('night, currency, "count", amount', "FROM told_by_nights ORDER BY night, currency"),
    "journals": (
        "kind, journal_id, date, account, debit, credit, currency, order_no, break_id, text",
        """FROM month_journals
        ORDER BY kind <> 'permanent', if(kind = 'permanent', '', currency), journal_id, date, place
        """,
    ),
}
"""List of a statement -> its columns, and their rows in order."""
_SQL = Path(__file__).parent / "sql"


class AskedEarlier(NamedTuple):
    """What the nights before those of a month are asked about."""

    payments: int
    """How many, or orders of rows that name no payment; 0: none is read."""
    since: datetime | None
    """When the oldest of those that come back was paid."""


@dataclass(frozen=True, slots=True)
class MonthInSql:
    """DuckDB with the files of some nights, and what was run so far."""

    connection: SqlSession
    frame: MonthFrame
    is_small: bool
    script: list[str] = field(default_factory=list)

    def run(self, text: str) -> None:
        """Run a statement, and keep it for the script."""
        # Few rows are read once and held; many are read by each statement that asks for them.
        held = text.replace("TEMP VIEW", "TEMP TABLE") if self.is_small else text
        self.connection.execute(held if text.startswith(_VIEW) else text)
        self.script.append(f"{text.rstrip().removesuffix(';')};")

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """What a SELECT comes to."""
        return self.connection.rows(text)

    def frame_of(self, name: str) -> pd.DataFrame:
        """One of the lists."""
        columns, source = _LISTS[name]
        # Constants of ours alone.
        table = self.connection.table(f"SELECT {columns} {source}")
        return frame_of_table(
            table.cast(pa.schema([each.with_nullable(False) for each in table.schema]))
        )


def asked_earlier(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> AskedEarlier:
    """What the nights before these are asked about: what was won back, what comes back.

    Raises:
        ReconError: DuckDB could not read the nights.
    """
    with _opened(frame, nights=nights, files=("answers", "settlement")) as month:
        month.run(_text(ASKED))
        asked = month.connection.table(
            "SELECT count(*), min(paid_at) FROM ("
            "SELECT *, NULL AS paid_at FROM won UNION ALL BY NAME FROM came_back) "
            "WHERE transaction_id <> '' OR order_no <> ''"
        )
    return AskedEarlier(*(column[0].as_py() for column in asked.columns))


def statement_of(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> MonthStatement:
    """The statement of a month; `nights` begin before it, where there is one.

    Raises:
        ReconError: DuckDB could not read the nights, or reached a bound: nothing is stated.
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
        shown = [_in_order(_text(name)) for name in (*EQUATIONS, FIGURES)]
        lost = month.rows("SELECT DISTINCT settled_on, batch_id FROM lost_lines ORDER BY ALL")
        return MonthStatement(
            month=frame.month,
            account=frame.account,
            figures=[MonthFigure(*row) for row in month.rows(_text(FIGURES))],
            equations=equations_of(month),
            opening_items=lists["opening_items"],
            closing_items=lists["closing_items"],
            transit=lists["transit"] if has_bank else None,
            books=lists["books"] if "ledger" in covered else None,
            straddling=lists["straddling"],
            facts=lists["facts"],
            told=lists["told"],
            journals=lists["journals"],
            before_bank=dict(before),
            unknown_refunds=[UnknownRefund(*row) for row in refunds],
            is_settled="settlement" in covered,
            known_by=nights[-1].business_date,
            breaks=_breaks(nights, frame=frame),
            estimates=dict(month.rows("SELECT currency, amount FROM estimates ORDER BY ALL")),
            lost_batches=lost,
            sql="\n\n".join((*month.script, *(f"{text.rstrip()};" for text in shown))) + "\n",
        )


@contextmanager
def month_in_sql(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> Iterator[MonthInSql]:
    """DuckDB with all tables of a month, which lists and equations read."""
    with _opened(frame, nights=nights, files=READ) as month:
        for name in TABLES:
            month.run(_text(name))
            if name == POSITIONS:
                month.run(_held_items(month))
        yield month


def equations_of(month: MonthInSql) -> list[MonthEquation]:
    """Both sides of P1 to P8; where no money moved, none without a currency."""
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
    # One that is not there is for its reader to name.
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
    """What the last night by the close shows as open, with the types of its file."""
    last = frame.month.last.isoformat()
    by_then = [night for night in nights if night.business_date <= last]
    file = (by_then or nights)[-1].files["breaks"]
    rows = frame_of_table(pq.ParquetFile(file).read())
    merchant_id, account_id = frame.account
    own = rows["merchant_id"].eq(merchant_id) & rows["account_id"].eq(account_id)
    return rows[own].reset_index(drop=True)


def _held_items(month: MonthInSql) -> str:
    """What batches left and reserves at both closes, item by item, as rows of `open_items`."""
    keys = month.rows("SELECT DISTINCT currency FROM lines UNION SELECT key FROM openings")
    places = {(side, str(key)) for side in ("opening", "closing") for (key,) in keys}
    batches: dict[tuple[str, str], list[Batch]] = {place: [] for place in places}
    reserves: dict[tuple[str, str], dict[str, int]] = {place: {} for place in places}
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
        for side, currency in sorted(places)
        for holder in [(*month.frame.account, currency)]
        for payable, reserve in [[first.get((name, currency), 0) for name in OPENINGS]]
        for item in (
            *left_of_batches(sorted(batches[side, currency]), holder=holder, opening=payable),
            *left_of_reserves(reserves[side, currency], holder=holder, opening=reserve),
        )
        for cells in [(side, item.what, currency, item.batch_id, "", item.settled_on)]
    ]
    if not rows:
        return "-- No batch left anything, and nothing is kept as a reserve."
    values = ",\n    ".join(rows)
    return f"INSERT INTO open_items VALUES\n    {values}"


def _in_order(text: str) -> str:
    """A SELECT of ours with its rows in the order in which they are read."""
    return f"{text.rstrip().removesuffix(';')}\nORDER BY ALL"


_VIEW = "CREATE OR REPLACE TEMP VIEW"
_TABLE = "CREATE OR REPLACE TEMP TABLE"


def _inputs(
    frame: MonthFrame, *, nights: Sequence[MonthNight], files: Sequence[str]
) -> Iterator[str]:
    """What the statements read: the month, the nights, and a view over each kind of file."""
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
        ("number", "business_date", "run_id", "predecessor", "books_since", "cash_since"),
        [
            (
                f"{night.number}",
                *map(quoted, (night.business_date, night.run_id, night.predecessor)),
                *map(_instant, night.books_since or (None, None)),
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
    """A table of some rows, whose cells are quoted; it may have none."""
    none = [[quoted("") for _ in columns]]
    values = ",\n    ".join(f"({', '.join(cells)})" for cells in rows or none)
    empty = "" if rows else " LIMIT 0"
    return f"{_TABLE} {name} AS FROM (VALUES\n    {values}) t({', '.join(columns)}){empty}"


def _instant(moment: datetime | None) -> str:
    return f"{'NULL' if moment is None else quoted(moment.isoformat())}::TIMESTAMPTZ"


def _view(name: str, *, nights: Iterable[MonthNight], account: tuple[str, str]) -> str:
    """One kind of file of all nights, each row with its night; only rows of the account.

    The files are read as one: of parts put together with UNION ALL each keeps memory of its own for
    whatever is grouped, and some sixty nights reached the bound.
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
