from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pandas as pd
import pytest

from recon.model.figures import NightFigures
from recon.model.resolutions import BreakAnswer, KeptAnswer
from tests.reports.drawn_sheets import content_of, list_on, values_of, words_on

Build = Callable[..., NightFigures]


@pytest.fixture
def content(figures: NightFigures) -> bytes:
    """The example night as a file."""
    return content_of(figures)


def test_more_than_eight_things_are_counted_and_linked(build: Build) -> None:
    """The list on page one is short, and says how much it leaves out."""
    night = build()
    one = night.attention[0]
    many = tuple(replace(one, next_step=f"Case {number}.") for number in range(11))
    words = words_on(content_of(replace(night, attention=many)), "Summary")

    assert words.count("refund in doubt") == 7
    assert "10 open breaks, 2 high, 0 of 10 answered" in words
    assert "and 4 more: see Instructions and Breaks" in words


def test_page_one_names_its_two_clocks(build: Build) -> None:
    """What is since it was first seen and what is since it happened never share one word."""
    words = words_on(content_of(build()), "Summary")

    assert words.count("Known since") == 1
    assert words.count("Age, days") == 2
    assert {"Since", "Oldest break", "Age"} & set(words) == set()


def test_what_says_the_same_is_said_once_with_its_money(build: Build) -> None:
    """A stopped night does not repeat its reason per order: how many, and how much per currency."""
    night = build()
    waits = replace(night.attention[0], what="capture not sent", is_urgent=False, currency="EUR")
    yen = replace(waits, currency="JPY", amount=1_234, order_no="A-2")
    words = words_on(content_of(replace(night, attention=(waits, waits, yen))), "Summary")

    assert words.count("3 × capture not sent") == 1  # noqa: RUF001 - times
    assert "100,000.00 EUR · 1,234 JPY" in words
    assert words.count(waits.next_step) == 1


def test_grave_breaks_are_named_by_what_is_wrong_and_what_to_do(build: Build) -> None:
    """Page one speaks of a break in finance's words, and leaves room for what waits."""
    night = build()
    doubt = night.attention[0]
    grave = replace(doubt, what="high break", code="REFUND_DUE", next_step="The order expects")
    many = tuple(replace(grave, order_no=f"G-{number}") for number in range(9))
    waits = replace(doubt, what="cancel not sent", is_urgent=False, next_step="It waits.")
    words = words_on(content_of(replace(night, attention=(doubt, *many, waits))), "Summary")

    assert words.count("high break: refund still to do") == 5
    assert words.count("No owner yet: Instruct the refund, or correct the order.") == 5
    assert "cancel not sent" in words
    assert "and 4 more: see Instructions and Breaks" in words


def test_one_reason_for_several_kinds_stands_on_top(build: Build) -> None:
    """What stops all sending is one line above everything, however many orders it holds."""
    night = build()
    doubt = night.attention[0]
    held = replace(doubt, what="capture not sent", is_urgent=False, next_step="Sending is stopped.")
    refund = replace(held, what="refund not sent", order_no="R-1")
    rows = values_of(content_of(replace(night, attention=(doubt, held, held, refund))), "Summary")
    what = [row[0] for row in rows]

    top = what.index("2 capture, 1 refund not sent")
    assert what[top - 1 : top + 3] == [
        "What",
        "2 capture, 1 refund not sent",
        "refund in doubt",
        "10 open breaks, 2 high, 0 of 10 answered",
    ]
    assert [row[8] for row in rows].count("Sending is stopped.") == 1


def test_rows_that_nobody_could_judge_need_a_person(build: Build) -> None:
    """No break is open and yet the night is not reconciled: page one says what keeps it from it."""
    night = build()
    none = {name: getattr(night, name).iloc[:0] for name in ("breaks", "effects", "movements")}
    quiet = {"instructions": night.instructions.iloc[:0], "attention": ()}
    words = words_on(content_of(replace(night, **none, **quiet)), "Summary")

    assert "1 not verified, 1 rejected" in words
    assert not any(word.startswith("No break is open, no instruction") for word in words)


def test_what_lapses_keeps_a_line_of_its_own(build: Build) -> None:
    """Two authorisations that end soon are two lines: each has its own hour and order."""
    night = build()
    lapses = replace(night.attention[0], lapses=True)
    other = replace(lapses, order_no="A-2")
    words = words_on(content_of(replace(night, attention=(lapses, other))), "Summary")

    assert words.count("refund in doubt") == 2


def test_open_breaks_stand_on_page_one_with_their_money_at_risk(content: bytes) -> None:
    """Doubt first, then the breaks as a whole: how many, how much per currency, since when."""
    rows = values_of(content, "Summary")
    what = [row[0] for row in rows]
    line = next(row for row in rows if row[0] == "10 open breaks, 2 high, 0 of 10 answered")

    assert what.index("refund in doubt") < what.index("10 open breaks, 2 high, 0 of 10 answered")
    assert line[3] == "50,129.45 EUR · 94,771 JPY · 1.236 KWD · 42.00 USD"
    assert line[7] == "20 Nov 2026"


def test_page_one_says_who_looks_after_a_break_and_until_when(build: Build) -> None:
    """Owner and due day stand before what to do, and the answers are counted."""
    night = build()
    grave = replace(night.attention[0], what="high break", code="REFUND_DUE")
    hers = replace(grave, owner="Jo Hill", due=date(2026, 11, 23), order_no="G-1")
    key = str(night.breaks["break_id"].iloc[0])
    answers = {key: KeptAnswer(BreakAnswer(owner="Jo Hill"), 1, "Jo Hill", waits=False)}
    answers["of another night"] = answers[key]
    words = words_on(
        content_of(replace(night, attention=(hers, grave), answers=answers)), "Summary"
    )

    assert "Jo Hill, due 23 Nov: Instruct the refund, or correct the order." in words
    assert "No owner yet: Instruct the refund, or correct the order." in words
    assert "10 open breaks, 2 high, 1 of 10 answered" in words


def test_money_at_risk_is_the_difference_where_one_is_known(build: Build) -> None:
    """A partial refund still to do risks its part."""
    night = build()
    breaks = night.breaks.iloc[[0]].assign(
        currency="EUR", effect_orders=1_000, effect_ledger=-2_500, exposure=90_000
    )
    unknown = breaks.assign(break_id="x", effect_orders=0, effect_ledger=0, exposure=400)
    content = content_of(replace(night, breaks=pd.concat([breaks, unknown])))
    told = {str(row[0]).partition(",")[0]: row[3] for row in values_of(content, "Summary")}

    assert told["2 open breaks"] == "29.00 EUR"
    euros = next(row for row in list_on(content, "Summary", "Due") if row["Currency"] == "EUR")
    assert (euros["Breaks"], euros["At risk"]) == (2, 29)


def test_what_a_bank_lacks_is_at_risk_like_what_the_books_lack(build: Build) -> None:
    """The greatest of a break's differences counts, its bank's among them."""
    night = build()
    sides = {"effect_orders": 0, "effect_ledger": -1, "effect_bank": -500, "exposure": 700}
    breaks = night.breaks.iloc[[0]].assign(currency="EUR", **sides)
    content = content_of(replace(night, breaks=breaks))
    rows = values_of(content, "Summary")
    told = {str(row[0]).partition(",")[0]: row[3] for row in rows}

    assert told["1 open break"] == "5.00 EUR"
    at = next(row for row in values_of(content, "Breaks") if "Money at risk" in row)
    column = at.index("Money at risk")
    assert 5.0 in [row[column] for row in values_of(content, "Breaks")]
