"""All files of a business date with their answer key, and the files of the dates that follow.

They are generated from the ledger of effects: the same seed and effects give the same bytes on any
machine. The first date exported for an account has every injected discrepancy. Each later date has
what happened since: some sales, settled and paid-out effects, statements that continue the numbers
and balances, and the ledger entries of all that, without discrepancies.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from random import Random
from typing import Any

from pydantic import TypeAdapter

from recon.model.business_date import BusinessCalendar
from recon.model.terms import BreakCode, EntryType, Flag, GatewayState, OrderStatus
from recon.model.terms import UnverifiedReason as Reason
from recon.sandbox.call import Sandbox
from recon.sandbox.database import Effect, Payment, effect_of, ids_of
from recon.sandbox.population import paid_at_once
from recon.sandbox.world import cash, night
from recon.sandbox.world.night import (
    BOOKING_TIME,
    CHECKOUT_TIME,
    PAYOUT,
    Finding,
    Injected,
    LedgerLine,
    OrderLine,
    Scenario,
    SettlementLine,
    TruePayment,
    expecting,
    file_text,
    instant_of,
    payments_of,
)

SOLD = "sold on later dates"
"""Name of the note that counts the payments added to the population."""
SALES_A_DAY = 5
SHOP_OPENS = time(9, tzinfo=UTC)
SHOP_SECONDS = 10 * 3_600
AMOUNTS = (2_000, 40_000)
"""Range of a sale's amount in minor units, upper bound excluded."""
CURRENCIES = ("EUR", "EUR", "GBP", "JPY", "USD")
MOVEMENTS = frozenset({EntryType.CAPTURE, EntryType.REFUND, EntryType.CHARGEBACK})
"""Movements of a payment that the ledger books."""
ORDER_GRACE = timedelta(hours=24)
"""Grace of an order, as in the bundled rules."""


@dataclass(frozen=True, slots=True)
class ReportedSoFar:
    """State of an account's exported files that the next date continues."""

    day: date
    position: int
    """Position of the last settled effect."""
    last: cash.LastStatements
    coming: Sequence[cash.OnItsWay]
    unbooked: Sequence[SettlementLine]
    """Lines and payout rows of the last date, which the ledger books a day later."""
    paid: Sequence[SettlementLine]
    """Payout rows that may still arrive."""
    booked: Sequence[tuple[str, str]]
    """Order and type of the payments' movements in the ledger so far."""


_REPORTED_SO_FAR = TypeAdapter(ReportedSoFar)


