import csv
import os
import random
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from recon.model.errors import SourceMissingError, SourceUnreadableError, UsageError
from recon.model.money import format_minor_units
from recon.model.terms import Verdict
from recon.steps.compare import plain_files
from recon.steps.compare.carried_files import read_earlier_run
from recon.steps.compare.plain_files import (
    PlainFilesRequest,
    reconcile_files,
)
from recon.steps.compare.result_files import SUMMARY
from tests.proving import OneLine, failed
from tests.recon.matching.cash.truth import MERCHANT, Found, Row, truth_of

NOW = datetime(2026, 11, 28, 1, tzinfo=UTC)
MONTHS = int(os.environ.get("FEES_SEEDS", "5"))
"""Months that are played; campaign `fees-truth` plays more."""
SPLIT, END = "2026-10-09", "2026-11-27"
KINDS = {
    "orders": ("order_no", "currency", "amount", "status", "ordered_at"),
    "gateway": (
        *("order_no", "transaction_id", "currency", "amount", "payment_status", "query_result"),
        *("reference_no", "transaction_date"),
    ),
    "ledger": (
        *("entry_id", "order_no", "entry_type", "currency", "amount", "booked_at"),
        *("transaction_id", "reference_no"),
    ),
    "settlement": (
        *("batch_id", "settled_on", "entry_type", "order_no", "transaction_id", "reference_no"),
        *("currency", "gross", "fee", "net"),
    ),
}
AMOUNTS = frozenset({"amount", "gross", "fee", "net"})
WORTH = ("gross", "net")
DAYS = {
    "orders": "ordered_at",
    "gateway": "transaction_date",
    "ledger": "booked_at",
    "settlement": "settled_on",
}
Files = dict[str, list[Row]]


def cell(row, name):
    """What a file has of a value; an amount that is a text stands as it is."""
    value = row.get(name, "")
    if name in AMOUNTS and isinstance(value, int):
        return format_minor_units(value, currency=row["currency"])
    return str(value)


def write(rows, *, kind, path):
    """One CSV file."""
    names = ("merchant_id", "account_id", *KINDS[kind])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([cell(row, name) for name in names] for row in rows)
    return path


def run(
    folder,
    files,
    *,
    as_of=END,
    previous=None,
    rules="",
    bank=(),
    exports=(),
    shown=None,
):
    """Reconcile the rows of each kind that is given; the folder `out` has the result.

    `exports` are settlement files beside that one.
    """
    given = {
        kind: (write(rows, kind=kind, path=folder / f"{kind}.csv"),) for kind, rows in files.items()
    }
    given["settlement"] = (
        *given.get("settlement", ()),
        *(
            write(rows, kind="settlement", path=folder / f"settlement-{number}.csv")
            for number, rows in enumerate(exports)
        ),
    )
    rules_file = folder / "rules.toml"
    rules_file.write_text(f'[payment_status]\n3000 = "paid"\n4100 = "refunded"\n{rules}')
    request = PlainFilesRequest(
        orders=given.pop("orders"),
        gateway=given.pop("gateway"),
        as_of=date.fromisoformat(as_of),
        out=folder / "out",
        rules_file=rules_file,
        previous=previous,
        bank=bank,
    )
    asked = replace(request, **given)
    shown = shown or OneLine()
    return reconcile_files(
        asked, clock=lambda: NOW, write_workbook=shown.write, sheet_totals=shown.totals
    )


def until(files, day):
    """What happened up to a day, and after it."""

    def is_early(row, kind):
        return str(row[DAYS[kind]]).replace("-", "")[:8] <= day.replace("-", "")

    parts = [
        {
            kind: [row for row in rows if is_early(row, kind) is early]
            for kind, rows in files.items()
        }
        for early in (True, False)
    ]
    return parts[0], parts[1]


def found(result):
    """Every break of the result."""
    names = ("code", "break_id", "effect_ledger", "exposure", "flags")
    rows = zip(*(result.breaks[name].tolist() for name in names), strict=True)
    return Counter(Found(*row) for row in rows)


def unreadable(truth):
    """A line that cannot be read, for each batch that has one."""
    return [
        {
            "merchant_id": MERCHANT,
            "account_id": account,
            "batch_id": batch,
            "settled_on": "2026-10-06",
            "entry_type": "capture",
            "currency": currency or "?",
            "gross": "1.00",
            "fee": "0.00",
            "net": "x",
        }
        for account, batch, currency in truth.unreadable
    ]


