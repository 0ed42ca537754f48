"""Breaks that share one cause, told as one line, so that one look (and one answer) covers them.

A cause is only claimed on evidence that could have spoken against it: a scale needs nearly every
compared amount of the file to be off by the same power of ten, a missing day needs the source to
have nothing of that day. What is merely alike is left without a cause.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from recon.matching.gateway_side import NUMBER
from recon.matching.grace import business_days
from recon.matching.grouping import NO_INSTANT, Ints
from recon.matching.joined_sets import Joined
from recon.matching.sources import Sources
from recon.model import BreakCode, GatewayState
from recon.rules import Rules

BREAKS_MIN = 3
"""Fewer breaks are looked at one by one."""
SHARE_MIN = 0.8
"""A cause holds for at least this share of what it could have held for."""
SCALES = (10, 100, 1000)
"""Powers of ten by which a wrong unit shifts an amount."""

DAYS_MAX = 10_000_000
"""More days than any calendar has; keeps account and day apart in one number."""
EPOCH = date(1970, 1, 1).toordinal()
AMOUNT_CODES = frozenset(
    {
        BreakCode.AMOUNT_OVER,
        BreakCode.AMOUNT_UNDER,
        BreakCode.OVER_CAPTURE,
        BreakCode.PARTIAL_CAPTURE_UNEXPECTED,
    }
)

Rows = pd.DataFrame
"""Breaks, each with its set, and the sources its order and its payment came from."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a cause may look at."""

    joined: Joined
    sources: Sources
    rules: Rules

    def file_of_sets(self, source: str) -> "pd.Series[str]":
        """The file of the first row of every set that has one (index: set)."""
        frames = {"orders": self.sources.orders, "gateway": self.sources.gateway}
        items = {"orders": self.joined.orders.items, "gateway": self.joined.gateway.items}[source]
        names = frames[source]["source"].to_numpy(dtype=object)[items["row"].to_numpy()]
        files: pd.Series[str] = pd.Series(names, index=items["set"].to_numpy(), dtype="str")
        return files[~files.index.duplicated()]


def with_causes(
    breaks: pd.DataFrame, *, joined: Joined, sources: Sources, rules: Rules
) -> pd.DataFrame:
    """The breaks with `cause` filled where several share one; the first that holds is told."""
    if len(breaks) < BREAKS_MIN:
        return breaks
    evidence = Evidence(joined, sources, rules)
    causes = pd.Series("", index=breaks.index, dtype="str")
    for find in FINDERS:
        for rows, sentence in find(breaks[causes.eq("").to_numpy()], evidence):
            causes.loc[rows] = sentence
    return breaks.assign(cause=causes)


Found = Iterator[tuple[pd.Index, str]]


def _unmapped(breaks: Rows, evidence: Evidence) -> Found:
    """A status code that the map does not know: the line to paste."""
    chosen = breaks[breaks["code"].eq(BreakCode.STATUS_UNMAPPED)]
    items = evidence.joined.gateway.items
    unknown = items[items["state"].eq(NUMBER[GatewayState.UNMAPPED.value])]
    codes = evidence.sources.gateway["payment_status"].to_numpy(dtype=object)
    of_set = pd.Series(codes[unknown["row"].to_numpy()], index=unknown["set"].to_numpy())
    of_set = of_set[~of_set.index.duplicated()]
    for code, rows in _grouped(chosen, by=chosen["set"].map(of_set)):
        yield (
            rows.index,
            (
                f"The gateway's payment_status {code} is not mapped: "
                f'set {code} = "<state>" under [payment_status] in rules.toml.'
            ),
        )


def _other_account(breaks: Rows, evidence: Evidence) -> Found:
    """Orders of one account whose payments sit in one other account."""
    chosen = breaks[breaks["code"].eq(BreakCode.WRONG_ACCOUNT)]
    effects = evidence.joined.sets
    hosts = pd.Series(effects["account_id"].to_numpy(), index=effects.index)
    partner = _partners(chosen, sets=effects)
    pairs = chosen["set"].map(hosts) + " / " + partner
    for pair, rows in _grouped(chosen, by=pairs):
        own, other = str(pair).split(" / ")
        told = f"The other side of these records of account {own} sits in account {other}."
        yield rows.index, told


def _partners(chosen: Rows, *, sets: pd.DataFrame) -> "pd.Series[str]":
    """The account of the same order number in the same merchant's other account."""
    keyed = sets[sets["order_no"].isin(chosen["order_no"])]
    keyed = keyed[["merchant_id", "order_no", "account_id"]].rename(columns={"account_id": "other"})
    left = chosen[["merchant_id", "order_no", "account_id"]].assign(position=chosen.index)
    joined = left.merge(keyed, on=["merchant_id", "order_no"])
    joined = joined[joined["account_id"].ne(joined["other"])].drop_duplicates("position")
    found = joined.set_index("position")["other"].reindex(chosen.index)
    return found.fillna("").astype("str")


