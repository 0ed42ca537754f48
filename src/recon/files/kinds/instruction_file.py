"""Instruction files of an inbox (`instructions-*`): payments, subscriptions and payouts.

Every row carries its own request id. The process that reads a file has no encryption key: payouts
leave it as `ReadPayout`, whose repr shows only the masked payee, and `sealed` encrypts them where
the key is. The reject of a payout names the column and the problem, never the value.

Payout columns are named after the fields of the API document (2.9), with dots for nested objects:
`beneficiary.bank_details.iban`. A payee has at most one document, in
`beneficiary.person_documents.<field>`, with its labels separated by semicolons.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from recon.config.declared import mistakes_of
from recon.config.file_layouts import INSTRUCTIONS_PREFIX, STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import RawTable, refuse
from recon.files.typing.control_figures import refuse_unproven
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.files.typing.typed_table import TableReading, reading_of, table_of
from recon.instructions.sealing import Seal, masked_account, payee_identity
from recon.model.errors import AmountError, ConfigurationError
from recon.model.money import format_minor_units, is_currency, parse_minor_units, wire_amount
from recon.model.terms import InstructionKind, Reject, SourceFile, SourceKind

if TYPE_CHECKING:
    from recon.gateway_client import GatewayInterface

_LIST = "beneficiary.person_documents"
_PLACEHOLDER_ID = "00000000-0000-4000-8000-000000000000"
"""Placeholder for the request id, which is generated when instructions are planned."""


@dataclass(frozen=True, slots=True)
class ReadPayout:
    """One payout as read from a file; its private fields are left out of the repr."""

    document: str = field(repr=False)
    """The fields as JSON, without request id, amount and currency."""
    payee_identity: str = field(repr=False)
    payee_shown: str
    """The masked payee, and the source amount if in another currency: shown to approvers."""


_FIELDS = """\
beneficiary.additional_info: business_area business_phone_number business_registration_number
beneficiary.additional_info: personal_email personal_id_number personal_id_type
beneficiary.additional_info: personal_mobile_number personal_net_monthly_average_income
beneficiary.additional_info: personal_phone_country_code personal_phone_area_code
beneficiary.additional_info: personal_fiscal_country
beneficiary.address: city country_code postcode state street number street_address complement
beneficiary.person_documents: file_type file_url labels
beneficiary.bank_details: account_currency account_name owner_document_number account_number
beneficiary.bank_details: bank_account_category bank_branch bank_country_code bank_code bank_name
beneficiary.bank_details: bank_street_address binding_mobile_number iban swift_code
beneficiary.bank_details: transaction_reference
beneficiary: company_name date_of_birth entity_type first_name last_name
: beneficiary_id client_data fee_paid_by
payer.additional_info: business_registration_number business_registration_type external_id
payer.additional_info: personal_email personal_id_number job
payer.address: city country_code postcode state street_address
payer: company_name date_of_birth entity_type first_name last_name
: payment_date payment_method reference source_amount source_currency swift_charge_option
: fund_source notify_url
"""
"""Object of the API document and its fields, in the document's order."""

PAYOUT_COLUMNS: tuple[str, ...] = tuple(
    f"{above}.{name}".removeprefix(".")
    for above, _, names in (line.partition(":") for line in _FIELDS.splitlines())
    for name in names.split()
)
"""Every column that a payout row may fill in addition to the common ones."""


_OF_THE_ROW = {"payment_amount": "amount", "payment_currency": "currency"}
"""Field of the API document -> the common column it is read from."""


def payout_interface(tables: Mapping[str, Any]) -> "GatewayInterface":
    """Return the interface that checks payouts, from `Settings.interface`; {}: the bundled one.

    Raises:
        ConfigurationError: naming the wrong file and key.
    """
    # The client imports its whole HTTP stack, and most processes that read files meet no payout.
    from recon.gateway_client import GatewayInterface, InterfaceError

    try:
        return GatewayInterface.of(**tables) if tables else GatewayInterface.bundled()
    except InterfaceError as error:
        raise ConfigurationError(str(error)) from error


