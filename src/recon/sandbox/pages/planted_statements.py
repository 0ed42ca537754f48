"""The merchant's banks: what arrived of every pay-out, and what is planted into it.

Written from the truth outwards: first what the gateway paid out, then what each bank booked of it,
one to three business days later, so that every planted discrepancy is known. A pay-out goes to the
bank of its currency; without one to the first, which exchanges it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.money import exponent, format_minor_units
from recon.model.words import BreakCode, Flag
from recon.sandbox.pages.bank_book import (
    BANKS,
    PAYER,
    BankBook,
    BankEntry,
    BankMonth,
    PlantedAtBank,
    currencies_of,
)
from recon.sandbox.pages.planted_settlement import DAYS_BEFORE
from recon.sandbox.world.records import SettlementLine

LEAST_PLANTED = 1_000
"""Minor units below which nothing is planted into a pay-out."""
CHARGES = 500
"""Minor units that a bank keeps of an arriving amount, and says so."""
SHORT = 1_240
"""Minor units by which a planted arrival differs without a word."""
UNKNOWN_AMOUNT = 7_710
RATES: Mapping[str, str] = {"JPY": "0.0061", "KWD": "2.97"}
"""What the first bank gives for a unit of a currency that no bank here has, in its own."""
DATED_RATES: Mapping[str, Mapping[str, str]] = {
    "JPY": {"2026-11-02": "0.0060", "2026-11-16": "0.0061"}
}
"""What the demo's rules say that a unit is worth, from that day on."""
BELOW_THE_RATE = 73
"""Minor units by which an exchange without a word is worse than the rate of its day."""
EXCHANGED_AFTER = 2
"""Business days until a pay-out arrives that the bank exchanges."""
OTHER_RATE = "0.9"
"""The same of every currency that only people pay in, beside the sandbox's own payments."""


def bank_month(payouts: Sequence[SettlementLine], *, day: date, seed: int) -> BankMonth:
    """The statements of every bank up to a business date.

    Args:
        payouts: the pay-out rows of all batches, by day and currency.
        day: the business date; its statements have come.
        seed: of the sandbox.
    """
    month = BankMonth()
    calendar = BusinessCalendar.of()
    every = (day - timedelta(days=back) for back in range(DAYS_BEFORE, -1, -1))
    days = [each for each in every if calendar.is_business_day(each)]
    for bank in BANKS:
        book = BankBook(bank, days=days, month=month)
        for currency in currencies_of(bank, payouts):
            mine = [line for line in payouts if line.currency == currency and line.net]
            plays = _PLAYS.get(currency, _ABROAD)
            _play(mine, plays=plays, book=book)
        if bank is BANKS[0] and payouts:
            _unknown(book)
        month.statements[bank.name] = book.statements(Random(f"bank {seed} {bank.name} {day}"))
    return month


@dataclass(frozen=True, slots=True)
class _Story:
    """What a bank does with so many pay-outs in a row."""

    tell: Callable[[BankBook, Sequence[SettlementLine]], None]
    takes: int = 1
    days: int = 1
    """Business days after the last of them by which all of it stands on a statement."""


def _play(lines: Sequence[SettlementLine], *, plays: Sequence[_Story], book: BankBook) -> None:
    """Each story once, on the first pay-outs that it fits; all others arrive as they should."""
    left, stories = list(lines), list(plays)
    rest = stories.pop()
    while left:
        story = next((each for each in stories if _fits(each, left[: each.takes], book=book)), rest)
        if story is not rest:
            stories.remove(story)
        story.tell(book, left[: story.takes])
        del left[: story.takes]


def _fits(story: _Story, lines: Sequence[SettlementLine], *, book: BankBook) -> bool:
    return (
        len(lines) == story.takes
        and all(line.net >= LEAST_PLANTED for line in lines)
        and book.has(book.later(lines[-1], story.days))
    )


