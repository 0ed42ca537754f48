import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.fernet import Fernet
from pydantic import BaseModel, SecretStr

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.config.settings import load_file_settings
from recon.files.formats.named_bytes import read_bytes
from recon.files.kinds.instruction_file import (
    PAYOUT_COLUMNS,
    instruction_file_of,
    is_instruction_file,
    sealed,
)
from recon.gateway_client import PayoutRow
from recon.instructions.sealing import Seal
from recon.model.errors import SourceUnreadableError

SEAL = Seal(SecretStr(Fernet.generate_key().decode()))
IBAN = "DE89370400440532013000"
REFUND = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "kind": "refund",
    "request_id": "R-1",
    "order_no": "A-1",
    "transaction_id": "T1",
    "currency": "EUR",
    "amount": "12.50",
    "reason": "late",
}
CARD = "4111111111111111"
SUBSCRIPTION = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "kind": "cancel_subscription",
    "request_id": "S-1",
    "currency": "EUR",
    "recurring_id": "REC-7",
    "contract_name": "Gold",
}
PAYOUT = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "kind": "payout",
    "request_id": "P-1",
    "currency": "EUR",
    "amount": "250.00",
    "reason": "supplier",
    "beneficiary.bank_details.iban": IBAN,
    "beneficiary.bank_details.account_name": "Ana Example",
    "beneficiary.date_of_birth": "1980-02-29",
    "payment_date": "2026-11-20",
}


FROM_DOLLARS = {"source_currency": "USD", "source_amount": "300.00"}


