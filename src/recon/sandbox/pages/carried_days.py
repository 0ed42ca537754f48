"""Business dates as they follow each other: what was handed out of one is not told again otherwise.

The first date that is handed out of an account has everything that is planted. Each later one has
what happened since: some sales, effects settled and paid out, the statements of the banks under the
next numbers and from the last balances, and the books of all that. Nothing is planted into it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random

from pydantic import TypeAdapter

from recon.model.business_date import BusinessCalendar
from recon.model.words import EntryType, GatewayState, OrderStatus
from recon.sandbox.ground.book_records import Effect, Payment
from recon.sandbox.ground.options import SandboxOptions
from recon.sandbox.ground.population import PaymentDraft, transaction_id_of
from recon.sandbox.pages.bank_book import (
    BANKS,
    BankBook,
    BankMonth,
    LastStatement,
    OnItsWay,
    currencies_of,
)
from recon.sandbox.pages.planted_books import BOOKED_AT, plain_books
from recon.sandbox.pages.planted_settlement import (
    PAYOUT,
    SETTLED,
    of_one_currency,
    pay_outs_of,
    settled_line,
)
from recon.sandbox.pages.planted_statements import EXCHANGED_AFTER, in_euros
from recon.sandbox.world.records import LedgerLine, OrderLine, SettlementLine
from recon.sandbox.world.stories import BOOKING_TIME, CHECKOUT_TIME

SALES_A_DAY = 5
SHOP_OPENS = time(9, tzinfo=UTC)
SHOP_SECONDS = 10 * 3_600
AMOUNTS = (2_000, 40_000)
"""Minor units of a sale: from, and below."""
CURRENCIES = ("EUR", "EUR", "GBP", "JPY", "USD")


@dataclass(frozen=True, slots=True)
class ToldSoFar:
    """What was handed out of an account so far, as far as the next date rests on it."""

    day: date
    position: int
    """Of the last effect that was settled."""
    last: Mapping[str, LastStatement]
    """Name of each bank -> its last statement."""
    coming: Sequence[OnItsWay]
    unbooked: Sequence[SettlementLine]
    """Lines and pay-out rows of the last date: the books have them a day later."""
    paid: Sequence[SettlementLine]
    """Pay-out rows of which something may arrive."""
    booked: Sequence[tuple[str, str]]
    """Order and type of what the books had of payments before."""


HANDED_OUT = TypeAdapter(ToldSoFar)


@dataclass(frozen=True, slots=True)
class CarriedDay:
    """A date that follows one."""

    settled: tuple[SettlementLine, ...]
    """Pay-out rows last."""
    month: BankMonth
    entries: tuple[LedgerLine, ...]
    """What the books have more than the day before."""
    handed_out: ToldSoFar


def carried_day(
    handed: ToldSoFar,
    *,
    day: date,
    effects: Sequence[tuple[int, Effect]],
    account: tuple[str, str],
    seed: int,
) -> CarriedDay:
    """What happened since the last date that was handed out.

    Args:
        handed: what was handed out.
        day: a later business date.
        effects: those since, in commit order, each with its position.
        account: merchant and account.
        seed: of the sandbox.
    """
    mine = [effect for _, effect in effects if _is_settled(effect, account=account)]
    lines = [of_one_currency(settled_line(effect, day=day)) for effect in mine]
    merchant_id, account_id = account
    rows = pay_outs_of(lines, merchant_id=merchant_id, account_id=account_id, day=day)
    payouts = [of_one_currency(row) for row in rows]
    month = _statements(handed, payouts=payouts, day=day, seed=seed)
    paid = [*handed.paid, *payouts]
    of_batches = plain_books(handed.unbooked, arrived=month.arrived, paid=paid)
    known = {*handed.booked}
    of_payments = [*_of_payments(effects, account=account, day=day, known=known)]
    return CarriedDay(
        settled=(*lines, *payouts),
        month=month,
        entries=(*of_batches, *of_payments),
        handed_out=ToldSoFar(
            day=day,
            position=effects[-1][0] if effects else handed.position,
            last=last_statements(month) or handed.last,
            coming=month.coming,
            unbooked=(*lines, *payouts),
            paid=paid,
            booked=handed.booked,
        ),
    )


def sold(day: date, *, number: int, options: SandboxOptions) -> list[PaymentDraft]:
    """What shoppers paid on a date, captured as they paid.

    Args:
        day: the business date.
        number: of the first of these payments, which nothing else bears.
        options: whose sandbox it is.
    """
    chance = Random(f"sold {options.seed} {day}")
    opens = int(datetime.combine(day, SHOP_OPENS).timestamp())
    drafts = []
    for each in range(number, number + SALES_A_DAY):
        at = opens + chance.randrange(SHOP_SECONDS)
        amount = chance.randrange(*AMOUNTS)
        payment = Payment(
            transaction_id=transaction_id_of(at, number=each),
            order_no=f"SO{1_000_000 + each}",
            merchant_id=options.merchant,
            account_id=options.account,
            currency=chance.choice(CURRENCIES),
            authorised=amount,
            state=GatewayState.PAID,
            created_at=at,
            captured=amount,
            captured_at=at,
            reference_no=f"R{each:09d}",
        )
        draft = PaymentDraft(payment).happened("authorise", amount=amount, at=at)
        drafts.append(draft.happened("capture", amount=amount, at=at))
    return drafts


def order_of_sale(sale: Payment) -> OrderLine:
    """What the shop's file says of it."""
    return OrderLine(
        merchant_id=sale.merchant_id,
        account_id=sale.account_id,
        order_no=sale.order_no,
        currency=sale.currency,
        amount=sale.authorised,
        status=OrderStatus.PAID,
        ordered_at=datetime.fromtimestamp(sale.created_at, UTC) - CHECKOUT_TIME,
        transaction_id=sale.transaction_id,
    )


