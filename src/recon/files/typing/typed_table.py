"""Convert text columns to typed frames, with one reject for every row that cannot be read.

The reject of a row names its first bad column in schema order and lists the problems of its other
cells, so that a person corrects a row once. Displayed values are free of card numbers, on one line
and of limited length.

Rules between the cells of a row are checked after the column that completes them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.format_limits import REJECTED_ROWS_MAX
from recon.files.formats.raw_table import RawTable, filled, refuse, refuse_too_many_rejects
from recon.files.typing.amounts import AmountColumn, exact_sum, known_currencies
from recon.files.typing.control_figures import Counted, refuse_unproven
from recon.files.typing.instants import InstantColumn, read_instants, what_is_wrong_with_day
from recon.files.typing.mapped_columns import (
    MappedColumns,
    mapped_columns,
    needed_of,
    read_of,
    without_skipped,
)
from recon.files.typing.table_schema import (
    KINDS_WITHOUT_TRANSACTION,
    Cell,
    Grammar,
    TableColumn,
    TableSchema,
)
from recon.files.typing.text_cells import (
    Distinct,
    distinct,
    is_fit,
    is_one_of,
    read_text,
    read_words,
)
from recon.model.business_date import zone_of
from recon.model.money import MINOR_UNITS_MAX
from recon.model.terms import (
    REVERSAL_SUFFIX,
    EntryType,
    InstructionKind,
    KeyAnswer,
    OrderStatus,
    Reject,
    SourceFile,
    SourceKind,
)
from recon.privacy.displayed_text import redacted

WHOLE_ROW = "(row)"
"""Column name in the reject of a row that cannot be split into cells."""

FURTHER_FAULTS_MAX = 3
"""Maximum number of further bad cells listed for a row; the rest is only counted."""

_RULES_CHARACTERS_MAX = 360
"""Maximum length of the list of skip rules in a source's counts."""

KEY_NAMES = ("merchant_id", "account_id", "order_no")
_MONEY = ("entry_type", "currency", "amount")
"""The money columns of a ledger entry."""


