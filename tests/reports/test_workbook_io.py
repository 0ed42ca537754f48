"""Workbooks that came back are read behind the door: none of them ends the command."""

from dataclasses import replace

import pytest

from recon.files.reader_process import MIB, FileReader, bounds_of
from recon.model.errors import OutputError, ReaderBrokenError, SourceUnreadableError
from reports.workbook_io import returned_answers, returned_differences, returned_run

BROKEN = r"signed\.xlsx (needs more than 1 MiB of memory|broke its reader)"
"""Which of both, its memory decides: a reader that read before has some lying free."""


@pytest.fixture
def little_memory(monkeypatch):
    """A reader that every file breaks."""
    reader = FileReader(bounds=lambda size: replace(bounds_of(size), data_bytes=MIB))
    monkeypatch.setattr("reports.workbook_io.file_reader", lambda: reader)
    yield
    reader.close()


def test_what_is_no_workbook_is_refused_in_the_readers_words(tmp_path):
    path = tmp_path / "signed.xlsx"
    path.write_text("hello")
    with pytest.raises(SourceUnreadableError, match=r"signed\.xlsx"):
        returned_answers(path)
    assert returned_run(path) == ""
    with pytest.raises(OutputError, match=r"signed\.xlsx cannot be read"):
        list(returned_differences(tmp_path / "night.xlsx", path))


@pytest.mark.usefixtures("little_memory")
def test_a_workbook_that_breaks_its_reader_is_refused_by_name(tmp_path):
    path = tmp_path / "signed.xlsx"
    path.write_bytes(b"hello" * MIB)
    with pytest.raises(ReaderBrokenError, match=BROKEN):
        returned_answers(path)
    assert returned_run(path) == ""
    with pytest.raises(ReaderBrokenError, match=BROKEN):
        list(returned_differences(tmp_path / "night.xlsx", path))
