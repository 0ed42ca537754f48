"""The control totals once more, in SQL over the files of a night's folder, by DuckDB.

Another engine in another language: it shares the files with the first one, and nothing else. It
reads the folder it is given and nothing beside it, within bounds of memory and time.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from recon.model.words import ControlTotal
from recon.proof.held_against import SHEETS, SHEETS_IN_SQL, not_run, second_proof

if TYPE_CHECKING:
    import duckdb

MEMORY_MB, NIGHT_MEMORY_MB, NIGHT_MEMORY_MAX_MB = 512, 384, 1_536
"""What DuckDB may hold, and for the proof of a night at least and at most; the rest goes to
temporary files."""
NIGHT_MEMORY_SHARE = 1.5
"""For each byte of a night's files: some of a join stays in memory whatever it writes elsewhere,
and grows with the rows (five million payments with their settlement ended at 384 MB)."""
SPILL_GB = 8
"""What it may write there."""
THREADS = 1
SMALL_BYTES = 256 << 10
"""Of all files of a folder: so few rows are summed sooner than a better plan is found for them."""
DEAR_FOR_FEW_ROWS = (
    *("statistics_propagation", "common_subplan", "common_subexpressions", "common_aggregate"),
    *("compressed_materialization", "build_side_probe_side", "reorder_filter", "sum_rewriter"),
    *("join_filter_pushdown", "row_group_pruner", "window_self_join", "late_materialization"),
    *("limit_pushdown", "top_n", "duplicate_groups", "materialized_cte", "cte_inlining"),
    *("join_elimination", "sampling_pushdown", "extension"),
)
"""What DuckDB leaves out where rows are few: passes that only look for a cheaper plan.

