"""`recon reconcile --fees`: charged beside the contract, a claim for the gateway, a credit."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from recon.cli import main

OWN = "100042,100042001"
CONTRACT = """
rounding = "half_up"
[[lines]]
name = "visa"
from = 2026-01-01
type = "capture"
currency = "EUR"
brand = "visa"
basis_points = 140
fixed_minor_units = 25
[[lines]]
name = "others"
from = 2026-01-01
type = "capture"
currency = "EUR"
basis_points = 200
"""
HEADER = (
    "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,reference_no,"
    "currency,gross,fee,net,brand\n"
)
LINES = (
    f"{HEADER}B1,{OWN},2026-11-16,capture,A1,T1,,EUR,100.00,1.65,98.35,Visa\n"
    f"B1,{OWN},2026-11-16,capture,A2,T2,,EUR,100.00,1.90,98.10,visa\n"
    f"B1,{OWN},2026-11-16,capture,A3,T3,,EUR,100.00,9.00,91.00,\n"
    f"B1,{OWN},2026-11-16,payout,,,,EUR,300.00,12.55,287.45,\n"
)
CREDIT = f"{HEADER}B2,{OWN},2026-11-18,fee,A2,T2,,EUR,0.00,-0.25,0.25,\n"
ORDERS = "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n" + "".join(
    f"{OWN},A{number},EUR,100.00,paid,2026-11-13T00:00:00Z\n" for number in (1, 2, 3)
)
ANSWERS = (
    "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,"
    "reference_no,transaction_date\n"
    + "".join(
        f"{OWN},A{number},T{number},EUR,100.00,3000,1,R{number},20261113100000\n"
        for number in (1, 2, 3)
    )
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Three payments: one at the agreed fee, one 0.25 above it, one whose brand nobody tells."""
    texts = {"orders": ORDERS, "gateway": ANSWERS, "settlement": LINES, "credit": CREDIT}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "contract.toml").write_text(CONTRACT)
    monkeypatch.chdir(tmp_path)


def reconciled(*words, out="out"):
    """The exit code over the files and these words."""
    named = ("--orders", "orders.csv", "--gateway", "gateway.csv", "--as-of", "2026-11-20")
    return main(["reconcile", *named, "--out", out, *words])


def codes(out):
    """Order -> code of the breaks of one."""
    with Path(out, "breaks.csv").open() as file:
        return {row["order_no"]: row["code"] for row in csv.DictReader(file) if row["order_no"]}


def claims(out):
    with Path(out, "fee-claims.csv").open() as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CONTRACT.replace('"half_up"', '"up_half"'), "rounding: must be 'half_up'"),
        (CONTRACT.replace("basis_points = 140", "basis_points = 1.405"), "lines #1.basis_points"),
        (CONTRACT.replace("basis_points = 140", "percent = 1.4"), "lines #1.percent: unknown"),
        (CONTRACT.replace('brand = "visa"\n', ""), "visa and others hold for the same"),
        (CONTRACT.replace('"EUR"', '"EUX"', 1), "lines #1.currency"),
        (CONTRACT.replace('"capture"', '"sale"', 1), "lines #1.type: must be 'capture'"),
    ],
)
def test_a_mistake_in_the_contract_is_refused_by_file_and_key(text, words, capsys):
    Path("contract.toml").write_text(text)
    assert reconciled("--settlement", "settlement.csv", "--fees", "contract.toml") == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert words in shown
    assert "contract.toml" in shown
    assert not Path("out").exists()


def test_months_count_what_earlier_runs_handed_on():
    """Tiers by the month before: October's lines come with --previous, in sums they are not."""
    tiers = "tiers = [{ up_to_lines = 2, basis_points = 165 }, { basis_points = 190 }]"
    monthly = f'tiers_by = "month_before"\n{tiers}\n'
    contract = CONTRACT.split("[[lines]]")[1].replace('brand = "visa"\n', "")
    contract = contract.replace("basis_points = 140\nfixed_minor_units = 25\n", monthly)
    head = 'rounding = "half_up"\nvolumes_from = 2026-09-01\n[[lines]]'
    Path("contract.toml").write_text(head + contract)
    october = LINES.replace("2026-11-16", "2026-10-16").replace("B1,", "B0,")
    Path("october.csv").write_text(october.replace(",A", ",Z").replace(",T", ",U"))
    fees = ("--fees", "contract.toml")
    reconciled("--settlement", "october.csv", *fees, out="october")
    reconciled("--settlement", "settlement.csv", *fees, "--previous", "october", out="next")
    assert [(row["order_no"], row["expected"]) for row in claims("next")] == [("A3", "1.90")]
    assert codes("next")["A1"] == "FEE_VARIANCE"
    reconciled("--settlement", "settlement.csv", *fees, out="alone")
    summary: dict[str, Any] = json.loads(Path("alone", "summary.json").read_text())
    why = "visa needs what 2026-10 came to, of which no line is reported (3 settlement lines)"
    assert f"fee contract: {why}" in summary["not_covered"]
