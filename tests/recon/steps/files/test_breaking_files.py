"""Files that break their reader: refused by name, set aside by content, and the night goes on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from recon.files.reader import Bounds, FileReader, bounds_of
from recon.model.nights import Mode
from recon.model.words import Verdict
from recon.steps.files import words_on_files
from recon.steps.ground.identity import speaker

PLACE = ("100042", "100042001")
LARGE_BYTES = 20_000
LEDGER = "ledger.csv"
"""The books of every night here, which are right but in one test."""
NOTES = "order_no,notes\n" + "A-1,nothing to see here\n" * 100_000
"""More than fits into what a process of the libraries has left of its own."""
MIB = 2**20
SETTLEMENT = """
[accounts."100042/100042001".settlement]
inbox = "{path}"
"""


def of_this_test(size_bytes: int) -> Bounds:
    """As always, but a large file gets no more memory than the libraries have by themselves."""
    bounds = bounds_of(size_bytes)
    return replace(bounds, data_bytes=16 * MIB) if size_bytes > LARGE_BYTES else bounds


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileReader]:
    """A reader that large files break."""
    reader = FileReader(bounds=of_this_test)
    monkeypatch.setattr("recon.files.reader.files.file_reader", lambda: reader)
    yield reader
    reader.close()


@pytest.fixture
def tries(reader: FileReader, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were handed to the reader, the right books left out."""
    names: list[str] = []
    read = reader.read

    def counted(file: Any, work: Any, **arguments: Any) -> Any:
        if file.name != LEDGER or file.read_text() == NOTES:
            names.append(file.name)
        return read(file, work, **arguments)

    monkeypatch.setattr(reader, "read", counted)
    return names


def _ingested(merchant: Any) -> str:
    return next(step.sentence for step in merchant.told if step.step == "ingest")


def _good(merchant: Any) -> None:
    merchant.drop("a-good.csv", *(merchant.order(p) for p in merchant.payments("captured")[:2]))
    merchant.drop("z-good.csv", *(merchant.order(p) for p in merchant.payments("captured")[2:4]))


def test_the_night_goes_on_without_a_file_that_broke_its_reader(
    merchant: Any, tries: list[str]
) -> None:
    """It is named, what is before and behind it is read, and the night says INCOMPLETE."""
    _good(merchant)
    (merchant.inbox / "m-bomb.csv").write_text(NOTES)
    verdict = merchant.night(mode=Mode.DRY_RUN)

    assert verdict is Verdict.INCOMPLETE
    assert tries == ["a-good.csv", "m-bomb.csv", "z-good.csv"]
    told = _ingested(merchant)
    assert "2 new order files with 4 rows accepted" in told
    assert "1 refused as a whole and left in the inbox: m-bomb.csv" in told
    assert "its content is set aside: no night tries it again, under whatever name" in told


def test_the_same_content_is_not_tried_again_wherever_it_lies(
    merchant: Any, tries: list[str]
) -> None:
    """Not under another name, not the next night, not as a ledger or a settlement file."""
    (merchant.inbox / "bomb.csv").write_text(NOTES)
    merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv"]

    settled = merchant.folder / "settled"
    settled.mkdir()
    for place in (merchant.inbox / "copy.csv", settled / "day.csv", merchant.folder / LEDGER):
        place.write_text(NOTES)
    declared = merchant.folder / "config" / "merchants.toml"
    declared.write_text(declared.read_text() + SETTLEMENT.format(path=settled))
    merchant.night(mode=Mode.DRY_RUN)

    assert tries == ["bomb.csv"]
    told = _ingested(merchant)
    for name in ("bomb.csv", "copy.csv", "day.csv"):
        assert f"{name} was not read: this content is set aside (bomb.csv " in told
    books = next(step.sentence for step in merchant.told if step.step == "query")
    assert "ledger.csv was not read: this content is set aside (bomb.csv " in books


def test_somebody_may_let_it_be_tried_once_more(merchant: Any, tries: list[str]) -> None:
    """By any name under which it was met; what breaks its reader again is set aside again."""
    (merchant.inbox / "bomb.csv").write_text(NOTES)
    merchant.night(mode=Mode.DRY_RUN)
    (merchant.inbox / "bomb.csv").rename(merchant.inbox / "copy.csv")
    merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv"]

    with merchant.environment() as environment:
        ann = speaker("Ann", code=None, environment=environment)
        words_on_files.read_again("copy.csv", account=PLACE, person=ann, reason="more memory now")
    for _ in range(2):
        merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv", "copy.csv"]


def test_another_content_under_that_name_is_read(merchant: Any, tries: list[str]) -> None:
    """A name is not set aside, only what lay under it."""
    (merchant.inbox / "orders.csv").write_text(NOTES)
    merchant.night(mode=Mode.DRY_RUN)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["orders.csv", "orders.csv"]
    assert "1 new order files with 1 rows accepted" in _ingested(merchant)
    assert "refused as a whole" not in _ingested(merchant)
