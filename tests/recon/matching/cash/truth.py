"""Months of payments, batches, fees, reserves and books made from the truth, with the answer key.

Shares nothing with the engine, nor with the second judge: it knows what happened and what somebody
got wrong, writes down what gateway and ledger say of it, and what must be found. One account
has one story, so that no two meet in one group.
"""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

MERCHANT = "M"
FIRST, DAYS = date(2026, 10, 5), 12
"""Business days on which batches are settled; every grace has ended since."""
YOUNG = date(2026, 11, 27)
"""The last day: every grace runs."""
WAYS = ("balance", "payment", "batch", "day", "month")
CURRENCIES = ("EUR", "USD", "JPY", "KWD")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What must be found: one break, to the unit."""

    code: str
    break_id: str
    effect: int
    exposure: int
    flags: str = ""


@dataclass
class Truth:
    """What happened in a month, what gateway and books say of it, and what must be found."""

    fees_per: str
    rows: dict[str, list[Row]] = field(
        default_factory=lambda: {"orders": [], "gateway": [], "ledger": [], "settlement": []}
    )
    key: list[Found] = field(default_factory=list)
    unreadable: list[tuple[str, str, str]] = field(default_factory=list)
    """Account, batch and currency ("" where that is bad, too) of a line that nobody can read."""
    told: list[str] = field(default_factory=list)
    """The stories, one of each account."""


def truth_of(seed: int) -> Truth:
    """The month of a seed."""
    chance = random.Random(f"fees {seed}")
    truth = Truth(WAYS[seed % len(WAYS)])
    stories = [*chance.choices([*ROUTINE], k=4), *chance.sample([*INJECTED], k=6)]
    for number, name in enumerate(stories):
        month = Month(truth, f"{number + 1:03}", currency=chance.choice(CURRENCIES), chance=chance)
        {**ROUTINE, **INJECTED}[name](month)
        truth.told.append(name)
    for rows in truth.rows.values():
        chance.shuffle(rows)
    return truth


@dataclass
class Batch:
    """A batch that is being settled."""

    name: str
    day: date
    net: int = 0
    fees: dict[str, int] = field(default_factory=dict)
    """What the gateway took, by transaction ("" for none)."""
    reserve: int = 0
    """Kept back; less than 0: released."""


class Month:
    """One account and currency: what is settled, and how it is booked."""

    def __init__(self, truth: Truth, account: str, *, currency: str, chance: random.Random) -> None:
        self.truth, self.account, self.currency = truth, account, currency
        self.chance, self.numbers = chance, 0
        self.days = [FIRST + timedelta(days=day + 2 * (day // 5)) for day in range(DAYS)]

    def amount(self) -> int:
        """Minor units, so many that no two are the same and no fee eats a payment."""
        return self.chance.randrange(1_000_000, 9_000_000)

    def batch(self, *, day: date | None = None) -> Batch:
        """Some payments of one day, with their fees, refunds, a fee of the account."""
        batch = Batch(f"B{self.account}-{self.numbers}", day or self.days.pop(0))
        self.numbers += 1
        for number in range(self.chance.randrange(1, 4)):
            self.payment(batch, back=number > 0 and self.chance.random() < 0.4)
        if self.chance.random() < 0.3:
            self.line(batch, "fee", 0, self.amount() // 1000)
        return batch

    def payment(self, batch: Batch, *, back: bool) -> None:
        """Ordered, captured, booked and settled; or given back, with half of its fee."""
        self.numbers += 1
        order, transaction = f"A{self.account}-{self.numbers}", f"T{self.account}-{self.numbers}"
        gross = self.amount()
        key = {"order_no": order, "transaction_id": transaction}
        status = "refunded" if back else "paid"
        at = f"{batch.day}T08:00:00Z"
        self.add("orders", amount=gross, order_no=order, status=status, ordered_at=at)
        code, asked = "4100" if back else "3000", f"{batch.day:%Y%m%d}080000"
        self.add("gateway", amount=gross, payment_status=code, query_result="1", **key,
                 reference_no="", transaction_date=asked)  # fmt: skip
        fee = gross // 70 + 25
        self.book("capture", gross, day=batch.day, **key)
        self.line(batch, "capture", gross, fee, **key)
        if back:
            self.book("refund", gross, day=batch.day, **key)
            self.line(batch, "refund", -gross, -(fee // 2), **key)

    def line(self, batch: Batch, kind: str, gross: int, fee: int = 0, **cells: str) -> None:
        """One line of the batch."""
        self.settled(batch, entry_type=kind, gross=gross, fee=fee, net=gross - fee, **cells)
        batch.net += gross - fee
        if kind == "reserve":
            batch.reserve -= gross
        elif fee:
            name = cells.get("transaction_id", "")
            batch.fees[name] = batch.fees.get(name, 0) + fee

    def settled(self, batch: Batch, **cells: Any) -> None:
        """A row of the settlement."""
        row = {"batch_id": batch.name, "settled_on": batch.day.isoformat()}
        self.add("settlement", **{**row, **cells})

    def pay_out(self, batch: Batch, amount: int, *, currency: str) -> None:
        """The row that pays a batch out, which tells the fees of its lines once more."""
        fee = sum(batch.fees.values()) if currency == self.currency else 0
        sums = {"gross": amount + fee, "fee": fee, "net": amount}
        self.settled(batch, entry_type="payout", **sums, currency=currency)

    def paid(self, batch: Batch, amount: int, *, booked: int | None = None, ours: str = "") -> None:
        """The payout of a batch, and what the ledger has of it (None: the same)."""
        currency = ours or self.currency
        self.pay_out(batch, amount, currency=currency)
        self.book(
            "payout",
            amount if booked is None else booked,
            day=batch.day,
            reference_no=batch.name,
            currency=currency,
        )

    def book(self, kind: str, amount: int, *, day: date, **cells: Any) -> None:
        """An entry of the ledger; less than nothing is a reversal, nothing is none."""
        if not amount:
            return
        self.numbers += 1
        kind = kind if amount > 0 else f"{kind}_reversal"
        row = {"entry_id": f"E{self.account}-{self.numbers}", "entry_type": kind}
        row |= {"amount": abs(amount), "booked_at": f"{day}T12:00:00Z"}
        self.add("ledger", **{"order_no": "", **row, **cells})

    def add(self, source: str, **cells: Any) -> None:
        """A row of the account."""
        own = {"merchant_id": MERCHANT, "account_id": self.account, "currency": self.currency}
        self.truth.rows[source].append({**own, **cells})

    def groups(self, batches: list[Batch]) -> dict[str, list[tuple[int, Row, date]]]:
        """Group of fees -> amounts with what an entry names to belong to it, and its day."""
        by_group: dict[str, list[tuple[int, Row, date]]] = {}
        for batch in batches:
            day = batch.day.isoformat()
            for transaction, fee in batch.fees.items():
                group, cells = {
                    "balance": ("", {}),
                    "payment": (transaction or "unassigned", {"transaction_id": transaction}),
                    "batch": (batch.name, {"reference_no": batch.name}),
                    "day": (day, {"reference_no": day}),
                    "month": (day[:7], {"reference_no": day[:7]}),
                }[self.truth.fees_per]
                by_group.setdefault(group, []).append((fee, cells, batch.day))
        return by_group

    def post_fees(self, batches: list[Batch], *, but: str | None = None) -> None:
        """Each fee as it was charged, or a group's in one entry; those of one group left out."""
        for group, fees in self.groups(batches).items():
            if group == but:
                continue
            whole = [(sum(fee for fee, _, _ in fees), *fees[0][1:])]
            for fee, cells, day in whole if self.chance.random() < 0.5 else fees:
                self.book("fee", fee, day=day, **cells)

    def post_reserves(self, batches: list[Batch]) -> None:
        """What was kept back, and what came back."""
        for batch in batches:
            self.book("reserve", batch.reserve, day=batch.day)

    def broken(self, code: str, key: str, effect: int, exposure: int, flags: str = "") -> None:
        """What must be found."""
        text = f"{MERCHANT}\x1f{self.account}\x1f{key}\x1f1"
        own = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.truth.key.append(Found(code, own, effect, exposure, flags))

    def calm(self, batches: int = 3) -> list[Batch]:
        """Batches that are booked and not yet paid out."""
        made = [self.batch() for _ in range(batches)]
        self.post_fees(made)
        return made


