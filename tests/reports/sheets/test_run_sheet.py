import pytest

from recon.model.errors import OutputError
from reports.sheets.totals import COMPANION, companions_of

DIGEST = "0" * 64


def test_files_beside_a_workbook_are_named_by_it():
    facts = {f"{COMPANION}1": f"12 {DIGEST} reconciliation-1-matched 1.csv", "run_id": "r"}
    assert companions_of(facts) == [(12, DIGEST, "reconciliation-1-matched 1.csv")]


@pytest.mark.parametrize(
    "value",
    [
        f"1 {DIGEST} ../../etc/passwd",
        f"1 {DIGEST} ..",
        f"1 {DIGEST} a\\b",
        f"x {DIGEST} a",
        "1 a",
        "",
    ],
)
def test_a_workbook_that_names_a_file_elsewhere_is_none_of_ours(value):
    with pytest.raises(OutputError, match="not one of ours"):
        companions_of({f"{COMPANION}1": value})
