"""Statements of a bank from run to run over plain files: what was seen once stays seen."""

import csv
import os
import random
from collections import Counter
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from recon.steps.compare.carried_files import read_earlier_run
from tests.proving import OneLine
from tests.recon.files.bank_documents import IBAN
from tests.recon.matching.bank.cases import booked
from tests.recon.matching.bank.truth import FIRST, LAST, RATES, truth_of
from tests.recon.matching.bank.writing import as_csv
from tests.recon.matching.cash.truth import Row
from tests.recon.steps.compare.test_carried import Files, failed, month, run

RULES = f"""
[bank."main"]
iban = "{IBAN}"
currency = "EUR"
accounts = ["M/1"]
counterparty = ["Gateway Ltd"]
"""
COLUMNS = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text"),
)
CANARY = "Rent of Mrs Example-Canary"
SEEDS = int(os.environ.get("BANK_CARRIED", "3"))
"""Months that are played in two runs; BANK_CARRIED=250 plays more."""
SPLIT = date(2026, 11, 13)
DAYS = ("05", "06", "07", "08")
ENDS = "2026-10-16"
"""A day on which everything of the month is due at the bank."""


def entry(amount, text="", *, who="Gateway Ltd", on):
    """One entry, in cents."""
    told = {"amount": f"{amount / 100:.2f}", "text": text, "counterparty": who}
    return {**told, "booked_on": on, "value_on": on}


def statement(path, number, *entries, days, opening=0, iban=IBAN):
    """A statement as CSV; amounts in cents."""
    closing = opening + sum(round(float(one["amount"]) * 100) for one in entries)
    head = {"iban": iban, "statement_no": str(number), "from_date": days[0], "to_date": days[1]}
    head |= {"opening": f"{opening / 100:.2f}", "closing": f"{closing / 100:.2f}"}
    head |= {"currency": "EUR"}
    rows = [{**head, **one, "entry_no": f"{number}-{at}"} for at, one in enumerate(entries)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows or [head])
    return path


def came(day, *, on, number=10):
    """The payout of a day of `month` at the bank."""
    return entry(4900, f"B{number}{int(day)}", on=on)


def of_bank(result):
    """Code, id and effect of every break of the bank."""
    breaks = result.breaks[result.breaks["effect_bank"].notna()]
    names = ("code", "break_id", "effect_bank")
    return sorted(zip(*(breaks[name].tolist() for name in names), strict=True))


def at_bank(result):
    """Batch -> what became of it at the bank."""
    paid = result.bank["paid"]
    return dict(zip(paid["batch_id"].tolist(), paid["state"].tolist(), strict=True))


def statements_of(out):
    """What the run of a folder handed on of banks."""
    return read_earlier_run(out).carried.bank


def two_statements(folder, *, lacks="", canary=""):
    """The month in two statements, one payout left out; entries of other people among them."""
    folder.mkdir(parents=True, exist_ok=True)
    early = [came(day, on=f"2026-10-{day}") for day in DAYS[:2] if day != lacks]
    late = [came(day, on=f"2026-10-{day}") for day in DAYS[2:] if day != lacks]
    other = entry(-777, f"{canary or 'rent'} text", who=f"{canary or 'rent'} side", on="2026-10-06")
    first = statement(folder / "one.csv", 1, *early, other, days=("2026-10-05", "2026-10-06"))
    opening = 4900 * len(early) - 777
    days = ("2026-10-07", ENDS)
    return [first, statement(folder / "two.csv", 2, *late, days=days, opening=opening)]


def both_runs(folder, statements, *, files=None):
    """A run with each statement, the second behind the first and without new lines."""
    files = month(10) if files is None else files
    first = run(folder / "first", files, as_of="2026-10-06", rules=RULES, bank=(statements[0],))
    again = {kind: rows for kind, rows in files.items() if kind != "settlement"}
    second = run(
        folder / "second",
        again,
        as_of=ENDS,
        rules=RULES,
        bank=(statements[1],),
        previous=folder / "first" / "out",
    )
    return first, second


def test_a_break_stays_open_without_the_old_file_and_ends_when_it_comes(tmp_path):
    """One id through three runs: missing, still missing without a statement, arrived."""
    statements = two_statements(tmp_path / "bank", lacks="05")
    _, second = both_runs(tmp_path, statements)
    ((_, own, effect),) = of_bank(second)
    assert effect == -4900
    quiet = {kind: month(10)[kind] for kind in ("orders", "gateway", "ledger")}
    before = tmp_path / "second" / "out"
    third = run(tmp_path / "third", quiet, as_of="2026-10-19", rules=RULES, previous=before)
    assert failed(third) == []
    assert [broken for _, broken, _ in of_bank(third)] == [own]
    late = statement(
        tmp_path / "bank" / "three.csv",
        3,
        came("05", on="2026-10-19"),
        days=("2026-10-19", "2026-10-19"),
        opening=3 * 4900 - 777,
    )
    before = tmp_path / "third" / "out"
    fourth = run(
        tmp_path / "fourth", quiet, as_of="2026-10-20", rules=RULES, previous=before, bank=(late,)
    )
    assert failed(fourth) == []
    assert of_bank(fourth) == []
    moved = fourth.movements[fourth.movements["break_id"].eq(own)]
    assert moved["movement"].tolist() == ["resolved"]


