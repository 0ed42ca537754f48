import csv
import json
from pathlib import Path

import pytest
from openpyxl import load_workbook

from recon.cli import main
from tests.recon.files.bank_documents import IBAN, balance, camt, entry, head, payment

OWN = "100042,100042001"
FILES = {
    "orders.csv": "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
    f"{OWN},A1,EUR,10.00,paid,2026-11-16T10:00:00Z\n",
    "gateway.csv": "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
    "query_result,reference_no,transaction_date\n"
    f"{OWN},A1,T1,EUR,10.00,3000,1,R1,20261116100000\n",
    "ledger.csv": "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "reference_no\n"
    f"E1,{OWN},A1,capture,EUR,10.00,2026-11-16T00:00:00Z,\n"
    f"E2,{OWN},,payout,EUR,10.00,2026-11-17T00:00:00Z,BATCH-01\n",
    "settlement.csv": "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,"
    "transaction_id,reference_no,currency,gross,fee,net\n"
    f"BATCH-01,{OWN},2026-11-17,capture,A1,T1,,EUR,10.00,0.00,10.00\n"
    f"BATCH-01,{OWN},2026-11-17,payout,,,,EUR,10.00,0.00,10.00\n",
    "rules.toml": f'[bank.main]\niban = "{IBAN}"\ncurrency = "EUR"\n'
    'accounts = ["100042/100042001"]\n[calendar]\nbank = "XECB"\n',
}
WORDS = [word for kind in ("orders", "gateway", "ledger", "settlement", "rules")
         for word in (f"--{kind}", f"{kind}.{'toml' if kind == 'rules' else 'csv'}")]  # fmt: skip


