import csv

import pytest
from cryptography.fernet import Fernet

from recon.config.file_layouts import STANDARD
from recon.config.settings import load_file_settings
from recon.model.errors import ConfigurationError, OutputError, SourceUnreadableError
from recon.steps.files.order_files import check_file, mended_name, write_mendable
from tests.recon.files.whole_read import spooled_file

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,request_id"
GOOD = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z,refund,R-1"
MERCHANTS = """
[accounts."100042/100042001"]
inbox = "in"
reports = "out"
[[accounts."100042/100042001".layouts]]
files = "de-*.csv"
delimiter = ";"
decimal_sign = ","
columns = {{ status = "stand" }}
words = {{ status = {{ bezahlt = "paid" }} }}
{more}
[accounts."100042/100042002"]
inbox = "in"
reports = "out"
[accounts."100043/1"]
inbox = "in"
reports = "out"
"""


def settings_of(tmp_path, more="", **variables):
    (tmp_path / "conf").mkdir(exist_ok=True)
    (tmp_path / "conf" / "merchants.toml").write_text(MERCHANTS.format(more=more))
    return load_file_settings({"RECON_CONFIG_DIR": str(tmp_path / "conf"), **variables})


def account_of(settings):
    return settings.accounts["100042/100042001"]


def test_a_layout_that_names_no_column_of_ours_is_told(tmp_path):
    settings = settings_of(tmp_path, more='constants = { merchant = "1" }')
    with pytest.raises(ConfigurationError, match=r'"de-\*\.csv": constants\.merchant is none of'):
        check_file(tmp_path / "absent.csv", account=account_of(settings), settings=settings)


def test_what_the_layout_does_not_explain_is_not_accepted_in_another_meaning(tmp_path):
    """1.500 of a file with decimal commas must not come back as one and a half dinars."""
    settings = settings_of(tmp_path)
    path, out = tmp_path / "de-1.csv", tmp_path / "mended-de-1.csv"
    row = "100042;100042001;A-1;KWD;1.500;bezahlt;2026-01-05T10:00:00Z;;"
    path.write_text(f"{HEADER.replace(',', ';').replace('status', 'stand')}\n{row}\n")
    write_mendable(path, out=out, account=account_of(settings), settings=settings)
    (told,) = csv.DictReader(out.read_text().splitlines())
    assert (told["amount"], told["status"], told["rejected_text"]) == ("", "paid", "amount: 1.500")


def test_instruction_files_come_back_as_instruction_files(tmp_path):
    settings = settings_of(tmp_path, RECON_SEAL_KEY=Fernet.generate_key().decode())
    account = account_of(settings)
    header = "merchant_id,account_id,kind,request_id,order_no,transaction_id,currency,amount"
    path = tmp_path / "instructions-1.csv"
    path.write_text(
        f"{header},beneficiary_id\n100042,100042001,refund,R-1,A-1,T-1,EUR,1.00,\n"
        "100042,100042001,refund,R-2,A-1,T-1,EUR,0.00,\n100042,100042001,refund,R-3,A-1,,EUR,1.00,B\n"
    )
    checked = check_file(path, account=account, settings=settings)
    assert (checked.actions, len(checked.rejects)) == ({"refund": 1}, 2)
    out = tmp_path / mended_name(path.name)
    assert out.name == "instructions-mended-1.csv"
    assert write_mendable(path, out=out, account=account, settings=settings) == (out, 2)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["request_id"], row["beneficiary_id"]) for row in rows] == [
        ("R-2", ""),
        ("R-3", "B"),
    ]
    assert check_file(out, account=account, settings=settings).source.rows_accepted == 0


def test_nothing_is_written_over_and_nothing_without_a_refused_row(tmp_path):
    settings = settings_of(tmp_path)
    account = account_of(settings)
    path, out = tmp_path / "o.csv", tmp_path / "mended-o.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n")
    assert write_mendable(path, out=out, account=account, settings=settings) is None
    path.write_text(f"{HEADER}\n{GOOD}x\n{GOOD}")
    out.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_mendable(path, out=out, account=account, settings=settings)
    assert out.read_text() == "mine"
    path.write_text(f'{HEADER}\n"{GOOD}\n')
    with pytest.raises(SourceUnreadableError, match="never closed"):
        write_mendable(path, out=None, account=account, settings=settings)


def test_a_mended_file_holds_no_formula_and_is_read_as_it_was(tmp_path):
    """A reason that a spreadsheet would run comes behind an apostrophe, and back without it."""
    settings = settings_of(tmp_path)
    path, out = tmp_path / "o.csv", tmp_path / "mended-o.csv"
    row = GOOD.replace("10.00", "10.5")
    path.write_text(f"{HEADER},action_reason\n{row},=1+1\n=cmd,two\n")
    account = account_of(settings)
    write_mendable(path, out=out, account=account, settings=settings)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [cell for each in rows for cell in each.values() if cell[:1] in set("=+@")] == []
    assert rows[0]["action_reason"] == "'=1+1"
    out.write_text(out.read_text().replace(",10.5,", ",10.50,", 1))
    with spooled_file(out, rules=settings.rules, layout=STANDARD, keep=False) as read:
        assert [part.actions["action_reason"].tolist() for part in read.parts()] == [["=1+1"]]
