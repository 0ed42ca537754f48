"""Files to download: what the merchant's systems and the gateway would say of one business date.

Order files, ledger, settlement file, and an answer key of everything planted into them. They are
written from the ledger of effects: the same seed and truth give the same bytes, on any machine.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.words import GatewayState, UnverifiedReason
from recon.sandbox.ground.book_records import Effect
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.truth import EFFECTS_PER_READ, effect_table
from recon.sandbox.pages.planted_batches import PaidBatches, held_key, paid_batches
from recon.sandbox.pages.planted_books import PlantedBooks, books_key, books_of
from recon.sandbox.pages.planted_settlement import (
    PAYOUT,
    SETTLEMENT_HEADER,
    Settlement,
    SettlementLine,
    answer_key,
    cells_of,
    settlement_of,
)
from recon.sandbox.pages.planted_statements import BANKS, BankMonth, bank_month, key_of
from recon.sandbox.pages.statement_texts import statement_files
from recon.sandbox.sample_night import Account, SampleNight, sample_night
from recon.sandbox.sample_night.sample_files import (
    answer_key_table,
    csv_text,
    inbox_texts,
    ledger_csv_text,
)
from recon.sandbox.sample_night.true_payments import payments_of

DAYS_SHOWN = 7
"""Business dates that the page of downloads offers, back from the clock's own."""


class Downloads:
    """The files that were asked for last: all files of a day come from one reading of the truth."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._asked: tuple[object, ...] = ()
        self._files: dict[str, str] = {}

    def of(self, *, day: date, account_id: str) -> dict[str, str]:
        """Name -> text of every file of one business date and account, as the truth is now."""
        book = self.sandbox.book
        last = book.select("SELECT coalesce(max(position), 0), count(*) FROM effect")[0]
        asked = (day, account_id, *last)
        if asked != self._asked:
            self._files = files_of(self.sandbox, day=day, account_id=account_id)
            self._asked = asked
        return self._files


def files_of(sandbox: Sandbox, *, day: date, account_id: str) -> dict[str, str]:
    """Name -> text of every file of one business date and account."""
    closes_at = BusinessCalendar.of().closes_at(day)
    effects = [
        effect for effect in _every_effect(sandbox) if effect.committed_at < closes_at.timestamp()
    ]
    first, second = sandbox.options.accounts
    merchant_id, seed = sandbox.options.merchant, sandbox.options.seed
    night = sample_night(
        map(effect_table, effects),
        account=Account(merchant_id, account_id, second if account_id == first else first),
        business_date=day,
        seed=seed,
    )
    settlement = settlement_of(
        effects,
        merchant_id=merchant_id,
        account_id=account_id,
        day=day,
        seed=seed,
        spared={story.expected.order_no for story in night.stories if story.expected is not None},
    )
    before = paid_batches(
        effects,
        merchant_id=merchant_id,
        account_id=account_id,
        day=day,
        unmentioned=_refunded_in_part(effects, now=closes_at),
    )
    paid = [*before.payouts, *(line for line in settlement.lines if line.entry_type == PAYOUT)]
    month = bank_month(paid, day=day, seed=seed)
    books = books_of(before.lines, month=month, charges=night.fees, day=day)
    night = replace(night, fees=(*night.fees, *books.entries))
    key = _key(night, settlement=settlement, before=before, month=month, books=books)
    statements = [
        statement_files(bank, month.statements[bank.name], day=day.isoformat()) for bank in BANKS
    ]
    return (
        inbox_texts(night)
        | {name: text for files in statements for name, text in files.items()}
        | {
            f"ledger-{day}.csv": ledger_csv_text(night),
            f"settlement-{day}.csv": _settlement_text(settlement.lines),
            f"settlement-before-{day}.csv": _settlement_text(before.lines),
            f"settlement-true-{day}.csv": _settlement_text(settlement.true),
            f"answer-key-{day}.json": json.dumps(key, indent=2, ensure_ascii=False) + "\n",
        }
    )


def _key(
    night: SampleNight,
    *,
    settlement: Settlement,
    before: PaidBatches,
    month: BankMonth,
    books: PlantedBooks,
) -> dict[str, Any]:
    """The answer key of everything that is planted on that day."""
    key = answer_key_table(night) | {"settlement": answer_key(settlement)}
    key |= {"held_back": held_key(before), "bank": key_of(month), "books": books_key(books)}
    key["unverified"] += _unmentioned(night, settlement=settlement)
    codes = {planted.code for planted in settlement.planted}
    codes |= {planted.code for planted in before.planted}
    codes |= {planted.code for planted in month.planted if planted.code is not None}
    codes |= {planted.code for planted in books.planted}
    for code in codes:
        key["not_shown"].pop(code.value, None)
    return key


def _refunded_in_part(effects: Sequence[Effect], *, now: datetime) -> Collection[str]:
    """Payments of which no query shows how much was refunded."""
    return {
        payment.transaction_id
        for payment in payments_of(map(effect_table, effects), now=now)
        if payment.state is GatewayState.PARTIALLY_REFUNDED
    }


def _unmentioned(night: SampleNight, *, settlement: Settlement) -> list[dict[str, str]]:
    """Payments refunded in part that no file but the settlement's names: nobody can judge them."""
    known = {line.order_no for story in night.stories for line in story.orders}
    known |= {line.order_no for story in night.stories for line in story.ledger}
    known |= {story.expected.order_no for story in night.stories if story.expected is not None}
    refunded = {line.transaction_id for line in settlement.true if line.entry_type == "refund"}
    unmentioned = {
        (line.order_no, line.transaction_id): {
            "merchant_id": line.merchant_id,
            "account_id": line.account_id,
            "order_no": line.order_no,
            "transaction_id": line.transaction_id,
            "why": "refunded in part and settled; no order file holds it",
            "reason": UnverifiedReason.REFUND_AMOUNT_UNKNOWN.value,
        }
        for line in settlement.true
        if line.transaction_id in refunded and line.order_no not in known
    }
    return [unmentioned[key] for key in sorted(unmentioned)]


def _settlement_text(lines: Iterable[SettlementLine]) -> str:
    return csv_text(SETTLEMENT_HEADER, map(cells_of, lines))


def _every_effect(sandbox: Sandbox) -> Iterator[Effect]:
    after = 0
    while effects := sandbox.book.effects(after=after, limit=EFFECTS_PER_READ):
        yield from (effect for _, effect in effects)
        after = effects[-1][0]


def days_offered(sandbox: Sandbox) -> list[date]:
    """The business dates that the page names: those that lie behind the clock, newest first."""
    today = datetime.fromtimestamp(sandbox.clock.now(), UTC).date()
    return [date.fromordinal(today.toordinal() - back) for back in range(DAYS_SHOWN)]
