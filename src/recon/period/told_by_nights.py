"""P2: what the nights told, one by one, comes to the facts of the month in one piece.

A fact is told by the first night whose folder has it. Each line of the settlement that a night
told counts, a payment that a line settled which stood alone is settled, and every level to which a
payment was captured is in its captures.
"""

from collections.abc import Iterator

import pandas as pd

from recon.period.business_month import BusinessMonth
from recon.period.dated_facts import CAPTURE, DatedFacts
from recon.period.looked_up import currencies_of, words_at
from recon.period.month_equation import AMOUNT, COUNT, MonthEquation
from recon.period.month_evidence import MonthEvidence

TOLD = "told by each night + told late = dated in the month"
LINES = "lines that any night told = lines that count"
ALONE = "lines that stood alone in a night, of payments that none settles there"
CAPTURED = "captured as the nights showed it = captures"
TOLD_COLUMNS = ("night", "currency", "count", "amount")


def told_by_nights(
    evidence: MonthEvidence, *, facts: DatedFacts, month: BusinessMonth
) -> pd.DataFrame:
    """TOLD_COLUMNS (grain: night by the month's close and currency): the month's facts it told."""
    rows = facts.movements[month.has(facts.movements["event_on"])]
    night = words_at(rows["told"], words=evidence.dates)
    rows = rows.assign(night=night)[night <= month.last.isoformat()]
    sums = rows.groupby(["night", "currency"], as_index=False).agg(
        count=("amount", "size"), amount=("amount", "sum")
    )
    return sums[[*TOLD_COLUMNS]]


def told_equations(
    evidence: MonthEvidence,
    *,
    facts: DatedFacts,
    month: BusinessMonth,
    by_nights: pd.DataFrame,
    late: pd.DataFrame,
) -> Iterator[MonthEquation]:
    """P2 of a month; `by_nights` as told_by_nights has it, `late` the straddling rows told late."""
    own = facts.movements[month.has(facts.movements["event_on"])]
    for currency in sorted(currencies_of(facts.movements, by_nights, late)):
        by_night = by_nights[by_nights["currency"].eq(currency)]
        after, rows = (part[part["currency"].eq(currency)] for part in (late, own))
        left = int(by_night["count"].sum()) + len(after)
        yield MonthEquation("P2", TOLD, currency, COUNT, left, len(rows))
        left = int(by_night["amount"].sum()) + int(after["amount"].sum())
        yield MonthEquation("P2", TOLD, currency, AMOUNT, left, int(rows["amount"].sum()))
    yield from _lines(evidence, month=month)
    yield from _alone(evidence)
    yield from _captured(evidence, facts=facts)


def _lines(evidence: MonthEvidence, *, month: BusinessMonth) -> Iterator[MonthEquation]:
    """Of batches that some night had line by line: all those lines are among what counts."""
    every_line = evidence.told_lines
    batch = ["batch_id", "settled_on", "currency"]
    whole = every_line[batch].drop_duplicates()
    counted = evidence.lines.merge(whole, on=batch)
    sides = [rows[month.has(rows["settled_on"])] for rows in (every_line, counted)]
    sums = [_counted(rows, times=name) for rows, name in zip(sides, ("times", ""), strict=True)]
    for currency in sorted({*sums[0], *sums[1]}):
        left, right = (each.get(currency, (0, 0)) for each in sums)
        yield MonthEquation("P2", LINES, currency, COUNT, left[0], right[0])
        yield MonthEquation("P2", LINES, currency, AMOUNT, left[1], right[1])


def _alone(evidence: MonthEvidence) -> Iterator[MonthEquation]:
    """Payments that a night showed as settled in a batch are: by some line of it that counts.

    One that is not would be open at both closes, and what moved between them would still tie.
    """
    lacking = _lacking(evidence)["currency"].value_counts()
    for currency in sorted(currencies_of(evidence.told_alone)):
        yield MonthEquation("P2", ALONE, currency, COUNT, int(lacking.get(currency, 0)), 0)


def lost_batches(evidence: MonthEvidence) -> list[tuple[str, str]]:
    """settled_on and name of batches of which a line stood alone once, and none counts now."""
    rows = _lacking(evidence)[["settled_on", "batch_id"]].drop_duplicates()
    return sorted((str(day), str(batch)) for day, batch in rows.itertuples(index=False, name=None))


def _lacking(evidence: MonthEvidence) -> pd.DataFrame:
    """The lines that stood alone in a night, of which none that counts settles the payment."""
    if not len(evidence.told_alone):
        return evidence.told_alone
    names = ["batch_id", "settled_on", "currency", "entry_type", "order_no", "transaction_id"]
    counted = evidence.lines[names].drop_duplicates()
    beside = evidence.told_alone.merge(counted, on=names, how="left", indicator=True)
    return beside[beside["_merge"].eq("left_only")]


def _counted(rows: pd.DataFrame, *, times: str) -> dict[str, tuple[int, int]]:
    """Currency -> how many lines, and their net."""
    count = rows[times] if times else pd.Series(1, rows.index, dtype="int64")
    by = pd.DataFrame({"currency": rows["currency"], "n": count, "net": rows["net"] * count})
    sums = by.groupby("currency")[["n", "net"]].sum()
    return {str(key): (int(row["n"]), int(row["net"])) for key, row in sums.iterrows()}


def _captured(evidence: MonthEvidence, *, facts: DatedFacts) -> Iterator[MonthEquation]:
    levels = evidence.levels
    levels = levels[levels["captured"].ne(0)]
    shown = levels.groupby("currency")["captured"].agg(["size", "sum"])
    captures = facts.movements[facts.movements["kind"].eq(CAPTURE)]
    by_payment = captures.groupby(["currency", "payment"])["amount"].sum()
    moved = by_payment[by_payment.ne(0)].groupby(level="currency").agg(["size", "sum"])
    for currency in sorted({*shown.index, *moved.index}):
        for measure, name in ((COUNT, "size"), (AMOUNT, "sum")):
            sides = [int(sums[name].get(currency, 0)) for sums in (shown, moved)]
            yield MonthEquation("P2", CAPTURED, str(currency), measure, *sides)
