"""The answer key was written from the truth; here the engine must find the same, and nothing else.

The night is played on paper: every instruction that could be carried out is, and the gateway file
shows what the sandbox's query would show afterwards.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from recon.cli.demo_folder import rules_toml
from recon.model.figures import NightFigures
from recon.model.money import format_minor_units
from recon.model.words import GatewayState, Verdict
from recon.sandbox.ground.sandbox_terms import load_terms
from recon.sandbox.world.night import (
    Account,
    SampleNight,
    answer_key,
    inbox_texts,
    ledger_csv_text,
    sample_night,
)
from recon.sandbox.world.records import OrderLine, TruePayment
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files

Payments = tuple[TruePayment, ...]
ACCOUNT = Account("100042", "100042001", "100042002")
BUSINESS_DATE = date(2026, 11, 20)
NIGHT = datetime(2026, 11, 20, 22, tzinfo=UTC)
GATEWAY_HEADER = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "payment_status",
    "query_result",
    "reference_no",
    "transaction_date",
)
INSTRUCTION_HEADER = (
    "instruction_id",
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "kind",
    "currency",
    "amount",
    "state",
    "approved_at",
    "sent_at",
    "outcome_at",
)
FITTING = {
    "capture": {GatewayState.AUTHORISED},
    "cancel": {GatewayState.AUTHORISED},
    "refund": {GatewayState.PAID},
}


def actions_of(night: SampleNight) -> Iterator[OrderLine]:
    """Order lines that carry an instruction, repeats left out."""
    return (line for story in night.stories for line in story.orders if line.action)


def amount_of(line: OrderLine) -> int:
    """What the instruction moves; minor units."""
    return line.amount if line.action_amount is None else line.action_amount


def state_after(payment: TruePayment, line: OrderLine | None) -> GatewayState:
    """The state in which the night leaves a payment."""
    if line is None or payment.state not in FITTING[line.action]:
        return payment.state
    whole = amount_of(line) == payment.captured
    refunded = GatewayState.REFUNDED if whole else GatewayState.PARTIALLY_REFUNDED
    return {"capture": GatewayState.PAID, "cancel": GatewayState.CANCELLED}.get(
        line.action, refunded
    )


def gateway_rows(
    payments: Iterable[TruePayment], asked: set[tuple[str, str]], actions: dict[str, OrderLine]
) -> Iterator[tuple[str, ...]]:
    """What the sandbox's query would answer after the night."""
    terms = load_terms()
    for payment in payments:
        if (payment.account_id, payment.order_no) not in asked:
            continue
        state = state_after(payment, actions.get(payment.order_no))
        yield (
            payment.merchant_id,
            payment.account_id,
            payment.order_no,
            payment.transaction_id,
            payment.currency,
            format_minor_units(payment.authorised, currency=payment.currency),
            terms.code_of[state],
            terms.result_of(state),
            f"R{payment.order_no}",
            payment.authorised_at.strftime("%Y%m%d%H%M%S"),
        )


def instruction_rows(
    night: SampleNight, payments: dict[str, TruePayment]
) -> Iterator[tuple[str, ...]]:
    """The journal after the night: done, or waiting for a person."""
    at = NIGHT.isoformat()
    for number, line in enumerate(actions_of(night)):
        done = payments[line.order_no].state in FITTING[line.action]
        yield (
            f"I{number}",
            line.merchant_id,
            line.account_id,
            line.order_no,
            line.transaction_id,
            line.action,
            line.currency,
            format_minor_units(amount_of(line), currency=line.currency),
            "confirmed" if done else "approved",
            at,
            at if done else "",
            at if done else "",
        )


