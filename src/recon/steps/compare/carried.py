"""What a run over plain files hands to the next: settlement lines, booked cash, which files told.

A later run judges all lines together. What a file repeats of lines that another one told, here or
in an earlier run, counts once, and a file that was read before is refused by the name of the run
that read it. Of payments that the later run does not compare the lines count in their batch and
their fees only.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import reduce
from operator import attrgetter, or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recon.config.fee_contract import FACTS
from recon.config.rules import Rules
from recon.files.formats.json_text import read_json_object
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_reader import read_raw
from recon.files.formats.raw_table import RawTable
from recon.files.reader import plain_table
from recon.files.reader.files import TableRead
from recon.files.typing.amounts import read_amounts
from recon.files.typing.table_schema import schema_of
from recon.files.typing.text_cells import distinct
from recon.matching.bank.arrived_groups import BALANCE
from recon.matching.bank.bank_frames import covered_to
from recon.matching.bank.receipts import kept_of
from recon.matching.bank.statements import content_of
from recon.matching.breaks.result import AMOUNT_COLUMNS, BREAK_COLUMNS, Reconciliation
from recon.matching.cash.before_books import begins_of
from recon.matching.cash.book_groups import BASES, grouped
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BOOKED,
    BankSource,
    BankStatement,
    chosen,
    together,
)
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import Bools, given
from recon.matching.frames.sources import (
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    MINOR_UNITS_OR_BLANK,
    SETTLEMENT_COLUMNS,
    TEXT,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import ACCOUNT, Place, counts, paired, sums
from recon.matching.frames.versions import REPEAT
from recon.matching.sides.agreed_fees import with_month_volumes
from recon.matching.sides.ledger_side import CLOSERS, entry_versions, is_base_type
from recon.matching.sides.payouts import judged_entries
from recon.matching.sides.settlement_side import PAY_OUT, as_earlier
from recon.model.errors import SourceMissingError, SourceUnreadableError, UsageError
from recon.model.money import format_minor_units
from recon.model.words import ControlTotal, EntryType, GatewayState, Reject, SourceFile, SourceKind
from recon.privacy.shown_text import scrubbed
from recon.steps.compare.result_files import BREAKS, CLOSED_BREAKS, OUT_OF_SIGHT, SUMMARY, Content
from recon.steps.files.bank_files import BankFiles
from recon.steps.ground.csv_columns import csv_parts

_SEEN_STATES = (BREAKS, "matches.csv", "pending.csv", "unverified.csv")


def read_earlier_run(folder: Path) -> Previous:
    """The breaks, with their ids and dates, of the run that wrote a folder.

    Raises:
        SourceMissingError: the folder or one of its files is missing.
        SourceUnreadableError: a file there is not what recon writes.
    """
    if not folder.is_dir():
        msg = f"the folder of the earlier run {folder} does not exist"
        raise SourceMissingError(msg)
    path = folder / SUMMARY
    summary = read_json_object(path)
    closed, away = summary.get(CLOSED_BREAKS, []), summary.get(OUT_OF_SIGHT, {})
    if not isinstance(closed, list) or not isinstance(away, dict):
        msg = f"{path} is not the summary of a run: {CLOSED_BREAKS} or {OUT_OF_SIGHT} is wrong"
        raise SourceUnreadableError(msg)
    return Previous(
        as_of=_as_of(summary, path=path),
        breaks=_breaks(folder / BREAKS),
        chargebacks=_chargebacks(folder),
        closed=frozenset(map(str, closed)),
        away={str(break_id): str(day)[:10] for break_id, day in away.items()},
    )


def _as_of(summary: Mapping[str, object], *, path: Path) -> datetime:
    as_of = summary.get("as_of")
    try:
        moment = datetime.fromisoformat(str(as_of))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        msg = f"{path} is not the summary of a run: as_of is {str(as_of)[:40]!r}"
        raise SourceUnreadableError(msg)
    return moment


def _breaks(path: Path) -> pd.DataFrame:
    raw = _raw(path, columns=BREAK_COLUMNS)
    return pd.DataFrame({name: _column(raw, name, path=path) for name in BREAK_COLUMNS})


def _raw(path: Path, *, columns: tuple[str, ...]) -> RawTable:
    raw = read_raw(path, wanted=frozenset(columns))
    missing = [name for name in columns if name not in raw.header]
    if missing or raw.bad_rows:
        what = f"lacks {', '.join(missing)}" if missing else f"line {raw.bad_rows[0].line} is bad"
        msg = f"{path} is not a file of an earlier run: {what}"
        raise SourceUnreadableError(msg)
    return raw


def _column(raw: RawTable, name: str, *, path: Path) -> "pd.Series[Any]":
    cells = raw.columns[name]
    if name in AMOUNT_COLUMNS:
        every = np.ones(len(cells), dtype=bool)
        currencies = distinct(raw.columns["currency"])
        amounts = read_amounts(cells, currencies=currencies, signed=every)
        if amounts.problems:
            row, reason = next(iter(amounts.problems.items()))
            msg = f"{path}, line {raw.lines[row]}, {name}: {reason}"
            raise SourceUnreadableError(msg)
        return pd.Series(pd.arrays.IntegerArray(amounts.minor_units, ~amounts.given))
    if name == "age_days":
        return _whole_numbers(cells.to_pylist(), path=path)
    return pd.Series(cells.to_pylist(), dtype=TEXT)


def _whole_numbers(texts: list[str], *, path: Path) -> "pd.Series[Any]":
    wrong = [text for text in texts if not (text.isascii() and text.isdecimal())]
    if wrong:
        msg = f"{path} is not a file of an earlier run: age_days is {wrong[0][:20]!r}"
        raise SourceUnreadableError(msg)
    return pd.Series([int(text) for text in texts], dtype=MINOR_UNITS_OR_BLANK)


def _chargebacks(folder: Path) -> pd.DataFrame:
    """KEY_COLUMNS of every set that the earlier run saw as charged back."""
    columns = (*KEY_COLUMNS, "state_gateway")
    parts = []
    for name in _SEEN_STATES:
        raw = _raw(folder / name, columns=columns)
        frame = pd.DataFrame({each: raw.columns[each].to_pylist() for each in columns}, dtype=TEXT)
        seen = frame["state_gateway"] == str(GatewayState.CHARGEBACK)
        parts.append(frame.loc[seen, list(KEY_COLUMNS)])
    return pd.concat(parts, ignore_index=True).drop_duplicates(ignore_index=True)


LINES = "settlement-lines.csv"
BOOKED_CASH = "booked-cash.csv"
FILES = "settlement-files.json"
CARRIED_FILES = (FILES, LINES, BOOKED_CASH)
_KEPT = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line"})
_TOLD = tuple(name for name in _KEPT if name not in FACTS)
"""What makes a line a repeat of another, and what every run hands on."""
_ENTRY = tuple(name for name in LEDGER_COLUMNS if name not in {"source", "line"})
_AMOUNTS = ("gross", "fee", "net")
_OF_BATCH = ("merchant_id", "account_id", "currency", "batch_id")
_REFUSED = (*_OF_BATCH, "source", "line", "column", "reason")
_NAMES = ("order_no", "transaction_id")
Tables = Mapping[SourceKind, tuple[TableRead, ...]]
"""Kind -> the files of a run."""


@dataclass(frozen=True, slots=True)
class FileReadBefore:
    """A settlement file that an earlier run read."""

    name: str
    sha256: str
    run: str
    """The folder of the run that read it first."""
    as_of: str


@dataclass(frozen=True, slots=True)
class Carried:
    """What an earlier run handed on."""

    lines: TableRead
    """SETTLEMENT_COLUMNS, as the files told them."""
    entries: TableRead
    """LEDGER_COLUMNS: fees, reserves and pay-outs of the books, and what closes their groups."""
    files: tuple[FileReadBefore, ...]
    books_since: Mapping[tuple[str, str], str]
    """Merchant and account -> the first day of its books."""
    refused: tuple[Reject, ...]
    """Lines that could not be read, and that no file brought again since."""


def read_carried(folder: Path, *, rules: Rules) -> Carried | None:
    """What the run that wrote a folder handed on; None where it had no settlement.

    Raises:
        SourceMissingError: one of the files is missing.
        SourceUnreadableError: they are not what one run wrote.
    """
    path = folder / FILES
    if not path.exists():
        return None
    document = handed_on_document(path)
    lines = _whole(folder / LINES, kind=SourceKind.SETTLEMENT, rules=rules)
    entries = _whole(folder / BOOKED_CASH, kind=SourceKind.LEDGER, rules=rules)
    try:
        files = tuple(FileReadBefore(**row) for row in document["files"])
        since = {
            (row["merchant_id"], row["account_id"]): str(row["day"])
            for row in document["books_since"]
        }
        refused = tuple(_reject(row) for row in document["rejected"])
    except (KeyError, TypeError) as error:
        msg = f"{path} is not a file of an earlier run: {error}"
        raise SourceUnreadableError(msg) from error
    return Carried(lines, entries, files, since, refused)


def handed_on_document(path: Path) -> dict[str, Any]:
    """A file of what a run handed on, which is of the result beside it.

    Raises:
        SourceMissingError: the summary beside it is missing.
        SourceUnreadableError: it is no JSON object, or of another run.
    """
    document = read_json_object(path)
    if document.get("result") != read_json_object(path.parent / SUMMARY).get("digest"):
        msg = (
            f"{path} is of another run than {SUMMARY} beside it; run `recon reconcile` into this "
            "folder again"
        )
        raise SourceUnreadableError(msg)
    return document


def _reject(row: Mapping[str, Any]) -> Reject:
    cells = {name: row[name] for name in _REFUSED}
    return Reject(kind=SourceKind.SETTLEMENT, value="", **cells)


def _whole(path: Path, *, kind: SourceKind, rules: Rules) -> TableRead:
    """A file of ours, of which every row must be readable."""
    table = plain_table(path, schema=schema_of(kind), rules=rules)
    if table.facts.rejects:
        bad = table.facts.rejects[0]
        msg = f"{path}, line {bad.line}, {bad.column}: {bad.reason}; it is not as its run wrote it"
        raise SourceUnreadableError(msg)
    return table


def refuse_known(tables: Iterable[TableRead], *, known: Iterable[FileReadBefore]) -> None:
    """Refuse a settlement file that was read before, here or by an earlier run.

    Days on which nothing was settled have files that are equal.

    Raises:
        UsageError: names the file and the run that read it.
    """
    before = {file.sha256: file for file in known}
    given_here: dict[str, str] = {}
    for table in tables:
        file = table.facts.source_file
        if not file.rows_read:
            continue
        name = scrubbed(file.name)
        if first := before.get(file.sha256):
            msg = (
                f"the settlement file {name} was read by the run {scrubbed(first.run)} as of "
                f"{first.as_of}, as {scrubbed(first.name)}; its lines are carried on by "
                "--previous: leave it out"
            )
            raise UsageError(msg)
        if other := given_here.get(file.sha256):
            msg = f"the settlement files {scrubbed(other)} and {name} are one file; name it once"
            raise UsageError(msg)
        given_here[file.sha256] = file.name


def with_carried(tables: Tables, *, carried: Carried | None) -> Tables:
    """The tables of a run, each settlement line once, with what was handed on.

    What is open of the lines stays open though no newer ones are given. Without books the entries
    are handed on and not compared: of the run's own payments none would be booked.
    """
    settled, booked = tables[SourceKind.SETTLEMENT], tables[SourceKind.LEDGER]
    if carried is None:
        return {**tables, SourceKind.SETTLEMENT: _each_line_once(settled)}
    settled = _each_line_once((_with_refused(carried, given=settled), *settled))
    if booked:
        booked = (carried.entries, *booked)
    return {**tables, SourceKind.SETTLEMENT: settled, SourceKind.LEDGER: booked}


def _with_refused(carried: Carried, *, given: Sequence[TableRead]) -> TableRead:
    """The lines with those that could not be read, unless a file tells of their batch again."""
    batches = {
        key
        for table in given
        for lines in [table.frame[~is_word(table.frame["entry_type"], PAY_OUT)]]
        for key in zip(*(texts(lines[name]) for name in _OF_BATCH), strict=True)
    }
    batches |= {(*key[:2], "", key[3]) for key in batches}
    refused = tuple(bad for bad in carried.refused if attrgetter(*_OF_BATCH)(bad) not in batches)
    file = carried.lines.facts.source_file
    file = replace(
        file,
        rows_read=file.rows_read + len(refused),
        rows_rejected=file.rows_rejected + len(refused),
    )
    facts = carried.lines.facts._replace(rejects=refused, source_file=file)
    return TableRead(carried.lines.frame, facts)


def _each_line_once(tables: Sequence[TableRead]) -> tuple[TableRead, ...]:
    """The tables, each without what those before it tell.

    A line counts as often as the file that tells it most often: its second of a file is told again
    by the second of another one, not by the first.
    """
    if not tables[1:]:
        return tuple(tables)
    lines = pd.concat([table.frame[[*_TOLD]] for table in tables], ignore_index=True)
    sizes = [len(table.frame) for table in tables]
    lines["nth"] = lines.groupby([np.repeat(range(len(sizes)), sizes), *_TOLD]).cumcount()
    again = np.split(lines.duplicated().to_numpy(), np.cumsum(sizes)[:-1])
    return tuple(_less(table, repeated=rows) for table, rows in zip(tables, again, strict=True))


def lines_totals(
    read: Tables, *, carried: Carried | None, compared: pd.DataFrame | None
) -> Iterator[ControlTotal]:
    """T2 of settlement lines: Σ of the most that one file tells of each = what is compared."""
    tables = (*((carried.lines,) if carried else ()), *read[SourceKind.SETTLEMENT])
    if compared is None or not tables[1:]:
        return
    none = Counter[tuple[Any, ...]]()
    most = reduce(or_, (Counter(_told(table.frame)) for table in tables), none)
    times, net = Counter[Place](), Counter[Place]()
    for cells, number in most.items():
        line = dict(zip(_TOLD, cells, strict=True))
        place = line["merchant_id"], line["account_id"], line["currency"]
        times[place] += number
        net[place] += number * line["net"]
    name = "settlement: each line as often as the file that tells it most often = compared"
    yield from paired("T2", name, left=times, right=counts(compared), measure="count")
    right = sums(compared, column="net")
    yield from paired("T2", name, left=net, right=right, measure="amount")


def told_again(read: Tables, *, tables: Tables) -> Iterator[str]:
    """Of which settlement file lines count once because another one told them: how many, and Σ."""
    kind = SourceKind.SETTLEMENT
    for before, once in zip(read[kind][::-1], tables[kind][::-1], strict=False):
        number = len(before.frame) - len(once.frame)
        if number:
            net = Counter[str]()
            left, right = (sums(table.frame, column="net") for table in (before, once))
            for place in left:
                net[place[2]] += left[place] - right.get(place, 0)
            amounts = (f"{format_minor_units(net[one], currency=one)} {one}" for one in sorted(net))
            yield (
                f"{scrubbed(before.facts.source_file.name)}: {number} lines, net "
                f"{', '.join(amounts)}, were told by another file, too, and count once."
            )


def _told(lines: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    return zip(*(lines[name].tolist() for name in _TOLD), strict=True)


def _less(table: TableRead, *, repeated: Bools) -> TableRead:
    if not repeated.any():
        return table
    file, number = table.facts.source_file, int(repeated.sum())
    file = replace(
        file, rows_accepted=file.rows_accepted - number, rows_skipped=file.rows_skipped + number
    )
    frame = table.frame[~repeated].reset_index(drop=True)
    return TableRead(frame, table.facts._replace(source_file=file))


def as_compared(sources: Sources, *, carried: Carried | None, rules: Rules) -> Sources:
    """The sources with since when books are there, lines of other payments told as earlier ones."""
    known = carried.lines.frame if carried else ()
    sources = with_month_volumes(sources, known=len(known), rules=rules)
    lines, ledger = sources.settlement, sources.ledger
    if lines is None:
        return sources
    if ledger is not None:
        zone = rules.business_calendar.zone
        since = dict(carried.books_since) if carried else {}
        for holder, day in begins_of(ledger, lines=lines, zone=zone).items():
            since[holder] = min(day, since.get(holder, day))
        sources = replace(sources, books_since=since)
    if carried is None:
        return sources
    old = np.zeros(len(lines), dtype=np.bool_)
    old[: len(carried.lines.frame)] = True
    return replace(sources, settlement=as_earlier(lines, rows=old & ~_named(lines, by=sources)))


def _named(lines: pd.DataFrame, *, by: Sources) -> Bools:
    """The lines of payments that the sources speak of."""
    named = np.zeros(len(lines), dtype=np.bool_)
    frames = [frame for frame in (by.orders, by.gateway, by.instructions) if frame is not None]
    for name in _NAMES:
        known = {
            key
            for frame in frames
            for key in zip(*(texts(frame[own]) for own in (*ACCOUNT, name)), strict=True)
            if key[2]
        }
        keys = zip(*(texts(lines[own]) for own in (*ACCOUNT, name)), strict=True)
        named |= np.array([key in known for key in keys], dtype=np.bool_)
    return named


def carried_files(
    result: Reconciliation,
    *,
    sources: Sources,
    tables: Tables,
    carried: Carried | None,
    run: tuple[str, str],
    rules: Rules,
) -> dict[str, Content]:
    """Name -> content of what a run hands on; none where no run of the chain had a settlement.

    Args:
        result: what it came to.
        sources: what was compared.
        tables: what was read, with what was handed on before.
        carried: what was handed on before.
        run: the name of its folder, and its business date.
        rules: how books are kept.
    """
    settled = tables[SourceKind.SETTLEMENT]
    if not settled:
        return {}
    lines = pd.concat([table.frame for table in settled], ignore_index=True)
    refused = [bad for table in settled for bad in table.facts.rejects]
    entries = _cash_of(sources, lines=lines, rules=rules)
    if sources.ledger is None and carried is not None:
        entries = carried.entries.frame
    since = sources.books_since or (carried.books_since if carried else {})
    known = [*(carried.files if carried else ())]
    files = [table.facts.source_file for table in (settled if carried is None else settled[1:])]
    known += [FileReadBefore(file.name, file.sha256, *run) for file in files]
    document = {
        "result": result.digest,
        "books_since": [
            {"merchant_id": merchant, "account_id": account, "day": day}
            for (merchant, account), day in sorted(since.items())
        ],
        "files": [asdict(file) for file in known],
        "rejected": [
            {name: getattr(bad, name) for name in _REFUSED}
            for bad in _by_batch(refused, lines=lines)
        ],
    }
    return {
        FILES: json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        LINES: csv_parts(lines, columns=_kept(lines), amounts=_AMOUNTS),
        BOOKED_CASH: csv_parts(_restated(entries), columns=_ENTRY),
    }


def _kept(lines: pd.DataFrame) -> tuple[str, ...]:
    """The columns that are handed on; method, brand and region where a file told them."""
    facts = {fact for fact in FACTS if lines[fact].ne("").any()}
    return tuple(name for name in _KEPT if name in facts or name not in FACTS)


def _by_batch(refused: Iterable[Reject], *, lines: pd.DataFrame) -> Iterator[Reject]:
    """Each line once; one whose batch cannot be read for every batch of its file."""
    for bad in refused:
        if bad.batch_id:
            yield bad
            continue
        mine = lines[lines["source"].eq(bad.source)]
        keys = {*zip(*(mine[name].tolist() for name in (*ACCOUNT, "batch_id")), strict=True)}
        for merchant, account, batch in sorted(keys):
            yield replace(bad, merchant_id=merchant, account_id=account, batch_id=batch)


def _cash_of(sources: Sources, *, lines: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """The entries of fees, reserves and pay-outs, and those that close a group by its name."""
    ledger = sources.ledger
    if ledger is None:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in _ENTRY})
    cash = is_base_type(ledger["entry_type"], *BASES.values(), EntryType.BANK)
    cash &= ~judged_entries(sources)
    closers = is_base_type(ledger["entry_type"], *CLOSERS) & (texts(ledger["transaction_id"]) == "")
    once = entry_versions(ledger) != REPEAT
    entries = ledger[(cash | closers) & once]
    named = grouped(replace(sources, settlement=lines, ledger=entries), rules=rules)
    names = named.groups if named is not None else {"key": np.array([]), "name": np.array([])}
    words = {*names["key"].tolist(), *names["name"].tolist()} - {""}
    order_no = texts(entries["order_no"])
    of_group = is_word(entries["order_no"], *words)
    of_group |= (order_no == "") & is_word(entries["reference_no"], *words)
    for name in ("order_no", "reference_no"):
        of_group |= entries[name].str.startswith(f"{BALANCE}:").to_numpy(dtype=np.bool_)
    kept: pd.DataFrame = entries[cash[(cash | closers) & once] | of_group]
    return kept


def _restated(entries: pd.DataFrame) -> pd.DataFrame:
    """The entries, amounts in the payment's currency as text with its decimals."""
    amounts, stated = entries["transaction_amount"], given(entries["transaction_amount"])
    cells = zip(stated.tolist(), amounts.tolist(), entries["transaction_currency"], strict=True)
    written = [
        format_minor_units(int(amount), currency=currency) if own else ""
        for own, amount, currency in cells
    ]
    return entries.assign(transaction_amount=pd.Series(written, index=entries.index, dtype="str"))


