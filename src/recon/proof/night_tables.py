"""The frames that a comparison reads and makes, as tables of a night's folder, and back.

Nothing is lost on the way there and back: the digest of a result is the same. Rows are in no order;
who writes a table sorts it by its key.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.config.fee_contract import FACTS
from recon.matching.breaks.result import Reconciliation
from recon.matching.breaks.result_rows import identity_of
from recon.matching.frames.arrays import text_column, text_type
from recon.matching.frames.bank_sources import BANK_ENTRY_COLUMNS, BankSource, BankStatement
from recon.matching.frames.digest import Columns
from recon.matching.frames.same_words import said_once, same_word
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTANT,
    INSTRUCTION_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Sources,
    frame_of,
)
from recon.matching.sides.settlement_side import pay_outs
from recon.model.words import ControlTotal, EntryType, Reject, SourceFile, SourceKind

MATCHES, ID = "matches", "match_id"
NAMED_BY = ("merchant_id", "account_id", "order_no")


def without_first_ids(matches: pa.Table) -> pa.Table:
    """The rows of the file, an id blank where it is the first of its account and order number."""
    ids = matches[ID]
    return _with_ids(matches, pc.if_else(pc.equal(ids, _first_ids(matches)), "", ids))


def with_first_ids(matches: pa.Table) -> pa.Table:
    """The way back; a night of before has no blank one."""
    ids = matches[ID]
    blank = pc.equal(ids, "")
    if not pc.any(blank, min_count=0).as_py():
        return matches
    return _with_ids(matches, pc.if_else(blank, _first_ids(matches), ids))


def _first_ids(matches: pa.Table) -> pa.Array:
    names = (text_column(matches[name].cast(pa.large_string())) for name in NAMED_BY)
    return pa.array(identity_of(*names), pa.string())


def _with_ids(matches: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    at = matches.schema.get_field_index(ID)
    return matches.set_column(at, matches.schema.field(at), ids.cast(pa.string()))


Tables = dict[str, pa.Table]
"""By name of the schema, exactly its columns."""

SETTLEMENT, TARIFFS = "settlement", "tariffs"
VOLUMES = "volumes"
"""What months came to; no file at all where no contract asks for it."""
FRAMES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "orders": ("orders", ORDER_COLUMNS),
    "answers": ("gateway", GATEWAY_COLUMNS),
    "ledger": ("ledger", LEDGER_COLUMNS),
    "instructions": ("instructions", INSTRUCTION_COLUMNS),
    "settlement": ("settlement", SETTLEMENT_COLUMNS),
    "universe": ("universe", KEY_COLUMNS),
}
"""File -> field of Sources, and the columns of that frame."""
ITEMS = "items"
RESULTS = (
    *("matches", "pending", "breaks", "unverified", "effects"),
    *("movements", "journals", ITEMS, "held", "sides"),
)
"""Files of a result; each is a frame of the same name."""
_NUMBERS: Any = pd.Int64Dtype()
"""Kinds of columns that may be blank; how they come from Arrow, the stubs of pandas do not say."""
_PLACE = ("source", "line")
_REJECT = SCHEMAS["rejects"].columns.names


def input_tables(sources: Sources) -> Iterator[tuple[str, pa.Table]]:
    """What a night reads, table after table; a source that was not given has one without a row."""
    for name, (field, _) in FRAMES.items():
        frame: pd.DataFrame | None = getattr(sources, field)
        no_rows = SCHEMAS[name].columns.empty_table()
        yield name, no_rows if frame is None else table_of(frame, name=name)
    yield "rejects", table_of_rows(map(_cells_of_reject, sources.rejects), name="rejects")
    yield "files", table_of_rows(map(_cells_of_file, sources.files), name="files")
    yield from bank_tables(sources).items()
    if sources.volumes is not None:
        yield VOLUMES, table_of(sources.volumes, name=VOLUMES)
    yield from tariff_tables(sources.settlement).items()


def absent_of(sources: Sources) -> tuple[str, ...]:
    """Files without a row because the source was not given at all."""
    return tuple(name for name, (field, _) in FRAMES.items() if getattr(sources, field) is None)


def tariff_tables(lines: pd.DataFrame | None) -> Tables:
    """What settlement lines tell beside their amounts; no file at all where none tells any."""
    if lines is None:
        return {}
    rows = np.logical_or.reduce([lines[fact].ne("").to_numpy() for fact in FACTS])
    return {TARIFFS: table_of(lines[rows], name=TARIFFS)} if rows.any() else {}


def bank_tables(sources: Sources) -> Tables:
    """What banks say; no file at all where no statement was given."""
    source = sources.bank
    if source is None:
        return {}
    payouts = source.night.payouts if source.night else sources.settlement
    rows = SCHEMAS["payouts"].columns.empty_table()
    if payouts is not None:
        rows = table_of(payouts[pay_outs(payouts)], name="payouts")
    return {
        "statements": table_of_rows(_cells_of_statements(source), name="statements"),
        "bank": table_of(source.entries, name="bank"),
        "payouts": rows,
    }


def bank_of_tables(tables: Mapping[str, pa.Table]) -> BankSource:
    """The way back: entries and statements; what else a night knows of them, its terms say."""
    names = {field.name for field in fields(BankStatement)}
    statements = []
    for row in tables["statements"].to_pylist():
        cells = {name: cell for name, cell in row.items() if name in names}
        statements.append(BankStatement(**{**cells, "days_given": bool(cells["days_given"])}))
    entries = frame_of_table(tables["bank"])[[*BANK_ENTRY_COLUMNS]]
    return BankSource(entries, tuple(statements))


def payouts_of_tables(tables: Mapping[str, pa.Table]) -> pd.DataFrame:
    """SETTLEMENT_COLUMNS of the pay-out rows that banks are asked about."""
    rows = tables["payouts"].to_pylist()
    blank = {"entry_type": EntryType.PAYOUT.value, "gross": 0, "fee": 0}
    return frame_of([{**blank, **row} for row in rows], columns=SETTLEMENT_COLUMNS)


def _cells_of_statements(source: BankSource) -> Iterator[dict[str, Any]]:
    for number, statement in enumerate(source.statements):
        cells = asdict(statement)
        yield {**cells, "number": number, "days_given": int(statement.days_given)}


def result_tables(result: Reconciliation) -> Iterator[tuple[str, pa.Table]]:
    """What a night came to, table after table: none waits for another."""
    for name in RESULTS:
        if name == ITEMS:
            yield name, result.every_item.passing()
        else:
            yield name, filed_table(getattr(result, name), name=name)
    for name, frame in result.bank.items():
        yield name, table_of(frame, name=name)


def totals_table(totals: Iterable[ControlTotal]) -> pa.Table:
    """The control totals as they were computed in the night's own process."""
    columns = SCHEMAS["totals"].columns.names
    rows = ({name: getattr(total, name) for name in columns} for total in totals)
    return table_of_rows(rows, name="totals")


