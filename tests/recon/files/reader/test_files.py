"""Files through the door are what their readers give in this process, to the last value."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.file_layouts import STANDARD
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.config.settings import load_file_settings
from recon.files.formats.named_bytes import read_bytes
from recon.files.kinds.bank_file import bank_file_of
from recon.files.kinds.instruction_file import instruction_file_of, sealed
from recon.files.kinds.ledger_file import read_ledger
from recon.files.reader import (
    bank_facts,
    bank_file,
    file_reader,
    instruction_file,
    ledger_file,
    order_file,
    plain_table,
    rows_to_mend,
    settlement_file,
)
from recon.files.reader.files import refused_instructions, refused_orders
from recon.files.typing.table_schema import SETTLEMENT_FILE, schema_of
from recon.files.typing.typed_table import read_table
from recon.instructions.sealing import Seal
from recon.model.errors import ConfigurationError, SourceMissingError, SourceUnreadableError
from recon.model.words import SourceKind
from tests.recon.files.bank_documents import CALM, camt, entry
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
SETTLEMENT = f"""batch_id,merchant_id,account_id,settled_on,entry_type,\
order_no,transaction_id,reference_no,currency,gross,fee,net,request_id
B-1,{OWN},2026-01-05,capture,A-1,T,G,EUR,9.00,0.50,8.50,
B-1,{OWN},2026-01-05,capture,A-1,T,G,EUR,9.00,0.50,8.51,
"""
INSTRUCTIONS = f"""merchant_id,account_id,kind,request_id,order_no,transaction_id,currency,amount,\
reason,beneficiary.bank_details.iban
{OWN},capture,R-1,A-1,T-1,EUR,10.00,sent,
{OWN},payout,R-2,,,EUR,10.00,,DE89370400440532013000
{OWN},refund,R-3,A-1,T-1,EUR,0.00,,
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(text)
    return path


def test_an_order_file_is_the_same(tmp_path: Path) -> None:
    """Rows with and without an action, rejects, counts, and why it is private."""
    path = written(tmp_path, "orders.csv", ORDERS)
    with (
        order_file(path, rules=RULES, layout=STANDARD, keep=True) as far,
        spooled_file(path, rules=RULES, layout=STANDARD, keep=True) as near,
    ):
        for there, here in zip(far.parts(), near.parts(), strict=True):
            pd.testing.assert_frame_equal(there.orders, here.orders)
            pd.testing.assert_frame_equal(there.actions, here.actions)
        assert far.facts == near.facts
    assert len(near.facts.rejects) == 2
    assert near.facts.private


@pytest.mark.parametrize(
    ("kind", "text"), [(SourceKind.ORDERS, ORDERS), (SourceKind.LEDGER, LEDGER)]
)
def test_a_plain_table_is_the_same(tmp_path: Path, kind: SourceKind, text: str) -> None:
    """As `recon reconcile` reads its files."""
    path = written(tmp_path, "t.csv", text)
    far, near = (
        plain_table(path, schema=schema_of(kind), rules=RULES),
        read_table(path, kind=kind, rules=RULES),
    )
    pd.testing.assert_frame_equal(far.frame, near.frame)
    assert far.facts[:3] == (near.rejects, near.source_file, near.ignored_columns)
    assert near.rejects


def test_a_ledger_is_the_same(tmp_path: Path) -> None:
    """Its entries and what could not be read of it."""
    source = LedgerSource(path=written(tmp_path, "l.csv", LEDGER))
    near = read_ledger(source, environment={}, rules=RULES)
    with ledger_file(source, rules=RULES) as far:
        pd.testing.assert_frame_equal(pd.concat(far.parts(), ignore_index=True), near.entries)
        assert far.facts[:2] == (near.rejects, near.source_file)
    query = LedgerSource(url=SecretStr("sqlite://"), query="select 1")
    with pytest.raises(SourceMissingError, match="is no file"), ledger_file(query, rules=RULES):
        pass


def test_a_settlement_file_is_the_same(tmp_path: Path) -> None:
    """Its lines and what could not be read of it."""
    path = written(tmp_path, "s.csv", SETTLEMENT)
    far = settlement_file(path, rules=RULES, layout=STANDARD)
    near = read_table(path, kind=SourceKind.SETTLEMENT, rules=RULES, schema=SETTLEMENT_FILE)
    pd.testing.assert_frame_equal(far.frame, near.frame[far.frame.columns])
    assert far.facts[:2] == (near.rejects, near.source_file)


