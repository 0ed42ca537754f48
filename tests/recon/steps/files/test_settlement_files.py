import csv
from decimal import Decimal
from pathlib import Path

import pytest

from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.model.errors import ConfigurationError, SourceMissingError
from recon.model.nights import Mode
from recon.model.terms import Verdict
from recon.steps.compare.rebuild import opening_of, rebuild_night
from recon.steps.files import ingest as steps
from recon.steps.files.ingest import ingest
from recon.steps.night.report import figures_of
from recon.store.nights import order_rows, runs

HEADER = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line"})
SETTLEMENT = """
[accounts."100042/100042001".settlement]
inbox = "{folder}"
{more}
"""
EXPECTED = """
[[accounts."100042/100042001".settlement.expected]]
file = "S{yyyymmdd}.csv"
sender = "the gateway"
expected_by = "01:00"
"""
LATER = "2026-11-26"


@pytest.fixture
def settling(merchant):
    """A merchant whose gateway sends settlement files."""
    place(merchant).mkdir()
    declare(merchant)
    return merchant


def place(merchant):
    found: Path = merchant.folder / "settlement"
    return found


def declare(merchant, *, more=""):
    merchant.configure("merchants.toml", SETTLEMENT.format(folder=place(merchant), more="") + more)


def line(payment, **changed):
    return {
        "batch_id": "S1",
        "merchant_id": "100042",
        "account_id": "100042001",
        "settled_on": "2026-11-20",
        "entry_type": "capture",
        "order_no": payment.order_no,
        "transaction_id": payment.transaction_id,
        "currency": payment.currency,
        "gross": payment.amount,
        "fee": "0" if payment.currency == "JPY" else "0.00",
        "net": changed.get("gross", payment.amount),
    } | changed


def send(merchant, name, *lines):
    path = place(merchant) / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, restval="")
        writer.writeheader()
        writer.writerows(lines)
    return path


def stored(merchant):
    return merchant.result()


def broken(merchant):
    frame = stored(merchant).breaks
    found = dict(zip(frame["order_no"], frame["code"], strict=True))
    return {order_no: code for order_no, code in found.items() if order_no}


def passed(merchant, number):
    return [total.passed for total in stored(merchant).control_totals if total.id == number]


def booked(merchant, count):
    recent = [one for one in merchant.payments("captured") if one.ordered_at >= "2026-11-17"]
    captured = [one for one in recent if one.currency == "EUR"][:count]
    merchant.drop("orders.csv", *map(merchant.order, captured))
    book(merchant, *captured)
    return captured


def book(merchant, *payments):
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        for one in payments:
            key = f"100042,100042001,{one.order_no}"
            ledger.write(f"L-{one.order_no},{key},capture,EUR,{one.amount},{one.ordered_at}\n")


def paid_out(*lines):
    total = sum((Decimal(one["net"]) for one in lines), Decimal())
    blank = dict.fromkeys(("order_no", "transaction_id"), "")
    sums = {"gross": str(total), "net": str(total)}
    return {**lines[0], **blank, **sums, "entry_type": "payout"}


def ingested(merchant, run_id):
    with merchant.begun(run_id) as (_, environment):
        said = ingest(run_id, environment=environment).sentence
        with environment.store.writing() as connection:
            runs.finish(connection, run_id, status="stopped", problem="", now=merchant.clock())
    return said.removeprefix("The inbox is empty: no order file has arrived. ")


