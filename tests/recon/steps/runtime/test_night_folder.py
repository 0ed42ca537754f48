"""Totals and rules of a night that were changed in the database are named, and shown nowhere."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import rows_of
from recon.model.errors import ArchiveBrokenError, ConfigurationError, NightHeldError
from recon.model.nights import Mode
from recon.steps.admin.sql_questions import answer
from recon.steps.admin.verify import verify, verify_night
from recon.steps.night import whole_night as night
from recon.steps.night.report import rebuild
from recon.steps.runtime.night_folder import (
    INPUTS,
    Terms,
    before,
    folder_of,
    links,
    record_sealed,
    sealed_night,
    sealed_totals,
    storage_at,
    write,
)
from recon.store.nights import results, runs
from tests.recon.steps.admin.test_verify import played
from tests.recon.steps.conftest import (
    ACCOUNT,
    BUSINESS_DATE,
    MERCHANT,
    UNREAD,
    plain_workbooks,
    run_folder,
)

pytestmark = pytest.mark.xdist_group("a night that captured")


def test_a_manifest_is_bound_once_however_often_its_step_is_done(merchant):
    """A step that is done again in the same run adds no second link, and its files stay."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        for _ in range(2):
            parts = [*rows_of([("universe", SCHEMAS["universe"].columns.empty_table())])]
            sealed = write(
                run, INPUTS, files=parts, terms=Terms("", "5"), after={}, environment=environment
            )
            with environment.store.writing() as connection:
                record_sealed(connection, run, sealed=[sealed], environment=environment)
        with environment.store.reading() as connection:
            bound = links(connection, run_id)

        assert [(link.step, link.sha256) for link in bound] == [(INPUTS, sealed.sha256)]
        assert bound[0].folder == f"{folder_of(run)}/inputs"


def test_a_step_names_only_those_before_it():
    """A step that is done again does not come to hang on those that came after it."""
    bound = {"inputs": "1", "compared": "2", "results": "3", "proof": "4"}

    assert before("inputs", recorded=bound) == {}
    assert before("results", recorded=bound) == {"inputs": "1", "compared": "2"}


def test_two_nights_of_one_account_never_write_one_folder(merchant):
    """The second is refused while the first works; each run has a folder of its own."""
    with merchant.environment() as environment:
        with night.hold(merchant.request, environment=environment):
            refused: list[BaseException] = []

            def second():
                try:
                    merchant.night()
                except NightHeldError as error:
                    refused.append(error)

            other = threading.Thread(target=second)
            other.start()
            other.join()
        assert len(refused) == 1
        storage = storage_at((MERCHANT, ACCOUNT), environment=environment)
        assert storage.names("nights") == []
    merchant.night(mode=Mode.DRY_RUN)
    merchant.night(mode=Mode.DRY_RUN)
    assert len(storage.folders(f"nights/{MERCHANT}/{ACCOUNT}/2026-11-20")) == 2


def test_an_archive_that_is_named_holds_the_nights_and_a_missing_key_is_told(merchant, tmp_path):
    """archive.toml says where; nothing lies beside the database then."""
    file = merchant.folder / "config" / "archive.toml"
    file.write_text(f'[archive]\npath = "{tmp_path / "elsewhere"}"\n')
    merchant.night(mode=Mode.DRY_RUN)
    assert len([*(tmp_path / "elsewhere").glob(f"nights/{MERCHANT}/{ACCOUNT}/2026-11-20/*")]) == 1

    keys = 'access_key_env = "NO_SUCH_ID"\nsecret_key_env = "NO_SUCH_SECRET"\n'
    file.write_text(f'[archive]\npath = "s3://books/nights"\n{keys}')
    with pytest.raises(ConfigurationError, match="NO_SUCH_ID"):
        merchant.night(mode=Mode.DRY_RUN)


def _opened(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, runs.finished(connection)[-1].run_id)
        return sealed_night(connection, run, environment=environment)


def captured(merchant):
    """A night that captures, so that answers and instructions change after money."""
    rows = [merchant.order(one, action="capture") for one in merchant.payments("authorised")[:2]]
    merchant.drop("orders.csv", *rows)
    merchant.night()


@pytest.fixture
def ended(begun):
    """A merchant after that night, which is played once."""
    return begun(captured)


def test_what_was_compared_stands_for_what_was_sealed_before_money(ended):
    """The answers after the captures are read, the orders as they were sealed before."""
    night = _opened(ended)

    assert night.moved["inputs/answers.parquet"] == "compared/answers.parquet"
    assert "inputs/orders.parquet" not in night.moved
    assert night.content("answers")[1].endswith("/compared/answers.parquet")
    assert night.content("orders")[1].endswith("/inputs/orders.parquet")
    assert night.rows("orders") == night.table("orders").num_rows == 2


