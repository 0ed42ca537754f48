"""Layouts of plain files, in the tables that `recon order-file propose` writes.

A night finds them in merchants.toml, under the account whose files they are of. Plain files have no
account of their own, so a file that layouts of two accounts fit is refused: either could be right.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from recon.config.declared import DeclaredTable, declared
from recon.config.file_layouts import STANDARD, FileLayout
from recon.model.errors import ConfigurationError
from recon.model.words import SourceKind


class _Layouts(DeclaredTable):
    layouts: tuple[FileLayout, ...] = ()


class _OneLayout(DeclaredTable):
    layout: FileLayout | None = None


class _OfAccount(DeclaredTable):
    layouts: tuple[FileLayout, ...] = ()
    """Of order files."""
    gateway: _Layouts = _Layouts()
    settlement: _Layouts = _Layouts()
    ledger: _OneLayout = _OneLayout()


class _GivenTables(DeclaredTable):
    accounts: Mapping[str, _OfAccount] = {}
    bank: Mapping[str, _Layouts] = {}


@dataclass(frozen=True, slots=True)
class GivenLayout:
    """One layout, and where it stands."""

    kind: SourceKind
    owner: str
    """The account or bank whose files it is of."""
    layout: FileLayout
    source: str
    """The file that says so."""


@dataclass(frozen=True, slots=True)
class GivenLayouts:
    """How plain files are written."""

    given: tuple[GivenLayout, ...] = ()

    def of(self, path: Path, *, kind: SourceKind) -> FileLayout:
        """The first layout that fits a file of a kind; ours where none does.

        Raises:
            ConfigurationError: layouts of several accounts fit it.
        """
        fitting = [
            each
            for each in self.given
            if each.kind is kind and fnmatchcase(path.name, each.layout.files)
        ]
        owners = sorted({each.owner for each in fitting})
        if len(owners) > 1:
            msg = (
                f"{path.name}: layouts of {' and '.join(owners)} fit it as a file of {kind}; give "
                "each a pattern in `files` that only its own files fit"
            )
            raise ConfigurationError(msg)
        return fitting[0].layout if fitting else STANDARD


OURS = GivenLayouts()
"""Every file is written as ours."""


def given_layouts(paths: Sequence[Path]) -> GivenLayouts:
    """The layouts of these files, in their order.

    Raises:
        ConfigurationError: a file is missing, is no TOML, or has a table or key that is no layout.
    """
    return GivenLayouts(tuple(each for path in paths for each in _of_file(path)))


def _of_file(path: Path) -> Iterator[GivenLayout]:
    try:
        read = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"the layout {path} cannot be read: {why}"
        raise ConfigurationError(msg) from error
    tables = declared(_GivenTables, read, source=str(path))
    for owner, account in tables.accounts.items():
        ledger = (account.ledger.layout,) if account.ledger.layout else ()
        for kind, layouts in (
            (SourceKind.ORDERS, account.layouts),
            (SourceKind.GATEWAY, account.gateway.layouts),
            (SourceKind.SETTLEMENT, account.settlement.layouts),
            (SourceKind.LEDGER, ledger),
        ):
            yield from (GivenLayout(kind, owner, layout, str(path)) for layout in layouts)
    for owner, bank in tables.bank.items():
        for layout in bank.layouts:
            yield GivenLayout(SourceKind.BANK, owner, layout, str(path))
