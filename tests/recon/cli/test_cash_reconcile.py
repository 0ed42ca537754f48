"""`recon reconcile --settlement`: what the gateway holds and took, at its end and on page one."""

import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.cli import main

OWN = "100042,100042001"
LINES = (
    "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,reference_no,"
    "currency,gross,fee,net\n"
)
FIRST = (
    f"{LINES}B1,{OWN},2026-11-16,capture,A1,T1,,EUR,150.00,3.00,147.00\n"
    f"B1,{OWN},2026-11-16,reserve,,,,EUR,-20.00,0.00,-20.00\n"
    f"B1,{OWN},2026-11-16,payout,,,,EUR,107.00,0.00,107.00\n"
)
FILES = {
    "orders.csv": "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
    f"{OWN},A1,EUR,150.00,paid,2026-11-13T00:00:00Z\n",
    "gateway.csv": "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
    "query_result,reference_no,transaction_date\n"
    f"{OWN},A1,T1,EUR,150.00,3000,1,R1,20261113100000\n",
    "ledger.csv": "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "reference_no\n"
    f"E1,{OWN},A1,capture,EUR,150.00,2026-11-13T00:00:00Z,\n"
    f"E2,{OWN},,fee,EUR,86.99,2026-11-16T00:00:00Z,\n"
    f"E3,{OWN},,reserve,EUR,20.00,2026-11-16T00:00:00Z,\n"
    f"E4,{OWN},,payout,EUR,107.00,2026-11-16T00:00:00Z,B1\n",
    "settlement.csv": FIRST,
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payment of 150.00 EUR, less a fee of 3.00 and a reserve of 20.00; 20.00 more are held."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def reconciled(*words: str, out: str = "out", kinds: str = "orders gateway ledger") -> int:
    """The exit code over the files and these words."""
    named = [word for kind in kinds.split() for word in (f"--{kind}", f"{kind}.csv")]
    return main(["reconcile", *named, "--as-of", "2026-11-20", "--out", out, *words])


def summary(out: str = "out") -> dict[str, Any]:
    """summary.json of a run."""
    document: dict[str, Any] = json.loads(Path(out, "summary.json").read_text())
    return document


def page_one(out: str = "out") -> list[list[Any]]:
    """The rows of page one, blank cells left out."""
    sheet = load_workbook(Path(out, "reconciliation.xlsx"), data_only=True)["Summary"]
    rows = ([cell.value for cell in row if cell.value is not None] for row in sheet.iter_rows())
    return [row for row in rows if row]


def test_page_one_the_console_and_the_summary_tell_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Payable, held back and reserve with their ages; fees charged, booked and their difference."""
    assert reconciled("--settlement", "settlement.csv") == 3
    lines = capsys.readouterr().out
    assert (
        "The gateway holds: payable 20.00 EUR (oldest 2026-11-16), "
        "held back 20.00 EUR (oldest 2026-11-16), reserve 20.00 EUR (oldest 2026-11-16)\n"
        "Fees: charged 3.00 EUR, booked 86.99 EUR, difference -83.99 EUR\n"
    ) in lines
    own = {"merchant_id": "100042", "account_id": "100042001", "currency": "EUR"}
    part = {"amount": "20.00", "oldest": "2026-11-16"}
    assert summary()["gateway_holds"] == [
        {**own, "payable": part, "held_back": part, "reserve": part}
    ]
    fees = {"charged": "3.00", "booked": "86.99", "difference": "-83.99"}
    assert summary()["fees"] == [{**own, **fees}]
    rows = page_one()
    top = rows.index(["The gateway holds", "Fees"])
    days = [word for _ in range(3) for word in (20, "4 days")]
    assert rows[top + 2] == ["EUR", *days, 3, 86.99, -83.99]


def test_without_books_fees_are_told_and_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not covered says so, and is no zero."""
    assert reconciled("--settlement", "settlement.csv", kinds="orders gateway") != 0
    assert "Fees: charged 3.00 EUR, the books are not covered\n" in capsys.readouterr().out
    assert summary()["fees"][0]["booked"] == summary()["fees"][0]["difference"] == ""
    assert ["EUR", 20, "4 days", 20, "4 days", 20, "4 days", 3, *["not covered"] * 2] in page_one()


def test_without_a_settlement_nothing_is_said_of_what_the_gateway_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Never a zero: page one and the summary leave it out, the console too."""
    assert reconciled() == 0
    assert "The gateway holds" not in capsys.readouterr().out
    assert not {"gateway_holds", "fees"} & {*summary()}
    assert not [row for row in page_one() if "The gateway holds" in row]