Never the order of joins, nor all passes at once: DuckDB 1.5 ends the process (SIGSEGV) over the
SQL of a month without it.
"""
REASON_MAX = 200
"""Characters of what DuckDB says that are shown."""
SECONDS_MAX = 900
"""A night of a million orders takes a few."""
NAMES = ("id", "name", "merchant_id", "account_id", "currency", "measure")
SIDES = ("left", "right")
"""Columns of every statement; the sides are whole numbers: rows, or minor units."""
OF_BANKS = frozenset(
    {"T15_statements.sql", "T16_covered.sql", "T17_exchanged.sql", "T17_in_transit.sql"}
)
"""Totals of a night that has statements of a bank."""
OF_BOOKS_OF_BANK = frozenset({"T19_bank.sql"})
"""And whose books have what arrived there."""
OF_SHEETS = "T13_sheets.sql"
"""Asked when the workbook is written and read back, after all others."""
SHEETS_READ = "proof/sheets.parquet"
_GIVEN = "FROM 'compared/terms.parquet' WHERE name = 'given'"
_ALL_OF = "\nUNION ALL\n"
ROWS, HELD_AGAINST, VERIFY = "rows.sql", "held_against.sql", "verify.sql"
_SQL = Path(__file__).parent / "sql"
_FILE = re.compile(r"'([a-z]+(?:-[0-9]+)?(?:\.aside-[0-9]+)?/[a-z_]+(?:-[0-9]+)?\.parquet)'")
"""A file of a night, from its folder: its step, which may have been written anew, and its name."""
_READ = re.compile(rf"\b(?:FROM|JOIN) {_FILE.pattern}")
"""One that a statement reads as if it were a table."""
_OF_NAMES = '"'


def sql_files(
    *,
    moved: Mapping[str, str] | None = None,
    banks: bool = True,
    books: bool = True,
) -> dict[str, str]:
    """Name -> text of what ships inside a night's folder: each total by itself, and all.

    `moved` is as for `sql_totals`; without `banks` the night has no statement of a
    bank, without `books` these have no entry of what arrived there.
    """
    names = [ROWS, *_names(banks=banks, books=books), OF_SHEETS, HELD_AGAINST]
    every = {name: _text(name) for name in names}
    texts = {name: _moved(text, moved=moved or {}) for name, text in every.items()}
    return {**texts, VERIFY: _verify(texts)}


def proven_in_sql(
    folder: Path,
    *,
    totals: Sequence[ControlTotal],
    account: tuple[str, str],
    moved: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> tuple[ControlTotal, ...]:
    """T14: the figures of a night held against those of SQL, over the files of its folder."""
    by_sql = told_by_sql(folder, moved=moved, own=own)
    is_said = OF_SHEETS in (own or {})
    return held_against_sql(totals, by_sql=by_sql, account=account, with_sheets=is_said)


def told_by_sql(folder: Path, **files: Any) -> tuple[ControlTotal, ...] | str:
    """As `sql_totals`; why not, where SQL did not come to its end."""
    import duckdb

    try:
        return sql_totals(folder, **files)
    except duckdb.Error as error:
        return str(error).partition("\n")[0][:REASON_MAX]


def held_against_sql(
    totals: Sequence[ControlTotal],
    *,
    by_sql: tuple[ControlTotal, ...] | str,
    account: tuple[str, str],
    with_sheets: bool = False,
) -> tuple[ControlTotal, ...]:
    """T14: the figures of a night held against those of SQL (see held_against.second_proof).

    A statement that cannot be run proves nothing: the total fails and says why.
    """
    if isinstance(by_sql, str):
        return (not_run(by_sql, account=account),)
    asked = [total for total in totals if with_sheets or total.id != SHEETS]
    return second_proof(asked, by_sql=by_sql, account=account)


def sheets_in_sql(
    results: Path,
    *,
    sheets: Path,
    totals: Sequence[ControlTotal],
    account: tuple[str, str],
) -> tuple[ControlTotal, ...]:
    """T14 of the totals of the sheets: held against SQL over the results, as `proven_in_sql`.

    Args:
        results: The step `results` of the night, on this machine.
        sheets: The file that will be SHEETS_READ.
        totals: T13, as the night computed it.
        account: Merchant and account of the night.
    """
    import duckdb

    names, is_small = _FILE.findall(_text(OF_SHEETS)), _size(results) <= SMALL_BYTES
    lies = {name: str(results.resolve() / name.partition("/")[2]) for name in names}
    lies[SHEETS_READ] = str(sheets.resolve())
    try:
        with reading(results, sheets.parent, optimized=not is_small) as connection:
            path_of = partial(_path, folder=results, moved=lies)
            text = _located(_ordered(_text(OF_SHEETS)), path_of=path_of)
            by_sql = [ControlTotal(*row) for row in connection.execute(text).fetchall()]
    except duckdb.Error as error:
        why = str(error).partition("\n")[0][:REASON_MAX]
        return (not_run(why, account=account, name=SHEETS_IN_SQL),)
    return second_proof(totals, by_sql=by_sql, account=account, name=SHEETS_IN_SQL)


def sql_totals(
    folder: Path,
    *,
    moved: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> tuple[ControlTotal, ...]:
    """Every control total that the files of a folder tell, as SQL comes to it.

    Args:
        folder: The night's folder, on this machine.
        moved: Files that stand elsewhere in it: path -> path, both from the folder.
        own: The statements sealed in it (see `sql_files`), in the place of ours.

    Raises:
        duckdb.Error: a file is missing or is not what it should be, or a bound was reached.
    """
    path_of = partial(_path, folder=folder, moved=moved or {})
    placed = partial(_located, path_of=path_of)
    sealed = {name: text for name, text in (own or {}).items() if name[0] == "T"}
    size = _size(folder)
    is_small, memory_mb = size <= SMALL_BYTES, night_memory_mb(size)
    with reading(folder, memory_mb=memory_mb, optimized=not is_small) as connection:
        given = {row[0] for row in connection.execute(placed(f"SELECT key {_GIVEN}")).fetchall()}
        names = _names(banks="bank" in given, books="bank_books" in given)
        rows = (own or {}).get(ROWS) or _text(ROWS)
        texts = list(sealed.values()) or [_text(name) for name in names]
        statements = [_ordered(placed(text)) for text in texts]
        if is_small:
            # What is read and prepared once takes half as long; many rows go one total at a time,
            # so that none waits in memory for another.
            files = {name for text in (rows, *texts) for name in _READ.findall(text)}
            connection.execute(_held(map(path_of, files)))
            rows = rows.replace("TEMP VIEW", "TEMP TABLE")
            statements = [_ALL_OF.join(statements)]
        connection.execute(placed(rows))
        return tuple(
            ControlTotal(*row)
            for statement in statements
            for row in connection.execute(statement).fetchall()
        )


@contextmanager
def reading(
    *folders: Path,
    seconds_max: int = SECONDS_MAX,
    memory_mb: int = MEMORY_MB,
    optimized: bool = True,
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """DuckDB that reads these folders and nothing else: no network, no extension, no setting.

    Args:
        folders: What it may read.
        seconds_max: After so long it is interrupted.
        memory_mb: What it may hold; beyond it, it writes to its folder of temporary files.
        optimized: Whether it looks for a better plan of each statement, which says the same.
    """
    # It takes a tenth of a second to load, which most commands need not pay.
    import duckdb

    with tempfile.TemporaryDirectory(prefix="recon-sql-") as spill:
        connection = duckdb.connect(
            ":memory:",
            config={
                "threads": THREADS,
                "memory_limit": f"{memory_mb}MB",
                "temp_directory": spill,
                "max_temp_directory_size": f"{SPILL_GB}GB",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "preserve_insertion_order": False,
            },
        )
        timer = Timer(seconds_max, connection.interrupt)
        timer.daemon = True
        try:
            allowed = ", ".join(quoted(f"{folder.resolve()}/") for folder in folders)
            connection.execute(f"SET allowed_directories = [{allowed}]")
            connection.execute("SET enable_external_access = false")
            # Of what takes longer than two seconds it would draw one among our sentences.
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET parquet_metadata_cache = true")  # no sealed file changes
            if not optimized:
                connection.execute(f"SET disabled_optimizers = {quoted(_left_out())}")
            connection.execute("SET lock_configuration = true")
            timer.start()
            yield connection
        finally:
            timer.cancel()
            connection.close()


@cache
def _left_out() -> str:
    """Of the passes that few rows go without those that this version of DuckDB knows."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    return ",".join(name for name in DEAR_FOR_FEW_ROWS if (name,) in known)


