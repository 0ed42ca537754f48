"""The ledger of an account, wherever it is kept, as the frame that the engine compares."""

from collections.abc import Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd

from recon.config.file_layouts import FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.kinds.layouts import refuse_wrong_layout
from recon.files.typing.mapped_columns import names_of, read_of
from recon.files.typing.table_schema import schema_of
from recon.files.typing.typed_table import read_table, type_table
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import ConfigurationError
from recon.model.words import Reject, SourceFile, SourceKind


class Ledger(NamedTuple):
    """One ledger, read."""

    entries: pd.DataFrame
    """LEDGER_COLUMNS."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    extract: bytes = b""
    """What a query gave, as JSON lines; nothing of a file, which can be looked at again."""


def read_ledger(
    source: LedgerSource,
    *,
    environment: Mapping[str, str],
    rules: Rules,
    zone: ZoneInfo | None = None,
    rows_max: int | None = None,
) -> Ledger:
    """The entries of a file or a query, its rejects, and its counts.

    `zone` is that of timestamps without an offset, by default the source's own, else that of
    business dates. With `rows_max` a query gives
    its first rows only, to be looked at; a file is read whole.

    Raises:
        ConfigurationError: the mapping names what no ledger has, or the address is not set.
        SourceMissingError: the file does not exist.
        SourceUnreadableError: file or database cannot be read, or columns are missing.
    """
    schema = schema_of(SourceKind.LEDGER)
    layout = layout_of(source)
    zone = zone or (ZoneInfo(source.zone) if source.zone else None)
    refuse_wrong_mapping(source)
    if source.path is not None:
        table = read_table(
            source.path, kind=SourceKind.LEDGER, rules=rules, layout=layout, zone=zone
        )
        content = b""
    else:
        # The library of databases is not loaded for a file: each reader of files would pay for it.
        from recon.files.kinds.sql_extract import extract

        theirs = names_of(schema, layout=layout)
        raw, content = extract(
            _address(source, environment=environment),
            query=source.query,
            wanted=read_of(schema, layout=layout),
            amount=theirs.get("amount", ""),
            rows_max=rows_max,
        )
        table = type_table(raw, schema=schema, rules=rules, layout=layout, zone=zone)
    entries = table.frame[list(LEDGER_COLUMNS)]
    return Ledger(entries, table.rejects, table.source_file, content)


def refuse_wrong_mapping(source: LedgerSource) -> None:
    """Refuse a mapping that names what no ledger has.

    Raises:
        ConfigurationError: naming the key.
    """
    where = "merchants.toml: ledger.layout." if source.layout else "merchants.toml: ledger."
    refuse_wrong_layout(layout_of(source), schemas=(schema_of(SourceKind.LEDGER),), where=where)


def layout_of(source: LedgerSource) -> FileLayout:
    """How its columns are called and written."""
    return source.layout or FileLayout(columns=source.columns)


def _address(source: LedgerSource, *, environment: Mapping[str, str]) -> str:
    if source.url is not None:
        return source.url.get_secret_value()
    address = environment.get(source.url_env, "").strip()
    if not address:
        msg = f"the environment variable {source.url_env}, the ledger's address, is not set"
        raise ConfigurationError(msg)
    return address