def test_without_a_statement_a_run_says_up_to_which_day_it_is_covered(tmp_path):
    """Page one says that old statements are judged, and to which day each bank is covered."""
    _, second = both_runs(tmp_path, two_statements(tmp_path / "bank"))
    assert of_bank(second) == []
    shown = OneLine()
    quiet = {kind: month(10)[kind] for kind in ("orders", "gateway", "ledger")}
    before = tmp_path / "second" / "out"
    terms: dict[str, Any] = {"as_of": "2026-10-20", "rules": RULES, "previous": before}
    third = run(tmp_path / "third", quiet, **terms, shown=shown)
    assert at_bank(third) == at_bank(second)
    said = (
        "No statement of a bank was given: those that earlier runs read are compared, covered are"
    )
    assert f"{said} main to {ENDS}." in shown.figures[0].notes


def test_a_statement_told_again_in_another_file_counts_once(tmp_path):
    """The bank sends it once more, its rows in another order: nothing comes twice."""
    statements = two_statements(tmp_path / "bank")
    _, second = both_runs(tmp_path, statements)
    lines = statements[1].read_text().splitlines(keepends=True)
    again = tmp_path / "bank" / "again.csv"
    again.write_text("".join([lines[0], *reversed(lines[1:])]))
    quiet = {kind: month(10)[kind] for kind in ("orders", "gateway", "ledger")}
    before = tmp_path / "second" / "out"
    third = run(tmp_path / "third", quiet, as_of=ENDS, rules=RULES, bank=(again,), previous=before)
    assert failed(third) == []
    assert at_bank(third) == at_bank(second)
    assert third.verdict == second.verdict


def test_a_statement_is_read_once_more_when_more_of_it_is_ours(tmp_path):
    """Read before the settlement file that names its batch: it may be given again, and counts."""
    files = month(10)
    ours = entry(4900, "B105", who="Some clearing", on="2026-10-05")
    rename = {"B105": "BATCH-105"}
    for kind in ("settlement", "ledger"):
        for row in files[kind]:
            for name in ("batch_id", "reference_no"):
                row[name] = rename.get(str(row.get(name, "")), row.get(name, ""))
    ours["text"] = "BATCH-105"
    days = ("2026-10-05", ENDS)
    path = statement(tmp_path / "s.csv", 1, ours, entry(-5, CANARY, who="x", on=ENDS), days=days)
    early = {**files, "settlement": []}
    run(tmp_path / "first", early, as_of=ENDS, rules=RULES, bank=(path,))
    before = tmp_path / "first" / "out"
    assert "BATCH-105" not in statements_of(before).entries["text"].tolist()
    blind = run(tmp_path / "blind", files, as_of=ENDS, rules=RULES, previous=before)
    assert at_bank(blind)["BATCH-105"] == "BREAK"
    seen = run(tmp_path / "seen", files, as_of=ENDS, rules=RULES, previous=before, bank=(path,))
    assert failed(seen) == []
    assert at_bank(seen)["BATCH-105"] == "MATCHED"
    quiet = {kind: files[kind] for kind in ("orders", "gateway", "ledger")}
    before = tmp_path / "seen" / "out"
    later = run(tmp_path / "later", quiet, as_of=ENDS, rules=RULES, previous=before)
    assert at_bank(later)["BATCH-105"] == "MATCHED"


def test_nothing_of_other_people_but_their_sum_is_handed_on(tmp_path):
    """No text and no other side of theirs in any file of a result, and no entry by itself."""
    both_runs(tmp_path, two_statements(tmp_path / "bank", canary=CANARY))
    for folder in ("first", "second"):
        out = tmp_path / folder / "out"
        for path in out.rglob("*.*"):
            assert b"Example-Canary" not in path.read_bytes(), path.name
            if path.suffix == ".parquet":
                assert "Example-Canary" not in str(pq.read_table(path).to_pylist()), path.name
        told = statements_of(out)
        assert told.statements[0].others == -777
        of_first = told.entries["statement"].eq(0)
        assert sorted(told.entries.loc[of_first, "text"]) == ["B105", "B106"]


