"""Pairs payouts with bank entries, in the order of the contract and independent of row order.

First entries that name their batch, then one entry for several payouts, then equal amounts; what is
left is in transit, missing or unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import pandas as pd

from recon.config.exchange_rates import AppliedRate
from recon.config.rules import Rules
from recon.matching.bank.receipts import Receipt
from recon.matching.bank.statements import Cover
from recon.model.business_date import AHEAD_MAX, BusinessCalendar, Grace, midnight

LAST_COUNTED = "9998"
"""Days of later years are wrong, and no calendar has their due days."""


@dataclass(frozen=True, slots=True)
class Payout:
    """One batch that was paid out, as its bank should show it; minor units."""

    number: int
    merchant_id: str
    account_id: str
    currency: str
    batch_id: str
    settled_on: str
    paid: int
    bank: str
    earliest: str
    """One bank business day before settlement: it cannot be on a statement before that."""
    due_on: str
    opening: bool
    """Due before the first statement: listed, not compared."""

    @property
    def key(self) -> str:
        """The key of its break, the same as in the ledger comparison."""
        return f"payout:{self.currency}:{self.batch_id}"

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """Sort key of payouts."""
        return (self.settled_on, self.batch_id, self.merchant_id, self.account_id, self.currency)


def expected_payouts(
    paid: pd.DataFrame, *, rules: Rules, covers: Mapping[str, Cover]
) -> tuple[tuple[Payout, ...], tuple[str, ...]]:
    """Return every payout of an account that a bank serves, and the accounts that none serves.

    Args:
        paid: PAID_OUT_COLUMNS.
        rules: banks, calendar and grace.
        covers: what the statements of each bank prove.
    """
    grace, calendar = Grace.parse(rules.grace.payout_to_bank), rules.bank_calendar
    found, alone = [], set()
    names = ("merchant_id", "account_id", "currency", "batch_id", "settled_on", "paid")
    for cells in zip(*(paid[name].tolist() for name in names), strict=True):
        merchant, account, currency, batch, settled, amount = cells
        bank = bank_of(merchant, account, currency=currency, rules=rules)
        if not bank:
            alone.add(f"{merchant}/{account}")
            continue
        if not amount or bank not in covers:
            continue
        due = _due_on(settled, grace=grace, calendar=calendar)
        first = covers[bank].first_day
        found.append(
            Payout(
                number=0,
                merchant_id=merchant,
                account_id=account,
                currency=currency,
                batch_id=batch,
                settled_on=settled,
                paid=int(amount),
                bank=bank,
                earliest=_day_before(settled, calendar=calendar),
                due_on=due,
                opening=bool(first) and due < first,
            )
        )
    ordered = sorted(found, key=lambda one: one.place)
    numbered = (replace(one, number=number) for number, one in enumerate(ordered))
    return tuple(numbered), tuple(sorted(alone))


def bank_of(merchant: str, account: str, *, currency: str, rules: Rules) -> str:
    """Return the bank that receives an account's payouts: in its currency, else any serving it."""
    serving = [name for name, bank in rules.bank.items() if (merchant, account) in bank.served]
    same = [name for name in serving if rules.bank[name].currency == currency]
    return next(iter(sorted(same) or sorted(serving)), "")


def _due_on(settled: str, *, grace: Grace, calendar: BusinessCalendar) -> str:
    if settled >= LAST_COUNTED:
        return settled  # no calendar counts on from it
    start = date.fromisoformat(settled)
    moved = calendar.due_at(midnight(start, zone=calendar.zone), grace=grace)
    due = calendar.local_date(moved)
    while not calendar.is_business_day(due):
        due += timedelta(days=1)
    return due.isoformat()