def _even(m: Month) -> None:
    for batch in m.calm():
        m.paid(batch, batch.net)


def _held_and_released(m: Month) -> None:
    """A part of one batch comes with a later one."""
    first, second, third = m.calm()
    held = 1 + first.net // 3
    m.paid(first, first.net - held)
    m.paid(second, second.net)
    m.paid(third, third.net + held)


def _debt_repaid(m: Month) -> None:
    """A batch below nothing is paid with nothing, and the next one pays for it."""
    first = Batch(f"D{m.account}", m.days.pop(0))
    owed = m.amount()
    m.line(first, "adjustment", -owed)
    m.paid(first, 0)
    second = m.batch()
    m.line(second, "adjustment", owed + 7)
    m.post_fees([second])
    m.paid(second, second.net - owed)


def _reserve_and_back(m: Month) -> None:
    """Kept, and partly released."""
    first, second, third = m.calm()
    kept = m.amount()
    m.line(first, "reserve", -kept)
    m.line(third, "reserve", kept // 2)
    m.post_reserves([first, third])
    for batch in (first, second, third):
        m.paid(batch, batch.net)


def _young(m: Month) -> None:
    """Settled on the last day: nothing of it is booked yet, and some is held."""
    _even(m)
    batch = m.batch(day=YOUNG)
    m.line(batch, "reserve", -m.amount())
    m.pay_out(batch, batch.net - 5, currency=m.currency)


def _open_and_young(m: Month) -> None:
    """Not paid out yet, in time."""
    _even(m)
    m.post_fees([m.batch(day=YOUNG)])


def _written_off(m: Month) -> None:
    """Fees differ, and an entry that names the group closes it."""
    batches = [m.batch() for _ in range(2)]
    groups = m.groups(batches)
    group = m.chance.choice(sorted(groups))
    m.post_fees(batches)
    off = m.amount()
    _, cells, day = groups[group][0]
    m.book("fee", off, day=day, **cells)
    name = ":".join(filter(None, ("fees", m.currency, group)))
    m.book(m.chance.choice(("write_off", "adjustment")), off, day=day, reference_no=name)
    for batch in batches:
        m.paid(batch, batch.net)


def _unreadable(m: Month) -> None:
    """A line cannot be read: its batch and the group of its fees are not judged."""
    first, second = (m.batch() for _ in range(2))
    if m.truth.fees_per == "batch":
        m.book("fee", sum(second.fees.values()), day=second.day, reference_no=second.name)
    m.truth.unreadable.append((m.account, first.name, m.chance.choice((m.currency, ""))))
    m.paid(first, first.net + m.amount())
    m.paid(second, second.net)


def _unreadable_in_other_money(m: Month) -> None:
    """A line cannot be read: what the account has in another currency is judged all the same."""
    _unreadable(m)
    other, kept = Batch(f"G{m.account}", m.days.pop(0)), m.amount()
    m.line(other, "adjustment", kept, currency="GBP")
    m.line(other, "reserve", -kept, currency="GBP")
    m.paid(other, 0, ours="GBP")
    m.broken("RESERVE_NOT_BOOKED", "reserves:GBP", -kept, kept)


def _fees_key(m: Month, group: str) -> str:
    return ":".join(filter(None, ("fees", m.currency, group)))


def _fee_not_booked(m: Month) -> None:
    batches = [m.batch() for _ in range(3)]
    groups = m.groups(batches)
    group = m.chance.choice(sorted(groups))
    m.post_fees(batches, but=group)
    charged = sum(fee for fee, _, _ in groups[group])
    m.broken("FEE_NOT_BOOKED", _fees_key(m, group), -charged, charged)
    for batch in batches:
        m.paid(batch, batch.net)


def _fee_booked_differs(m: Month) -> None:
    batches = [m.batch() for _ in range(3)]
    groups = m.groups(batches)
    group = m.chance.choice(sorted(groups))
    m.post_fees(batches)
    off = m.amount()
    _, cells, day = groups[group][0]
    m.book("fee", off, day=day, **cells)
    m.broken("FEE_BOOKED_DIFFERS", _fees_key(m, group), off, off)
    for batch in batches:
        m.paid(batch, batch.net)


def _reserve_not_booked(m: Month) -> None:
    first, second = m.calm(2)
    kept = m.amount()
    m.line(first, "reserve", -kept)
    m.broken("RESERVE_NOT_BOOKED", f"reserves:{m.currency}", -kept, kept)
    for batch in (first, second):
        m.paid(batch, batch.net)


def _reserve_booked_differs(m: Month) -> None:
    first, second = m.calm(2)
    kept, off = m.amount(), m.amount()
    m.line(first, "reserve", -kept)
    m.book("reserve", kept + off, day=first.day)
    m.broken("RESERVE_BOOKED_DIFFERS", f"reserves:{m.currency}", off, off)
    for batch in (first, second):
        m.paid(batch, batch.net)


def _over_released(m: Month) -> None:
    """More comes back than was kept; the ledger says the same."""
    first, second = m.calm(2)
    kept, over = m.amount(), m.amount()
    m.line(first, "reserve", -kept)
    m.line(second, "reserve", kept + over)
    m.post_reserves([first, second])
    m.broken("RESERVE_BOOKED_DIFFERS", f"reserves:{m.currency}", 0, over, "over_released")
    for batch in (first, second):
        m.paid(batch, batch.net)


def _held_back(m: Month) -> None:
    first, second, third = m.calm()
    held = 1 + second.net // 3
    m.paid(first, first.net)
    m.paid(second, second.net - held)
    m.paid(third, third.net)
    m.broken("HELD_BACK", f"held:{m.currency}:{second.name}", 0, held)


def _held_in_part(m: Month) -> None:
    """What was held comes back, but for a part."""
    first, second, third = m.calm()
    held = 2 + first.net // 3
    m.paid(first, first.net - held)
    m.paid(second, second.net)
    m.paid(third, third.net + held // 2)
    m.broken("HELD_BACK", f"held:{m.currency}:{first.name}", 0, held - held // 2)


def _no_payout(m: Month) -> None:
    first, second = m.calm(2)
    m.paid(first, first.net)
    m.broken("HELD_BACK", f"held:{m.currency}:{second.name}", 0, second.net, "no_payout")


def _debt(m: Month) -> None:
    """A batch below nothing, for which nobody pays."""
    (first,) = m.calm(1)
    m.paid(first, first.net)
    second = Batch(f"D{m.account}", m.days.pop(0))
    owed = m.amount()
    m.line(second, "adjustment", -owed)
    m.paid(second, 0)
    m.broken("HELD_BACK", f"held:{m.currency}:{second.name}", 0, owed)


def _beyond(m: Month) -> None:
    first, second = m.calm(2)
    more = m.amount()
    m.paid(first, first.net)
    m.paid(second, second.net + more)
    m.broken("UNEXPECTED_RECEIPT", f"beyond:{m.currency}:{second.name}", 0, more)


def _payout_not_booked(m: Month) -> None:
    first, second = m.calm(2)
    m.paid(first, first.net)
    m.paid(second, second.net, booked=0)
    name = f"payout:{m.currency}:{second.name}"
    m.broken("PAYOUT_NOT_BOOKED", name, -second.net, second.net)


def _payout_differs(m: Month) -> None:
    first, second = m.calm(2)
    off = m.amount()
    m.paid(first, first.net)
    m.paid(second, second.net, booked=second.net + off)
    m.broken("PAYOUT_AMOUNT_MISMATCH", f"payout:{m.currency}:{second.name}", off, off)


def _payout_of_ledger_only(m: Month) -> None:
    first, second = m.calm(2)
    alone = m.amount()
    for batch in (first, second):
        m.paid(batch, batch.net)
    m.book("payout", alone, day=second.day, reference_no=f"X{m.account}")
    m.broken("LEDGER_PAYOUT_ONLY", f"payout:{m.currency}", alone, alone)


def _in_other_money(m: Month) -> None:
    """Paid out in another currency than its lines are in."""
    (first,) = m.calm(1)
    other = "GBP"
    paid = m.amount()
    m.paid(first, paid, ours=other)
    m.broken("CURRENCY_MISMATCH", f"held:{other}:{first.name}", 0, paid)


ROUTINE: Mapping[str, Callable[[Month], None]] = {
    "even": _even,
    "held and released": _held_and_released,
    "debt repaid": _debt_repaid,
    "reserve and back": _reserve_and_back,
    "young": _young,
    "open and young": _open_and_young,
    "written off": _written_off,
    "unreadable": _unreadable,
}
"""Stories without a break."""
INJECTED: Mapping[str, Callable[[Month], None]] = {
    "fee not booked": _fee_not_booked,
    "fee booked differs": _fee_booked_differs,
    "reserve not booked": _reserve_not_booked,
    "reserve booked differs": _reserve_booked_differs,
    "over released": _over_released,
    "held back": _held_back,
    "held in part": _held_in_part,
    "no payout": _no_payout,
    "debt": _debt,
    "beyond": _beyond,
    "payout not booked": _payout_not_booked,
    "payout differs": _payout_differs,
    "payout of books only": _payout_of_ledger_only,
    "in other money": _in_other_money,
    "unreadable in other money": _unreadable_in_other_money,
}
"""Stories with one break each."""
