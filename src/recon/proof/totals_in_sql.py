"""Computes the control totals in SQL, by DuckDB, over the files of a run's folder.

Engine and language share nothing with the comparison but the files. It reads only the given folder,
within limits of memory and time. For a sealed run T14 compares its stored totals with those that
SQL computes again, side by side: a missing one counts as 0, so a total that was left out shows,
unless it was 0.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from recon.model.terms import ControlTotal
from recon.proof.sql_session import SqlError, SqlSession, quoted, reading

SECOND_ENGINE = "T14"
NAME = "figures of this night's totals = those that SQL gives"
SHEETS = "T13"
"""Computed separately, once the workbook is read back."""
BY_RULE = "match by "
"""Precedes a rule: T13's name for the matches by that rule."""
IN_FILE = " in the file with SHA-256 "
"""Follows a section, before the hash: T13's name for the file that a workbook names for it."""
SHEETS_IN_SQL = "figures of the sheets = those that SQL gives"
BEFORE_MONEY = ("T00_files.sql", "T02_stored.sql", "T03_asked.sql", "journal_T09.sql")
"""Run over what was sealed before money moves; the last one reads our journal, and no result."""
JOURNAL = "journal/instructions.parquet"
NAME_BEFORE_MONEY = "figures before money"
UNSENT = "nothing was sent: start the night again"
STORED = "what was sent and compared is kept, and nothing of it is proven: run the night again"
DISPLAYED_MAX = 50
"""Maximum number of differing figures that are named one by one."""

Key = tuple[str, str, str, str, str, str]


def totals_of_agreement(
    totals: Iterable[ControlTotal],
    *,
    by_sql: Iterable[ControlTotal],
    account: tuple[str, str],
) -> tuple[ControlTotal, ...]:
    """Return T14: how many figures exist and how many agree, then each that differs, by its name.

    Args:
        totals: the stored totals.
        by_sql: computed by SQL; those of T14 are its own and must agree by themselves.
        account: merchant and account of the run.
    """
    given = [*by_sql]
    own = [total for total in given if total.id == SECOND_ENGINE]
    ours, theirs = (
        {key_of(total): (total.left, total.right) for total in each if total.id != SECOND_ENGINE}
        for each in (totals, given)
    )
    every = sorted({*ours, *theirs})
    unlike = [key for key in every if ours.get(key, _NOTHING) != theirs.get(key, _NOTHING)]
    failed = [total for total in own if not total.passed]
    size = len(every) + len(own)
    agree = size - len(unlike) - len(failed)
    figures = ControlTotal(SECOND_ENGINE, NAME, *account, "", "count", size, agree)
    named = [
        # Each side that differs becomes a total of its own under the name of the total.
        ControlTotal(key[0], f"{key[1]}: {side} = {side} by SQL", *key[2:], one, other)
        for key in unlike
        for side, one, other in zip(
            ("left", "right"), ours.get(key, _NOTHING), theirs.get(key, _NOTHING), strict=True
        )
        if one != other
    ]
    return (figures, *[*failed, *named][:DISPLAYED_MAX])


_NOTHING = (0, 0)


def not_run(
    why: str, *, account: tuple[str, str], name: str = NAME, stored: str = STORED
) -> ControlTotal:
    """Return the failed T14 of a run whose SQL did not finish: it proves nothing.

    `why` begins with the statement that failed.
    """
    return ControlTotal(SECOND_ENGINE, f"{name}: {why}; {stored}", *account, "", "count", 1, 0)


def in_file(section: str, *, sha256: str) -> str:
    """Return T13's name of the file that holds all rows of a section."""
    return f"{section}{IN_FILE}{sha256}"


def key_of(total: ControlTotal) -> Key:
    """Return the identity of a total: id, name, account, currency and measure."""
    account_currency = total.merchant_id, total.account_id, total.currency
    return total.id, total.name, *account_currency, total.measure