def write_rows(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Path:
    """A CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def played(night: SampleNight, payments: Payments, folder: Path) -> PlainFilesRequest:
    """All files of the night as they are when it is over."""
    by_order = {payment.order_no: payment for payment in payments}
    actions = {line.order_no: line for line in actions_of(night)}
    # The universe of a night: orders, ledger references, and the quarantined keys.
    asked = {(line.account_id, line.order_no) for s in night.stories for line in s.orders}
    asked |= {(line.account_id, line.order_no) for s in night.stories for line in s.ledger}
    rows = gateway_rows(payments, asked, actions)
    (folder / "inbox").mkdir()
    orders = {folder / "inbox" / name: text for name, text in inbox_texts(night).items()}
    for path, text in orders.items():
        path.write_text(text, encoding="utf-8", newline="")
    ledger = folder / "ledger.csv"
    ledger.write_text(ledger_csv_text(night), encoding="utf-8", newline="")
    (folder / "rules.toml").write_text(rules_toml(night.account))
    return PlainFilesRequest(
        orders=tuple(orders),
        gateway=(write_rows(folder / "gateway.csv", GATEWAY_HEADER, rows),),
        ledger=(ledger,),
        instructions=(
            write_rows(
                folder / "instructions.csv",
                INSTRUCTION_HEADER,
                instruction_rows(night, by_order),
            ),
        ),
        rules_file=folder / "rules.toml",
        as_of=BUSINESS_DATE,
        out=folder / "out",
    )


def no_workbook(_: NightFigures, path: Path) -> Path:
    """Stands in for the workbook, which says nothing more than the files."""
    path.write_bytes(b"")
    return path


def rows_in(path: Path) -> list[dict[str, str]]:
    """The rows of a result file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def found(
    payments: Payments, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path, Verdict]:
    """The answer key, the folder of the result, and the verdict."""
    night = sample_night(payments, account=ACCOUNT, business_date=BUSINESS_DATE, seed=42)
    request = played(night, payments, tmp_path_factory.mktemp("played"))
    result = reconcile_files(request, clock=lambda: NIGHT, write_workbook=no_workbook)
    return answer_key(night), request.out, result.verdict


def test_the_engine_finds_what_was_planted_and_nothing_else(
    found: tuple[dict[str, Any], Path, Verdict],
) -> None:
    """Every planted discrepancy is one break with its code and effects; nothing else is found."""
    key, out, verdict = found
    breaks = {row["order_no"]: row for row in rows_in(out / "breaks.csv")}
    effects: dict[str, set[tuple[str, ...]]] = {}
    order_of_break = {row["break_id"]: row["order_no"] for row in breaks.values()}
    for row in rows_in(out / "effects.csv"):
        effects.setdefault(order_of_break[row["break_id"]], set()).add(
            (row["leg"], row["account_id"], row["currency"], row["amount"])
        )
    planted = {
        one["order_no"]: {tuple(effect.values()) for effect in one["effects"]}
        for one in key["breaks"]
    }

    effects.pop(breaks.pop(unknown_action(key))["order_no"], None)
    assert {no: row["code"] for no, row in breaks.items()} == {
        one["order_no"]: one["code"] for one in key["breaks"]
    }
    assert effects == {no: wanted for no, wanted in planted.items() if wanted}
    assert verdict is Verdict.BREAKS_OPEN


def unknown_action(key: dict[str, Any]) -> str:
    """The order whose row is bad only for its action, which plain order files do not have."""
    return next(one["order_no"] for one in key["unverified"] if one["why"] == "unknown action")


def test_pending_flags_and_unverified_are_as_planted(
    found: tuple[dict[str, Any], Path, Verdict],
) -> None:
    """What is no break stands where the key says: pending, matched with its flag, unverified."""
    key, out, _ = found
    pending = {row["order_no"] for row in rows_in(out / "pending.csv")}
    unverified = {row["order_no"]: row["reason"] for row in rows_in(out / "unverified.csv")}
    flags = {row["order_no"]: row["flags"].split(";") for row in rows_in(out / "matches.csv")}

    assert {one["order_no"] for one in key["pending"]} <= pending
    assert unverified == {
        one["order_no"]: one["reason"]
        for one in key["unverified"]
        if one["order_no"] != unknown_action(key)
    }
    assert [
        one for one in key["matched_with_flag"] if one["flag"] not in flags.get(one["order_no"], [])
    ] == []


def test_every_control_total_ties(found: tuple[dict[str, Any], Path, Verdict]) -> None:
    """Every row is accounted for: no total fails, and each bad row is a reject in its place."""
    key, out, _ = found
    summary = json.loads((out / "summary.json").read_text())

    assert [total for total in summary["control_totals"] if not total["passed"]] == []
    assert {(row["line"], row["column"]) for row in rows_in(out / "rejects.csv")} >= {
        (str(one["line"]), one["column"])
        for one in key["rejected_rows"]
        if one["kind"] != "unknown action"
    }