def read_payout(
    details: Mapping[str, str],
    *,
    amount: int,
    currency: str,
    reason: str,
    interface: "GatewayInterface",
) -> ReadPayout | tuple[str, str]:
    """Return a payout that can be sent, or the (column, reason) why it is rejected.

    Two people approve it later, so whatever the client would refuse to send must be found here.
    Reasons contain no values.
    """
    from recon.gateway_client import Operation, PayoutRow, check_rows

    fields = _nested(details) | ({"reason": reason} if reason else {})
    source, leaves = details.get("source_currency", ""), details.get("source_amount", "")
    from_another = f", from {source}" if source not in {"", currency} else ""

    def on_wire(minor_units: int, currency: str) -> str:
        decimals = interface.profile.amounts.decimals_of(currency)
        return f"{wire_amount(minor_units, currency=currency, wire_decimals=decimals):f}"

    column = "amount"
    try:
        payment_amount = on_wire(amount, currency)
        if leaves and is_currency(source):
            column = "source_amount"
            minor_units = parse_minor_units(leaves, currency=source)
            fields["source_amount"] = on_wire(minor_units, source)
            if from_another:
                leaves = format_minor_units(minor_units, currency=source)
                from_another = f", from {leaves} {source}"
        row = PayoutRow.model_validate(
            fields
            | {
                "request_id": _PLACEHOLDER_ID,
                "payment_amount": payment_amount,
                "payment_currency": currency,
            }
        )
    except AmountError:
        example = format_minor_units(12345, currency=currency if column == "amount" else source)
        return column, f"is not an amount that can be sent, such as {example}"
    except ValidationError as error:
        path, what = mistakes_of(error)[0]
        return path or "(row)", f"cannot be read: {what[:100]}"
    bank = row.beneficiary.bank_details if row.beneficiary else None
    account = (bank.iban or bank.account_number) if bank else ""
    if not account and not row.beneficiary_id:
        column = "beneficiary.bank_details.iban"
        return column, "is blank, as are account_number and beneficiary_id: nobody would be paid"
    for problem in check_rows(Operation.PAYOUT, rows=[row], interface=interface):
        return _OF_THE_ROW.get(problem.field, problem.field), problem.reason
    shown = masked_account(account) if account else f"payee {row.beneficiary_id[:20]}"
    document = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return ReadPayout(document, payee_identity(row), f"{shown}{from_another}")


