"""What a workbook shows of its sources is what the whole of them says, and takes no more room."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recon.config.fee_contract import FeeContract, contract_of
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.cash.holdings import gateway_holds
from recon.matching.frames.sources import LoadCounts
from recon.model.words import SourceKind
from recon.proof.books_bridge import KNOWN_BEFORE, OTHER_ACCOUNTS, books_of, bridge_of
from recon.proof.night_tables import compared_tables, input_tables
from recon.steps.compare.kept_sources import sources_of_night
from recon.steps.files.incomplete import NO_ANSWER, missing_sources
from recon.steps.ground.night_folder import SealedNight
from recon.steps.night.report import shown_sources
from tests.recon.matching.conftest import case, make_case, new_case
from tests.recon.steps.large_nights import in_groups_of, sealed

__all__ = ["case", "make_case", "new_case"]

NO_HELD = pd.DataFrame(columns=["merchant_id", "account_id", "currency"])


def night_of(case: Any, *, folder: Path) -> SealedNight:
    """The sealed night of a case, with what it read of files of which it compares a part."""
    sources = replace(
        case.sources(),
        merged_rows={"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)},
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: 2}, SourceKind.LEDGER: {OTHER_ACCOUNTS: -1}},
    )
    books = books_of(sources, rules=case.rules)
    small = compared_tables(sources, rules=case.rules, previous=None, books=books)
    return sealed(folder, tables={**dict(input_tables(sources)), **small})


def crowded(case: Any) -> Any:
    """Orders and entries that stand twice, in the same words and in others; fees, one reversed."""
    for order_no in ("A1", "B", "C"):
        case.order(order_no=order_no).payment(order_no=order_no, transaction_id=f"T{order_no}")
        case.entry(order_no=order_no, entry_id=f"E{order_no}")
    case.order(order_no="B").order(order_no="C", amount=7, updated_at="2026-11-19T10:00:00Z")
    case.order(order_no="").order(order_no="")
    case.entry(entry_id="EB", order_no="B").entry(entry_id="EC", order_no="C", amount=8)
    case.entry("fee", entry_id="F1", amount=30).entry("fee", entry_id="F1", amount=30)
    case.entry("fee", entry_id="F2", amount=9).entry("capture", entry_id="F2", amount=9)
    case.entry("fee_reversal", entry_id="F3", amount=4).entry(
        "refund", entry_id="R", currency="USD"
    )
    return case


@pytest.mark.parametrize("is_settled", [True, False])
def test_what_is_shown_is_what_the_whole_sources_say(
    case: Any, tmp_path: Path, *, is_settled: bool
) -> None:
    """Rows behind others, steps of the books, fees, and what is missing."""
    crowded(case)
    if is_settled:
        case.line(fee=30).line("fee", gross=0, fee=9, order_no="", transaction_id="")
        case.line(order_no="B", fee=40).line("payout", order_no="", gross=0, net=9900)
    night = night_of(case, folder=tmp_path)
    whole, _ = sources_of_night(night)
    shown = shown_sources(night)

    assert bridge_of(shown.sources) == bridge_of(whole)
    assert bridge_of(whole)[SourceKind.ORDERS]["equal to or older than another row"] < 0
    assert bridge_of(whole)[SourceKind.LEDGER]["equal to or older than another row"] < 0
    assert shown.books == books_of(whole, rules=case.rules)
    assert {*shown.books} == {"EUR", "USD"}
    holds = [gateway_holds(NO_HELD, sources=one) for one in (shown.sources, whole)]
    assert holds[0] == holds[1]
    assert (holds[0] is not None) == is_settled
    assert missing_sources(shown.sources) == missing_sources(whole)
    small = {"orders", "gateway", "ledger", "instructions", "universe"}
    small |= {"settlement", "volumes"}
    for name in {*whole.__dataclass_fields__} - small:
        assert getattr(shown.sources, name) == getattr(whole, name), name


@pytest.mark.parametrize("brand", ["", "visa"])
def test_fees_of_a_night_are_those_of_all_its_lines(
    case: Any, tmp_path: Path, brand: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the contract, outside of it, given back: some lines at a time come to the same."""
    in_groups_of(2, patch=monkeypatch)
    crowded(case)
    for number, (order_no, fee) in enumerate([("A1", 30), ("B", 20), ("C", 20)]):
        named = {"order_no": order_no, "transaction_id": f"T{order_no}"}
        case.line(**named, fee=fee, brand=brand, line=number + 2)
    case.line("fee", gross=0, fee=-4, transaction_id="TA1", line=5)
    case.line("adjustment", gross=5, fee=1, line=6)
    night = night_of(case, folder=tmp_path)
    whole, _ = sources_of_night(night)
    line = {"name": "all", "type": "capture", "currency": "EUR", "from": date(2026, 1, 1)}
    contract = contract_of(
        {"rounding": "half_up", "lines": [{**line, "fixed_minor_units": 20}]}, source="a contract"
    )
    assert isinstance(contract, FeeContract)

    ours, theirs = shown_sources(night).fees(contract), charged_fees(whole, contract=contract)

    assert ours is not None
    assert theirs is not None
    for name in ("by_line", "outside", "differing", "months"):
        pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.totals == theirs.totals
    assert ours.claims["claimed"].tolist() == [6]
    assert shown_sources(night).fees(None) is None


@pytest.mark.parametrize(("answers", "is_missing"), [((), False), (("failed",), True)])
def test_a_night_without_a_usable_answer_says_so(
    case: Any, answers: tuple[str, ...], tmp_path: Path, *, is_missing: bool
) -> None:
    """Only where some were asked about; and without books there are none."""
    for answer in answers:
        case.answer(answer)
    shown = shown_sources(night_of(case.order(), folder=tmp_path))

    assert (NO_ANSWER in missing_sources(shown.sources)) == is_missing
    assert shown.sources.ledger is None
    assert shown.books == {}
