"""A statement once more in SQL: the same sealed files, read by DuckDB, by statements of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from recon.archive.answers_once import ANSWERS, PASSED_OVER
from recon.archive.schemas import SCHEMAS
from recon.model.freed_memory import give_back
from recon.period.business_month import DayTable
from recon.period.journal_dates import age_of_month
from recon.period.journal_names import JournalNames
from recon.period.month_equation import MonthEquation
from recon.period.month_nights import NEWEST_ONLY, READ, MonthNight, are_small
from recon.period.month_statement import MOVED, MonthFigure, MonthFrame, MonthStatement
from recon.proof.answers_in_sql import answers_once, files_read
from recon.proof.second_engine import quoted, reading

if TYPE_CHECKING:
    import duckdb

SECONDS_MAX = 600
"""After so long the second engine is given up, and nothing is proven."""
REASON_MAX = 200
"""Characters of what DuckDB says that are shown."""
TABLES = ("facts.sql", "positions.sql", "differing.sql", "dated_journals.sql")
"""Statements that make what the others read, in their order."""
EQUATIONS = {f"P{number}": f"P{number}.sql" for number in range(1, 9)}
FIGURES = "figures.sql"
_OPENINGS = """CREATE OR REPLACE TEMP TABLE openings AS
SELECT name, key, value AS number FROM terms
WHERE number = (SELECT max(number) FROM nights) AND name IN ('opening_payable', 'opening_reserve')
"""
_SQL = Path(__file__).parent / "sql"


Sides = Mapping[tuple[str, str, str, str], tuple[int, int]]
"""Equation, name, currency and measure -> left and right, in minor units or rows."""


@dataclass(frozen=True, slots=True)
class SqlMonth:
    """What SQL says of a month: both sides of every equation, and every movement."""

    sides: Sides
    figures: frozenset[MonthFigure]


def proven_by_sql(
    statement: MonthStatement, *, nights: Sequence[MonthNight], frame: MonthFrame
) -> MonthStatement:
    """The statement with what SQL says of each equation; figures that differ are named."""
    import duckdb

    try:
        with month_in_sql(statement, nights=nights, frame=frame) as connection:
            by_sql = asked_of_sql(connection, statement=statement)
    except duckdb.Error as error:
        why = str(error).partition("\n")[0][:REASON_MAX]
        return replace(statement, unproven_figures=[f"SQL could not be run: {why}"])
    return held_against_sql(statement, by_sql=by_sql)


@contextmanager
def month_in_sql(
    statement: MonthStatement, *, nights: Sequence[MonthNight], frame: MonthFrame
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """DuckDB with the tables of a month, which the equations read.

    Of the statement it takes month, account and the refunds of which no amount is known.

    Raises:
        duckdb.Error: a file is missing or is not what it should be, or a bound was reached.
    """
    give_back(frames=True)
    every = (*frame.earlier, *nights)
    folders = sorted({file.parent for night in every for file in night.all_files})
    with reading(*folders, seconds_max=SECONDS_MAX) as connection:
        _set_up(connection, statement=statement, nights=nights, frame=frame)
        yield connection


def asked_of_sql(connection: "duckdb.DuckDBPyConnection", *, statement: MonthStatement) -> SqlMonth:
    """Those equations that the statement has, and all figures, over the tables of its month."""
    asked = sorted({each.id for each in statement.equations})
    sides = {key: pair for id_ in asked for key, pair in _sides(connection, EQUATIONS[id_])}
    return SqlMonth(sides, frozenset(_figures(connection)))


def held_against_sql(statement: MonthStatement, *, by_sql: SqlMonth) -> MonthStatement:
    """The statement with both sides of SQL beside its own."""
    equations = [_with_sql(each, sides=by_sql.sides) for each in statement.equations]
    known = {(each.id, each.name, each.currency, each.measure) for each in equations}
    equations += [
        MonthEquation(*key, 0, 0, *pair)
        for key, pair in by_sql.sides.items()
        if key not in known and any(pair)
    ]
    unlike = [*_unlike(_told_figures(statement), figures=by_sql.figures)]
    return replace(statement, equations=equations, unproven_figures=unlike)


def sql_texts(statement: MonthStatement, *, nights: Sequence[MonthNight], frame: MonthFrame) -> str:
    """All of it as one script, for whoever has the nights' folders and the program `duckdb`."""
    days = DayTable.around(statement.month, calendar=frame.calendar)
    rows = ",\n    ".join(
        f"({quoted(day)}, TIMESTAMPTZ {quoted(str(moment))})"
        for day, moment in zip(days.dates, days.opens_at, strict=True)
    )
    values = f"FROM (VALUES\n    {rows}\n) t(business_date, opens_at)"
    table = f"CREATE OR REPLACE TEMP TABLE days AS {values};"
    first = [table, *_views(statement, nights=nights, frame=frame)]
    shown = [_text(name) for name in (*TABLES, *EQUATIONS.values(), FIGURES)]
    return "\n\n".join(f"{text.rstrip().removesuffix(';')};" for text in (*first, *shown)) + "\n"