def _day_before(settled: str, *, calendar: BusinessCalendar) -> str:
    day = date.fromisoformat(settled) - timedelta(days=1)
    while not calendar.is_business_day(day):
        day -= timedelta(days=1)
    return day.isoformat()


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one payout, for several together, or for an unexpected entry.

    Amounts in minor units of `currency`; the first of `payouts` bears the result.
    """

    currency: str
    paid: int = 0
    bank_amount: int = 0
    effect: int = 0
    """The unexplained part of the difference."""
    payouts: tuple[Payout, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    charges: int = 0
    """What the bank charged, where that explains the difference."""
    exchanged: tuple[tuple[str, int], ...] = ()
    """Currency and amount that were paid out in one currency and received in another, for T17."""
    rate: AppliedRate | None = None
    """The rate by which `paid` was exchanged, or why the expected amount is unknown."""
    allowed: int = 0
    """The difference between `paid` and the bank within the rate's tolerance."""
    opening: int = 0
    """Paid out before the first statement: listed."""
    account: tuple[str, str] = ("", "")
    """Merchant and account of an unexpected entry."""
    unclear: bool = False
    """The entries may belong to another payout as well."""
    returned: bool = False
    """A later entry takes it back."""
    twice: bool = False
    """It was received more than once."""
    overdue: bool = True
    """It is past due, and statements cover its due day."""
    came_late: bool = False
    """All of it was received, some of it after the due day."""
    repaid: bool = False
    """What was received in excess was taken back."""
    by_amount: bool = False
    """Only the amount links the entry to this payout."""
    date_ahead: bool = False
    """The payout has a date that cannot be right."""
    state: str = ""
    """As in the result, as code and flags; set and used only after codes.toml was evaluated."""
    code: str = ""
    flags: str = ""

    @property
    def by_rate(self) -> bool:
        """Whether the bank does not report the ordered amount of a receipt in another currency."""
        return self.rate is not None

    @property
    def has_rate(self) -> bool:
        """Whether a rate gives the expected amount."""
        return self.rate is not None and self.rate.rate is not None

    @property
    def facts(self) -> dict[str, bool]:
        """Facts for codes.toml; a payout is what is expected, an entry what was received."""
        return {
            **{name: getattr(self, name) for name in _FACTS},
            "expected": bool(self.payouts),
            "received": bool(self.receipts),
            "joined": len(self.payouts) > 1,
            "differs": self.effect != 0,
            "bank_charges": self.charges != 0,
            "exchanged": bool(self.exchanged),
            "late_payout_to_bank": self.overdue,
        }

    @property
    def ties(self) -> bool:
        """Whether nothing is left to explain."""
        return not (self.effect or self.unclear or (self.by_rate and not self.has_rate))


_FACTS = (
    *("unclear", "by_rate", "has_rate", "returned", "twice"),
    *("came_late", "repaid", "by_amount", "date_ahead"),
)
FACTS: Mapping[str, type] = dict.fromkeys(Finding("").facts, bool)


def evaluate(receipts: Sequence[Receipt], payouts: Sequence[Payout], *, rules: Rules) -> Finding:
    """Compare entries with payouts; all entries name all payouts, which have one currency."""
    currency = payouts[0].currency
    paid = sum(one.paid for one in payouts)
    worths = [one.worth(currency) for one in receipts]
    if any(one is None for one in worths):
        return _by_rate(receipts, payouts, paid=paid, rules=rules)
    amounts = [one or 0 for one in worths]
    total = sum(amounts)
    foreign = [one for one in receipts if one.currency != currency]
    base = Finding(
        currency,
        paid=paid,
        bank_amount=total,
        payouts=(*payouts,),
        receipts=(*receipts,),
        exchanged=_exchanged(foreign, currency=currency),
    )
    charged = sum(abs(one.charges) for one in receipts)
    late = _late(receipts, payouts)
    if total == paid:
        return replace(base, came_late=late, repaid=any(one * paid < 0 for one in amounts))
    if charged and not foreign and paid - total == charged:
        return replace(base, came_late=late, charges=charged)
    twice = sum(amount == paid for amount in amounts) >= SEVERAL
    returned = _went_back(receipts, amounts, paid=paid)
    return replace(base, effect=total - paid, returned=returned, twice=twice)


def _exchanged(foreign: Sequence[Receipt], *, currency: str) -> tuple[tuple[str, int], ...]:
    named = []
    for one in foreign:
        named += [(currency, one.worth(currency) or 0), (one.currency, -one.amount)]
    return tuple(named)


def _late(receipts: Sequence[Receipt], payouts: Sequence[Payout]) -> bool:
    due = max(one.due_on for one in payouts)
    return bool(receipts) and max(one.value_on for one in receipts) > due


def _went_back(receipts: Sequence[Receipt], amounts: Sequence[int], *, paid: int) -> bool:
    """Return whether one of the entries takes back what an earlier one brought."""
    received: dict[int, str] = {}
    for one, amount in zip(receipts, amounts, strict=True):
        if amount * paid > 0:
            received[amount] = min(received.get(amount, one.booked_on), one.booked_on)
    return any(
        -amount in received and one.booked_on >= received[-amount]
        for one, amount in zip(receipts, amounts, strict=True)
    )


