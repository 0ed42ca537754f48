"""A batch from before the window, of which a night has those lines alone that it is asked about."""

from datetime import date
from typing import Any

import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.month import stated as in_sql
from recon.month.stated import month_in_sql, statement_of
from recon.month.statement import ALONE, MonthFrame
from tests.recon.steps.month.month_folders import nights_of, table_of_rows
from tests.recon.steps.month.month_truth import PLACE, MonthTruth

Line = tuple[str, str, int, int]
"""Type, payment, gross and fee."""
FIRST: Line = ("capture", "T1", 500, 10)
KEPT: Line = ("reserve", "T1", -50, 0)
SECOND: Line = ("capture", "T2", 300, 5)
FREE: Line = ("capture", "T3", 200, 0)
PAID: Line = ("payout", "", 1425, 0)
BATCH = (FIRST, FIRST, KEPT, SECOND, FREE, PAID)
FRAME = MonthFrame(BusinessMonth.named("2026-11"), PLACE, BusinessCalendar.of())


def rows_of(batch, *, asked, by_payment):
    """Lines of the payments that a night is asked about, and the rest as the store sums it."""
    rows, sums = list[dict[str, Any]](), dict[tuple[str, str], list[int]]()
    for kind, payment, gross, fee in batch:
        if payment and payment in asked.split():
            rows.append(row_of(kind, payment, gross, fee, source="settlement/1.csv"))
            continue
        what = kind if kind in {"payout", "reserve"} else "earlier"
        total = sums.setdefault((what, payment if by_payment and fee else ""), [0, 0])
        total[0], total[1] = total[0] + gross, total[1] + fee
    named = sums.items()
    return [*rows, *(row_of(*key, *amounts, source="older files") for key, amounts in named)]


def row_of(kind, payment, gross, fee, *, source):
    names = {"merchant_id": PLACE[0], "account_id": PLACE[1], "batch_id": "B", "source": source}
    amounts = {"gross": gross, "fee": fee, "net": gross - fee}
    about = {"settled_on": "2026-10-10", "entry_type": kind, "currency": "EUR"}
    return {**names, **about, **amounts, "transaction_id": payment, "line": 1}


def nights_that(folder, *, asked, by_payment, last=BATCH):
    """Nights that have nothing settled but the batch, each asked about other payments."""
    days = [date(2026, 11, number) for number in range(1, len(asked) + 1)]
    nights = nights_of(MonthTruth(FRAME.month.first, 5, per_day=1), folder, days=days)
    for number, night in enumerate(nights):
        batch = last if night is nights[-1] else BATCH
        rows = rows_of(batch, asked=asked[number], by_payment=by_payment)
        pq.write_table(
            table_of_rows(rows, schema=SCHEMAS["settlement"].columns), night.files["settlement"]
        )
    return nights


def lines_of(nights):
    with month_in_sql(FRAME, nights=nights) as month:
        return sorted(
            month.rows("SELECT entry_type, transaction_id, gross, fee, net, reported FROM lines")
        )


@pytest.mark.parametrize("by_payment", [False, True])
@pytest.mark.parametrize(
    "asked", [("T1", "T2", ""), ("T1 T2", "", ""), ("T2", "T1", "T2")], ids=str
)
def test_what_stood_alone_in_any_night_counts_and_the_rest_is_a_sum(tmp_path, *, asked, by_payment):
    """Each line as often as it is settled, equal ones too, and what is left of the batch."""
    nights = nights_that(tmp_path, asked=asked, by_payment=by_payment)
    left = ("earlier", "", 200, 0)
    counted = sorted(
        (kind, payment, gross, fee, gross - fee, 0)
        for kind, payment, gross, fee in (FIRST, FIRST, KEPT, SECOND, left, PAID)
    )

    assert lines_of(nights) == counted


@pytest.mark.parametrize("by_payment", [False, True])
def test_nothing_stands_for_a_sum_that_is_used_up(tmp_path, *, by_payment):
    """Where every line stood alone once, the batch has its lines and no sum of nothing."""
    nights = nights_that(tmp_path, asked=("T1", "T2 T3", ""), by_payment=by_payment)
    counted = sorted(
        (kind, payment, gross, fee, gross - fee, 0) for kind, payment, gross, fee in BATCH
    )

    assert lines_of(nights) == counted


def test_a_batch_of_other_sums_is_the_newest_nights_and_what_stood_alone_is_missed(tmp_path):
    """Nobody knows whether a line still stands in it: the sum counts, and P2 counts the lines."""
    more = (*BATCH, ("capture", "T4", 70, 0))
    nights = nights_that(tmp_path, asked=("T1", "T2", ""), by_payment=False, last=more)
    counted = [("earlier", "", 1570, 25, 1545, 0), ("payout", "", 1425, 0, 1425, 0)]
    counted = sorted([*counted, ("reserve", "", -50, 0, -50, 0)])

    assert [row[:-1] for row in lines_of(nights)] == [row[:-1] for row in counted]
    assert missed(statement_of(FRAME, nights=nights)) == [("EUR", 3, 0)]


def test_a_night_that_has_such_a_batch_line_by_line_again_gives_them_back(tmp_path):
    """What P2 missed is named by batch; after one wider window the lines count, and stay."""
    more = (*BATCH, ("capture", "T4", 70, 0))
    nights = nights_that(tmp_path, asked=("T1", "T2", ""), by_payment=False, last=more)
    before = statement_of(FRAME, nights=nights)
    asked = ("T1", "T2", "", "T1 T2 T3 T4", "")
    later = nights_that(tmp_path / "later", asked=asked, by_payment=False, last=more)
    wide = [row_of(*line, source="settlement/1.csv") for line in more]
    pq.write_table(
        table_of_rows(wide, schema=SCHEMAS["settlement"].columns), later[3].files["settlement"]
    )
    late = [*nights, *later[3:]]

    after = statement_of(FRAME, nights=late)

    assert before.lost_batches == [("2026-10-10", "B")]
    assert after.lost_batches == []
    assert missed(after) == []
    lines = sorted((kind, payment, gross, fee) for kind, payment, gross, fee, *_ in lines_of(late))
    assert lines == sorted(more)


def missed(statement):
    return [
        (each.currency, each.left, each.right)
        for each in statement.equations
        if each.name == ALONE and not each.holds
    ]


def test_a_line_that_stood_alone_and_is_lost_is_found(tmp_path, monkeypatch):
    """What moved ties all the same, since both closes lack it: P2 says so by itself."""
    read, alone = in_sql._text, "FROM never_whole WHERE NOT is_sum)"
    assert alone in read("facts.sql")
    monkeypatch.setattr(
        in_sql, "_text", lambda name: read(name).replace(alone, f"{alone[:-1]} AND is_newest)")
    )
    nights = nights_that(tmp_path, asked=("T1", "T2", ""), by_payment=False)
    statement = statement_of(FRAME, nights=nights)
    moved = [each for each in statement.equations if each.name.startswith("opening + movements")]

    assert missed(statement) == [("EUR", 3, 0)]
    assert moved
    assert all(each.holds for each in moved)
