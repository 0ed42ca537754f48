"""Converts the frames of a comparison to tables of a run's folder, and back.

Nothing is lost in either direction: the digest of a result stays the same. Rows are in no order;
whoever writes a table sorts it by its key.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import date, datetime
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.config.fee_contract import FACTS
from recon.config.rules import Rules
from recon.matching.bank.pairing import bank_of
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.arrays import filled, text_column, text_type
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BankSource,
    BankStatement,
    NightOfBank,
    RefusedBankFile,
)
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTANT,
    INSTRUCTION_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    VANISHED_COLUMNS,
    AgreedWriteOffs,
    Exported,
    LeftOut,
    LoadCounts,
    Previous,
    SettledDays,
    Sources,
    frame_of,
)
from recon.matching.sides.instruction_side import with_each_instruction_once
from recon.matching.sides.settlement_side import is_payout
from recon.model.money import exponent
from recon.model.terms import ControlTotal, EntryType, Quarantined, Reject, SourceFile, SourceKind
from recon.proof.ledger_bridge import ARRIVED_STEPS, LedgerSteps

OfFiles = TypeVar("OfFiles", Reject, SourceFile)
Tables = dict[str, pa.Table]
"""Name of a schema -> table with exactly its columns."""

SETTLEMENT, TARIFFS = "settlement", "tariffs"
TERMS, STEPS, KNOWN, OPENING = "terms", "steps", "known", "opening"
PREVIOUS = (TERMS, KNOWN, OPENING)
"""Tables with what the previous run left open."""
VOLUMES = "volumes"
"""Monthly volumes; no file at all where no contract needs it."""
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
"""Type of integer columns that may be blank; pandas stubs lack its Arrow conversion."""
_PLACE = ("source", "line")


def input_tables(sources: Sources) -> Iterator[tuple[str, pa.Table]]:
    """Yield the input tables of a run; a source that was not given has one without rows."""
    for name, (field, _) in FRAMES.items():
        frame: pd.DataFrame | None = getattr(sources, field)
        no_rows = SCHEMAS[name].columns.empty_table()
        yield name, no_rows if frame is None else table_of(frame, name=name)
    yield "rejects", table_of_items(sources.rejects, name="rejects")
    yield "files", table_of_items(sources.files, name="files")
    yield from bank_tables(sources).items()
    if sources.volumes is not None:
        yield VOLUMES, table_of(sources.volumes, name=VOLUMES)
    lines = sources.settlement
    if lines is not None:
        rows = np.logical_or.reduce([lines[fact].ne("").to_numpy() for fact in FACTS])
        if rows.any():
            yield TARIFFS, table_of(lines[rows], name=TARIFFS)


def absent_of(sources: Sources) -> tuple[str, ...]:
    """Return the files that are empty because the source was not given at all."""
    return tuple(name for name, (field, _) in FRAMES.items() if getattr(sources, field) is None)


def bank_tables(sources: Sources) -> Tables:
    """Return the bank data; no table at all where no statement was given."""
    source = sources.bank
    if source is None:
        return {}
    payouts = source.night.payouts if source.night else sources.settlement
    rows = SCHEMAS["payouts"].columns.empty_table()
    if payouts is not None:
        rows = table_of(payouts[is_payout(payouts)], name="payouts")
    statements = (
        {**asdict(statement), "number": number, "days_given": int(statement.days_given)}
        for number, statement in enumerate(source.statements)
    )
    return {
        "statements": table_of_rows(statements, name="statements"),
        "bank": table_of(source.entries, name="bank"),
        "payouts": rows,
    }


def result_tables(result: Reconciliation) -> Iterator[tuple[str, pa.Table]]:
    """Yield the result tables, one at a time to save memory."""
    for name in RESULTS:
        rows = getattr(result, name)
        yield name, rows if name == ITEMS else table_of(rows, name=name)
    for name, frame in result.bank.items():
        yield name, table_of(frame, name=name)


def totals_table(totals: Iterable[ControlTotal]) -> pa.Table:
    """Return the control totals as they were computed in the run's own process."""
    return table_of_items(totals, name="totals")


