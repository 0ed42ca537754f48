from datetime import UTC, datetime
from typing import Any

from sqlalchemy import create_engine

from recon.model.words import ControlTotal, KeyAnswer
from recon.store.database.engine import Store
from recon.store.nights import answers, proofs
from recon.store.nights.runs import Run
from recon.store.schema import observation
from recon.store.schema.columns import metadata

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
FOUND = (KeyAnswer.FOUND, "")


def _payment(key: str, **changed: Any) -> dict[str, Any]:
    return {
        "order_no": key,
        "transaction_id": f"T-{key}",
        "currency": "EUR",
        "amount": 1_000,
        "payment_status": "2000",
        "query_result": "-1",
        "reference_no": "",
        "transaction_date": AT,
        "queried_at": AT,
        "detail": "{}",
        **changed,
    }


def _ask(store: Store, run: Run, *keys: str, phase: str = answers.BASELINE) -> None:
    with store.writing() as connection:
        answers.open_phase(connection, run.run_id, phase=phase, keys=keys)


def _save(store: Store, run: Run, told: dict[str, Any], *rows: dict[str, Any], phase: str) -> None:
    with store.writing() as connection:
        answers.save(connection, run, phase=phase, answers=told, observations=rows, at=AT)


def test_only_unanswered_keys_are_asked_again(store: Store, run: Run) -> None:
    """A restart asks for what has no final answer, and notes each key once."""
    _ask(store, run, "A", "B")
    _save(store, run, {"A": FOUND}, _payment("A"), phase=answers.BASELINE)
    _ask(store, run, "A", "B", "C")
    with store.reading() as connection:
        waiting = answers.unanswered(connection, run.run_id, phase=answers.BASELINE)

    assert waiting == ["B", "C"]


def test_an_answer_saved_again_takes_the_place_of_the_first(store: Store, run: Run) -> None:
    """The same key answered twice in a phase leaves one set of payments."""
    _ask(store, run, "A")
    for _ in range(2):
        _save(store, run, {"A": FOUND}, _payment("A"), phase=answers.BASELINE)
    with store.reading() as connection:
        assert len(answers.observations_of(connection, run)) == 1


def test_the_answer_after_money_counts(store: Store, run: Run) -> None:
    """The engine sees the newest phase of each key, and keys without a payment as rows."""
    _ask(store, run, "A", "B", "C")
    told = {"A": FOUND, "B": (KeyAnswer.NOT_FOUND, ""), "C": (KeyAnswer.FAILED, "silence")}
    _save(store, run, told, _payment("A"), phase=answers.BASELINE)
    _ask(store, run, "A", phase=answers.AFTER)
    _save(store, run, {"A": FOUND}, _payment("A", payment_status="3000"), phase=answers.AFTER)
    with store.reading() as connection:
        frame = answers.gateway_frame(connection, run)
    rows = zip(frame["order_no"], frame["answer"], frame["payment_status"], strict=True)

    assert sorted(rows) == [("A", "found", "3000"), ("B", "not_found", ""), ("C", "failed", "")]


def test_another_accounts_answers_stay_apart(store: Store, run: Run) -> None:
    """What another account showed is no payment of this account and no part of its universe."""
    _ask(store, run, "A")
    _save(store, run, {"A": (KeyAnswer.NOT_FOUND, "")}, phase=answers.BASELINE)
    with store.writing() as connection:
        answers.save_of_sibling(
            connection,
            run,
            account_id="100042002",
            answers={"A": FOUND, "B": (KeyAnswer.NOT_FOUND, "")},
            observations=[_payment("A")],
            at=AT,
        )
    with store.reading() as connection:
        own = answers.gateway_frame(connection, run)
        sibling = answers.sibling_frame(connection, run)
        universe = answers.universe(connection, run)

    assert list(own["answer"]) == ["not_found"]
    assert sorted(
        zip(sibling["account_id"], sibling["order_no"], sibling["answer"], strict=True)
    ) == [
        ("100042002", "A", "found"),
        ("100042002", "B", "not_found"),
    ]
    assert list(universe["order_no"]) == ["A"]


def _failed(totals: tuple[ControlTotal, ...]) -> list[str]:
    return [total.id for total in totals if not total.passed]


def test_an_unanswered_key_fails_t3(store: Store, run: Run) -> None:
    """A key of the universe without a final answer makes T3 fail before money."""
    _ask(store, run, "A", "B")
    _save(store, run, {"A": FOUND}, _payment("A"), phase=answers.BASELINE)
    with store.reading() as connection:
        before = proofs.before_money(connection, run, universe=2, phase=answers.BASELINE)
    _save(store, run, {"B": FOUND}, _payment("B"), phase=answers.BASELINE)
    with store.reading() as connection:
        after = proofs.before_money(connection, run, universe=2, phase=answers.BASELINE)

    assert (_failed(before), _failed(after)) == (["T3"], [])


def test_an_answer_takes_the_place_of_an_earlier_one_by_its_key() -> None:
    """Replacing one answer never looks at all that the run has seen: a night would grow squared."""
    engine = create_engine("sqlite://")
    statement = str(answers._FORGET.compile(dialect=engine.dialect))
    with engine.connect() as connection:
        metadata.create_all(connection, tables=[observation])
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple("marpo")).all()
    assert "ix_observation_key" in str(plan)
