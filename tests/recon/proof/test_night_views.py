"""People ask one SELECT over all nights, and can change nothing by it."""

from dataclasses import replace

import pyarrow as pa
import pytest

from recon.archive.schemas import SCHEMAS
from recon.model.errors import UsageError
from recon.proof.night_views import DECISION_COLUMNS, VIEWS, NightFolder, ask
from tests.recon.proof.night_folders import compared_night, night_of, written

DECISION = dict.fromkeys(DECISION_COLUMNS, "") | {"run_id": "R1", "decision": "answer"}


@pytest.fixture(scope="module")
def nights(make_case, tmp_path_factory):
    """Two nights: on the first an order is missing at the gateway, on the second it is there."""
    first = make_case().order()
    second = make_case().order().payment()
    return tuple(
        _night(case, run_id=f"R{number}", folder=tmp_path_factory.mktemp(f"n'{number}"))
        for number, case in enumerate((first, second), start=1)
    )


def _night(case, *, run_id, folder):
    night = compared_night(case.sources(), rules=case.rules, as_of=case.as_of)
    written(folder, tables=night_of(night))
    about = {"run_id": run_id, "merchant_id": "M", "account_id": "1", "mode": "live"}
    about |= {"business_date": f"2026-11-2{run_id[1]}", "verdict": "BREAKS OPEN"}
    files = {name: folder / SCHEMAS[name].path for name in VIEWS}
    return NightFolder({**about, "is_newest": True}, folder, files)


def asked(statement, nights):
    return _asked(statement, nights).rows.to_pylist()


def _asked(statement, nights):
    decisions = pa.Table.from_pylist([DECISION])
    return ask(statement, nights=nights, decisions=decisions)


def test_a_view_holds_the_rows_of_every_night(nights):
    """Each row says of which night it is."""
    rows = asked("SELECT run_id, business_date, code FROM breaks", nights)
    assert rows == [{"run_id": "R1", "business_date": "2026-11-21", "code": "MISSING_AT_GATEWAY"}]
    assert asked("SELECT count(*) AS n FROM orders", nights) == [{"n": 2}]


def test_the_last_night_of_each_account_is_marked(nights):
    """The newest run of its last business date: what is open stands in every night anew."""
    first, second = nights
    replaced = replace(second, about={**second.about, "run_id": "R3", "is_newest": False})
    elsewhere = replace(first, about={**first.about, "run_id": "R4", "account_id": "2"})
    every = (first, second, replaced, elsewhere)

    assert asked("SELECT run_id FROM nights WHERE is_last ORDER BY run_id", every) == [
        {"run_id": "R2"},
        {"run_id": "R4"},
    ]
    assert asked("SELECT DISTINCT run_id FROM orders WHERE is_last ORDER BY run_id", every) == [
        {"run_id": "R2"},
        {"run_id": "R4"},
    ]


def test_nights_and_decisions_are_views_too(nights):
    """What the database knows of a night stands beside its files."""
    statement = "SELECT n.verdict, d.decision FROM nights n JOIN decisions d USING (run_id)"
    assert asked(statement, nights) == [{"verdict": "BREAKS OPEN", "decision": "answer"}]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_stands_without_a_night(view):
    """Before the first night a question has no row, not an error."""
    assert asked(f"SELECT * FROM {view}", ()) == []  # noqa: S608  # our own names


REFUSED = (
    "DROP VIEW breaks",
    "SELECT 1; SELECT 2",
    "COPY (SELECT 1) TO '{folder}/stolen.csv'",
    "SELECT 1) TO '{folder}/stolen.csv' --",
    "CREATE TABLE mine AS SELECT 1",
    "SET memory_limit = '90GB'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM nobody_knows_this",
    "",
)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_one_question_over_the_nights_is_refused(nights, statement):
    """Nothing is written, no other file is read, and the refusal is a sentence."""
    before = sorted(nights[0].folder.rglob("*"))
    with pytest.raises(UsageError):
        asked(statement.format(folder=nights[0].folder), nights)
    assert sorted(nights[0].folder.rglob("*")) == before


def test_a_long_answer_says_that_it_is_not_whole(nights):
    """More rows than are shown are told, not cut in silence."""
    assert _asked("SELECT * FROM range(10000)", nights).is_whole
    long = _asked("SELECT * FROM range(10001)", nights)
    assert (long.is_whole, long.rows.num_rows) == (False, 10000)
