"""The bank files of one reconciliation; a refused file does not count."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from recon.config.file_layouts import OURS, GivenLayouts
from recon.config.rules import Rules
from recon.files.reader import bank_file
from recon.matching.frames.bank_sources import BankSource, RefusedBankFile, no_entries, together
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceFile, SourceKind


@dataclass(frozen=True, slots=True)
class BankFiles:
    """The statements and entries that were read, and their files."""

    source: BankSource
    files: tuple[SourceFile, ...]


def read_bank_files(
    paths: Iterable[Path], *, rules: Rules, layouts: GivenLayouts = OURS
) -> BankFiles:
    """Read all files; a refused one counts for nothing, the others do.

    Raises:
        SourceMissingError: one of them does not exist.
    """
    sources: list[BankSource] = []
    files: list[SourceFile] = []
    hashes: set[str] = set()
    for path in paths:
        try:
            layout = layouts.of(path, kind=SourceKind.BANK)
            with bank_file(path, rules=rules, layout=layout) as read:
                file = read.facts.source_file
                if file.sha256 not in hashes:
                    sources.append(read.source)
                    files.append(file)
                    hashes.add(file.sha256)
        except SourceUnreadableError as error:
            refused = RefusedBankFile(path.name, str(error))
            sources.append(BankSource(no_entries(), (), (refused,)))
    return BankFiles(together(sources), tuple(files))