def _set_up(
    connection: "duckdb.DuckDBPyConnection",
    *,
    statement: MonthStatement,
    nights: Sequence[MonthNight],
    frame: MonthFrame,
) -> None:
    days = DayTable.around(statement.month, calendar=frame.calendar)
    opens = pa.array(days.opens_at, pa.timestamp("us", tz="UTC"))
    connection.register("day_table", pa.table({"business_date": [*days.dates], "opens_at": opens}))
    connection.execute("CREATE OR REPLACE TEMP TABLE days AS FROM day_table")
    is_small = are_small((*frame.earlier, *nights))
    for view in _views(statement, nights=nights, frame=frame):
        # Few rows are read once and held; many are read by each statement that asks for them.
        connection.execute(view.replace("TEMP VIEW", "TEMP TABLE", 1) if is_small else view)
    for name in TABLES:
        connection.execute(_text(name))


def _views(
    statement: MonthStatement, *, nights: Sequence[MonthNight], frame: MonthFrame
) -> Iterator[str]:
    """What the statements read: the month, the nights, and a view over each kind of file."""
    month = statement.month
    days = ", ".join(
        f"{quoted(day.isoformat())} AS {name}"
        for name, day in (("before", month.before), ("first", month.first), ("last", month.last))
    )
    yield f"CREATE OR REPLACE TEMP TABLE month AS SELECT {days}"
    rows = ", ".join(
        f"({night.number}, "
        + ", ".join(map(quoted, (night.business_date, night.run_id, night.predecessor)))
        + "".join(f", {_instant(moment)}" for moment in night.books_since or (None, None))
        + ")"
        for night in (*frame.earlier, *nights)
    )
    named = "t(number, business_date, run_id, predecessor, books_since, cash_since)"
    yield f"CREATE OR REPLACE TEMP TABLE nights AS FROM (VALUES {rows}) {named}"
    due = ", ".join(f"({quoted(day)})" for day in ("", *frame.due))
    yield f"CREATE OR REPLACE TEMP TABLE due AS FROM (VALUES {due}) t(day) WHERE day <> ''"
    periods = [(each.last, each.after, each.known_by) for each in frame.closed] or [("", "", "")]
    values = ", ".join(f"({', '.join(map(quoted, each))})" for each in periods)
    named = "t(last_day, next_day, known_by)"
    yield f"CREATE OR REPLACE TEMP TABLE closed AS FROM (VALUES {values}) {named}"
    names = frame.names or JournalNames("", "")
    accounts = f"{quoted(names.clearing)} AS clearing, {quoted(names.fees)} AS fees"
    yield _booked_on(names)
    age = age_of_month(month, calendar=frame.calendar, newest=nights[-1].business_date)
    yield f"CREATE OR REPLACE TEMP TABLE booking AS SELECT {accounts}, {age} AS age_of_month"
    yield _night_files((*frame.earlier, *nights))
    for name in READ:
        every = nights[-1:] if name in NEWEST_ONLY else nights
        if name == "terms":
            every = (*frame.earlier, *nights)
        view = _view(name, nights=every, account=statement.account)
        yield f"CREATE OR REPLACE TEMP VIEW {name} AS\n{view}"
    for name in ("answers", "instructions", "ledger"):
        view = _view(name, nights=frame.earlier, account=statement.account)
        yield f"CREATE OR REPLACE TEMP VIEW earlier_{name} AS\n{view}"
    unknown = ", ".join(f"({quoted(payment)})" for payment in (*statement.unmeasured_refunds, ""))
    yield f"CREATE OR REPLACE TEMP TABLE unknown_refunds AS FROM (VALUES {unknown}) t(payment)"
    yield _OPENINGS