@dataclass(slots=True)
class TableReading:
    """A table while its columns are checked, in order."""

    raw: RawTable
    mapped: MappedColumns
    typed: dict[str, Any]
    problems: dict[int, tuple[str, str]]
    """Row number -> (column, reason) of the first problem only."""
    further: dict[int, dict[str, str]] = field(default_factory=dict)
    """Row number -> column -> reason for the other bad cells of such rows."""
    keys_of_bad_rows: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Line of a row that cannot be split into cells -> the key columns that are certain."""
    _distinct: dict[str, Distinct] = field(default_factory=dict)

    def distinct(self, name: str) -> Distinct:
        """Return the distinct texts of a column, cached for the currencies of amount columns."""
        if name not in self._distinct:
            self._distinct[name] = distinct(self.columns[name])
        return self._distinct[name]

    @property
    def columns(self) -> Mapping[str, pa.Array]:
        """Cells in standard form, by our names."""
        return self.mapped.cells

    def note(self, column: str, problems: Mapping[int, str]) -> None:
        """Record the first problem of every row, and those of its other cells."""
        for row, reason in problems.items():
            first, _ = self.problems.setdefault(row, (column, reason))
            if first not in {column, WHOLE_ROW}:
                self.further.setdefault(row, {}).setdefault(column, reason)

    def reason(self, row: int) -> str:
        """Return all problems of a row as one text, redacted."""
        reasons = [redacted(self.problems[row][1])]
        further = list(self.further.get(row, {}).items())
        for column, why in further[:FURTHER_FAULTS_MAX]:
            reasons.append(f"{redacted(self.mapped.theirs.get(column, column))}: {redacted(why)}")
        if len(further) > FURTHER_FAULTS_MAX:
            reasons.append(f"{len(further) - FURTHER_FAULTS_MAX} more cells")
        if "net" in {self.problems[row][0], *self.further.get(row, ())}:
            for name in sorted(self.mapped.sums):
                cells = redacted(self.mapped.displayed[name][row].as_py()) or "nothing"
                reasons[-1] += f", {name} read as {cells} ({redacted(self.mapped.theirs[name])})"
        return "; also ".join(reasons)


def rejects_of(reading: TableReading, *, schema: TableSchema) -> tuple[Reject, ...]:
    """Return one reject for each row that cannot be read, in line order."""
    raw = reading.raw
    rejects = []
    for bad in raw.bad_rows:
        key: dict[str, Any] = dict(reading.keys_of_bad_rows.get(bad.line, {}))
        displayed = redacted(bad.text)
        rejects.append(
            Reject(schema.kind, raw.name, bad.line, WHOLE_ROW, bad.reason, displayed, **key)
        )
    for row, (column, _) in reading.problems.items():
        bad_cells = {column, *reading.further.get(row, ())}
        names: tuple[str, ...] = KEY_NAMES
        if schema.kind is SourceKind.SETTLEMENT and column != WHOLE_ROW:
            names += ("batch_id", "currency")
        key = {name: _key_cell(reading, name, row=row) for name in names if name not in bad_cells}
        if schema.kind is SourceKind.LEDGER and not bad_cells.intersection(_MONEY):
            key |= _money_of(reading, row=row)
        cells = reading.mapped.displayed.get(column)
        value = "" if cells is None else redacted(cells[row].as_py())
        line, displayed = int(raw.lines[row]), redacted(reading.mapped.theirs.get(column, column))
        reason = reading.reason(row)
        rejects.append(Reject(schema.kind, raw.name, line, displayed, reason, value, **key))
    return tuple(sorted(rejects, key=lambda reject: reject.line))


def _money_of(reading: TableReading, *, row: int) -> dict[str, Any]:
    """Return type, currency and amount of a rejected ledger entry, all of which are valid."""
    amounts = reading.typed["amount"]
    if not amounts.given[row]:
        return {}
    stated = {name: reading.columns[name][row].as_py() for name in ("entry_type", "currency")}
    return stated | {"amount": int(amounts.minor_units[row])}


def _key_cell(reading: TableReading, name: str, *, row: int) -> str:
    """Return the cell if it can be trusted, else ""."""
    if name not in reading.columns:  # a bank statement has no merchant and no order
        return ""
    grammar = Grammar.ORDER_KEY if name == "order_no" else Grammar.ACCOUNT
    text: str = reading.columns[name][row].as_py()
    return text if is_fit(text, grammar=grammar) and redacted(text) == text else ""


_ALWAYS_NEEDED = frozenset({*KEY_NAMES, "query_result"})
"""Columns that a gateway row without a payment must still fill."""
_NET = "net"
_UNCUT = frozenset({Grammar.ACCOUNT, Grammar.ORDER_KEY, Grammar.TRANSACTION, Grammar.CODE})
"""Grammars that allow no cell separator."""
Rows = npt.NDArray[np.bool_] | None
"""Mask of the rows to take; None for all."""


class Table(NamedTuple):
    """A file that was read: a frame of `matching.frames.sources`, its rejects and counts."""

    frame: pd.DataFrame
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...]
    """Columns of the file that recon does not know and has not read."""
    rows: npt.NDArray[np.int64]
    """Row number of each row of the frame, among those that no rule left out."""
    counted: Counted
    """Totals to compare with the control totals."""


def proven_table(
    path: Path,
    raw: RawTable,
    *,
    schema: TableSchema,
    rules: Rules,
    layout: FileLayout = STANDARD,
    zone: ZoneInfo | None = None,
) -> Table:
    """Convert text columns to a typed frame and rejects, and check the control totals.

    Args:
        path: The file, which may have a companion file of control totals.
        raw: Its text columns.
        schema: Which table it is.
        rules: How the gateway's fields are mapped.
        layout: How the file is written.
        zone: Time zone of timestamps without an offset, after the layout's own; the default is the
            gateway's for its files, else that of business dates.

    Raises:
        SourceUnreadableError: columns are missing, its control totals differ, or a row is bad in a
            file that must be read as a whole.
    """
    reading = reading_of(raw, schema=schema, rules=rules, layout=layout, zone=zone)
    table = table_of(reading, schema=schema)
    refuse_unproven(
        path, declared=raw.declared, counted=table.counted, rejects=table.rejects, layout=layout
    )
    return table


def reading_of(
    raw: RawTable,
    *,
    schema: TableSchema,
    rules: Rules,
    layout: FileLayout = STANDARD,
    zone: ZoneInfo | None = None,
) -> TableReading:
    """Read every cell of a table and record its problems.

    Raises:
        SourceUnreadableError: a required column is missing.
    """
    _refuse_missing(raw, schema=schema, layout=layout)
    plain = layout.of_all_rows()

    def reads_whole(raw: RawTable) -> npt.NDArray[np.bool_]:
        reading = reading_of(raw, schema=schema, rules=rules, layout=plain, zone=zone)
        return ~np.isin(np.arange(len(raw.lines)), [*reading.problems])

    raw, wrong = without_skipped(raw, schema=schema, layout=layout, reads_whole=reads_whole)
    mapped = mapped_columns(raw, schema=schema, layout=layout)
    keys = _keys_of_wide_rows(raw, schema=schema, layout=layout)
    reading = TableReading(raw, mapped, {}, {}, keys_of_bad_rows=keys)
    for their, reasons in wrong.items():
        ours = (name for name, each in mapped.theirs.items() if each == their)
        reading.note(next(ours, their), reasons)
    if schema.needs_line_end and raw.last_line_open and len(raw.lines):
        reading.note(WHOLE_ROW, {len(raw.lines) - 1: "has no line end, so it may have been cut"})
    without_payment = _without_payment(reading, schema=schema, rules=rules)
    local = ZoneInfo(layout.zone) if layout.zone else zone
    of_gateway = schema.kind is SourceKind.GATEWAY
    local = local or zone_of(rules.gateway.timezone if of_gateway else rules.calendar.timezone)
    for column in schema.columns:
        problems = _read_column(reading, column, kind=schema.kind, zone=local)
        if column.name != _NET or reading.mapped.has_net:
            problems |= _blanks(reading, column, excused=without_payment)
        problems |= reading.mapped.problems.get(column.name, {})
        if column.name not in _ALWAYS_NEEDED and without_payment is not None:
            problems = {row: why for row, why in problems.items() if not without_payment[row]}
        reading.note(column.name, problems)
        if len(reading.problems) + len(raw.bad_rows) > REJECTED_ROWS_MAX:
            row = max(reading.problems)
            refuse_too_many_rejects(
                raw.name, line=int(raw.lines[row]), reason=f"has a wrong {column.name}"
            )
        # What must hold between cells is refused only where each by itself can be read.
        found: dict[int, str] = {}
        if rule := _RULES.get((schema.kind, column.name)):
            for rows, why in rule(reading.columns, reading.typed):
                found |= dict.fromkeys(np.flatnonzero(rows).tolist(), why)
        refused = {row: why for row, why in found.items() if row not in reading.problems}
        reading.note(column.name, refused)
    if without_payment is not None:  # such an answer shows no amount, whatever its cells say
        for value in reading.typed.values():
            if isinstance(value, AmountColumn):
                value.given &= ~without_payment
    if schema.kind is SourceKind.SETTLEMENT:
        _whole_fees(reading)
    return reading


def _keys_of_wide_rows(
    raw: RawTable, *, schema: TableSchema, layout: FileLayout
) -> dict[int, dict[str, str]]:
    """Return line -> merchant, account and order number of rows with surplus cells, if certain.

    It is unknown which cell was split. It was none before the order number if only ids, codes and
    terms come before it and each fits: none of them may contain a separator.
    """
    wide = [bad for bad in raw.bad_rows if bad.cells and not bad.is_short]
    if not wide or "order_no" not in schema.names:
        return {}
    columns = {
        their: pa.array([bad.cells[at] for bad in wide], pa.large_string())
        for at, their in enumerate(raw.header)
    }
    lines = np.array([bad.line for bad in wide], dtype=np.int64)
    mapped = mapped_columns(
        replace(raw, columns=columns, lines=lines, bad_rows=(), numbers={}),
        schema=schema,
        layout=layout,
    )
    ours = {their: name for name, their in mapped.theirs.items()}
    by_name = {column.name: column for column in schema.columns}
    keys = {}
    for row, bad in enumerate(wide):
        key = {name: layout.constants.get(name, "") for name in KEY_NAMES}
        for their in raw.header:
            column = by_name.get(ours.get(their, ""))
            text = "" if column is None else mapped.cells[column.name][row].as_py()
            if column is None or not text or redacted(text) != text:
                break
            if isinstance(column.cell, Grammar):
                if column.cell not in _UNCUT or not is_fit(text, grammar=column.cell):
                    break
            elif isinstance(column.cell, Cell) or text not in column.cell:
                break
            if column.name in key:
                key[column.name] = text
        if all(key.values()):
            keys[bad.line] = key
    return keys


def _whole_fees(reading: TableReading) -> None:
    """Set the fee of fee rows to minus their net, whether it was written as gross or fee."""
    gross, fee, net = (reading.typed[name] for name in ("gross", "fee", "net"))
    words = (EntryType.FEE, f"{EntryType.FEE}{REVERSAL_SUFFIX}")
    rows = is_one_of(reading.columns["entry_type"], words)
    rows &= gross.given & fee.given & net.given
    fee.minor_units[rows] = -net.minor_units[rows]
    gross.minor_units[rows] = 0


def _refuse_missing(raw: RawTable, *, schema: TableSchema, layout: FileLayout) -> None:
    missing = [name for name in needed_of(schema, layout=layout) if name not in raw.header]
    if missing:
        word = "column" if len(missing) == 1 else "columns"
        lacks = f"lacks the {word} {', '.join(missing)}"
        # A first row without known names may be a payee and his account rather than a header.
        if not set(raw.header) & read_of(schema, layout=layout):
            sentence = (
                f"none of its {len(raw.header)} columns has a name that is known: its first row"
            )
            refuse(raw.name, f"{lacks}; {sentence} is no header, or another file's")
        seen = ", ".join(redacted(name) for name in raw.header[:40])
        refuse(raw.name, f"{lacks}; it has {seen}")


def _without_payment(
    reading: TableReading, *, schema: TableSchema, rules: Rules
) -> npt.NDArray[np.bool_] | None:
    """Return the gateway rows that report no payment: only their key must be filled."""
    if schema.kind is not SourceKind.GATEWAY:
        return None
    codes = reading.distinct("query_result")
    given = codes.texts.to_pylist()
    answers = [str(rules.answer_of(code)) for code in given]
    reading.typed["answer"] = pa.array(answers, pa.large_string()).take(pa.array(codes.codes))
    answered = [
        code != "" and answer != KeyAnswer.FOUND
        for code, answer in zip(given, answers, strict=True)
    ]
    return np.array(answered, dtype=bool)[codes.codes]


def _read_column(
    reading: TableReading,
    column: TableColumn,
    *,
    kind: SourceKind,
    zone: ZoneInfo,
) -> dict[int, str]:
    """Store the column's typed values; return the problems of its filled cells."""
    cells = reading.columns[column.name]
    numbers = reading.raw.numbers.get(reading.mapped.theirs.get(column.name, ""))
    match column.cell:
        case Cell.AMOUNT if column.name == _NET and not reading.mapped.has_net:
            gross, fee = (reading.typed[name] for name in ("gross", "fee"))
            given = gross.given & fee.given
            net = np.where(given, gross.minor_units - fee.minor_units, 0)
            reading.typed[_NET] = AmountColumn(net, given)
            large = np.flatnonzero(np.abs(net) > MINOR_UNITS_MAX).tolist()
            return dict.fromkeys(large, "is larger than this product handles")
        case Cell.AMOUNT:
            amounts = reading.typed[column.name] = reading.mapped.amounts[column.name]
            return dict(amounts.problems)
        case Cell.INSTANT:
            instants = read_instants(cells, zone=zone, compact=kind is SourceKind.GATEWAY)
            reading.typed[column.name] = instants
            return instants.problems
        case Cell.CURRENCY:
            reading.typed[column.name] = cells
            codes = reading.distinct(column.name)
            known = known_currencies(codes.texts)
            return codes.by_row(
                {at: why for at, (code, why) in enumerate(known.items()) if code and why}
            )
        case Grammar() as grammar:
            reading.typed[column.name] = cells
            problems = read_text(cells, grammar=grammar, numbers=numbers)
            if grammar is Grammar.DATE:
                days = reading.distinct(column.name)
                odd = {
                    at: why
                    for at, text in enumerate(days.texts.to_pylist())
                    if text and (why := what_is_wrong_with_day(text))
                }
                problems = days.by_row(odd) | problems
            return problems
    reading.typed[column.name] = cells
    return read_words(cells, words=column.cell)


