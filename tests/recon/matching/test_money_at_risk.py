import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recon.cli import main

WORTH = {"EUR": "60.00", "USD": "70.00", "JPY": "8000", "KWD": "9.000"}
"""Currency -> what each side of a payment says in it; none is a sum or difference of others."""
NOTHING = {"EUR": "0.00", "USD": "0.00", "JPY": "0", "KWD": "0.000"}
HEADERS = {
    "orders": "merchant_id,account_id,order_no,currency,amount,status,ordered_at",
    "gateway": "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
    "query_result,reference_no,transaction_date",
    "ledger": "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "transaction_id",
    "settlement": "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,"
    "reference_no,currency,gross,fee,net",
}
AT = "2026-11-02T10:00:00Z"


def test_no_figure_is_a_difference_across_currencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever sides of a payment disagree, the whole of the order is at risk, in its currency."""
    rows: dict[str, list[str]] = {name: [header] for name, header in HEADERS.items()}
    for number, sides in enumerate(itertools.product(WORTH, repeat=4)):
        if len({*sides}) == 1:
            continue
        (o, g, b, s), key = sides, f"K{number}"
        worth = WORTH[s]
        rows["orders"].append(f"M,A,{key},{o},{WORTH[o]},paid,{AT}")
        rows["gateway"].append(f"M,A,{key},T{number},{g},{WORTH[g]},3000,1,,{AT}")
        rows["ledger"].append(f"L{number},M,A,{key},capture,{b},{WORTH[b]},{AT},T{number}")
        rows["settlement"].append(
            f"B-{s},M,A,2026-11-03,capture,{key},T{number},,{s},{worth},{NOTHING[s]},{worth}"
        )
    for name, lines in rows.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    files = [word for name in HEADERS for word in (f"--{name}", f"{name}.csv")]

    assert main(["reconcile", *files, "--as-of", "2026-11-20", "--out", "out"]) == 3
    with (tmp_path / "out" / "breaks.csv").open(newline="") as file:
        breaks = [row for row in csv.DictReader(file) if row["order_no"]]
    assert len(breaks) == len(WORTH) ** 4 - len(WORTH)
    wrong = [row for row in breaks if row["exposure"] != WORTH[row["currency"]]]
    assert wrong == []


def test_what_the_ledger_lacks_of_a_part_capture_in_doubt_is_the_part(
    new_case: Callable[[], Any],
) -> None:
    """The gateway shows 100.00 EUR as paid, of which our capture in doubt is 40.00 EUR."""
    case = new_case().ruled(gateway={"amount_means": "authorised"}).ledger()

    (row,) = (
        case.order()
        .payment()
        .move("capture", "in_doubt", amount=4000)
        .run()
        .breaks.to_dict("records")
    )

    assert (row["code"], row["exposure"]) == ("MISSING_IN_LEDGER", 4000)
    assert row["reason"] == "Gateway captured 40.00 EUR, the ledger has no capture of it."