def _by_rate(
    receipts: Sequence[Receipt], payouts: Sequence[Payout], *, paid: int, rules: Rules
) -> Finding:
    """Compare by the rate of the day: another currency, and the ordered amount is not reported.

    Entries of several days need one common rate: nothing shows which part of a payout was exchanged
    on which day.
    """
    currency, arrived = payouts[0].currency, receipts[0].currency
    total = sum(one.amount for one in receipts)
    rates = [rules.rate_of(currency, into=arrived, day=one.value_on) for one in receipts]
    first = min(rates, key=lambda rate: rate.day)
    differ = len({(rate.rate, rate.since) for rate in rates}) > 1
    first = replace(first, rate=None, differs=True) if differ else first
    base = Finding(
        arrived,
        bank_amount=total,
        payouts=(*payouts,),
        receipts=(*receipts,),
        rate=first,
    )
    expected = first.exchanged(paid)
    if expected is None:
        # The expected amount is unknown: it is left to a person, with no effect of its own.
        return replace(base, paid=total, exchanged=((currency, paid), (arrived, -total)))
    found = replace(base, paid=expected, exchanged=((currency, paid), (arrived, -expected)))
    gap = total - expected
    if first.allows(gap, of=expected):
        return replace(found, allowed=gap)
    return replace(found, effect=gap)


Account = tuple[str, str]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class Named:
    """One entry with the payouts that it names."""

    receipt: Receipt
    targets: frozenset[int] = frozenset()
    """Payouts that it names, by their number."""
    ambiguous: frozenset[int] = frozenset()
    """Payouts of which it names one, and nothing shows which."""
    other_account: Account | None = None
    """The account of a batch that it names and that is not paid out at this bank, or not yet."""

    @property
    def unnamed(self) -> bool:
        """Whether only its amount can identify it."""
        return not self.receipt.names


def named_receipts(
    receipts: Sequence[Receipt],
    *,
    payouts: Sequence[Payout],
    owners: Mapping[str, Account],
    rules: Rules,
) -> list[Named]:
    """Return every entry with the payouts that it names.

    Args:
        receipts: the entries in scope.
        payouts: the expected payouts.
        owners: batch id, case-folded -> account, of all batches that are known.
        rules: which bank serves which account.
    """
    by_id: dict[str, list[Payout]] = {}
    for one in payouts:
        by_id.setdefault(one.batch_id.casefold(), []).append(one)
    return [_named(one, by_id=by_id, owners=owners, rules=rules) for one in receipts]


def _named(
    receipt: Receipt,
    *,
    by_id: Mapping[str, Sequence[Payout]],
    owners: Mapping[str, Account],
    rules: Rules,
) -> Named:
    served = rules.bank[receipt.bank].served
    targets: dict[int, Payout] = {}
    ambiguous: set[int] = set()
    other_account: Account | None = None
    for name in sorted(receipt.names):
        here = [one for one in by_id.get(name, ()) if (one.merchant_id, one.account_id) in served]
        meant = _meant(here, receipt=receipt)
        if not here:
            other_account = other_account or owners.get(name)
        elif len(meant) == 1:
            targets[meant[0].number] = meant[0]
        else:
            ambiguous |= {one.number for one in here}
    if ambiguous or len({one.currency for one in targets.values()}) > 1:
        return Named(receipt, ambiguous=frozenset({*targets, *ambiguous}))
    return Named(receipt, frozenset(targets), other_account=None if targets else other_account)


def _meant(payouts: Sequence[Payout], *, receipt: Receipt) -> list[Payout]:
    """Return the one payout of an id that an entry can mean; several where nothing shows which."""
    equal = [one for one in payouts if receipt.worth(one.currency) == one.paid]
    if len(equal) == 1:
        return equal
    same = [one for one in payouts if one.currency == receipt.currency]
    return same if len(same) == 1 and not equal else [*payouts]


SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Paired:
    """Every payout with its result, and the unexpected entries."""

    findings: tuple[Finding, ...]
    """One for each payout or group of payouts."""
    unknown: tuple[Finding, ...]
    opening: tuple[Payout, ...]
    """Due before the first statement, and no entry names them."""
    waiting: tuple[Receipt, ...]
    """Entries not compared yet: valued after the covered day, or of a day not over."""


