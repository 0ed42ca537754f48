"""Schemas of the files of nights, facts and answers; schemas.toml documents each column."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from recon.model.errors import Defect

MINOR_UNITS = "minor units of the currency"
INSTANT = pa.timestamp("us", tz="UTC")
_LABEL, _TEXT, _WHOLE = pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.int64()
_NOT_GIVEN = "; null: not given"
_KINDS: Mapping[str, tuple[pa.DataType, str, str]] = {
    "label": (_LABEL, "", ""),
    "text": (_TEXT, "", ""),
    "day": (_TEXT, "ISO date", ""),
    "day_label": (_LABEL, "ISO date", ""),
    "money": (_WHOLE, MINOR_UNITS, ""),
    "money?": (_WHOLE, MINOR_UNITS, _NOT_GIVEN),
    "instant?": (INSTANT, "microseconds, UTC", _NOT_GIVEN),
    "count": (_WHOLE, "rows", ""),
    "line": (_WHOLE, "line", ""),
    "bytes": (_WHOLE, "bytes", ""),
    "days?": (_WHOLE, "business days", ""),
    "milliseconds": (_WHOLE, "milliseconds", ""),
    "number": (_WHOLE, "", ""),
    "number?": (_WHOLE, "", ""),
}
"""Column type in schemas.toml -> Arrow type, unit, and a suffix for its documentation."""


@dataclass(frozen=True, slots=True)
class FileSchema:
    """Schema of one archived file."""

    name: str
    folder: str
    """Its folder: inputs, compared, results or proof in a night's folder; or facts or answers."""
    columns: pa.Schema
    """Fields with `doc` and, if they have one, `unit` in their metadata."""
    key: tuple[str, ...]
    """Columns by which its rows are sorted."""
    version: int = 1

    @property
    def path(self) -> str:
        """Path relative to the night's folder."""
        return f"{self.folder}/{self.name}.parquet"

    @property
    def label(self) -> bytes:
        """Name and version, as stored in the file's metadata."""
        return f"{self.name}/{self.version}".encode()


def _schemas(text: str) -> dict[str, FileSchema]:
    """Return the schema of each file in schemas.toml by its folder and name."""
    tables = tomllib.loads(text)
    groups = tables.pop("columns")
    shared = {line.partition(" ")[0]: line for line in groups.pop("shared")}

    def fields(lines: Iterable[str]) -> Iterator[pa.Field]:
        for line in lines:
            if line.startswith("@"):
                yield from fields(groups[line[1:]])
                continue
            about, _, doc = shared.get(line, line).partition(": ")
            name, _, kind = about.partition(" ")
            arrow, unit, behind = _KINDS[kind]
            metadata = {"doc": doc + behind, **({"unit": unit} if unit else {})}
            yield pa.field(name, arrow, nullable=kind.endswith("?"), metadata=metadata)

    schemas = {}
    for path, table in tables.items():
        folder, _, name = path.partition("/")
        columns = pa.schema([*fields(table["columns"])])
        if strange := {*table["key"]} - {*columns.names}:
            msg = f"schemas.toml, {path}: the key names {min(strange)}, which is no column"
            raise Defect(msg)
        schemas[path] = FileSchema(
            name, folder, columns, tuple(table["key"]), table.get("version", 1)
        )
    return schemas


FACTS = "facts"
ANSWERS = "answers"
"""Name of a night's file of the gateway answers that are compared, and folder of all answers."""
_ALL = _schemas(Path(__file__).with_name("schemas.toml").read_text("utf-8"))
SCHEMAS: Mapping[str, FileSchema] = {
    each.name: each for each in _ALL.values() if each.folder not in {FACTS, ANSWERS}
}
"""Schemas of a night's files by name, in the order in which they are written."""
ORDER_FACTS, SETTLED_FACTS = _ALL["facts/order_facts"], _ALL["facts/settled_facts"]
"""Rows of an order file, sorted by key within each part; lines of a settlement file."""
QUERIED, REPLIES = _ALL["answers/asked"], _ALL["answers/replies"]
"""Keys to query at the gateway, written before the first query; and one row for each payment that
an answer showed, or for each key without one."""
ANSWER_SCHEMAS: Mapping[str, FileSchema] = {each.name: each for each in (QUERIED, REPLIES)}
METADATA = b"recon.schema"
"""Key in a Parquet file's metadata for FileSchema.label."""
