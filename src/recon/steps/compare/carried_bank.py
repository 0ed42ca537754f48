"""What a run over plain files hands to the next of banks: every statement, and the entries of ours.

Of other people's entries nothing but their sum is handed on. A statement that an earlier run read
is refused by the name of that run, unless more of its entries are ours by now: then it is read once
more.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.files.formats.named_bytes import sha256_of
from recon.matching.bank.bank_frames import covered_to
from recon.matching.bank.kept_entries import kept_of
from recon.matching.bank.statements import content_of
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BOOKED,
    BankSource,
    BankStatement,
    chosen,
    together,
)
from recon.matching.frames.sources import Sources, frame_of
from recon.model.errors import SourceUnreadableError, UsageError
from recon.model.words import SourceFile, SourceKind
from recon.privacy.shown_text import scrubbed
from recon.steps.compare.carried import FileReadBefore, handed_on_document
from recon.steps.compare.result_files import Content
from recon.steps.files.bank_files import BankFiles

STATEMENTS = "bank-statements.json"
CARRIED_BANK_FILES = (STATEMENTS,)
_KEPT = "kept"
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
            **{name: cell for name, cell in document.items() if name != _KEPT}
        )
        own = {"statement": number, "currency": statement.currency}
        rows += [{**{name: cells[name] for name in _OF_ENTRY}, **own} for cells in document[_KEPT]]
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
        "statements": [*_told(chosen(kept, numbers=numbers))],
    }
    return {STATEMENTS: json.dumps(document, indent=2, ensure_ascii=False) + "\n"}


def _told(source: BankSource) -> Iterable[dict[str, Any]]:
    entries = source.entries.astype(object).where(source.entries.notna(), None)
    columns = zip(*(entries[name].tolist() for name in _OF_ENTRY), strict=True)
    mine: dict[int, list[dict[str, Any]]] = {n: [] for n in range(len(source.statements))}
    for number, cells in zip(entries["statement"].tolist(), columns, strict=True):
        mine[number].append(dict(zip(_OF_ENTRY, cells, strict=True)))
    for number, statement in enumerate(source.statements):
        yield {**asdict(statement), _KEPT: mine[number]}


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
