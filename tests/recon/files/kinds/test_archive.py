import stat
from pathlib import Path

import pyarrow as pa
import pytest

from recon.config.file_layouts import STANDARD
from recon.files.formats.named_bytes import read_bytes
from recon.files.kinds.archive import keep
from recon.files.typing.text_cells import holds_card_numbers
from recon.model.errors import OutputError

CARD = "4111111111111111"


def kept(tmp_path: Path, text: str, name: str = "a.csv") -> str:
    """Keep this text; why not, or ""."""
    (tmp_path / name).write_text(text)
    return keep(read_bytes(tmp_path / name), archive=tmp_path / "kept", layout=STANDARD)


def test_the_same_content_is_kept_once_for_its_owner(tmp_path: Path) -> None:
    """Two names of one content are one file; nobody else can read it."""
    assert kept(tmp_path, "a,b\n1,2\n") == ""
    assert kept(tmp_path, "a,b\n1,2\n", name="b.csv") == ""
    (found,) = (tmp_path / "kept").rglob("*.csv")
    assert found.read_text() == "a,b\n1,2\n"
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"a,b\n1,{CARD}\n", "card numbers in column b"),
        ("a,b\n1,x 4111-1111-1111-1111 y\n", "card numbers in column b"),
        (f"a,b\n1,2,{CARD}\n", "in a row that cannot be read"),
        ("a,beneficiary.bank_details.iban\n1,x\n", "columns of payees' bank details"),
    ],
)
def test_private_content_is_not_kept(tmp_path: Path, text: str, told: str) -> None:
    """The reason names the column and never the number."""
    why = kept(tmp_path, text)
    assert told in why
    assert CARD not in why
    assert not (tmp_path / "kept").exists()


def test_long_ids_are_no_cards() -> None:
    """A column of ids passes the check digit by chance only; a column of cards always."""
    ids = [str(4_000_000_000_000_000 + number * 7) for number in range(100)]
    assert not holds_card_numbers(pa.array(ids, pa.large_string()))
    assert holds_card_numbers(pa.array([CARD, "5500000000000004"], pa.large_string()))
    assert not holds_card_numbers(pa.array([f"{CARD}0000", ""], pa.large_string()))


def test_an_archive_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Nothing is taken of a file whose copy could not be kept."""
    (tmp_path / "kept").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        kept(tmp_path, "a,b\n1,2\n")
