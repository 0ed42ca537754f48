"""What the engine knows of every total on the sheets: in integers, per currency, never over them.

The sheets compute the same again by formulas; these values are cached in them and compared by the
recalculation test. Two legs: `orders` (gateway minus orders) and `ledger` (gateway minus ledger).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recon.matching.breaks import movements as moves
from recon.matching.judging.severity import urgency
from recon.model.figures import NightFigures
from reports.drawing.draft import NUMBER_MINOR_UNITS_MAX
from reports.drawing.listing import rows_of
from reports.sheets.matched_totals import MatchedTotals, matched_totals
from reports.sheets.open_rows import NOT_VERIFIED, WAITING, OpenRows, open_rows

Place = tuple[str, str]
"""Account, "" where it could not be read, and order number."""
LEGS = ("orders", "ledger")
PARTS = ("breaks", "waiting", "not verified", "matched")
AMOUNT_FIELDS = ("order_amount", "gateway_amount", "ledger_amount", "exposure")
_OTHER_AMOUNTS = (
    "effect_orders",
    "effect_ledger",
    "amount",
    "exposure_before",
    "debit",
    "credit",
)


@dataclass(frozen=True, slots=True)
class LegTotal:
    """One currency on one leg, minor units."""

    currency: str
    leg: str
    gateway: int
    other: int
    parts: Mapping[str, int]
    """Part (PARTS) -> sum of its effects in this currency."""
    elsewhere: int
    """Effects of breaks whose row shows another currency or account."""
    gross: int
    """Sum of the breaks' effects without their signs: a net of 0 can hide two large breaks."""

    @property
    def difference(self) -> int:
        """Gateway minus the other side."""
        return self.gateway - self.other

    @property
    def explained(self) -> int:
        """What the rows on the sheets account for."""
        return sum(self.parts.values()) + self.elsewhere

    @property
    def unexplained(self) -> int:
        """Must be 0."""
        return self.difference - self.explained

    @property
    def amounts(self) -> tuple[int, ...]:
        """Every amount that stands on a sheet."""
        sides = (self.gateway, self.other, self.difference, self.explained, self.gross)
        return (*sides, *self.parts.values(), self.elsewhere)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the night as plain values, in the order in which the sheets show them."""

    breaks: list[dict[str, Any]]
    open: OpenRows
    """Pending and unverified."""
    matched: MatchedTotals
    instructions: list[dict[str, Any]]
    batches: list[dict[str, Any]]
    movements: list[dict[str, Any]]
    """`counts_as` says in which column of the roll-forward."""
    journals: list[dict[str, Any]]
    sides: list[dict[str, Any]]
    elsewhere: list[dict[str, Any]]
    """break_id, account_id, leg, currency, amount: effects that no row of Breaks shows."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The engine's totals of a night."""

    legs: tuple[LegTotal, ...]
    text_currencies: frozenset[str]
    """Currencies with an amount too large for a sheet's numbers: their totals are text."""


GROUPS: Mapping[str, str] = {
    "confirmed": "confirmed",
    "resolved_applied": "confirmed",
    "rejected": "rejected",
    "resolved_not_applied": "rejected",
    "in_flight": "in doubt",
    "in_doubt": "in doubt",
    "needs_human": "in doubt",
    "planned": "waiting",
    "approved": "waiting",
    "withdrawn": "withdrawn",
}
"""Instruction state -> what it counts as."""
GROUP_ORDER = ("in doubt", "rejected", "waiting", "confirmed", "withdrawn")


OPENED = (moves.NEW, AGAIN := "again")
"""Where breaks come from; `again`: it had closed, or it was out of sight for some nights."""
STILL_OPEN = "still open"
CLOSED = (*moves.FOR_GOOD, ELSEWHERE := "other")
"""How breaks end; `other`: it waits again, cannot be judged, is said elsewhere or was not seen."""
COUNTS_AS: Mapping[str, str] = {
    moves.NEW: moves.NEW,
    **dict.fromkeys((moves.REOPENED, moves.RETURNED), AGAIN),
    **dict.fromkeys(moves.STILL_OPEN, STILL_OPEN),
    **{word: word for word in moves.FOR_GOOD},
    **dict.fromkeys((moves.PENDING, moves.UNVERIFIED, moves.EXPLAINED, moves.NOT_SEEN), ELSEWHERE),
}
"""Movement of the engine -> the column of the roll-forward that it stands in, for every word."""


def rows_on_sheets(figures: NightFigures) -> Rows:
    """All rows, sorted: what is urgent first, then by order number."""
    breaks = rows_of(figures.breaks)
    unread = unread_rows(figures)
    instructions = [
        {**row, "group": GROUPS.get(row["state"], "in doubt")}
        for row in rows_of(figures.instructions)
    ]
    return Rows(
        breaks=sorted(breaks, key=urgency),
        open=open_rows(
            figures,
            reason_of=lambda row: (
                unread.get((row["account_id"], row["order_no"]))
                or unread.get(("", row["order_no"]))
            ),
        ),
        matched=matched_totals(figures.matches, rows_max=figures.matched_rows_max),
        instructions=sorted(instructions, key=_instruction_urgency),
        batches=rows_of(figures.batches),
        movements=[
            {**row, "counts_as": COUNTS_AS[row["movement"]]} for row in rows_of(figures.movements)
        ],
        journals=rows_of(figures.journals),
        sides=rows_of(figures.sides),
        elsewhere=_effects_elsewhere(breaks, effects=rows_of(figures.effects)),
    )


