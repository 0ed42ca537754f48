"""The file of a night that says who approved, answered, or said why a night is missing.

One decision a line. It is packed, for a large night approves thousands by rule; DuckDB and every
other reader of JSON lines unpack it themselves.
"""

import gzip
from collections.abc import Callable

DECISIONS = "decisions.jsonl.gz"


def packed_lines(lines: str) -> bytes:
    """The file of these lines: without a time of packing, so that the same lines are the same."""
    return gzip.compress(lines.encode(), mtime=0)


def kept_decisions(read: Callable[[str], bytes]) -> list[str]:
    """The decisions of a night, one a line; `read` gives the content of a file of its proof."""
    return gzip.decompress(read(DECISIONS)).decode().splitlines()