def pair(
    payouts: Sequence[Payout],
    named: Sequence[Named],
    *,
    covers: Mapping[str, Cover],
    rules: Rules,
    day: str,
) -> Paired:
    """Pair payouts with the entries in scope and return the result for each.

    Args:
        payouts: sorted by their place.
        named: the entries in scope with the payouts that they name.
        covers: what the statements of each bank prove.
        rules: rates and banks.
        day: the business date.
    """
    work = _Work(payouts, covers, rules)
    work.by_own_name([one for one in named if len(one.targets) == 1])
    work.by_joint_names([one for one in named if one.targets])
    work.by_ambiguous_names([one for one in named if one.ambiguous])
    free = [one.receipt for one in named if one.unnamed and not one.receipt.provisional]
    work.by_sum_of_a_day(free)
    work.by_amount(free)
    free_of_names = (one for one in named if not (one.targets or one.ambiguous))
    unused = [one for one in free_of_names if one.receipt not in work.used]
    classified = [one for one in unused if _is_classified(one, covers=covers)]
    opening = [one for one in payouts if one.opening and one.number not in work.done]
    left = [one for one in payouts if not one.opening and one.number not in work.done]
    return Paired(
        findings=(*work.findings, *(_left(one, covers=covers, day=day) for one in left)),
        unknown=tuple(_unknown(one, rules=rules) for one in classified),
        opening=tuple(opening),
        waiting=tuple(one.receipt for one in unused if not _is_classified(one, covers=covers)),
    )


