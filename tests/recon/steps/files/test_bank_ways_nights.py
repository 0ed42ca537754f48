"""Every way in which statements come to a live night, and every account that one bank serves."""

import logging
from datetime import date

from recon.model.nights import Mode, NightRequest
from recon.steps.night.report import Workbooks
from reports.reading.workbook_check import sheet_totals
from reports.workbook import write_workbook
from tests.recon.files.bank_documents import balance, camt, entry, head, payment
from tests.recon.files.sftp_server import PASSWORD, USER, sftp_server
from tests.recon.resting import resting
from tests.recon.steps.files.test_bank_nights import (
    OTHERS,
    banking,
    inbox,
    sale,
    sealed,
    tell,
)
from tests.recon.steps.files.test_bank_nights import entry as row
from tests.recon.steps.files.test_settlement_files import line, paid_out, passed, send, stored

__all__ = ["banking"]

DAY = "2026-11-20"


def plus(amount, *more):
    cents = sum(round(float(one) * 100) for one in (amount, *more))
    return f"{cents // 100}.{cents % 100:02}"


def put(merchant, name, text):
    (inbox(merchant) / name).write_text(text)


def listed(amount, reference):
    """The payments behind an entry."""
    return f"<NtryDtls>{payment(amount, reference=reference)}</NtryDtls>"


def statement(amount, *, inner, more=""):
    """camt.053 of 20 November with one entry of ours."""
    closing = balance("CLBD", plus("100.00", amount))
    return camt(head() + balance("OPBD", "100.00") + closing + entry(amount, inner=inner) + more)


def states(merchant):
    return [(one["batch_id"], one["state"]) for one in sealed(merchant)["paid"]]


def test_a_report_of_the_day_shows_what_came_and_covers_nothing(banking):
    """camt.052: its booked entries count before the statement is there, and once when it is."""
    amount = sale(banking).amount
    inner = listed(amount, "BATCH-0001")
    body = head("1") + entry(amount, inner=inner)
    put(banking, "r.xml", camt(body, form="052", version="08", container="Rpt"))
    banking.night()
    assert states(banking) == [("BATCH-0001", "MATCHED")]
    assert "the bank main: no statement of it counts" in stored(banking).not_covered
    put(banking, "s.xml", statement(amount, inner=inner))
    banking.night()
    assert states(banking) == [("BATCH-0001", "MATCHED")]
    assert [one["place"] for one in sealed(banking)["counted"] if one["place"] >= 0] == [0]
    assert sum(one["amount"] for one in sealed(banking)["received"]) == round(float(amount) * 100)
    assert set(passed(banking, "T17")) == {True}


def test_statements_are_fetched_by_sftp(banking, tmp_path, monkeypatch):
    amount = sale(banking).amount
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "s.xml").write_text(statement(amount, inner=listed(amount, "BATCH-0001")))
    with sftp_server(theirs) as served:
        known = served.known_hosts(tmp_path / "known_hosts")
        declare_source(
            banking,
            f'url = "sftp://{USER}@127.0.0.1:{served.port}/"',
            f'known_hosts_file = "{known}"',
            'password_env = "BANK_PASSWORD"',
        )
        monkeypatch.setitem(banking.variables, "BANK_PASSWORD", PASSWORD)
        banking.night()
    assert states(banking) == [("BATCH-0001", "MATCHED")]
    assert [path.name for path in inbox(banking).glob("*.xml")] == ["s.xml"]


def declare_source(merchant, *lines):
    path = merchant.folder / "config" / "merchants.toml"
    own = "\n".join(('files = ["*.xml"]', *lines))
    path.write_text(f'{path.read_text()}\n[[bank."main".sources]]\n{own}\n')


def test_nothing_of_other_people_rests_anywhere(banking, caplog, capfd):
    """Database, folders, workbook by its parts, Parquet by its cells, logs, words on the screen.

    Ours stands in them, so that the search would find the others.
    """
    caplog.set_level(logging.DEBUG)
    amount = sale(banking).amount
    ours = row(amount, "BATCH-0001 CANARY-OURS", on=DAY)
    other = row("-800.00", f"{OTHERS} text", who=f"{OTHERS} side", on=DAY)
    closing = plus(amount, "200.00")
    kept = tell(banking, 1, ours, other, day=DAY, opening="1000.00", closing=closing)
    banking.night(workbooks=Workbooks(write=write_workbook, totals=sheet_totals))
    assert states(banking) == [("BATCH-0001", "MATCHED")]
    kept.unlink()
    out, err = capfd.readouterr()
    spoken = "\n".join(step.sentence for step in banking.told) + caplog.text + out + err
    places = {**dict(resting(banking.folder)), "spoken": spoken.encode()}
    held = {at for at, text in places.items() if b"Example-Canary" in text}
    assert held == set()
    named = {at for at, text in places.items() if b"BATCH-0001" in text}
    assert any(".xlsx:" in at for at in named)
    assert any(at.endswith("bank.parquet:cells") for at in named)
    assert any(b"CANARY-OURS" in places[at] for at in named)


def test_one_bank_serves_several_accounts(banking):
    """One statement has payouts of both: each night shows its own, T17 holds for the bank."""
    other = "100042002"
    config = banking.folder / "config"
    rules = config / "rules.toml"
    served = '["100042/100042001", "100042/100042002"]'
    rules.write_text(rules.read_text().replace('["100042/100042001"]', served))
    theirs = banking.folder / "settlement-2"
    theirs.mkdir()
    account, _, rest = (config / "merchants.toml").read_text().partition("\n[accounts.")
    (config / "merchants.toml").write_text(
        f"{account}\n{account.replace('100042001', other)}\n[accounts.{rest}\n"
        f'[accounts."100042/{other}".settlement]\ninbox = "{theirs}"\n'
    )
    captured = sale(banking)
    amount = captured.amount
    blank = {"order_no": "", "transaction_id": "", "entry_type": "adjustment", "account_id": other}
    sold = line(captured, **blank, batch_id="BATCH-0002", gross="55.00", net="55.00")
    send(banking, "S2.csv", sold, paid_out(sold)).rename(theirs / "S2.csv")
    entries = [row(amount, "BATCH-0001", on=DAY), row("55.00", "BATCH-0002", on=DAY)]
    closing = plus(amount, "55.00")
    tell(banking, 1, *entries, day=DAY, opening="0.00", closing=closing)
    for own, batch in (("100042001", "BATCH-0001"), (other, "BATCH-0002")):
        with banking.environment() as environment:
            request = NightRequest("100042", own, date.fromisoformat(DAY), Mode.LIVE)
            banking.run(environment, request=request)
        matches = stored(banking).matches
        shown = matches[matches["rule"].eq("bank")]
        assert shown["account_id"].tolist() == [own]
        assert (batch, "MATCHED") in states(banking)
        assert set(passed(banking, "T17")) == {True}
        assert len([one for one in sealed(banking)["counted"] if one["place"] == 0]) == 1