def _scale(breaks: Rows, evidence: Evidence) -> Found:
    """Amounts of one file and currency that are all 10, 100 or 1000 times off."""
    if breaks["code"].isin(AMOUNT_CODES).sum() < BREAKS_MIN:
        return
    sets = evidence.joined.sets
    both = sets[sets["order_captured"].gt(0) & sets["gateway_captured"].gt(0)]
    files = evidence.file_of_sets("orders").reindex(both.index)
    compared = both.assign(file=files.to_numpy(dtype=object))
    for (file, currency), rows in compared.groupby(["file", "currency"]):
        ordered = rows["order_captured"].to_numpy()
        paid = rows["gateway_captured"].to_numpy()
        for scale in SCALES:
            for word, off in (
                ("large", ordered == paid * scale),
                ("small", ordered * scale == paid),
            ):
                inside = breaks[breaks["set"].isin(rows.index[off]).to_numpy()]
                if len(inside) >= BREAKS_MIN and off.sum() >= SHARE_MIN * len(rows):
                    told = f"The amounts of {file} in {currency} are {scale} times too {word}."
                    yield inside.index, told


def _unknown_file(breaks: Rows, evidence: Evidence) -> Found:
    """A file of which the gateway knows nearly no order: another account or environment."""
    chosen = breaks[breaks["code"].eq(BreakCode.MISSING_AT_GATEWAY)]
    if len(chosen) < BREAKS_MIN:
        return
    files = evidence.file_of_sets("orders")
    wanted = evidence.joined.sets.loc[files.index]
    due = wanted["order_captured"].gt(0).to_numpy()
    sizes = files[due].value_counts()
    for file, rows in _grouped(chosen, by=chosen["set"].map(files)):
        if len(rows) >= SHARE_MIN * int(sizes.get(file, 0)):
            told = f"The gateway knows nearly no order of {file}: is it of another account?"
            yield rows.index, told


def _doubled_file(breaks: Rows, evidence: Evidence) -> Found:
    """Two files that hold the same orders with different content."""
    chosen = breaks[breaks["code"].eq(BreakCode.DUPLICATE_ORDER_ROW)]
    items = evidence.joined.orders.items
    items = items[items["set"].isin(chosen["set"])]
    names = evidence.sources.orders["source"].to_numpy(dtype=object)[items["row"].to_numpy()]
    files = pd.Series(names, index=items["set"].to_numpy())
    both = files.groupby(level=0).agg(lambda group: " and ".join(sorted(set(group))))
    both = both[both.str.contains(" and ")]
    for pair, rows in _grouped(chosen, by=chosen["set"].map(both)):
        told = f"{pair} hold the same orders with different content: is one a correction?"
        yield rows.index, told


def _missing_day(code: BreakCode, *, lacking: str, dated: str, told: str) -> "Finder":
    """A business date of which a source has nothing, although the gateway has payments."""

    def find(breaks: Rows, evidence: Evidence) -> Found:
        chosen = breaks[breaks["code"].eq(code)]
        if len(chosen) < BREAKS_MIN:
            return
        sets, calendar = evidence.joined.sets, evidence.rules.business_calendar
        days = business_days(sets[dated].to_numpy(dtype=np.int64), calendar=calendar)
        place = pd.Series(_places(sets, days=days), index=sets.index)
        present = set(place[sets[lacking].ne(0).to_numpy()].unique())
        for key, rows in _grouped(chosen, by=chosen["set"].map(place)):
            day = int(days[rows["set"].iloc[0]])
            if key not in present and day != NO_INSTANT:
                yield rows.index, told.format(day=date.fromordinal(EPOCH + day))

    return find


def _places(sets: pd.DataFrame, *, days: Ints) -> Ints:
    """A number for each account and day."""
    accounts = pd.factorize(sets["account_id"])[0] + 1
    return np.asarray(pd.factorize(accounts * DAYS_MAX + days)[0] + 1, dtype=np.int64)


def _grouped(breaks: Rows, *, by: "pd.Series[str]") -> Iterator[tuple[object, Rows]]:
    """Groups that are large enough to be one cause; blank keys belong to none."""
    known = (by.notna() & by.ne("")).to_numpy()
    for key, rows in breaks[known].groupby(by[known]):
        if len(rows) >= BREAKS_MIN:
            yield key, rows


Finder = Callable[[Rows, Evidence], Found]
FINDERS: tuple[Finder, ...] = (
    _unmapped,
    _other_account,
    _scale,
    _doubled_file,
    _unknown_file,
    _missing_day(
        BreakCode.MISSING_IN_ORDERS,
        lacking="order_state",
        dated="transaction_date",
        told="No order file has an order of {day}: is a file missing?",
    ),
    _missing_day(
        BreakCode.MISSING_IN_LEDGER,
        lacking="ledger_capture",
        dated="transaction_date",
        told="The ledger has no capture of payments of {day}: is a posting run missing?",
    ),
)
"""In this order; each break is told its first."""
