"""Finds causes that several breaks share, so that one line and one answer cover them all.

codes.toml lists the causes. A cause needs evidence that could have contradicted it: a scale needs
nearly every compared amount of the file to be off by the same power of ten, a missing day needs the
source to have next to nothing of that day. Breaks that are merely alike get no cause.

For many orders each bucket adds the facts that causes need to its breaks, and counts its sets;
causes are then found once, among the breaks of all buckets and against the counts of all. The same
holds for guesses at the other side of a break that has none.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.classifying.grace import (
    HOUR_MICROSECONDS,
    MINUTE_MICROSECONDS,
    business_days,
)
from recon.matching.classifying.outcomes import Outcomes
from recon.matching.codes import TABLE, Cause
from recon.matching.frames.arrays import Arrays, Column, filled, text_column, texts
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_KEY
from recon.matching.sets.joined_sets import Joined, event_instants
from recon.matching.sides.gateway_side import NUMBER
from recon.model.business_date import BusinessCalendar, day_text
from recon.model.terms import BreakCode, GatewayState

ALIKE_MIN = 2
"""One break alone has neither a cause to share nor another side to guess at."""
SCALES = (10, 100, 1000)
"""Powers of ten by which a wrong unit shifts an amount."""

STEP_MICROSECONDS = HOUR_MICROSECONDS // 4
"""Zones differ by hours, halves or quarters (Kathmandu is 5 3/4 hours ahead of UTC); a payment
follows its order, and an entry its payment, within a step."""
SLACK_MICROSECONDS = 2 * MINUTE_MICROSECONDS
"""Maximum difference between the clocks of two systems."""
STEP_HOURS = 0.25
STEPS_MIN, STEPS_MAX = 4, 56
"""Less than an hour is a delay; no zone is more than 14 hours away from UTC."""
PAIRS_MIN, PAIRS_SHARE_MIN = 3, 0.8
"""Minimum number of sets, and their share of all with both times, that one shift must explain."""

PAID_AT = "transaction_date"
DATED = {"orders": "ordered_at", "ledger": "booked_at"}
"""The time of each source that is compared with the gateway's."""
ALONE: Mapping[str, tuple[str, str]] = {
    BreakCode.MISSING_IN_ORDERS.value: ("orders", PAID_AT),
    BreakCode.MISSING_AT_GATEWAY.value: ("orders", DATED["orders"]),
    BreakCode.BOOKED_NOT_AT_GATEWAY.value: ("orders", DATED["orders"]),
    BreakCode.MISSING_IN_LEDGER.value: ("ledger", PAID_AT),
    BreakCode.LEDGER_ONLY.value: ("ledger", DATED["ledger"]),
}
"""Codes of a record whose other side is missing: the source, and the time of the record."""
SIDES = {"orders": "order_state", "ledger": "ledger_capture"}
"""Column that shows whether a set has a record of the source."""

Breaks = pd.DataFrame
"""Breaks, each with the facts of its set (see `with_facts`)."""
Evidence = Mapping[str, pd.DataFrame]
"""Counts of sets (column `sets`), with and without a break; counts of several buckets add up.
`amounts`: account, file and currency, of sets with an amount on either side; `files`: account and
file, of orders with an amount (a file is that of the set's first order); `orders_days` and
`ledger_days`: account and paid_day of sets with a record of the source; `pairs`: account, source
and by how many steps its time is ahead of the gateway's; `times`: account, source, clock and step
since 1970: both times of `pairs`."""


