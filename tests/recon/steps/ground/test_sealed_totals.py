"""Totals and rules of a night that were changed in the database are named, and shown nowhere."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.steps.care.verify import Reading, verify, verify_night
from recon.steps.ground.night_folder import sealed_totals
from recon.steps.night.report import rebuild
from recon.store.nights import results, runs
from tests.recon.steps.care.test_verify_folder import run_folder
from tests.recon.steps.conftest import BUSINESS_DATE, Merchant, plain_workbooks
from tests.recon.steps.night.test_sealed_settle import capture

READING = Reading(beside=lambda _: (), run_of=lambda _: "", differences=lambda *_: ())


def played(merchant: Merchant) -> None:
    """A dry night with an order in it."""
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)


def problems_of(merchant: Merchant) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What `recon verify` and `recon verify 2026-11-20` name."""
    with merchant.environment() as environment:
        whole = verify(environment, reading=READING)
        return whole.problems, verify_night(environment, name=BUSINESS_DATE).problems


def edit(merchant: Merchant, *statements: str) -> None:
    """Change rows past the code."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


FORGED = 'UPDATE control_total SET "left" = 77, "right" = 77 WHERE position = 0'
TWICE = (
    "INSERT INTO control_total SELECT run_id, 999, id, name, merchant_id, account_id, currency, "
    'measure, "left", "right" FROM control_total WHERE position = 0'
)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (FORGED, "the database says 77 = 77 of T0 "),
        ("DELETE FROM control_total WHERE position = 0", "the database says nothing of T0 "),
        ("UPDATE control_total SET id = 'T99' WHERE position = 0", "of T99 "),
        ("UPDATE control_total SET currency = 'XXX' WHERE position = 0", " XXX count, the night"),
        (TWICE, ", the night sealed nothing; it was changed past the code"),
    ],
    ids=["sides", "gone", "name", "currency", "twice"],
)
def test_a_total_that_was_changed_in_the_database_is_named(
    change: str, named: str, begun: Callable[..., Merchant]
) -> None:
    """Each equation in the database is the one that its night sealed, or it is named."""
    merchant = begun(played)
    assert problems_of(merchant) == ((), ())

    edit(merchant, change)

    for problems in problems_of(merchant):
        assert any(named in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE rules_version SET document = replace(document, 'UTC', 'CET')", "something else"),
        ("UPDATE rules_version SET document = 'x'", "something else"),
        ("DELETE FROM rules_version", "were taken away"),
    ],
)
def test_rules_that_are_not_those_of_their_digest_are_named(
    change: str, named: str, begun: Callable[..., Merchant]
) -> None:
    """The history binds the digest of a run's rules, and the digest every word of them."""
    merchant = begun(played)

    edit(merchant, change)

    for problems in problems_of(merchant):
        (problem,) = problems
        assert named in problem


SUMMARY = "UPDATE result_summary SET document = "
VERDICT = f"{SUMMARY}json_set(document, '$.verdict', 'RECONCILED')"
AT_RISK = f"{SUMMARY}json_set(document, '$.exposure.EUR', 1)"


@pytest.mark.parametrize("change", [VERDICT, AT_RISK, "DELETE FROM result_summary"])
def test_words_of_a_result_that_were_changed_are_named_and_make_no_workbook(
    change: str, begun: Callable[..., Merchant]
) -> None:
    """The history binds verdict, rows, money at risk and scope, which stand in no sealed file."""
    merchant = begun(played)
    edit(merchant, change)

    for problems in problems_of(merchant):
        assert any(told.startswith("result summary ") for told in problems)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            (run,) = runs.newest_of_accounts(connection)
        with pytest.raises(ArchiveBrokenError, match="a result was changed past the code"):
            rebuild(run.run_id, environment=environment, workbooks=plain_workbooks())


def test_totals_whose_file_was_changed_are_named_of_the_folder(
    begun: Callable[..., Merchant],
) -> None:
    """Nothing is held against a file that is not the one that was sealed."""
    merchant = begun(played)
    path = run_folder(merchant) / "proof" / "totals.parquet"
    path.write_bytes(path.read_bytes() + b"x")

    for problems in problems_of(merchant):
        (problem,) = problems
        assert "proof/totals.parquet" in problem


def test_no_workbook_is_made_of_totals_that_were_changed(begun: Callable[..., Merchant]) -> None:
    """Else `recon workbook` would seal them under a link of their own."""
    merchant = begun(played)
    edit(merchant, FORGED)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            (run,) = runs.newest_of_accounts(connection)
        with pytest.raises(ArchiveBrokenError, match="the database says 77 = 77 of T0 "):
            rebuild(run.run_id, environment=environment, workbooks=plain_workbooks())
        with environment.store.reading() as connection:
            sealed = sealed_totals(connection, run, environment=environment)
            kept = results.load_totals(connection, run.run_id)
    assert sealed is not None
    assert {*kept} - {*sealed} != set()


def test_a_workbook_written_again_seals_the_rules_that_judged(
    begun: Callable[..., Merchant],
) -> None:
    """Whatever rules.toml says by then, they have the digest that the manifest names."""
    merchant = begun(played)
    folder = run_folder(merchant)
    judged = json.loads((folder / "proof" / "rules.json").read_bytes())
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + "\n[tolerance.JPY]\nbasis_points = 9\n")
    with merchant.environment() as environment:
        rebuild(folder.name, environment=environment, workbooks=plain_workbooks())

    assert json.loads((folder / "proof" / "rules.json").read_bytes()) == judged
    assert problems_of(merchant) == ((), ())