class _Work:
    """The payouts and entries paired so far."""

    def __init__(
        self, payouts: Sequence[Payout], covers: Mapping[str, Cover], rules: Rules
    ) -> None:
        self.payouts = payouts
        self.covers = covers
        self.rules = rules
        self.results: dict[int, Finding] = {}
        """Payout that bears a result -> the result."""
        self.done: dict[int, int] = {}
        """Payout that has a result -> the payout that bears it."""
        self.used: set[Receipt] = set()

    @property
    def findings(self) -> list[Finding]:
        """All results, in the order of their payouts."""
        return [self.results[number] for number in sorted(self.results)]

    def add(self, finding: Finding) -> None:
        """Store a result for all of its payouts; it replaces an earlier one."""
        self._add_alone(finding)
        self.used |= set(finding.receipts)

    def _add_alone(self, finding: Finding) -> None:
        """Store a result whose entries are already marked as used."""
        first = finding.payouts[0].number
        self.results[first] = finding
        self.done |= {one.number: first for one in finding.payouts}

    def by_own_name(self, named: Sequence[Named]) -> None:
        """(1): entries that name only one batch and sum to it."""
        for number, receipts in sorted(_by_target(named).items()):
            finding = evaluate(receipts, [self.payouts[number]], rules=self.rules)
            if finding.ties:
                self.add(finding)

    def by_joint_names(self, named: Sequence[Named]) -> None:
        """(2) and (3): entries that name one batch and differ, or name several."""
        further: list[Named] = []
        for group in _components(named, settled={*self.done}):
            payouts = [self.payouts[number] for number in sorted(group.payouts)]
            if payouts:
                receipts = sorted(set(group.receipts), key=lambda one: one.place)
                self.add(_opened(evaluate(receipts, payouts, rules=self.rules)))
            further += group.beyond
        for one in further:
            self._beyond(one)

    def _beyond(self, one: Named) -> None:
        """Add an entry whose batches are all paid already: together they received too much."""
        payouts, receipts = self._opened_again([self.payouts[number] for number in one.targets])
        named = sorted({*receipts, one.receipt}, key=lambda receipt: receipt.place)
        self.add(evaluate(named, payouts, rules=self.rules))

    def _opened_again(self, payouts: Sequence[Payout]) -> tuple[list[Payout], list[Receipt]]:
        """Remove the results of payouts; return all payouts and entries that shared them."""
        bearers = {self.done[one.number] for one in payouts if one.number in self.done}
        before = [self.results.pop(number) for number in sorted(bearers)]
        every = {one.number: one for result in before for one in result.payouts}
        every |= {one.number: one for one in payouts}
        receipts = [receipt for result in before for receipt in result.receipts]
        return [every[number] for number in sorted(every)], receipts

    def by_ambiguous_names(self, named: Sequence[Named]) -> None:
        """Handle entries that may mean several payouts of one id."""
        groups: dict[frozenset[int], list[Receipt]] = {}
        for one in named:
            open_ones = frozenset(number for number in one.ambiguous if number not in self.done)
            groups.setdefault(open_ones or one.ambiguous, []).append(one.receipt)
        for numbers, receipts in sorted(groups.items(), key=lambda item: sorted(item[0])):
            self._doubt([self.payouts[number] for number in sorted(numbers)], receipts)

    def by_sum_of_a_day(self, free: Sequence[Receipt]) -> None:
        """(3): an entry without a name that equals the sum of all open payouts of one day."""
        days: dict[tuple[str, str, str], list[Payout]] = {}
        for one in self._open():
            days.setdefault((one.bank, one.currency, one.settled_on), []).append(one)
        worth = _by_worth(free)
        fits: dict[tuple[str, str, str], list[Receipt]] = {}
        for key, payouts in days.items():
            if len(payouts) >= SEVERAL:
                bank, currency, _ = key
                alike = worth.get((bank, currency, sum(one.paid for one in payouts)), ())
                fits[key] = [
                    one
                    for one in alike
                    if one.value_on <= payouts[0].due_on and self._in_time(one, payouts[0])
                ]
        times = Counter(one for several in fits.values() for one in several)
        for key in sorted(fits):
            if len(fits[key]) == 1 and times[fits[key][0]] == 1:
                self.add(evaluate(fits[key], days[key], rules=self.rules))

    def by_amount(self, free: Sequence[Receipt]) -> None:
        """(4): as many entries as payouts of one amount, each within its time."""
        left = [one for one in free if one not in self.used]
        for payouts, receipts in _same_amounts(self._open(), left, covers=self.covers):
            pairs = [*zip(payouts, receipts, strict=False)]
            if len(payouts) == len(receipts) and all(self._fits(two, one) for one, two in pairs):
                for payout, receipt in pairs:
                    finding = evaluate([receipt], [payout], rules=self.rules)
                    self.add(replace(finding, by_amount=True))
            else:
                self._doubt(payouts, receipts)

    def _doubt(self, payouts: Sequence[Payout], receipts: Sequence[Receipt]) -> None:
        """Mark the payouts as unclear; their common difference is on the first one."""
        payouts, earlier = self._opened_again(payouts)
        # One tuple shared by all payouts that the entries may mean: there may be thousands of both.
        named = tuple(sorted({*receipts, *earlier}, key=lambda one: one.place))
        currency = payouts[0].currency
        share = sum(one.worth(currency) or 0 for one in named) - sum(one.paid for one in payouts)
        exchanged = _exchanged(
            [one for one in named if one.currency != currency], currency=currency
        )
        self.used |= {*named}
        for one in payouts:
            self._add_alone(
                Finding(
                    one.currency,
                    paid=one.paid,
                    bank_amount=one.paid + share,
                    effect=share,
                    unclear=True,
                    payouts=(one,),
                    receipts=named,
                    exchanged=exchanged,
                )
            )
            share, exchanged = 0, ()

    def _open(self) -> list[Payout]:
        return [one for one in self.payouts if one.number not in self.done and not one.opening]

    def _in_time(self, receipt: Receipt, payout: Payout) -> bool:
        covered = self.covers[receipt.bank].to_day
        return receipt.bank == payout.bank and payout.earliest <= receipt.value_on <= covered

    def _fits(self, receipt: Receipt, payout: Payout) -> bool:
        same = receipt.worth(payout.currency) == payout.paid
        return same and self._in_time(receipt, payout)


@dataclass(slots=True)
class _Component:
    """Payouts that entries name together, directly or through one another."""

    payouts: set[int]
    receipts: list[Receipt]
    beyond: list[Named]


def _by_target(named: Sequence[Named]) -> dict[int, list[Receipt]]:
    found: dict[int, list[Receipt]] = {}
    for one in named:
        (target,) = one.targets
        found.setdefault(target, []).append(one.receipt)
    return found