NIGHT_MEMORY_MB, NIGHT_MEMORY_MAX_MB = 384, 1_536
"""Least and greatest memory of DuckDB for the proof of a run; the rest goes to temporary files."""
FACTS_MB = 256
"""Its memory for reading files of facts, and before money."""
NIGHT_MEMORY_SHARE = 1.5
"""Memory per byte of a run's files: part of a join stays in memory whatever it writes elsewhere,
and grows with the rows (five million payments with their settlement ended at 384 MB)."""
NAMES = ("id", "name", "merchant_id", "account_id", "currency", "measure")
SIDES = ("left", "right")
"""Columns of every statement; the sides are whole numbers: rows, or minor units."""
OF_BANKS = frozenset(
    {"T15_statements.sql", "T16_covered.sql", "T17_exchanged.sql", "T17_in_transit.sql"}
)
"""Totals of a run with bank statements."""
OF_LEDGER_OF_BANK = frozenset({"T19_bank.sql"})
"""Totals of a run whose ledger also books bank receipts."""
OF_SHEETS = "T13_sheets.sql"
"""Run when the workbook is written and read back, after all others."""
SHEETS_READ = "proof/sheets.parquet"
_GIVEN = "FROM 'inputs/terms.parquet' WHERE name = 'given'"
_ALL_OF = "\nUNION ALL\n"
ROWS, HELD_AGAINST, VERIFY = "rows.sql", "held_against.sql", "verify.sql"
_SQL = Path(__file__).parent / "sql"
_FILE = re.compile(r"'([a-z]+(?:-[0-9]+)?(?:\.superseded-[0-9]+)?/[a-z_]+(?:-[0-9]+)?\.parquet)'")
"""Path of a file in a run's folder: its step, which may have been written anew, and name."""


def sql_files(
    *,
    moved: Mapping[str, str] | None = None,
    banks: bool = True,
    bank_booked: bool = True,
) -> dict[str, str]:
    """Return name -> text of the statements in a run's folder: each total by itself, and all.

    `moved` is as for `sql_totals`; without `banks` the run has no bank statement, without
    `bank_booked` its ledger has no entries of bank receipts.
    """
    names = [ROWS, *_names(banks=banks, bank_booked=bank_booked), OF_SHEETS, HELD_AGAINST]
    texts = {name: _located(_text(name), moved=moved or {}) for name in names}
    return {**texts, VERIFY: _verify(texts)}


def control_totals(
    folder: Path, *, account: tuple[str, str], moved: Mapping[str, str] | None = None
) -> tuple[ControlTotal, ...]:
    """Return all control totals of the files of a folder, in order of their numbers.

    Where SQL cannot finish, nothing is proven: there is one total, which fails and says why.
    """
    try:
        totals = sql_totals(folder, moved=moved)
    except SqlError as error:
        return (not_run(error.reason, account=account),)
    return (*sorted(totals, key=lambda total: (int(total.id.strip("TABC")), key_of(total))),)


