"""The ledger of an account, wherever it is kept, as the frame that the engine compares."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd

from recon.config.file_layouts import FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.kinds.archive import private_content
from recon.files.kinds.layouts import refuse_wrong_layout
from recon.files.typing.mapped_columns import names_of, read_of
from recon.files.typing.table_schema import LEDGER
from recon.files.typing.typed_table import type_table
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import ConfigurationError
from recon.model.terms import Reject, SourceFile


class Ledger(NamedTuple):
    """What a query gave."""

    entries: pd.DataFrame
    """LEDGER_COLUMNS."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    content: bytes
    """The same as JSON lines."""
    private: str
    """Why that must not be archived, or ""."""


def read_ledger(
    source: LedgerSource,
    *,
    environment: Mapping[str, str],
    rules: Rules,
    rows_max: int | None = None,
) -> Ledger:
    """The entries of a query, its rejects, and its counts; a file is read by `ledger_file`.

    With `rows_max` the first rows only, to be looked at.

    Raises:
        ConfigurationError: the mapping names what no ledger has, or the address is not set.
        SourceUnreadableError: the database cannot be read, or columns are missing.
    """
    # The library of databases is not loaded for a file: each reader of files would pay for it.
    from recon.files.kinds.sql_extract import extract

    layout = layout_of(source)
    refuse_wrong_mapping(source)
    raw, content = extract(
        _address(source, environment=environment),
        query=source.query,
        wanted=read_of(LEDGER, layout=layout),
        amount=names_of(LEDGER, layout=layout).get("amount", ""),
        rows_max=rows_max,
    )
    zone = ZoneInfo(source.zone) if source.zone else None
    table = type_table(raw, schema=LEDGER, rules=rules, layout=layout, zone=zone)
    private = private_content(replace(raw, header=tuple(raw.columns)))
    entries = table.frame[list(LEDGER_COLUMNS)]
    return Ledger(entries, table.rejects, table.source_file, content, private)


def refuse_wrong_mapping(source: LedgerSource) -> None:
    """Refuse a mapping that names what no ledger has.

    Raises:
        ConfigurationError: naming the key.
    """
    where = "merchants.toml: ledger.layout." if source.layout else "merchants.toml: ledger."
    refuse_wrong_layout(layout_of(source), schemas=(LEDGER,), where=where)


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
