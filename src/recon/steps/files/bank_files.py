"""The files of banks of one reconciliation, and what a statement proves before it counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from recon.config.given_layouts import OURS, GivenLayouts
from recon.config.rules import Rules
from recon.files.reader import bank_file
from recon.matching.bank.statements import JudgedStatements, judge_statements
from recon.matching.frames.bank_sources import BankSource, RefusedBankFile, no_entries, together
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
            read = bank_file(path, rules=rules, layout=layouts.of(path, kind=SourceKind.BANK))
        except SourceUnreadableError as error:
            parts.append(BankSource(no_entries(), (), (RefusedBankFile(path.name, str(error)),)))
            continue
        if read.source_file.sha256 not in hashes:
            hashes.add(read.source_file.sha256)
            parts.append(read.source)
            files.append(read.source_file)
    return BankFiles(together(parts), tuple(files))


@dataclass(frozen=True, slots=True)
class CheckedBankFiles:
    """What files of banks prove, without a reconciliation."""

    read: BankFiles
    judged: JudgedStatements


def check_bank_files(paths: Iterable[Path], *, rules: Rules, day: date) -> CheckedBankFiles:
    """As a reconciliation of that business date would judge them; nothing is stored.

    Raises:
        SourceMissingError: one of them does not exist.
    """
    read = read_bank_files(paths, rules=rules)
    return CheckedBankFiles(read, judge_statements(read.source, rules=rules, day=day))