def proven_in_sql(
    folder: Path,
    *,
    totals: Sequence[ControlTotal],
    account: tuple[str, str],
    moved: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> tuple[ControlTotal, ...]:
    """Return T14: the stored totals of a run compared with those of SQL over its folder.

    Where SQL cannot finish, nothing is proven: the total fails and says why. Totals of sheets are
    included where the statements of the folder (`own`) have them.
    """
    try:
        by_sql = sql_totals(folder, moved=moved, own=own)
    except SqlError as error:
        return (not_run(error.reason, account=account),)
    chosen = [total for total in totals if OF_SHEETS in (own or {}) or total.id != SHEETS]
    return totals_of_agreement(chosen, by_sql=by_sql, account=account)


def sheets_in_sql(
    results: Path, *, sheets: Path, account: tuple[str, str]
) -> tuple[ControlTotal, ...]:
    """Return T13: what was read back from a workbook compared with the results, sorted.

    Where SQL cannot finish there is one total, which fails and says why.

    Args:
        results: The step `results`, on this machine.
        sheets: The file that will be SHEETS_READ.
        account: Merchant and account of the run.
    """
    text = _text(OF_SHEETS)
    names = _FILE.findall(text)
    lies = {name: str(results.resolve() / name.partition("/")[2]) for name in names}
    lies[SHEETS_READ] = str(sheets.resolve())
    try:
        with reading(results, sheets.parent) as sql:
            rows = sql.rows(_ordered(_located(text, moved=lies)))
    except SqlError as error:
        why = f"{OF_SHEETS}: {error.reason}"
        return (not_run(why, account=account, name=SHEETS_IN_SQL),)
    return (*sorted((ControlTotal(*row) for row in rows), key=key_of),)


def totals_before_money(folder: Path, *, account: tuple[str, str]) -> tuple[ControlTotal, ...]:
    """Return T0 to T3 and T9 of a run before its money moves.

    Where SQL cannot finish there is one total, which fails and says why.

    Args:
        folder: The files that BEFORE_MONEY names, on this machine.
        account: Merchant and account of the run.
    """
    texts = {name: _text(name) for name in BEFORE_MONEY}
    located = partial(_located, moved={}, below=folder.resolve())
    try:
        # The same limit as for files of facts, so that its process can be reused here.
        with reading(folder, memory_mb=FACTS_MB) as sql:
            return (*_reported(sql, texts, located=located),)
    except SqlError as error:
        return (not_run(error.reason, account=account, name=NAME_BEFORE_MONEY, stored=UNSENT),)


def sql_totals(
    folder: Path,
    *,
    moved: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> tuple[ControlTotal, ...]:
    """Return every control total of the files of a folder, computed by SQL.

    Args:
        folder: The run's folder, on this machine.
        moved: Files at another path in it: path -> path, both from the folder.
        own: The statements sealed in it (see `sql_files`), used instead of ours.

    Raises:
        SqlError: a file is missing or is not what it should be, or a limit was reached.
    """
    located = partial(_located, moved=moved or {}, below=folder.resolve())
    texts = {name: text for name, text in (own or {}).items() if name[0] == "T"}
    with reading(folder, memory_mb=night_memory_mb(_size(folder))) as sql:
        with _asking(ROWS):
            given = {key for (key,) in sql.rows(located(f"SELECT key {_GIVEN}"))}
            names = _names(banks="bank" in given, bank_booked="bank_ledger" in given)
            sql.execute(located((own or {}).get(ROWS) or _text(ROWS)))
        return (*_reported(sql, texts or {name: _text(name) for name in names}, located=located),)


def _reported(
    sql: SqlSession, texts: Mapping[str, str], *, located: Callable[[str], str]
) -> Iterator[ControlTotal]:
    """Run one statement at a time to save memory; an error names its statement."""
    for name, text in texts.items():
        with _asking(name):
            rows = sql.rows(_ordered(located(text)))
        yield from (ControlTotal(*row) for row in rows)


@contextmanager
def _asking(name: str) -> Iterator[None]:
    try:
        yield
    except SqlError as error:
        msg = f"{name}: {error}"
        raise SqlError(msg) from error


def night_memory_mb(size: int) -> int:
    """Return the memory for the proof of a run whose files have `size` bytes."""
    share = int(NIGHT_MEMORY_SHARE * size / 1_000_000)
    return min(max(NIGHT_MEMORY_MB, share), NIGHT_MEMORY_MAX_MB)


def _size(folder: Path) -> int:
    """Return the bytes of every Parquet file below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


@cache
def _text(name: str) -> str:
    return (_SQL / name).read_text(encoding="utf-8")


def _names(*, banks: bool, bank_booked: bool) -> list[str]:
    """Return the names of the totals, without those of sheets."""
    left_out = frozenset({OF_SHEETS}) | (frozenset() if banks else OF_BANKS)
    left_out |= frozenset() if banks and bank_booked else OF_LEDGER_OF_BANK
    return sorted({path.name for path in _SQL.glob("T*.sql")} - left_out)


def _located(text: str, *, moved: Mapping[str, str], below: Path = Path()) -> str:
    """Resolve the file paths in a statement, as a process has only one working directory."""
    return _FILE.sub(lambda hit: quoted(str(below / moved.get(hit[1], hit[1]))), text)


def _ordered(text: str) -> str:
    """Wrap a total so that its columns are in order and its figures whole numbers."""
    columns = ", ".join((*NAMES, *(f'coalesce("{side}", 0)::BIGINT AS "{side}"' for side in SIDES)))
    # Our own statements, made of constants.
    return f"SELECT {columns} FROM (\n{text.strip().removesuffix(';')}\n)"  # noqa: S608  # no word of anybody else


def _verify(texts: Mapping[str, str]) -> str:
    """Join all statements into a script for an auditor, who needs only the folder and `duckdb`."""
    totals = _ALL_OF.join(_ordered(texts[name]) for name in sorted(texts) if name[0] == "T")
    return "\n".join(
        (
            _HEAD,
            texts[ROWS],
            "CREATE OR REPLACE TEMP TABLE by_sql AS",
            f"{totals};",
            texts[HELD_AGAINST],
        )
    )


_HEAD = """-- Proves the night whose folder this is, with nothing but DuckDB:
--     cd <the night's folder> && duckdb < proof/verify.sql
-- The first table lists every figure that does not agree (it must be empty); the second one says
-- how many figures were compared, and the verdict of the proof.
"""
