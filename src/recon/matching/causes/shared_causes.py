"""Breaks that share one cause, told as one line, so that one look (and one answer) covers them.

A cause is only claimed on evidence that could have spoken against it: a scale needs nearly every
compared amount of the file to be off by the same power of ten, a missing day needs the source to
have next to nothing of that day. What is merely alike is left without a cause.

Of many orders each bucket tells its breaks with what causes ask of them, and counts its sets; the
cause is looked for once, among the breaks of all of them and against the counts of all. So is what
might be the other side of a break that has none.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.codes import CODES
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows, given
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_CURRENCY
from recon.matching.judging.outcomes import Outcomes
from recon.matching.judging.severity import HOUR_MICROSECONDS, MINUTE_MICROSECONDS, business_days
from recon.matching.sets.joined_sets import Joined, account_texts, event_instants
from recon.matching.sides.gateway_side import NUMBER
from recon.model.business_date import BusinessCalendar
from recon.model.words import BreakCode, GatewayState

BREAKS_MIN = 3
"""Fewer breaks are looked at one by one."""
ALIKE_MIN = 2
"""One break alone has neither a cause to share nor another side to guess at."""
SHARE_MIN = 0.8
"""A cause holds for at least this share of what it could have held for."""
SCALES = (10, 100, 1000)
"""Powers of ten by which a wrong unit shifts an amount."""
ZERO = "0"
KEYS_LOOKED_AT_MAX = 1_000
"""So many order numbers say what may stand before or behind them; all are then held to it."""
EPOCH = date(1970, 1, 1).toordinal()
_OTHER_AMOUNT = frozenset(code for code, row in CODES.items() if row.other_amount)

STEP_MICROSECONDS = HOUR_MICROSECONDS // 4
"""Zones differ by hours, halves or quarters (Kathmandu is 5 3/4 hours ahead of UTC); a payment
follows its order, and an entry its payment, within a step."""
SLACK_MICROSECONDS = 2 * MINUTE_MICROSECONDS
"""So far clocks of two systems may be apart."""
STEP_HOURS = 0.25
STEPS_MIN, STEPS_MAX = 4, 56
"""Less than an hour is a delay; no zone is more than 14 hours away from UTC."""
NO_EDGE = NO_INSTANT

PAID_AT = "transaction_date"
DATED = {"orders": "ordered_at", "ledger": "booked_at"}
"""The time that each source has beside the gateway's."""
ALONE: Mapping[str, Mapping[BreakCode, str]] = {
    "orders": {
        BreakCode.MISSING_IN_ORDERS: PAID_AT,
        BreakCode.MISSING_AT_GATEWAY: DATED["orders"],
        BreakCode.BOOKED_NOT_AT_GATEWAY: DATED["orders"],
    },
    "ledger": {
        BreakCode.MISSING_IN_LEDGER: PAID_AT,
        BreakCode.LEDGER_ONLY: DATED["ledger"],
    },
}
"""By source, the breaks of a record whose other side is missing, and the time it stands under."""
SIDES = {"orders": "order_state", "ledger": "ledger_capture"}
"""By what a set is known to have one."""

Breaks = pd.DataFrame
"""Breaks, each with the facts of its set (see `with_facts`)."""
Found = Iterator[tuple[pd.Index, str]]
"""Rows of breaks, and the cause they share."""


class Evidence(NamedTuple):
    """Sets counted (column `sets`), also those without a break; counts of several buckets add up.

    A file is that of the set's first order.
    """

    times: "Mapping[tuple[str, ...], pd.Series[int]]"
    """Source, clock, merchant and account -> sets by minute since 1970: both times of `pairs`.
    There are as many as minutes, so no row of them has a text."""
    amounts: pd.DataFrame
    """file, currency, off (see `_off`), of sets with an amount on either side."""
    files: pd.DataFrame
    """file, of orders with an amount."""
    days: pd.DataFrame
    """source, merchant_id, account_id, day: sets with a record of the source, by the business date
    of the payment."""
    pairs: pd.DataFrame
    """source, merchant_id, account_id, steps: so far ahead of the gateway is the source's time."""


