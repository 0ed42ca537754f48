"""The foot of page one: what it does not speak of, and who signs."""

import io
import re
from dataclasses import replace
from datetime import date, timedelta

import openpyxl
import pandas as pd
import pytest

from recon.model.business_date import BusinessCalendar
from recon.model.figures import PLAIN_FILES
from recon.model.resolutions import BreakAnswer, StoredAnswer
from recon.model.terms import ControlTotal, Verdict
from recon.steps.compare.listed_breaks import severe_breaks
from reports.sheets.breaks_sheet import AREAS
from reports.sheets.labels import TABLES, proof_label
from reports.sheets.totals import NOT_VERIFIED
from tests.reports.drawn_sheets import SHEETS, content_of, list_on, values_of, words_on


@pytest.fixture
def content(figures):
    return content_of(figures)


def test_more_than_five_things_are_counted_and_linked(build):
    night = build()
    one = night.attention[0]
    many = tuple(replace(one, next_step=f"Case {number}.") for number in range(11))
    labels = words_on(content_of(replace(night, attention=many)), "Summary")

    assert labels.count("refund in doubt") == 4
    assert "and 7 more, 350,000.00 EUR: see Instructions" in labels


def test_what_says_the_same_is_said_once_with_its_money(build):
    """A stopped night does not repeat its reason per order: how many, and how much per currency."""
    night = build()
    waits = replace(night.attention[0], what="capture not sent", is_urgent=False, currency="EUR")
    yen = replace(waits, currency="JPY", amount=1_234, order_no="A-2")
    labels = words_on(content_of(replace(night, attention=(waits, waits, yen))), "Summary")

    assert labels.count("3 × capture not sent") == 1  # noqa: RUF001 - times
    assert "100,000.00 EUR · 1,234 JPY" in labels
    assert labels.count(waits.next_step) == 1


def test_what_page_one_leaves_out_stands_by_severity_where_it_says(figures):
    rows = pd.concat([figures.breaks.iloc[[1]]] * 9, ignore_index=True)
    grave = rows.assign(
        break_id=[f"{number:016x}" for number in range(9)],
        order_no=[f"G-{number}" for number in range(9)],
        severity=["CRITICAL"] * 6 + ["HIGH"] * 3,
    )
    began_at, calendar = figures.generated_at, BusinessCalendar.of()
    shown = severe_breaks(grave, answers={}, calendar=calendar, began_at=began_at)
    content = content_of(replace(figures, breaks=grave, attention=shown))
    left = [label for label in words_on(content, "Summary") if label.startswith("and ")]

    assert left == [
        "and 2 more critical breaks, 198.00 EUR: on Breaks, from row 9 on",
        "and 3 more high breaks, 297.00 EUR: on Breaks, from row 11 on",
    ]
    assert [values_of(content, "Breaks")[row - 1][0] for row in (9, 11)] == ["G-4", "G-6"]


def test_each_amount_of_page_one_adds_up_where_it_says(content):
    book = openpyxl.load_workbook(io.BytesIO(content))
    links = [cell.hyperlink for line in book["Summary"].iter_rows() for cell in line]
    places = {link.location for link in links if link}
    named = {name for name in places if "!" not in name}
    money = [row for row in list_on(content, "Summary", "Due") if len(row["Currency"]) == 3]
    gateway = [
        row for row in list_on(content, "Assurance", "Records", "All") if row["Source"] == "gateway"
    ]
    reasons = list_on(content, "Pending", "Sets", "Money at risk")
    breaks = list_on(content, "Breaks", "Key", "Owner")
    areas = list_on(content, "Summary", "Breaks by what they are about")

    assert named == {"sources_say"}
    assert named <= {*book.defined_names}
    assert {name.split("!")[0] for name in places - named} <= {f"'{sheet}'" for sheet in SHEETS}
    assert len(money) == 4
    for row in money:
        own = row["Currency"]
        (side,) = [each for each in gateway if each["Currency"] == own]
        parts = [side[name] or 0 for name in ("Matched", "Breaks", "Not verified")]
        assert (row["Waiting"], row["Due"]) == (side["Waiting"] or 0, pytest.approx(sum(parts)))
        unjudged = [
            each for each in reasons if (each["Result"], each["Ccy"]) == (NOT_VERIFIED, own)
        ]
        assert row["Not verified"] == pytest.approx(sum(each["Money at risk"] for each in unjudged))
        risks = [each["Money at risk"] for each in breaks if each["Ccy"] == own]
        assert (row["Breaks"], row["At risk"]) == (len(risks), pytest.approx(sum(risks)))
    shown = {row["Breaks by what they are about"]: row for row in areas}
    for area, row in ((area, shown[area]) for area in AREAS.values() if area in shown):
        assert sum(area in each["Code, severity, since"] for each in breaks) == row["Breaks"]


