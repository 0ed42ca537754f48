"""What it costs to price a million settlement lines by a fee contract, for each of 14 tariffs.

Run by `make bench-fees`. CPU seconds of this process; the frames are made before the clock starts,
what months came to is summed up within it.
"""

import argparse
import statistics
import sys
import time

import numpy as np
import pandas as pd

from recon.config.fee_contract import FeeContract, contract_of
from recon.matching.frames.arrays import TEXT_TYPE
from recon.matching.sides.agreed_fees import agreed_fees
from recon.matching.sides.fee_volumes import Volumes, volumes_of_lines

GOAL_SECONDS = 3.0
"""Of CPU, for all tariffs together."""
ROUNDS = 3
SEED = 22
DAYS = 90
TIERS = [
    {"up_to_minor_units": 5_000, "basis_points": "200", "fixed_minor_units": 10},
    {"up_to_minor_units": 50_000, "basis_points": "140.5"},
    {"basis_points": "90", "fixed_minor_units": 5},
]
OF_MONTHS = [
    {"up_to_minor_units": 10_000_000_000, "basis_points": "140"},
    {"up_to_minor_units": 20_000_000_000, "basis_points": "120"},
    {"basis_points": "100"},
]
RATE = {"basis_points": "140.25"}
SHAPES = {
    "percentage": RATE,
    "fixed": {"fixed_minor_units": 25},
    "both": {**RATE, "fixed_minor_units": 25},
    "at least": {**RATE, "min_minor_units": 100},
    "at most": {**RATE, "max_minor_units": 900},
    "bounds": {**RATE, "fixed_minor_units": 5, "min_minor_units": 50, "max_minor_units": 800},
    "tiers of the whole": {"tiers": TIERS},
    "tiers of parts": {"tiers": TIERS, "tiers_of": "parts"},
    "dated": {**RATE, "until": "2026-10-31"},
    "by method": {**RATE, "method": ["card", "wallet"]},
    "by brand and region": {**RATE, "brand": "visa", "region": "EEA"},
    "given back": {**RATE, "returned": True},
    "by the month": {"tiers": OF_MONTHS, "tiers_by": "month"},
    "by the month before": {"tiers": OF_MONTHS, "tiers_by": "month_before"},
}


def lines_of(rows: int) -> pd.DataFrame:
    """Captures of three months, with method, brand and region."""
    draw = np.random.default_rng(SEED)

    def words(*choices: str) -> "pd.Series[str]":
        picked = np.array(choices)[draw.integers(0, len(choices), rows)]
        return pd.Series(picked, dtype=TEXT_TYPE)

    days = [f"{day:%Y-%m-%d}" for day in pd.date_range("2026-09-01", periods=DAYS)]
    gross = draw.integers(100, 200_000, rows)
    return pd.DataFrame(
        {
            "merchant_id": words("100042"),
            "account_id": words("100042001", "100042002"),
            "entry_type": words("capture"),
            "currency": words("EUR"),
            "settled_on": words(*days),
            "order_no": words("SO-1"),
            "transaction_id": words("T1"),
            "own_reference": words(""),
            "method": words("card", "wallet"),
            "brand": words("visa", "mastercard", "amex"),
            "region": words("EEA", "GB", "US"),
            "gross": gross,
            "fee": gross * 14 // 1_000,
        }
    )


def contract_for(name: str) -> FeeContract:
    """The tariff of a name, with one for all that it does not hold for."""
    base = {"type": "capture", "currency": "EUR", "from": "2026-01-01"}
    lines = [{**base, "name": name, **SHAPES[name]}]
    if {"until", "method", "brand"} & {*SHAPES[name]}:
        lines.append({**base, "name": "others", "fixed_minor_units": 30})
        if name == "dated":
            lines[1]["from"] = "2026-11-01"
    whole = {"volumes_from": "2026-01-01"} if "tiers_by" in SHAPES[name] else {}
    contract = contract_of({"rounding": "half_even", "lines": lines, **whole}, source=name)
    if contract is None:
        raise AssertionError(name)
    return contract


def main() -> None:
    """Print the CPU of each tariff and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    lines, total, nowhere = lines_of(rows), 0.0, np.zeros(rows, dtype=np.bool_)
    for name in SHAPES:
        contract, taken = contract_for(name), []
        for _ in range(ROUNDS):
            start = time.process_time()
            volumes = None
            if contract.asks_months:
                volumes = Volumes(volumes_of_lines(lines, late=nowhere), "")
            priced = agreed_fees(lines, contract=contract, volumes=volumes)
            taken.append(time.process_time() - start)
        total += statistics.median(taken)
        wrong = int((priced.gap != 0).sum())
        sys.stdout.write(f"{name:<22}{statistics.median(taken):6.2f} CPU s, {wrong:,} differ\n")
    sys.stdout.write(
        f"{len(SHAPES)} tariffs x {rows:,} lines: {total:.2f} CPU s (at most {GOAL_SECONDS})\n"
    )


if __name__ == "__main__":
    main()
