"""One SELECT is asked over the folders of all nights."""

import pytest

from recon.model.errors import UsageError
from recon.steps.admin.answered_workbook import AnswerToEnter, answered_workbook
from recon.steps.admin.sql_questions import answer
from recon.steps.approvals.returned_answers import import_resolutions
from recon.steps.runtime.identity import identify
from recon.store.people import resolution_rows
from reports.workbook_io import form, returned_answers, workbooks
from tests.recon.steps.approvals.test_returned_answers import wrong_amounts
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, capture, run_folder

ASKED = AnswerToEnter("Dan Orr", "asked the gateway")


@pytest.fixture
def answered(begun):
    return begun(wrong_amounts)


def filled(merchant, wanted):
    run_id = merchant.newest().run_id
    with merchant.environment() as environment:
        path = merchant.folder / "answers.xlsx"
        return answered_workbook(
            run_id, wanted, path=path, environment=environment, workbooks=workbooks()
        )


def kept(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        return resolution_rows.stored_answers(connection, (MERCHANT, ACCOUNT))


def test_what_is_filled_is_what_comes_back_and_nothing_counts_before(answered):
    break_id = str(answered.result().breaks["break_id"].iloc[0])

    path, count = filled(answered, AnswerToEnter("Dan Orr", "asked", [break_id]))

    assert count == 1
    read = returned_answers(path)
    given = {row.break_id: row.answer for row in read.rows if not row.answer.is_blank}
    assert {key: (each.owner, each.comment) for key, each in given.items()} == {
        break_id: ("Dan Orr", "asked")
    }
    assert kept(answered) == {}
    with answered.environment() as environment:
        person = identify("jo", code=None, environment=environment)
        done = import_resolutions(path, person=person, form=form())
    assert [taken.break_id for taken in done.taken] == [break_id]
    assert not done.refusals
    assert kept(answered)[break_id].answer.owner == "Dan Orr"


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (AnswerToEnter("", "asked"), "--owner is a text"),
        (AnswerToEnter("Dan Orr", " "), "--comment is a text"),
        (AnswerToEnter("D" * 61, "asked"), "at most 60"),
        (AnswerToEnter("Dan Orr", "asked", ["nobody"]), "nobody is no open break"),
    ],
)
def test_what_says_nothing_is_refused(answered, wanted, sentence):
    with pytest.raises(UsageError, match=sentence):
        filled(answered, wanted)

    assert not (answered.folder / "answers.xlsx").exists()


def test_where_every_grave_break_is_looked_after_it_says_so(answered):
    """Breaks of a lower severity are not answered by themselves."""
    severe = answered.result().breaks["severity"].isin(("HIGH", "CRITICAL"))
    assert not severe.any()

    with pytest.raises(UsageError, match="has an owner and a comment; nothing was written"):
        filled(answered, ASKED)


def test_every_night_answers_with_its_files(merchant):
    """Rows come from the sealed files of the night, with its run, date and verdict beside them."""
    capture(merchant)
    merchant.night()
    run_id = run_folder(merchant).name
    counted = (
        "SELECT n.run_id, n.verdict, n.is_newest, count(DISTINCT o.order_no) AS orders, "
        "count(DISTINCT d.what) AS decisions FROM nights n JOIN orders o USING (run_id) "
        "LEFT JOIN decisions d USING (run_id) GROUP BY ALL"
    )
    with merchant.environment() as environment:
        (row,) = answer(counted, environment=environment).rows.to_pylist()
        assert row["run_id"] == run_id
        assert row["verdict"]
        assert row["is_newest"]
        assert row["orders"] == 1
        assert row["decisions"] > 0
        with pytest.raises(UsageError):
            answer("DROP VIEW breaks", environment=environment)