def test_rows_that_nobody_could_judge_need_a_person(build):
    night = build()
    none = {name: getattr(night, name).iloc[:0] for name in ("breaks", "effects", "movements")}
    quiet = {"instructions": night.instructions.iloc[:0], "attention": ()}
    labels = words_on(content_of(replace(night, **none, **quiet)), "Summary")

    assert "1 not verified, 1 rejected" in labels
    assert not any(label.startswith("No break is open, no instruction") for label in labels)


def test_what_lapses_keeps_a_line_of_its_own(build):
    night = build()
    lapses = replace(night.attention[0], lapses=True)
    other = replace(lapses, order_no="A-2")
    labels = words_on(content_of(replace(night, attention=(lapses, other))), "Summary")

    assert labels.count("refund in doubt") == 2


def test_page_one_says_who_looks_after_a_break_and_until_when(build):
    night = build()
    severe = replace(night.attention[0], what="high break", code="REFUND_DUE")
    hers = replace(severe, owner="Jo Hill", due=date(2026, 11, 23), order_no="G-1")
    key = str(night.breaks["break_id"].iloc[0])
    answers = {key: StoredAnswer(BreakAnswer(owner="Jo Hill"), 1, "Jo Hill", waits=False)}
    answers["of another night"] = answers[key]
    labels = words_on(
        content_of(replace(night, attention=(hers, severe), answers=answers)), "Summary"
    )

    assert "Jo Hill, due 23 Nov: Instruct the refund, or correct the order." in labels
    assert "No owner yet: Instruct the refund, or correct the order." in labels
    assert any(label.endswith("then sign. 1 of 10 answered.") for label in labels)


def test_an_answered_break_that_is_still_there_is_asked_for_again(figures):
    night, answer = figures.generated_at, BreakAnswer("Order corrected", "Jo Hill", "done")
    known = StoredAnswer(answer, 1, "Dan Orr", waits=False, at=night - timedelta(days=1))
    old, new = (f"{number:016x}" for number in (5, 2))
    answers = {old: known, new: replace(known, at=night)}
    shown = severe_breaks(
        figures.breaks, answers=answers, calendar=BusinessCalendar.of(), began_at=night
    )
    content = content_of(replace(figures, attention=shown, answers=answers))
    still = "answered on 20 Nov by Dan Orr, still there"
    labels = words_on(content, "Summary")
    why = {row["Key"][:16]: row["Why"] for row in list_on(content, "Breaks", "Key", "Owner")}

    assert "1 break was answered before this night and is still there: " in " ".join(labels)
    assert [label.split(": ")[0] for label in labels if "Jo Hill" in label] == [
        *(f"Jo Hill, {still}", "Jo Hill, due 23 Nov")
    ]
    assert {key for key, text in why.items() if text.startswith(f"A{still[1:]}. ")} == {old}


def test_money_at_risk_is_the_difference_where_one_is_known(build):
    """A partial refund still to do risks its part."""
    night = build()
    breaks = night.breaks.iloc[[0]].assign(
        currency="EUR", effect_orders=1_000, effect_ledger=-2_500, exposure=90_000
    )
    unknown = breaks.assign(break_id="x", effect_orders=0, effect_ledger=0, exposure=400)
    content = content_of(replace(night, breaks=pd.concat([breaks, unknown])))
    euros = next(row for row in list_on(content, "Summary", "Due") if row["Currency"] == "EUR")
    assert (euros["Breaks"], euros["At risk"]) == (2, 29)


COMMANDS = re.compile("`recon [a-z-]+(?: [a-z]+)?")


def test_what_had_no_source_is_named_and_the_rest_is_counted(build):
    missing = tuple(f"source {number}: no file of it" for number in range(5))
    labels = words_on(content_of(build(not_covered=missing)), "Summary")

    assert [label for label in labels if label.startswith("Not covered: ")] == [
        f"Not covered: {each}" for each in missing[:3]
    ]
    assert "and 2 more on Assurance" in labels
    write_offs = words_on(content_of(build(not_covered=("write-offs, T10: 2 of them",))), "Summary")
    assert "Not covered: write-offs: 2 of them" in write_offs