def _blanks(
    reading: TableReading, column: TableColumn, *, excused: npt.NDArray[np.bool_] | None
) -> dict[int, str]:
    is_key = column.name == "order_no" and excused is not None
    if column.may_be_blank and not is_key:
        return {}
    blank = np.array(pc.equal(reading.columns[column.name], ""), dtype=bool)
    if is_key:
        blank &= excused  # an answer without a payment has only its key
    return dict.fromkeys(np.flatnonzero(blank).tolist(), "is blank")


def table_of(reading: TableReading, *, schema: TableSchema) -> Table:
    """Return the rows without problems as a frame, and one reject for each other row."""
    raw = reading.raw
    rejects = rejects_of(reading, schema=schema)
    keep = ~np.isin(np.arange(len(raw.lines)), [*reading.problems])
    # Most files have no reject, and their columns are used without copying them.
    chosen = keep if reading.problems else None
    names = list(schema.names)
    if "answer" in reading.typed:
        names.insert(names.index("query_result") + 1, "answer")
    optional = {
        c.name for c in schema.columns if c.may_be_blank or schema.kind is SourceKind.GATEWAY
    }
    frame = {
        name: series_of(reading.typed[name], keep=chosen, nullable=name in optional)
        for name in names
    }
    frame["source"] = texts_of(filled(raw.name, rows=int(keep.sum())))
    frame["line"] = pd.Series(chosen_rows(raw.lines, keep=chosen), dtype="int64")
    known = reading.mapped.read
    return Table(
        frame=pd.DataFrame(frame, copy=False),
        rejects=rejects,
        source_file=_source_file(raw, rejects, kind=schema.kind, accepted=int(keep.sum())),
        ignored_columns=tuple(redacted(name) for name in raw.header if name not in known),
        rows=np.flatnonzero(keep),
        counted=_counted(reading),
    )


