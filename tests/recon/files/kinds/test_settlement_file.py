from pathlib import Path

import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.typing.table_schema import SETTLEMENT_FILE
from recon.files.typing.typed_table import Table
from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.model.errors import SourceUnreadableError
from recon.model.words import SourceKind
from tests.recon.files.whole_read import read_table

THEIRS = FileLayout(
    columns={"batch_id": "Lot", "order_no": "Merchant Ref", "own_reference": "Ours"},
    constants={"merchant_id": "M", "account_id": "A", "currency": "EUR"},
    words={"entry_type": {"Settled": "capture", "Refunded": "refund"}},
)
TEXT = """Lot,settled_on,entry_type,Merchant Ref,transaction_id,reference_no,gross,fee,net,Ours
L1,2026-11-20,Settled,A-1,T1,,10.00,0.30,9.70,
L1,2026-11-20,Refunded,A-2,T2,R2,-4.00,0.00,-4.00,I-2
L1,2026-11-20,Refunded,A-3,T3,R3,-4.00,0.00,-3.00,
"""


def read(path: Path, text: str, *, layout: FileLayout = THEIRS) -> Table:
    """What a night reads of such a file."""
    path.write_text(text)
    kind = SourceKind.SETTLEMENT
    return read_table(path, kind=kind, rules=Rules(), layout=layout, schema=SETTLEMENT_FILE)


def test_a_file_is_read_by_its_layout(tmp_path: Path) -> None:
    """Names, words and constants are the merchant's; a line that does not add up is refused."""
    found = read(tmp_path / "s.csv", TEXT)
    assert set(SETTLEMENT_COLUMNS) <= set(found.frame.columns)
    assert found.frame[["entry_type", "net", "own_reference"]].to_numpy().tolist() == [
        ["capture", 970, ""],
        ["refund", -400, "I-2"],
    ]
    assert [(one.line, one.order_no) for one in found.rejects] == [(4, "A-3")]


def test_a_last_line_that_may_have_been_cut_is_refused(tmp_path: Path) -> None:
    """A file that was still being written ends in the middle of a line."""
    found = read(tmp_path / "s.csv", TEXT.splitlines(keepends=True)[0] + TEXT.splitlines()[1])
    assert len(found.frame) == 0
    assert [one.line for one in found.rejects] == [2]


def test_all_or_nothing_refuses_the_file(tmp_path: Path) -> None:
    """`whole_file` holds for settlement files, too."""
    whole = THEIRS.model_copy(update={"whole_file": True})
    with pytest.raises(SourceUnreadableError, match="all or nothing"):
        read(tmp_path / "s.csv", TEXT, layout=whole)
