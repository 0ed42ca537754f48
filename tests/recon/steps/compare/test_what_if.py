from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.cli import main
from recon.config.settings import load_rules
from recon.model.errors import UsageError
from recon.model.terms import Verdict
from recon.steps.approvals.returned_answers import import_resolutions
from recon.steps.compare import what_if as module
from recon.steps.compare.what_if import moved, what_if
from recon.steps.runtime.identity import identify
from reports.workbook_io import form, workbooks
from tests.proving import losing_a_break

ACCOUNT = ("100042", "100042001")
FIRST, LAST = date(2026, 11, 20), date(2026, 11, 22)
PEOPLE = '[approvers.jo]\nname = "Jo Hill"\nlimit = { EUR = 1000 }\n'
LEDGER = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
HEADER_ROW = 4
OFF_BY = 7
"""Minor units, on one order."""
TOLERANT = f"[tolerance.EUR]\nabsolute_minor_units = {OFF_BY}\n"

UNKNOWN = '[payment_status]\n3000 = "partially_refunded"\n'
"""What was refunded of a captured payment is then known by nobody: no set can be judged."""


def three_nights(merchant):
    """One order off by a little, and one by much; the small break is answered; two more nights."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    small, _ = _orders(merchant)
    merchant.night(workbooks=workbooks())
    _answer(merchant, small.order_no)
    for day in (21, 22):
        merchant.wait(hours=24)
        merchant.night(date=f"2026-11-{day}")


def _orders(merchant):
    """Files of the first day; the payments whose orders are off by a little and by much."""
    small, large, right = [p for p in merchant.payments("captured") if p.currency == "EUR"][:3]
    cents = round(float(small.amount) * 100) - OFF_BY
    rows = [merchant.order(small, amount=f"{cents / 100:.2f}"), merchant.order(right)]
    merchant.drop("orders.csv", *rows, merchant.order(large, amount="90000.00"))
    entry = f"E1,100042,100042001,{small.order_no},capture,EUR,{small.amount},2026-11-20T12:00:00Z"
    (merchant.folder / "ledger.csv").write_text(f"{LEDGER}\n{entry}\n")
    return small, large


def _answer(merchant, order_no):
    (path,) = merchant.folder.joinpath("reports").glob("reconciliation-*.xlsx")
    book: Any = load_workbook(path)
    sheet = book["Breaks"]
    columns = {cell.value: cell.column for cell in sheet[HEADER_ROW]}
    (row,) = [
        row
        for row in range(HEADER_ROW + 1, sheet.max_row + 1)
        if sheet.cell(row, columns["Order or batch"]).value == order_no
    ]
    answer = {"Owner": "Jo Hill", "Comment": "seen", "Resolution": "Order corrected"}
    for title, text in answer.items():
        sheet.cell(row, columns[title]).value = text
    book.save(path.with_name("answered.xlsx"))
    with merchant.environment() as environment:
        person = identify("jo", code=None, environment=environment)
        done = import_resolutions(path.with_name("answered.xlsx"), person=person, form=form())
    assert len(done.taken) == 1


def tolerant_nights(merchant):
    """The same nights under rules that let the little pass."""
    rules = merchant.folder / "config" / "rules.toml"
    strict = rules.read_text()
    rules.write_text(f"{strict}\n{TOLERANT}")
    small, _ = _orders(merchant)
    for day in (20, 21, 22):
        merchant.night(date=f"2026-11-{day}")
        merchant.wait(hours=24)
    rules.write_text(strict)
    assert small.order_no not in set(merchant.result().breaks["order_no"])


@pytest.fixture
def shop(begun):
    """A merchant after these nights."""
    return begun(three_nights)


def candidate(shop, text):
    """A file of candidate rules."""
    path: Path = shop.folder / "candidate.toml"
    path.write_text(text)
    return path


def asked(shop, text="", *, first=FIRST, last=LAST, progress=lambda _sentence: None):
    """The shop's nights under its own rules and this text."""
    rules = load_rules(config_dir=shop.folder / "config", rules_file=candidate(shop, text))
    with shop.environment() as environment:
        return what_if(
            rules,
            account=ACCOUNT,
            first=first,
            last=last,
            environment=environment,
            progress=progress,
        )


def test_the_same_rules_give_the_same_results_to_the_byte(shop):
    """Each night stands on the simulated one before it, and comes out as it was."""
    found, again = asked(shop), asked(shop)

    assert [night.is_same for night in found.nights] == [True] * 3
    assert [night.changes for night in found.nights] == [()] * 3
    assert (found.rules, found.never_raised) == ((), ())
    assert found.digest == again.digest
    assert found.nights[0].breaks > 1


def test_simulated_nights_are_those_that_would_have_been(begun):
    """Nights that ran under a tolerance, played without it, are those that ran without it."""
    ran = asked(begun(three_nights))
    played = asked(begun(tolerant_nights))

    assert [night.is_same for night in played.nights] == [False] * 3
    assert [night.digest for night in played.nights] == [night.digest for night in ran.nights]


