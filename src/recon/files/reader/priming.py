"""What the warm process reads before the first file comes, so that no fork pays for it anew.

Libraries load parts of themselves, and build caches, at their first use; in a fork each file would
be the first. The samples are our own: no foreign byte is read here. Nothing here may start a
thread, since the process is to be forked: rows over two lines keep them from Arrow's parser, which
starts one.
"""

import io
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.reader import parcel, readings
from recon.files.typing.table_schema import LEDGER, ORDER_FILE
from recon.model.errors import ReconError
from recon.privacy.own_files import for_owner

ORDERS = """\
merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,note
1,1,sample-1,EUR,10.00,paid,2026-01-01T00:00:00Z,capture,"two
lines"
1,1,sam"ple"-2,EUR,10.00,paid,2026-01-01T00:00:00Z,,
"""
LEDGER_ROWS = """\
entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,note
sample-1,1,1,sample-1,capture,EUR,10.00,2026-01-01T00:00:00Z,"two
lines"
sam"ple"-2,1,1,sample-1,capture,EUR,10.00,2026-01-01T00:00:00Z,
"""


def prime() -> Iterator[str]:
    """Read one sample after another; the name of each when it is read.

    Where they cannot be laid down nothing is read: files are read all the same.
    """
    with suppress(OSError), tempfile.TemporaryDirectory() as folder:
        for name, content, schema in SAMPLES:
            path = Path(folder) / name
            with open(path, "w", opener=for_owner) as file:
                file.write(content)
            how: dict[str, Any] = {"rules": Rules(), "layout": STANDARD, "keep": True}
            with suppress(ReconError):
                facts = readings.table(io.BytesIO(), path=path, schema=schema, **how)
                parcel.write_facts(facts, of=readings.table, into=io.BytesIO())
            yield name


SAMPLES = (("orders.csv", ORDERS, ORDER_FILE), ("ledger.csv", LEDGER_ROWS, LEDGER))
"""Name of the file, its content, its columns."""