def files(merchant):
    """Settlement files of the night: rows read, new, repeated and rejected of each."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, "second")
        found = order_rows.files_of_night(connection, run)
    return {
        source.name: (source.rows_read, counts.new, counts.repeat, source.rows_rejected)
        for source, counts in found
    }


def test_what_a_dry_run_read_of_settlement_is_judged_by_the_live_night(settling):
    """A settlement file tells of days, not of nights: its lines count whoever read it first."""
    first, second = booked(settling, 2)
    lines = [line(first), line(second, gross="1.00")]
    send(settling, "S1.csv", *lines, paid_out(*lines))
    settling.night(mode=Mode.DRY_RUN)
    dry = settling.told[0].sentence
    settling.night()

    assert "1 new settlement files with 3 lines accepted" in dry
    assert broken(settling) == {second.order_no: "SETTLEMENT_AMOUNT_MISMATCH"}
    assert passed(settling, "T11") == [True]
    assert "settlement/S1.csv" in [source.name for source in stored_files(settling)]


def test_a_file_that_changes_before_it_is_archived_is_refused_and_ends_no_night(
    settling, monkeypatch
):
    """The file alone is refused, as an order file is; whole, it is taken by the next night."""
    path = settling.folder / "config" / "merchants.toml"
    kept = f'archive = "{settling.folder / "kept"}"\ninbox ='
    path.write_text(path.read_text().replace("inbox =", kept, 1))
    (first,) = booked(settling, 1)
    sent = send(settling, "S1.csv", line(first))
    real = steps.settlement_file

    def read(*args, **options):
        found = real(*args, **options)
        send(settling, "S1.csv", line(first), line(first, batch_id="S2"))
        return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(steps, "settlement_file", read)
        assert settling.night() is Verdict.INCOMPLETE
    said = settling.told[0].sentence
    assert "S1.csv was refused as a whole and left where it is" in said
    assert "changed after it was read" in said
    assert sent.exists()
    settling.night()
    assert "1 new settlement files with 2 lines accepted" in settling.told[0].sentence


def stored_files(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
        return [source for source, _ in order_rows.files_of_night(connection, run)]


def test_nothing_is_called_unsettled_before_the_files_are_there(settling):
    """A file that does not come makes its night INCOMPLETE; what is due after it waits for it.

    Later files do not end that wait, and the missing one does, though it tells of nothing.
    """
    settling.configure("merchants.toml", EXPECTED)
    settling.configure("rules.toml", '\n[grace]\nsettlement = "3bd"\n')
    first, second = booked(settling, 2)
    send(settling, "S0.csv", line(first, settled_on="2026-11-10"))
    assert settling.night() is Verdict.INCOMPLETE
    assert "S20261120.csv of the gateway is not there" in settling.told[0].sentence
    settling.wait(hours=6 * 24)
    fee = {"entry_type": "fee", "order_no": "", "transaction_id": "", "gross": "0.00"}
    send(settling, "S20261126.csv", line(first, **fee, settled_on=LATER, batch_id="S9"))
    settling.night(date=LATER, skip="the nights between are not looked at")
    assert broken(settling) == {}
    assert second.order_no in list(stored(settling).pending["order_no"])
    waits = "settlement due after 2026-11-19: settlement/S20261120.csv is missing"
    assert waits in stored(settling).not_covered
    send(settling, "S20261120.csv")
    settling.night(date=LATER)
    assert broken(settling) == {second.order_no: "SETTLEMENT_MISSING"}
    assert waits not in stored(settling).not_covered


def test_the_folder_must_exist_and_be_its_own(merchant):
    declare(merchant)
    with pytest.raises(SourceMissingError, match=r"settlement\.inbox .* does not exist"):
        ingested(merchant, "first")
    path = merchant.folder / "config" / "merchants.toml"
    text = path.read_text().replace(str(place(merchant)), str(merchant.inbox))
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="give settlement files their own"):
        ingested(merchant, "second")


def test_the_first_settled_day_begins_where_the_calendar_of_the_rules_says(settling):
    """A fee booked half an hour into that day, before midnight in UTC, is a fee of that day."""
    settling.configure("rules.toml", '\n[calendar]\ntimezone = "Europe/Berlin"\n')
    (payment,) = booked(settling, 1)
    net = str(Decimal(payment.amount) - Decimal("0.30"))
    sold = line(payment, fee="0.30", net=net)
    send(settling, "S1.csv", sold, {**paid_out(sold), "fee": "0.00"})
    with (settling.folder / "ledger.csv").open("a") as ledger:
        ledger.write("F1,100042,100042001,,fee,EUR,0.30,2026-11-19T23:30:00Z\n")
    settling.night()

    result = stored(settling)
    assert "fees:EUR" in result.matches["entry_id"].tolist()
    assert "fees:EUR" not in result.pending["entry_id"].tolist()


@pytest.mark.parametrize("fees_per", ["payment", "batch", "balance"])
def test_fees_from_before_the_window_stay_with_their_payments(settling, fees_per):
    """Nobody asks about these payments any more; the ledger has the fee of each, and all agree."""
    rules = settling.folder / "config" / "rules.toml"
    said = rules.read_text().replace("[window]", "[window]\nledger_days = 5", 1)
    rules.write_text(f'{said}\n[ledger]\nfees_per = "{fees_per}"\n')
    (recent,) = booked(settling, 1)
    old = {"settled_on": "2026-10-01", "currency": "EUR", "gross": "50.00", "transaction_id": ""}
    fees = {"OLD-1": "1.00", "OLD-2": "2.00"}
    lines = [
        line(recent, **old, order_no=name, fee=fee, net=f"{50 - Decimal(fee)}")
        for name, fee in fees.items()
    ]
    send(settling, "S1.csv", *lines, {**paid_out(*lines), "fee": "0.00"})
    with (settling.folder / "ledger.csv").open("a") as ledger:
        for name, fee in fees.items():
            named = "S1" if fees_per == "batch" else name
            key = f"100042,100042001,{named}"
            ledger.write(f"F-{name},{key},fee,EUR,{fee},2026-10-02T00:00:00Z\n")
        ledger.write("P-1,100042,100042001,S1,payout,EUR,97.00,2026-10-02T00:00:00Z\n")
    settling.night()
    assert list(stored(settling).breaks["code"]) == []
    assert [each.id for each in stored(settling).control_totals if not each.passed] == []
    with settling.environment() as environment:
        assert rebuild_night("2026-11-20", out=None, environment=environment).same


def test_pay_outs_that_name_no_batch_are_held_by_amount_from_the_first_settled_day_on(settling):
    """One that was settled is booked, also some days before; others of the first days are older.

    What is older is opening balance with its money: 97.00 and 500.00 that the ledger paid out.
    """
    (recent,) = booked(settling, 1)
    sold = line(recent, settled_on="2026-11-11", gross="97.00", net="97.00", order_no="")
    sold |= {"transaction_id": "", "entry_type": "adjustment"}
    soon = sold | {"batch_id": "S2", "gross": "61.00", "net": "61.00"}
    send(settling, "S1.csv", sold, paid_out(sold), soon, paid_out(soon))
    with (settling.folder / "ledger.csv").open("a") as ledger:
        for name, amount, day in (
            ("of a batch from before and the same amount", "97.00", "10T08"),
            ("of the batch", "97.00", "12T08"),
            ("booked before its batch", "61.00", "09T12"),
            ("of another batch from before", "500.00", "12T09"),
            ("never paid", "450.00", "17T08"),
        ):
            ledger.write(f'"{name}",100042,100042001,,payout,EUR,{amount},2026-11-{day}:00:00Z\n')
    settling.night()

    found = stored(settling)
    rows = found.breaks[["code", "effect_ledger"]].itertuples(index=False, name=None)
    assert [*rows] == [("LEDGER_PAYOUT_ONLY", 45_000)]
    assert {"payout:EUR:S1", "payout:EUR:S2"} <= {*found.matches["entry_id"]}
    scope = [row for row in found.scope_of_assurance if "opening" in row["statement"]]
    assert [(row["currency"], row["count"], row["amount"]) for row in scope] == [
        ("EUR", 2, -59_700)
    ]
    with settling.environment() as environment:
        (older,) = opening_of("2026-11-20", environment=environment).lines
    assert (older.what, older.items, older.amount) == ("ledger entries", 2, -59_700)
    assert [each.id for each in found.control_totals if not each.passed] == []


def cash_of(merchant):
    held = stored(merchant).held
    rows = zip(*(held[name].tolist() for name in ("batch_id", "what", "amount")), strict=True)
    return {batch: (what, str(amount)) for batch, what, amount in rows}


def notes(merchant):
    run = merchant.newest()
    with merchant.environment() as environment:
        return figures_of(run, result=stored(merchant), environment=environment).notes


def test_a_line_that_could_not_be_read_leaves_its_batch_unsure_until_it_can_be(settling):
    """The nights after it judge nothing by what is left of a batch, however old; others they do.

    What one batch holds back is not paid out by another of which a line is missing here. What the
    same batch has in another currency is judged.
    """
    first, second, third = booked(settling, 3)
    kept = line(first, batch_id="KEPT")
    paid = {**paid_out(kept), "gross": "1.00", "net": "1.00"}
    lost = [line(second, batch_id="LOST"), line(third, batch_id="LOST")]
    other = line(second, batch_id="OTHER", entry_type="adjustment", gross="1.00")
    bad = {**lost[1], "gross": "much"}
    sums = {"gross": "1.00", "fee": "0.20", "net": "0.80", "currency": "GBP"}
    pounds = line(second, batch_id="LOST", entry_type="adjustment", **sums)
    rest = [paid_out(*lost), other, paid_out(other), pounds]
    rest.append({**paid_out(pounds), "fee": "0.00"})
    files = [kept, paid, lost[0], bad, *rest]
    send(settling, "S1.csv", *files)
    settling.night()
    told = cash_of(settling)
    assert told["LOST"][0] == "unsure"
    assert told["KEPT"][0] == "item"
    assert "OTHER" not in told
    settling.wait(hours=72)
    settling.night(date="2026-11-23")

    assert cash_of(settling) == told
    assert "fees:EUR" not in stored(settling).matches["entry_id"].tolist()
    unread = stored(settling).unverified
    of_orders = unread["order_no"].ne("")
    assert {*unread["entry_id"][~of_orders]} == {"held:EUR:LOST", "payout:EUR:LOST"}
    assert unread["order_no"][of_orders].tolist() == [third.order_no]
    assert any("line 5 of settlement/S1.csv (gross)" in note for note in notes(settling))
    with settling.environment() as environment:
        assert rebuild_night("2026-11-23", out=None, environment=environment).same

    send(settling, "S1.csv", kept, paid, *lost, *rest)
    settling.wait(hours=24)
    settling.night(date="2026-11-24")
    assert cash_of(settling) == {"KEPT": told["KEPT"]}
    assert not any("S1.csv" in note for note in notes(settling))