def test_a_statement_of_an_unknown_account_may_be_given_again(tmp_path):
    """Nothing of it is handed on; when the rules name its account, it counts."""
    path = statement(tmp_path / "s.csv", 1, came("05", on="2026-10-05"), days=("2026-10-05", ENDS))
    other = RULES.replace(IBAN, "DE02120300000000202051")
    run(tmp_path / "first", month(10), as_of=ENDS, rules=other, bank=(path,))
    quiet = {kind: month(10)[kind] for kind in ("orders", "gateway", "ledger")}
    before = tmp_path / "first" / "out"
    assert read_earlier_run(before).carried.bank is None
    second = run(tmp_path / "second", quiet, as_of=ENDS, rules=RULES, previous=before, bank=(path,))
    assert at_bank(second)["B105"] == "MATCHED"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_months_made_from_the_truth_are_found_in_two_runs(seed, tmp_path):
    """Every planted break of a month once, to the unit: its first half is known by --previous."""
    truth, chance = truth_of(seed), random.Random(seed)
    rules = RULES.replace("M/1", "M/A").replace("Gateway Ltd", "Gateway")
    for pair, told in RATES.items():
        rules += f'\n[rate."{pair}"]\nvalid_days = {told["valid_days"]}\n[rate."{pair}".on]\n'
        rules += "".join(f'{day} = "{rate}"\n' for day, rate in told["on"].items())
    lines: list[Row] = []
    for batch, day, currency, amount in truth.payouts:
        row = {"batch_id": batch, "merchant_id": "M", "account_id": "A", "currency": currency}
        row |= {"settled_on": day.isoformat(), "gross": amount, "fee": 0, "net": amount}
        lines += [{**row, "entry_type": "adjustment"}, {**row, "entry_type": "payout"}]
    ledger = [{**one, "amount": int(one["amount"])} for one in booked(lines)]
    files: Files = {"orders": [], "gateway": [], "ledger": ledger, "settlement": []}
    folder = tmp_path / "bank"
    folder.mkdir()
    halves = []
    for name, days in (("early", (FIRST, SPLIT)), ("late", (SPLIT + timedelta(1), LAST))):
        text = as_csv(truth, chance=chance)["all.csv"].splitlines()
        mine = [row for row in text[1:] if days[0] <= date.fromisoformat(row[27:37]) <= days[1]]
        path = folder / f"{name}.csv"
        path.write_text("\n".join([text[0], *mine]) + "\n", encoding="utf-8")
        halves.append((path,))
    split, end = SPLIT.isoformat(), LAST.isoformat()
    known = [row for row in lines if row["settled_on"] <= split]
    first = {**files, "settlement": known}
    second = {**files, "settlement": [row for row in lines if row["settled_on"] > split]}
    run(tmp_path / "first", first, as_of=split, rules=rules, bank=halves[0])
    before = tmp_path / "first" / "out"
    result = run(
        tmp_path / "second", second, as_of=end, rules=rules, bank=halves[1], previous=before
    )
    totals = [one for one in result.control_totals if one.id in {"T15", "T16", "T17"}]
    assert [one for one in totals if not one.passed] == []
    assert Counter(of_bank(result)) == Counter(truth.key)


def test_what_the_books_have_of_the_bank_is_carried_on(tmp_path):
    """An entry that the first run read is held against the bank by the second, as in one run."""
    statements = two_statements(tmp_path / "bank")
    files, rules = month(10), RULES + "[ledger]\nbank = true\n"
    own = {"merchant_id": "M", "account_id": "1", "currency": "EUR", "entry_type": "bank"}
    took = [
        {**own, "entry_id": f"K{day}", "amount": 4900, "reference_no": f"B10{int(day)}"}
        | {"booked_at": f"2026-10-{day}T20:00Z"}
        for day in DAYS[:3]
    ]
    with_bank = [*files["ledger"], *took]
    whole = run(
        tmp_path / "whole",
        {**files, "ledger": with_bank},
        as_of=ENDS,
        rules=rules,
        bank=tuple(statements),
    )
    terms: dict[str, Any] = {"as_of": "2026-10-06", "rules": rules, "bank": (statements[0],)}
    early = [*files["ledger"], *took[:2]]
    first = run(tmp_path / "first", {**files, "ledger": early}, **terms)
    later = {**files, "ledger": [*files["ledger"], took[2]]}
    del later["settlement"]
    terms = {"as_of": ENDS, "rules": rules, "bank": (statements[1],)}
    second = run(tmp_path / "second", later, **terms, previous=tmp_path / "first" / "out")
    assert [failed(result) for result in (whole, first, second)] == [[], [], []]
    assert {*first.bank["banked"]["state"]} == {"MATCHED"}
    legs = [
        result.effects[result.effects["leg"].eq("bank_ledger")]["amount"].tolist()
        for result in (whole, second)
    ]
    assert legs == [[4900], [4900]]
    at_once, in_two = (
        one.breaks[one.breaks["code"].eq("BANK_NOT_BOOKED")] for one in (whole, second)
    )
    assert at_once["break_id"].tolist() == in_two["break_id"].tolist()
