"""Files through the door are what their readers give in this process, to the last value."""

import io
import json
import pickle
import tempfile
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.file_layouts import STANDARD, FileLayout, Trailer
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.config.settings import load_file_settings
from recon.files import reader_process
from recon.files.formats.named_bytes import read_bytes
from recon.files.kinds.instruction_file import instruction_file_of, sealed
from recon.files.reader import (
    SpooledRows,
    TableFacts,
    instruction_file,
    ledger_file,
    plain_table,
    refused_rows,
    rows_to_mend,
    table,
)
from recon.files.reader_process import BrokenPayloadError
from recon.files.typing.table_schema import schema_of
from recon.instructions.sealing import Seal
from recon.model.errors import ConfigurationError, SourceMissingError, SourceUnreadableError
from recon.model.terms import Reject, SourceFile, SourceKind
from tests.recon.files.whole_read import spooled_file

RULES = Rules()
OWN = "100042,100042001"
ORDERS = f"""merchant_id,account_id,order_no,currency,amount,status,ordered_at,\
action,action_amount,note
{OWN},A-1,EUR,10.00,paid,2026-01-05T10:00:00Z,refund,1.00,x
{OWN},A-2,EUR,10.5,paid,2026-01-05T10:00:00Z,,,x
{OWN},A-3,JPY,10,paid,2026-01-05T10:00:00Z,,,4111 1111 1111 1111
only,two
"""
LEDGER = f"""entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at
E-1,{OWN},A-1,capture,EUR,10.00,2026-01-05T10:00:00Z
E-2,{OWN},A-2,capture,EUR,ten,2026-01-05T10:00:00Z
"""
INSTRUCTIONS = f"""merchant_id,account_id,kind,request_id,order_no,transaction_id,currency,amount,\
reason,beneficiary.bank_details.iban
{OWN},capture,R-1,A-1,T-1,EUR,10.00,sent,
{OWN},payout,R-2,,,EUR,10.00,,DE89370400440532013000
{OWN},refund,R-3,A-1,T-1,EUR,0.00,,
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_an_instruction_file_is_the_same_and_its_payee_comes_back_sealed(tmp_path):
    path = written(tmp_path, "instructions-1.csv", INSTRUCTIONS)
    seal = Seal(SecretStr(Fernet.generate_key().decode()))
    how: Any = {"rules": RULES, "review_flags": frozenset({"1"}), "layout": STANDARD}
    how["interface"] = load_file_settings({}).interface
    far = instruction_file(path, **how, seal=seal, keep=True)
    near = sealed(instruction_file_of(read_bytes(path), **how), seal=seal)
    opened = [
        [{**row, "sealed": row["sealed"] and seal.open(row["sealed"])} for row in read.actions]
        for read in (far, near)
    ]
    assert opened[0] == opened[1]
    assert (far.rejects, far.source_file) == (near.rejects, near.source_file)
    assert "DE89370400440532013000" in str(opened)
    assert "DE89370400440532013000" not in json.dumps([dict(row) for row in far.actions])
    assert "bank details" in far.private
    there = rows_to_mend(path, instructs=True, **how)
    assert there == refused_rows(io.BytesIO(), path=path, instructs=True, **how) != []


def test_what_a_reader_refuses_is_refused_in_its_words(tmp_path):
    with pytest.raises(SourceMissingError, match="does not exist"):
        plain_table(tmp_path / "gone.csv", schema=schema_of(SourceKind.ORDERS), rules=RULES)
    wrong = written(tmp_path, "w.csv", "a,b\n1,2\n")
    with pytest.raises(SourceUnreadableError, match=r"w\.csv lacks the columns merchant_id"):
        plain_table(wrong, schema=schema_of(SourceKind.ORDERS), rules=RULES)
    mapped = LedgerSource(path=wrong, columns={"nobody": "a"})
    with pytest.raises(ConfigurationError, match="nobody"), ledger_file(mapped, rules=RULES):
        pass


HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,request_id"
ROW = "100042,100042001,{},EUR,10.00,paid,2026-01-05T10:00:00Z,{},{}\n"
CARD = "4242424242424242"


def _read(path, *, keep=True):
    with spooled_file(path, rules=Rules(), layout=STANDARD, keep=keep) as read:
        parts = list(read.parts())
    frames = (pd.concat(frames, ignore_index=True) for frames in zip(*parts, strict=True))
    return read, SpooledRows(*frames) if parts else SpooledRows(*[pd.DataFrame()] * 2)


@pytest.mark.parametrize(
    ("keys", "accepted"),
    [
        ([f"{4_000_000_000_000_000 + n}" for n in range(30)], 30),
        (["4111111111111112", CARD, CARD], 1),
        ([CARD, "4111111111111112", "4111111111111113"], 3),
    ],
)
def test_cards_are_judged_over_the_whole_file(tmp_path, keys, accepted):
    """A column numbered like cards is left alone, and a card is refused, in the same column."""
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "\n" + "".join(ROW.format(key, "", "") for key in keys))

    assert len(_read(path)[1].orders) == accepted


def test_a_whole_file_wish_and_a_trailer_hold(tmp_path):
    layout = FileLayout(trailer=Trailer(word="END", rows=2, amount=3), whole_file=True)
    path = tmp_path / "orders.csv"
    rows = "".join(ROW.format(f"A-{n}", "capture", f"R{n}") for n in range(5))
    for text, told in (
        (rows + "END,6,50.00\n", "declares 6 rows and has 5"),
        (rows + "END,5,50.01\n", "declares 50.01 EUR and its rows have 50.00"),
        (rows.replace("A-0", "A 0") + "END,5,50.00\n", "has 1 rows that cannot be read"),
    ):
        path.write_text(HEADER + "\n" + text)
        with (
            pytest.raises(SourceUnreadableError, match=told),
            spooled_file(path, rules=Rules(), layout=layout, keep=False),
        ):
            pass
    path.write_text(HEADER + "\n" + rows + "END,5,50.00\n")
    with spooled_file(path, rules=Rules(), layout=layout, keep=False) as read:
        assert sum(len(part.actions) for part in read.parts()) == 5


FACTS = TableFacts(
    (Reject(SourceKind.ORDERS, "o.csv", 3, "amount", "is “blank”", "\\udcff", "100042"),),
    SourceFile(SourceKind.ORDERS, "o.csv", "a" * 64, 10, 2, 1, 1, 0, 2**53 + 1),
    ("note",),
    "",
)


@pytest.fixture
def file():
    with tempfile.TemporaryFile() as file:
        yield file


def test_facts_come_back_as_they_were(file):
    reader_process.write_facts(FACTS, of=table, into=file)
    assert reader_process.read_facts(file, of=table) == FACTS


def test_a_refusal_comes_back_in_place_of_facts(file):
    reader_process.write_facts(FACTS, of=table, into=file)
    reader_process.write_refusal(ConfigurationError("no such column"), into=file)
    with pytest.raises(ConfigurationError, match=r"^no such column$"):
        reader_process.read_facts(file, of=table)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"=",
        b"=[]",
        b"?{}",
        b"=" + json.dumps([[], "no file", [], ""]).encode(),
        b"!not json",
        b"!7",
        b"=" + pickle.dumps(FACTS),
        b"\x80\x04.",
    ],
)
def test_what_no_reader_writes_is_not_taken(file, told):
    file.write(told)
    with pytest.raises(BrokenPayloadError):
        reader_process.read_facts(file, of=table)


def test_a_strange_refusal_is_an_unreadable_file(file):
    file.write(b"!" + json.dumps(["SystemExit", "bye"]).encode())
    with pytest.raises(SourceUnreadableError, match=r"^bye$"):
        reader_process.read_facts(file, of=table)


def write_frame(frame, *, into):
    """As a task writes its rows."""
    found = pa.Table.from_pandas(frame, preserve_index=False)
    reader_process.write_batches(found.to_batches(), schema=found.schema, into=into)


def test_a_frame_whose_text_points_outside_is_not_taken():
    rows = io.BytesIO()
    write_frame(pd.DataFrame({"order_no": pd.Series(["ABCDEFGH"] * 4, dtype="str")}), into=rows)
    content = bytearray(rows.getvalue())
    content[content.index(b"ABCDEFGH") :][:1] = b"\xff"
    at = content.index(b"ABCDEFGH")
    content[at : at + 2] = b"\xff\xff"
    with tempfile.TemporaryFile() as file:
        file.write(bytes(content))
        file.seek(0)
        with pytest.raises(BrokenPayloadError):
            reader_process.read_frame(file)
