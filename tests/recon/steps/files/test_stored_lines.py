"""The lines of settlement files in the archive: whole with what the database says, or nobody's."""

from pathlib import Path

import pytest

from recon.model.errors import (
    ArchiveBrokenError,
    HistoryBrokenError,
)
from recon.steps.admin.verify import verify
from recon.steps.compare.sealed_inputs import seal_inputs
from recon.steps.files import ingest as step
from recon.steps.files.ingest import SettlementInbox, ingest
from tests.recon.steps.files.test_settlement_files import declare, line, place, send
from tests.recon.steps.files.test_stored_orders import archive_folder, capture, past_the_code
from tests.recon.steps.test_bound import UNREAD

SETTLED = "WHERE file_id IN (SELECT file_id FROM order_file WHERE kind = 'settlement')"
UNBOUND = (
    r"rows of file \d are not those that the history|facts/.*x.parquet .* is gone or was changed"
)


@pytest.fixture
def settling(merchant):
    place(merchant).mkdir()
    declare(merchant)
    capture(merchant)
    captured, other = in_euro(merchant)[:2]
    paid = line(other, entry_type="payout", order_no="", transaction_id="")
    send(merchant, "S1.csv", line(captured), line(other), paid)
    return merchant


def in_euro(merchant):
    return [each for each in merchant.payments("captured") if each.currency == "EUR"]


def facts_of(merchant):
    return sorted((archive_folder(merchant) / "facts" / "settlement").rglob("*.parquet"))


def settlement_ingested(merchant, run_id="run-1", **variables):
    with merchant.begun(run_id, **variables) as (run, environment):
        account = environment.settings.account(run.merchant_id, account_id=run.account_id)
        settlement = SettlementInbox(run, environment, account.settlement)
        settlement.read({"refused": 0}, sleep=print)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_lines_that_were_changed_in_the_archive_stop_the_night_before_money(settling, change):
    """The night reads them before it asks the gateway; `recon verify` names each file."""
    settlement_ingested(settling)
    kept = {path: path.read_bytes() for path in facts_of(settling)}
    (rows,) = (path for path, content in kept.items() if b"settled_facts" in content)
    for path, content in kept.items():
        change(path)
        with settling.environment() as environment:
            problems = verify(environment, reading=UNREAD).problems
        assert [path.stem in problem for problem in problems] == [True]
        path.write_bytes(content)
    change(rows)
    (place(settling) / "S1.csv").rename(settling.folder / "S1.csv")
    with pytest.raises(ArchiveBrokenError, match=r"put S1.csv with the SHA-256 [0-9a-f]{64} into"):
        settling.move_money()
    assert settling.effects() == []


def test_lost_lines_are_read_again_whatever_other_files_tell(settling):
    """Each file as it came, with the lines that another one told as well."""
    settlement_ingested(settling)
    send(settling, "S2.csv", *(line(each) for each in in_euro(settling)[:3]))
    settlement_ingested(settling, "run-2")
    kept = {path: path.read_bytes() for path in facts_of(settling)}
    assert len(kept) == 2
    for path in kept:
        path.unlink()

    settling.move_money()

    assert {path: path.read_bytes() for path in facts_of(settling)} == kept


@pytest.mark.parametrize(
    ("forged", "behind", "moved"),
    [
        # Before money each column is forged by test_forged_rows.
        ("DELETE FROM order_facts", "ingest", 0),
        ("DELETE FROM order_facts", "settle", 1),
        ("UPDATE order_facts SET rows_sha256 = 'x'", "settle", 1),
        ("UPDATE order_facts SET row_count = row_count + 1", "settle", 1),
        (
            "UPDATE order_facts_account SET ordered_from = '2020-01-01 00:00:00.000000'",
            *("settle", 1),
        ),
        ("DELETE FROM order_facts_account", "settle", 1),
    ],
)
def test_no_night_compares_lines_that_the_history_did_not_bind(settling, forged, behind, moved):
    """Forged before money nothing moves; whenever it was, no verdict is said of it."""

    def progress(told):
        if told.step == behind:
            past_the_code(settling, f"{forged} {SETTLED}")

    with (
        settling.environment() as environment,
        pytest.raises((HistoryBrokenError, ArchiveBrokenError), match=UNBOUND),
    ):
        settling.run(environment, progress=progress)
    assert len(settling.effects()) == moved


def test_rows_of_a_settlement_file_that_are_not_in_its_file_fail_t2_before_money(settling):
    """T2 counts by the file itself what was accepted of it."""
    with settling.begun() as (run, environment):
        ingest(run.run_id, environment=environment)
        assert all(total.passed for total in seal_inputs(run, environment=environment))
        past_the_code(
            settling,
            "UPDATE order_file SET rows_accepted = 4, rows_read = 4 WHERE kind = ?",
            "settlement",
        )
        totals = seal_inputs(run, environment=environment)
    assert {total.id for total in totals if not total.passed} == {"T2"}


def test_a_file_that_was_read_is_not_read_again(settling, monkeypatch):
    """While it lies there with the same content, whatever its reader would say."""
    settlement_ingested(settling)

    def broken(*_, **__):
        raise AssertionError

    monkeypatch.setattr(step, "settlement_file", broken)
    settlement_ingested(settling, "run-2")
    (place(settling) / "S1.csv").write_text("changed")
    with pytest.raises(AssertionError):
        settlement_ingested(settling, "run-3")