def test_an_instruction_file_is_the_same_and_its_payee_comes_back_sealed(tmp_path: Path) -> None:
    """What differs is the seal itself, which is never the same twice; no payee is in clear."""
    path = written(tmp_path, "instructions-1.csv", INSTRUCTIONS)
    seal = Seal(SecretStr(Fernet.generate_key().decode()))
    how: Any = {"rules": RULES, "review_flags": frozenset({"1"}), "layout": STANDARD}
    how["interface"] = load_file_settings({}).interface
    far, private = instruction_file(path, **how, seal=seal, keep=True)
    near = sealed(instruction_file_of(read_bytes(path), **how), seal=seal)
    opened = [
        [{**row, "sealed": row["sealed"] and seal.open(row["sealed"])} for row in read.actions]
        for read in (far, near)
    ]
    assert opened[0] == opened[1]
    assert (far.rejects, far.source_file, far.refused) == (
        near.rejects,
        near.source_file,
        near.refused,
    )
    assert "DE89370400440532013000" in str(opened)
    assert "DE89370400440532013000" not in json.dumps([dict(row) for row in far.actions])
    assert "bank details" in private
    there = rows_to_mend(path, instructs=True, **how)
    assert there == refused_instructions(io.BytesIO(), path=path, **how) != []


def test_refused_rows_are_the_same(tmp_path: Path) -> None:
    """As they are written to be mended."""
    path = written(tmp_path, "orders.csv", ORDERS)
    far = rows_to_mend(path, rules=RULES, layout=STANDARD)
    assert far == refused_orders(io.BytesIO(), path=path, rules=RULES, layout=STANDARD) != []


def test_what_a_reader_refuses_is_refused_in_its_words(tmp_path: Path) -> None:
    """A missing file, a wrong header and a wrong mapping each stay what they are."""
    with pytest.raises(SourceMissingError, match="does not exist"):
        plain_table(tmp_path / "gone.csv", schema=schema_of(SourceKind.ORDERS), rules=RULES)
    wrong = written(tmp_path, "w.csv", "a,b\n1,2\n")
    with pytest.raises(SourceUnreadableError, match=r"w\.csv lacks the columns merchant_id"):
        plain_table(wrong, schema=schema_of(SourceKind.ORDERS), rules=RULES)
    mapped = LedgerSource(path=wrong, columns={"nobody": "a"})
    with pytest.raises(ConfigurationError, match="nobody"), ledger_file(mapped, rules=RULES):
        pass


def test_what_a_file_took_is_known(tmp_path: Path) -> None:
    """Memory and time of the reader of the last file, for whoever measures."""
    path = written(tmp_path, "t.csv", ORDERS)
    plain_table(path, schema=schema_of(SourceKind.ORDERS), rules=RULES)
    ended = file_reader().ended
    assert ended is not None
    assert 0 < ended.peak_bytes < 512 * 2**20
    assert (ended.exit, ended.in_time) == (0, True)


def test_a_statement_of_a_bank_is_the_same(tmp_path: Path) -> None:
    """Entries, statements and notes; one that does not add up is refused with the same words."""
    path = tmp_path / "b.xml"
    path.write_text(camt(CALM + entry("250.50")))
    here = bank_file_of(read_bytes(path), rules=RULES)
    with bank_file(path, rules=RULES) as through:
        pd.testing.assert_frame_equal(through.source.entries, here.source.entries)
        parts = pd.concat([*through.parts()], ignore_index=True)
        pd.testing.assert_frame_equal(parts, here.source.entries)
    assert through.facts == bank_facts(path, rules=RULES)
    assert through.facts.statements == here.source.statements
    assert through.facts.source_file == here.source_file
    path.write_text(camt(CALM + entry("250.51")))
    with (
        pytest.raises(SourceUnreadableError, match=r"0\.01 EUR apart"),
        bank_file(path, rules=RULES),
    ):
        pass
    with pytest.raises(SourceUnreadableError, match=r"0\.01 EUR apart"):
        bank_facts(path, rules=RULES)