def quoted(text: str, *, quote: str = "'") -> str:
    """A text as SQL writes it; in double quotes it is a name."""
    return quote + text.replace(quote, quote + quote) + quote


def night_memory_mb(size: int) -> int:
    """What the proof of a night may hold, whose files have so many bytes."""
    wanted = int(NIGHT_MEMORY_SHARE * size / 1_000_000)
    return min(max(NIGHT_MEMORY_MB, wanted), NIGHT_MEMORY_MAX_MB)


def _size(folder: Path) -> int:
    """Bytes of every Parquet file below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


@cache
def _text(name: str) -> str:
    return (_SQL / name).read_text(encoding="utf-8")


def _names(*, banks: bool, books: bool) -> list[str]:
    left_out = frozenset() if banks else OF_BANKS
    left_out |= frozenset() if banks and books else OF_BOOKS_OF_BANK
    return [name for name in _totals() if name not in left_out]


@cache
def _totals() -> tuple[str, ...]:
    return tuple(sorted(path.name for path in _SQL.glob("T*.sql") if path.name != OF_SHEETS))


def _moved(text: str, *, moved: Mapping[str, str]) -> str:
    return _FILE.sub(lambda hit: quoted(moved.get(hit[1], hit[1])), text)


def _path(name: str, *, folder: Path, moved: Mapping[str, str]) -> str:
    """Where a file lies on this machine: a process has one working folder for all."""
    return str(folder.resolve() / moved.get(name, name))


def _located(text: str, *, path_of: Callable[[str], str]) -> str:
    """A statement with the paths of its files."""
    return _FILE.sub(lambda hit: quoted(path_of(hit[1])), text)


def _held(paths: Iterable[str]) -> str:
    """Files as tables of the same names, which statements then find before they look for files."""
    return "".join(
        f"CREATE TEMP TABLE {quoted(path, quote=_OF_NAMES)} AS FROM {quoted(path)};\n"
        for path in sorted({*paths})
    )


def _ordered(text: str) -> str:
    """A total with its columns in their order and its figures as whole numbers."""
    columns = ", ".join((*NAMES, *(f'coalesce("{side}", 0)::BIGINT AS "{side}"' for side in SIDES)))
    # Our own statements, put together of constants.
    return f"SELECT {columns} FROM (\n{_bare(text)}\n)"  # noqa: S608  # no word of anybody else is in it


def _bare(text: str) -> str:
    return text.strip().removesuffix(";")


def _verify(texts: Mapping[str, str]) -> str:
    """All of it as one script for an auditor, who needs the folder and the program `duckdb`."""
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
