"""The files of banks of one reconciliation, and what a statement proves before it counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from recon.config.file_layouts import OURS, GivenLayouts
from recon.config.rules import Rules
from recon.files.reader import bank_facts, bank_file
from recon.matching.bank.statements import JudgedStatements, judge_statements, told_again
from recon.matching.frames.bank_sources import (
    BankSource,
    Contents,
    RefusedBankFile,
    no_entries,
    together,
)
from recon.model.errors import SourceUnreadableError
from recon.model.words import SourceFile, SourceKind


@dataclass(frozen=True, slots=True)
class BankFiles:
    """What was read of them."""

    source: BankSource
    files: tuple[SourceFile, ...]


def read_bank_files(
    paths: Iterable[Path], *, rules: Rules, layouts: GivenLayouts = OURS
) -> BankFiles:
    """All of them; of one that is refused nothing counts, and the others do.

    Raises:
        SourceMissingError: one of them does not exist.
    """
    parts: list[BankSource] = []
    files: list[SourceFile] = []
    hashes: set[str] = set()
    for path in paths:
        try:
            layout = layouts.of(path, kind=SourceKind.BANK)
            with bank_file(path, rules=rules, layout=layout) as read:
                file = read.facts.source_file
                if file.sha256 not in hashes:
                    parts.append(read.source)
                    files.append(file)
                    hashes.add(file.sha256)
        except SourceUnreadableError as error:
            parts.append(_refused(path, error))
    return BankFiles(together(parts), tuple(files))


def _refused(path: Path, error: SourceUnreadableError) -> BankSource:
    return BankSource(no_entries(), (), (RefusedBankFile(path.name, str(error)),))


@dataclass(frozen=True, slots=True)
class CheckedBankFiles:
    """What files of banks prove, without a reconciliation."""

    source: BankSource
    """Without entries."""
    judged: JudgedStatements


def check_bank_files(paths: Iterable[Path], *, rules: Rules, day: date) -> CheckedBankFiles:
    """As a reconciliation of that business date would judge them; nothing is stored.

    Entries stay with their reader: only of statements that were told again it matters what each of
    them says.

    Raises:
        SourceMissingError: one of them does not exist.
    """
    parts: list[BankSource] = []
    owners: list[Path] = []
    hashes: set[str] = set()
    for path in paths:
        try:
            facts = bank_facts(path, rules=rules)
        except SourceUnreadableError as error:
            parts.append(_refused(path, error))
            continue
        if facts.source_file.sha256 not in hashes:
            hashes.add(facts.source_file.sha256)
            parts.append(BankSource(no_entries(), facts.statements, notes=facts.notes))
            owners += [path] * len(facts.statements)
    source = _with_contents(together(parts), owners=owners, rules=rules)
    return CheckedBankFiles(source, judge_statements(source, rules=rules, day=day))


def _with_contents(source: BankSource, *, owners: Sequence[Path], rules: Rules) -> BankSource:
    """The statements, those that were told again with what their entries say."""
    again, statements = told_again(source.statements), [*source.statements]
    for path in {owners[number]: None for number in sorted(again)}:
        contents = Contents()
        with bank_file(path, rules=rules) as read:
            for entries in read.parts():
                contents.add(entries)
        first = owners.index(path)
        for number in again:
            if owners[number] == path:
                digest = contents.digest(number - first)
                statements[number] = replace(statements[number], content=digest)
    return replace(source, statements=tuple(statements))
