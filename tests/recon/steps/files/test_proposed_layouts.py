import time
from pathlib import Path

import pytest

from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.proposing.proposal import proposal_of
from recon.model.errors import SourceUnreadableError
from recon.steps.files.proposed_layouts import KINDS, Proposed, propose_layout
from tests.recon.files.proposing.exports import ACCOUNT, MERCHANT, SHAPES, made

PROPOSED_SECONDS_MAX = 2
SHAPE = {shape.name: shape for shape in SHAPES}


def proposed(folder: Path, name: str, *seeds: int) -> Proposed:
    """What is proposed for samples of a shape."""
    exports = [made(SHAPE[name], seed=seed) for seed in seeds]
    for export in exports:
        (folder / export.name).write_bytes(export.content)
    paths = [folder / export.name for export in exports]
    kind = SHAPE[name].kind
    account = (MERCHANT, ACCOUNT)
    return propose_layout(paths, kind=kind, rules=Rules(), account=account, answers={})


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("cents", '[[accounts."100042/100042001".layouts]]'),
        ("adyen", '[[accounts."100042/100042001".settlement.layouts]]'),
        ("instructions-en", '[[accounts."100042/100042001".layouts]]'),
        ("bank-fr", '[[bank."NAME".layouts]]'),
    ],
)
def test_a_proposal_is_read_by_the_readers_of_a_night(
    name: str, table: str, tmp_path: Path
) -> None:
    """Where nothing is asked, every sample is read through the door as a night reads it."""
    proposal = proposed(tmp_path, name, 0, 1)
    assert proposal.text.startswith(table)
    assert proposal.usable
    assert [file.source.rows_rejected for file in proposal.checked if file.source] == [0, 0]


def test_samples_of_two_layouts_are_refused(tmp_path: Path) -> None:
    """One layout is of one header."""
    first, second = (made(SHAPE[name], seed=0) for name in ("cents", "kwd"))
    for export in (first, second):
        (tmp_path / export.name).write_bytes(export.content)
    paths = [tmp_path / first.name, tmp_path / second.name]
    with pytest.raises(SourceUnreadableError, match="has another header"):
        propose_layout(paths, kind="orders", rules=Rules(), answers={})


def test_a_row_that_a_night_would_refuse_makes_a_proposal_unusable(tmp_path: Path) -> None:
    """The check says why not, with the line."""
    export = made(SHAPE["cents"], seed=0)
    path = tmp_path / export.name
    path.write_bytes(export.content + b"B-1,2026-01-01T00:00:00Z,12.5,EUR,paid\r\n")
    account = (MERCHANT, ACCOUNT)
    proposal = propose_layout([path], kind="orders", rules=Rules(), account=account, answers={})
    (checked,) = proposal.checked
    assert not proposal.usable
    assert [reject.line for reject in checked.rejects] == [len(export.rows) + 2]


def test_every_kind_of_file_can_be_proposed() -> None:
    """Orders, instructions, settlement, ledger and bank."""
    assert set(KINDS) == {"orders", "instructions", "settlement", "ledger", "bank"}


def test_a_proposal_for_a_large_sample_takes_seconds(tmp_path: Path) -> None:
    """5,000 rows of twelve columns are ranked and read in two seconds of the processor."""
    export = made(SHAPE["shopify"], seed=0)
    header, *rows = export.content.split(b"\n")
    path = tmp_path / "large.csv"
    path.write_bytes(b"\n".join([header, *(row for _ in range(120) for row in rows[:-1]), b""]))
    schema = KINDS["orders"].schema
    began = time.process_time()
    proposal_of([read_bytes(path)], schema=schema, constants={}, answers={})
    assert time.process_time() - began < PROPOSED_SECONDS_MAX