def last_statements(month: BankMonth) -> dict[str, LastStatement]:
    """Where the next statement of each bank goes on."""
    return {
        name: LastStatement(statements[-1].number, statements[-1].closing)
        for name, statements in month.statements.items()
        if statements
    }


def _is_settled(effect: Effect, *, account: tuple[str, str]) -> bool:
    own = (effect.merchant_id, effect.account_id) == account
    return own and effect.operation in SETTLED and effect.operation != PAYOUT


def _statements(
    handed: ToldSoFar, *, payouts: Sequence[SettlementLine], day: date, seed: int
) -> BankMonth:
    """One a business day since, of every bank."""
    calendar, month = BusinessCalendar.of(), BankMonth()
    every = (handed.day + timedelta(days=after) for after in range(1, (day - handed.day).days + 1))
    days = [each for each in every if calendar.is_business_day(each)]
    for bank in BANKS:
        book = BankBook(bank, days=days, month=month)
        for each in handed.coming:
            if each.bank == bank.name:
                book.enter(each)
        for currency in currencies_of(bank, payouts):
            for line in payouts:
                if line.currency == currency and line.net:
                    _pay(line, book=book)
        chance = Random(f"bank {seed} {bank.name} {day}")
        month.statements[bank.name] = book.statements(chance, after=handed.last[bank.name])
    return month


def _pay(line: SettlementLine, *, book: BankBook) -> None:
    """It arrives whole; exchanged, where the bank has another currency, and the bank says so."""
    if line.currency == book.bank.currency:
        book.came(line, line.net)
        return
    ordered = (line.currency, line.net)
    book.came(line, in_euros(line), after=EXCHANGED_AFTER, ordered=ordered)


_BOOKED = {
    "capture": EntryType.CAPTURE,
    "refund": EntryType.REFUND,
    "chargeback": EntryType.CHARGEBACK,
}


def _of_payments(
    effects: Iterable[tuple[int, Effect]],
    *,
    account: tuple[str, str],
    day: date,
    known: set[tuple[str, str]],
) -> Iterator[LedgerLine]:
    """An entry for each movement of a payment that the books do not have already."""
    opens = datetime.combine(day, BOOKED_AT).astimezone(UTC)
    for position, effect in effects:
        kind = _BOOKED.get(effect.operation)
        own = (effect.merchant_id, effect.account_id) == account
        at = datetime.fromtimestamp(effect.committed_at, UTC) + BOOKING_TIME
        if kind is not None and own and (effect.order_no, kind.value) not in known:
            yield LedgerLine(
                entry_id=f"LP-{position}",
                merchant_id=effect.merchant_id,
                account_id=effect.account_id,
                order_no=effect.order_no,
                entry_type=kind.value,
                currency=effect.currency,
                amount=effect.amount or 0,
                booked_at=max(at, opens),
                transaction_id=effect.transaction_id,
            )
