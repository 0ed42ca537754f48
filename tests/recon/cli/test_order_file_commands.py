import re

import pytest

from recon.cli import main
from tests.recon.files.test_order_files import ROWS, WHOLE

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
WORDS = ([], ["--mend"])
GOOD = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z"


@pytest.fixture(autouse=True)
def _operator(tmp_path, monkeypatch):
    """An operator's folder with one account, and no database anywhere."""
    text = '[accounts."100042/100042001"]\ninbox = "in"\nreports = "out"\n'
    (tmp_path / "merchants.toml").write_text(text)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("RECON_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_file_is_checked_mended_and_checked_again(tmp_path, capsys):
    (tmp_path / "o.csv").write_text(f"{HEADER}\n{GOOD}\n{GOOD.replace('10.00', '10')}\n")
    assert main(["order-file", "check", "o.csv", "--merchant", "100042"]) == 1
    shown = capsys.readouterr()
    assert "2 rows: 1 would be accepted, 1 refused." in shown.out
    assert "Accepted: 10.00 EUR" in shown.out
    assert "line 3, amount: '10' does not have the decimals of EUR" in shown.err
    assert main(["order-file", "check", "--mend", "o.csv", "--merchant", "100042"]) == 0
    assert capsys.readouterr().out == "1 refused rows: mended-o.csv\n"
    mended = tmp_path / "mended-o.csv"
    mended.write_text(mended.read_text().replace("EUR,10,", "EUR,10.00,"))
    assert main(["order-file", "check", "mended-o.csv", "--merchant", "100042"]) == 0
    assert "1 rows: 1 would be accepted, 0 refused." in capsys.readouterr().out
    assert main(["order-file", "check", "--mend", "mended-o.csv", "--merchant", "100042"]) == 0
    assert "has no refused row" in capsys.readouterr().out


def test_an_instruction_against_its_row_is_refused_with_both_facts(tmp_path, capsys):
    more = f"{HEADER},refund_amount,action,action_amount\n"
    bad = GOOD.replace("paid", "partially_refunded")
    (tmp_path / "o.csv").write_text(f"{more}{GOOD},,refund,4.00\n{bad},2.50,refund,10.00\n")
    assert main(["order-file", "check", "o.csv", "--merchant", "100042"]) == 1
    shown = capsys.readouterr()
    assert "2 rows: 2 would be accepted, 0 refused." in shown.out
    assert (
        "line 3, action: refused, the instruction for order A-1 contradicts its own row: refund of "
        "10.00 EUR, but the row's refund_amount is 2.50 EUR\nA night compares these rows"
    ) in shown.err


def test_more_rejects_than_are_shown_are_counted(tmp_path, capsys):
    (tmp_path / "o.csv").write_text(f"{HEADER}\n" + f"{GOOD},x\n" * 30)
    assert main(["order-file", "check", "o.csv", "--merchant", "100042"]) == 1
    assert (
        "\nand 10 more; `recon order-file check FILE --mend` writes them all\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [bad[1:3] for bad in (*WHOLE, *ROWS)],
    ids=[bad[0] for bad in (*WHOLE, *ROWS)],
)
def test_every_bad_file_is_told_with_its_place_and_mended(tmp_path, capsys, name, content):
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert main(["order-file", "check", name, "--merchant", "100042"]) == 1
    checked = capsys.readouterr()
    assert name in checked.out + checked.err
    rows = re.search(r"(?m)^line \d+, [a-z_()]+: .", checked.err) is not None
    kept = "takes the other rows. Write these to" if rows else "takes nothing of it and leaves it"
    assert kept in checked.err
    assert rows == (" refused." in checked.out)
    code = main(["order-file", "check", "--mend", name, "--merchant", "100042"])
    replayed = capsys.readouterr().out
    counted = re.search(r"(\d+) refused\.", checked.out)

    assert "has no refused row" not in replayed
    if counted is None:
        assert code == 1
    else:
        assert (code, replayed.split()[0]) == (0, counted[1])


def test_a_trailer_that_does_not_tie_is_told_by_check_and_replay(tmp_path, capsys):
    layout = (
        '[[accounts."100042/100042001".layouts]]\nfiles = "*.csv"\n'
        'trailer = { word = "END", rows = 2 }\n'
    )
    declared = tmp_path / "merchants.toml"
    declared.write_text(f"{declared.read_text()}{layout}")
    (tmp_path / "o.csv").write_text(f"{HEADER}\n{GOOD}\nEND,5\n")
    codes = [main(["order-file", "check", *one, "o.csv", "--merchant", "100042"]) for one in WORDS]
    shown = capsys.readouterr()

    assert codes == [1, 1]
    assert "has no refused row" not in shown.out


def test_a_file_that_a_night_would_leave_is_no_good_file(tmp_path, capsys):
    (tmp_path / "~o.csv").write_text(f"{HEADER}\n{GOOD}\n")
    code = main(["order-file", "check", "~o.csv", "--merchant", "100042"])

    assert code == 1
    assert "A night does not take ~o.csv as it lies here: hidden" in capsys.readouterr().err