def table_of(frame: Columns | pd.DataFrame, *, name: str) -> pa.Table:
    """A frame as the table of a file; what else the frame holds is left out."""
    return table_of_schema(frame, schema=SCHEMAS[name].columns)


def table_of_parts(frames: Iterable[pd.DataFrame], *, name: str) -> pa.Table:
    """Frames one after another as one table, its words numbered as they come.

    It holds nothing of what the frames were read from.
    """
    tables = [
        table.take(pa.array(np.arange(len(table))))
        for table in (table_of(frame, name=name) for frame in frames)
    ]
    return pa.concat_tables([SCHEMAS[name].columns.empty_table(), *tables]).unify_dictionaries()


def table_of_schema(frame: Columns | pd.DataFrame, *, schema: pa.Schema) -> pa.Table:
    """As `table_of`, of any columns."""
    if not len(frame) and {*schema.names} <= {*frame.columns}:
        return schema.empty_table()
    return pa.table([_column(frame[field.name], field=field) for field in schema], schema=schema)


def table_of_rows(rows: Iterable[Mapping[str, Any]], *, name: str) -> pa.Table:
    """A few rows as the table of a file."""
    schema = SCHEMAS[name].columns
    cells = [*rows]
    columns = [
        pa.array([row[field.name] for row in cells], _plain(field.type)).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def filed_table(frame: Columns | pd.DataFrame, *, name: str) -> pa.Table:
    """The table of a file, without what other columns of it say."""
    table = table_of(frame, name=name)
    return without_first_ids(table) if name == MATCHES else table


def plain_table(table: pa.Table, *, name: str) -> pa.Table:
    """The way back: a table as it was before its file left that out."""
    return with_first_ids(table) if name == MATCHES else table


def frame_of_table(table: pa.Table) -> pd.DataFrame:
    """The way back: a frame with the types that the engine wants."""
    if not table.num_rows:
        # Of a file without a row, as most of a small night are, the frame is always the same one.
        return _no_rows(table.schema, texts=text_type()).copy(deep=False)
    return _frame(table, texts=text_type())


def _frame(table: pa.Table, *, texts: Any) -> pd.DataFrame:
    columns = {
        field.name: _array(table.column(field.name), field=field, texts=texts)
        for field in table.schema
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))


