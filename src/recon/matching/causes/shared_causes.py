"""Breaks that share one cause, told as one line, so that one look (and one answer) covers them.

A cause is only claimed on evidence that could have spoken against it: a scale needs nearly every
compared amount of the file to be off by the same power of ten, a missing day needs the source to
have next to nothing of that day. What is merely alike is left without a cause.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.codes import CODES
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import placed
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.judging.severity import HOUR_MICROSECONDS, MINUTE_MICROSECONDS, business_days
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import NUMBER
from recon.model.words import BreakCode, GatewayState

Account = tuple[str, ...]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The sets of one account that have a time of one source and one of the gateway."""

    pairs: int = 0
    alike: int = 0
    """Those that are hardly apart."""
    by_steps: Ints | None = None
    """How many are so many steps apart (see WIDTH); None: of no set."""
    minutes: Mapping[str, tuple[Ints, Ints]] = field(default_factory=dict)
    """Column of a time -> its minutes since 1970, each once and in order, and how many have it."""


@dataclass(frozen=True, slots=True)
class AsideEvidence:
    """Counts of sets; those of several parts add up."""

    agreeing: Mapping[tuple[str, ...], Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    """Columns of orders and sides (see CauseEvidence.agreeing) -> words -> sets."""
    days: Mapping[str, Mapping[tuple[str, str, int], int]] = field(default_factory=dict)
    """Side -> merchant, account and business date (see CauseEvidence.agreeing_days) -> sets."""
    pairs: Mapping[str, Mapping[Account, PairCounts]] = field(default_factory=dict)
    """Source -> account -> its pairs."""


NO_EVIDENCE = AsideEvidence()


def added_evidence(parts: Iterable[AsideEvidence]) -> AsideEvidence:
    """The evidence of several parts together."""
    agreeing: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
    days: dict[str, Counter[tuple[str, str, int]]] = {}
    pairs: dict[str, dict[Account, list[PairCounts]]] = {}
    for part in parts:
        for asked, by_words in part.agreeing.items():
            agreeing.setdefault(asked, Counter()).update(by_words)
        for side, by_day in part.days.items():
            days.setdefault(side, Counter()).update(by_day)
        for source, by_account in part.pairs.items():
            for account, counts in by_account.items():
                pairs.setdefault(source, {}).setdefault(account, []).append(counts)
    return AsideEvidence(
        agreeing,
        days,
        {
            source: {account: _together(several) for account, several in by_account.items()}
            for source, by_account in pairs.items()
        },
    )


def _together(several: list[PairCounts]) -> PairCounts:
    steps = [counts.by_steps for counts in several if counts.by_steps is not None]
    clocks = {clock for counts in several for clock in counts.minutes}
    return PairCounts(
        sum(counts.pairs for counts in several),
        sum(counts.alike for counts in several),
        np.sum(steps, axis=0) if steps else None,
        {
            clock: _minutes(
                [counts.minutes[clock] for counts in several if clock in counts.minutes]
            )
            for clock in sorted(clocks)
        },
    )


def _minutes(several: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    minutes, times = (np.concatenate(each) for each in zip(*several, strict=True))
    distinct, spots = np.unique(minutes, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, spots, times)
    return distinct, counts


BREAKS_MIN = 3
"""Fewer breaks are looked at one by one."""
SHARE_MIN = 0.8
"""A cause holds for at least this share of what it could have held for."""

Breaks = pd.DataFrame
"""Breaks, each with its set."""
Found = Iterator[tuple[pd.Index, str]]
"""Rows of breaks, and the cause they share."""


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """What a cause may look at."""

    joined: Joined
    sources: Sources
    """What the sets were made of."""
    rules: Rules
    hosts: Rows
    """The set whose break explains a set, else negative."""
    parts: AsideEvidence = NO_EVIDENCE
    """What was judged before, in parts: it is not among the sets, and speaks against a cause."""

    def file_of_sets(self, source: str) -> "pd.Series[str]":
        """The file of the first row of every set that has one (index: set)."""
        frames = {"orders": self.sources.orders, "gateway": self.sources.gateway}
        items = {"orders": self.joined.orders.items, "gateway": self.joined.gateway.items}[source]
        names = frames[source]["source"].to_numpy(dtype=object)[items["row"]]
        files: pd.Series[str] = pd.Series(names, index=items["set"], dtype="str")
        return files[~files.index.duplicated()]


Finder = Callable[[Breaks, CauseEvidence], Found]
"""Looks for one kind of cause among the breaks that have none yet."""


STEP_MICROSECONDS = HOUR_MICROSECONDS // 4
"""Zones differ by hours, halves or quarters (Kathmandu is 5 3/4 hours ahead of UTC); a payment
follows its order, and an entry its payment, within a step."""
SLACK_MICROSECONDS = 2 * MINUTE_MICROSECONDS
"""So far clocks of two systems may be apart."""
NEAR_MICROSECONDS = 2 * STEP_MICROSECONDS
STEP_HOURS = 0.25
STEPS_MIN, STEPS_MAX = 4, 56
"""Less than an hour is a delay; no zone is more than 14 hours away from UTC."""
WIDTH = 2 * STEPS_MAX + 3
"""So many steps are told apart, beyond all zones on either side counted as one."""
NO_EDGE = NO_INSTANT
NO_PAIRS = PairCounts()
NO_MINUTES = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

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


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The sets that have a time of one source and one of the gateway (grain: set)."""

    account: Rows
    """By number, as Keys.accounts counts."""
    times: Mapping[str, Ints]
    """The source's time and the gateway's, by the name of their column."""


@dataclass(frozen=True, slots=True)
class _Every:
    """Those that are judged here, and those of parts, which are counted already."""

    pairs: _Pairs
    accounts: Sequence[Account]
    """By number."""
    parts: Mapping[Account, PairCounts]

    def of_parts(self, account: Account) -> PairCounts:
        """What parts counted of one account."""
        return self.parts.get(account, NO_PAIRS)


def find_zone_shifts(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Records around the end of a business date that one shift of a source keeps apart."""
    alone = breaks["code"].isin([code for codes in ALONE.values() for code in codes])
    if alone.sum() < BREAKS_MIN:
        return
    accounts = [*map(tuple, evidence.joined.numbers.accounts)]
    pairs = {
        source: _Every(
            _pairs(source, joined=evidence.joined), accounts, evidence.parts.pairs.get(source, {})
        )
        for source in DATED
    }
    shifts = {source: _common_shifts(pair) for source, pair in pairs.items()}
    for account_key in sorted({*shifts["orders"], *shifts["ledger"]}):
        inside = alone & breaks[ACCOUNT].eq(list(account_key)).all(axis=1)
        of_account = {
            source: known[account_key] for source, known in shifts.items() if account_key in known
        }
        rows_of = {
            source: _kept_apart(
                breaks[inside], source=source, steps=steps, pairs=pairs[source], evidence=evidence
            )
            for source, steps in of_account.items()
        }
        yield from _told(rows_of, shifts=of_account, account=account_key[1])


def _told(rows_of: Mapping[str, pd.Index], *, shifts: Mapping[str, int], account: str) -> Found:
    """One sentence where orders and ledger agree against the gateway, else one for each."""
    if len(shifts) == len(DATED) and len({*shifts.values()}) == 1:
        steps = -next(iter(shifts.values()))
        rows = rows_of["orders"].append(rows_of["ledger"])
        parts = [("gateway", rows, steps, "of the orders and the ledger")]
    else:
        parts = [(source, rows_of[source], shifts[source], "of the gateway") for source in shifts]
    for source, rows, steps, others in parts:
        if len(rows) >= BREAKS_MIN:
            yield rows, _sentence(source, steps=steps, others=others, account=account)


def _sentence(source: str, *, steps: int, others: str, account: str) -> str:
    hours = f"{abs(steps) * STEP_HOURS:g} hour{'' if abs(steps) == STEPS_MIN else 's'}"
    word = "ahead of" if steps > 0 else "behind"
    return (
        f"The times of the {source} in account {account} are {hours} {word} those {others}, which "
        "moves records at the end of a business date to another one: is its time zone right?"
    )


def counted_pairs(source: str, *, joined: Joined) -> dict[Account, PairCounts]:
    """The pairs of a source, counted by account: all that is ever asked of them."""
    pairs, accounts = _pairs(source, joined=joined), joined.numbers.accounts
    size = len(accounts)
    sums, alike = np.bincount(pairs.account, minlength=size), _alike(pairs, size=size)
    steps = _by_steps(pairs, size=size).reshape(size, WIDTH)
    return {
        tuple(account): PairCounts(
            int(sums[number]),
            int(alike[number]),
            steps[number],
            {
                clock: np.unique(
                    times[pairs.account == number] // MINUTE_MICROSECONDS, return_counts=True
                )
                for clock, times in pairs.times.items()
            },
        )
        for number, account in enumerate(accounts)
        if sums[number]
    }


def _pairs(source: str, *, joined: Joined) -> _Pairs:
    """The sets whose times are both known."""
    sets = joined.sets
    times = {name: sets[name] for name in (DATED[source], PAID_AT)}
    known: Bools = sets["account"] >= 0
    for at in times.values():
        known &= at != NO_INSTANT
    return _Pairs(sets["account"][known], {name: at[known] for name, at in times.items()})


def _common_shifts(every: _Every) -> dict[Account, int]:
    """By account, how many steps nearly all times of the source are ahead of the gateway's."""
    size = len(every.accounts)
    before = [every.of_parts(account) for account in every.accounts]
    sums = np.bincount(every.pairs.account, minlength=size) + np.array(
        [counts.pairs for counts in before], np.intp
    )
    alike = _alike(every.pairs, size=size) + np.array([counts.alike for counts in before], np.intp)
    if ((alike > (1 - SHARE_MIN) * sums) | (sums == 0)).all():
        return {}
    steps = _by_steps(every.pairs, size=size).reshape(size, WIDTH)
    for number, counts in enumerate(before):
        if counts.by_steps is not None:
            steps[number] += counts.by_steps
    return {
        every.accounts[account]: spot - STEPS_MAX - 1
        for account, spot in np.argwhere(steps).tolist()
        if STEPS_MIN <= abs(spot - STEPS_MAX - 1) <= STEPS_MAX
        and steps[account, spot] >= max(BREAKS_MIN, SHARE_MIN * sums[account])
    }


def _alike(pairs: _Pairs, *, size: int) -> Rows:
    """By account, the pairs that are hardly apart: a few of them rule a shift out."""
    left, other = pairs.times.values()
    near = np.abs(left - other) < NEAR_MICROSECONDS
    return np.bincount(pairs.account[near], minlength=size)


def _by_steps(pairs: _Pairs, *, size: int) -> Rows:
    """How many pairs are so many steps apart, by account and steps."""
    (clock, ours), (_, paid) = pairs.times.items()
    # What came second is a little later than the shift alone would have it.
    if clock == DATED["orders"]:
        steps = -((paid - ours + SLACK_MICROSECONDS) // STEP_MICROSECONDS)
    else:
        steps = (ours - paid + SLACK_MICROSECONDS) // STEP_MICROSECONDS
    spots = np.clip(steps, -STEPS_MAX - 1, STEPS_MAX + 1).astype(np.intp) + STEPS_MAX + 1
    return np.bincount(pairs.account * WIDTH + spots, minlength=size * WIDTH)


def _kept_apart(
    breaks: Breaks, *, source: str, steps: int, pairs: _Every, evidence: CauseEvidence
) -> pd.Index:
    """The breaks of one account that the shift of this source explains."""
    rows: list[pd.Index] = [
        edge
        for code, clock in ALONE[source].items()
        for edge in _at_bare_edges(
            breaks[breaks["code"].eq(code)],
            clock=clock,
            shift=(steps if clock == PAID_AT else -steps) * STEP_MICROSECONDS,
            pairs=pairs,
            evidence=evidence,
        )
    ]
    return rows[0].append(rows[1:]) if rows else breaks.index[:0]


def _at_bare_edges(
    breaks: Breaks, *, clock: str, shift: int, pairs: _Every, evidence: CauseEvidence
) -> Iterator[pd.Index]:
    """By end of a business date, breaks beside which nearly no record has its other side."""
    if breaks.empty:
        return
    times = evidence.joined.sets[clock][breaks["set"].to_numpy()]
    edges = _edges(times, shift=shift, evidence=evidence)
    account: Account = tuple(breaks[ACCOUNT].iloc[0])
    number = pairs.accounts.index(account)
    beside = pairs.pairs.times[clock][pairs.pairs.account == number]
    whole = _edges(beside, shift=shift, evidence=evidence)
    minutes, counts = pairs.of_parts(account).minutes.get(clock, NO_MINUTES)
    of_parts = _edges(minutes * MINUTE_MICROSECONDS, shift=shift, evidence=evidence)
    for edge in np.unique(edges[edges != NO_EDGE]):
        apart: Bools = edges == edge
        others = (whole == edge).sum() + counts[of_parts == edge].sum()
        if apart.sum() >= SHARE_MIN * (apart.sum() + others):
            yield breaks.index[apart]


def _edges(times: Ints, *, shift: int, evidence: CauseEvidence) -> Ints:
    """The business date that begins between each time and the shifted one; NO_EDGE for none."""
    calendar = evidence.rules.business_calendar
    known = times != NO_INSTANT
    shifted = np.where(known, times + shift * known, NO_INSTANT)
    here, there = (business_days(clocks, calendar=calendar) for clocks in (times, shifted))
    return np.where(here == there, NO_EDGE, np.maximum(here, there))


SCALES = (10, 100, 1000)
"""Powers of ten by which a wrong unit shifts an amount."""

BY_CURRENCY, BY_FILE = ("source", "currency"), ("source",)
BOTH_CAPTURED, ORDERED = ("order_captured", "gateway_captured"), ("order_captured",)
"""By what sets are counted that speak against a cause, and what they must have."""
DATED_BY = WITH_ORDER, WITH_CAPTURE = "order_state", "ledger_capture"
"""Sides by which they are counted day by day."""
ZERO = "0"
KEYS_LOOKED_AT_MAX = 1_000
"""So many order numbers say what may stand before or behind them; all are then held to it."""
EPOCH = date(1970, 1, 1).toordinal()
_OTHER_AMOUNT = frozenset(code for code, row in CODES.items() if row.other_amount)


def with_causes(breaks: pd.DataFrame, *, evidence: CauseEvidence) -> pd.DataFrame:
    """The breaks with `cause` filled where several share one; the first that holds is told."""
    if len(breaks) < BREAKS_MIN:
        return breaks
    causes = pd.Series("", index=breaks.index, dtype="str")
    for find in FINDERS:
        for rows, sentence in find(breaks[causes.eq("").to_numpy()], evidence):
            causes.loc[rows] = sentence
    return breaks.assign(cause=causes)


def evidence_of(joined: Joined, *, sources: Sources, rules: Rules) -> AsideEvidence:
    """All that any finder asks of sets without a break, for breaks that are told of elsewhere."""
    asked = ((BY_CURRENCY, BOTH_CAPTURED), (BY_FILE, ORDERED))
    return AsideEvidence(
        {
            (*by, *sides): _agreeing(joined, orders=sources.orders, by=by, sides=sides)
            for by, sides in asked
        },
        {side: _agreeing_days(joined, side=side, rules=rules) for side in DATED_BY},
        {source: counted_pairs(source, joined=joined) for source in DATED},
    )


def _agreeing(
    joined: Joined, *, orders: pd.DataFrame, by: tuple[str, ...], sides: tuple[str, ...]
) -> dict[tuple[str, ...], int]:
    """How many orders of each combination of columns have an amount on each of these sides."""
    numbers, places = placed(orders, by=by)
    items = joined.orders.items
    moved = np.logical_and.reduce([joined.sets[name] > 0 for name in sides])
    rows = items["row"][moved[items["set"]]]
    counts = np.bincount(numbers[rows], minlength=len(places))
    return dict(zip(places, counts.tolist(), strict=True))


def _agreeing_days(joined: Joined, *, side: str, rules: Rules) -> dict[tuple[str, str, int], int]:
    """How many sets that are not without this side were paid on each account and business date."""
    sets, accounts = joined.sets, joined.numbers.accounts
    known = (sets[side] != 0) & (sets["transaction_date"] != NO_INSTANT)
    minutes = sets["transaction_date"][known] // MINUTE_MICROSECONDS
    distinct, counts = np.unique(
        minutes * max(len(accounts), 1) + sets["account"][known], return_counts=True
    )
    minute, number = np.divmod(distinct, max(len(accounts), 1))
    days = business_days(minute * MINUTE_MICROSECONDS, calendar=rules.business_calendar)
    sums: Counter[tuple[str, str, int]] = Counter()
    for at, day, count in zip(number.tolist(), days.tolist(), counts.tolist(), strict=True):
        merchant, account = accounts[at]
        sums[merchant, account, day] += count
    return dict(sums)


def _unmapped(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """A status code that the map does not know: the line to paste."""
    chosen = breaks[breaks["code"].eq(BreakCode.STATUS_UNMAPPED)]
    if len(chosen) < BREAKS_MIN:
        return
    items = evidence.joined.gateway.items
    unknown = items.take(items["state"] == NUMBER[GatewayState.UNMAPPED.value])
    codes = texts(evidence.sources.gateway["payment_status"])
    of_set = pd.Series(codes[unknown["row"]], index=unknown["set"])
    of_set = of_set[~of_set.index.duplicated()]
    for code, rows in _grouped(chosen, by=chosen["set"].map(of_set)):
        yield (
            rows.index,
            (
                f"The gateway's payment_status {code} is not mapped: "
                f'set {code} = "<state>" under [payment_status] in rules.toml.'
            ),
        )


def _other_account(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Orders of one account whose payments sit in one other account."""
    chosen = breaks[breaks["code"].eq(BreakCode.WRONG_ACCOUNT)]
    if len(chosen) < BREAKS_MIN:
        return
    sets = evidence.joined.sets
    away = np.flatnonzero(evidence.hosts >= 0)
    # A host stands for one set: that one's account, never just any with the same order number.
    other = pd.Series(sets["account_id"][away], index=evidence.hosts[away])
    told_of = chosen.assign(other=chosen["set"].map(other))
    for (_, account, stray), rows in told_of.groupby([*ACCOUNT, "other"]):
        if len(rows) >= BREAKS_MIN:
            sentence = (
                f"The other side of these records of account {account} sits in account {stray}."
            )
            yield rows.index, sentence


def _scale(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Amounts of one file and currency that are all 10, 100 or 1000 times off."""
    if breaks["code"].isin(_OTHER_AMOUNT).sum() < BREAKS_MIN:
        return
    sets = evidence.joined.sets
    both = np.flatnonzero((sets["order_captured"] > 0) & (sets["gateway_captured"] > 0))
    files = evidence.file_of_sets("orders").reindex(both)
    names = ("currency", "order_captured", "gateway_captured")
    columns = {"file": files.to_numpy(dtype=object), **{name: sets[name][both] for name in names}}
    compared = pd.DataFrame(columns, index=both)
    agreeing = evidence.parts.agreeing.get((*BY_CURRENCY, *BOTH_CAPTURED), {})
    for (file, currency), rows in compared.groupby(["file", "currency"]):
        ordered = rows["order_captured"].to_numpy()
        paid = rows["gateway_captured"].to_numpy()
        all_rows = len(rows) + int(agreeing.get((str(file), str(currency)), 0))
        for scale in SCALES:
            for word, off in (
                ("large", ordered == paid * scale),
                ("small", ordered * scale == paid),
            ):
                inside = breaks[breaks["set"].isin(rows.index[off]).to_numpy()]
                if len(inside) >= BREAKS_MIN and off.sum() >= SHARE_MIN * all_rows:
                    sentence = f"The amounts of {file} in {currency} are {scale} times too {word}."
                    yield inside.index, sentence


def _written_otherwise(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Order numbers of which one side has something in front or behind that another has not."""
    sets = evidence.joined.sets
    state = sets["gateway_state"]
    there = {
        "orders": sets["order_state"] != 0,
        "gateway": (state != NUMBER["none"]) & (state != NUMBER["unverified"]),
        "ledger": sets["ledger_present"],
    }
    chosen = breaks[breaks["order_no"].ne("").to_numpy()]
    for _, rows in chosen.groupby(ACCOUNT):
        left = rows
        for one, other in permutations(there, 2):
            has, lacks = (there[side][left["set"].to_numpy()] for side in (one, other))
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


def _unknown_file(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """A file of which the gateway knows nearly no order: another account or environment."""
    chosen = breaks[breaks["code"].eq(BreakCode.MISSING_AT_GATEWAY)]
    if len(chosen) < BREAKS_MIN:
        return
    files = evidence.file_of_sets("orders")
    due = evidence.joined.sets["order_captured"][files.index.to_numpy(dtype=np.intp)] > 0
    known = files[due].value_counts()
    agreeing = evidence.parts.agreeing.get((*BY_FILE, *ORDERED), {})
    for file, rows in _grouped(chosen, by=chosen["set"].map(files)):
        if len(rows) >= SHARE_MIN * (known.get(file, 0) + agreeing.get((str(file),), 0)):
            sentence = f"The gateway knows nearly no order of {file}: is it of another account?"
            yield rows.index, sentence


def _doubled_file(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Two files that hold the same orders with different content."""
    chosen = breaks[breaks["code"].eq(BreakCode.DUPLICATE_ORDER_ROW)]
    if len(chosen) < BREAKS_MIN:
        return
    items = evidence.joined.orders.items
    items = items.take(np.isin(items["set"], chosen["set"].to_numpy()))
    names = texts(evidence.sources.orders["source"])[items["row"]]
    files = pd.Series(names, index=items["set"])
    both = files.groupby(level=0).agg(lambda group: " and ".join(sorted(set(group))))
    both = both[both.str.contains(" and ")]
    for pair, rows in _grouped(chosen, by=chosen["set"].map(both)):
        sentence = f"{pair} hold the same orders with different content: is one a correction?"
        yield rows.index, sentence


def _missing_day(
    code: BreakCode, *, lacking: str, dated: str, few_words: str, few: str
) -> "Finder":
    """A business date of which a source has next to nothing, although the gateway has payments.

    `few_words` is said where it has nothing at all, `few` where a few strayed into the date.
    """

    def find(breaks: Breaks, evidence: CauseEvidence) -> Found:
        chosen = breaks[breaks["code"].eq(code)]
        if len(chosen) < BREAKS_MIN:
            return
        sets, calendar = evidence.joined.sets, evidence.rules.business_calendar
        days = business_days(sets[dated], calendar=calendar)
        account_days = pd.Series(
            list(zip(*(sets[name].tolist() for name in ACCOUNT), days.tolist(), strict=True))
        )
        present = Counter(account_days[sets[lacking] != 0])
        present.update(evidence.parts.days.get(lacking, {}))
        for key, rows in _grouped(chosen, by=chosen["set"].map(account_days)):
            _, account, day = account_days[rows["set"].iloc[0]]
            strays = present[key]
            every = len(rows) + strays
            if day != NO_INSTANT and len(rows) >= SHARE_MIN * every:
                words = {"day": date.fromordinal(EPOCH + day), "account": account}
                phrase = few if strays else few_words
                yield rows.index, phrase.format(**words, strays=strays, every=every)

    return find


def _grouped(breaks: Breaks, *, by: "pd.Series[str]") -> Iterator[tuple[object, Breaks]]:
    """Groups that are large enough to be one cause; blank keys belong to none."""
    known = (by.notna() & by.ne("")).to_numpy()
    for key, rows in breaks[known].groupby(by[known]):
        if len(rows) >= BREAKS_MIN:
            yield key, rows


FINDERS: tuple[Finder, ...] = (
    _unmapped,
    _other_account,
    _scale,
    _doubled_file,
    _written_otherwise,
    find_zone_shifts,
    _unknown_file,
    _missing_day(
        BreakCode.MISSING_IN_ORDERS,
        lacking=WITH_ORDER,
        dated="transaction_date",
        few_words="No order file has an order of {day} for account {account}: is a file missing?",
        few=(
            "The order files have only {strays} of {every} payments of {day} for account "
            "{account}: is a file missing?"
        ),
    ),
    _missing_day(
        BreakCode.MISSING_IN_LEDGER,
        lacking=WITH_CAPTURE,
        dated="transaction_date",
        few_words=(
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