def evidence_of(joined: Joined, *, sources: Sources, calendar: BusinessCalendar) -> Evidence:
    """Count the sets, with or without a break, that causes are checked against."""
    sets, file = joined.sets, _files(joined, sources=sources)
    ordered, paid = sets["order_captured"] > 0, sets[PAID_AT]
    day = business_days(paid, calendar=calendar)
    both = ordered & (sets["gateway_captured"] > 0)
    tables = {
        "amounts": _counted(joined, rows=both, file=file, currency=sets["currency"]),
        "files": _counted(joined, rows=ordered, file=file),
    }
    pairs, times = [], []
    for source, clock in DATED.items():
        known = (sets[SIDES[source]] != 0) & (paid != NO_INSTANT)
        days = _counted(joined, rows=known, paid_day=day)
        tables[f"{source}_days"] = days.assign(paid_day=_dates(days["paid_day"].to_numpy()))
        known = (sets[clock] != NO_INSTANT) & (paid != NO_INSTANT)
        steps = _steps(source, ours=sets[clock], paid=paid)
        pairs.append(_counted(joined, rows=known, steps=steps).assign(source=source))
        for name in (clock, PAID_AT):
            counts = _counted(joined, rows=known, step=sets[name] // STEP_MICROSECONDS)
            times.append(counts.assign(source=source, clock=name))
    pairs_and_times = {"pairs": pairs, "times": times}
    return tables | {name: pd.concat(pieces) for name, pieces in pairs_and_times.items()}


def added_evidence(pieces: Sequence[Evidence]) -> Evidence:
    """Add up the evidence of several buckets."""
    if len(pieces) == 1:
        return pieces[0]
    added = {}
    for name in pieces[0]:
        whole = pd.concat([part[name] for part in pieces], ignore_index=True)
        by = [*whole.columns.drop("sets")]
        added[name] = whole.groupby(by)["sets"].sum().reset_index()
    return added


def _counted(joined: Joined, *, rows: Bools, **columns: Any) -> pd.DataFrame:
    """Count the marked sets by account and the given columns."""
    cells = {**{name: joined.sets[name] for name in ACCOUNT}, **columns}
    table = Arrays(cells, size=len(rows)).take(rows).frame(*cells)
    return table.groupby([*cells], sort=False).size().rename("sets").reset_index()


def _files(joined: Joined, *, sources: Sources) -> Column:
    """Return the file of the first order of every set; "" for a set without one."""
    items = joined.orders.items
    files = filled("", size=len(joined.sets))
    files[items["set"][::-1]] = texts(sources.orders["source"])[items["row"]][::-1]
    return files


def _off(joined: Joined) -> Column:
    """Return as text by which of SCALES an order is larger or smaller than its payment."""
    ordered, paid = (joined.sets[name] for name in ("order_captured", "gateway_captured"))
    off = filled("", size=len(joined.sets))
    for scale in SCALES:
        off[(ordered == paid * scale) & (paid > 0)] = f"{scale} times too large"
        off[(ordered * scale == paid) & (paid > 0)] = f"{scale} times too small"
    return off


def _dates(days: Ints) -> Column:
    """Return ISO dates for days since 1970."""
    dates: Column = np.where(days == NO_INSTANT, 0, days).astype("datetime64[D]").astype(str)
    return np.where(days == NO_INSTANT, "", dates).astype(object)


def _steps(source: str, *, ours: Ints, paid: Ints) -> Ints:
    """Return by how many steps a time is ahead of the gateway's, capped just beyond all zones."""
    # The later event is a little later than the shift alone would make it.
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
    """Return the breaks with the facts of their sets that causes need, without the set's number."""
    sets, numbers = joined.sets, breaks["set"].to_numpy()
    away = np.flatnonzero(outcomes.primary >= 0)
    # A primary set represents one set: use that one's account, not any with the same order number.
    strays = zip(outcomes.primary[away].tolist(), sets["account_id"][away], strict=True)
    gateway, orders = joined.gateway.items, joined.orders.items
    unknown = gateway.take(gateway["state"] == NUMBER[GatewayState.UNMAPPED.value])
    codes = texts(sources.gateway["payment_status"])[unknown["row"]]
    twice = breaks["code"].eq(BreakCode.DUPLICATE_ORDER_ROW).to_numpy()
    several = orders.take(np.isin(orders["set"], numbers[twice]))
    files: dict[int, set[str]] = {}
    names = texts(sources.orders["source"])[several["row"]]
    for number, name in zip(several["set"].tolist(), names.tolist(), strict=True):
        files.setdefault(number, set()).add(name)
    of_sets: dict[str, Mapping[int, str]] = {
        "files": {at: " and ".join(sorted(two)) for at, two in files.items() if len(two) > 1},
        "payment_status": dict(zip(unknown["set"].tolist()[::-1], codes[::-1], strict=True)),
        "stray": dict(strays),
    }
    facts = {
        "file": _files(joined, sources=sources)[numbers],
        "off": _off(joined)[numbers],
        **{n: [own.get(at, "") for at in numbers.tolist()] for n, own in of_sets.items()},
        **{clock: sets[clock][numbers] for clock in (*DATED.values(), PAID_AT)},
        "paid_day": _dates(business_days(sets[PAID_AT][numbers], calendar=calendar)),
        "began_day": business_days(event_instants(sets)[numbers], calendar=calendar),
    }
    texts_of = {name: text_column(facts.pop(name)) for name in ("file", "off", *of_sets)}
    return breaks.drop(columns="set").assign(
        **{n: np.asarray(column) for n, column in facts.items()}, **texts_of
    )


def with_causes(breaks: Breaks, *, evidence: Evidence, calendar: BusinessCalendar) -> Breaks:
    """Return the breaks with `cause` filled where several share one; the first that holds wins."""
    causes = pd.Series("", index=breaks.index, dtype="str")
    payments, evidence = _with_shifts(breaks, evidence=evidence, calendar=calendar)
    payments = payments.assign(written=_written(breaks))
    for cause in TABLE.causes:
        chosen = payments[causes.eq("").to_numpy() & payments["code"].isin(cause.codes).to_numpy()]
        for rows, sentence in _shared(chosen, cause=cause, evidence=evidence):
            causes.loc[rows] = sentence
    return breaks.assign(cause=causes)


def _shared(breaks: Breaks, *, cause: Cause, evidence: Evidence) -> Iterator[tuple[pd.Index, str]]:
    """Yield the rows of breaks that share a cause, and its sentence."""
    by, over = [*cause.by], [*cause.over]
    for name in by:
        breaks = breaks[breaks[name].ne("").to_numpy()]
    if len(breaks) < cause.breaks_min:
        return
    counts: Mapping[Any, int] = {}
    if cause.of or cause.contrast:
        counts = evidence[cause.of or cause.contrast].groupby(over)["sets"].sum().to_dict()
    causes: dict[tuple[str, str], list[int]] = {}
    for cells, rows in breaks.groupby(by):
        key = dict(zip(by, map(str, cells), strict=True))
        place = tuple(key[name] for name in over)
        sets = int(counts.get(place if len(place) > 1 else "".join(place), 0))
        every = len(rows) + sets if cause.contrast else max(len(rows), sets)
        if 100 * len(rows) >= cause.share_percent * every:
            labels = {n: day_text(v) if n == "paid_day" else v for n, v in key.items()}
            sentence = cause.text.format(**labels, others=every - len(rows), every=every)
            causes.setdefault((key.get("merchant_id", ""), sentence), []).extend(rows.index)
    for (_, sentence), together in causes.items():
        if len(together) >= cause.breaks_min:
            yield pd.Index(together), sentence


def _with_shifts(
    breaks: Breaks, *, evidence: Evidence, calendar: BusinessCalendar
) -> tuple[Breaks, Evidence]:
    """Add what a shift of a source's times moves to another business date, to breaks and evidence.

    Columns source and clock, `shifted` (which times are off, as text) and `edge`: the business date
    that begins between the time and the shifted one; "" for none.
    """
    pairs, place = evidence["pairs"], [*ACCOUNT, "source"]
    least = PAIRS_SHARE_MIN * pairs.groupby(place)["sets"].transform("sum")
    shifts = pairs[
        pairs["sets"].ge(least.clip(lower=PAIRS_MIN))
        & pairs["steps"].abs().between(STEPS_MIN, STEPS_MAX)
    ]
    if shifts.empty:
        return breaks.assign(source="", clock="", shifted="", edge=""), evidence
    # Where orders and ledger agree, the gateway's times are off.
    agree = shifts.duplicated([*ACCOUNT, "steps"], keep=False)
    names = np.where(agree, "gateway", shifts["source"])
    steps = np.where(agree, -shifts["steps"], shifts["steps"])
    cells = zip(names.tolist(), shifts["account_id"], steps.tolist(), strict=True)
    labels = text_column([_as_text(*cell) for cell in cells])
    shifts = shifts.assign(shifted=labels.set_axis(shifts.index)).drop(columns="sets")
    alone = [ALONE.get(code, ("", "")) for code in breaks["code"]]
    clocks, at = np.array([own for _, own in alone], object), np.full(len(breaks), NO_INSTANT)
    for clock in (*DATED.values(), PAID_AT):
        at = np.where(clocks == clock, breaks[clock], at)
    payments = breaks.assign(source=[one for one, _ in alone], clock=clocks, at=at)
    times = evidence["times"].assign(at=evidence["times"]["step"] * STEP_MICROSECONDS)
    moved = []
    for rows in (payments, times):
        joined = rows.merge(shifts, how="left", on=place).set_axis(rows.index)
        moved.append(joined.assign(edge=_edges(joined, calendar=calendar)))
    return moved[0], {**evidence, "times": moved[1]}


def _as_text(source: str, account: str, steps: int) -> str:
    hours = f"{abs(steps) * STEP_HOURS:g} hour{'' if abs(steps) == STEPS_MIN else 's'}"
    others = "the orders and the ledger" if source == "gateway" else "the gateway"
    way = "ahead of" if steps > 0 else "behind"
    return f"{source} in account {account} are {hours} {way} those of {others}"


def _edges(rows: pd.DataFrame, *, calendar: BusinessCalendar) -> Column:
    at, steps = rows["at"].to_numpy(), rows["steps"].fillna(0).to_numpy(dtype=np.int64)
    shift = np.where(rows["clock"] == PAID_AT, steps, -steps) * STEP_MICROSECONDS
    shifted = np.where(at == NO_INSTANT, at, at + np.where(at == NO_INSTANT, 0, shift))
    here, there = (business_days(clocks, calendar=calendar) for clocks in (at, shifted))
    return np.where(here == there, "", _dates(np.maximum(here, there)))


# Guesses at the other side of a break, shown with it and never acted on. There are two kinds: a
# number that is nearly the same at the same amount, and a few records of one day that sum to
# exactly one other. Neither is evidence: amounts and dates agree by chance, so no guess moves an
# item, and of two equally good guesses none is shown.

ITEMS_MAX = 12
"""Maximum records of one amount, or of one day, per side; among more, agreement is chance."""
PARTS_MIN = 2
CHARACTERS_MIN = 4
"""Shorter numbers are similar by chance."""


class OneSide(NamedTuple):
    """Breaks that have a record without its other side."""

    codes: tuple[BreakCode, ...]
    amount: str
    """The column with the amount of their record."""
    label: str


ONE_SIDED = (
    (
        OneSide(
            (BreakCode.MISSING_AT_GATEWAY, BreakCode.BOOKED_NOT_AT_GATEWAY), "order_amount", "order"
        ),
        OneSide((BreakCode.MISSING_IN_ORDERS,), "gateway_amount", "payment"),
    ),
    (
        OneSide((BreakCode.MISSING_IN_LEDGER,), "gateway_amount", "payment"),
        OneSide((BreakCode.LEDGER_ONLY,), "ledger_amount", "entry"),
    ),
)
"""Breaks that lack a record, paired with breaks that have one too many."""
Guesses = Iterator[tuple[int, str]]
"""Row of breaks, and what might be its other side."""


def with_suggestions(breaks: Breaks) -> Breaks:
    """Return the breaks with guesses appended to some reasons; none for breaks with a cause."""
    reasons = breaks["reason"].tolist()
    for leg in ONE_SIDED:
        sides = [_unexplained(breaks, side=side) for side in leg]
        guesses: dict[int, str] = {}
        for row, labels in (*_near_pairs(*sides, leg=leg), *_summing(*sides, leg=leg)):
            guesses.setdefault(row, labels)
        for row, labels in guesses.items():
            reasons[row] = f"{reasons[row]} A guess to look at: {labels}."
    return breaks.assign(reason=pd.Series(reasons, index=breaks.index, dtype="str"))


def _unexplained(breaks: Breaks, *, side: OneSide) -> pd.DataFrame:
    """Return breaks without a cause as one side of a guess: name, row, worth and account."""
    is_code, amount = breaks["code"].isin(side.codes), breaks[side.amount]
    chosen = is_code & breaks["cause"].eq("") & amount.notna()
    names = [*ACCOUNT_KEY, "began_day", "order_no", "transaction_id"]
    rows = breaks[names][chosen].assign(worth=amount[chosen].astype("int64").abs())
    name = rows["order_no"].where(rows["order_no"].ne(""), rows["transaction_id"])
    return rows.assign(name=name, row=rows.index)[name.ne("")]


def _written(breaks: Breaks) -> Column:
    """Return how both sides write their order numbers, where only that keeps records apart."""
    written = filled("", size=len(breaks))
    for leg in ONE_SIDED:
        sides = []
        for own in (_unexplained(breaks, side=side) for side in leg):
            pieces = own["name"].str.extract(r"^(\D*0*)([1-9]\d*)(.*)$")
            forms = own.assign(
                number=pieces[1], form=pieces[0] + "\N{HORIZONTAL ELLIPSIS}" + pieces[2]
            )
            sides.append(forms.dropna().drop_duplicates([*ACCOUNT, "number"], keep=False))
        pairs = sides[0].merge(sides[1], on=[*ACCOUNT, "number"], suffixes=("", "_other"))
        pairs = pairs[pairs["form"].ne(pairs["form_other"])]
        cells = zip(pairs["form"], pairs["form_other"], strict=True)
        labels = [
            f'"{own}" ({leg[0].label}) and "{other}" ({leg[1].label})' for own, other in cells
        ]
        for name in ("row", "row_other"):
            written[pairs[name].to_numpy()] = labels
    return written


def _few(side: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """Return the rows of groups with at most ITEMS_MAX rows."""
    return side[side.groupby(by)["row"].transform("size").le(ITEMS_MAX)]


def _near_pairs(own: pd.DataFrame, other: pd.DataFrame, *, leg: tuple[OneSide, OneSide]) -> Guesses:
    """Yield pairs of equal amount with nearly equal numbers, each the only match for the other."""
    by = [*ACCOUNT_KEY, "worth"]
    pairs = _few(own, by=by).merge(_few(other, by=by), on=by, suffixes=("", "_other"))
    names = zip(pairs["name"], pairs["name_other"], strict=True)
    pairs = pairs[np.array([_near(*pair) for pair in names], dtype=np.bool_)]
    single = ~(pairs["row"].duplicated(keep=False) | pairs["row_other"].duplicated(keep=False))
    alike = "of the same amount, whose number is nearly the same"
    for one in pairs[single].to_dict("records"):
        yield one["row"], f"the {leg[1].label} of {one['name_other']}, {alike}"
        yield one["row_other"], f"the {leg[0].label} of {one['name']}, {alike}"


def _near(own: str, other: str) -> bool:
    """Return whether letters and digits are equal but for one changed, added, lost or swapped."""
    names = ("".join(filter(str.isalnum, name.casefold())).lstrip("0") for name in (own, other))
    left, right = sorted(names, key=len)
    keys = range(len(right))
    if len(left) < CHARACTERS_MIN or len(left) < len(right):
        return len(left) >= CHARACTERS_MIN and any(left == _less(right, n) for n in keys)
    near = (_less(left, n) == _less(right, m) for n in keys for m in (n, n + 1, n - 1))
    return left == right or any(near)


def _less(name: str, n: int, /) -> str:
    return name[:n] + name[n + 1 :] if n >= 0 else name


def _summing(own: pd.DataFrame, other: pd.DataFrame, *, leg: tuple[OneSide, OneSide]) -> Guesses:
    """Yield records that equal exactly one sum of records of their day on the other side."""
    by = [*ACCOUNT_KEY, "began_day"]
    left, right = (dict(iter(_few(side, by=by).groupby(by))) for side in (own, other))
    for place in left.keys() & right.keys():
        yield from _sums(left[place], pieces=right[place], label=leg[1].label)
        yield from _sums(right[place], pieces=left[place], label=leg[0].label)


def _sums(wholes: pd.DataFrame, *, pieces: pd.DataFrame, label: str) -> Guesses:
    records = sorted(zip(pieces["name"], pieces["worth"], strict=True))
    choices: dict[int, list[list[str]]] = {}
    for size in range(PARTS_MIN, len(records) + 1):
        for chosen in combinations(records, size):
            names = [name for name, _ in chosen]
            choices.setdefault(sum(worth for _, worth in chosen), []).append(names)
    for row, worth in zip(wholes["row"], wholes["worth"], strict=True):
        fitting = choices.get(worth, [])
        if len(fitting) == 1 == wholes["worth"].eq(worth).sum():
            together = f"{len(fitting[0])} together, the {label} of each of"
            yield row, f"{together} {', '.join(fitting[0])}"