@cache
def _no_rows(schema: pa.Schema, *, texts: Any) -> pd.DataFrame:
    return _frame(schema.empty_table(), texts=texts)


def frames_of_inputs(tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """The frames of Sources by field; whether a source was given, other files tell."""
    frames = {field: frame_of_table(tables[name]) for name, (field, _) in FRAMES.items()}
    frames["settlement"] = with_tariffs(frames["settlement"], table=tables.get(TARIFFS))
    return {field: frames[field][[*columns]] for field, columns in FRAMES.values()}


def with_tariffs(lines: pd.DataFrame, *, table: pa.Table | None) -> pd.DataFrame:
    """The lines with what a file of its own tells of them, by source and line."""
    if table is None:
        return lines.assign(**dict.fromkeys(FACTS, same_word("", size=len(lines))))
    tariffs = frame_of_table(table)[[*_PLACE, *FACTS]]
    whole = lines.merge(tariffs, on=[*_PLACE], how="left")
    return whole.assign(**{fact: whole[fact].fillna("") for fact in FACTS})


def rejects_of(table: pa.Table) -> tuple[Reject, ...]:
    """The rows that could not be read; of a night before 0.2.0 without what was kept since."""
    rows = table.select([name for name in _REJECT if name in table.column_names]).to_pylist()
    return tuple(Reject(**{**row, "kind": SourceKind(row["kind"])}) for row in rows)


def files_of(table: pa.Table) -> tuple[SourceFile, ...]:
    """The files that were read."""
    rows = table.to_pylist()
    return tuple(SourceFile(**{**row, "kind": SourceKind(row["kind"])}) for row in rows)


def totals_of(table: pa.Table) -> tuple[ControlTotal, ...]:
    """The control totals of a night."""
    return tuple(ControlTotal(**row) for row in table.to_pylist())


def _cells_of_reject(reject: Reject) -> dict[str, Any]:
    return {name: _text(getattr(reject, name)) for name in _REJECT}


def _cells_of_file(file: SourceFile) -> dict[str, Any]:
    return {name: _text(getattr(file, name)) for name in SCHEMAS["files"].columns.names}


def _text(value: object) -> object:
    return str(value) if isinstance(value, SourceKind) else value


def _column(column: "pd.Series[Any]", *, field: pa.Field) -> pa.ChunkedArray:
    """One column; a text that is not given is blank, never null."""
    kind = field.type
    if not (pa.types.is_dictionary(kind) or pa.types.is_string(kind)):
        return pa.chunked_array([pa.array(column, type=kind, from_pandas=True)])
    array: Any = pa.array(column, from_pandas=True)
    words = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    if words.null_count or words.type == pa.null():
        words = words.cast(pa.string()).fill_null("")
    if pa.types.is_dictionary(kind):
        words = words.dictionary_encode()
    return words.cast(kind)


def _array(column: pa.ChunkedArray, *, field: pa.Field, texts: Any) -> Any:
    """One column of a frame, without the frame's names and numbers of rows."""
    kind: Any = field.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        words = column.cast(pa.string())
        once = said_once(words.chunks, size=len(words))
        return texts.__from_arrow__(words) if once is None else once.array
    if pa.types.is_timestamp(kind):
        return column.to_pandas().astype(INSTANT).array
    return _NUMBERS.__from_arrow__(column) if field.nullable else column.to_numpy()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