def _counted(reading: TableReading) -> Counted:
    """Count rows and sum the amounts of all rows that were read, rejects included."""
    raw = reading.raw
    amounts = reading.mapped.signed or reading.typed.get("amount")
    if not isinstance(amounts, AmountColumn):
        return Counted(raw.records, {}, raw.records, raw.sha256)
    sums = {}
    unread = len(raw.bad_rows) + int((~amounts.given).sum())
    codes = reading.distinct("currency")
    for number, (code, problem) in enumerate(known_currencies(codes.texts).items()):
        if not problem:
            rows = codes.codes == number
            sums[code] = exact_sum(amounts.minor_units[rows & amounts.given])
    return Counted(raw.records, sums, unread, raw.sha256)


def _source_file(
    raw: RawTable, rejects: tuple[Reject, ...], *, kind: SourceKind, accepted: int
) -> SourceFile:
    return SourceFile(
        kind=kind,
        name=raw.name,
        sha256=raw.sha256,
        size_bytes=raw.size_bytes,
        rows_read=raw.rows_read,
        rows_accepted=accepted,
        rows_rejected=len(rejects),
        rows_skipped=sum(raw.skipped.values()),
        rows_unassigned=sum(not (r.merchant_id and r.account_id) for r in rejects),
        skipped_by=redacted(
            "; ".join(f"{rule}: {n}" for rule, n in raw.skipped.items()),
            characters_max=_RULES_CHARACTERS_MAX,
        ),
    )