LATER = ["--out", "next", "--previous", "out"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paid, booked, settled and paid-out order of 10.00 EUR."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def statement(amount: str, closing: str, *, canary: str = "") -> str:
    """Of 20 November, with one entry that names the batch and one of somebody else."""
    inner = f"<NtryDtls>{payment(amount, reference='BATCH-01')}</NtryDtls>"
    other = entry("5.00", ref="E2", inner=f"<AddtlNtryInf>{canary}</AddtlNtryInf>")
    body = head() + balance("OPBD", "100.00") + balance("CLBD", closing)
    return camt(body + entry(amount, inner=inner) + other)


def reconciled(*banks: str) -> int:
    """The exit code over the files and these statements."""
    named = [word for bank in banks for word in ("--bank", bank)]
    return main(["reconcile", *WORDS, *named, "--as-of", "2026-11-20", "--out", "out"])


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a result file."""
    with Path("out", name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_what_arrived_in_full_is_reconciled(tmp_path: Path) -> None:
    """The pay-out stands on the statement; nothing is open, and the totals of the bank hold."""
    (tmp_path / "b.xml").write_text(statement("10.00", "115.00"))
    assert reconciled("b.xml") == 0
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["verdict"] == "RECONCILED"
    totals = {one["id"] for one in summary["control_totals"] if one["passed"]}
    assert totals >= {"T15", "T16", "T17"}
    assert [row["rule"] for row in rows("matches.csv")].count("bank") == 1


def test_what_is_missing_is_a_break_with_its_effect(tmp_path: Path) -> None:
    """The last two columns of breaks.csv, the leg `bank` of effects.csv, a sentence, no text."""
    (tmp_path / "b.xml").write_text(statement("9.00", "114.00", canary="CANARY"))
    assert reconciled("b.xml") == 3
    header = (tmp_path / "out/breaks.csv").read_text().splitlines()[0]
    assert header.endswith(",reason,bank_amount,effect_bank")
    (found,) = rows("breaks.csv")
    assert (found["code"], found["bank_amount"], found["effect_bank"]) == (
        "BANK_AMOUNT_DIFFERS",
        "9.00",
        "-1.00",
    )
    assert (found["exposure"], found["owed_to"]) == ("1.00", "merchant")
    (effect,) = rows("effects.csv")
    assert (effect["leg"], effect["amount"]) == ("bank", "-1.00")
    for path in (tmp_path / "out").iterdir():
        assert b"CANARY" not in path.read_bytes()
    # What was settled and what the bank said is carried on: given again it would be refused.
    words = [word for word in WORDS if word not in {"--settlement", "settlement.csv"}]
    further = ["reconcile", *words, "--as-of", "2026-11-20", *LATER]
    assert main([*further, "--bank", "b.xml"]) == 2
    assert main(further) == 3
    summary = json.loads((tmp_path / "next/summary.json").read_text())
    assert summary["verdict"] == "BREAKS OPEN"


def test_a_statement_that_is_refused_leaves_the_rest_and_says_so(tmp_path: Path) -> None:
    """INCOMPLETE with both figures; the orders are compared all the same."""
    (tmp_path / "b.xml").write_text(statement("10.00", "115.01"))
    assert reconciled("b.xml") == 4
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["verdict"] == "INCOMPLETE"
    told = " ".join(summary["not_covered"])
    assert "115.00 EUR" in told
    assert "115.01 EUR" in told
    assert "the bank main: no statement of it counts" in told
    assert {row["order_no"] for row in rows("matches.csv")} >= {"A1"}


def test_without_statements_the_bank_is_not_covered_by_name(tmp_path: Path) -> None:
    """Never a silent zero."""
    assert reconciled() == 0
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert "the bank, T15, T16 and T17: no statement of a bank was given" in summary["not_covered"]


def test_one_statement_named_twice_is_a_mistake(tmp_path: Path) -> None:
    """As of every other kind of file."""
    (tmp_path / "b.xml").write_text(statement("10.00", "115.00"))
    assert reconciled("b.xml", "b.xml") == 2


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_a_day_that_is_centuries_away_is_a_refused_row(day: str, tmp_path: Path) -> None:
    """The row is told with file, line and reason; the run goes on with the rest."""
    own = f"BATCH-02,{OWN},{day},capture,A2,T2,,EUR,10.00,0.00,10.00\n"
    (tmp_path / "settlement.csv").write_text(FILES["settlement.csv"] + own)
    assert reconciled() == 3
    (refused,) = rows("rejects.csv")
    assert (refused["line"], refused["column"]) == ("4", "settled_on")
    assert "not between the years 1970 and 2199" in refused["reason"]


def test_what_makes_it_incomplete_is_said_first_with_the_workbook_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal and on page one of the workbook that is named; an earlier one stays."""
    (tmp_path / "b.xml").write_text(statement("10.00", "115.00"))
    assert reconciled("b.xml") == 0
    whole = capsys.readouterr().out
    (tmp_path / "rules.toml").write_text('[calendar]\nbank = "XECB"\n')
    assert reconciled("b.xml") == 4
    lacking = capsys.readouterr().out.splitlines()

    assert whole.splitlines()[-1] == "Workbook: out/reconciliation.xlsx"
    assert "Incomplete" not in whole
    assert lacking[1].startswith("Incomplete: statement 7 (b.xml) is of the account ")
    served = "pay-outs of 100042/100042001: no [bank] of the rules names this account"
    assert lacking[2] == f"Incomplete: {served}."
    assert lacking[-1] == "Workbook: out/reconciliation-v2.xlsx"
    page_one = load_workbook("out/reconciliation-v2.xlsx")["Summary"]
    assert {*lacking[1:3]} <= {cell.value for row in page_one.iter_rows() for cell in row}
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["not_covered"][1] == served


def test_without_books_a_run_says_which_option_gives_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Plain files have no merchants.toml in which a ledger could be declared."""
    words = [*WORDS[: WORDS.index("--ledger")], *WORDS[WORDS.index("--settlement") :]]
    assert main(["reconcile", *words, "--as-of", "2026-11-20", "--out", "out"]) == 4
    shown = capsys.readouterr().out
    assert "Incomplete: no ledger was given (--ledger)." in shown
    assert "merchants.toml" not in shown
