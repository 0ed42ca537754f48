"""How a line of the fee contract reads on the sheet Fees."""

from typing import Any

import pytest

from recon.config.fee_contract import ContractLine

LINE = {"name": "visa", "from": "2026-01-01", "type": "capture", "currency": "EUR"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"basis_points": 120}, "120.00 bp"),
        ({"basis_points": 29.75, "fixed_minor_units": 10}, "29.75 bp + 0.10"),
        ({"currency": "JPY", "fixed_minor_units": 30}, "0.00 bp + 30"),
        (
            {"basis_points": 10, "min_minor_units": 20, "max_minor_units": 900},
            "10.00 bp, at least 0.20, at most 9.00",
        ),
        (
            {
                "tiers": [
                    {"up_to_minor_units": 10_000, "basis_points": 200},
                    {"basis_points": 150},
                ],
                "tiers_of": "parts",
            },
            "to 100.00: 200.00 bp; 150.00 bp (each of its part)",
        ),
        ({"basis_points": 100, "returned": True}, "100.00 bp, given back"),
    ],
)
def test_a_price_reads_in_the_currency_of_its_line(cells: dict[str, Any], words: str) -> None:
    """Amounts with the decimals of the currency; a fixed part of nothing is not shown."""
    assert ContractLine.model_validate({**LINE, **cells}).price == words
