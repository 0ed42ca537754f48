"""Answers of an earlier version's rows, as the nights' folders have them after the upgrade."""

from collections.abc import Callable
from typing import Any

import pytest

from recon.model.errors import StoreError
from recon.steps.care.carried_results import upgrade_and_carry
from recon.steps.ground import kept_answers, shown_answers
from recon.store.database import history
from recon.store.database.carried_rows import LAST_WITH_ROWS
from recon.store.database.migrate import newest_revision, upgrade
from recon.store.nights import answer_parts, input_rows, runs
from tests.recon.steps.care.test_carried_results import DIGESTS, NOW, _opened, earlier

__all__ = ["earlier"]
SHOWN = {
    "20261120-c75962db": [("SO1000131", "found", "3000", 13_121)],
    "20261121-5e096f4e": [
        ("NOBODY-1", "not_found", "", None),
        ("SO1000049", "found", "3000", 38_287),
        ("SO1000076", "found", "2000", 34_663),
        ("SO1000131", "found", "3000", 13_121),
    ],
}
SHOWN["20261122-ac71731c"] = SHOWN["20261121-5e096f4e"]
"""Run -> order, answer, status and amount, as the earlier version's tables had them."""


def _of_run(
    variables: dict[str, str], run_id: str, question: Callable[..., Any], **options: Any
) -> Any:
    with _opened(variables) as environment, environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        return question(connection, run, environment=environment, **options)


def _rows(variables: dict[str, str], run_id: str) -> list[tuple[Any, ...]]:
    frame = _of_run(variables, run_id, shown_answers.gateway_frame)
    names = ("order_no", "answer", "payment_status", "amount")
    columns = (frame[name].astype(object).where(frame[name].notna(), None) for name in names)
    return sorted(zip(*columns, strict=True))


def test_answers_in_rows_become_files_that_the_history_binds(earlier: dict[str, str]) -> None:
    """Every key, answer and payment of every night; an upgrade that is done again adds nothing."""
    url = earlier["RECON_DATABASE_URL"]
    for _ in range(2):
        upgrade_and_carry(url, variables=earlier, clock=lambda: NOW)

    for run_id, rows in SHOWN.items():
        assert _rows(earlier, run_id) == rows
        universe = _of_run(earlier, run_id, shown_answers.universe)
        assert universe["order_no"].tolist() == [row[0] for row in rows]
        assert _of_run(earlier, run_id, kept_answers.unbound) == ""
    with _opened(earlier) as environment, environment.store.reading() as connection:
        events = [each["event"] for each in history.of_entity(connection, next(iter(SHOWN)))]
        assert len(answer_parts.of_run(connection, next(iter(SHOWN)))) == len(("asked", "replies"))
        assert history.verify(connection)[1] == ""
        read = [input_rows.load(connection, run_id) for run_id in DIGESTS]
    assert events.count("sealed") == 7
    # How far each night read is the number of its own answers' last file now.
    assert [inputs.last_observation for inputs in read if inputs] == [2, 4, 6]


def test_what_was_said_then_is_evidence_as_before(earlier: dict[str, str]) -> None:
    """Of all nights since an instant, in the order of coming."""
    upgrade_and_carry(earlier["RECON_DATABASE_URL"], variables=earlier, clock=lambda: NOW)
    run_id = next(iter(SHOWN))
    since = NOW.replace(day=22, hour=0)
    seen = _of_run(earlier, run_id, kept_answers.evidence, order_no="SO1000049", since=since)
    gone = _of_run(earlier, run_id, kept_answers.evidence, order_no="NOBODY-1", since=since)

    assert [row["queried_at"].day for row in shown_answers.seen_since(seen, since)] == [22, 23]
    assert [at.day for at in shown_answers.not_found_since(gone, since)] == [22, 23]


def test_answers_without_a_file_are_never_given_up(earlier: dict[str, str]) -> None:
    """The tables alone are not upgraded: the sentence names the command, the rows are there."""
    url = earlier["RECON_DATABASE_URL"]
    upgrade(url, to=LAST_WITH_ROWS)
    with pytest.raises(StoreError, match=r"what the gateway answered 3 runs .*`recon db upgrade`"):
        upgrade(url, kept={"carried": DIGESTS})

    assert upgrade_and_carry(url, variables=earlier, clock=lambda: NOW)[0] == newest_revision()
    assert _rows(earlier, "20261122-ac71731c") == SHOWN["20261122-ac71731c"]
