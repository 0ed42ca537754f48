"""A month of payouts and statements made from the truth, with the answer key beside them.

Shares nothing with the engine: it knows what happened, writes it down as banks do, and says what
must be found. Every amount is another one, so that nothing fits by chance.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

IBAN = "DE89370400440532013000"
FIRST, LAST = date(2026, 11, 2), date(2026, 11, 27)
RATES: Mapping[str, Mapping[str, Any]] = {
    "USD.EUR": {
        "on": {"2026-11-03": "0.9", "2026-11-05": "0.8875", "2026-11-12": "0.912345"},
        "valid_days": 4,
    },
    "JPY.EUR": {"on": {"2026-10-28": "0.0061", "2026-11-20": "0.0062"}, "valid_days": 30},
}
"""As the rules declare them."""
ONLY_IN_FULL = frozenset({"less charges", "abroad", "exchanged", "at the rate"})
"""What MT940 has no field for."""


@dataclass
class Entry:
    """One entry as the bank books it."""

    day: date
    amount: int
    text: str
    party: str
    number: str = ""
    charges: int = 0
    ordered: tuple[str, int] | None = None


@dataclass
class Truth:
    """What happened in a month, and what must be found of it."""

    payouts: list[tuple[str, date, str, int]] = field(default_factory=list)
    """Batch, day, currency, amount."""
    entries: list[Entry] = field(default_factory=list)
    key: list[tuple[str, str, int]] = field(default_factory=list)
    """Code, break id, effect."""
    unknown: list[tuple[Entry, int]] = field(default_factory=list)
    in_full: bool = False
    """Something in it can be told by camt and CSV only."""


def truth_of(seed: int) -> Truth:
    """The month of a seed."""
    chance = random.Random(f"bank {seed}")
    truth, amounts = Truth(), _amounts(chance)
    stories = [*chance.choices([*ROUTINE], k=8), *chance.sample([*INJECTED], k=4)]
    full = chance.random() < 0.5
    for number, story in enumerate(stories):
        if story in ONLY_IN_FULL:
            if not full:
                continue
            truth.in_full = True
        play = {**ROUTINE, **INJECTED}[story]
        scene = _scene(truth, number, chance=chance, amounts=amounts)
        play(scene)
    for number in range(chance.randrange(6)):
        day = _bank_day(chance, before=LAST)
        party = chance.choice(("Bäckerei Süß", "Gatewayside Inn", "Tax Office", ""))
        truth.entries.append(Entry(day, -next(amounts), f"RE 4711-{number} BATCH-", party))
    chance.shuffle(truth.entries)
    for number, one in enumerate(truth.entries):
        one.number = f"E{number:04}"
    truth.key += [
        ("BANK_RECEIPT_UNKNOWN", unknown_id(one), effect) for one, effect in truth.unknown
    ]
    return truth


def _amounts(chance: random.Random) -> Iterator[int]:
    """Amounts of which no two, and no two sums of a few, are the same."""
    seen: set[int] = set()
    while True:
        amount = chance.randrange(1_000, 900_000_000)
        if amount not in seen:
            seen.add(amount)
            yield amount


@dataclass
class Scene:
    """One payout, or two, and what the bank has of it."""

    truth: Truth
    number: int
    batch: str
    day: date
    amount: int
    more: int
    """Of a second payout."""
    part: int
    """Less than the amount."""
    arrives: date
    party: str
    text: str

    def paid(self, suffix: str = "", amount: int = 0, currency: str = "EUR") -> None:
        """The gateway says that it paid."""
        row = (f"{self.batch}{suffix}", self.day, currency, amount or self.amount)
        self.truth.payouts.append(row)

    def came(self, amount: int, *, after: int = 0, **cells: Any) -> Entry:
        """The bank books it."""
        day = _later(self.arrives, after) if after else self.arrives
        entry = Entry(day, amount, **{"text": self.text, "party": self.party, **cells})
        self.truth.entries.append(entry)
        return entry

    def broken(self, code: str, effect: int, suffix: str = "", currency: str = "EUR") -> None:
        """What must be found."""
        key = f"payout:{currency}:{self.batch}{suffix}"
        self.truth.key.append((code, id_of(key), effect))


DUMB = {"text": "settlement", "party": "gateway plc"}
"""An entry that names nothing."""


def _named(s: Scene) -> None:
    s.paid()
    s.came(s.amount)


def _by_amount(s: Scene) -> None:
    s.paid()
    s.came(s.amount, **DUMB)


def _repaid(s: Scene) -> None:
    s.paid()
    for after, sign in enumerate((1, -1, 1)):
        s.came(sign * s.amount, after=after)


def _joined(s: Scene) -> None:
    s.paid()
    s.paid("-B", s.more)
    s.came(s.amount + s.more, text=f"{s.batch}, {s.batch}-B")


def _one_sum(s: Scene) -> None:
    s.day = date(2026, 11, 7) + timedelta(s.number % 2 + 7 * (s.number // 2 % 2))
    s.batch = f"{s.batch}-S"
    if any(day == s.day for _, day, _, _ in s.truth.payouts):
        return  # a weekend's day is of one pair only
    s.paid()
    s.paid("-B", s.more)
    s.arrives = _later(s.day, 1)
    s.came(s.amount + s.more, **DUMB)


def _less_charges(s: Scene) -> None:
    s.paid()
    s.came(s.amount - s.part, charges=-s.part)


def _in_transit(s: Scene) -> None:
    s.day = _later(LAST, -1)
    s.paid()


def _abroad(s: Scene) -> None:
    s.paid(currency="USD")
    s.came(s.amount * 9 // 10, ordered=("USD", s.amount))


def _twice(s: Scene) -> None:
    s.paid()
    s.came(s.amount)
    s.came(s.amount, after=1)
    s.broken("PAYOUT_TWICE_AT_BANK", s.amount)


def _returned(s: Scene) -> None:
    s.paid()
    s.came(s.amount)
    s.came(-s.amount, after=1)
    s.broken("PAYOUT_RETURNED", -s.amount)


def _differs(s: Scene) -> None:
    s.paid()
    gap = s.part if s.number % 2 else -s.part
    s.came(s.amount + gap)
    s.broken("BANK_AMOUNT_DIFFERS", gap)


def _missing(s: Scene) -> None:
    s.paid()
    s.broken("PAYOUT_NOT_AT_BANK", -s.amount)


def _unknown(s: Scene) -> None:
    s.truth.unknown.append((s.came(s.amount, **DUMB), s.amount))


def _unclear(s: Scene) -> None:
    s.paid()
    s.paid("-B")
    s.came(s.amount, **DUMB)
    s.broken("AMBIGUOUS_MATCH", -s.amount)
    s.broken("AMBIGUOUS_MATCH", 0, "-B")


def _exchanged(s: Scene) -> None:
    """Silently: what differs from the rate of its day is an effect; without one there is none."""
    currency = ("USD", "JPY", "GBP")[s.number % 3]
    s.paid(currency=currency)
    came = s.came(s.amount)
    due = _due(s.amount, currency, came.day)
    s.broken("BANK_FX_DIFFERENCE", 0 if due is None else s.amount - due, currency=currency)


def _at_the_rate(s: Scene) -> None:
    """Silently, and to the cent what the rate of the day gives."""
    currency = ("USD", "JPY")[s.number % 2]
    due = _due(s.amount, currency, s.arrives)
    s.paid(currency=currency)
    s.came(s.amount if due is None else due)
    if due is None:
        s.broken("BANK_FX_DIFFERENCE", 0, currency=currency)


def _due(amount: int, currency: str, day: date) -> int | None:
    """Cents for minor units of another currency: by hand, a day after the other."""
    per_unit: Fraction | None = None
    told = RATES.get(f"{currency}.EUR", {"on": {}, "valid_days": 0})
    for back in range(told["valid_days"], -1, -1):
        named = told["on"].get((day - timedelta(back)).isoformat())
        per_unit = Fraction(named) if named else per_unit
    if per_unit is None:
        return None
    return round(amount * per_unit * (100 if currency == "JPY" else 1))


ROUTINE: Mapping[str, Callable[[Scene], None]] = {
    "named": _named,
    "joined": _joined,
    "one sum": _one_sum,
    "by amount": _by_amount,
    "repaid": _repaid,
    "less charges": _less_charges,
    "in transit": _in_transit,
    "abroad": _abroad,
    "at the rate": _at_the_rate,
}
INJECTED: Mapping[str, Callable[[Scene], None]] = {
    "twice": _twice,
    "returned": _returned,
    "differs": _differs,
    "missing": _missing,
    "unknown": _unknown,
    "unclear": _unclear,
    "exchanged": _exchanged,
}


def _scene(truth: Truth, number: int, *, chance: random.Random, amounts: Iterator[int]) -> Scene:
    batch = f"BATCH-{number:03}{chance.randrange(1000):03}"
    day = _bank_day(chance, before=LAST - timedelta(10))
    amount = next(amounts)
    texts = (f"Payout {batch}", f"{batch.lower()} thank you very much indeed", f"ref:{batch}.")
    return Scene(
        truth=truth,
        number=number,
        batch=batch,
        day=day,
        amount=amount,
        more=next(amounts),
        part=chance.randrange(1, amount),
        arrives=_later(day, chance.randrange(1, 3)),
        party=chance.choice(("The Gateway Ltd", "GATEWAY", "Somebody else")),
        text=chance.choice(texts),
    )


def id_of(key: str) -> str:
    """The id of a break, as the contract says."""
    return hashlib.sha256(f"M\x1fA\x1f{key}\x1f1".encode()).hexdigest()[:16]


def unknown_id(one: Entry) -> str:
    """The id of an entry that nobody expects."""
    number = statement_number(one.day)
    return id_of(f"bank:{IBAN}:{one.day.year}:{number}:{one.number}")


def statement_number(day: date) -> int:
    """Statements are of one business day each."""
    return next(number for number, one in enumerate(days(), start=101) if one == day)


def days() -> list[date]:
    """The business days of the month."""
    every = [FIRST + timedelta(n) for n in range((LAST - FIRST).days + 1)]
    return [day for day in every if day.weekday() < 5]


def _bank_day(chance: random.Random, *, before: date) -> date:
    return chance.choice([day for day in days() if day <= before])


def _later(day: date, steps: int) -> date:
    """So many business days later, or earlier."""
    sign = 1 if steps > 0 else -1
    for _ in range(abs(steps)):
        day += timedelta(sign)
        while day.weekday() >= 5:
            day += timedelta(sign)
    return day


def major(amount: int) -> str:
    """Euros and cents, signed."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02}"