def _instant(moment: datetime | None) -> str:
    return f"{'NULL' if moment is None else quoted(moment.isoformat())}::TIMESTAMPTZ"


def _booked_on(names: JournalNames) -> str:
    """Which kind of fact or entry is booked on which account."""
    kinds = [*names.by_kind.items()] or [("", "")]
    values = ", ".join(f"({', '.join(map(quoted, each))})" for each in kinds)
    return f"CREATE OR REPLACE TEMP TABLE booked_on AS FROM (VALUES {values}) t(kind, account)"


def _night_files(nights: Iterable[MonthNight]) -> str:
    """Which night a file is of, by its place on this machine."""
    files = [(file, night.number) for night in nights for file in night.all_files]
    rows = ", ".join(f"({quoted(str(file.resolve()))}, {number})" for file, number in files)
    return f"CREATE OR REPLACE TEMP TABLE night_files AS FROM (VALUES {rows}) t(filename, number)"


def _view(name: str, *, nights: Iterable[MonthNight], account: tuple[str, str]) -> str:
    """One kind of file of all nights, each row with its night; only rows of the account.

    The files are read as one: of parts put together with UNION ALL each keeps memory of its own for
    whatever is grouped, and some sixty nights reached the bound.
    """
    read = _rows_of_nights(name, nights=[night for night in nights if name in night.files])
    if not read:
        return _no_rows(name)
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


def _rows_of_nights(name: str, *, nights: Sequence[MonthNight]) -> str:
    """The rows of one kind of file with the column `filename`; "" without a file."""
    own = [quoted(str(night.files[name].resolve())) for night in nights]
    once = [night for night in nights if name == ANSWERS and night.answered]
    if once:
        replies = [
            quoted(str(file.resolve())) for night in once for file in night.answered.values()
        ]
        passed_over = [quoted(str(night.files[PASSED_OVER].resolve())) for night in once]
        return answers_once(own, replies=replies, passed_over=passed_over, named=True)
    return f"FROM {files_read(own)}" if own else ""


def _no_rows(name: str) -> str:
    kinds = {"int64": "BIGINT", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
    cells = [
        f'NULL::{kinds.get(str(field.type), "VARCHAR")} AS "{field.name}"'
        for field in SCHEMAS[name].columns
        if field.name != "number"
    ]
    cells += ["0 AS number", "0 AS value", "false AS is_own"]
    return f"SELECT {', '.join(cells)} WHERE false"  # names of our own schemas


def _sides(
    connection: "duckdb.DuckDBPyConnection", name: str
) -> Iterator[tuple[tuple[str, str, str, str], tuple[int, int]]]:
    for row in connection.execute(_text(name)).fetchall():
        yield (row[0], row[1], row[2], row[3]), (int(row[4]), int(row[5]))


def _with_sql(equation: MonthEquation, *, sides: Sides) -> MonthEquation:
    """An equation that SQL finds no row for is one of nothing."""
    key = (equation.id, equation.name, equation.currency, equation.measure)
    left, right = sides.get(key, (0, 0))
    return replace(equation, sql_left=left, sql_right=right)


def _figures(connection: "duckdb.DuckDBPyConnection") -> Iterator[MonthFigure]:
    for row in connection.execute(_text(FIGURES)).fetchall():
        yield MonthFigure(row[0], row[1], row[2], row[3], int(row[4]), int(row[5]))


def _told_figures(statement: MonthStatement) -> set[MonthFigure]:
    """The movements as pandas has them; what is open SQL says in its equations."""
    return {figure for figure in statement.figures if figure.at == MOVED}


def _unlike(
    of_pandas: AbstractSet[MonthFigure], *, figures: AbstractSet[MonthFigure]
) -> Iterator[str]:
    """Figures that only one engine says."""
    for whose, rows in (("only pandas", of_pandas - figures), ("only SQL", figures - of_pandas)):
        for row in sorted(rows, key=lambda each: (each.currency, each.of, each.name)):
            what = f"{row.currency} {row.of} {row.name}"
            yield f"{whose}: {what}, count {row.count}, amount {row.amount}"


@cache
def _text(name: str) -> str:
    return (_SQL / name).read_text(encoding="utf-8")