@pytest.mark.parametrize("seed", range(MONTHS))
def test_two_runs_one_after_the_other_find_what_one_run_over_all_finds(seed, tmp_path):
    """Each planted break once, to the unit, and no other: in one piece and by --previous."""
    truth = truth_of(seed)
    truth.rows["settlement"] += unreadable(truth)
    rules = f'[ledger]\nfees_per = "{truth.fees_per}"\n'
    whole = run(tmp_path / "whole", truth.rows, rules=rules)
    early, late = until(truth.rows, SPLIT)
    first = run(tmp_path / "first", early, as_of=SPLIT, rules=rules)
    second = run(tmp_path / "second", late, previous=tmp_path / "first" / "out", rules=rules)
    for result in (whole, second):
        assert failed(result) == []
        assert found(result) == Counter(truth.key), truth.told
        assert {"T11", "T18", "T19"} <= {total.id for total in result.control_totals}
    assert failed(first) == []
    assert second.gateway_holds == whole.gateway_holds
    held = [result.held.to_dict("records") for result in (second, whole)]
    assert held[0] == held[1]


@pytest.mark.parametrize("seed", range(4))
def test_exports_that_overlap_are_the_one_export_of_all_their_lines(seed, tmp_path):
    """In any order, in one run or two; equal lines of one export stay as many as they are there."""
    truth, chance = truth_of(seed), random.Random(seed)
    others = {kind: rows for kind, rows in truth.rows.items() if kind != "settlement"}
    lines = truth.rows["settlement"]
    days = sorted({row["settled_on"] for row in lines})
    third = len(days) // 3
    exports = [
        [row for row in lines if row["settled_on"] <= days[-third]] + unreadable(truth),
        [row for row in lines if row["settled_on"] > days[third]] + unreadable(truth),
        chance.sample(lines, len(lines) // 2) + unreadable(truth),
    ]
    chance.shuffle(exports)
    rules = f'[ledger]\nfees_per = "{truth.fees_per}"\n'
    one = run(tmp_path / "one", others, exports=exports, rules=rules)
    run(tmp_path / "first", others, exports=exports[:1], rules=rules)
    before = tmp_path / "first" / "out"
    two = run(tmp_path / "two", others, exports=exports[1:], previous=before, rules=rules)
    for result in (one, two):
        assert failed(result) == []
        assert found(result) == Counter(truth.key), truth.told


def one_repeat_more(monkeypatch):
    """SQL calls a line that one file alone has a repeat, so that it is not compared."""
    true = plain_files.repeats_of

    def more(files, *, storages):
        repeats = true(files, storages=storages)
        known = {*zip(repeats["file_id"].to_pylist(), repeats["row"].to_pylist(), strict=True)}
        row = next(row for row in range(len(known) + 1) if (0, row) not in known)
        added = pa.table({"file_id": [0], "row": [row]}).cast(repeats.schema)
        return pa.concat_tables([repeats, added])

    monkeypatch.setattr(plain_files, "repeats_of", more)


def a_line_changed(monkeypatch):
    """A line is worth more from its choice on."""
    true = plain_files._each_line_once

    def changed(tables, *, day):
        (first, *others), *more = true(tables, day=day)
        raised = first.assign(**{name: first[name] + 500 * (first.index == 0) for name in WORTH})
        return [raised, *others], *more

    monkeypatch.setattr(plain_files, "_each_line_once", changed)


@pytest.mark.parametrize("broken", [one_repeat_more, a_line_changed])
def test_the_lines_compared_are_held_against_the_files(broken, tmp_path, monkeypatch):
    """By a count that shares nothing with the SQL that finds repeats."""
    truth = truth_of(0)
    lines = truth.rows["settlement"]
    others = {kind: rows for kind, rows in truth.rows.items() if kind != "settlement"}
    broken(monkeypatch)
    result = run(tmp_path, others, exports=[lines, lines[: len(lines) // 2]])

    assert result.verdict is Verdict.NOT_PROVEN
    name = "settlement: reported, each line as often as one file has it at most = compared"
    assert name in {total.name for total in failed(result)}


def month(number, *, with_ledger=True):
    """A month of one payment a day, each with a fee of 1.00, booked the next day, and a payout."""
    rows: Files = {kind: [] for kind in KINDS}
    for day in (5, 6, 7, 8):
        on, name = f"2026-{number:02}-{day:02}", f"{number}{day}"
        own = {"merchant_id": MERCHANT, "account_id": "1", "currency": "EUR"}
        key = {**own, "order_no": f"A{name}", "transaction_id": f"T{name}"}
        rows["orders"].append(
            {**key, "amount": 5000, "status": "paid", "ordered_at": f"{on}T08:00Z"}
        )
        asked = {"transaction_date": f"{on.replace('-', '')}080000", "query_result": "1"}
        rows["gateway"].append({**key, **asked, "amount": 5000, "payment_status": "3000"})
        batch = {"batch_id": f"B{name}", "settled_on": on}
        line = {**key, **batch, "entry_type": "capture", "gross": 5000, "fee": 100, "net": 4900}
        paid = {**own, **batch, "entry_type": "payout", "gross": 4900, "fee": 0, "net": 4900}
        rows["settlement"] += [line, paid]
        booked = {"booked_at": f"2026-{number:02}-{day:02}T20:00Z"}
        for kind, amount, more in (
            ("capture", 5000, key),
            ("fee", 100, {**key, "reference_no": f"B{name}"}),
            ("payout", 4900, {**own, "reference_no": f"B{name}"}),
        ):
            entry = {"entry_id": f"E{name}{kind}", "entry_type": kind, "amount": amount}
            rows["ledger"].append({**more, **entry, **booked})
    if not with_ledger:
        del rows["ledger"]
    return rows


@pytest.mark.parametrize("fees_per", ["balance", "payment", "batch", "day", "month"])
def test_books_that_begin_later_than_the_lines_show_no_false_break(fees_per, tmp_path):
    """What was settled before stands apart, with its sum, and the result says from when on."""
    rules = f'[ledger]\nfees_per = "{fees_per}"\n'
    run(tmp_path / "first", month(10, with_ledger=False), as_of="2026-10-31", rules=rules)
    before = tmp_path / "first" / "out"
    result = run(tmp_path / "second", month(11), previous=before, rules=rules)
    assert failed(result) == []
    assert found(result) == Counter()
    apart = result.matches[result.matches["flags"].eq("before_ledger")]
    assert dict(zip(apart["entry_id"], apart["effect_ledger"], strict=True)) == {
        "fees:EUR:before_ledger": -400,
        "payout:EUR:before_ledger": -4 * 4900,
    }
    told = "fees, reserves and payouts of M/1 settled before 2026-11-05: its ledger begins then"
    assert told in result.not_covered
    assert [(fees.charged, fees.booked) for fees in result.gateway_holds.fees] == [(400, 400)]


def test_since_when_the_books_are_there_is_handed_on(tmp_path):
    """Fees and payouts that nobody booked since then stay breaks, though no entry of it comes."""
    early = month(10)
    early["ledger"] = [row for row in early["ledger"] if row["entry_type"] == "capture"]
    run(tmp_path / "first", early, as_of="2026-10-31")
    result = run(tmp_path / "second", month(11), previous=tmp_path / "first" / "out")
    assert failed(result) == []
    assert not result.matches["flags"].eq("before_ledger").any()
    assert {*result.breaks["code"]} == {"FEE_BOOKED_DIFFERS", "PAYOUT_NOT_BOOKED"}


def test_what_books_that_begin_later_lack_is_still_a_break(tmp_path):
    """A fee of their own time that nobody booked, and no more than that."""
    run(tmp_path / "first", month(10, with_ledger=False), as_of="2026-10-31")
    late = month(11)
    late["ledger"] = [row for row in late["ledger"] if row["entry_id"] != "E117fee"]
    result = run(tmp_path / "second", late, previous=tmp_path / "first" / "out")
    assert failed(result) == []
    assert list(result.breaks["code"]) == ["FEE_BOOKED_DIFFERS"]
    assert list(result.breaks["effect_ledger"]) == [-100]


def test_what_was_settled_just_before_and_booked_late_is_even(tmp_path):
    """The last days before the ledger begins count where the ledger has them, and only those."""
    files = month(11)
    files["ledger"] = [
        {**row, "booked_at": "2026-11-06T21:00Z"}
        for row in files["ledger"]
        if "115" not in row["entry_id"] or row["entry_type"] != "capture"
    ]
    files["settlement"][0:1] = [{**files["settlement"][0], "entry_type": "adjustment"}]
    result = run(tmp_path, files)
    assert not {*result.breaks["code"]} & {"FEE_BOOKED_DIFFERS", "FEE_NOT_BOOKED"}
    assert not result.matches["flags"].eq("before_ledger").any()


def test_a_file_that_an_earlier_run_read_is_refused_by_its_name(tmp_path):
    """Under any name, also by a run further on: its lines would count twice."""
    run(tmp_path / "october", month(10), as_of="2026-10-31")
    before = tmp_path / "october" / "out"
    run(tmp_path / "november", month(11), as_of="2026-11-20", previous=before)
    again = {**month(11), "settlement": month(10)["settlement"]}
    said = "settlement.csv was read before, as out/settlement.csv"
    for folder in (before, tmp_path / "november" / "out"):
        with pytest.raises(UsageError, match=said):
            run(tmp_path / "again", again, previous=folder)


def test_files_of_a_day_without_a_line_are_equal_and_no_repeat(tmp_path):
    """Only a file that tells something is refused when it comes again."""
    quiet = {**month(10), "settlement": []}
    run(tmp_path / "first", quiet, as_of="2026-10-31")
    result = run(tmp_path / "second", quiet, previous=tmp_path / "first" / "out")
    assert failed(result) == []


@pytest.mark.parametrize(
    ("batch", "currency", "unverified"),
    [("B105", "GBP", {"fees:EUR"}), ("B105", "EUR", set()), ("", "EUR", set())],
)
def test_a_line_that_cannot_be_read_is_handed_on_until_its_batch_is_told_in_its_currency(
    tmp_path, batch, currency, unverified
):
    """What a later file tells of the batch in another currency brings it again as little.

    A line that names no batch is of every batch of its file.
    """
    first, second = month(10), month(11)
    lines = month(10)["settlement"]
    first["settlement"].append({**lines[0], "batch_id": batch, "net": "x"})
    early = run(tmp_path / "first", first, as_of="2026-10-31")
    second["settlement"] += [{**line, "currency": currency} for line in lines]
    result = run(tmp_path / "second", second, previous=tmp_path / "first" / "out")
    assert failed(early) == failed(result) == []
    assert "fees:EUR" in {*early.unverified["entry_id"]}
    assert {"fees:EUR"} & {*result.unverified["entry_id"]} == unverified


def test_lines_handed_on_say_since_when_payments_must_be_settled(tmp_path):
    """A payment from before the first line of the later file is missing in it all the same."""
    run(tmp_path / "first", month(10), as_of="2026-10-31")
    late = month(11)
    del late["settlement"][0]
    result = run(tmp_path / "second", late, previous=tmp_path / "first" / "out")
    assert "SETTLEMENT_MISSING" in {*result.breaks["code"]}


def test_lines_and_entries_are_handed_on_where_a_run_has_none(tmp_path):
    """Without files of its own a run judges the lines so far, without books none of the entries."""
    run(tmp_path / "first", month(10), as_of="2026-10-31")
    calm = month(11)
    without = {kind: calm[kind] for kind in ("orders", "gateway")}
    second = run(tmp_path / "second", without, previous=tmp_path / "first" / "out")
    assert [(fees.charged, fees.booked) for fees in second.gateway_holds.fees] == [(400, None)]
    third = run(tmp_path / "third", calm, previous=tmp_path / "second" / "out")
    assert found(third) == Counter()
    assert failed(third) == []
    assert [(fees.charged, fees.booked) for fees in third.gateway_holds.fees] == [(800, 800)]


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory):
    """October and its results."""
    folder = tmp_path_factory.mktemp("october")
    run(folder, month(10), as_of="2026-10-31")
    return folder / "out"


@pytest.mark.parametrize(
    ("name", "content", "error", "told"),
    [
        (SUMMARY, None, SourceMissingError, "does not exist"),
        (SUMMARY, "{}", SourceUnreadableError, r"is of another run than summary\.json"),
        ("night/handed-on/manifest.json", None, SourceUnreadableError, "is of another run"),
        ("night/handed-on/manifest.json", "\n", SourceUnreadableError, "is no manifest"),
        ("night/handed-on/opening.parquet", "x", SourceUnreadableError, "sealed with"),
        ("night/handed-on/settlement.parquet", None, SourceUnreadableError, "is gone"),
    ],
)
def test_an_earlier_run_is_read_as_it_was_sealed_or_not_at_all(
    ran_once, tmp_path, name, content, error, told
):
    """A folder that lacks a file, or holds another, is no earlier run."""
    path = shutil.copytree(ran_once, tmp_path / "out") / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=told):
        run(tmp_path, month(11), previous=tmp_path / "out")


def test_a_run_into_the_same_folder_hands_on_nothing_of_an_older_one(ran_once):
    """What is handed on is of the result beside it."""
    assert read_earlier_run(ran_once).carried.settlement is not None
    run(ran_once.parent, {kind: month(10)[kind] for kind in ("orders", "gateway")})
    assert read_earlier_run(ran_once).carried.settlement is None
