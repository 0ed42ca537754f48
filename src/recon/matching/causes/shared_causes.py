"""Breaks that share one cause, told as one line, so that one look (and one answer) covers them.

A cause is only claimed on evidence that could have spoken against it: a scale needs nearly every
compared amount of the file to be off by the same power of ten, a missing day needs the source to
have next to nothing of that day. What is merely alike is left without a cause.
"""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import date
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.causes.aside_evidence import AsideEvidence
from recon.matching.causes.cause_evidence import (
    BREAKS_MIN,
    SHARE_MIN,
    Breaks,
    CauseEvidence,
    Finder,
    Found,
)
from recon.matching.causes.zone_shift import DATED, counted_pairs, find_zone_shifts
from recon.matching.codes import CODES
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import placed
from recon.matching.frames.grouping import NO_INSTANT
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.judging.grace import MINUTE_MICROSECONDS, business_days
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import NUMBER
from recon.model.words import BreakCode, GatewayState

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