def test_no_line_of_page_one_runs_off_its_edge(build):
    long = "whether an order file was cut short: " + "orders-#-#-#-app.csv has 0, " * 20
    night = build(not_covered=(long,), merchant_name="A merchant of many words " * 20)
    breaks = night.breaks.assign(cause=long)
    page = openpyxl.load_workbook(io.BytesIO(content_of(replace(night, breaks=breaks))))["Summary"]
    widths = [page.column_dimensions[letter].width for letter in "ABCDEFGHIJKLMNOP"]
    high = {line.height for line in page.row_dimensions.values()}
    merged = {each.start_cell.coordinate for each in page.merged_cells.ranges}
    every = [cell for (cell,) in page.iter_rows(max_col=1) if isinstance(cell.value, str)]
    off = [cell for cell in every if len(cell.value) > sum(each or widths[0] for each in widths)]

    assert {cell.value.split(" ")[0] for cell in off} == {"10", "Due", "Merchant", "Not"}
    for cell in off:
        assert cell.coordinate in merged, cell.value
        assert (page.row_dimensions[cell.row].height or 0) > min(filter(None, high)), cell.value


def test_plain_files_name_no_command_that_needs_a_night(build):
    totals = tuple(ControlTotal(of, of, "", "", "", "count", 1, 0) for of in TABLES["to_do"])
    night = build(verdict=Verdict.NOT_PROVEN, control_totals=totals[:5])
    plain = replace(night, mode=PLAIN_FILES, quarantined=(), attention=())
    for at in range(0, len(totals), 5):
        content = content_of(replace(plain, control_totals=totals[at : at + 5]))
        every = " ".join(label for sheet in SHEETS for label in words_on(content, sheet))
        assert {*COMMANDS.findall(every)} <= {"`recon reconcile", "`recon order-file check"}
        assert "no command signs it" in every
    every = " ".join(words_on(content_of(night), "Summary"))
    assert "`recon sign-off" in every
    assert "no command signs it" not in every


WHY = "Why this night is not proven"


def failing(number, name, *, off_by=0, currency=""):
    """A control total whose sides differ."""
    measure = "amount" if currency else "count"
    return ControlTotal(number, name, "100042", "100042001", currency, measure, 500 + off_by, 500)


def page_one(figures):
    """Every text of the Summary."""
    return words_on(content_of(figures), "Summary")


def test_what_does_not_tie_is_named_with_the_order_and_what_to_do(build):
    night = build()
    row = night.breaks.iloc[0]
    total = failing("T5A", "gateway - orders = effects", off_by=int(row["gateway_amount"]))
    total = replace(total, currency=str(row["currency"]), measure="amount")
    labels = page_one(replace(night, verdict=Verdict.NOT_PROVEN, control_totals=(total,)))

    assert WHY in labels
    assert "gateway less order files = explained by the sheets" in labels
    (told,) = [one for one in labels if "`recon verify --compare`" in one]
    assert str(row["order_no"]) in told
    assert any(f"`recon approve --hold {night.run_id}`" in one for one in labels)


def test_sheets_that_do_not_add_up_are_named_by_their_block(build):
    night = build()
    labels = page_one(replace(night, movements=night.movements.iloc[1:]))

    assert "Breaks from the night before to tonight" in labels
    assert any("Tell IT, and sign nothing" in one for one in labels)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (
            "orders a: b.csv: read = accepted + rejected + skipped",
            "a: b.csv: rows read = accepted + rejected + skipped",
        ),
        ("gateway - orders = effects", "gateway less order files = explained by the sheets"),
        ("ledger: places = items", "ledger: every record is in exactly one place"),
        ("sheet = database, break", "rows of this workbook = database: break"),
        ("{0} a name with braces", "{0} a name with braces"),
    ],
)
def test_a_proof_is_said_in_the_words_of_finance(name, labels):
    assert proof_label(name) == labels


def test_what_was_not_asked_says_why(build):
    sentence = "settlement, T11 and T18: no settlement file was given"
    content = content_of(build(not_covered=(sentence,)))
    line = next(row for row in values_of(content, "Assurance") if row[8] == "T11")

    assert line[9] == "no settlement file was given"
    assert f"Not covered: {sentence}" not in words_on(content, "Assurance")


def test_a_failing_check_is_counted_and_stands_first(build):
    night = build()
    broken = replace(night.control_totals[2], left=1)
    totals = (*night.control_totals[:2], broken, *night.control_totals[3:])
    rows = values_of(content_of(replace(night, control_totals=totals)), "Assurance")
    single = next(number for number, row in enumerate(rows) if row[7] == "First figure")

    assert next(row for row in rows if row[8] == "T4")[5:8] == [3, 1, "CHECK"]
    assert rows[single + 1][10] == "CHECK"
