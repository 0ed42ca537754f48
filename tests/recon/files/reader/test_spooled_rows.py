from pathlib import Path

import pandas as pd
import pytest

from recon.config.file_layouts import STANDARD, FileLayout, Trailer
from recon.config.rules import Rules
from recon.files.kinds.archive import keep_read
from recon.files.reader import OrderRead, SpooledRows
from recon.model.errors import SourceUnreadableError
from tests.recon.files.whole_read import spooled_file

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,request_id"
ROW = "100042,100042001,{},EUR,10.00,paid,2026-01-05T10:00:00Z,{},{}\n"
CARD = "4242424242424242"


def _kept(path: Path, read: OrderRead, archive: Path) -> str:
    sha256 = read.facts.source_file.sha256
    return keep_read(path, sha256=sha256, private=read.facts.private, archive=archive)


def _read(path: Path, *, keep: bool = True) -> tuple[OrderRead, SpooledRows]:
    with spooled_file(path, rules=Rules(), layout=STANDARD, keep=keep) as read:
        parts = list(read.parts())
    frames = (pd.concat(frames, ignore_index=True) for frames in zip(*parts, strict=True))
    return read, SpooledRows(*frames) if parts else SpooledRows(*[pd.DataFrame()] * 2)


@pytest.mark.parametrize(
    ("keys", "accepted"),
    [
        ([f"{4_000_000_000_000_000 + n}" for n in range(30)], 30),
        (["4111111111111112", CARD, CARD], 1),
        ([CARD, "4111111111111112", "4111111111111113"], 3),
    ],
)
def test_cards_are_judged_over_the_whole_file(
    tmp_path: Path, keys: list[str], accepted: int
) -> None:
    """A column numbered like cards is left alone, and a card is refused, in the same column."""
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "\n" + "".join(ROW.format(key, "", "") for key in keys))

    assert len(_read(path)[1].orders) == accepted


def test_a_file_with_a_card_is_not_kept_and_another_once(tmp_path: Path) -> None:
    """The reason names the column, and never the number; a fit file lies there by its hash."""
    text = HEADER + ",note\n" + ROW.format("A-1", "", "").replace("\n", f",{CARD}\n")
    (tmp_path / "bad.csv").write_text(text)
    (tmp_path / "good.csv").write_text(text.replace(CARD, "12"))
    archive = tmp_path / "kept"
    told = []
    for name in ("bad.csv", "good.csv", "good.csv"):
        read, _ = _read(tmp_path / name)
        told.append(_kept(tmp_path / name, read, archive))

    assert told == ["it holds card numbers in column note; remove it and ask for another", "", ""]
    assert [kept.read_text() for kept in archive.rglob("*.csv")] == [text.replace(CARD, "12")]


def test_a_file_that_changed_after_it_was_read_is_not_kept(tmp_path: Path) -> None:
    """The copy is of the bytes that were read, or there is none."""
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "\n" + ROW.format("A-1", "", ""))
    read, _ = _read(path)
    path.write_text(HEADER + "\n" + ROW.format("A-2", "", ""))

    with pytest.raises(SourceUnreadableError, match="changed after it was read"):
        _kept(path, read, tmp_path / "kept")
    assert not list((tmp_path / "kept").rglob("*.*"))


def test_a_whole_file_wish_and_a_trailer_hold(tmp_path: Path) -> None:
    """Figures of the last record are compared with all rows; one bad row refuses them all."""
    layout = FileLayout(trailer=Trailer(word="END", rows=2, amount=3), whole_file=True)
    path = tmp_path / "orders.csv"
    rows = "".join(ROW.format(f"A-{n}", "capture", f"R{n}") for n in range(5))
    for text, told in (
        (rows + "END,6,50.00\n", "declares 6 rows and has 5"),
        (rows + "END,5,50.01\n", "declares 50.01 EUR and its rows have 50.00"),
        (rows.replace("A-0", "A 0") + "END,5,50.00\n", "has 1 rows that cannot be read"),
    ):
        path.write_text(HEADER + "\n" + text)
        with (
            pytest.raises(SourceUnreadableError, match=told),
            spooled_file(path, rules=Rules(), layout=layout, keep=False),
        ):
            pass
    path.write_text(HEADER + "\n" + rows + "END,5,50.00\n")
    with spooled_file(path, rules=Rules(), layout=layout, keep=False) as read:
        assert sum(len(part.actions) for part in read.parts()) == 5
