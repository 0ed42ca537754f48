from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recon.store.database.engine import Store
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import BASELINE, AnswerPart
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
PART = AnswerPart(
    run_id="r1",
    phase=BASELINE,
    merchant_id="100042",
    account_id="100042001",
    path="nights/100042/100042001/2026-11-20/r1/answers-1/replies-00002.parquet",
    schema_label="replies/1",
    sha256="5",
    content="6",
    size_bytes=7,
    row_count=2,
    answered=2,
    last_at=AT,
)
ASKED = replace(PART, schema_label="asked/1", asked=3, answered=0, row_count=3, last_at=None)


def _save(store: Store, *parts: AnswerPart, charged_back: tuple[tuple[str, str], ...] = ()) -> None:
    with store.writing() as connection:
        for part in parts:
            answer_parts.save(connection, part, charged_back=charged_back)


def test_files_are_found_by_run_and_by_account_in_the_order_of_coming(
    store: Store, run: Run
) -> None:
    """Lists of keys are no answers, and what was asked before a link is left out."""
    later = replace(PART, run_id="r2", path="later", asked_after=9)
    other = replace(PART, account_id="100042002", path="other")
    _save(store, ASKED, PART, later, other)
    with store.reading() as connection:
        of_run = answer_parts.of_run(connection, run.run_id)
        of_account = answer_parts.of_account(connection, run)
        since = answer_parts.of_account(connection, run, after=9)
        newest = answer_parts.newest(connection)
        counted = answer_parts.counted(connection, run.run_id, phase=BASELINE)

    assert [part.schema_label for part in of_run] == ["asked/1", "replies/1", "replies/1"]
    assert [part.path for part in of_account] == [PART.path, "later"]
    assert [part.path for part in since] == ["later"]
    assert (newest, counted) == (len({ASKED, PART, later, other}), (3, 4))
    entry = of_account[0].entry
    assert f"{of_account[0].folder}/{entry.name}" == PART.path
    assert (entry.rows, entry.bytes, entry.sha256, entry.content) == (2, 7, "5", "6")


@pytest.mark.parametrize(
    ("codes", "until", "own", "found"),
    [
        (["4000"], 9, "r2", ["A", "B"]),
        (["4000"], 1, "r2", ["A"]),
        (["5000"], 9, "r2", []),
        (["4000"], 9, "r1", ["B"]),
    ],
)
def test_an_order_was_charged_back_once_an_earlier_answer_said_so(
    codes: list[str], until: int, own: str, found: list[str], store: Store, run: Run
) -> None:
    """By one of the codes, in another run, in a file that the run still reads; each order once."""
    _save(store, PART, charged_back=(("A", "4000"), ("A", "4000")))
    _save(store, replace(PART, run_id="r0", path="b"), charged_back=(("A", "4000"), ("B", "4000")))
    asking = replace(run, run_id=own)
    with store.reading() as connection:
        keys = answer_parts.charged_back_keys(connection, asking, codes=codes, until=until)

    assert keys["order_no"].tolist() == found


def test_files_whose_codes_the_rules_took_otherwise_are_named(store: Store, run: Run) -> None:
    """A code that became a chargeback since is looked up where it was shown, and nowhere else."""
    shown = replace(PART, run_id="r0", codes='{"payment_status": {"4000": [1, "A"]}}')
    known = replace(shown, path="known", chargeback_codes="4000")
    silent = replace(PART, run_id="r0", path="silent")
    _save(store, shown, known, silent, replace(shown, run_id=run.run_id))
    with store.reading() as connection:
        parts = answer_parts.judged_otherwise(connection, run, codes=["4000", "4001"], until=9)
        none = answer_parts.judged_otherwise(connection, run, codes=["4000"], until=0)

    assert [part.path for part in parts] == [shown.path]
    assert none == []