def _components(named: Sequence[Named], *, settled: set[int]) -> list[_Component]:
    """Group the entries and the payouts still open so that groups share no entry."""
    bearer: dict[int, _Component] = {}
    beyond = [one for one in named if len(one.targets) > 1 and one.targets <= settled]
    for one in named:
        open_ones = {number for number in one.targets if number not in settled}
        if not open_ones:
            continue
        touched = {id(bearer[number]): bearer[number] for number in open_ones if number in bearer}
        # The largest group absorbs the others, so that each member moves only a logarithmic number
        # of times.
        joined, *others = sorted(
            touched.values(), key=lambda group: len(group.payouts), reverse=True
        ) or [_Component(set(), [], [])]
        for group in others:
            joined.payouts |= group.payouts
            joined.receipts += group.receipts
            bearer |= dict.fromkeys(group.payouts, joined)
        joined.payouts |= open_ones
        joined.receipts.append(one.receipt)
        bearer |= dict.fromkeys(open_ones, joined)
    groups = sorted(
        {id(group): group for group in bearer.values()}.values(),
        key=lambda group: min(group.payouts),
    )
    return [*groups, _Component(set(), [], beyond)]


def _by_worth(receipts: Iterable[Receipt]) -> dict[tuple[str, str, int], list[Receipt]]:
    """Return bank, currency and amount -> the entries with it, in the order of the entries."""
    worth: dict[tuple[str, str, int], list[Receipt]] = {}
    for one in receipts:
        worth.setdefault((one.bank, one.currency, one.amount), []).append(one)
        if one.instructed is not None and one.instructed[0] != one.currency:
            worth.setdefault((one.bank, *one.instructed), []).append(one)
    return worth


def _same_amounts(
    payouts: Sequence[Payout], receipts: Sequence[Receipt], *, covers: Mapping[str, Cover]
) -> list[tuple[list[Payout], list[Receipt]]]:
    """Group payouts and entries of equal amount that could belong together.

    An entry fits a payout if valued between the payout's earliest day and its bank's last covered
    one. So what fits a later payout of that amount fits an earlier one, and all share one entry.
    """
    amounts: dict[tuple[str, str, int], list[Payout]] = {}
    for one in payouts:
        amounts.setdefault((one.bank, one.currency, one.paid), []).append(one)
    worth = _by_worth(receipts)
    groups: list[tuple[list[Payout], list[Receipt]]] = []
    for key in sorted(amounts):
        first = min(one.earliest for one in amounts[key])
        alike = worth.get(key, ())
        same = [one for one in alike if first <= one.value_on <= covers[one.bank].to_day]
        if same:
            newest = max(one.value_on for one in same)
            fitting = [one for one in amounts[key] if one.earliest <= newest]
            groups.append((sorted(fitting, key=lambda one: one.number), same))
    return groups


def _opened(finding: Finding) -> Finding:
    """Treat a payout from before the first statement that comes back as received before."""
    first = finding.payouts[0]
    before = first.opening and len(finding.payouts) == 1
    if finding.ties or not before or finding.bank_amount * first.paid >= 0:
        return finding
    received = finding.bank_amount
    return replace(finding, returned=True, effect=received, paid=0, opening=first.paid)


def _left(payout: Payout, *, covers: Mapping[str, Cover], day: str) -> Finding:
    """Return the finding of an unpaired payout: in transit until due and covered, then missing."""
    covered = covers[payout.bank].to_day
    ahead = payout.settled_on > (date.fromisoformat(day) + AHEAD_MAX).isoformat()
    return Finding(
        payout.currency,
        paid=payout.paid,
        effect=-payout.paid,
        payouts=(payout,),
        date_ahead=ahead,
        overdue=ahead or payout.due_on <= min(day, covered),
    )


def _is_classified(one: Named, *, covers: Mapping[str, Cover]) -> bool:
    if one.receipt.provisional:
        return False
    return bool(one.receipt.names) or one.receipt.value_on <= covers[one.receipt.bank].to_day


def _unknown(one: Named, *, rules: Rules) -> Finding:
    """Return the finding of an entry in scope that no payout explains."""
    served = rules.bank[one.receipt.bank].served
    merchants = {merchant for merchant, _ in served}
    only = next(iter(served)) if len(served) == 1 else ("", "")
    if len(served) > 1 and len(merchants) == 1:
        only = (next(iter(merchants)), "")
    return Finding(
        one.receipt.currency,
        bank_amount=one.receipt.amount,
        effect=one.receipt.amount,
        receipts=(one.receipt,),
        account=one.other_account or only,
    )
