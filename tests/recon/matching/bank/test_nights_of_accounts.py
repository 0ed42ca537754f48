"""One bank of two accounts: each night shows its own, and together they show all, once."""

import pandas as pd
import pytest

from recon.matching.frames.bank_sources import NightOfBank
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from tests.recon.matching.bank.cases import Case, of_bank, t17


def both(known_to: str = "") -> dict[str, Case]:
    """The same bank in the nights of M/A and M/B."""
    cases = {}
    for account in ("A", "B"):
        case = Case().also("M/B").paid("BATCH-A1", 500).paid("BATCH-B1", 700, account_id="B")
        case.came("BATCH-A1", 450).came("BATCH-B1", 700).came("", 90, counterparty="Gateway")
        case.paid("BATCH-B2", 310, account_id="B", on="2026-11-12")
        case.came("", 310, on="2026-11-13", counterparty="Gateway")
        payouts = frame_of(
            [one for one in case.lines if one["entry_type"] == "payout"], columns=SETTLEMENT_COLUMNS
        )
        known = {"main": known_to} if known_to else {}
        case.night = NightOfBank(("M", account), ("main",), payouts, known, "2026-11-01")
        case.lines = [one for one in case.lines if one["account_id"] == account]
        cases[account] = case
    return cases


def test_each_night_shows_what_is_of_its_account() -> None:
    """No pay-out of B is a break of A; what nobody expects is told by the first account alone."""
    results = {account: case.come_to() for account, case in both().items()}
    assert of_bank(results["A"]) == [
        ("BANK_AMOUNT_DIFFERS", 450, -50),
        ("BANK_RECEIPT_UNKNOWN", 90, 90),
    ]
    assert of_bank(results["B"]) == []
    batches = pd.concat([one.matches for one in results.values()])
    assert len(batches[batches["rule"].eq("bank")]) == 2


@pytest.mark.parametrize("account", ["A", "B"])
def test_t17_holds_for_the_whole_bank_in_each_night(account: str) -> None:
    """Effects that another night shows are a part of the difference."""
    assert set(t17(both()[account].come_to())) == {0}


def test_what_names_nothing_waits_until_all_pay_outs_are_known() -> None:
    """While B's settlement files are behind, an entry of an unknown batch may be B's."""
    result = both(known_to="2026-11-11")["A"].come_to()
    assert of_bank(result) == [("BANK_AMOUNT_DIFFERS", 450, -50)]
    assert set(t17(result)) == {0}
    assert any("name no batch" in one for one in result.not_covered)
