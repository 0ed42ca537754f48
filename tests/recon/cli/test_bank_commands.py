import pytest

from recon.cli import main
from tests.recon.files.bank_documents import IBAN, MT940, ROUTINE, balance, camt, entry, head

RULES = f'[bank.main]\niban = "{IBAN}"\ncurrency = "EUR"\naccounts = ["100042/100042001"]\n'
NEXT = head("8").replace("2026-11-20T", "2026-11-23T")


@pytest.fixture(autouse=True)
def _operator(tmp_path, monkeypatch):
    """A folder with the rules of one bank, and no database anywhere."""
    (tmp_path / "r.toml").write_text(RULES)
    monkeypatch.delenv("RECON_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


def check(*files):
    """The exit code of the check of these files."""
    how = ["--kind", "bank", "--rules", "r.toml", "--as-of", "2026-11-30"]
    return main(["order-file", "check", *files, *how])


def test_statements_tell_what_they_prove(tmp_path, capsys):
    (tmp_path / "a.xml").write_text(camt(ROUTINE + entry("250.50")))
    assert check("a.xml") == 0
    shown = capsys.readouterr().out
    assert "statement 7 (a.xml) of DE…3000, 2026-11-20: opening 100.00 EUR" in shown
    assert "1 booked entries of 250.50 EUR, closing 350.50 EUR. It counts." in shown
    assert "main: covered 2026-11-20 to 2026-11-20.\nNothing was stored.\n" in shown


def test_a_gap_and_a_refused_file_are_told(tmp_path, capsys):
    (tmp_path / "a.xml").write_text(camt(ROUTINE + entry("250.50")))
    (tmp_path / "b.sta").write_text(MT940.replace("CR250,50", "CR250,49"))
    later = NEXT + balance("OPBD", "1.00") + balance("CLBD", "1.00")
    (tmp_path / "c.xml").write_text(camt(later))
    assert check("a.xml", "b.sta", "c.xml") == 1
    told = capsys.readouterr()
    assert "350.49 EUR, but its closing balance is 350.50 EUR" in told.err
    assert "statements of main have a gap behind 2026-11-20" in told.err
    assert "main: covered 2026-11-20 to 2026-11-20." in told.out
    assert "It does not count." in told.out


def test_nothing_of_other_people_is_shown(tmp_path, capsys):
    inner = "<AddtlNtryInf>CANARY-TEXT</AddtlNtryInf>"
    (tmp_path / "a.xml").write_text(camt(ROUTINE + entry("250.51", inner=inner)))
    (tmp_path / "b.sta").write_text(MT940.replace("Gateway", "CANARY-NAME"))
    assert check("a.xml", "b.sta") == 1
    told = capsys.readouterr()
    assert "CANARY" not in told.out + told.err