def table_of(frame: pd.DataFrame, *, name: str) -> pa.Table:
    """Convert a frame to the table of a file; other columns of the frame are left out."""
    return table_of_schema(frame, schema=SCHEMAS[name].columns)


def table_of_frames(frames: Iterable[pd.DataFrame], *, name: str) -> pa.Table:
    """Concatenate frames into one table, its dictionaries unified.

    The table keeps no reference to what the frames were read from.
    """
    tables = [
        table.take(pa.array(np.arange(len(table))))
        for table in (table_of(frame, name=name) for frame in frames)
    ]
    return pa.concat_tables([SCHEMAS[name].columns.empty_table(), *tables]).unify_dictionaries()


def table_of_schema(frame: pd.DataFrame, *, schema: pa.Schema) -> pa.Table:
    """Convert a frame as `table_of`, for any schema."""
    if not len(frame) and {*schema.names} <= {*frame.columns}:
        return schema.empty_table()
    return pa.table([_column(frame[field.name], field=field) for field in schema], schema=schema)


def table_of_rows(rows: Iterable[Mapping[str, Any]], *, name: str) -> pa.Table:
    """Convert a few rows to the table of a file."""
    schema = SCHEMAS[name].columns
    cells = [*rows]
    columns = [
        pa.array([row[field.name] for row in cells], _plain(field.type)).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def table_of_items(items: Iterable[object], *, name: str) -> pa.Table:
    """Convert a few objects to the table of a file, whose columns are their fields."""
    columns = SCHEMAS[name].columns.names
    cells = ([getattr(item, column) for column in columns] for item in items)
    # An enum member becomes its text.
    texts = ([str(cell) if isinstance(cell, str) else cell for cell in row] for row in cells)
    return table_of_rows((dict(zip(columns, row, strict=True)) for row in texts), name=name)


def frame_of_table(table: pa.Table) -> pd.DataFrame:
    """Convert a table to a frame with the types that the engine expects."""
    columns = {field.name: _array(table.column(field.name), field=field) for field in table.schema}
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))


def with_tariffs(lines: pd.DataFrame, *, table: pa.Table | None) -> pd.DataFrame:
    """Add the fee facts of their own file to the lines, by source and line."""
    if table is None:
        return lines.assign(**dict.fromkeys(FACTS, text_column(filled("", size=len(lines)))))
    tariffs = frame_of_table(table)[[*_PLACE, *FACTS]]
    whole = lines.merge(tariffs, on=[*_PLACE], how="left")
    return whole.assign(**{fact: whole[fact].fillna("") for fact in FACTS})


def _of_files(table: pa.Table, kind: type[OfFiles]) -> tuple[OfFiles, ...]:
    """Restore rejected rows, or the files that were read."""
    rows = table.to_pylist()
    return tuple(kind(**{**row, "kind": SourceKind(row["kind"])}) for row in rows)


def totals_of(table: pa.Table) -> tuple[ControlTotal, ...]:
    """Restore the control totals of a run."""
    return tuple(ControlTotal(**row) for row in table.to_pylist())


def _column(column: "pd.Series[Any]", *, field: pa.Field) -> pa.ChunkedArray:
    """Convert one column; a text that is not given is blank, never null."""
    kind = field.type
    if not (pa.types.is_dictionary(kind) or pa.types.is_string(kind)):
        return pa.chunked_array([pa.array(column, type=kind, from_pandas=True)])
    array: Any = pa.array(column, from_pandas=True)
    labels = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    if labels.null_count or labels.type == pa.null():
        labels = labels.cast(pa.string()).fill_null("")
    if pa.types.is_dictionary(kind):
        labels = labels.dictionary_encode()
    return labels.cast(kind)