class Downloads:
    """The files of business dates; the last result is cached, so that all its files agree."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._made = lru_cache(maxsize=1)(
            lambda day, account_id, _: _Day.of(sandbox, day=day, account_id=account_id).texts()
        )

    def of(self, *, day: date, account_id: str) -> dict[str, str]:
        """Name -> text of every file of one business date and account, from the current effects."""
        newest = "SELECT coalesce(max(position), 0), count(*) FROM effect"
        return self._made(day, account_id, self.sandbox.database.select(newest)[0])

    def hand_out(self, *, day: date, account_id: str) -> dict[str, str] | None:
        """Name -> text of the files of a date, continuing the dates exported before.

        The same date gives the same bytes again; None for a date that files exported later cover.
        """
        book, note = self.sandbox.database, f"handed out {account_id}"
        with book.transaction():
            select = "SELECT name, text FROM handed_out WHERE account_id = ? AND day = ?"
            if rows := book.select(select, (account_id, day.isoformat())):
                return dict(rows)
            if known := book.note(note):
                delivered = _REPORTED_SO_FAR.validate_json(known)
                if day <= delivered.day:
                    return None
                texts, delivered = _next(self.sandbox, delivered, day=day, account_id=account_id)
            else:
                first = _Day.of(self.sandbox, day=day, account_id=account_id)
                texts, delivered = first.texts(), first.carried_over()
            for name, text in texts.items():
                insert = "INSERT INTO handed_out VALUES (?, ?, ?, ?)"
                book.execute(insert, (account_id, day.isoformat(), name, text))
            book.write_note(note, value=_REPORTED_SO_FAR.dump_json(delivered).decode())
            return texts


@dataclass(frozen=True, slots=True)
class _Day:
    """One business date with every injected discrepancy."""

    night: night.SampleNight
    payments: Sequence[TruePayment]
    settlement: cash.Settlement
    before: Sequence[SettlementLine]
    held: Sequence[Injected]
    month: cash.BankMonth
    in_ledger: Sequence[Injected]
    position: int
    """Position of the last effect."""

    @staticmethod
    def of(sandbox: Sandbox, *, day: date, account_id: str) -> "_Day":
        """Generate the date from the current effects."""
        effects = _effects_by(sandbox, day=day)
        payments = payments_of(effects, now=BusinessCalendar.of().closes_at(day))
        merchant_id, seed = sandbox.options.merchant, sandbox.options.seed
        (other,) = {*sandbox.options.accounts} - {account_id}
        account = night.Account(merchant_id, account_id, other)
        sample = night.sample_night(payments, account=account, business_date=day, seed=seed)
        spared = {each.expected.order_no for each in sample.scenarios if each.expected}
        settled = cash.settlement_of(
            effects, account_id=account_id, day=day, seed=seed, spared=spared
        )
        unmentioned = {each.transaction_id for each in payments if _is_part(each)}
        before, held = cash.paid_batches(
            effects, account_id=account_id, day=day, unmentioned=unmentioned
        )
        paid = [line for line in before if line.entry_type == PAYOUT and line.net]
        paid += [line for line in settled.lines if line.entry_type == PAYOUT]
        month = cash.bank_month(paid, day=day, seed=seed)
        # Monthly charges since the first settled day: nothing covers earlier ones.
        since = min((line.settled_on for line in before), default="")
        charges = [fee for fee in sample.fees if fee.booked_at.date().isoformat() >= since]
        entries, in_ledger = cash.ledger_of(before, month=month, charges=charges, day=day)
        sample = replace(sample, fees=(*charges, *entries))
        position = max((effect.position or 0 for effect in effects), default=0)
        return _Day(sample, payments, settled, before, held, month, in_ledger, position)

    def texts(self) -> dict[str, str]:
        """Name -> text of every file."""
        day = self.night.business_date
        return (
            night.inbox_texts(self.night)
            | cash.statement_files(self.month, day=day)
            | {
                f"ledger-{day}.csv": file_text(LedgerLine, night.ledger_lines(self.night)),
                f"settlement-{day}.csv": file_text(SettlementLine, self.settlement.lines),
                f"settlement-before-{day}.csv": file_text(SettlementLine, self.before),
                f"settlement-true-{day}.csv": file_text(SettlementLine, self.settlement.true),
                f"answer-key-{day}.json": json.dumps(self._key(), indent=2, ensure_ascii=False)
                + "\n",
            }
        )

    def carried_over(self) -> ReportedSoFar:
        """The state that the next date continues."""
        lines = (*self.before, *self.settlement.lines)
        return ReportedSoFar(
            day=self.night.business_date,
            position=self.position,
            last=self.month.last_statements(),
            coming=self.month.coming,
            unbooked=self.settlement.lines,
            paid=[line for line in lines if line.entry_type == PAYOUT],
            booked=[(line.order_no, line.entry_type) for line in night.ledger_lines(self.night)],
        )

    def _key(self) -> dict[str, Any]:
        """The answer key of every discrepancy injected into that day."""
        scenarios = (*map(self._as_settled, self.night.scenarios), *self._only_settled())
        key = night.answer_key(replace(self.night, scenarios=scenarios))
        key["settlement"] = cash.settlement_key(self.settlement)
        key["held_back"] = [each.table("batch_id", "held_back") for each in self.held]
        of_banks = sorted(
            self.month.injected,
            key=lambda each: (each.currency, each.about, each.finding if each.is_break else ""),
        )
        key["bank"] = {
            name: [
                each.table("batch_id", "effect_bank") for each in of_banks if each.is_break is of
            ]
            for name, of in (("breaks", True), ("matched_with_flag", False))
        }
        key["ledger"] = [each.table("key", "effect_ledger") for each in self.in_ledger]
        codes: set[str] = {fault.code for fault in self.settlement.injected}
        codes |= {each.finding for each in (*self.held, *self.month.injected, *self.in_ledger)}
        key["not_shown"] = {
            code: why for code, why in key["not_shown"].items() if code not in codes
        }
        return key

    def _as_settled(self, scenario: Scenario) -> Scenario:
        """Adjust a scenario's expectation where the settlement states the refunded amount.

        No query does. The set then matches, or waits for its capture to be settled.
        """
        unknown = Reason.REFUND_AMOUNT_UNKNOWN
        if scenario.expected is None or scenario.expected.finding is not unknown:
            return scenario
        transaction_id = scenario.expected.transaction_id
        if transaction_id not in _ids(self.settlement.true, EntryType.REFUND):
            return scenario
        payment = next(each for each in self.payments if each.transaction_id == transaction_id)
        first = min(
            (line.settled_on for line in self.before), default=str(self.night.business_date)
        )
        settled = _ids((*self.before, *self.settlement.lines), EntryType.CAPTURE)
        if transaction_id in settled or str(payment.authorised_at.date()) < first:
            why = "the settlement says how much"
            return expecting(scenario, Flag.REFUND_FROM_SETTLEMENT, why, of=payment)
        why = "the settlement says how much, and has no capture yet"
        return expecting(scenario, "pending", why, of=payment)

    def _only_settled(self) -> Iterator[Scenario]:
        """Yield expectations of payments only in the settlement, and of unsettled captures."""
        known = {line.order_no for scenario in self.night.scenarios for line in scenario.orders}
        known |= {line.order_no for scenario in self.night.scenarios for line in scenario.ledger}
        known |= {each.expected.order_no for each in self.night.scenarios if each.expected}
        refunded = _ids(self.settlement.true, EntryType.REFUND)
        now = BusinessCalendar.of().closes_at(self.night.business_date)
        for payment in self.payments:
            of_file = payment.transaction_id in refunded and payment.order_no not in known
            if of_file and _is_part(payment):
                early = now < payment.authorised_at + ORDER_GRACE
                finding: Finding = "pending" if early else BreakCode.MISSING_IN_ORDERS
                why = "refunded in part and settled; no order file holds it"
                yield expecting(Scenario(), finding, why, of=payment, payment=payment)
        left_out = {
            fault.true.transaction_id
            for fault in self.settlement.injected
            if fault.code is BreakCode.SETTLEMENT_MISSING and fault.true is not None
        }
        for payment in self.payments:
            if payment.transaction_id in left_out:
                why = "not settled, and not late by then"
                yield expecting(Scenario(), "pending", why, of=payment)


def _is_part(payment: TruePayment) -> bool:
    return payment.state is GatewayState.PARTIALLY_REFUNDED


def _ids(lines: Sequence[SettlementLine], kind: EntryType) -> set[str]:
    return {line.transaction_id for line in lines if line.entry_type == kind}


def _next(
    sandbox: Sandbox, delivered: ReportedSoFar, *, day: date, account_id: str
) -> tuple[dict[str, str], ReportedSoFar]:
    """The files of a date after the last one, and the state that the next one continues.

    Adds some sales on that date. The ledger has what was booked since.
    """
    sales = _sold(sandbox, day) if account_id == sandbox.options.account else []
    effects = _effects_by(sandbox, day=day, after=delivered.position)
    own = [effect for effect in effects if effect.account_id == account_id]
    lines = [
        cash.of_one_currency(effect, day=day)
        for effect in own
        if effect.operation in cash.SETTLED and effect.operation != PAYOUT
    ]
    payouts = cash.pay_outs_of(lines)
    month = cash.bank_month(
        payouts,
        coming=delivered.coming,
        last=delivered.last,
        since=delivered.day,
        day=day,
        seed=sandbox.options.seed,
    )
    paid = [*delivered.paid, *payouts]
    known, opens = {*delivered.booked}, datetime.combine(day, cash.BOOKED_AT)
    entries = [
        *cash.plain_ledger(delivered.unbooked, arrived=month.arrived, paid=paid),
        *(
            LedgerLine(
                **ids_of(effect),
                entry_id=f"LP-{effect.position}",
                entry_type=effect.operation,
                amount=effect.amount or 0,
                booked_at=max(instant_of(effect) + BOOKING_TIME, opens),
            )
            for effect in own
            if effect.operation in MOVEMENTS and (effect.order_no, effect.operation) not in known
        ),
    ]
    orders = [
        OrderLine(
            **ids_of(sale),
            amount=sale.authorised,
            status=OrderStatus.PAID,
            ordered_at=datetime.fromtimestamp(sale.created_at, UTC) - CHECKOUT_TIME,
        )
        for sale in sales
    ]
    texts = {
        f"settlement-{day}.csv": file_text(SettlementLine, (*lines, *payouts)),
        f"ledger-{day}.csv": file_text(LedgerLine, entries),
        **cash.statement_files(month, day=day),
        **({f"orders-{day}-web.csv": file_text(OrderLine, orders)} if orders else {}),
    }
    return texts, ReportedSoFar(
        day=day,
        position=(effects[-1].position if effects else None) or delivered.position,
        last=month.last_statements() or delivered.last,
        coming=month.coming,
        unbooked=(*lines, *payouts),
        paid=paid,
        booked=delivered.booked,
    )


def _effects_by(sandbox: Sandbox, *, day: date, after: int = 0) -> list[Effect]:
    """The effects after a position that took place by the end of a business date."""
    closes_at = BusinessCalendar.of().closes_at(day).timestamp()
    every = sandbox.database.every_effect(after)
    return [effect for effect in every if effect.committed_at < closes_at]


def _sold(sandbox: Sandbox, day: date) -> list[Payment]:
    """Sell on a date: payments captured at once, numbered after all existing ones."""
    options, book = sandbox.options, sandbox.database
    before = int(book.note(SOLD) or 0)
    book.write_note(SOLD, value=str(before + SALES_A_DAY))
    chance = Random(f"sold {options.seed} {day}")
    opens = int(datetime.combine(day, SHOP_OPENS).timestamp())
    sales = []
    for number in range(before + 1, before + 1 + SALES_A_DAY):
        each = int(book.note("orders")) + number
        at = opens + chance.randrange(SHOP_SECONDS)
        amount = chance.randrange(*AMOUNTS)
        sale = paid_at_once(
            each,
            order_no=f"SO{1_000_000 + each}",
            merchant_id=options.merchant,
            account_id=options.account,
            currency=chance.choice(CURRENCIES),
            amount=amount,
            at=at,
        )
        sales.append(sale)
        book.append_effects(
            effect_of(sale, operation, origin="seed", amount=amount, at=at)
            for operation in ("authorise", "capture")
        )
    book.write_payments(sales)
    return sales
