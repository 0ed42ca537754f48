import csv
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from recon.config.file_layouts import STANDARD
from recon.config.settings import AccountSettings, FileSettings, load_file_settings
from recon.files.kinds.spooled_file import spooled_file
from recon.files.reader.door import Read
from recon.model.errors import ConfigurationError, OutputError, SourceUnreadableError, UsageError
from recon.steps.files.order_files import check_file, mended_name, the_account, write_mendable

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,request_id"
GOOD = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z,refund,R-1"
CARD = "4111111111111111"

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


def settings_of(tmp_path: Path, more: str = "", **variables: str) -> FileSettings:
    """Settings as an operator's files give them."""
    (tmp_path / "conf").mkdir(exist_ok=True)
    (tmp_path / "conf" / "merchants.toml").write_text(MERCHANTS.format(more=more))
    return load_file_settings({"RECON_CONFIG_DIR": str(tmp_path / "conf"), **variables})


def account_of(settings: FileSettings) -> AccountSettings:
    """The account that has a layout."""
    return the_account(settings, merchant_id="100042", account_id="100042001")


def test_a_check_says_what_a_night_would_read(tmp_path: Path) -> None:
    """Rows, sums, instructions, ignored columns and rejects, and nothing is written."""
    settings = settings_of(tmp_path)
    path = tmp_path / "o.csv"
    path.write_text(f"{HEADER},extra\n{GOOD},x\n{GOOD.replace('10.00', '10.5')},x\n")
    before = sorted(tmp_path.rglob("*"))
    found = check_file(path, account=account_of(settings), settings=settings)
    assert (found.source.rows_accepted, found.source.rows_rejected) == (1, 1)
    assert (found.sums, found.actions) == ({"EUR": "10.00"}, {"refund": 1})
    assert (found.layout, found.ignored_columns) == ("", ("extra",))
    assert [(r.line, r.column) for r in found.rejects] == [(3, "amount")]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_goes_through_the_layout_of_its_name(tmp_path: Path) -> None:
    """The check uses the layout that a night would use."""
    settings = settings_of(tmp_path)
    path = tmp_path / "de-1.csv"
    row = GOOD.replace(",", ";").replace("10.00", "10,00").replace("paid", "bezahlt")
    path.write_text(f"{HEADER.replace(',', ';').replace('status', 'stand')}\n{row}\n")
    found = check_file(path, account=account_of(settings), settings=settings)
    assert (found.layout, found.sums) == ("de-*.csv", {"EUR": "10.00"})


def test_a_layout_that_names_no_column_of_ours_is_told(tmp_path: Path) -> None:
    """The error names the layout, the key and the column before a file is read."""
    settings = settings_of(tmp_path, more='constants = { merchant = "1" }')
    with pytest.raises(ConfigurationError, match=r'"de-\*\.csv": constants\.merchant is none of'):
        check_file(tmp_path / "absent.csv", account=account_of(settings), settings=settings)


def test_the_merchant_is_enough_where_it_has_one_account(tmp_path: Path) -> None:
    """Several accounts need a name, and an unknown one is told the known ones."""
    settings = settings_of(tmp_path)
    assert the_account(settings, merchant_id="100043", account_id=None).inbox == Path("in")
    with pytest.raises(UsageError, match="name one with --account: 100042001, 100042002"):
        the_account(settings, merchant_id="100042", account_id=None)
    with pytest.raises(UsageError, match=r"no account 7 \(declared: 100042/100042001"):
        the_account(settings, merchant_id="7", account_id=None)


def test_refused_rows_come_as_a_file_that_is_refused_until_it_is_mended(tmp_path: Path) -> None:
    """Nothing of the file is accepted as it is; with its cells corrected all of it is."""
    settings = settings_of(tmp_path)
    bad = [
        GOOD.replace("10.00", "10.5"),
        GOOD.replace("paid", "bezahlt"),
        "only,two",
        GOOD.replace("A-1", CARD),
        GOOD.replace("refund", "refnd"),
        GOOD,  # the last line, without a line end: it may have been cut
    ]
    path, out = tmp_path / "o.csv", tmp_path / "mended-o.csv"
    path.write_text("\n".join([HEADER, GOOD, *bad]))
    account = account_of(settings)
    assert write_mendable(path, out=out, account=account, settings=settings) == (out, 6)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert CARD not in out.read_text()
    checked = check_file(out, account=account, settings=settings)
    assert checked.source.rows_accepted == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["rejected_line"] for row in rows] == ["3", "4", "5", "6", "7", "8"]
    assert rows[2]["rejected_text"] == "only,two"
    for number, row in enumerate(rows):
        right = dict(zip(HEADER.split(","), GOOD.split(","), strict=True))
        row.update(right | {"order_no": f"A-{number}", "request_id": f"R-{number}"})
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert check_file(out, account=account, settings=settings).source.rows_accepted == 6


class InThisProcess:
    """The door without a process behind it, so that a test reaches the readers."""

    @contextmanager
    def read(self, _: Path, work: Callable[..., Any], /, **arguments: object) -> Iterator[Read]:
        """What `work` makes of a file."""
        with tempfile.TemporaryFile() as rows:
            facts = work(rows, **arguments)
            rows.seek(0)
            yield Read(facts, rows)


def test_a_file_of_many_parts_is_checked_and_mended_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No order file is held whole, and what is told and written does not hang on the parts."""
    settings = settings_of(tmp_path)
    account = account_of(settings)
    path, found = tmp_path / "o.csv", []
    keys = [f"{4_000_000_000_000_000 + number}" for number in range(12)]
    rows = [GOOD.replace("A-1", key).replace("R-1", f"R-{key}") for key in keys]
    rows[3:5] = [rows[3].replace("10.00", "10.5"), "only,two"]
    path.write_text("\n".join([HEADER, *rows, ""]))
    for size in (70, 1_000_000):
        monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", size)
        monkeypatch.setattr("recon.files.reader.files.file_reader", InThisProcess)
        out = tmp_path / f"mended-{size}.csv"
        checked = check_file(path, account=account, settings=settings)
        written = write_mendable(path, out=out, account=account, settings=settings)
        found.append((checked, written == (out, 2), out.read_text()))
    assert found[0] == found[1]
    assert (checked.source.rows_accepted, checked.sums) == (10, {"EUR": "100.00"})
    assert f",{keys[3]}," in found[0][2]


def test_what_the_layout_does_not_explain_is_not_accepted_in_another_meaning(
    tmp_path: Path,
) -> None:
    """1.500 of a file with decimal commas must not come back as one and a half dinars."""
    settings = settings_of(tmp_path)
    path, out = tmp_path / "de-1.csv", tmp_path / "mended-de-1.csv"
    row = "100042;100042001;A-1;KWD;1.500;bezahlt;2026-01-05T10:00:00Z;;"
    path.write_text(f"{HEADER.replace(',', ';').replace('status', 'stand')}\n{row}\n")
    write_mendable(path, out=out, account=account_of(settings), settings=settings)
    (told,) = csv.DictReader(out.read_text().splitlines())
    assert (told["amount"], told["status"], told["rejected_text"]) == ("", "paid", "amount: 1.500")


def test_instruction_files_come_back_as_instruction_files(tmp_path: Path) -> None:
    """Rows that cannot be meant so are there too, with the columns of payouts."""
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


def test_nothing_is_written_over_and_nothing_without_a_refused_row(tmp_path: Path) -> None:
    """A file that exists stays; a clean file has nothing to mend; a torn one cannot be read."""
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


def test_a_mended_file_holds_no_formula_and_is_read_as_it_was(tmp_path: Path) -> None:
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
