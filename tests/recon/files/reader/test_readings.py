"""What a fork makes of a plain file, whatever of it is read at once."""

from pathlib import Path

import pandas as pd
import pytest

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.reader import parcel, readings
from recon.files.typing.typed_table import read_table
from recon.model.words import SourceKind

FILES = {
    SourceKind.ORDERS: """\
merchant_id,account_id,order_no,currency,amount,status,ordered_at,shop
M1,1,A1,EUR,10.00,paid,2026-01-05T10:00:00Z,x
M1,1,A2,EUR,10.005,paid,2026-01-05T10:00:00Z,x
M1,1,"A,3",EUR,10.00,paid,2026-01-05T10:00:00Z,x
M1,1,A4,EUR,10.00,paid
M1,2,A5,JPY,10,cancelled,2026-01-05T10:00:00+01:00,""",
    SourceKind.GATEWAY: """\
merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,\
reference_no,transaction_date
M1,1,A1,T1,EUR,10.00,3000,1,R1,20260105100000
M1,1,A2,,,,,2,,
M1,1,A3,T3,EUR,ten,3000,1,,2026-01-05T10:00:00Z
M1,1,A4,4242424242424242,EUR,10.00,3000,1,,2026-01-05T10:00:00Z
""",
    SourceKind.LEDGER: """\
entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at
E1,M1,1,A1,capture,EUR,10.00,2026-01-05T10:00:00Z
E2,M1,1,A1,adjustment,EUR,-1.00,2026-01-05T10:00:00Z
E3,M1,1,A2,capture,EUR,-1.00,2026-01-05T10:00:00Z
E4,M1,1,A3,gift,EUR,1.00,2026-01-05T10:00:00Z
""",
}


@pytest.mark.parametrize("part_bytes", [1, 70, 1_000_000])
@pytest.mark.parametrize("kind", FILES)
def test_a_table_in_parts_is_the_table_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SourceKind, part_bytes: int
) -> None:
    """Rows, rejects, counts and ignored columns do not depend on where a part ends."""
    path = tmp_path / f"{kind}.csv"
    path.write_text(FILES[kind])
    whole = read_table(path, kind=kind, rules=Rules())

    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", part_bytes)
    with (tmp_path / "rows").open("w+b") as rows:
        facts = readings.table(rows, path=path, kind=kind, rules=Rules(), layout=STANDARD)
        rows.seek(0)
        frame = parcel.read_frame(rows)

    assert whole.rejects
    assert facts == (whole.rejects, whole.source_file, whole.ignored_columns, "")
    pd.testing.assert_frame_equal(frame, whole.frame)