def _named(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    book.came(lines[0], lines[0].net)


def _by_amount(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, line.net, text="Credit transfer")
    if book.has(book.later(line, 1)):
        book.calm(line, Flag.BY_AMOUNT, why="arrived without a word of its batch")


def _doubtful(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    for after in (1, 2):
        book.came(line, line.net, after=after, text="Credit transfer")
    why = "two credits of its amount, and none names it"
    book.note(line, BreakCode.AMBIGUOUS_MATCH, line.net, why=why)


def _missing(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.note(line, BreakCode.PAYOUT_NOT_AT_BANK, -line.net, why="never arrived")


def _joined(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    first, last = lines
    text = f"Settlements {first.batch_id} and {last.batch_id}"
    book.came(last, first.net + last.net, text=text)
    for line in lines:
        book.calm(line, Flag.JOINED, why="two batches in one credit")


def _twice(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, line.net)
    book.came(line, line.net, after=2)
    book.note(line, BreakCode.PAYOUT_TWICE_AT_BANK, line.net, why="arrived on two days")


def _returned(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, line.net)
    book.came(line, -line.net, after=2, text=f"Return of {line.batch_id}, account closed")
    book.note(line, BreakCode.PAYOUT_RETURNED, -line.net, why="arrived and went back")


def _repaid(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    for after, sign in ((1, 1), (2, -1), (3, 1)):
        book.came(line, sign * line.net, after=after)
    book.calm(line, Flag.REPAID, why="went back and came again")


def _short(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, line.net - SHORT)
    book.note(line, BreakCode.BANK_AMOUNT_DIFFERS, -SHORT, why="arrived with less")


def _charged(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, line.net - CHARGES, charges=-CHARGES)
    book.calm(line, Flag.BANK_CHARGES, why="the bank kept its charges and says so")


def _exchanged(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    book.came(line, in_euros(line), after=EXCHANGED_AFTER, ordered=(line.currency, line.net))
    if book.has(book.later(line, 2)):
        book.calm(line, Flag.EXCHANGED, why="exchanged, and the bank says what was ordered")


def _exchanged_silently(book: BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    day = book.later(line, EXCHANGED_AFTER).isoformat()
    rates = DATED_RATES.get(line.currency, {})
    since = max((each for each in rates if each <= day), default="")
    why = "exchanged, and the bank does not say from what"
    came, effect = in_euros(line), 0
    if since:
        came, effect = in_euros(line, rate=rates[since]) - BELOW_THE_RATE, -BELOW_THE_RATE
        why += ": less than by the rate of the day"
    book.came(line, came, after=EXCHANGED_AFTER)
    currency = book.bank.currency
    book.note(line, BreakCode.BANK_FX_DIFFERENCE, effect, why=why, currency=currency)


def in_euros(line: SettlementLine, *, rate: str = "") -> int:
    """What the first bank gives for it, half to even."""
    per_unit = Decimal(rate or RATES.get(line.currency, OTHER_RATE))
    exact = Decimal(line.net).scaleb(-exponent(line.currency)) * per_unit
    return int(exact.scaleb(exponent(BANKS[0].currency)).to_integral_value(ROUND_HALF_EVEN))


def _unknown(book: BankBook) -> None:
    """The gateway pays something that no batch comes to."""
    if book.days:
        day, currency = book.days[-1], book.bank.currency
        book.entries.append(BankEntry(day, UNKNOWN_AMOUNT, PAYER, "Goodwill, see our letter"))
        why = "the gateway paid what no batch comes to"
        code = BreakCode.BANK_RECEIPT_UNKNOWN
        book.planted.append(PlantedAtBank(code, why, "", currency, UNKNOWN_AMOUNT))


_MISSING_DAYS = 4
"""Business days behind which a pay-out is due and covered."""
_PLAYS: Mapping[str, tuple[_Story, ...]] = {
    "EUR": (
        _Story(_missing, days=_MISSING_DAYS),
        _Story(_joined, takes=2),
        _Story(_twice, days=2),
        _Story(_short),
        _Story(_charged),
        _Story(_named),
    ),
    "GBP": (_Story(_doubtful, days=2), _Story(_by_amount)),
    "USD": (_Story(_returned, days=2), _Story(_repaid, days=3), _Story(_named)),
}
"""Currency of a bank -> what happens once each; the last to all other pay-outs."""
_ABROAD = (_Story(_exchanged_silently, days=2), _Story(_exchanged))


def key_of(month: BankMonth) -> dict[str, Any]:
    """The answer key: every planted break and every match with a flag, amounts as text."""
    in_order = sorted(
        month.planted, key=lambda each: (each.currency, each.batch_id, each.code or "", each.flag)
    )
    return {
        "breaks": [
            {**_place(each), "code": each.code.value, "effect_bank": _major(each)}
            for each in in_order
            if each.code is not None
        ],
        "matched_with_flag": [
            {**_place(each), "flag": each.flag} for each in in_order if each.flag
        ],
    }


def _place(each: PlantedAtBank) -> dict[str, str]:
    return {"batch_id": each.batch_id, "currency": each.currency, "why": each.why}


def _major(each: PlantedAtBank) -> str:
    return format_minor_units(each.effect, currency=each.currency)