def _nested(details: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, text in details.items():
        *above, name = path.split(".")
        branch = tree
        for part in above:
            branch = branch.setdefault(part, {})
        branch[name] = text.split(";") if path == f"{_LIST}.labels" else text
    documents = tree.get("beneficiary", {}).get("person_documents")
    if documents:
        tree["beneficiary"]["person_documents"] = [documents]
    return tree


NO_TABLES: Mapping[str, Any] = {}

INSTRUCTION_FILE = TableSchema(
    SourceKind.INSTRUCTIONS,
    (
        TableColumn("merchant_id", Grammar.ACCOUNT),
        TableColumn("account_id", Grammar.ACCOUNT),
        TableColumn("kind", frozenset(map(str, InstructionKind))),
        TableColumn("request_id", Grammar.TRANSACTION),
        TableColumn("order_no", Grammar.ORDER_KEY, required=False),
        TableColumn("transaction_id", Grammar.TRANSACTION, required=False),
        TableColumn("currency", Cell.CURRENCY, required=False),
        TableColumn("amount", Cell.AMOUNT, required=False),
        TableColumn("reason", Grammar.REASON, required=False),
        TableColumn("review_flag", Grammar.CODE, required=False),
        TableColumn("recurring_id", Grammar.TRANSACTION, required=False),
        TableColumn("contract_name", Grammar.NAME, required=False),
    ),
    needs_line_end=True,
)

_KIND = InstructionKind
_OF_PAYMENT = frozenset({_KIND.CAPTURE, _KIND.REFUND, _KIND.CANCEL, _KIND.REVIEW})
_WANTS: Mapping[InstructionKind, frozenset[str]] = {
    **dict.fromkeys(_OF_PAYMENT, frozenset({"order_no", "transaction_id", "currency", "amount"})),
    _KIND.CANCEL_SUBSCRIPTION: frozenset({"recurring_id", "contract_name", "currency"}),
    _KIND.PAYOUT: frozenset({"currency", "amount"}),
}
_ALLOWS: Mapping[InstructionKind, frozenset[str]] = {
    **dict.fromkeys(_OF_PAYMENT, frozenset({"reason"})),
    _KIND.REVIEW: frozenset({"reason", "review_flag"}),
    _KIND.CANCEL_SUBSCRIPTION: frozenset({"reason"}),
    _KIND.PAYOUT: frozenset({"reason"}),
}
_CHECKED = (
    *("order_no", "transaction_id", "currency", "amount", "review_flag"),
    *("recurring_id", "contract_name"),
)


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """The content of an instruction file."""

    actions: tuple[Mapping[str, Any], ...]
    """One mapping per accepted row, in the columns of an action."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...] = ()
    private: str = ""
    """Why it must not be archived; also "" if it is not to be archived."""
    payouts: Mapping[int, ReadPayout] = field(default_factory=dict, repr=False)
    """Position in `actions` -> a payout that is not encrypted yet."""


def is_instruction_file(path: Path) -> bool:
    """Return whether a file of the inbox holds instructions rather than orders."""
    return path.name.lower().startswith(INSTRUCTIONS_PREFIX)


def checked_instructions(
    file: FileBytes,
    *,
    rules: Rules,
    review_flags: frozenset[str],
    interface: Mapping[str, Any] = NO_TABLES,
    layout: FileLayout = STANDARD,
) -> tuple[TableReading, dict[int, ReadPayout]]:
    """Read and check every row; also return row number -> payout that can be sent.

    Args:
        file: Name and bytes of the file.
        rules: How codes are mapped.
        review_flags: The flags that a review may set.
        interface: `Settings.interface`, used to check payouts; {} for the bundled one.
        layout: How the file is written; payout columns always have their own names.

    Raises:
        SourceUnreadableError: the content is not what the name declares, or columns are missing.
    """
    layout = layout.of_all_rows()  # every row of such a file moves money
    known = read_of(INSTRUCTION_FILE, layout=layout) | frozenset(PAYOUT_COLUMNS)
    raw = raw_of(file, columns_read=known, layout=layout)
    reading = reading_of(raw, schema=INSTRUCTION_FILE, rules=rules, layout=layout)
    described = cache(partial(payout_interface, interface))
    payouts: dict[int, ReadPayout] = {}
    table = table_of(reading, schema=INSTRUCTION_FILE)
    for number, row in zip(table.rows.tolist(), _rows(table.frame), strict=True):
        details = _details(raw, row=number)
        checked = _checked(row, details=details, review_flags=review_flags, described=described)
        if isinstance(checked, tuple):
            reading.note(checked[0], {number: checked[1]})
        elif checked is not None:
            payouts[number] = checked
    return reading, payouts


def instruction_file_of(
    file: FileBytes, *, layout: FileLayout = STANDARD, **how: Any
) -> InstructionFile:
    """Read an instruction file; a bad cell rejects its row. `how`: see `checked_instructions`.

    Raises:
        SourceUnreadableError: the content is not what the name declares, columns are missing, or
            its control totals differ.
    """
    reading, payouts = checked_instructions(file, layout=layout, **how)
    table = table_of(reading, schema=INSTRUCTION_FILE)
    # Values are left out: a shifted row may hold a payee's account in any column.
    rejects = tuple(replace(reject, value="") for reject in table.rejects)
    refuse_unproven(
        file.path,
        declared=reading.raw.declared,
        counted=table.counted,
        rejects=rejects,
        layout=layout,
    )
    closed = {at: payouts[n] for at, n in enumerate(table.rows.tolist()) if n in payouts}
    ignored = tuple(name for name in table.ignored_columns if name not in PAYOUT_COLUMNS)
    actions = tuple(map(_action, _rows(table.frame)))
    return InstructionFile(actions, rejects, table.source_file, ignored, payouts=closed)


def sealed(read: InstructionFile, *, seal: Seal | None) -> InstructionFile:
    """Encrypt the payouts of a file; without a seal, a file that has any is refused as a whole.

    Raises:
        SourceUnreadableError: it has payouts, and there is no seal.
    """
    if not read.payouts:
        return read
    if seal is None:
        # The whole file waits: rejected rows would not be read again once the key is there.
        problem = "holds payouts, and RECON_SEAL_KEY is not set: no payee is stored in clear"
        refuse(read.source_file.name, problem)
    closed = {
        position: {
            "sealed": seal.close(payout.document),
            "payee": payout.payee_shown,
            "payee_digest": seal.digest(payout.payee_identity),
            "content_digest": seal.digest(payout.document),
        }
        for position, payout in read.payouts.items()
    }
    actions = ({**action, **closed.get(at, {})} for at, action in enumerate(read.actions))
    return replace(read, actions=tuple(actions), payouts={})


def _checked(
    row: Mapping[str, Any],
    *,
    details: Mapping[str, str],
    review_flags: frozenset[str],
    described: "Callable[[], GatewayInterface]",
) -> ReadPayout | tuple[str, str] | None:
    """Return a row's payout, None for other kinds, or the (column, reason) why it is rejected."""
    kind = InstructionKind(row["kind"])
    fits = _cells_fit(row, kind=kind, review_flags=review_flags)
    if fits:
        return fits
    if details and kind is not _KIND.PAYOUT:
        return next(iter(details)), f"belongs to a payout, not to a {kind}"
    if kind is not _KIND.PAYOUT:
        return None
    return read_payout(
        details,
        amount=row["amount"],
        currency=row["currency"],
        reason=row["reason"],
        interface=described(),
    )


def _cells_fit(
    row: Mapping[str, Any], *, kind: InstructionKind, review_flags: frozenset[str]
) -> tuple[str, str] | None:
    wants, allows = _WANTS[kind], _ALLOWS[kind]
    for name in _CHECKED:
        given = row[name] is not None and row[name] != ""
        if name in wants and not given:
            return name, f"is blank; a {kind} needs it"
        if given and name not in wants and name not in allows:
            return name, f"must be blank for a {kind}"
    if row["amount"] == 0 and kind is not _KIND.REVIEW:
        return "amount", "is zero; an instruction moves money or is left out"
    flag = row["review_flag"]
    if flag and flag not in review_flags:
        return "review_flag", f"is none of {', '.join(sorted(review_flags))}"
    return None


def _action(row: Mapping[str, Any]) -> dict[str, Any]:
    amount = row["amount"] or 0
    same = (
        *("merchant_id", "account_id", "order_no", "transaction_id", "currency", "request_id"),
        *("review_flag", "recurring_id", "contract_name"),
    )
    return {
        **{name: row[name] for name in same},
        "amount": amount,
        "action": row["kind"],
        "action_amount": amount,
        "action_reason": row["reason"],
        "line": int(row["line"]),
        **dict.fromkeys(("sealed", "payee", "payee_digest", "content_digest"), ""),
    }


def _details(raw: RawTable, *, row: int) -> dict[str, str]:
    """Return the payout cells of a row that are not blank."""
    cells = {name: raw.columns[name][row].as_py() for name in PAYOUT_COLUMNS if name in raw.columns}
    return {name: text for name, text in cells.items() if text}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): None if value is pd.NA else value for name, value in record.items()}
        for record in frame.astype({"amount": "object"}).to_dict("records")
    ]
