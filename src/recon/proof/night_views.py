"""SQL over many runs: a read-only view for each kind of file, for ad-hoc questions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.model.errors import UsageError
from recon.proof.sql_session import SqlError, SqlSession, quoted, reading

VIEWS = (
    *("breaks", "effects", "matches", "pending", "unverified", "movements", "journals"),
    *("totals", "orders", "answers", "ledger", "settlement"),
)
"""Files that are views over all runs, by the names of their schemas."""
NIGHT_COLUMNS = (
    *("run_id", "merchant_id", "account_id", "business_date", "mode", "verdict"),
    "is_newest",
)
IS_LAST = "is_last"
"""Among the newest runs of each date: that of its account's last business date."""
FLAGS = ("is_newest", IS_LAST)
DECISION_COLUMNS = ("run_id", "merchant_id", "account_id", "business_date", "decision", "what")
ROWS_MAX = 10_000
"""Maximum rows of an answer that are shown."""
SECONDS_MAX = 300
"""Time limit of a question."""


@dataclass(frozen=True, slots=True)
class NightFolder:
    """The folder of a run, for views over many."""

    about: Mapping[str, object]
    """NIGHT_COLUMNS."""
    folder: Path
    files: Mapping[str, Path]
    """Name of a schema -> the file that holds its rows."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question."""

    rows: pa.Table
    is_whole: bool
    """Whether these are all rows."""
    purged: tuple[str, ...] = ()
    """Runs of which only breaks, totals and decisions are left, each as a sentence."""


def ask(statement: str, *, nights: tuple[NightFolder, ...], decisions: pa.Table) -> Answered:
    """Run one SELECT over all runs.

    Args:
        statement: The question, over VIEWS, `nights` and `decisions`.
        nights: The runs.
        decisions: DECISION_COLUMNS, all text.

    Raises:
        UsageError: it is not one SELECT, or DuckDB cannot answer it; the message says why.
    """
    with opened(nights, decisions=decisions) as sql:
        try:
            if sql.kinds(statement) != ["SELECT"]:
                msg = "ask one question, a single SELECT: nights are read, never written"
                raise UsageError(msg)
            bare = statement.strip().rstrip(";")
            # Only a SELECT is valid in parentheses.
            bounded = f"SELECT * FROM (\n{bare}\n) LIMIT {ROWS_MAX + 1}"  # noqa: S608
            rows = sql.table(bounded)
        except SqlError as error:
            msg = f"DuckDB cannot answer this: {error}"
            raise UsageError(msg) from error
    return Answered(rows.slice(0, ROWS_MAX), rows.num_rows <= ROWS_MAX)


@contextmanager
def opened(nights: tuple[NightFolder, ...], *, decisions: pa.Table) -> Iterator[SqlSession]:
    """Open DuckDB with the views; it can read the folders of these runs and nothing else."""
    with reading(*(night.folder for night in nights), seconds_max=SECONDS_MAX) as sql:
        nights = _with_last(nights)
        rows = [dict(night.about) for night in nights]
        texts = [(name, pa.string()) for name in NIGHT_COLUMNS if name not in FLAGS]
        schema = pa.schema([*texts, *((name, pa.bool_()) for name in FLAGS)])
        sql.register("nights", pa.Table.from_pylist(rows, schema=schema))
        sql.register("decisions", decisions)
        for name in VIEWS:
            pieces = [_of_night(name, night=night) for night in nights if name in night.files]
            rows_of_all = "\nUNION ALL BY NAME\n".join(pieces) or _no_rows(name)
            sql.execute(f"CREATE VIEW {name} AS\n{rows_of_all}")
        yield sql


def _with_last(nights: tuple[NightFolder, ...]) -> tuple[NightFolder, ...]:
    """Add IS_LAST to the runs."""
    last: dict[tuple[object, object], str] = {}
    for night in nights:
        if night.about["is_newest"]:
            account = night.about["merchant_id"], night.about["account_id"]
            last[account] = max(last.get(account, ""), str(night.about["business_date"]))
    return tuple(
        replace(
            night,
            about={
                **night.about,
                IS_LAST: night.about["is_newest"]
                and night.about["business_date"]
                == last[night.about["merchant_id"], night.about["account_id"]],
            },
        )
        for night in nights
    )


def _of_night(name: str, *, night: NightFolder) -> str:
    own = ("run_id", "business_date", *FLAGS)
    cells = ", ".join(
        f"{quoted(str(night.about[column]))}{'::BOOLEAN' * (column in FLAGS)} AS {column}"
        for column in own
    )
    # Names and paths are quoted; nothing else is put into the statement.
    return f"SELECT {cells}, * FROM read_parquet({quoted(str(night.files[name]))})"  # noqa: S608


def _no_rows(name: str) -> str:
    kinds = {"int64": "BIGINT", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
    cells = ", ".join(
        f'NULL::{kinds.get(str(field.type), "VARCHAR")} AS "{field.name}"'
        for field in SCHEMAS[name].columns
    )
    own = ", ".join(("'' AS run_id, '' AS business_date", *(f"false AS {flag}" for flag in FLAGS)))
    return f"SELECT {own}, {cells} WHERE false"  # names of our own schemas
