"""Files to download: what the merchant's systems and the gateway would say of one business date.

Order files, ledger, settlement file, and an answer key of everything planted into them. They are
written from the ledger of effects: the same seed and truth give the same bytes, on any machine.

What a night knows since the gateway's settlement tells it, for the answer key.

The sample night expects what its own files can show. A settled refund says how much was refunded
where no query does, and a payment that the settlement names is asked about although no file of the
merchant has it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.words import BreakCode, EntryType, Flag, GatewayState, UnverifiedReason
from recon.sandbox.ground.book_records import Effect
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.truth import EFFECTS_PER_READ
from recon.sandbox.pages.bank_book import BANKS, BankMonth, statement_files
from recon.sandbox.pages.carried_days import (
    HANDED_OUT,
    ToldSoFar,
    carried_day,
    last_statements,
    order_of_sale,
    sold,
)
from recon.sandbox.pages.planted_books import PlantedBooks, books_key, books_of
from recon.sandbox.pages.planted_settlement import (
    PAYOUT,
    PaidBatches,
    Settlement,
    answer_key,
    held_key,
    paid_batches,
    settlement_of,
)
from recon.sandbox.pages.planted_statements import bank_month, key_of
from recon.sandbox.world.night import (
    ORDER_HEADER,
    Account,
    SampleNight,
    inbox_texts,
    ledger_csv_text,
    ledger_lines,
    sample_night,
)
from recon.sandbox.world.night import answer_key as night_key
from recon.sandbox.world.records import (
    LedgerLine,
    SettlementLine,
    TruePayment,
    cells_of,
    csv_text,
    file_text,
    payments_of,
)
from recon.sandbox.world.stories import Finding, Story, told

SOLD = "sold on later dates"
"""Note: how many payments there are beside the population."""
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

    def hand_out(self, *, day: date, account_id: str) -> dict[str, str] | None:
        """Name -> text of the files of a date as it follows those that were handed out before.

        The same date again gives the same bytes; None before the last date, which told of it.
        """
        book, note = self.sandbox.book, f"handed out {account_id}"
        with book.transaction():
            select = "SELECT name, text FROM handed_out WHERE account_id = ? AND day = ?"
            if rows := book.select(select, (account_id, day.isoformat())):
                return dict(rows)
            if known := book.note(note):
                handed = HANDED_OUT.validate_json(known)
                if day <= handed.day:
                    return None
                texts, handed = next_handed_out(
                    self.sandbox, handed, day=day, account_id=account_id
                )
            else:
                texts, handed = first_handed_out(self.sandbox, day=day, account_id=account_id)
            for name, text in texts.items():
                insert = "INSERT INTO handed_out VALUES (?, ?, ?, ?)"
                book.execute(insert, (account_id, day.isoformat(), name, text))
            book.write_note(note, value=HANDED_OUT.dump_json(handed).decode())
            return texts


def files_of(sandbox: Sandbox, *, day: date, account_id: str) -> dict[str, str]:
    """Name -> text of every file of one business date and account."""
    return _texts(_made(sandbox, day=day, account_id=account_id), day=day)


def first_handed_out(
    sandbox: Sandbox, *, day: date, account_id: str
) -> tuple[dict[str, str], ToldSoFar]:
    """The files of the first date of an account, and what the next one rests on."""
    made = _made(sandbox, day=day, account_id=account_id)
    handed = ToldSoFar(
        day=day,
        position=made.position,
        last=last_statements(made.month),
        coming=made.month.coming,
        unbooked=made.settlement.lines,
        paid=[line for line in made.lines if line.entry_type == PAYOUT],
        booked=[(line.order_no, line.entry_type) for line in ledger_lines(made.night)],
    )
    return _texts(made, day=day), handed


def next_handed_out(
    sandbox: Sandbox, handed: ToldSoFar, *, day: date, account_id: str
) -> tuple[dict[str, str], ToldSoFar]:
    """The files of a date after the last one, and what the next one rests on.

    Shoppers buy something on that date. The ledger has what was booked since.
    """
    book, drafts = sandbox.book, []
    if account_id == sandbox.options.account:
        before = int(book.note(SOLD) or 0)
        number = int(book.note("orders")) + before + 1
        drafts = sold(day, number=number, options=sandbox.options)
        book.write_note(SOLD, value=str(before + len(drafts)))
    book.write_payments(draft.payment for draft in drafts)
    book.append_effects(effect for draft in drafts for effect in draft.effects)
    orders = [cells_of(order_of_sale(draft.payment)) for draft in drafts]
    carried = carried_day(
        handed,
        day=day,
        effects=_effects_by(sandbox, day=day, after=handed.position),
        account=(sandbox.options.merchant, account_id),
        seed=sandbox.options.seed,
    )
    texts = {
        f"settlement-{day}.csv": _settlement_text(carried.settled),
        f"ledger-{day}.csv": file_text(LedgerLine, carried.entries),
        **_statement_texts(carried.month, day=day),
        **({f"orders-{day}-web.csv": csv_text(ORDER_HEADER, orders)} if orders else {}),
    }
    return texts, carried.handed_out


@dataclass(frozen=True, slots=True)
class _Made:
    """One business date with everything that is planted into it."""

    night: SampleNight
    settlement: Settlement
    before: PaidBatches
    month: BankMonth
    books: PlantedBooks
    payments: tuple[TruePayment, ...]
    position: int
    """Of the last effect."""

    @property
    def lines(self) -> tuple[SettlementLine, ...]:
        """Of all dates by then."""
        return (*self.before.lines, *self.settlement.lines)


def _made(sandbox: Sandbox, *, day: date, account_id: str) -> _Made:
    closes_at = BusinessCalendar.of().closes_at(day)
    placed = _effects_by(sandbox, day=day)
    effects = [effect for _, effect in placed]
    first, second = sandbox.options.accounts
    merchant_id, seed = sandbox.options.merchant, sandbox.options.seed
    payments = payments_of(effects, now=closes_at)
    night = sample_night(
        payments,
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
        unmentioned={
            payment.transaction_id
            for payment in payments
            if payment.state is GatewayState.PARTIALLY_REFUNDED
        },
    )
    paid = [*before.payouts, *(line for line in settlement.lines if line.entry_type == PAYOUT)]
    month = bank_month(paid, day=day, seed=seed)
    charges = _charges_since(before.lines, charges=night.fees)
    books = books_of(before.lines, month=month, charges=charges, day=day)
    night = replace(night, fees=(*charges, *books.entries))
    position = max((position for position, _ in placed), default=0)
    return _Made(night, settlement, before, month, books, payments, position)


def _charges_since(
    lines: Sequence[SettlementLine], *, charges: Sequence[LedgerLine]
) -> list[LedgerLine]:
    """Monthly charges from the first settled day on: nothing tells what is older than that."""
    first = min((line.settled_on for line in lines), default="")
    return [entry for entry in charges if entry.booked_at.date().isoformat() >= first]


def _texts(made: _Made, *, day: date) -> dict[str, str]:
    settlement, before, night = made.settlement, made.before, made.night
    key = _key(
        known_by_settlement(
            night,
            payments=made.payments,
            settlement=settlement,
            before=before.lines,
            now=BusinessCalendar.of().closes_at(day),
        ),
        settlement=settlement,
        before=before,
        month=made.month,
        books=made.books,
    )
    return (
        inbox_texts(night)
        | _statement_texts(made.month, day=day)
        | {
            f"ledger-{day}.csv": ledger_csv_text(night),
            f"settlement-{day}.csv": _settlement_text(settlement.lines),
            f"settlement-before-{day}.csv": _settlement_text(before.lines),
            f"settlement-true-{day}.csv": _settlement_text(settlement.true),
            f"answer-key-{day}.json": json.dumps(key, indent=2, ensure_ascii=False) + "\n",
        }
    )


def _statement_texts(month: BankMonth, *, day: date) -> dict[str, str]:
    texts: dict[str, str] = {}
    for bank in BANKS:
        texts |= statement_files(bank, month.statements[bank.name], day=day.isoformat())
    return texts


def _key(
    night: SampleNight,
    *,
    settlement: Settlement,
    before: PaidBatches,
    month: BankMonth,
    books: PlantedBooks,
) -> dict[str, Any]:
    """The answer key of everything that is planted on that day."""
    key = night_key(night) | {"settlement": answer_key(settlement)}
    key |= {"held_back": held_key(before), "bank": key_of(month), "books": books_key(books)}
    codes = {planted.code for planted in settlement.planted}
    codes |= {planted.code for planted in before.planted}
    codes |= {planted.code for planted in month.planted if planted.code is not None}
    codes |= {planted.code for planted in books.planted}
    for code in codes:
        key["not_shown"].pop(code.value, None)
    return key


def _settlement_text(lines: Iterable[SettlementLine]) -> str:
    return file_text(SettlementLine, lines)


def _effects_by(sandbox: Sandbox, *, day: date, after: int = 0) -> list[tuple[int, Effect]]:
    """The effects behind a position that took place by the end of a business date."""
    closes_at = BusinessCalendar.of().closes_at(day).timestamp()
    placed: list[tuple[int, Effect]] = []
    while effects := sandbox.book.effects(after=after, limit=EFFECTS_PER_READ):
        placed += [each for each in effects if each[1].committed_at < closes_at]
        after = effects[-1][0]
    return placed


def days_offered(sandbox: Sandbox) -> list[date]:
    """The business dates that the page names: those that lie behind the clock, newest first."""
    today = datetime.fromtimestamp(sandbox.clock.now(), UTC).date()
    return [date.fromordinal(today.toordinal() - back) for back in range(DAYS_SHOWN)]


ORDER_GRACE = timedelta(hours=24)
"""How long an order may be away, as in the bundled rules."""


def known_by_settlement(
    night: SampleNight,
    *,
    payments: Sequence[TruePayment],
    settlement: Settlement,
    before: Sequence[SettlementLine],
    now: datetime,
) -> SampleNight:
    """The night with what is expected of payments that the settlement of its day tells of.

    Args:
        night: as its own files have it.
        payments: all that there truly are.
        settlement: of the business date.
        before: the lines of the days before.
        now: when the business date closes.
    """
    by_id = {payment.transaction_id: payment for payment in payments}
    refunded = {line.transaction_id for line in settlement.true if _is(line, EntryType.REFUND)}
    lines = (*before, *settlement.lines)
    settled = {line.transaction_id for line in lines if _is(line, EntryType.CAPTURE)}
    first = min((line.settled_on for line in before), default=night.business_date.isoformat())
    stories = [
        _told(story, by_id[story.expected.transaction_id], settled=settled, first=first)
        if story.expected is not None
        and story.expected.finding is UnverifiedReason.REFUND_AMOUNT_UNKNOWN
        and story.expected.transaction_id in refunded
        else story
        for story in night.stories
    ]
    known = {line.order_no for story in night.stories for line in story.orders}
    known |= {line.order_no for story in night.stories for line in story.ledger}
    known |= {story.expected.order_no for story in night.stories if story.expected is not None}
    lonely = [
        payment
        for payment in payments
        if payment.transaction_id in refunded
        and payment.order_no not in known
        and payment.state is GatewayState.PARTIALLY_REFUNDED
    ]
    more = [*(_lonely(payment, now=now) for payment in lonely), *_left_out(settlement, by_id)]
    return replace(night, stories=(*stories, *more))


def _is(line: SettlementLine, kind: EntryType) -> bool:
    return line.entry_type == kind


def _told(story: Story, payment: TruePayment, *, settled: Collection[str], first: str) -> Story:
    """Of an order in the merchant's files: it agrees, or its capture is still to be settled."""
    if payment.transaction_id in settled or payment.authorised_at.date().isoformat() < first:
        return told(story, Flag.REFUND_FROM_SETTLEMENT, "the settlement says how much", of=payment)
    why = "the settlement says how much, and has no capture yet"
    return told(story, "pending", why, of=payment)


def _lonely(payment: TruePayment, *, now: datetime) -> Story:
    """Of a payment that no file of the merchant has."""
    why = "refunded in part and settled; no order file holds it"
    early = now < payment.authorised_at + ORDER_GRACE
    finding: Finding = "pending" if early else BreakCode.MISSING_IN_ORDERS
    return told(Story(), finding, why, of=payment, payment=payment)


def _left_out(settlement: Settlement, by_id: dict[str, TruePayment]) -> Iterator[Story]:
    for planted in settlement.planted:
        if planted.code is BreakCode.SETTLEMENT_MISSING and planted.true is not None:
            payment = by_id.get(planted.true.transaction_id)
            if payment is not None:
                yield told(Story(), "pending", "not settled, and not late by then", of=payment)
