"""Order rows drawn at random over some nights, and every effect in the sandbox's book held by them.

What a row lets move is said here once more, from its cells and the contract alone.
"""

import csv
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from recon.model.nights import Mode

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("updated_at", "expected_captured_amount", "refund_amount", "action", "action_amount"),
)
STATUSES = {
    "capture": ("authorised", "pending", "paid"),
    "refund": ("paid", "partially_refunded", "refunded"),
    "cancel": ("authorised", "pending", "refunded", "cancelled", "failed"),
}
EVERY_STATUS = (*STATUSES["capture"], *STATUSES["refund"][1:], *STATUSES["cancel"][3:])
NONE = Decimal(0)
Row = Mapping[str, str]


def cell(row: Row, name: str) -> Decimal | None:
    return Decimal(row[name]) if row.get(name) else None


def most(row: Row) -> tuple[Decimal, bool]:
    """The row's own figure for its action, and whether earlier actions count towards it."""
    whole, refunded = Decimal(row["amount"]), cell(row, "refund_amount")
    captured = cell(row, "expected_captured_amount")
    if row["action"] == "refund":
        if refunded is not None and not (refunded == 0 and row["status"] == "paid"):
            return refunded, True
        return captured if captured is not None else whole, row["status"] == "refunded"
    if row["action"] == "capture" and captured is not None:
        return captured, True
    return whole, False


def borne_out(row: Row, *, moved: Decimal, before: Decimal) -> bool:
    """Whether a row lets so much move by its action, where so much had moved before."""
    figure, is_total = most(row)
    bounds = [figure, Decimal(row["amount"])]
    if (
        row["action"] != "cancel"
        and (captured := cell(row, "expected_captured_amount")) is not None
    ):
        bounds.append(captured)
    return row["status"] in STATUSES[row["action"]] and moved + before * is_total <= min(bounds)


def asked(row: Row, *, before: Decimal) -> Decimal:
    """What a row asks for, where so much had moved before."""
    figure, is_total = most(row)
    rest = figure - before if is_total and row["action"] == "refund" else figure
    given = cell(row, "action_amount")
    return given if given is not None else rest


@dataclass
class Shop:
    """A merchant whose files say anything; `told` has every row of an order, oldest first."""

    merchant: Any
    chance: random.Random
    told: dict[str, list[Row]] = field(default_factory=dict)
    moved: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    """By order and operation, in earlier nights."""
    seen: int = 0

    def amount_of(self, payment: Any, share: float) -> str:
        """Part of a payment in the decimals of its currency."""
        whole = Decimal(payment.amount)
        return str((whole * Decimal(str(share))).quantize(whole))

    def row(self, payment: Any, *, night: int) -> Row:
        """Any row about a payment; half of them are as a careful merchant writes them."""
        usual = ("capture", "capture", "cancel") if payment.state == "authorised" else ("refund",)
        action = self.chance.choice(usual)
        fits = self.chance.random() < 0.5
        status = self.chance.choice(STATUSES[action] if fits else EVERY_STATUS)
        shares = (0.25, 0.5, 1) if fits else (0, 0.25, 0.5, 1)
        figures = {"expected_captured_amount": "", "refund_amount": "", "action_amount": ""}
        for name, odds in zip(figures, (0.3, 0.6, 0.4), strict=True):
            if self.chance.random() < odds and not (action == "cancel" and name == "action_amount"):
                figures[name] = self.amount_of(payment, self.chance.choice(shares))
        if status == "partially_refunded" and not figures["refund_amount"]:
            figures["refund_amount"] = self.amount_of(payment, 0.5)
        plain = self.merchant.order(payment, status=status, action=action)
        return plain | figures | {"updated_at": f"{NIGHTS[night]}T18:00:00Z"}

    def tell(self, payments: Iterable[Any], *, night: int) -> None:
        """A file of tonight: new rows, rows told again, and rows that say another thing now."""
        rows = []
        for payment in payments:
            known = self.told.setdefault(payment.order_no, [])
            if known and self.chance.random() < 0.4:
                continue
            row = self.row(payment, night=night)
            if known and self.chance.random() < 0.5:
                changed = {"updated_at": row["updated_at"]}
                if self.chance.random() < 0.5:
                    changed["status"] = self.chance.choice(EVERY_STATUS)
                if self.chance.random() < 0.3:
                    changed["refund_amount"] = self.amount_of(payment, 0.75)
                row = {**known[-1], **changed}
            if row["status"] == "partially_refunded" and not row["refund_amount"]:
                continue
            known.append(row)
            rows.append(row)
        name = self.chance.choice(("orders.csv", f"orders-{night}.csv"))
        with (self.merchant.inbox / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER)
            writer.writeheader()
            writer.writerows(rows)

    def effects(self) -> dict[tuple[str, str], Decimal]:
        """What the gateway did since the last look, each held against the rows told so far."""
        every = self.merchant.effects()
        new: dict[tuple[str, str], Decimal] = {}
        for effect in every[self.seen :]:
            key = (effect["order_no"], effect["operation"])
            assert key not in new, f"{key} moved twice in a night"
            new[key] = Decimal(effect["amount"])
        self.seen = len(every)
        for (order_no, operation), amount in new.items():
            before = self.moved.get((order_no, operation), NONE)
            rows = [row for row in self.told[order_no] if row["action"] == operation]
            wanted = [row for row in rows if asked(row, before=before) == amount]
            assert wanted, (
                f"{operation} of {amount}, before it {before}: no row asks for it: {rows}"
            )
            newest = {**self.told[order_no][-1], "action": operation}
            assert borne_out(newest, moved=amount, before=before), (amount, before, newest)
            self.moved[order_no, operation] = before + amount
        return new


@pytest.mark.parametrize("seed", range(3))
def test_every_effect_is_borne_out_by_its_row(merchant: Any, seed: int) -> None:
    """Whatever rows say and ask, over nights and versions: nothing moves that its row denies.

    And what a row asks for and bears out moves in its first night, in any currency.
    """
    shop = Shop(merchant, random.Random(seed))
    payments = [*merchant.payments("authorised")[:16], *merchant.payments("captured")[:24]]
    shop.tell(payments, night=0)
    merchant.move_money(date=NIGHTS[0])
    first = shop.effects()
    must = {
        (row["order_no"], row["action"]): asked(row, before=NONE)
        for rows in shop.told.values()
        for row in rows
        if asked(row, before=NONE) > 0
        and borne_out(row, moved=asked(row, before=NONE), before=NONE)
    }

    assert first == must
    assert 5 < len(first) < len(payments) - 5
    for night in range(1, len(NIGHTS)):
        merchant.wait(hours=24)
        shop.tell(payments, night=night)
        merchant.move_money(date=NIGHTS[night])
        shop.effects()


@pytest.mark.parametrize("seed", range(10, 12))
def test_what_was_approved_goes_only_as_far_as_the_newest_rows_say(
    merchant: Any, seed: int
) -> None:
    """A dry run approves by rule; by the live night its rows may say cancelled, or less."""
    shop = Shop(merchant, random.Random(seed))
    payments = [*merchant.payments("authorised")[:16], *merchant.payments("captured")[:24]]
    shop.tell(payments, night=0)
    merchant.move_money(date=NIGHTS[0], mode=Mode.DRY_RUN)
    approved = merchant.instruction_states()["approved"]
    merchant.wait(hours=24)
    shop.tell(payments, night=1)
    merchant.move_money(date=NIGHTS[1])

    assert 0 < len(shop.effects()) < approved
