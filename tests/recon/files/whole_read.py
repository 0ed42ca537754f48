"""Files as a night reads them: orders in this process, books wherever they are kept."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of
from recon.files.kinds.sql_ledger import read_ledger
from recon.files.reader import OrderRead, ledger_file, order_rows, table
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import ORDER_FILE, TableSchema, schema_of
from recon.files.typing.typed_table import Table, proven_table
from recon.model.terms import Reject, SourceFile, SourceKind


@contextmanager
def spooled_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool
) -> Iterator[OrderRead]:
    """As `order_file`, in this process."""
    with tempfile.TemporaryFile() as rows:
        facts = table(rows, path=path, schema=ORDER_FILE, rules=rules, layout=layout, keep=keep)
        yield order_rows(facts, rows)


class OrderFile(NamedTuple):
    """One order file, read."""

    orders: pd.DataFrame
    actions: pd.DataFrame
    rejects: tuple[Reject, ...]
    source_file: SourceFile


def read_order_file(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> OrderFile:
    """Read it to its end."""
    with spooled_file(path, rules=rules, layout=layout, keep=True) as read:
        parts = list(read.parts())
    frames = [pd.concat(frames, ignore_index=True) for frames in zip(*parts, strict=True)]
    orders, actions = frames or [pd.DataFrame({"order_no": []})] * 2
    return OrderFile(orders, actions, read.facts.rejects, read.facts.source_file)


class ReadLedger(NamedTuple):
    """A ledger, read."""

    entries: pd.DataFrame
    rejects: tuple[Reject, ...]
    source_file: SourceFile


def read_ledgers(
    source: LedgerSource, *, environment: Mapping[str, str], rules: Rules
) -> ReadLedger:
    """A file or a query."""
    if source.path is None:
        return ReadLedger(*read_ledger(source, environment=environment, rules=rules)[:3])
    with ledger_file(source, rules=rules) as read:
        entries = pd.concat([*read.parts()], ignore_index=True)
        return ReadLedger(entries, read.facts.rejects, read.facts.source_file)


def read_table(
    path: Path,
    *,
    kind: SourceKind,
    rules: Rules,
    layout: FileLayout = STANDARD,
    zone: ZoneInfo | None = None,
    schema: TableSchema | None = None,
) -> Table:
    """As `proven_table`, of a file; `schema`: another layout of this kind, as the inbox file's."""
    wanted = schema or schema_of(kind)
    raw = raw_of(read_bytes(path), columns_read=read_of(wanted, layout=layout), layout=layout)
    return proven_table(path, raw, schema=wanted, rules=rules, layout=layout, zone=zone)