def totals_of(rows: Rows, *, ledger_covered: bool) -> Totals:
    """Every total of a night, per currency and leg."""
    legs = LEGS if ledger_covered else LEGS[:1]
    totals = tuple(
        _leg_total(rows, currency=currency, leg=leg)
        for currency in _currencies(rows)
        for leg in legs
    )
    return Totals(totals, _text_currencies(rows, legs=totals))


def sum_of(rows: Iterable[Mapping[str, Any]], *, name: str, currency: str) -> int:
    """The sum of an amount column over the rows of one currency, minor units."""
    return sum(row[name] or 0 for row in rows if row["currency"] == currency)


GATEWAY_SIDES = {"orders": ("gateway",), "ledger": ("gateway", "payouts", "fees", "reserves")}
"""Leg -> the sources on its gateway side: the books show our payouts too, no order does (T5B)."""


def _leg_total(rows: Rows, *, currency: str, leg: str) -> LegTotal:
    effect = f"effect_{leg}"
    waiting, unverified = (
        [group for group in rows.open.groups if group["result"] == result]
        for result in (WAITING, NOT_VERIFIED)
    )
    shown = (rows.breaks, waiting, unverified, rows.matched.groups)
    parts = {
        part: sum_of(amounts, name=effect, currency=currency)
        for part, amounts in zip(PARTS, shown, strict=True)
    }
    gateway, other = (
        sum_of(
            [row for row in rows.sides if row["source"] in sources],
            name="amount",
            currency=currency,
        )
        for sources in (GATEWAY_SIDES[leg], (leg,))
    )
    elsewhere = [row for row in rows.elsewhere if row["leg"] == leg]
    return LegTotal(
        currency=currency,
        leg=leg,
        gateway=gateway,
        other=other,
        parts=parts,
        elsewhere=sum_of(elsewhere, name="amount", currency=currency),
        gross=sum(abs(row[effect] or 0) for row in rows.breaks if row["currency"] == currency),
    )


def _currencies(rows: Rows) -> list[str]:
    everything = (rows.sides, rows.breaks, rows.open.groups, rows.matched.groups, rows.elsewhere)
    names = {row["currency"] for part in everything for row in part}
    return sorted(names - {"", None})


def _text_currencies(rows: Rows, *, legs: Iterable[LegTotal]) -> frozenset[str]:
    too_large = {
        leg.currency
        for leg in legs
        if any(abs(amount) > NUMBER_MINOR_UNITS_MAX for amount in leg.amounts)
    }
    lists = (rows.breaks, rows.open.groups, rows.matched.groups, rows.instructions, rows.sides)
    for part in (*lists, rows.journals, rows.movements):
        large = [row for name in _amounts_among(part) for row in part if _is_large(row[name])]
        too_large |= {row["currency"] for row in large}
        too_large |= {row["currency_before"] for row in large if "currency_before" in row}
    for currency, amount in (*rows.matched.largest.items(), *rows.open.largest.items()):
        too_large |= {currency} if amount > NUMBER_MINOR_UNITS_MAX else set()
    return frozenset(too_large)


def _amounts_among(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of amounts that rows of one list have."""
    return [name for name in (*AMOUNT_FIELDS, *_OTHER_AMOUNTS) if rows and name in rows[0]]


def _is_large(amount: int | None) -> bool:
    return amount is not None and abs(amount) > NUMBER_MINOR_UNITS_MAX


def _effects_elsewhere(
    breaks: list[dict[str, Any]], *, effects: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Effects minus what the rows show: second currencies and second accounts."""
    left: Counter[tuple[str, str, str, str]] = Counter()
    for row in effects:
        left[row["break_id"], row["account_id"], row["leg"], row["currency"]] += row["amount"] or 0
    for row in breaks:
        for leg in LEGS:
            key = (row["break_id"], row["account_id"], leg, row["currency"])
            left[key] -= row[f"effect_{leg}"] or 0
    names = ("break_id", "account_id", "leg", "currency")
    return [
        {**dict(zip(names, key, strict=True)), "amount": amount}
        for key, amount in sorted(left.items())
        if amount
    ]


def _instruction_urgency(row: Mapping[str, Any]) -> tuple[int, str]:
    return (GROUP_ORDER.index(row["group"]), row["instruction_id"])


def unread_rows(figures: NightFigures) -> Mapping[Place, str]:
    """The sentence of each order with a row that could not be read; the newest row counts."""
    tonight = {
        (reject.account_id, reject.order_no): _sentence(reject.source, reject.line, reject.column)
        for reject in figures.rejects
        if reject.order_no
    }
    standing = {
        (reject.account_id, reject.order_no): _sentence(reject.source, reject.line, reject.column)
        + f" Row {reject.reject_id} of `recon rejected-rows`."
        for reject in figures.quarantined
        if reject.order_no
    }
    return tonight | standing


def _sentence(source: str, line: int, column: str) -> str:
    return (
        f"Line {line} of {source} ({column}) could not be read, and nobody delivered this order "
        "again: have it delivered."
    )
