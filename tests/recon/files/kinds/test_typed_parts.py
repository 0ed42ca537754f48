"""The parts of an order file: who reads which, and that a killed reader changes no row."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recon.config.cluster import IN_PROCESS, ClusterSettings, Workers
from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.formats.csv_text import CsvRecords
from recon.files.formats.raw_table import RawTable
from recon.files.kinds.spooled_file import spooled_file
from recon.model.errors import SourceUnreadableError
from recon.model.words import Reject
from recon.workers.dask_workers import workers_of
from tests.recon.files.elsewhere import Elsewhere

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,note\n"
ROW = '100042,100042001,{},EUR,{},paid,2026-01-05T10:00:00Z,"said ""{}"",\nand more"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Forty orders over two lines each, some bad, and one of them with a quote out of its place."""
    rows = [ROW.format(f"A-{n}", "10.0x" if n % 9 == 4 else "10.00", n) for n in range(40)]
    rows[25] = rows[25].replace('"said', 'x"said').replace('more"', "more")
    file = tmp_path / "orders.csv"
    file.write_text(HEADER + "".join(rows))
    return file


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of some four rows."""
    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", 300)


def read(path: Path, *, workers: Workers) -> tuple[list[str], tuple[Reject, ...]]:
    """The file's orders with the lines where they stood, and its rejects."""
    with spooled_file(path, rules=Rules(), layout=STANDARD, keep=True, workers=workers) as found:
        orders = pd.concat([part.orders for part in found.parts()], ignore_index=True)
        return [
            f"{line} {no}" for line, no in orders[["line", "order_no"]].to_numpy()
        ], found.rejects


def test_records_are_handed_out_unread_unless_they_are_doubtful(path: Path) -> None:
    """The first part, with the header, stays here; one with a stray quote is read here, too."""
    workers = Elsewhere()

    found = read(path, workers=workers)

    assert found == read(path, workers=IN_PROCESS)
    assert {type(part) for part in workers.handed} == {CsvRecords, RawTable}
    unread = [part for part in workers.handed if isinstance(part, CsvRecords)]
    assert len(unread) > len(workers.handed) - len(unread) > 0
    assert unread[0].line > 2
    assert not any(b'x"said' in part.content for part in unread)
    assert (len(found[0]), len(found[1])) == (35, 6)


def test_too_many_rows_are_counted_over_all_parts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reader of a part sees how many rows the others have."""
    monkeypatch.setattr("recon.files.formats.raw_table.ROWS_MAX", 20)

    with pytest.raises(SourceUnreadableError, match=r"orders\.csv has more than 20 rows"):
        read(path, workers=Elsewhere())


def test_a_small_file_is_never_handed_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits one part is read here, so that no cluster is started for it."""
    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", 1_000_000)
    workers = Elsewhere()

    read(path, workers=workers)

    assert workers.handed == []


@pytest.mark.process
@pytest.mark.xdist_group("dask")
def test_a_worker_killed_over_a_file_changes_no_row(
    path: Path, dask_cluster: ClusterSettings, killed_once: Callable[..., Any]
) -> None:
    """Its part is read again by another: the same rows, lines, rejects, in the same order."""
    with workers_of(dask_cluster, variables={}) as workers:
        mortal = killed_once(workers)
        found = read(path, workers=mortal)

    assert int(mortal.mark.read_text()) != os.getpid()
    assert found == read(path, workers=IN_PROCESS)