def _write(path, *rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _read(folder, *rows, seal=SEAL):
    path = folder / "instructions-1.csv"
    _write(path, *rows)
    flags = frozenset({"1"})
    read = instruction_file_of(read_bytes(path), rules=Rules(), review_flags=flags)
    return sealed(read, seal=seal)


def test_every_kind_of_a_file_becomes_an_action(tmp_path):
    read = _read(tmp_path, REFUND, SUBSCRIPTION, PAYOUT)

    assert read.rejects == ()
    assert [(a["action"], a["amount"], a["request_id"]) for a in read.actions] == [
        ("refund", 1_250, "R-1"),
        ("cancel_subscription", 0, "S-1"),
        ("payout", 25_000, "P-1"),
    ]
    counts = read.source_file
    assert (counts.rows_read, counts.rows_accepted, counts.rows_rejected) == (3, 3, 0)


def test_no_layout_leaves_an_instruction_out(tmp_path):
    path, flags = tmp_path / "instructions-1.csv", frozenset({"1"})
    _write(path, {**REFUND, "order_no": ""}, PAYOUT)
    layout = FileLayout.model_validate({"skip": [{"column": "reason", "words": ["late"]}]})
    read = instruction_file_of(read_bytes(path), rules=Rules(), review_flags=flags, layout=layout)
    assert [(a["action"], a["amount"]) for a in read.actions] == [("payout", 25_000)]
    assert [reject.line for reject in read.rejects] == [2]
    counts = read.source_file
    assert (counts.rows_read, counts.rows_rejected, counts.rows_skipped) == (2, 1, 0)


def test_a_payout_shows_nothing_before_it_is_sealed(tmp_path):
    path = tmp_path / "instructions-3.csv"
    _write(path, PAYOUT)
    read = instruction_file_of(read_bytes(path), rules=Rules(), review_flags=frozenset())

    assert IBAN not in repr(read)
    assert IBAN in read.payouts[0].document
    assert sealed(read, seal=SEAL).payouts == {}


def test_a_payee_leaves_the_file_sealed(tmp_path):
    (action,) = _read(tmp_path, PAYOUT).actions
    told = {name: value for name, value in action.items() if name != "sealed"}

    assert "Ana" not in str(told)
    assert IBAN not in str(told)
    assert action["payee"] == "DE…3000"
    assert IBAN in SEAL.open(action["sealed"])
    assert "Ana" not in action["sealed"]


@pytest.mark.parametrize(
    ("source", "shown", "kept"),
    [
        (FROM_DOLLARS, "DE…3000, from 300.00 USD", "300.00"),
        ({"source_currency": "USD"}, "DE…3000, from USD", None),
        (
            {"source_currency": "JPY", "source_amount": "40000"},
            "DE…3000, from 40000 JPY",
            "40000.00",
        ),
        ({"source_currency": "EUR", "source_amount": "250.00"}, "DE…3000", "250.00"),
    ],
)
def test_who_approves_a_payout_sees_what_it_is_paid_from(tmp_path, source, shown, kept):
    read = _read(tmp_path, PAYOUT | source)
    (action,) = read.actions

    assert read.rejects == ()
    assert (action["payee"], action["currency"], action["amount"]) == (shown, "EUR", 25_000)
    assert json.loads(SEAL.open(action["sealed"])).get("source_amount") == kept


def test_a_payout_is_checked_by_the_gateways_own_interface(tmp_path):
    tables = load_file_settings({}).interface
    own = {"amounts": {"of_currency": {"JPY": 0}}, "batch": {"payout": {"grammar": {}}}}
    own["batch"]["payout"]["grammar"] = {"fee_paid_by": "PAYER|NOBODY"}
    wider = tables | {"profiles": tables["profiles"] | {"user": own}}
    path = tmp_path / "instructions-4.csv"
    yen = {"fee_paid_by": "NOBODY", "source_currency": "JPY", "source_amount": "40000.00"}
    _write(path, PAYOUT | yen)
    how: Any = {"rules": Rules(), "review_flags": frozenset(), "interface": wider}
    read = instruction_file_of(read_bytes(path), **how)

    assert json.loads(read.payouts[0].document)["source_amount"] == "40000"
    assert instruction_file_of(read_bytes(path), **how | {"interface": tables}).payouts == {}


def test_the_same_account_is_the_same_payee_however_it_is_spaced(tmp_path):
    other = PAYOUT | {"request_id": "P-2", "amount": "1.00", "reason": "again"}
    other["beneficiary.bank_details.account_name"] = "A. Example"
    third = PAYOUT | {
        "request_id": "P-3",
        "beneficiary.bank_details.iban": "GB82WEST12345698765432",
    }
    one, two, three = (a["payee_digest"] for a in _read(tmp_path, PAYOUT, other, third).actions)

    assert one == two != three


@pytest.mark.parametrize(
    ("row", "column", "word"),
    [
        (REFUND | {"order_no": ""}, "order_no", "is blank"),
        (REFUND | {"transaction_id": ""}, "transaction_id", "is blank"),
        (REFUND | {"amount": ""}, "amount", "is blank"),
        (REFUND | {"amount": "0.00"}, "amount", "is zero"),
        (REFUND | {"amount": "1,00"}, "amount", "is not"),
        (REFUND | {"request_id": ""}, "request_id", "is blank"),
        (REFUND | {"recurring_id": "REC-7"}, "recurring_id", "must be blank"),
        (REFUND | {"payment_date": "2026-11-20"}, "payment_date", "belongs to a payout"),
        (REFUND | {"kind": "pay"}, "kind", "is none of"),
        (REFUND | {"kind": "review", "review_flag": "2"}, "review_flag", "is none of 1"),
        (SUBSCRIPTION | {"contract_name": ""}, "contract_name", "is blank"),
        (SUBSCRIPTION | {"contract_name": "G" * 256}, "contract_name", "at most 255"),
        (SUBSCRIPTION | {"contract_name": f"{CARD} plan"}, "contract_name", "card number"),
        (PAYOUT | {"order_no": "A-1"}, "order_no", "must be blank"),
        (PAYOUT | {"payment_date": "20.11.2026"}, "payment_date", "cannot be read"),
        (PAYOUT | {"beneficiary.bank_details.iban": ""}, "beneficiary.bank_details.iban", "nobody"),
        (
            PAYOUT | {"beneficiary.bank_details.iban": IBAN[:-1] + "1"},
            "beneficiary.bank_details.iban",
            "check digits",
        ),
        (PAYOUT | {"fee_paid_by": "NOBODY"}, "fee_paid_by", "the form"),
        (PAYOUT | {"source_amount": "250.00"}, "source_currency", "is empty"),
        (PAYOUT | {"source_currency": "usd"}, "source_currency", "the form"),
        (PAYOUT | FROM_DOLLARS | {"source_amount": "300"}, "source_amount", "such as 123.45"),
        (PAYOUT | FROM_DOLLARS | {"source_amount": "0.00"}, "source_amount", "more than zero"),
        (
            PAYOUT | {"source_currency": "EUR", "source_amount": "250.01"},
            "source_amount",
            "in the same currency",
        ),
    ],
)
def test_a_bad_cell_rejects_its_row_with_line_and_column(tmp_path, row, column, word):
    read = _read(tmp_path, REFUND | {"request_id": "R-9"}, row)
    (reject,) = read.rejects

    assert (reject.line, reject.column, word in reject.reason) == (3, column, True)
    assert reject.value == ""
    assert [a["request_id"] for a in read.actions] == ["R-9"]


def test_a_shifted_row_shows_nothing_of_the_payee(tmp_path):
    """A line with a cell too many is refused without its text: an account may stand anywhere."""
    path = tmp_path / "instructions-1.csv"
    head = "merchant_id,account_id,kind,request_id,beneficiary.bank_details.iban\n"
    path.write_text(f"{head}100042,100042001,payout,P-1,x,{IBAN}\n")
    file = read_bytes(path)
    read = instruction_file_of(file, rules=Rules(), review_flags=frozenset({"1"}))

    assert len(read.rejects) == 1
    assert IBAN not in str(read)


def test_payouts_without_a_seal_key_leave_the_whole_file_waiting(tmp_path):
    with pytest.raises(SourceUnreadableError, match="RECON_SEAL_KEY is not set"):
        _read(tmp_path, REFUND, PAYOUT, seal=None)
    assert len(_read(tmp_path, REFUND, seal=None).actions) == 1


def test_only_its_name_makes_a_file_one_of_instructions():
    names: Any = ["instructions-7.csv", "Instructions-7.xlsx", "orders.csv", "my-instructions-.csv"]

    assert [is_instruction_file(Path(name)) for name in names] == [True, True, False, False]


FROM_COMMON = {"request_id", "payment_amount", "payment_currency", "reason"}
"""Fields that the common columns of the file give."""


def leaves(model, prefix=""):
    """Every field of a request, dots leading into objects."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        below = model_in(info.annotation)
        if below is not None:
            yield from leaves(below, f"{path}.")
        elif path not in FROM_COMMON:
            yield path


def model_in(annotation):
    """The model that a field holds, if it holds one."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def test_the_payout_columns_are_the_documents_fields():
    assert list(leaves(PayoutRow)) == list(PAYOUT_COLUMNS)


def test_a_process_that_reads_a_file_loads_no_http():
    """Each file is read by a process of its own: what it does not need is paid once a file."""
    code = "import sys, recon.files.reader_process; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"
