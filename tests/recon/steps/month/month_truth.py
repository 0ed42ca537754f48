"""Months made from the truth: what happened on which business date, and what each night knew of it.

Shares nothing with what computes statements: an event gets its business date first and an instant
inside it then. Each night's folder is written from what could be known by then, late files late.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MERCHANT, ACCOUNT = PLACE = ("M", "1")
CURRENCIES = ("EUR", "JPY", "KWD")
MICROSECOND = timedelta(microseconds=1)
BY_LINES = ("hidden", "partly")
"""Ways of a refund or chargeback of which a line says how much, and when."""
BEFORE_DAYS, AFTER_DAYS = 12, 5
"""Days of sales before the month, and, where no more are asked for, nights after it."""


@dataclass(frozen=True)
class Calendar:
    """A zone and a cut-off, as the truth counts them."""

    zone: str = "UTC"
    hour: int = 24

    def opens(self, day: date) -> datetime:
        closed = date.fromordinal(day.toordinal() - 1 + self.hour // 24)
        wall = time(self.hour % 24, tzinfo=ZoneInfo(self.zone))
        return datetime.combine(closed, wall).astimezone(UTC)


@dataclass
class Sale:
    """One payment with all that became of it; each event with its business date."""

    number: int
    currency: str
    amount: int
    sold: date
    captured: date
    way: str
    """auto (captured as it is paid), instructed, portal (captured in the gateway's pages)."""
    moments: dict[str, datetime] = field(default_factory=dict)
    settled: date | None = None
    fee: int = 0
    refund: int = 0
    refund_way: str = ""
    """instructed, shown (with its amount), hidden (lines tell), partly (state without amount)."""
    refunded: date | None = None
    refund_settled: date | None = None
    again: tuple[int, date, date | None] | None = None
    """A second refund, of the same way: amount, the day it took place, the day it was settled."""
    charged: date | None = None
    charge_way: str = ""
    charge_settled: date | None = None
    won: date | None = None
    won_settled: date | None = None
    is_booked_at_once: bool = False
    is_booked_by_hand: bool = False
    """Its entries are written where it is planted, or not at all."""

    @property
    def order(self) -> str:
        return f"O{self.number:05}"

    @property
    def payment(self) -> str:
        return f"T{self.number:05}"

    @property
    def refunds(self) -> list[tuple[int, date, date | None]]:
        """Amount, the day it took place, the day it was settled, of each."""
        first = [] if self.refunded is None else [(self.refund, self.refunded, self.refund_settled)]
        return [*first, *([] if self.again is None else [self.again])]


@dataclass
class Line:
    """A line of the settlement and the night whose files first had it."""

    batch: str
    day: date
    kind: str
    currency: str
    gross: int
    fee: int
    known: date
    order: str = ""
    payment: str = ""
    own: str = ""
    paid: int | None = None

    @property
    def net(self) -> int:
        return self.gross - self.fee if self.paid is None else self.paid


@dataclass
class Entry:
    kind: str
    currency: str
    amount: int
    day: date
    order: str = ""
    payment: str = ""
    reference: str = ""
    key: str = ""
    gone: date | None = None
    """The first night whose books have it no more: it was deleted, and nothing reverses it."""


@dataclass
class MonthTruth:
    """A month of one account."""

    first: date
    seed: int = 1
    calendar: Calendar = field(default_factory=Calendar)
    per_day: int = 20
    window: int = 15
    """Days that a night looks back; what is older it has as sums, or not at all."""
    bank: bool = True
    late: Mapping[tuple[str, date], date] = field(default_factory=dict)
    """Currency and day of a batch -> the night whose files first have it."""
    after: int = AFTER_DAYS
    """Days after the month that are played."""
    is_first: bool = False
    """No night ran before the month, and nothing was sold before it."""
    sales: list[Sale] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    at_bank: list[tuple[str, str, date, int, str]] = field(default_factory=list)
    """Batch, currency, booked on, amount, what: came, back, charges."""

    def __post_init__(self) -> None:
        self.chance = random.Random(f"month {self.first} {self.seed}")
        self.last = (self.first.replace(day=28) + timedelta(days=7)).replace(day=1) - timedelta(
            days=1
        )
        self.begin = self.first if self.is_first else self.first - timedelta(days=BEFORE_DAYS)
        self.first_close = self.first - timedelta(days=1)
        self.end = self.last + timedelta(days=self.after)
        for number in range((self.end - self.begin).days + 1):
            self._sell(self.begin + timedelta(days=number))
        self._edges()
        self._settle()
        self._book()
        self.booked_on: dict[str, list[date]] = defaultdict(list)
        for entry in self.entries:
            self.booked_on[entry.order].append(entry.day)
        captured = {entry.order for entry in self.entries if entry.kind == "capture"}
        self.unbooked = {sale.order for sale in self.sales} - captured

    def within(self, day: date) -> bool:
        return self.first <= day <= self.last

    # What happens ------------------------------------------------------------------------------
    def _sell(self, day: date) -> None:
        for _ in range(self.per_day):
            chance, late = self.chance, self.chance.choice((0, 0, 1, 2))
            way = chance.choices(("auto", "instructed", "portal"), (8, 2, 1))[0]
            captured = day if way == "auto" else day + timedelta(days=late)
            sale = self._sale(day, captured, way=way)
            # Of one that is captured in the pages only later, and never settled, a night knows no
            # day but the sale's: from before the first file it would be nobody's receivable.
            has_no_day = way == "portal" and day <= self.begin + timedelta(days=2)
            if chance.random() > 0.04 or has_no_day:
                sale.settled = captured + timedelta(days=chance.randint(1, 3))
            sale.fee = sale.amount // 70 + 25
            disposition = chance.random()
            if disposition < 0.16:
                sale.refund = sale.amount if chance.random() < 0.4 else sale.amount // 3
                sale.refund_way = chance.choice(("instructed", "shown", "hidden", "partly"))
                sale.refunded = captured + timedelta(days=chance.randint(1, 20))
                sale.refund_settled = sale.refunded + timedelta(days=chance.randint(1, 3))
                if sale.refund_way == "partly" and sale.refund == sale.amount:
                    sale.refund_way = "shown"
                if sale.refund_way in BY_LINES:
                    # Nothing says when it took place but the line that settled it.
                    sale.refund_settled = sale.refunded
            elif disposition < 0.19 and sale.settled:
                sale.charged = sale.settled + timedelta(days=chance.randint(1, 9))
                sale.charge_way = chance.choice(("shown", "hidden"))
                sale.charge_settled = sale.charged + timedelta(
                    days=(1 if sale.charge_way == "shown" else 0)
                )
                if chance.random() < 0.5:
                    sale.won = sale.charged + timedelta(days=chance.randint(2, 9))
                    sale.won_settled = sale.won + timedelta(
                        days=(1 if sale.charge_way == "shown" else 0)
                    )

    def _sale(self, sold: date, captured: date, *, way: str) -> Sale:
        currency = self.chance.choice(CURRENCIES)
        sale = Sale(
            len(self.sales), currency, self.chance.randrange(2_000, 90_000), sold, captured, way
        )
        self.sales.append(sale)
        return sale

    def _edges(self) -> None:
        """On each side of both closes: the last microsecond of a day, and the first of the next."""
        for first in (self.first, self.last + timedelta(days=1)):
            for way in ("auto", "instructed"):
                for moment, day in (
                    (self.calendar.opens(first) - MICROSECOND, first - timedelta(days=1)),
                    (self.calendar.opens(first), first),
                ):
                    sale = self._sale(day, day, way=way)
                    sale.moments["captured"] = moment
                    sale.settled, sale.fee = day + timedelta(days=2), 25
                    if way == "instructed":
                        sale.sold = day - timedelta(days=1)
                        sale.refund, sale.refund_way, sale.refunded = 700, "instructed", day
                        sale.refund_settled = day + timedelta(days=2)
                        sale.moments["refunded"] = moment

        late = self._sale(self.last - timedelta(days=3), self.last - timedelta(days=3), way="auto")
        late.currency, late.settled = "JPY", self.last - timedelta(days=1)
        self._reported_by_late_lines()
        self._refunded_twice()
        self._won_before_the_last_window()
        self._booked_in_part()
        if not self.is_first:
            self._won_before()
        if self.after > AFTER_DAYS:
            self._moved_after_the_last_window()

    def _reported_by_late_lines(self) -> None:
        """Of each batch that comes late: what no night knows but by its lines."""
        for currency, day in self.late:
            sold = day - timedelta(days=5)
            for what in BY_LINES:
                sale = self._sale(sold, sold, way="auto")
                sale.currency, sale.settled, sale.fee = currency, sold + timedelta(days=1), 25
                sale.refund, sale.refund_way = 600, what
                sale.refunded = sale.refund_settled = day
            sale = self._sale(sold, sold, way="auto")
            sale.currency, sale.settled, sale.fee = currency, sold + timedelta(days=1), 25
            sale.charge_way, sale.charged, sale.charge_settled = "hidden", sold, sold
            sale.won = sale.won_settled = day

    def _refunded_twice(self) -> None:
        """One refund in the month, settled at its end, and one after it, of a payment."""
        sold, after = self.last - timedelta(days=8), self.last + timedelta(days=3)
        for way, is_settled in (("hidden", True), ("shown", True), ("shown", False)):
            sale = self._sale(sold, sold, way="auto")
            sale.settled, sale.fee = sold + timedelta(days=1), 25
            sale.refund, sale.refund_way = 500, way
            sale.refunded = sale.refund_settled = self.last - timedelta(days=1)
            sale.again = (300, after, after if is_settled else self.end + timedelta(days=1))

    def _booked_in_part(self) -> None:
        """What one journal of two months puts right: sold and refunded, and refunded twice."""
        day, after = self.last - timedelta(days=2), self.last + timedelta(days=2)
        for refund, refunded, again in (
            (2_000, after, None),
            (500, day + timedelta(days=1), (300, after, None)),
        ):
            sale = Sale(len(self.sales), "EUR", 9_000, day, day, "auto", is_booked_by_hand=True)
            sale.refund, sale.refund_way = refund, "shown"
            sale.refunded, sale.again = refunded, again
            self.sales.append(sale)
        names = {"order": sale.order, "payment": sale.payment, "key": sale.order}
        self.entries.append(Entry("capture", "EUR", sale.amount, day, **names))

    def _won_before(self) -> None:
        """Charged back and won back before the month, and the reversal is settled in it."""
        sale = self._sale(self.begin, self.begin, way="auto")
        sale.settled, sale.fee = self.begin + timedelta(days=1), 25
        sale.charge_way, sale.charged = "shown", self.first_close - timedelta(days=6)
        sale.charge_settled = sale.charged + timedelta(days=1)
        sale.won, sale.won_settled = self.first_close, self.first

    def _won_before_the_last_window(self) -> None:
        """The month's last night still has the reversal's line, and neither its order nor books."""
        won = self.last - timedelta(days=self.window + 1)
        sold = won - timedelta(days=8)
        sale = self._sale(sold, sold, way="auto")
        sale.settled, sale.fee, sale.is_booked_at_once = sold + timedelta(days=1), 25, True
        sale.charge_way, sale.charged = "shown", won - timedelta(days=3)
        sale.charge_settled = sale.charged + timedelta(days=1)
        sale.won, sale.won_settled = won, won + timedelta(days=1)

    def _moved_after_the_last_window(self) -> None:
        """The month's last night shows nothing of them any more; they are refunded after it."""
        sold, refunded = self.last - timedelta(days=self.window + 2), self.last + timedelta(days=3)
        for way, refund_way in (("auto", "shown"), ("instructed", "instructed")):
            sale = self._sale(sold, sold, way=way)
            sale.settled, sale.fee, sale.is_booked_at_once = sold + timedelta(days=1), 25, True
            sale.refund, sale.refund_way, sale.refunded = 400, refund_way, refunded
            sale.refund_settled = refunded + timedelta(days=1)

    def _settle(self) -> None:
        nets: dict[tuple[str, date], int] = defaultdict(int)
        for sale in self.sales:
            for day, kind, gross, fee in (
                (sale.settled, "capture", sale.amount, sale.fee),
                *((day, "refund", -amount, -(sale.fee // 2)) for amount, _, day in sale.refunds),
                (sale.charge_settled, "chargeback", -sale.amount, 1_500),
                (sale.won_settled, "chargeback", sale.amount, 0),
            ):
                if day is not None and gross:
                    self._line(day, kind, sale.currency, gross, fee, nets, sale=sale)
        for currency, day in sorted({*nets}):
            if currency == "EUR":
                kept = nets[currency, day] // 10
                self._line(day, "reserve", currency, -kept, 0, nets)
                self._line(day + timedelta(days=7), "reserve", currency, kept, 0, nets)
            if day.day % 9 == 0:
                self._line(day, "adjustment", currency, -777, 0, nets)
                self._line(day, "fee", currency, 0, 990, nets)
        held: dict[str, int] = defaultdict(int)
        for currency, day in sorted({*nets}, key=lambda place: (place[1], place[0])):
            amount, paid_on = nets[currency, day], day
            if day.day == 5:
                held[currency] += 1_000
                amount -= 1_000
            elif day.day == 9:
                amount += held.pop(currency, 0)
            if day == self.last:
                paid_on = day + timedelta(days=1)
            self._pay(day, paid_on, currency, amount)

    def _known(self, day: date, currency: str) -> date:
        """The night whose files have it: that of the day, but for files that come late."""
        if (currency, day) in self.late:
            return self.late[currency, day]
        late = currency == "JPY" and day == self.last - timedelta(days=1)
        return self.last + timedelta(days=2) if late else day

    def _line(
        self,
        day: date,
        kind: str,
        currency: str,
        gross: int,
        fee: int,
        nets: dict[tuple[str, date], int],
        *,
        sale: Sale | None = None,
    ) -> None:
        names = {} if sale is None else {"order": sale.order, "payment": sale.payment}
        known = self._known(day, currency)
        self.lines.append(
            Line(f"B-{currency}-{day}", day, kind, currency, gross, fee, known, **names)
        )
        nets[currency, day] += gross - fee

    def _pay(self, day: date, paid_on: date, currency: str, amount: int) -> None:
        batch, known = f"B-{currency}-{day}", max(paid_on, self._known(day, currency))
        self.lines.append(Line(batch, paid_on, "payout", currency, amount, 0, known, paid=amount))
        came = paid_on + timedelta(days=self.chance.randint(1, 2))
        if paid_on.day == 11 and currency == "EUR":
            self.at_bank.append((batch, currency, came, amount - 250, "came"))
            self.at_bank.append((batch, currency, came, 250, "charges"))
        elif paid_on.day == 17 and currency == "KWD":
            self.at_bank += [
                (batch, currency, came, amount, "came"),
                (batch, currency, came + timedelta(days=1), -amount, "back"),
                (batch, currency, came + timedelta(days=3), amount, "came"),
            ]
        elif not (paid_on.day == 20 and currency == "JPY"):
            self.at_bank.append((batch, currency, came, amount, "came"))

    def _book(self) -> None:
        def late() -> timedelta:
            return timedelta(days=self.chance.choice((0, 0, 0, 1, 2)))

        for sale in self.sales:
            if sale.is_booked_by_hand:
                continue
            names = {"order": sale.order, "payment": sale.payment, "key": sale.order}
            for day, kind, amount in (
                (sale.captured, "capture", sale.amount),
                *((day, "refund", amount) for amount, day, _ in sale.refunds),
                (sale.charged, "chargeback", sale.amount),
                (sale.won, "chargeback_reversal", sale.amount),
            ):
                if day is None or not amount:
                    continue
                is_lost = kind == "capture" and self.chance.random() < 0.02
                if is_lost and not sale.is_booked_at_once:
                    continue
                early = kind == "capture" and self.chance.random() < 0.02
                on = day - timedelta(days=1) if early else day + late()
                on = day if sale.is_booked_at_once else on
                self.entries.append(Entry(kind, sale.currency, amount, on, **names))
        fees: dict[tuple[str, date], int] = defaultdict(int)
        for line in self.lines:
            if line.kind == "payout":
                way = "payout" if line.net >= 0 else "payout_reversal"
                self.entries.append(
                    Entry(
                        way,
                        line.currency,
                        abs(line.net),
                        line.day + late(),
                        reference=line.batch,
                        key="payouts",
                    )
                )
            elif line.kind == "adjustment":
                self.entries.append(
                    Entry(
                        "adjustment",
                        line.currency,
                        line.gross,
                        line.day + late(),
                        # Books in yen name no batch.
                        reference="" if line.currency == "JPY" else line.batch,
                        key="adjustments",
                    )
                )
            elif line.kind == "reserve" and line.gross:
                way = "reserve" if line.gross < 0 else "reserve_reversal"
                self.entries.append(
                    Entry(way, line.currency, abs(line.gross), line.day, key="reserves")
                )
            fees[line.currency, line.day] += line.fee
        for (currency, day), fee in fees.items():
            if fee:
                kind = "fee" if fee > 0 else "fee_reversal"
                self.entries.append(Entry(kind, currency, abs(fee), day + late(), key="fees"))

    # What is true --------------------------------------------------------------------------------
    def known_lines(self, by: date) -> list[Line]:
        return [line for line in self.lines if line.known <= by]

    def events(self) -> Iterator[tuple[str, str, int, date]]:
        """Kind, currency, amount as it moves the receivable, business date: all that is known."""
        return (event for event, _ in self.reported_events())

    def reported_after(self, night: date, *, to: date) -> Counter[tuple[str, str, int, date]]:
        """The events of days up to one of which no night up to another knew."""
        return Counter(
            event for event, known in self.reported_events() if event[-1] <= to and known > night
        )

    def reported_events(
        self,
    ) -> Iterator[tuple[tuple[str, str, int, date], date]]:
        """The same, each with the night that knew it first: its own day's, or that of its line."""
        lined = {line.payment for line in self.known_lines(self.end)}
        first = min(line.day for line in self.lines)
        by_line = {(line.payment, line.kind, line.gross): line.known for line in self.lines}
        for sale in self.sales:
            for kind, amount, day, way in (
                ("capture", sale.amount, sale.captured, sale.way),
                *(("refund", -amount, day, sale.refund_way) for amount, day, _ in sale.refunds),
                ("chargeback", -sale.amount, sale.charged, sale.charge_way),
                ("won_back", sale.amount, sale.won, sale.charge_way),
            ):
                if day is None or day > self.end or sale.sold > self.end:
                    continue
                # What no file settled before the first one is nobody's receivable.
                if day >= first or sale.payment in lined:
                    word = "chargeback" if kind == "won_back" else kind
                    known = by_line[sale.payment, word, amount] if way in BY_LINES else day
                    yield (kind, sale.currency, amount, day), known
        named = {"capture": "captures", "refund": "refunds", "chargeback": "chargebacks"}
        for line in self.known_lines(self.end):
            for kind, amount in self._of_line(line, named=named):
                yield (kind, line.currency, amount, line.day), line.known

    def _of_line(self, line: Line, *, named: Mapping[str, str]) -> Iterator[tuple[str, int]]:
        """What a line says beyond payments."""
        if line.kind == "payout":
            yield "pay_out", -line.net
            return
        if line.fee:
            fee = "of_account" if line.kind == "fee" else f"on_{named.get(line.kind, 'others')}"
            yield f"fee_{fee}", -line.fee
        if line.kind == "adjustment":
            yield "adjustment", line.gross
        if line.kind == "reserve" and line.gross:
            yield "reserve", -line.gross

    def moved(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Currency and kind -> how many and how much, of the month."""
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for kind, currency, amount, day in self.events():
            if self.within(day):
                count, total = sums.get((currency, kind), (0, 0))
                sums[currency, kind] = count + 1, total + amount
        return sums

    def owed(self, at: date) -> dict[str, int]:
        """Currency -> what the gateway owes at the close of a day."""
        sums: dict[str, int] = defaultdict(int)
        for kind, currency, amount, day in self.events():
            if day <= at and kind != "reserve":
                sums[currency] += amount
        return dict(sums)

    def unsettled(self, at: date) -> dict[tuple[str, str], int]:
        """Currency and payment -> what took place by a day less what lines settled by it."""
        sums: dict[tuple[str, str], int] = defaultdict(int)
        lined = {line.payment for line in self.known_lines(self.end)}
        first = min(line.day for line in self.lines)
        for sale in self.sales:
            for amount, day in (
                (sale.amount, sale.captured),
                *((-amount, day) for amount, day, _ in sale.refunds),
                (-sale.amount, sale.charged),
                (sale.amount, sale.won),
            ):
                if day is not None and day <= at and (day >= first or sale.payment in lined):
                    sums[sale.currency, sale.payment] += amount
        for line in self.known_lines(self.end):
            if line.payment and line.day <= at:
                sums[line.currency, line.payment] -= line.gross
        return {place: amount for place, amount in sums.items() if amount}

    def in_reserve(self, at: date) -> dict[str, int]:
        sums: dict[str, int] = defaultdict(int)
        for kind, currency, amount, day in self.events():
            if day <= at and kind == "reserve":
                sums[currency] += amount
        return {currency: amount for currency, amount in sums.items() if amount}

    def held_back(self, at: date) -> dict[str, int]:
        """What batches paid out left: kept on the fifth, released on the ninth."""
        sums: dict[str, int] = defaultdict(int)
        nets: dict[str, int] = defaultdict(int)
        for line in self.known_lines(self.end):
            if line.day <= at:
                nets[line.batch] += -line.net if line.kind == "payout" else line.net
        paid = {
            line.batch
            for line in self.known_lines(self.end)
            if line.kind == "payout" and line.day <= at
        }
        for line_batch, left in nets.items():
            if line_batch in paid:
                sums[line_batch.split("-")[1]] += left
        return {currency: amount for currency, amount in sums.items() if amount}

    def in_transit(self, at: date) -> dict[str, int]:
        sums: dict[str, int] = defaultdict(int)
        known = {line.batch for line in self.known_lines(self.end) if line.kind == "payout"}
        for line in self.known_lines(self.end):
            if line.kind == "payout" and line.day <= at:
                sums[line.currency] += line.net
        for batch, currency, day, amount, _ in self.at_bank:
            if batch in known and day <= min(at, self.end):
                sums[currency] -= amount
        return {currency: amount for currency, amount in sums.items() if amount}

    def booked(self, *, since: date, to: date) -> dict[tuple[str, str], tuple[int, int]]:
        """Currency and type -> how many entries and how much they move the accounts."""
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for entry in self.entries:
            if since <= entry.day <= min(to, self.end):
                count, total = sums.get((entry.currency, entry.kind), (0, 0))
                sums[entry.currency, entry.kind] = count + 1, total + moves(entry)
        return sums


_SIGNS = {"capture": 1, "refund": -1, "chargeback": -1, "fee": -1, "payout": -1, "adjustment": 1}


def moves(entry: Entry) -> int:
    """How an entry moves clearing and reserve account together."""
    base, _, back = entry.kind.partition("_")
    return entry.amount * _SIGNS.get(base, 0) * (-1 if back else 1)
