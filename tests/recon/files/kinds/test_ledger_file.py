import sqlite3
import stat
from contextlib import closing

import pytest
from pydantic import SecretStr, ValidationError

from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import EveryColumn
from recon.files.kinds.archive import private_content, save
from recon.files.typing.table_schema import schema_of
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    PLACE_COLUMNS,
)
from recon.model.errors import (
    ConfigurationError,
    OutputError,
    SourceMissingError,
    SourceUnreadableError,
)
from recon.model.terms import SourceKind
from tests.recon.files.whole_read import read_ledgers

COLUMNS = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
ROW = ("E-1", "100042", "100042001", "A-1", "capture", "EUR", "10.00", "2026-01-05T10:00:00Z")
QUERY = f"select {COLUMNS} from entry"  # noqa: S608 - the test's own table


def database(tmp_path, *rows, amount="text"):
    """The URL of a SQLite ledger."""
    path = tmp_path / "books.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = COLUMNS.replace("amount", f"amount {amount}")
        connection.execute(f"create table entry ({columns})")
        connection.executemany("insert into entry values (?,?,?,?,?,?,?,?)", rows)
    return f"sqlite:///{path}"


def test_a_file_and_a_query_give_the_same_entries(tmp_path):
    path = tmp_path / "ledger.csv"
    path.write_text(f"{COLUMNS}\n{','.join(ROW)}\n")
    source = LedgerSource(url=SecretStr(database(tmp_path, ROW)), query=QUERY)
    of_query, _, counted = read_ledgers(source, environment={}, rules=Rules())[:3]
    of_file, rejects, _ = read_ledgers(LedgerSource(path=path), environment={}, rules=Rules())[:3]
    assert rejects == ()
    assert of_query.drop(columns="source").equals(of_file.drop(columns="source"))
    assert {name: str(kind) for name, kind in of_query.dtypes.items()} == LEDGER_COLUMNS
    assert (counted.kind, counted.rows_read, counted.rows_accepted) == (SourceKind.LEDGER, 1, 1)


def test_times_of_a_query_without_an_offset_are_of_the_ledgers_zone(tmp_path):
    """A database that keeps local time says nothing of its zone: the settings do."""
    row = (*ROW[:-1], "2026-01-05 10:00:00")
    ledger_source = {"url": database(tmp_path, row), "query": QUERY}
    tokyo = Rules.of({"calendar": {"timezone": "Asia/Tokyo"}}, source="rules.toml")

    hours = [
        read_ledgers(LedgerSource.model_validate(source), environment={}, rules=tokyo)
        .entries["booked_at"][0]
        .hour
        for source in (ledger_source, {**ledger_source, "zone": "Asia/Kolkata"})
    ]

    assert hours == [1, 4]
    with pytest.raises(ValidationError, match="Asia/Nowhere"):
        LedgerSource.model_validate({**ledger_source, "zone": "Asia/Nowhere"})


def test_tables_have_the_columns_that_the_engine_reads():
    made = {"answer", *PLACE_COLUMNS}
    for kind, columns in (
        (SourceKind.ORDERS, ORDER_COLUMNS),
        (SourceKind.GATEWAY, GATEWAY_COLUMNS),
        (SourceKind.LEDGER, LEDGER_COLUMNS),
        (SourceKind.INSTRUCTIONS, INSTRUCTION_COLUMNS),
    ):
        assert schema_of(kind).names == tuple(name for name in columns if name not in made)


def test_columns_may_be_mapped(tmp_path):
    path = tmp_path / "ledger.csv"
    path.write_text(f"{COLUMNS.replace('entry_id', 'journal')}\n{','.join(ROW)}\n")
    source = LedgerSource(path=path, columns={"entry_id": "journal"})
    assert read_ledgers(source, environment={}, rules=Rules())[0]["entry_id"].tolist() == ["E-1"]
    lacking = LedgerSource(path=path, columns={"entry_id": "journal", "transaction_id": "txn"})
    with pytest.raises(SourceUnreadableError, match="lacks the column txn"):
        read_ledgers(lacking, environment={}, rules=Rules())
    wrong = LedgerSource(path=path, columns={"entry": "journal"})
    with pytest.raises(ConfigurationError, match=r"columns\.entry is none of the columns entry_id"):
        read_ledgers(wrong, environment={}, rules=Rules())


def test_the_address_may_stand_in_the_environment(tmp_path):
    source = LedgerSource(url_env="BOOKS_URL", query=QUERY)
    variables = {"BOOKS_URL": database(tmp_path, ROW)}
    assert len(read_ledgers(source, environment=variables, rules=Rules())[0]) == 1
    with pytest.raises(ConfigurationError, match="BOOKS_URL, the ledger's address, is not set"):
        read_ledgers(source, environment={}, rules=Rules())


def test_an_absent_ledger_is_told_by_its_kind(tmp_path):
    with pytest.raises(SourceMissingError):
        read_ledgers(LedgerSource(path=tmp_path / "l.csv"), environment={}, rules=Rules())
    source = LedgerSource(url=SecretStr(f"sqlite:///{tmp_path / 'no.db'}"), query=QUERY)
    with pytest.raises(SourceUnreadableError, match=r"ledger sqlite .*no\.db does not exist"):
        read_ledgers(source, environment={}, rules=Rules())
    short = LedgerSource(url=SecretStr(database(tmp_path)), query="select entry_id from entry")
    with pytest.raises(SourceUnreadableError, match="lacks the columns merchant_id"):
        read_ledgers(short, environment={}, rules=Rules())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"layout": {"whole_file": True}}, "layout.whole_file: only files of an inbox have one"),
        ({"layout": {"done_file": ".done"}}, "layout.done_file: only files of an inbox have one"),
        ({"layout": {}, "columns": {"amount": "a"}}, "names its columns itself"),
        ({"layout": {"delimitr": ";"}}, "delimitr"),
    ],
)
def test_what_a_ledger_does_not_have_is_refused(given, told):
    with pytest.raises(ValidationError, match=told):
        LedgerSource.model_validate({"path": "books.csv", **given})


CARD = "4111111111111111"


def kept(tmp_path, text, name="a.csv"):
    """Keep this text; why not, or ""."""
    path = tmp_path / name
    path.write_text(text)
    file = read_bytes(path)
    private = private_content(raw_of(file, columns_read=EveryColumn()))
    return save(path, sha256=file.sha256, private=private, archive=tmp_path / "kept")


def test_the_same_content_is_kept_once_for_its_owner(tmp_path):
    assert kept(tmp_path, "a,b\n1,2\n") == ""
    assert kept(tmp_path, "a,b\n1,2\n", name="b.csv") == ""
    (found,) = (tmp_path / "kept").rglob("*.csv")
    assert found.read_text() == "a,b\n1,2\n"
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"a,b\n1,{CARD}\n", "card numbers in column b"),
        ("a,b\n1,x 4111-1111-1111-1111 y\n", "card numbers in column b"),
        (f"a,b\n1,2,{CARD}\n", "in a row that cannot be read"),
        ("a,beneficiary.bank_details.iban\n1,x\n", "columns of payees' bank details"),
    ],
)
def test_private_content_is_not_kept(tmp_path, text, told):
    why = kept(tmp_path, text)
    assert told in why
    assert CARD not in why
    assert not (tmp_path / "kept").exists()


def test_an_archive_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "kept").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        kept(tmp_path, "a,b\n1,2\n")