def test_what_other_rules_would_never_have_raised_is_named(shop):
    """A tolerance takes one break of three nights away; its answer had been work for nothing.

    Nothing is moved, stored or signed: database and folders are the same bytes after it.
    """
    files = {p: p.read_bytes() for p in (*shop.folder.rglob("*.parquet"), shop.sqlite_path)}
    effects = shop.effects()
    found = asked(shop, TOLERANT)
    (one,) = found.never_raised

    assert {p: p.read_bytes() for p in files} == files
    assert {*shop.folder.rglob("*.parquet")} <= {*files}
    assert shop.effects() == effects

    assert [str(rule) for rule in found.rules] == [
        f"tolerance.EUR.absolute_minor_units not set -> {OFF_BY}"
    ]
    assert [night.breaks_then - night.breaks for night in found.nights] == [1, 1, 1]
    assert [(one.after, one.count, one.currency, one.exposure) for one in moved(found.nights)] == [
        ("matched", 1, "EUR", OFF_BY)
    ] * 3
    assert (one.code, one.exposure, str(one.business_date)) == ("AMOUNT_OVER", OFF_BY, "2026-11-20")
    assert one.answered_by == "Jo Hill"
    assert found.digest != asked(shop).digest
    # Other breaks stay open; on days without an order file a night stays incomplete.
    verdicts = [Verdict.BREAKS_OPEN, Verdict.INCOMPLETE, Verdict.INCOMPLETE]
    assert [night.verdict for night in found.nights] == verdicts


def test_nights_that_are_judged_again_without_a_break_are_not_proven(shop, monkeypatch):
    """What other rules come to is held against its files as a night is."""
    monkeypatch.setattr(module, "compare", losing_a_break(module.compare))
    found = asked(shop, TOLERANT)
    assert {night.verdict for night in found.nights} == {Verdict.NOT_PROVEN}


def unanswered_night(merchant):
    """After a night as the first of the three, one to which the gateway gave no answer."""
    small, _ = _orders(merchant)
    merchant.night()
    merchant.wait(hours=24)
    merchant.drop("orders-21.csv", merchant.order(small, updated_at="2026-11-21T10:00:00Z"))
    merchant.fault({"operation": "retrievalTrans", "kind": "wrong_signature"})
    merchant.night(date="2026-11-21")


def test_a_night_without_answers_is_the_same_and_says_that_nobody_judged_it(begun):
    """Under any rules nothing of it can be judged: `the same` alone would praise the rules."""
    shop = begun(unanswered_night)
    sentences: list[str] = []
    answer = asked(shop, TOLERANT, last=date(2026, 11, 21), progress=sentences.append)

    assert [night.is_same for night in answer.nights] == [False, True]
    assert [night.unverified for night in answer.nights] == [0, 3]
    assert [night.never_verified for night in answer.nights] == [0, 3]
    assert sentences[1].endswith("the same, 3 not verified under any rules")


def test_what_only_the_candidate_rules_do_not_verify_is_judged_otherwise(begun):
    """`not verified under any rules` counts what the night did not verify either, and no more."""
    shop = begun(three_nights)
    sentences: list[str] = []
    answer = asked(shop, UNKNOWN, last=FIRST, progress=sentences.append)

    (night,) = answer.nights
    assert (night.unverified_then, night.unverified, night.never_verified) == (0, 3, 0)
    assert sentences[0].endswith("; 3 classified differently")


def test_rules_that_decide_what_a_night_reads_are_named(shop):
    """A longer window would have read other orders: its change is in no figure, and told."""
    found = asked(shop, "[window]\norders_days = 60\n")

    assert [rule.key for rule in found.not_played] == ["window.orders_days"]
    assert [night.is_same for night in found.nights] == [True] * 3


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (LAST, FIRST, "are 0 days"),
        (date(2020, 1, 1), LAST, "ask about 1 to 400"),
        (date(2026, 11, 23), date(2026, 11, 24), "no finished live night"),
    ],
)
def test_days_without_a_night_are_refused(shop, first, last, said):
    """No day, too many, and days on which nothing ran."""
    with pytest.raises(UsageError, match=said):
        asked(shop, first=first, last=last)


def test_the_command_tells_it_and_writes_a_workbook(shop, monkeypatch, capsys, tmp_path):
    """Rules, kinds of changes with money, answered breaks, the digest; five sheets."""
    for name, value in shop.variables.items():
        monkeypatch.setenv(name, value)
    out, rules = tmp_path / "what-if.xlsx", candidate(shop, TOLERANT)
    days = ["--from", str(FIRST), "--to", str(LAST)]

    ended = main(["nights", "--rules", str(rules), *days, "--out", str(out)])

    told = capsys.readouterr().out
    book = load_workbook(out, read_only=True)
    never = [[*row] for row in book["Never raised"].iter_rows(min_row=5, values_only=True)]
    assert ended == 0
    assert f"tolerance.EUR.absolute_minor_units not set -> {OFF_BY}" in told
    assert "1 answered breaks would never have been raised." in told
    assert "0.07 EUR" in told
    assert asked(shop, TOLERANT).digest[:16] in told
    assert book.sheetnames == ["Nights", "Rules", "Changes", "Sets", "Never raised"]
    assert [(row[0].date(), float(row[5]), row[6]) for row in never] == [(FIRST, 0.07, "Jo Hill")]
    assert main(["nights", "--rules", str(rules), *days, "--account", "9"]) == 2
