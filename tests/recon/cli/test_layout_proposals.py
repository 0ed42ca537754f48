from pathlib import Path

import pytest

from recon.cli import main

ORDERS = (
    "Bestellnummer;Datum;Betrag;Währung;Status;Karte\r\n"
    "A-1;03.04.2026 09:30;1.250,50;EUR;bezahlt;4111 1111 1111 1111\r\n"
    "A-2;25.04.2026 10:00;7,00;EUR;storniert;4111 1111 1111 1111\r\n"
)
ACCOUNT = ("--merchant", "100042", "--account", "100042001")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one export and no configuration."""
    monkeypatch.chdir(tmp_path)
    for name in ("RECON_CONFIG_DIR", "RECON_MERCHANT", "RECON_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "shop-1.csv").write_bytes(ORDERS.encode("cp1252"))


def test_no_cell_of_a_column_that_is_not_known_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A card number stands in no output, not even in the question about its row."""
    main(["order-file", "propose", "shop-1.csv", *ACCOUNT])
    shown = capsys.readouterr()
    assert "4111" not in shown.out + shown.err
    assert "# not read: Karte" in shown.out


def test_what_has_no_header_is_refused_without_a_word_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first row of people and accounts is no header, and nothing of it is repeated."""
    (tmp_path / "rows.csv").write_text("Erika Mustermann,DE89370400440532013000,12.00\n" * 3)
    assert main(["order-file", "propose", "rows.csv", *ACCOUNT]) == 1
    shown = capsys.readouterr()
    assert "names columns known to recon" in shown.err
    assert "Erika" not in shown.out + shown.err
    assert "DE89" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--as", "invoices"], "--as invoices is none of orders"),
        (["--answer", "zone"], "--answer zone is not KEY=TEXT"),
        (["--answer", "zone=Europe/Berlin", "--answer", "encoding=ebcdic"], "encoding: "),
    ],
)
def test_wrong_usage_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer that a key cannot have ends with a sentence about it."""
    assert main(["order-file", "propose", "shop-1.csv", *ACCOUNT, *words]) == 2
    assert sentence in capsys.readouterr().err
