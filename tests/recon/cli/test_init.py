import io
import os
import tomllib
from pathlib import Path

import pytest

from recon.cli import main
from tests.connect.own_files import CODES, codes_of, written_into
from tests.connect.own_files import ORDERS as ORDERS_OF_SHOP

ORDERS = (
    "Bestellnummer;Datum;Betrag;Währung;Status;Karte\r\n"
    "A-1;03.04.2026 09:30;1.250,50;EUR;bezahlt;4111 1111 1111 1111\r\n"
    "A-2;25.04.2026 10:00;7,00;EUR;storniert;4111 1111 1111 1111\r\n"
)
ACCOUNT = ("--merchant", "100042", "--account", "100042001")
DECIDED = {"zone": "Europe/Berlin", "portal.csv:kind": "gateway", "portal.csv:zone": "UTC"}
ANSWERS = [word for key, text in DECIDED.items() for word in ("--answer", f"{key}={text}")]
INIT = ["init", *ACCOUNT, *ANSWERS, "--as-of", "2026-11-29"]
LAYOUT = ("init", "--layout-only", "--as", "orders")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with one export and no configuration; what a command sets goes with the test."""
    variables = {name: text for name, text in os.environ.items() if not name.startswith("RECON_")}
    monkeypatch.setattr(os, "environ", variables)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    Path("shop-1.csv").write_bytes(ORDERS.encode("cp1252"))
    return tmp_path / "own"


@pytest.fixture
def own(folder):
    """Exports of a shop, its gateway's portal and its books, of which nothing was prepared."""
    (folder / "shop-1.csv").unlink()
    written_into(folder)
    return folder


def test_no_cell_of_a_column_that_is_not_known_is_shown(capsys):
    assert main([*LAYOUT, "shop-1.csv", *ACCOUNT]) == 2
    assert main([*LAYOUT, "shop-1.csv", *ACCOUNT, "--answer", "zone=Europe/Berlin"]) == 0
    shown = capsys.readouterr()
    assert "4111" not in shown.out + shown.err
    assert "# not read: Karte" in shown.out


