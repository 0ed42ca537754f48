from datetime import date

import pytest

from recon.config.rules import Rules
from recon.matching.bank.statements import classify_statements
from recon.model.errors import SourceMissingError
from recon.steps.files.bank_files import read_bank_files
from tests.recon.files.bank_documents import CSV, IBAN, MT940, ROUTINE, camt, entry

RULES = Rules.of(
    {"bank": {"main": {"iban": IBAN, "currency": "EUR", "accounts": ["M/A"]}}}, source="test"
)


def test_the_same_file_counts_once_and_a_broken_one_stands_aside(tmp_path):
    for name in ("a.xml", "copy.xml"):
        (tmp_path / name).write_text(camt(ROUTINE + entry("250.50")))
    (tmp_path / "cut.xml").write_text(camt(ROUTINE + entry("250.50"))[:-30])
    names = ("a.xml", "copy.xml", "cut.xml")
    found = read_bank_files([tmp_path / name for name in names], rules=RULES)
    assert [file.name for file in found.files] == ["a.xml"]
    assert found.source.entries["amount"].tolist() == [25050]
    assert [one.source for one in found.source.refused] == ["cut.xml"]


def test_two_formats_of_one_statement_count_once(tmp_path):
    (tmp_path / "a.xml").write_text(camt(ROUTINE + entry("250.50")))
    (tmp_path / "b.sta").write_text(MT940)
    paths = [tmp_path / "a.xml", tmp_path / "b.sta"]
    source = read_bank_files(paths, rules=RULES).source
    judged = classify_statements(source, rules=RULES, day=date(2026, 11, 30))
    assert len(judged.counted) == 1
    assert judged.problems == ()


def test_a_file_that_does_not_exist_is_no_statement(tmp_path):
    """That is a mistake of whoever named it."""
    with pytest.raises(SourceMissingError):
        read_bank_files([tmp_path / "none.xml"], rules=RULES)


@pytest.mark.parametrize(("second", "counted"), [("2,6\n1,4", 1), ("1,3\n2,7", 0)])
def test_a_statement_told_again_by_a_table_is_the_same_or_neither_counts(tmp_path, second, counted):
    """Two tables of one number say not which is newer: what their entries say decides."""
    paths = []
    for name, entries in (("a.csv", "1,4\n2,6"), ("b.csv", second)):
        paths.append(tmp_path / name)
        head = f"{IBAN},7,2026-11-20,2026-11-20,100.00,110.00"
        rows = [
            f"{head},E{number},2026-11-20,2026-11-20,EUR,{amount}.00,,,,,,\n"
            for number, amount in (entry.split(",") for entry in entries.split("\n"))
        ]
        paths[-1].write_text(CSV + "".join(rows))
    source = read_bank_files(paths, rules=RULES).source
    judged = classify_statements(source, rules=RULES, day=date(2026, 11, 30))
    assert len(judged.counted) == counted
    assert any("neither counts" in one for one in judged.problems) == (not counted)
