"""The ledger of an account, wherever it is kept, as the frame that the engine compares."""

from collections.abc import Iterable, Mapping
from zoneinfo import ZoneInfo

import pandas as pd

from recon.errors import ConfigurationError
from recon.file_layouts import FileLayout
from recon.foreign_bytes import read_table, schema_of, type_table
from recon.foreign_bytes.mapped_columns import names_of
from recon.ledger.sql_extract import extract
from recon.matching.sources import LEDGER_COLUMNS
from recon.model import Reject, SourceFile, SourceKind
from recon.rules import Rules
from recon.settings import LedgerSource


def read_ledger(
    source: LedgerSource,
    *,
    environment: Mapping[str, str],
    rules: Rules,
    zone: ZoneInfo | None = None,
) -> tuple[pd.DataFrame, tuple[Reject, ...], SourceFile]:
    """LEDGER_COLUMNS of a file or a query, its rejects, and its counts.

    `zone` is that of timestamps without an offset, UTC by default.

    Raises:
        ConfigurationError: a mapped column is none of the ledger's, or the address is not set.
        SourceMissingError: the file does not exist.
        SourceUnreadableError: file or database cannot be read, or columns are missing.
    """
    schema = schema_of(SourceKind.LEDGER)
    layout = source.layout or FileLayout(columns=source.columns)
    named: dict[str, Iterable[str]] = {
        "columns": layout.columns,
        "constants": layout.constants,
        "words": layout.words,
    }
    for key, names in named.items():
        unknown = sorted(set(names) - set(schema.names))
        if unknown:
            place = f"ledger.layout.{key}" if source.layout else f"ledger.{key}"
            msg = f"{place} maps {', '.join(unknown)}; the ledger has {', '.join(schema.names)}"
            raise ConfigurationError(msg)
    if source.path is not None:
        table = read_table(
            source.path, kind=SourceKind.LEDGER, rules=rules, layout=layout, zone=zone
        )
    else:
        raw = extract(
            _address(source, environment=environment),
            query=source.query,
            wanted=frozenset(names_of(schema, layout=layout).values()),
        )
        table = type_table(raw, schema=schema, rules=rules, layout=layout, zone=zone)
    return table.frame[list(LEDGER_COLUMNS)], table.rejects, table.source_file


def _address(source: LedgerSource, *, environment: Mapping[str, str]) -> str:
    if source.url is not None:
        return source.url.get_secret_value()
    address = environment.get(source.url_env, "").strip()
    if not address:
        msg = f"the environment variable {source.url_env}, the ledger's address, is not set"
        raise ConfigurationError(msg)
    return address