def _array(column: pa.ChunkedArray, *, field: pa.Field) -> Any:
    """Convert one column of a table, without the cost of a frame."""
    kind: Any = field.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return text_type().__from_arrow__(column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        return column.to_pandas().astype(INSTANT).array
    return _NUMBERS.__from_arrow__(column) if field.nullable else column.to_numpy()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


Cells = dict[str, Any]
_STORED = ("accepted", "new", "repeat", "superseding")
_OPTIONAL = ("ledger", "instructions", "settlement", "universe")


def compared_tables(
    sources: Sources,
    *,
    rules: Rules,
    previous: Previous | None,
    ledger_sums: LedgerSteps,
    account: tuple[str, str] = ("", ""),
    carried: tuple[int, Mapping[str, int]] | None = None,
) -> Tables:
    """Return the small tables: terms, steps, agreed, known, quarantined and opening.

    Args:
        sources: the compared sources.
        rules: the rules of the comparison.
        previous: what the previous run left open.
        ledger_sums: every step of the ledger's money (see ledger_bridge.ledger_steps).
        account: merchant and account of the run; blank where plain files may hold several.
        carried: how many breaks the previous run stored as open, and their exposure by currency
            (minor units); None: it stored none, and nothing is compared with it.
    """
    terms = [*_terms(sources, rules=rules, previous=previous)]
    terms.append(_term("ledger_of", account[0], label=account[1]))
    if carried is not None:
        count, exposure = carried
        terms.append(_term("carried_of", account[0], label=account[1]))
        terms.append(_term("carried", "", label="count", number=count))
        for currency, amount in exposure.items():
            terms.append(_term("carried", currency, label="amount", number=amount))
    breaks, write_offs = SCHEMAS[OPENING].columns.empty_table(), sources.agreed_write_offs
    listed = {"break": write_offs.breaks, "entry": write_offs.entries or {}} if write_offs else {}
    agreed = (
        {"kind": kind, "id": name, "currency": currency, "amount": amount}
        for kind, each in listed.items()
        for name, (currency, amount) in each.items()
    )
    return {
        TERMS: table_of_rows(terms, name=TERMS),
        STEPS: steps_table(sources, ledger_sums=ledger_sums),
        "agreed": table_of_rows(agreed, name="agreed"),
        KNOWN: table_of_rows(_known(sources, previous=previous), name=KNOWN),
        "quarantined": table_of_items(sources.quarantined, name="quarantined"),
        OPENING: breaks if previous is None else table_of(previous.breaks, name=OPENING),
    }


def steps_table(sources: Sources, *, ledger_sums: LedgerSteps) -> pa.Table:
    """Return what became of rows and of the ledger's money, step by step."""
    rows = [*_stored(with_each_instruction_once(sources).merged_rows)]
    for kind, steps in sources.arrived.items():
        rows += (_step("arrived", str(kind), step, number=each) for step, each in steps.items())
    for currency, moved in ledger_sums.items():
        for step, amount in moved.items():
            rows.append(_step("ledger", "ledger", step, number=amount, currency=currency))
    return table_of_rows(rows, name=STEPS)


def stored_table(files: Mapping[str, LoadCounts]) -> pa.Table:
    """Return the rows of table `steps` about how the store took some files."""
    return table_of_rows(_stored(files), name="steps")


def _grouped(table: pa.Table, *, by: str) -> dict[str, list[Cells]]:
    rows: dict[str, list[Cells]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row[by]].append(row)
    return rows


def sources_of_tables(tables: Mapping[str, pa.Table]) -> Sources:
    """Restore the compared sources from the inputs and the small tables."""
    terms, steps = _grouped(tables[TERMS], by="name"), _grouped(tables[STEPS], by="way")
    known, agreed = _grouped(tables[KNOWN], by="kind"), _grouped(tables["agreed"], by="kind")
    given = {row["key"] for row in terms["given"]}
    frames: dict[str, Any] = {}
    for name, (field, columns) in FRAMES.items():
        frames[field] = None
        if field in given or field not in _OPTIONAL:
            frame = frame_of_table(tables[name])
            if name == SETTLEMENT:
                frame = with_tariffs(frame, table=tables.get(TARIFFS))
            frames[field] = frame[[*columns]]
    of_source: dict[str, dict[str, dict[str, int]]] = {}
    for way in ("stored", "arrived"):
        for row in steps[way]:
            numbers = of_source.setdefault(way, {}).setdefault(row["source"], {})
            numbers[row["step"]] = row["number"]
    ledger_sums: dict[str, dict[str, int]] = {}
    for row in steps["ledger"] if "ledger_sums" in given else ():
        if row["step"] in ARRIVED_STEPS:
            ledger_sums.setdefault(row["currency"], {})[row["step"]] = row["number"]
    write_offs = {
        kind: {row["id"]: (row["currency"], row["amount"]) for row in agreed[kind]}
        for kind in ("break", "entry")
    }
    entries = write_offs["entry"] if "agreed_entries" in given else None
    unread = (
        (row["merchant_id"], row["account_id"], row["currency"], row["id"])
        for row in known["unread"]
    )
    days = {row["key"]: row["label"] for row in terms["settled_days"]}
    return Sources(
        **frames,
        rejects=_of_files(tables["rejects"], Reject),
        files=_of_files(tables["files"], SourceFile),
        merged_rows={
            source: LoadCounts(**counts) for source, counts in of_source.get("stored", {}).items()
        },
        arrived={
            SourceKind(source): numbers for source, numbers in of_source.get("arrived", {}).items()
        },
        ledger_sums=ledger_sums,
        exported=tuple(
            Exported(row["id"], row["currency"], row["number"], bool(row["amount"]))
            for row in known["exported"]
        ),
        agreed_write_offs=AgreedWriteOffs(write_offs["break"], entries)
        if "agreed" in given
        else None,
        opening_balance=tuple(
            LeftOut(row["id"], row["currency"], row["number"], row["amount"])
            for row in known["opening"]
        ),
        settled=SettledDays(**days) if days else None,
        ledger_since={
            (row["key"], row["label"]): date.fromisoformat(str(row["number"])).isoformat()
            for row in terms["ledger_since"]
        },
        unread_batches=frozenset(unread) if "unread" in given else None,
        volumes=frame_of_table(tables[VOLUMES]) if VOLUMES in tables else None,
        bank=_bank_of(tables, terms=terms) if "bank" in given else None,
        quarantined=tuple(Quarantined(**row) for row in tables["quarantined"].to_pylist()),
        orders_lack_since=next(
            (datetime.fromisoformat(row["label"]) for row in terms["orders_lack"]), None
        ),
    )


def previous_of_tables(tables: Mapping[str, pa.Table]) -> Previous | None:
    """Restore what the previous run left open, from the small tables."""
    moments = [row["label"] for row in _grouped(tables[TERMS], by="name")["previous"]]
    if not moments:
        return None
    known = _grouped(tables[KNOWN], by="kind")
    return Previous(
        as_of=datetime.fromisoformat(moments[0]),
        breaks=frame_of_table(tables[OPENING]),
        chargebacks=frame_of(known["chargeback"], columns=KEY_COLUMNS),
        closed=frozenset(row["id"] for row in known["closed"]),
        away={row["id"]: row["first_seen"] for row in known["away"]},
        vanished=frame_of(
            [{**row, "entry_id": row["id"]} for row in known["vanished"]], columns=VANISHED_COLUMNS
        ),
    )


def _terms(sources: Sources, *, rules: Rules, previous: Previous | None) -> Iterator[Cells]:
    agreed, days = sources.agreed_write_offs, sources.settled
    given = {name: getattr(sources, name) is not None for name in _OPTIONAL}
    given |= {"ledger_sums": bool(sources.ledger_sums), "agreed": agreed is not None}
    given["bank"] = sources.bank is not None
    given["bank_ledger"] = given["bank"] and rules.ledger.bank and sources.ledger is not None
    given["unread"] = sources.unread_batches is not None
    given["agreed_entries"] = agreed is not None and agreed.entries is not None
    yield from (_term("given", name) for name, there in given.items() if there)
    yield from (_term("arrived", str(kind)) for kind in sources.arrived)
    for key, figures in sources.reported.items():
        for label, number in zip(("count", "amount"), figures, strict=True):
            yield _term("reported", "\x1f".join(key), label=label, number=number)
    for (merchant, account), day in sources.ledger_since.items():
        yield _term("ledger_since", merchant, label=account, number=int(day.replace("-", "")))
    yield from _terms_of_rules(rules)
    yield from _terms_of_banks(sources, rules=rules)
    if sources.settlement is not None:
        yield from _terms_of_settlement(rules)
    if days is not None:
        for name in ("first", "last", "waits_for"):
            yield _term("settled_days", name, label=getattr(days, name))
    if sources.orders_lack_since is not None:
        yield _term("orders_lack", "since", label=sources.orders_lack_since.isoformat())
    if previous is not None:
        yield _term("previous", "as_of", label=previous.as_of.isoformat())


def _terms_of_rules(rules: Rules) -> Iterator[Cells]:
    """Yield the parts of the rules that control totals need."""
    for code, state in rules.payment_status.items():
        yield _term("payment_status", code, label=state)
    yield _term("amount_means", "", label=rules.gateway.amount_means)
    for currency, bounds in rules.tolerance.items():
        for label, number in bounds.model_dump().items():
            if number is not None:
                yield _term("tolerance", currency, label=label, number=number)
    if rules.journal.accounts is not None:
        yield _term("clearing", "", label=rules.journal.accounts.clearing)
        if rules.journal.accounts.bank is not None:
            yield _term("bank_account", "", label=rules.journal.accounts.bank)


def _terms_of_banks(sources: Sources, *, rules: Rules) -> Iterator[Cells]:
    """Yield what a run knows of banks besides statements and entries, and where payouts arrive."""
    source = sources.bank
    if source is None:
        return
    yield from (_term("bank_refused", each.source, label=each.why) for each in source.refused)
    yield from (_term("bank_note", str(at), label=note) for at, note in enumerate(source.notes))
    lines = sources.settlement if source.night is None else source.night.payouts
    if lines is not None:
        names = ("merchant_id", "account_id", "currency")
        cells = {*zip(*(lines[name].tolist() for name in names), strict=True)}
        for merchant, account, currency in sorted(cells):
            bank = bank_of(merchant, account, currency=currency, rules=rules)
            if bank and (source.night is None or bank in source.night.banks):
                yield _term("bank_of", f"{merchant}\x1f{account}\x1f{currency}", label=bank)
    yield from _terms_of_rates(rules)
    if source.night is not None:
        night = source.night
        yield _term("bank_night", night.account[0], label=night.account[1])
        yield _term("bank_shown_since", night.shown_since)
        yield from (_term("bank_asked", name) for name in night.banks)
        yield from (_term("bank_known_to", name, label=day) for name, day in night.known_to.items())


def _bank_of(tables: Mapping[str, pa.Table], *, terms: Mapping[str, list[Cells]]) -> BankSource:
    names = {field.name for field in fields(BankStatement)}
    statements = []
    for row in tables["statements"].to_pylist():
        cells = {name: cell for name, cell in row.items() if name in names}
        statements.append(BankStatement(**{**cells, "days_given": bool(cells["days_given"])}))
    named = {
        name: {row["key"]: row["label"] for row in terms[f"bank_{name}"]}
        for name in ("refused", "note", "night", "shown_since", "asked", "known_to")
    }
    night = None
    for account in named["night"].items():
        since, queried = next(iter(named["shown_since"]), ""), tuple(named["asked"])
        blank = {"entry_type": EntryType.PAYOUT.value, "gross": 0, "fee": 0}
        rows = [{**blank, **row} for row in tables["payouts"].to_pylist()]
        payouts = frame_of(rows, columns=SETTLEMENT_COLUMNS)
        night = NightOfBank(account, queried, payouts, named["known_to"], since)
    return BankSource(
        entries=frame_of_table(tables["bank"])[[*BANK_ENTRY_COLUMNS]],
        statements=tuple(statements),
        refused=tuple(RefusedBankFile(name, why) for name, why in named["refused"].items()),
        notes=tuple(
            note for _, note in sorted(named["note"].items(), key=lambda item: int(item[0]))
        ),
        night=night,
    )


def _terms_of_rates(rules: Rules) -> Iterator[Cells]:
    """Yield every dated rate, with the shift between minor units of its two currencies."""
    for pair, own in rules.rate.items():
        foreign, _, booked = pair.partition(".")
        key = f"{foreign}\x1f{booked}"
        yield _term("rate_days", key, number=own.valid_days)
        yield _term("rate_basis_points", key, number=own.basis_points)
        shift = exponent(booked) - exponent(foreign)
        for day, rate in own.on.items():
            yield _term("rate", f"{key}\x1f{day.isoformat()}", label=f"{rate:f}", number=shift)


def _terms_of_settlement(rules: Rules) -> Iterator[Cells]:
    """Yield how fees are booked and priced, and the opening payable and reserve."""
    yield _term("fees_per", "", label=rules.ledger.fees_per)
    if rules.fee_contract is not None:
        yield _term("fee_contract", "")
    for currency, opening in rules.settlement.items():
        for name, number in opening.model_dump().items():
            if number:
                yield _term(name, currency, number=number)


def _term(name: str, key: str, *, label: str = "", number: int | None = None) -> Cells:
    return {"name": name, "key": key, "label": label, "number": number}


def _stored(files: Mapping[str, LoadCounts]) -> Iterator[Cells]:
    for source, counts in files.items():
        for step in _STORED:
            yield _step("stored", source, step, number=getattr(counts, step))


def _step(way: str, source: str, step: str, *, number: int, currency: str = "") -> Cells:
    return {"way": way, "source": source, "step": step, "currency": currency, "number": number}


def _known(sources: Sources, *, previous: Previous | None) -> Iterator[Cells]:
    for journal in sources.exported:
        cells: Cells = {"currency": journal.currency, "number": journal.version}
        yield _known_row("exported", journal.break_id, **cells, amount=int(journal.booked))
    for left in sources.opening_balance:
        cells = {"currency": left.currency, "number": left.count}
        yield _known_row("opening", left.what, **cells, amount=left.amount)
    for merchant, account, currency, batch in sources.unread_batches or ():
        cells = {"merchant_id": merchant, "account_id": account, "currency": currency}
        yield _known_row("unread", batch, **cells)
    if previous is None:
        return
    for name in previous.closed:
        yield _known_row("closed", name)
    for name, day in previous.away.items():
        yield _known_row("away", name, first_seen=day)
    for key in previous.chargebacks[[*KEY_COLUMNS]].to_dict("records"):
        yield _known_row("chargeback", "", **{str(name): cell for name, cell in key.items()})
    for entry in previous.vanished.to_dict("records"):
        cells = {str(name): cell for name, cell in entry.items()}
        yield _known_row("vanished", cells.pop("entry_id"), **cells)


def _known_row(kind: str, name: str, **cells: Any) -> Cells:
    blank = dict.fromkeys((*KEY_COLUMNS, "currency", "first_seen"), "")
    return {"kind": kind, "id": name, **blank, "number": 0, "amount": 0, **cells}