def remove_others(folder: Path, *, names: Collection[str], kept: Collection[Path]) -> None:
    """Remove what an earlier run into the same folder handed on, or claimed, and this one did not.

    Args:
        folder: of the result.
        names: of all files that a run may hand on.
        kept: what this run wrote.
    """
    for path in {folder / name for name in names} - {*kept}:
        path.unlink(missing_ok=True)


STATEMENTS = "bank-statements.json"
CARRIED_BANK_FILES = (STATEMENTS,)
_ENTRIES = "kept"
"""Under a statement: its entries that are ours, amounts in minor units."""
_OF_ENTRY = tuple(name for name in BANK_ENTRY_COLUMNS if name not in {"statement", "currency"})


@dataclass(frozen=True, slots=True)
class CarriedBank:
    """What an earlier run handed on of banks."""

    source: BankSource
    """Every statement, with the entries in scope."""
    source_file: SourceFile
    """The file that it was handed on in."""
    files: tuple[FileReadBefore, ...]


def read_carried_bank(folder: Path) -> CarriedBank | None:
    """What the run that wrote a folder handed on of banks; None where it knew of none.

    Raises:
        SourceMissingError: the summary beside it is missing.
        SourceUnreadableError: it is not what one run wrote.
    """
    path = folder / STATEMENTS
    if not path.exists():
        return None
    document = handed_on_document(path)
    try:
        files = tuple(FileReadBefore(**row) for row in document["files"])
        source = _source_of(document["statements"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path} is not a file of an earlier run: {error}"
        raise SourceUnreadableError(msg) from error
    _refuse_changed(source, path=path)
    rows = int(source.entries["part"].eq(0).sum())
    size = path.stat().st_size
    name, digest = path.name, sha256_of(path)
    file = SourceFile(SourceKind.BANK, name, digest, size, rows, rows, 0, 0)
    return CarriedBank(source, file, files)


def _source_of(cells_of_statements: Iterable[Mapping[str, Any]]) -> BankSource:
    statements: list[BankStatement] = []
    rows: list[dict[str, Any]] = []
    for number, document in enumerate(cells_of_statements):
        statement = BankStatement(
            **{name: cell for name, cell in document.items() if name != _ENTRIES}
        )
        own = {"statement": number, "currency": statement.currency}
        rows += [
            {**{name: cells[name] for name in _OF_ENTRY}, **own} for cells in document[_ENTRIES]
        ]
        statements.append(statement)
    return BankSource(frame_of(rows, columns=BANK_ENTRY_COLUMNS), tuple(statements))


def _refuse_changed(source: BankSource, *, path: Path) -> None:
    """T15 once more: balances, sums and entries as their run wrote them."""
    entries = source.entries
    booked = entries[entries["status"].eq(BOOKED) & entries["part"].eq(0)]
    sums = booked.groupby("statement")["amount"].sum().to_dict()
    for number, statement in enumerate(source.statements):
        unlike = statement.booked != statement.others + sums.get(number, 0)
        if statement.opening is not None and statement.closing is not None:
            unlike |= statement.opening + statement.booked != statement.closing
        if unlike:
            msg = (
                f"{path}: statement {scrubbed(statement.statement_no)} of "
                f"{scrubbed(statement.source)} does not add up; it is not as its run wrote it: "
                "run `recon reconcile` into this folder again"
            )
            raise SourceUnreadableError(msg)


def with_carried_bank(
    banks: BankFiles | None,
    *,
    carried: CarriedBank | None,
    settlement: pd.DataFrame | None,
    rules: Rules,
) -> BankFiles | None:
    """The statements of a run, and those that were handed on.

    Args:
        banks: what was read now; None where no statement was given.
        carried: what was handed on.
        settlement: SETTLEMENT_COLUMNS or None, for the batches that entries may name.
        rules: the banks.

    Raises:
        UsageError: names a file that an earlier run read, and that run.
    """
    if carried is None:
        return banks
    if banks is None:
        return BankFiles(carried.source, (carried.source_file,))
    first = len(carried.source.statements)
    before = {file.sha256: file for file in carried.files}
    if given_again := [file for file in banks.files if file.sha256 in before]:
        both = together([carried.source, banks.source])
        own = kept_of(both, batches=_batches(settlement), listed=(), rules=rules)
        for file in given_again:
            _refuse_known(file, known=before[file.sha256], own=own, first=first)
    again = _told_again(carried.source, fresh=banks.source)
    old = chosen(carried.source, numbers=[n for n in range(first) if n not in again])
    return BankFiles(together([old, banks.source]), (carried.source_file, *banks.files))


def _refuse_known(file: SourceFile, *, known: FileReadBefore, own: BankSource, first: int) -> None:
    """Refuse a file of which nothing is ours that was not ours when it was read."""
    mine = [n for n, each in enumerate(own.statements) if each.sha256 == file.sha256]
    entries = own.entries[own.entries["statement"].isin(mine)]
    fresh = entries["statement"].ge(first)
    if int(fresh.sum()) > int((~fresh).sum()):
        return
    name = scrubbed(file.name)
    msg = (
        f"the bank's file {name} was read by the run {scrubbed(known.run)} as of {known.as_of}, "
        f"as {scrubbed(known.name)}; what it says of ours is carried on by --previous: leave it out"
    )
    raise UsageError(msg)


def _told_again(carried: BankSource, *, fresh: BankSource) -> frozenset[int]:
    """Statements handed on that a file of this run has whole: with all entries, it counts."""
    now = {_identity(fresh, number) for number in range(len(fresh.statements))}
    return frozenset(
        number for number in range(len(carried.statements)) if _identity(carried, number) in now
    )


def _identity(source: BankSource, number: int) -> tuple[object, ...]:
    statement = source.statements[number]
    named = (statement.iban, statement.form, statement.statement_no, statement.from_date)
    return (*named, statement.created, *content_of(source, number))


def bank_handed_on(
    result: Reconciliation,
    *,
    sources: Sources,
    read: BankFiles | None,
    carried: CarriedBank | None,
    run: tuple[str, str],
    rules: Rules,
) -> dict[str, Content]:
    """Name -> content of what a run hands on of banks; none where no run of the chain had any.

    A statement of an account that the rules do not name, or in another currency than its bank, is
    not handed on, and its file may be given again.

    Args:
        result: what it came to.
        sources: what was compared.
        read: which files it read, those handed on before among them.
        carried: what was handed on before.
        run: the name of its folder, and its business date.
        rules: the banks.
    """
    if sources.bank is None or read is None:
        return {}
    kept = kept_of(sources.bank, batches=_batches(sources.settlement), listed=(), rules=rules)
    currencies = {bank.iban: bank.currency for bank in rules.bank.values()}
    numbers = [
        number
        for number, statement in enumerate(kept.statements)
        if currencies.get(statement.iban) == statement.currency
    ]
    left = {each.sha256 for n, each in enumerate(kept.statements) if n not in {*numbers}}
    known = [*(carried.files if carried else ())]
    before = {file.sha256 for file in known} | left
    if carried is not None:
        before.add(carried.source_file.sha256)
    known += [
        FileReadBefore(file.name, file.sha256, *run)
        for file in read.files
        if file.sha256 not in before
    ]
    if not numbers:
        return {}
    document = {
        "result": result.digest,
        "files": [asdict(file) for file in known],
        "statements": [*_bank_documents(chosen(kept, numbers=numbers))],
    }
    return {STATEMENTS: json.dumps(document, indent=2, ensure_ascii=False) + "\n"}


def _bank_documents(source: BankSource) -> Iterable[dict[str, Any]]:
    entries = source.entries.astype(object).where(source.entries.notna(), None)
    columns = zip(*(entries[name].tolist() for name in _OF_ENTRY), strict=True)
    mine: dict[int, list[dict[str, Any]]] = {n: [] for n in range(len(source.statements))}
    for number, cells in zip(entries["statement"].tolist(), columns, strict=True):
        mine[number].append(dict(zip(_OF_ENTRY, cells, strict=True)))
    for number, statement in enumerate(source.statements):
        yield {**asdict(statement), _ENTRIES: mine[number]}


def _batches(settlement: pd.DataFrame | None) -> list[str]:
    return [] if settlement is None else settlement["batch_id"].unique().tolist()


def by_carried_statements(result: Reconciliation, *, rules: Rules) -> tuple[str, ...]:
    """That the bank is judged by what earlier runs read, and up to which day each is covered."""
    counted = result.bank.get("counted")
    if counted is None:
        return ()
    days = covered_to(counted)
    reach = ", ".join(
        f"{scrubbed(name)} to {days[name]}" if name in days else f"{scrubbed(name)} not at all"
        for name in rules.bank
    )
    sentence = "No statement of a bank was given: those that earlier runs read are judged"
    return (f"{sentence}, covered are {reach}." if reach else f"{sentence}.",)