def test_what_has_no_header_is_refused_without_a_word_of_it(capsys):
    Path("rows.csv").write_text("Erika Mustermann,DE89370400440532013000,12.00\n" * 3)
    assert main([*LAYOUT, "rows.csv", *ACCOUNT]) == 1
    assert main(["init", "rows.csv", *ACCOUNT]) == 2
    shown = capsys.readouterr()
    assert "names columns known to recon" in shown.err
    assert "orders: no file of" in shown.err
    assert "Erika" not in shown.out + shown.err
    assert "DE89" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--as", "invoices"], "--as invoices is none of orders"),
        (["--answer", "zone"], "--answer zone is not KEY=TEXT"),
        (["--answer", "zone=Europe/Berlin", "--answer", "encoding=ebcdic"], "encoding: "),
        (["--answer", "kind=invoices"], "shop-1.csv:kind=invoices is none of orders"),
    ],
)
def test_wrong_usage_is_told(words, sentence, capsys):
    assert main(["init", "--layout-only", "shop-1.csv", *ACCOUNT, *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_of_exports_becomes_a_true_workbook(own, capsys):
    assert main(["init"]) == 2
    assert "merchant: its number at the gateway (--merchant)" in capsys.readouterr().err
    assert main(["init", *ACCOUNT]) == 2
    asked = capsys.readouterr()
    assert "portal.csv:kind: is it a file of orders or gateway?" in asked.err
    assert "shop.csv:zone: times such as that on line 5 have no offset" in asked.err
    assert "3 asked: --answer KEY=TEXT" in asked.err
    assert {path.name for path in own.iterdir()} == {"shop.csv", "portal.csv", "books.csv"}

    assert main(INIT) == 3
    shown = capsys.readouterr()
    assert "GF-1      capture     2026-11-19 23:00:00+00:00  EUR       709.93" in shown.out
    assert codes_of(own / "first" / "breaks.csv") == CODES
    merchants = tomllib.loads((own / "config" / "merchants.toml").read_text())
    account = merchants["accounts"]["100042/100042001"]
    assert account["ledger"]["path"] == str(own / "books.csv")
    assert account["ledger"]["layout"]["words"] == {"entry_type": {"Zahlung": "capture"}}
    assert [layout["files"] for layout in account["layouts"]] == ["shop.csv"]
    assert (own / ".env").stat().st_mode & 0o777 == 0o600


def test_what_is_there_is_kept_unless_it_is_forced(own, capsys):
    (own / ".env").write_text("# mine\n")
    assert main(INIT) == 3
    assert f"Kept: {own / '.env'} (--force writes it anew)" in capsys.readouterr().out
    assert (own / ".env").read_text() == "# mine\n"
    assert main([*INIT, "--force"]) == 3
    assert "RECON_CONFIG_DIR" in (own / ".env").read_text()
    assert codes_of(own / "first-2" / "breaks.csv") == CODES


def test_a_terminal_is_asked(own, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    said = "100042\n100042001\nEurope/Berlin\ngateway\nUTC\nEurope/Berlin\n"
    monkeypatch.setattr("sys.stdin", Terminal(said))
    assert main(["init", "--as-of", "2026-11-29"]) == 3
    assert "zone [UTC]" in capsys.readouterr().out
    assert codes_of(own / "first" / "breaks.csv") == CODES


def test_without_the_portals_list_no_order_is_missing(own):
    (own / "portal.csv").unlink()
    main(INIT)
    assert (own / "first" / "unverified.csv").read_text().count("QUERY_FAILED") == ORDERS_OF_SHOP
    assert codes_of(own / "first" / "breaks.csv") == {}


def test_variables_are_found_from_the_folder_upward(folder, monkeypatch, capsys):
    dotenv, below = folder / ".env", folder / "below" / "further"
    below.mkdir(parents=True)
    config = folder / "config"
    config.mkdir()
    account = f'[accounts."1/2"]\ninbox = "{folder}"\nreports = "out"\n'
    (config / "merchants.toml").write_text(account)
    dotenv.write_text(
        f"RECON_CONFIG_DIR='{config}'\nRECON_MERCHANT=1\nRECON_ACCOUNT=2\nRECON_SIGN_KEY='a$b'\n"
    )
    dotenv.chmod(0o644)
    (below / "o.csv").write_text(
        "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
        "1,2,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z\n"
    )
    monkeypatch.chdir(below)
    assert main(["order-file", "check", "o.csv"]) == 2
    assert f"{dotenv} has mode 0644; others can read it: chmod 600" in capsys.readouterr().err
    dotenv.chmod(0o600)
    assert main(["order-file", "check", "o.csv"]) == 0
    assert os.environ["RECON_SIGN_KEY"] == "a$b"
    monkeypatch.setenv("RECON_ACCOUNT", "4")
    assert main(["order-file", "check", "o.csv"]) == 2
    shown = capsys.readouterr()
    assert "1/4" in shown.err
    assert "a$b" not in shown.out + shown.err

    dotenv.write_text("OTHER=1\n")
    dotenv.chmod(0o644)
    main(["--version"])
    assert "OTHER" not in os.environ


def test_variables_of_somebody_else_are_not_taken(folder, monkeypatch, capsys):
    """Whoever starts a command in a stranger's folder would ask the stranger's gateway."""
    dotenv = folder / ".env"
    dotenv.write_text("RECON_GATEWAY_BASE_URL=https://elsewhere.example\n")
    dotenv.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: dotenv.stat().st_uid + 1)

    assert main(["status"]) == 2
    assert f"{dotenv} belongs to another user" in capsys.readouterr().err
    assert "RECON_GATEWAY_BASE_URL" not in os.environ