def evidence_of(joined: Joined, *, sources: Sources, calendar: BusinessCalendar) -> Evidence:
    """All that any finder asks of sets beside those with a break."""
    sets, file = joined.sets, _files(joined, sources=sources)
    both, ordered = (sets["order_captured"] > 0) & (sets["gateway_captured"] > 0), "order_captured"
    paid = sets[PAID_AT]
    day = business_days(paid, calendar=calendar)
    amounts = {"file": file, "currency": sets["currency"], "off": _off(joined)}
    days, pairs = [], []
    times: dict[tuple[str, ...], pd.Series[int]] = {}
    for source, clock in DATED.items():
        known = (sets[SIDES[source]] != 0) & (paid != NO_INSTANT)
        days.append(_counted(joined, rows=known, source=source, day=day))
        known = (sets[clock] != NO_INSTANT) & (paid != NO_INSTANT)
        steps = _steps(source, ours=sets[clock], paid=paid)
        pairs.append(_counted(joined, rows=known, source=source, steps=steps))
        for number in np.unique(sets["account"][known]).tolist():
            mine = known & (sets["account"] == number)
            for name in (clock, PAID_AT):
                minutes = pd.Series(sets[name][mine] // MINUTE_MICROSECONDS)
                key = (source, name, *joined.numbers.accounts[number])
                times[key] = minutes.value_counts(sort=False)
    return Evidence(
        times,
        _sets(pd.DataFrame(amounts)[both]),
        _sets(pd.DataFrame({"file": file})[sets[ordered] > 0]),
        *(pd.concat(parts, ignore_index=True) for parts in (days, pairs)),
    )


def added_evidence(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of several buckets together."""
    if len(parts) == 1:
        return parts[0]
    times: dict[tuple[str, ...], list[pd.Series[int]]] = {}
    for key, counts in (each for part in parts for each in part.times.items()):
        times.setdefault(key, []).append(counts)
    return Evidence(
        {key: pd.concat(each).groupby(level=0).sum() for key, each in times.items()},
        *(_added([getattr(part, name) for part in parts]) for name in Evidence._fields[1:]),
    )


def _added(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    whole = pd.concat(tables, ignore_index=True)
    return whole.groupby([*whole.columns.drop("sets")])["sets"].sum().reset_index()


def _counted(joined: Joined, *, rows: Bools, source: str, **columns: Any) -> pd.DataFrame:
    """The sets of some rows counted by account and these columns."""
    counts = _sets(pd.DataFrame({"account": joined.sets["account"], **columns})[rows])
    names = account_texts(counts.pop("account").to_numpy(), accounts=joined.numbers.accounts)
    return counts.assign(source=source, **names)


def _sets(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.value_counts(sort=False).rename("sets").reset_index()


def _files(joined: Joined, *, sources: Sources) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """The file of the first order of every set; None for a set without one."""
    items = joined.orders.items
    files = np.full(len(joined.sets), None, dtype=object)
    files[items["set"][::-1]] = texts(sources.orders["source"])[items["row"]][::-1]
    return files


def _off(joined: Joined) -> Ints:
    """By which of SCALES an order is larger than its payment, negative: smaller; 0: by none."""
    ordered, paid = (joined.sets[name] for name in ("order_captured", "gateway_captured"))
    off = np.zeros(len(joined.sets), dtype=np.int64)
    for scale in SCALES:
        off[(ordered == paid * scale) & (paid > 0)] = scale
        off[(ordered * scale == paid) & (paid > 0)] = -scale
    return off


def _steps(source: str, *, ours: Ints, paid: Ints) -> Ints:
    """So many steps a time is ahead of the gateway's, those beyond all zones as one."""
    # What came second is a little later than the shift alone would have it.
    apart = ours - paid if source == "ledger" else paid - ours
    steps = (apart + SLACK_MICROSECONDS) // STEP_MICROSECONDS
    signed = steps if source == "ledger" else -steps
    return np.asarray(np.clip(signed, -STEPS_MAX - 1, STEPS_MAX + 1), dtype=np.int64)


def with_facts(
    breaks: pd.DataFrame,
    *,
    joined: Joined,
    outcomes: Outcomes,
    sources: Sources,
    calendar: BusinessCalendar,
) -> Breaks:
    """The breaks with what causes and guesses ask of their sets, and without the set's number."""
    sets, numbers = joined.sets, breaks["set"].to_numpy()
    state = sets["gateway_state"][numbers]
    away = np.flatnonzero(outcomes.host >= 0)
    # A host stands for one set: that one's account, never just any with the same order number.
    stray = pd.Series(sets["account_id"][away], index=outcomes.host[away], dtype="str")
    gateway, orders = joined.gateway.items, joined.orders.items
    unknown = gateway.take(gateway["state"] == NUMBER[GatewayState.UNMAPPED.value])
    codes = texts(sources.gateway["payment_status"])[unknown["row"]]
    code_of = pd.Series(codes, index=unknown["set"], dtype="str")
    several = orders.take(np.isin(orders["set"], numbers[breaks["code"].eq(_TWICE).to_numpy()]))
    names = texts(sources.orders["source"])[several["row"]]
    files = pd.Series(names, index=several["set"], dtype="str").groupby(level=0)
    facts = {
        "file": _files(joined, sources=sources)[numbers],
        "files": files.agg(lambda group: " and ".join(sorted({*group}))).reindex(numbers),
        "off": _off(joined)[numbers],
        "payment_status": code_of[~code_of.index.duplicated()].reindex(numbers),
        "stray": stray.reindex(numbers),
        "in_orders": sets["order_state"][numbers] != 0,
        "in_gateway": (state != NUMBER["none"]) & (state != NUMBER["unverified"]),
        "in_ledger": sets["ledger_present"][numbers],
        **{clock: sets[clock][numbers] for clock in (*DATED.values(), PAID_AT)},
        "paid_day": business_days(sets[PAID_AT][numbers], calendar=calendar),
        "began_day": business_days(event_instants(sets)[numbers], calendar=calendar),
    }
    columns = {name: np.asarray(column) for name, column in facts.items()}
    return breaks.drop(columns="set").assign(**columns)


_TWICE = BreakCode.DUPLICATE_ORDER_ROW


def with_causes(breaks: Breaks, *, evidence: Evidence, calendar: BusinessCalendar) -> Breaks:
    """The breaks with `cause` filled where several share one; the first that holds is told."""
    causes = pd.Series("", index=breaks.index, dtype="str")
    for find in FINDERS:
        for rows, sentence in find(breaks[causes.eq("").to_numpy()], evidence, calendar):
            causes.loc[rows] = sentence
    return breaks.assign(cause=causes)


Finder = Callable[[Breaks, Evidence, BusinessCalendar], Found]
"""Looks for one kind of cause among the breaks that have none yet."""


def _zone_shifts(breaks: Breaks, evidence: Evidence, calendar: BusinessCalendar) -> Found:
    """Records around the end of a business date that one shift of a source keeps apart."""
    alone = breaks[breaks["code"].isin([code for codes in ALONE.values() for code in codes])]
    if len(alone) < BREAKS_MIN:
        return
    shifts: dict[tuple[str, str], dict[str, int]] = {}
    groups: Any = evidence.pairs.groupby([*ACCOUNT, "source"])
    for (merchant, account, source), pairs in groups:
        least = max(BREAKS_MIN, SHARE_MIN * int(pairs["sets"].sum()))
        for steps in pairs["steps"][pairs["sets"].ge(least)]:
            if STEPS_MIN <= abs(steps) <= STEPS_MAX:
                shifts.setdefault((merchant, account), {})[source] = int(steps)
    for place, of_account in sorted(shifts.items()):
        inside = alone[alone[ACCOUNT].eq([*place]).all(axis=1)]
        rows_of = {
            source: _kept_apart(inside, evidence, source=source, steps=steps, calendar=calendar)
            for source, steps in of_account.items()
        }
        yield from _told(rows_of, shifts=of_account, account=place[1])


def _told(rows_of: Mapping[str, pd.Index], *, shifts: Mapping[str, int], account: str) -> Found:
    """One sentence where orders and ledger agree against the gateway, else one for each."""
    if len(shifts) == len(DATED) and len({*shifts.values()}) == 1:
        steps = -next(iter(shifts.values()))
        rows = rows_of["orders"].append(rows_of["ledger"])
        parts = [("gateway", rows, steps, "of the orders and the ledger")]
    else:
        parts = [
            (source, rows_of[source], shifts[source], "of the gateway")
            for source in DATED
            if source in shifts
        ]
    for source, rows, steps, others in parts:
        if len(rows) >= BREAKS_MIN:
            hours = f"{abs(steps) * STEP_HOURS:g} hour{'' if abs(steps) == STEPS_MIN else 's'}"
            yield (
                rows,
                (
                    f"The times of the {source} in account {account} are {hours} "
                    f"{'ahead of' if steps > 0 else 'behind'} those {others}, which moves records "
                    "at the end of a business date to another one: is its time zone right?"
                ),
            )


def _kept_apart(
    breaks: Breaks, evidence: Evidence, *, source: str, steps: int, calendar: BusinessCalendar
) -> pd.Index:
    """The breaks of one account that the shift of one source explains.

    They are at an end of a business date beside which nearly no record has its other side.
    """
    found = breaks.index[:0]
    for code, clock in ALONE[source].items():
        shift = (steps if clock == PAID_AT else -steps) * STEP_MICROSECONDS
        of_code = breaks[breaks["code"].eq(code)]
        if of_code.empty:
            continue
        beside = evidence.times[source, clock, *of_code[ACCOUNT].iloc[0]]
        edges = _edges(of_code[clock].to_numpy(), shift=shift, calendar=calendar)
        minutes = beside.index.to_numpy() * MINUTE_MICROSECONDS
        others = beside.groupby(_edges(minutes, shift=shift, calendar=calendar)).sum()
        for edge in np.unique(edges[edges != NO_EDGE]).tolist():
            apart = edges == edge
            if apart.sum() >= SHARE_MIN * (apart.sum() + others.get(edge, 0)):
                found = found.append(of_code.index[apart])
    return found


def _edges(times: Ints, *, shift: int, calendar: BusinessCalendar) -> Ints:
    """The business date that begins between each time and the shifted one; NO_EDGE for none."""
    known = times != NO_INSTANT
    shifted = np.where(known, times + shift * known, NO_INSTANT)
    here, there = (business_days(clocks, calendar=calendar) for clocks in (times, shifted))
    return np.where(here == there, NO_EDGE, np.maximum(here, there))


def _unmapped(breaks: Breaks, _: Evidence, __: BusinessCalendar) -> Found:
    """A status code that the map does not know: the line to paste."""
    for (code,), rows in _alike(breaks, by=["payment_status"], code=BreakCode.STATUS_UNMAPPED):
        yield (
            rows,
            (
                f"The gateway's payment_status {code} is not mapped: "
                f'set {code} = "<state>" under [payment_status] in rules.toml.'
            ),
        )


def _other_account(breaks: Breaks, _: Evidence, __: BusinessCalendar) -> Found:
    """Orders of one account whose payments sit in one other account."""
    groups = _alike(breaks, by=[*ACCOUNT, "stray"], code=BreakCode.WRONG_ACCOUNT)
    for (_merchant, account, stray), rows in groups:
        yield rows, f"The other side of these records of account {account} sits in account {stray}."


def _scale(breaks: Breaks, evidence: Evidence, _: BusinessCalendar) -> Found:
    """Amounts of one file and currency that are all 10, 100 or 1000 times off."""
    if breaks["code"].isin(_OTHER_AMOUNT).sum() < BREAKS_MIN:
        return
    by = ["file", "currency"]
    compared = evidence.amounts.groupby(by)["sets"].sum()
    alike = evidence.amounts.set_index([*by, "off"])["sets"]
    for (file, currency, off), rows in _alike(breaks[breaks["off"].ne(0)], by=[*by, "off"]):
        if alike.get((file, currency, off), 0) >= SHARE_MIN * compared.get((file, currency), 1):
            word = "large" if off > 0 else "small"
            yield rows, f"The amounts of {file} in {currency} are {abs(off)} times too {word}."


def _written_otherwise(breaks: Breaks, _: Evidence, __: BusinessCalendar) -> Found:
    """Order numbers of which one side has something in front or behind that another has not."""
    chosen = breaks[breaks["order_no"].ne("").to_numpy()]
    for _account, rows in chosen.groupby(ACCOUNT):
        left = rows
        for one, other in permutations(("orders", "gateway", "ledger"), 2):
            has, lacks = (left[f"in_{side}"].to_numpy() for side in (one, other))
            longer = {*left["order_no"][has & ~lacks]}
            shorter = {*left["order_no"][lacks & ~has]}
            affix = _affix(longer, shorter)
            pairs = {key: affix.off(key) for key in longer if affix.off(key) in shorter}
            if len(pairs) >= max(BREAKS_MIN, SHARE_MIN * min(len(longer), len(shorter))):
                key = min(pairs)
                paired = left["order_no"].isin({*pairs, *pairs.values()})
                found, left = left.index[paired], left[~paired]
                yield (
                    found,
                    (
                        f"Order numbers of the {one} have {affix.words} that those of the {other} "
                        f'have not ("{key}", "{pairs[key]}"): if they are the same orders, set '
                        "`order_numbers` in the layout of either side's files."
                    ),
                )


class _Affix(NamedTuple):
    """What stands in front of order numbers, or behind them; zeros in front are alike."""

    text: str
    is_in_front: bool

    def off(self, key: str) -> str:
        """The order number without it; "" where it does not stand there, or nothing is left."""
        if self.text == ZERO and self.is_in_front:
            return key.lstrip(ZERO) if key.startswith(ZERO) else ""
        has = key.startswith(self.text) if self.is_in_front else key.endswith(self.text)
        if not self.text or not has:
            return ""
        return key.removeprefix(self.text) if self.is_in_front else key.removesuffix(self.text)

    @property
    def words(self) -> str:
        """What it is, and where it stands."""
        text = "zeros" if self == _Affix(ZERO, is_in_front=True) else f'"{self.text}"'
        return f"{text} {'in front' if self.is_in_front else 'behind'}"


def _affix(longer: AbstractSet[str], shorter: AbstractSet[str]) -> _Affix:
    """What most of the longer numbers, of the first ones, have more than a shorter one."""
    counts: Counter[_Affix] = Counter()
    for key in sorted(longer)[:KEYS_LOOKED_AT_MAX]:
        for cut in range(1, len(key)):
            if key[cut:] in shorter:
                front = key[:cut] if key[:cut].strip(ZERO) else ZERO
                counts[_Affix(front, is_in_front=True)] += 1
            if key[:-cut] in shorter:
                counts[_Affix(key[-cut:], is_in_front=False)] += 1
    nothing = _Affix("", is_in_front=True)
    return max(sorted(counts), key=counts.__getitem__, default=nothing)


def _unknown_file(breaks: Breaks, evidence: Evidence, _: BusinessCalendar) -> Found:
    """A file of which the gateway knows nearly no order: another account or environment."""
    orders = evidence.files.set_index("file")["sets"]
    for (file,), rows in _alike(breaks, by=["file"], code=BreakCode.MISSING_AT_GATEWAY):
        if len(rows) >= SHARE_MIN * orders.get(file, 0):
            yield rows, f"The gateway knows nearly no order of {file}: is it of another account?"


def _doubled_file(breaks: Breaks, _: Evidence, __: BusinessCalendar) -> Found:
    """Two files that hold the same orders with different content."""
    for (pair,), rows in _alike(breaks, by=["files"], code=_TWICE):
        if " and " in pair:
            sentence = f"{pair} hold the same orders with different content: is one a correction?"
            yield rows, sentence


def _missing_day(code: BreakCode, *, source: str, none: str, few: str) -> Finder:
    """A business date of which a source has next to nothing, although the gateway has payments.

    `none` is said where it has nothing at all, `few` where a few strayed into the date.
    """

    def find(breaks: Breaks, evidence: Evidence, _: BusinessCalendar) -> Found:
        by = [*ACCOUNT, "paid_day"]
        days = evidence.days[evidence.days["source"].eq(source)]
        there = days.set_index([*ACCOUNT, "day"])["sets"]
        dated = breaks[breaks["paid_day"].ne(NO_INSTANT)]
        for (merchant, account, day), rows in _alike(dated, by=by, code=code):
            strays = int(there.get((merchant, account, day), 0))
            every = len(rows) + strays
            if len(rows) >= SHARE_MIN * every:
                words = {"day": date.fromordinal(EPOCH + day), "account": account}
                yield rows, (few if strays else none).format(**words, strays=strays, every=every)

    return find


def _alike(
    breaks: Breaks, *, by: list[str], code: BreakCode | None = None
) -> Iterator[tuple[tuple[Any, ...], pd.Index]]:
    """Groups of breaks of one code that are large enough to be one cause; blanks belong to none."""
    chosen = breaks if code is None else breaks[breaks["code"].eq(code)]
    if len(chosen) < BREAKS_MIN:
        return
    known: Any = chosen[by] != ""
    for key, rows in chosen[known.all(axis=1)].groupby(by):
        if len(rows) >= BREAKS_MIN:
            yield key, rows.index


FINDERS: tuple[Finder, ...] = (
    _unmapped,
    _other_account,
    _scale,
    _doubled_file,
    _written_otherwise,
    _zone_shifts,
    _unknown_file,
    _missing_day(
        BreakCode.MISSING_IN_ORDERS,
        source="orders",
        none="No order file has an order of {day} for account {account}: is a file missing?",
        few=(
            "The order files have only {strays} of {every} payments of {day} for account "
            "{account}: is a file missing?"
        ),
    ),
    _missing_day(
        BreakCode.MISSING_IN_LEDGER,
        source="ledger",
        none=(
            "The ledger has no capture of payments of {day} in account {account}: "
            "is a posting run missing?"
        ),
        few=(
            "The ledger has a capture of only {strays} of {every} payments of {day} in account "
            "{account}: is a posting run missing?"
        ),
    ),
)
"""In this order; each break is told its first."""

# What might be the other side of a break, told beside it and never acted on. Two ways to a guess:
# a number that is nearly the same at the same amount, and a few records of one day that sum to
# exactly one other. Neither is evidence: amounts and dates agree by chance, so no guess moves an
# item, and where two guesses are as good as each other none is told.

ITEMS_MAX = 12
"""Of one amount, or of one day, on either side; among more, agreement is chance."""
PARTS_MIN = 2
CHARACTERS_MIN = 4
"""Shorter numbers are near each other by chance."""


class OneSidedLeg(NamedTuple):
    """Breaks that lack the record which others have too many of."""

    lacking: tuple[BreakCode, ...]
    amount: str
    """The column of what they have."""
    beside: tuple[BreakCode, ...]
    amount_beside: str
    word: str
    """What the others hold."""
    word_beside: str


LEGS = (
    OneSidedLeg(
        (BreakCode.MISSING_AT_GATEWAY, BreakCode.BOOKED_NOT_AT_GATEWAY),
        "order_amount",
        (BreakCode.MISSING_IN_ORDERS,),
        "gateway_amount",
        "order",
        "payment",
    ),
    OneSidedLeg(
        (BreakCode.MISSING_IN_LEDGER,),
        "gateway_amount",
        (BreakCode.LEDGER_ONLY,),
        "ledger_amount",
        "payment",
        "entry",
    ),
)


class _Record(NamedTuple):
    name: str
    row: int
    amount: int


def with_suggestions(breaks: Breaks) -> Breaks:
    """The breaks, the reasons of some with a guess behind them; a cause leaves no guess."""
    suggestions: dict[int, str] = {}
    for leg in LEGS:
        lacking = _unexplained(breaks, codes=leg.lacking, amount=leg.amount)
        beside = _unexplained(breaks, codes=leg.beside, amount=leg.amount_beside)
        if not len(lacking) or not len(beside):
            continue
        lacking_side = _side(breaks, rows=lacking, amount=leg.amount)
        other = _side(breaks, rows=beside, amount=leg.amount_beside)
        for guesses in (
            _near_pairs(lacking_side, other, leg=leg),
            _summing(lacking_side, other, leg=leg),
        ):
            for row, sentence in guesses:
                suggestions.setdefault(row, sentence)
    if not suggestions:
        return breaks
    reasons = breaks["reason"].copy()
    for row, sentence in suggestions.items():
        reasons.iloc[row] = f"{reasons.iloc[row]} {sentence}"
    return breaks.assign(reason=reasons)


def _unexplained(breaks: pd.DataFrame, *, codes: Sequence[BreakCode], amount: str) -> Rows:
    """The rows of breaks of some codes that no cause explains."""
    chosen = is_word(breaks["code"], *codes) & given(breaks[amount])
    chosen[chosen] = texts(breaks["cause"])[chosen] == ""
    return np.flatnonzero(chosen)


def _side(breaks: pd.DataFrame, *, rows: Rows, amount: str) -> pd.DataFrame:
    """Breaks as one side of a guess: name, row, worth and place."""
    lacking = breaks.iloc[rows]
    name = lacking["order_no"].where(lacking["order_no"].ne(""), lacking["transaction_id"])
    frame = lacking[[*ACCOUNT_CURRENCY, "began_day"]].assign(name=name, row=rows)
    frame = frame.assign(worth=lacking[amount].astype("int64").abs())
    return frame[frame["name"].ne("")]


def _near_pairs(
    own: pd.DataFrame, other: pd.DataFrame, *, leg: OneSidedLeg
) -> Iterator[tuple[int, str]]:
    """Pairs of one amount whose numbers are nearly the same, each the only one for the other."""
    by = [*ACCOUNT_CURRENCY, "worth"]
    for left, right in _groups(own, other, by=by):
        pairs = [(a, b) for a in left for b in right if _near(a.name, b.name)]
        for a, b in pairs:
            if sum(a == x or b == y for x, y in pairs) == 1:
                sentence = "of the same amount, whose number is nearly the same"
                yield a.row, _guess(f"the {leg.word_beside} of {b.name}, {sentence}")
                yield b.row, _guess(f"the {leg.word} of {a.name}, {sentence}")


def _summing(
    own: pd.DataFrame, other: pd.DataFrame, *, leg: OneSidedLeg
) -> Iterator[tuple[int, str]]:
    """Records of one business date of which exactly one choice sums to one on the other side."""
    for left, right in _groups(own, other, by=[*ACCOUNT_CURRENCY, "began_day"]):
        yield from _sums(left, parts=right, word=leg.word_beside)
        yield from _sums(right, parts=left, word=leg.word)


def _sums(wholes: list[_Record], *, parts: list[_Record], word: str) -> Iterator[tuple[int, str]]:
    choices = _choices(parts) if wholes else {}
    amounts = [whole.amount for whole in wholes]
    for whole in wholes:
        fitting = choices.get(whole.amount, ())
        if len(fitting) == 1 == amounts.count(whole.amount):
            names = ", ".join(part.name for part in fitting[0])
            yield whole.row, _guess(f"{len(fitting[0])} together, the {word} of each of {names}")


def _choices(parts: list[_Record]) -> dict[int, list[tuple[_Record, ...]]]:
    """By their sum, every choice of several of a few records."""
    sums: dict[int, list[tuple[_Record, ...]]] = {}
    for size in range(PARTS_MIN, len(parts) + 1):
        for chosen in combinations(parts, size):
            sums.setdefault(sum(part.amount for part in chosen), []).append(chosen)
    return sums


def _groups(
    own: pd.DataFrame, other: pd.DataFrame, *, by: list[str]
) -> Iterator[tuple[list[_Record], list[_Record]]]:
    """Both sides of every place that few records share, each in the order of its names."""
    left, right = (_items(frame, by=by) for frame in (own, other))
    for group in sorted({*left} & {*right}, key=str):
        if max(len(left[group]), len(right[group])) <= ITEMS_MAX:
            yield left[group], right[group]


def _items(frame: pd.DataFrame, *, by: list[str]) -> Mapping[tuple[object, ...], list[_Record]]:
    records: dict[tuple[object, ...], list[_Record]] = {}
    places = zip(*(frame[name].tolist() for name in by), strict=True)
    cells = zip(frame["name"].tolist(), frame["row"].tolist(), frame["worth"].tolist(), strict=True)
    for group, (name, row, worth) in zip(places, cells, strict=True):
        records.setdefault(group, []).append(_Record(str(name), int(row), int(worth)))
    return {group: sorted(items) for group, items in records.items()}


def _near(own: str, other: str) -> bool:
    """The same letters and digits, or one of them changed, added, lost or swapped with the next."""
    left, right = _plain(own), _plain(other)
    if min(len(left), len(right)) < CHARACTERS_MIN:
        return False
    if len(left) > len(right):
        left, right = right, left
    if len(right) - len(left) > 1:
        return False
    at = next((n for n, pair in enumerate(zip(left, right, strict=False)) if len({*pair}) > 1), -1)
    if at < 0:
        return True
    if len(left) < len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[at : at + 2] == right[at : at + 2][::-1]
    return left[at + 1 :] == right[at + 1 :] or (swapped and left[at + 2 :] == right[at + 2 :])


def _plain(name: str) -> str:
    """Without case, signs and the zeros in front."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).lstrip("0")


def _guess(words: str) -> str:
    return f"A guess to look at: {words}."
