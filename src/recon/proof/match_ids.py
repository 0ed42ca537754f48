"""The ids of matches in a night's folder: blank where they say again what other columns say.

A digest cannot be compressed, and nearly every set is the first of its order number.
"""

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.breaks.result_rows import identity_of
from recon.matching.frames.arrays import text_column

MATCHES, ID = "matches", "match_id"
NAMED_BY = ("merchant_id", "account_id", "order_no")


def without_first_ids(matches: pa.Table) -> pa.Table:
    """The rows of the file, an id blank where it is the first of its account and order number."""
    ids = matches[ID]
    return _with_ids(matches, pc.if_else(pc.equal(ids, _first_ids(matches)), "", ids))


def with_first_ids(matches: pa.Table) -> pa.Table:
    """The way back; a night of before has no blank one."""
    ids = matches[ID]
    blank = pc.equal(ids, "")
    if not pc.any(blank, min_count=0).as_py():
        return matches
    return _with_ids(matches, pc.if_else(blank, _first_ids(matches), ids))


def _first_ids(matches: pa.Table) -> pa.Array:
    ids = identity_of(*(_column(matches[name]) for name in NAMED_BY))
    return pa.array(ids, pa.string())


def _column(words: pa.ChunkedArray) -> "pd.Series[str]":
    return text_column(words.cast(pa.large_string()))


def _with_ids(matches: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    at = matches.schema.get_field_index(ID)
    return matches.set_column(at, matches.schema.field(at), ids.cast(pa.string()))