def test_the_answers_after_money_are_those_that_are_asked_of_in_sql(ended):
    """Of each order the newest answer, once, in the one file of what was compared."""
    night = _opened(ended)

    rows = night.table("answers").to_pylist()
    assert len(rows) == 2
    assert len({row["payment_status"] for row in rows}) == 1
    assert [row["source"] for row in rows] == ["gateway"] * 2
    with ended.environment() as environment:
        asked = answer("SELECT order_no, payment_status FROM answers", environment=environment)
    told = [(row["order_no"], row["payment_status"]) for row in rows]
    assert sorted(map(tuple, (row.values() for row in asked.rows.to_pylist()))) == told


def test_a_step_that_is_gone_is_named_with_the_way_back(ended):
    """A folder that was moved away is missed by its name, and the other steps are read."""
    (folder,) = ended.folder.glob("**/archive/nights/*/*/*/*/results")
    folder.rename(folder.with_name("elsewhere"))
    night = _opened(ended)

    assert night.has("orders")
    with pytest.raises(ArchiveBrokenError, match="the step results of run"):
        night.table("breaks")


def test_what_was_sealed_before_money_is_not_taken_for_a_later_step_that_is_gone(ended):
    """Instructions as they were before the captures are not what was compared."""
    (folder,) = ended.folder.glob("**/archive/nights/*/*/*/*/compared")
    folder.rename(folder.with_name("elsewhere"))
    night = _opened(ended)

    with pytest.raises(ArchiveBrokenError, match="the step compared of run"):
        night.table("instructions")


def test_a_table_that_the_night_did_not_seal_is_not_there(ended):
    """A newer version's table of an older night is told from one that is lost."""
    night = _opened(ended)

    assert not night.has("statements")
    assert night.rows("statements") == 0


def problems_of(merchant):
    """What `recon verify` and `recon verify 2026-11-20` name."""
    with merchant.environment() as environment:
        whole = verify(environment, reading=UNREAD)
        return whole.problems, verify_night(environment, name=BUSINESS_DATE).problems


def edit(merchant, *statements):
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
def test_a_total_that_was_changed_in_the_database_is_named(change, named, begun):
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
        ("DELETE FROM rules_version", "were removed"),
    ],
)
def test_rules_that_are_not_those_of_their_digest_are_named(change, named, begun):
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
def test_words_of_a_result_that_were_changed_are_named_and_make_no_workbook(change, begun):
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


def test_totals_whose_file_was_changed_are_named_of_the_folder(begun):
    """Nothing is held against a file that is not the one that was sealed."""
    merchant = begun(played)
    path = run_folder(merchant) / "proof" / "totals.parquet"
    path.write_bytes(path.read_bytes() + b"x")

    for problems in problems_of(merchant):
        (problem,) = problems
        assert "proof/totals.parquet" in problem


def test_no_workbook_is_made_of_totals_that_were_changed(begun):
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


def test_a_workbook_written_again_seals_the_rules_that_judged(begun):
    """Whatever rules.toml says by then, they have the digest that the manifest names."""
    merchant = begun(played)
    folder = run_folder(merchant)
    judged = json.loads((folder / "proof" / "rules.json").read_bytes())
    merchant.configure("rules.toml", "\n[tolerance.JPY]\nbasis_points = 9\n")
    with merchant.environment() as environment:
        rebuild(folder.name, environment=environment, workbooks=plain_workbooks())

    assert json.loads((folder / "proof" / "rules.json").read_bytes()) == judged
    assert problems_of(merchant) == ((), ())


RULES = """
[grace]
gateway_to_ledger = "1h"
[journal.accounts]
clearing = "9360"
sales = "8400"
refunds = "8700"
chargebacks = "6930"
payouts = "1200"
"""


@pytest.fixture
def reported_end(merchant):
    """A merchant after a night with matches, breaks, journals and what waits."""
    merchant.configure("rules.toml", RULES)
    first, second, third = merchant.payments("captured")[:3]
    merchant.drop(
        "orders.csv",
        merchant.order(first),
        merchant.order(second),
        merchant.order(third, order_no="NOBODY-1"),
        merchant.order(third, order_no="NOBODY-2", ordered_at="2026-11-20T23:30:00Z"),
    )
    merchant.night()
    return merchant


def _breaks(merchant):
    (path,) = merchant.folder.glob("**/archive/nights/*/*/*/*/results/breaks.parquet")
    return path


def test_a_changed_file_is_refused_and_never_shown(reported_end):
    """One bit of it, or the whole folder gone: the sentence says which and what to do."""
    path = _breaks(reported_end)
    content = path.read_bytes()
    path.write_bytes(bytes([content[0], content[1] ^ 1]) + content[2:])
    with pytest.raises(ArchiveBrokenError, match="is not the file that was sealed"):
        reported_end.result()

    path.write_bytes(content[:-1])
    with pytest.raises(ArchiveBrokenError, match="and was sealed with"):
        reported_end.result()

    path.parent.rename(path.parent.with_name("elsewhere"))
    with pytest.raises(ArchiveBrokenError, match="from a backup of the archive"):
        reported_end.result()
