"""A second judge of payouts at the bank: the contract read aloud in plain Python.

It shares nothing with the engine but the words of codes and flags. One bank, one currency, no bank
holidays; an entry names no batch, one, or two that no other entry names. Whole minor units.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta

SATURDAY = 5
GRACE_DAYS = 3


@dataclass
class Paid:
    """A batch that was paid out, and what became of it."""

    batch: str
    on: str
    amount: int
    state: str = ""
    code: str = ""
    flags: set[str] = field(default_factory=set)
    effect: int = 0
    exposure: int = 0

    @property
    def due(self) -> str:
        """The last day on which it may come."""
        return moved(self.on, days=GRACE_DAYS)


@dataclass
class Came:
    """An entry of the gateway, and whether it is of anything."""

    names: tuple[str, ...]
    on: str
    amount: int
    charges: int = 0
    used: bool = False
    state: str = ""


def moved(day: str, *, days: int) -> str:
    """So many days of banks later, or earlier; never a Saturday or a Sunday."""
    at, step = date.fromisoformat(day), timedelta(1 if days > 0 else -1)
    for _ in range(abs(days)):
        at += step
        while at.weekday() >= SATURDAY:
            at += step
    while at.weekday() >= SATURDAY:
        at += step
    return at.isoformat()


def classify(paid: list[Paid], came: list[Came], *, first: str, covered: str, today: str) -> None:
    """Say of each payout and each entry what became of it."""
    paid.sort(key=lambda one: (one.on, one.batch))
    came.sort(key=lambda one: (one.on, one.amount))
    named: dict[tuple[str, ...], list[Came]] = defaultdict(list)
    for entry in came:
        named[entry.names].append(entry)
    for names, entries in named.items():
        if names:
            _by_name([one for one in paid if one.batch in names], entries, first=first)
    classified = [one for one in paid if one.due >= first]
    _by_sum(classified, named[()], covered=covered)
    _by_amount(classified, named[()], covered=covered)
    for one in paid:
        if not one.state:
            _left(one, first=first, covered=covered, today=today)
    for entry in came:
        entry.state = "known" if entry.used else "unknown" if entry.on <= covered else "waits"


def _by_name(payouts: list[Paid], entries: list[Came], *, first: str) -> None:
    whole, total = sum(one.amount for one in payouts), sum(one.amount for one in entries)
    charges, sizes = sum(abs(one.charges) for one in entries), [one.amount for one in entries]
    flags = {"joined"} if len(payouts) > 1 else set()
    is_late = max(one.on for one in entries) > max(one.due for one in payouts)
    late = {"late"} if is_late else set()
    came = [(one.on, one.amount) for one in entries if one.amount * whole > 0]
    back = [(one.on, one.amount) for one in entries if one.amount * whole < 0]
    returned = any(-gone == size and day >= at for day, gone in back for at, size in came)
    if total == whole:
        _say(payouts, "MATCHED", flags=flags | late | ({"repaid"} if back else set()))
    elif charges and whole - total == charges:
        _say(payouts, "MATCHED", flags=flags | late | {"bank_charges"})
    elif len(payouts) == 1 and payouts[0].due < first and total * whole < 0:
        # It had arrived before the first statement, and now goes back.
        _say(payouts, "BREAK", code="PAYOUT_RETURNED", flags=set(), effect=total)
        payouts[0].exposure = abs(whole)
    else:
        twice = "PAYOUT_TWICE_AT_BANK" if sizes.count(whole) > 1 else "BANK_AMOUNT_DIFFERS"
        code = "PAYOUT_RETURNED" if returned else twice
        _say(payouts, "BREAK", code=code, flags=flags, effect=total - whole)
        # What is at risk is the payout where it went back, else what is too much or too little.
        payouts[0].exposure = abs(payouts[0].amount) if returned else abs(total - whole)
    for entry in entries:
        entry.used = True


def _say(
    payouts: Iterable[Paid], state: str, *, code: str = "", flags: set[str], effect: int = 0
) -> None:
    """The same of several payouts; the first bears what they differ by."""
    for number, one in enumerate(payouts):
        one.state, one.code, one.flags = state, code, {*flags}
        one.effect = 0 if number else effect


def _by_sum(paid: list[Paid], entries: list[Came], *, covered: str) -> None:
    days: dict[str, list[Paid]] = defaultdict(list)
    for one in paid:
        if not one.state:
            days[one.on].append(one)
    fits = {
        day: [
            entry
            for entry in entries
            if entry.amount == sum(one.amount for one in payouts)
            and moved(day, days=-1) <= entry.on <= min(payouts[0].due, covered)
        ]
        for day, payouts in days.items()
        if len(payouts) > 1
    }
    for day, fitting in fits.items():
        others = [entry for other in fits if other != day for entry in fits[other]]
        if len(fitting) == 1 and not any(entry is fitting[0] for entry in others):
            fitting[0].used = True
            _say(days[day], "MATCHED", flags={"joined"})


def _by_amount(paid: list[Paid], entries: list[Came], *, covered: str) -> None:
    for amount in {one.amount for one in paid}:
        open_ones = [one for one in paid if not one.state and one.amount == amount]
        alike = [one for one in entries if not one.used and one.amount == amount]
        alike = [one for one in alike if one.on <= covered]
        fits = {
            (at, to)
            for at, one in enumerate(open_ones)
            for to, entry in enumerate(alike)
            if moved(one.on, days=-1) <= entry.on
        }
        payouts = [one for at, one in enumerate(open_ones) if any(at == own for own, _ in fits)]
        fitting = [one for to, one in enumerate(alike) if any(to == own for _, own in fits)]
        if not payouts:
            continue
        for entry in fitting:
            entry.used = True
        pairs = [*zip(payouts, fitting, strict=False)]
        if len(payouts) == len(fitting) and all(
            moved(one.on, days=-1) <= entry.on for one, entry in pairs
        ):
            for one, entry in pairs:
                late = {"late"} if entry.on > one.due else set()
                _say([one], "MATCHED", flags={"by_amount"} | late)
        else:
            gap = sum(one.amount for one in fitting) - sum(one.amount for one in payouts)
            _say(payouts, "BREAK", code="AMBIGUOUS_MATCH", flags=set(), effect=gap)
            for one in payouts:
                one.exposure = abs(one.amount)


def _left(one: Paid, *, first: str, covered: str, today: str) -> None:
    if one.due < first:
        one.state = "OPENING"
    elif one.due > min(today, covered):
        one.state = "PENDING"
    else:
        _say([one], "BREAK", code="PAYOUT_NOT_AT_BANK", flags=set(), effect=-one.amount)
        one.exposure = abs(one.amount)
