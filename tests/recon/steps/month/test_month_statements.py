from datetime import date, timedelta
from pathlib import Path

import pytest

from recon.model.business_date import BusinessMonth
from recon.model.errors import ArchiveError, UsageError
from recon.model.nights import Mode
from recon.month.close import document_of, month_files, name_of, write_files
from recon.month.stated import earlier_days, stated_month
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, capture, run_folder
from tests.recon.steps.files.test_settlement_files import declare, line, place, send
from tests.recon.steps.month import test_month_closes as closes

LATER = "2026-11-24"
"""A Tuesday: Monday's night is missing before it."""


def stated(merchant, month="2026-11"):
    with merchant.environment() as environment:
        return stated_month(
            BusinessMonth.named(month), account=(MERCHANT, ACCOUNT), environment=environment
        )


def test_a_month_is_stated_from_the_folder_of_its_night(merchant, tmp_path):
    """What a live night moved is a capture of the month by its instruction; all of it ties."""
    capture(merchant)
    merchant.night()
    before = sorted(path for path in merchant.folder.rglob("*") if path.is_file())

    month = stated(merchant)

    assert month.troubles == []
    assert month.is_first
    assert month.known_by == "2026-11-20"
    facts = month.statement.facts
    assert "instruction" in {*facts["dated_by"]}
    assert {*facts.loc[facts["dated_by"].eq("instruction"), "event_on"]} == {"2026-11-21"}
    assert before == sorted(path for path in merchant.folder.rglob("*") if path.is_file())
    written = write_files(month_files(month), folder=tmp_path / name_of(month))
    assert {path.name for path in written.iterdir()} == {*month_files(month)}
    assert name_of(month) == f"statement-{MERCHANT}-{ACCOUNT}-2026-11"
    assert document_of(month)["proven"] is True


def test_a_missing_night_and_new_rules_are_named(merchant):
    capture(merchant)
    merchant.night()
    rules = Path(merchant.variables["RECON_CONFIG_DIR"]) / "rules.toml"
    rules.write_text(f"{rules.read_text()}\n[severity.SEK]\nlow = 5\n")
    merchant.wait(hours=4 * 24)
    missing, chain = stated(merchant).troubles
    assert missing == "2026-11-23 to 2026-11-24 (2 nights): no night ran"
    assert chain.startswith("P1 business days = those with a night")
    merchant.night(date=LATER, skip="the cluster was down")

    month = stated(merchant)

    assert [*month.rules.values()] == ["2026-11-20", LATER]
    assert month.troubles == []
    standing = {str(night.business_date): night.status for night in month.nights}
    assert standing["2026-11-19"] == "before the first night"
    assert "the cluster was down" in standing["2026-11-23"]


@pytest.mark.parametrize("name", ["inputs/orders.parquet", "results/breaks.parquet"])
def test_a_changed_file_is_refused_by_name(merchant, name):
    """A month never shows what is not as it was sealed."""
    capture(merchant)
    merchant.night()
    path = run_folder(merchant) / name
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(ArchiveError, match=name.replace(".", r"\.")):
        stated(merchant)


def earlier_answers(month):
    """The files that a statement reads of nights before its own."""
    return month.statement.sql.split("VIEW earlier_answers")[1].split(";")[0]


def test_nights_before_a_month_are_asked_once_a_chargeback_was_won_back(merchant):
    """December reads November's last night whole, and of the one before it what was won back."""
    place(merchant).mkdir()
    declare(merchant)
    closes.play(merchant)
    payment = merchant.payments("captured")[0]
    rows = [line(payment, entry_type="chargeback", settled_on="2026-12-01")]
    merchant.wait(hours=24)
    merchant.night(date="2026-12-01")
    assert "2026-11-20" not in earlier_answers(stated(merchant, "2026-12"))

    send(merchant, "S20261201.csv", *rows)
    merchant.wait(hours=24)
    merchant.night(date="2026-12-02")
    month = stated(merchant, "2026-12")

    assert "2026-11-20" in earlier_answers(month)
    assert closes.LAST not in earlier_answers(month)
    assert month.statement.holds, month.troubles
    won = month.statement.facts
    assert [*won.loc[won["kind"].eq("won_back"), "payment"]] == [payment.transaction_id]


@pytest.mark.parametrize(
    ("paid_on", "nights_max", "oldest"),
    [
        (None, 400, date(2026, 9, 30)),
        (date(2026, 11, 20), 400, date(2026, 9, 30)),
        (date(2026, 8, 7), 400, date(2026, 8, 7)),
        (date(2026, 8, 7), 10, date(2026, 11, 21)),
        (None, 0, None),
    ],
)
def test_nights_before_a_month_are_asked_since_the_oldest_payment_that_comes_back_was_paid(
    paid_on, nights_max, oldest
):
    """Two months at least, and never more nights than a statement may read."""
    first = date(2026, 12, 1)
    every = [first - timedelta(days=before) for before in range(-31, 300)]

    days = earlier_days(every, first=first, paid_on=paid_on, nights_max=nights_max)

    assert days == sorted(days)
    assert (min(days, default=None), len(days)) == (oldest, (first - oldest).days if oldest else 0)


def test_a_month_of_no_live_night_is_refused(merchant):
    """A dry run tells of no month: nothing of it took place."""
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    with pytest.raises(UsageError, match="no live night"):
        stated(merchant)