def series_of(value: Any, *, keep: Rows, nullable: bool) -> "pd.Series[Any]":
    """Return a column of the frame with the rows of `keep`, or with all of them."""
    match value:
        case AmountColumn() if nullable:
            amounts, given = (
                chosen_rows(part, keep=keep) for part in (value.minor_units, value.given)
            )
            return pd.Series(pd.arrays.IntegerArray(amounts, ~given))
        case AmountColumn():
            return pd.Series(chosen_rows(value.minor_units, keep=keep), dtype="int64")
        case InstantColumn():
            moments = pd.Series(chosen_rows(value.microseconds, keep=keep).view("datetime64[us]"))
            return moments.dt.tz_localize("UTC")
    return texts_of(value if keep is None else value.filter(pa.array(keep)))


def chosen_rows(values: Any, *, keep: Rows) -> Any:
    """Return the rows of `keep`, or all of them without copying."""
    return values if keep is None else values[keep]


def texts_of(cells: pa.Array) -> "pd.Series[str]":
    """Return a column backed by Arrow text, without a Python object for each row."""
    column: pd.Series[str] = cells.to_pandas(types_mapper=lambda _: pd.StringDtype(na_value=np.nan))
    return column


Columns = Mapping[str, pa.Array]
Values = Mapping[str, Any]
Finding = tuple[npt.NDArray[np.bool_], str]
"""(rows, reason why they are rejected); the last reason for a row counts."""


