"""What only the comparison knows beside its sources, as small tables of a night's folder, and back.

Which sources were given, what the rules say as far as a control total asks for it, what was carried
forward and agreed to: with these and the inputs a comparison can be made again from the folder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.bank.expected import bank_of
from recon.matching.frames.bank_sources import BankSource, NightOfBank, RefusedBankFile
from recon.matching.frames.sources import (
    KEY_COLUMNS,
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
from recon.matching.sides.instruction_versions import with_each_instruction_once
from recon.model.money import exponent
from recon.model.words import Quarantined, SourceKind
from recon.proof.books_bridge import ARRIVED_STEPS, Books
from recon.proof.night_tables import (
    FRAMES,
    VOLUMES,
    Tables,
    bank_of_tables,
    files_of,
    frame_of_table,
    frames_of_inputs,
    payouts_of_tables,
    rejects_of,
    table_of,
    table_of_rows,
)

Cells = dict[str, Any]
_STORED = ("accepted", "new", "repeat", "superseding")
_OF_PLACE = ("books_of", "carried_of")
"""Totals of one place: the money of the books, and what the night before left open."""
_OPTIONAL = ("ledger", "instructions", "settlement", "universe")


def compared_tables(
    sources: Sources,
    *,
    rules: Rules,
    previous: Previous | None,
    books: Books,
    account: tuple[str, str] = ("", ""),
    is_carried: bool = False,
) -> Tables:
    """The small tables: terms, steps, agreed, known, quarantined and opening.

    Args:
        sources: what was compared.
        rules: by which.
        previous: what the night before left open.
        books: every step of the ledger's money (see books_bridge.books_of).
        account: merchant and account of the night; blank where plain files may hold several.
        is_carried: whether the night before is stored, and so held against what is carried forward.
    """
    terms = [*_terms(sources, rules=rules, previous=previous)]
    terms += [_term(name, account[0], word=account[1]) for name in _OF_PLACE[: 1 + is_carried]]
    breaks = SCHEMAS["opening"].columns.empty_table()
    return {
        "terms": table_of_rows(terms, name="terms"),
        "steps": table_of_rows(_steps(sources, books=books), name="steps"),
        "agreed": table_of_rows(_agreed(sources.agreed_write_offs), name="agreed"),
        "known": table_of_rows(_known(sources, previous=previous), name="known"),
        "quarantined": table_of_rows(_quarantined(sources), name="quarantined"),
        "opening": breaks if previous is None else table_of(previous.breaks, name="opening"),
    }


def sources_of_tables(tables: Mapping[str, pa.Table]) -> Sources:
    """What was compared, from the inputs and the small tables."""
    terms, steps = tables["terms"].to_pylist(), tables["steps"].to_pylist()
    given = {row["key"] for row in terms if row["name"] == "given"}
    frames: dict[str, Any] = {**frames_of_inputs(tables)}
    for field, _ in FRAMES.values():
        if field in _OPTIONAL and field not in given:
            frames[field] = None
    known = tables["known"].to_pylist()
    days = {row["key"]: row["word"] for row in terms if row["name"] == "settled_days"}
    unread = (
        (row["merchant_id"], row["account_id"], row["currency"], row["id"])
        for row in known
        if row["kind"] == "unread"
    )
    return Sources(
        **frames,
        rejects=rejects_of(tables["rejects"]),
        files=files_of(tables["files"]),
        merged_rows={
            source: LoadCounts(**counts) for source, counts in _by_source(steps, "stored").items()
        },
        arrived={
            SourceKind(source): numbers for source, numbers in _by_source(steps, "arrived").items()
        },
        books=_arrived_books(steps) if "books" in given else {},
        exported=tuple(
            Exported(row["id"], row["currency"], row["number"], bool(row["amount"]))
            for row in known
            if row["kind"] == "exported"
        ),
        agreed_write_offs=_agreed_of(tables["agreed"], given=given),
        opening_balance=tuple(
            LeftOut(row["id"], row["currency"], row["number"], row["amount"])
            for row in known
            if row["kind"] == "opening"
        ),
        settled=SettledDays(**days) if days else None,
        unread_batches=frozenset(unread) if "unread" in given else None,
        volumes=frame_of_table(tables[VOLUMES]) if VOLUMES in tables else None,
        bank=_bank_of(tables, terms=terms),
        quarantined=tuple(Quarantined(**row) for row in tables["quarantined"].to_pylist()),
        orders_lack_since=next(
            (datetime.fromisoformat(row["word"]) for row in terms if row["name"] == "orders_lack"),
            None,
        ),
    )


def previous_of_tables(tables: Mapping[str, pa.Table]) -> Previous | None:
    """What the night before left open, from the small tables."""
    terms = tables["terms"].to_pylist()
    moments = [row["word"] for row in terms if row["name"] == "previous"]
    if not moments:
        return None
    known = tables["known"].to_pylist()
    return Previous(
        as_of=datetime.fromisoformat(moments[0]),
        breaks=frame_of_table(tables["opening"]),
        chargebacks=frame_of(
            [row for row in known if row["kind"] == "chargeback"], columns=KEY_COLUMNS
        ),
        closed=frozenset(row["id"] for row in known if row["kind"] == "closed"),
        away={row["id"]: row["first_seen"] for row in known if row["kind"] == "away"},
        vanished=vanished_of(tables["known"]),
    )


def vanished_of(known: pa.Table) -> pd.DataFrame:
    """The ledger entries that were no longer there (VANISHED_COLUMNS), from the table `known`."""
    rows = [row for row in known.to_pylist() if row["kind"] == "vanished"]
    named = ({**row, "entry_id": row["id"]} for row in rows)
    return frame_of(named, columns=VANISHED_COLUMNS)


def _terms(sources: Sources, *, rules: Rules, previous: Previous | None) -> Iterator[Cells]:
    agreed, days = sources.agreed_write_offs, sources.settled
    given = {name: getattr(sources, name) is not None for name in _OPTIONAL}
    given |= {"books": bool(sources.books), "agreed": agreed is not None}
    given["bank"] = sources.bank is not None
    given["bank_books"] = given["bank"] and rules.ledger.bank and sources.ledger is not None
    given["unread"] = sources.unread_batches is not None
    given["agreed_entries"] = agreed is not None and agreed.entries is not None
    yield from (_term("given", name) for name, there in given.items() if there)
    yield from (_term("arrived", str(kind)) for kind in sources.arrived)
    yield from _terms_of_rules(rules)
    yield from _terms_of_banks(sources, rules=rules)
    if sources.settlement is not None:
        yield from _terms_of_settlement(rules)
    if days is not None:
        for name in ("first", "last", "waits_for"):
            yield _term("settled_days", name, word=getattr(days, name))
    if sources.orders_lack_since is not None:
        yield _term("orders_lack", "since", word=sources.orders_lack_since.isoformat())
    if previous is not None:
        yield _term("previous", "as_of", word=previous.as_of.isoformat())


def _terms_of_rules(rules: Rules) -> Iterator[Cells]:
    """What a control total asks of the rules."""
    for code, state in rules.payment_status.items():
        yield _term("payment_status", code, word=state)
    yield _term("amount_means", "", word=rules.gateway.amount_means)
    for currency, bounds in rules.tolerance.items():
        for word, number in bounds.model_dump().items():
            if number is not None:
                yield _term("tolerance", currency, word=word, number=number)
    if rules.journal.accounts is not None:
        yield _term("clearing", "", word=rules.journal.accounts.clearing)
        if rules.journal.accounts.bank is not None:
            yield _term("bank_account", "", word=rules.journal.accounts.bank)


def _terms_of_banks(sources: Sources, *, rules: Rules) -> Iterator[Cells]:
    """What a night knows of banks beside statements and entries, and where pay-outs arrive."""
    source = sources.bank
    if source is None:
        return
    yield from (_term("bank_refused", each.source, word=each.why) for each in source.refused)
    yield from (_term("bank_note", str(at), word=note) for at, note in enumerate(source.notes))
    lines = sources.settlement if source.night is None else source.night.payouts
    if lines is not None:
        names = ("merchant_id", "account_id", "currency")
        cells = {*zip(*(lines[name].tolist() for name in names), strict=True)}
        for merchant, account, currency in sorted(cells):
            bank = bank_of(merchant, account, currency=currency, rules=rules)
            if bank and (source.night is None or bank in source.night.banks):
                yield _term("bank_of", f"{merchant}\x1f{account}\x1f{currency}", word=bank)
    yield from _terms_of_rates(rules)
    if source.night is not None:
        night = source.night
        yield _term("bank_night", night.account[0], word=night.account[1])
        yield _term("bank_shown_since", night.shown_since)
        yield from (_term("bank_asked", name) for name in night.banks)
        yield from (_term("bank_known_to", name, word=day) for name, day in night.known_to.items())


def _bank_of(tables: Mapping[str, pa.Table], *, terms: list[Cells]) -> BankSource | None:
    if "bank" not in {row["key"] for row in terms if row["name"] == "given"}:
        return None
    read = bank_of_tables(tables)
    named = {
        name: {row["key"]: row["word"] for row in terms if row["name"] == f"bank_{name}"}
        for name in ("refused", "note", "night", "shown_since", "asked", "known_to")
    }
    night = None
    for account in named["night"].items():
        since = next(iter(named["shown_since"]), "")
        payouts, asked = payouts_of_tables(tables), tuple(named["asked"])
        night = NightOfBank(account, asked, payouts, named["known_to"], since)
    return replace(
        read,
        refused=tuple(RefusedBankFile(name, why) for name, why in named["refused"].items()),
        notes=tuple(
            note for _, note in sorted(named["note"].items(), key=lambda item: int(item[0]))
        ),
        night=night,
    )


def _terms_of_rates(rules: Rules) -> Iterator[Cells]:
    """Every dated rate, with what turns minor units of one currency into those of the other."""
    for pair, own in rules.rate.items():
        foreign, _, booked = pair.partition(".")
        key = f"{foreign}\x1f{booked}"
        yield _term("rate_days", key, number=own.valid_days)
        yield _term("rate_basis_points", key, number=own.basis_points)
        shift = exponent(booked) - exponent(foreign)
        for day, rate in own.on.items():
            yield _term("rate", f"{key}\x1f{day.isoformat()}", word=f"{rate:f}", number=shift)


def _terms_of_settlement(rules: Rules) -> Iterator[Cells]:
    """How fees are booked and priced, and what the gateway owed and kept before the first line."""
    yield _term("fees_per", "", word=rules.ledger.fees_per)
    if rules.fee_contract is not None:
        yield _term("fee_contract", "")
    for currency, opening in rules.settlement.items():
        for name, number in opening.model_dump().items():
            if number:
                yield _term(name, currency, number=number)


def _term(name: str, key: str, *, word: str = "", number: int | None = None) -> Cells:
    return {"name": name, "key": key, "word": word, "number": number}


def _steps(sources: Sources, *, books: Books) -> Iterator[Cells]:
    for source, counts in with_each_instruction_once(sources).merged_rows.items():
        for step in _STORED:
            yield _step("stored", source, step, number=getattr(counts, step))
    for kind, steps in sources.arrived.items():
        for step, rows in steps.items():
            yield _step("arrived", str(kind), step, number=rows)
    for currency, moved in books.items():
        for step, amount in moved.items():
            yield _step("books", "ledger", step, number=amount, currency=currency)


def _step(way: str, source: str, step: str, *, number: int, currency: str = "") -> Cells:
    return {"way": way, "source": source, "step": step, "currency": currency, "number": number}


def _agreed(agreed: AgreedWriteOffs | None) -> Iterator[Cells]:
    if agreed is None:
        return
    for kind, listed in (("break", agreed.breaks), ("entry", agreed.entries or {})):
        for name, (currency, amount) in listed.items():
            yield {"kind": kind, "id": name, "currency": currency, "amount": amount}


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


def _quarantined(sources: Sources) -> Iterator[Cells]:
    names = SCHEMAS["quarantined"].columns.names
    for row in sources.quarantined:
        yield {name: getattr(row, name) for name in names}


def _by_source(steps: list[Cells], way: str) -> dict[str, dict[str, int]]:
    by_source: dict[str, dict[str, int]] = {}
    for row in steps:
        if row["way"] == way:
            by_source.setdefault(row["source"], {})[row["step"]] = row["number"]
    return by_source


def _arrived_books(steps: list[Cells]) -> dict[str, dict[str, int]]:
    arrived: dict[str, dict[str, int]] = {}
    for row in steps:
        if row["way"] == "books" and row["step"] in ARRIVED_STEPS:
            arrived.setdefault(row["currency"], {})[row["step"]] = row["number"]
    return arrived


def _agreed_of(table: pa.Table, *, given: set[str]) -> AgreedWriteOffs | None:
    if "agreed" not in given:
        return None
    listed: dict[str, dict[str, tuple[str, int]]] = {"break": {}, "entry": {}}
    for row in table.to_pylist():
        listed[row["kind"]][row["id"]] = (row["currency"], row["amount"])
    return AgreedWriteOffs(listed["break"], listed["entry"] if "agreed_entries" in given else None)