def _refund_amount_given(cells: Columns, _: Values) -> Iterator[Finding]:
    partly = is_one_of(cells["status"], [OrderStatus.PARTIALLY_REFUNDED])
    yield partly & _blank(cells["refund_amount"]), "is blank on a partially_refunded order"


def _action_given(cells: Columns, _: Values) -> Iterator[Finding]:
    details = ~np.all(
        [_blank(cells[name]) for name in ("action_amount", "action_reason", "request_id")], axis=0
    )
    why = "is blank although the row carries details of an action"
    yield details & _blank(cells["action"]), why


def _action_amount_fits(cells: Columns, values: Values) -> Iterator[Finding]:
    action, order = values["action_amount"], values["amount"]
    both = action.given & order.given
    whole = is_one_of(cells["action"], [InstructionKind.CANCEL, InstructionKind.REVIEW])
    part = both & whole & (action.minor_units != order.minor_units)
    yield part, "differs from the order: a cancel or review is whole"
    above = both & (action.minor_units > order.minor_units)
    yield above, "is more than the amount of the order"
    moved = ~is_one_of(cells["action"], [InstructionKind.REVIEW])
    zero = both & (action.minor_units == 0) & moved
    yield zero, "is zero; an action moves money or is left out"


def _instruction_names(name: str) -> "_Rule":
    """Require order and transaction of an instruction, unless its kind has none."""

    def rule(cells: Columns, _: Values) -> Iterator[Finding]:
        yield _blank(cells[name]) & ~is_one_of(cells["kind"], KINDS_WITHOUT_TRANSACTION), "is blank"

    return rule


def _amount_with_currency(of: str) -> "_Rule":
    """Require currency and amount together, or neither."""
    currency, amount = f"{of}_currency", f"{of}_amount"

    def rule(cells: Columns, _: Values) -> Iterator[Finding]:
        alone = _blank(cells[currency]) != _blank(cells[amount])
        yield alone, f"needs {currency} and {amount} together"

    return rule


def _net_adds_up(_: Columns, values: Values) -> Iterator[Finding]:
    gross, fee, net = (values[name] for name in ("gross", "fee", "net"))
    given = gross.given & fee.given & net.given
    wrong = given & (gross.minor_units - fee.minor_units != net.minor_units)
    yield wrong, "is not gross less fee"


def _entry_whole(cells: Columns, values: Values) -> Iterator[Finding]:
    """Require number, dates and amount of an entry together, or none of them."""
    filled = [~_blank(cells[name]) for name in ("entry_no", "booked_on", "value_on")]
    filled.append(values["amount"].given)
    partly = np.any(filled, axis=0) & ~np.all(filled, axis=0)
    yield partly, "needs entry_no, booked_on, value_on and amount together"


_Rule = Callable[[Columns, Values], Iterator[Finding]]
_RULES: Mapping[tuple[SourceKind, str], _Rule] = {
    (SourceKind.ORDERS, "refund_amount"): _refund_amount_given,
    (SourceKind.ORDERS, "action"): _action_given,
    (SourceKind.ORDERS, "action_amount"): _action_amount_fits,
    (SourceKind.LEDGER, "transaction_amount"): _amount_with_currency("transaction"),
    (SourceKind.SETTLEMENT, "net"): _net_adds_up,
    (SourceKind.BANK, "amount"): _entry_whole,
    (SourceKind.BANK, "instructed_amount"): _amount_with_currency("instructed"),
    (SourceKind.INSTRUCTIONS, "order_no"): _instruction_names("order_no"),
    (SourceKind.INSTRUCTIONS, "transaction_id"): _instruction_names("transaction_id"),
}
"""(kind, column that completes the rule and is rejected) -> the rule."""


def _blank(cells: pa.Array) -> npt.NDArray[np.bool_]:
    return np.array(pc.equal(cells, ""), dtype=bool)
