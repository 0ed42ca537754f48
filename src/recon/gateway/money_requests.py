"""Our cleared instructions to the client's rows, and its replies to our outcomes.

Implements `settlement.sender.MoneyGateway`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Self

from pydantic import SecretStr

from recon.config.settings import Settings
from recon.gateway.account import GatewayAccount, gateway_account
from recon.gateway.signer_socket import SignerSocket
from recon.gateway_client import (
    BatchRow,
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    CertificateError,
    FindingKind,
    InvalidBatchError,
    NotSentError,
    PayoutRow,
    PreparedRequest,
    RawReply,
    RefundRow,
    ReviewRow,
    Row,
    Signer,
    UnknownOutcomeError,
    UnsignedError,
    check_rows,
)
from recon.gateway_client import Operation as WireOperation
from recon.model.errors import ConfigurationError, Defect, ReconError
from recon.model.money import wire_amount
from recon.model.words import Clock, InstructionKind, Outcome
from recon.settlement.eligibility import Cleared
from recon.settlement.instruction import Instruction
from recon.settlement.sealing import Seal
from recon.settlement.sender import (
    BatchResult,
    NoReply,
    Prepared,
    Reply,
    RowResult,
    SurelyNotSent,
    Unsigned,
)
from recon.settlement.terms import terms_of

WIRE_OPERATIONS: Mapping[InstructionKind, WireOperation] = {
    InstructionKind.CAPTURE: WireOperation.CAPTURE,
    InstructionKind.REFUND: WireOperation.REFUND,
    InstructionKind.CANCEL: WireOperation.CANCEL,
    InstructionKind.REVIEW: WireOperation.REVIEW,
    InstructionKind.CANCEL_SUBSCRIPTION: WireOperation.CANCEL_SUBSCRIPTION,
    InstructionKind.PAYOUT: WireOperation.PAYOUT,
}

FIRST_REVIEW_FLAG = "1"
"""What a review sets that names no flag; the document shows no other."""


@dataclass(frozen=True, slots=True)
class InstructionWords:
    """What people said of some instructions, for a signer to check."""

    seen: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    """Instruction id -> its terms as they saw them."""
    endorsements: Sequence[Mapping[str, str]] = ()
    """The desk's: document, signature, key."""


WordsOf = Callable[[Sequence[str]], InstructionWords]
"""Instruction ids -> what people said of them."""


def no_words(_instruction_ids: Sequence[str]) -> InstructionWords:
    """Where no people are asked."""
    return InstructionWords()


class GatewayOfMoney:
    """The gateway as the sender sees it, for one account and one settle step."""

    def __init__(self, account: GatewayAccount, *, clock: Clock, words: WordsOf = no_words) -> None:
        self._account = account
        self._words = words
        self._client = account.client(clock=clock)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        account: tuple[str, str],
        clock: Clock,
        words: WordsOf = no_words,
    ) -> Self:
        """The gateway of one (merchant, account); `words` is asked only where a signer signs."""
        merchant_id, account_id = account
        declared = gateway_account(settings, merchant_id=merchant_id, account_id=account_id)
        return cls(declared, clock=clock, words=words)

    def problem(self, cleared: Cleared) -> str:
        """Why this row must not be sent at all; "" when it may."""
        try:
            row = self._row_of(cleared)
        except ReconError as error:
            return str(error)
        operation = WIRE_OPERATIONS[cleared.instruction.kind]
        problems = check_rows(operation, rows=[row], interface=self._account.interface)
        return "; ".join(f"{problem.field} {problem.reason}" for problem in problems)

    def prepare(self, kind: InstructionKind, rows: Sequence[Cleared]) -> Prepared | Unsigned:
        """Canonical bytes of one batch, or why nobody signed it."""
        try:
            request = self._client.prepare(
                WIRE_OPERATIONS[kind],
                [self._row_of(row) for row in rows],
                sign_key=self._signer([row.instruction for row in rows]),
            )
        except UnsignedError as error:
            return _unsigned(error, rows=rows)
        except (InvalidBatchError, ConfigurationError) as error:
            raise Defect(str(error)) from error
        storable = request.masked(request.body)
        return Prepared(kind, tuple(rows), storable, request.body_sha256, request)

    async def send(self, prepared: Prepared) -> Reply | SurelyNotSent | NoReply:
        """One request on a connection of its own, once."""
        try:
            raw = await self._client.transport.send(_request_of(prepared))
        except CertificateError as error:
            return SurelyNotSent(
                f"{error}; name its authority as ca_file in gateway.toml", final=True
            )
        except NotSentError as error:
            return SurelyNotSent(str(error))
        except UnknownOutcomeError as error:
            return NoReply(str(error))
        kept = _request_of(prepared).masked(raw.body)
        asked = timedelta(seconds=raw.retry_after_seconds)
        return Reply(raw.status, dict(raw.headers), raw.body, raw.received_at, kept, asked)

    def judge(self, prepared: Prepared, reply: Reply) -> BatchResult:
        """What the reply says, row by row."""
        raw = RawReply(reply.status, reply.headers, reply.body, reply.received_at)
        read = self._client.read(_request_of(prepared), raw)
        sentences = (read.return_message, *(finding.message for finding in read.findings))
        return BatchResult(
            rows=tuple(
                RowResult(
                    Outcome(row.outcome.value),
                    row.code,
                    row.message,
                    row.refund_reference_id,
                    row.transaction_id if prepared.kind is InstructionKind.PAYOUT else "",
                )
                for row in read.rows
            ),
            return_status=read.return_status,
            message="; ".join(filter(None, dict.fromkeys(sentences))),
            stop_reason=read.stop_reason,
            foreign=tuple(
                f"a row that was not asked for in the reply to a {prepared.kind}: order "
                f"{finding.order_no or 'none'}, transaction {finding.transaction_id or 'none'}"
                for finding in read.findings
                if finding.kind is FindingKind.FOREIGN_ROW
            ),
        )

    def _signer(self, instructions: Sequence[Instruction]) -> SecretStr | Signer:
        """Who signs; one elsewhere is told which instructions the rows are, and who said yes."""
        ours = self._account.credentials.sign_key
        if not isinstance(ours, SignerSocket):
            return ours
        words = self._words([instruction.instruction_id for instruction in instructions])
        rows = [
            {
                "instruction_id": instruction.instruction_id,
                "terms": terms_of(instruction),
                "seen": words.seen.get(instruction.instruction_id, {}),
            }
            for instruction in instructions
        ]
        grounds = {"rows": rows, "endorsements": list(words.endorsements)}
        return ours.on(grounds)

    def _row_of(self, cleared: Cleared) -> Row:
        instruction = cleared.instruction
        if instruction.kind is InstructionKind.PAYOUT:
            seal = Seal(self._account.settings.seal_key)
            amount = self._on_wire(instruction.amount, currency=instruction.currency)
            return _payout_row(instruction, amount=amount, seal=seal)
        if instruction.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return CancelSubscriptionRow(
                recurring_id=instruction.recurring_id, contract_name=instruction.contract_name
            )
        currency = instruction.currency
        amount = self._on_wire(instruction.amount, currency=currency)
        return _row_of(
            cleared, amount=amount, whole=self._on_wire(cleared.payment.amount, currency=currency)
        )

    def _on_wire(self, minor_units: int, *, currency: str) -> Decimal:
        """An amount with the decimals that this gateway writes.

        Raises:
            AmountError: it has more than fit; nothing is rounded.
        """
        decimals = self._account.interface.profile.amounts.decimals_of(currency)
        return wire_amount(minor_units, currency=currency, wire_decimals=decimals)


def _unsigned(error: UnsignedError, *, rows: Sequence[Cleared]) -> Unsigned:
    refused = {
        rows[position].instruction.instruction_id: f"the signer refused it: {why}"
        for position, why in error.refused.items()
        if position < len(rows)
    }
    return Unsigned(str(error), refused, final=error.final)


def _payout_row(instruction: Instruction, *, amount: Decimal, seal: Seal) -> PayoutRow:
    if not instruction.sealed:
        msg = "the payee's details were erased when this payout became final"
        raise Defect(msg)
    return PayoutRow.model_validate(
        json.loads(seal.open(instruction.sealed))
        | {
            "request_id": instruction.gateway_request_id,
            "payment_amount": amount,
            "payment_currency": instruction.currency,
        }
    )


def _request_of(prepared: Prepared) -> PreparedRequest:
    if not isinstance(prepared.request, PreparedRequest):
        msg = "a batch was prepared by something other than the gateway client"
        raise Defect(msg)
    return prepared.request


def _row_of(cleared: Cleared, *, amount: Decimal, whole: Decimal) -> BatchRow:
    """The row of one payment: what moves, and the payment's own amount."""
    instruction = cleared.instruction
    ids = {
        "transaction_id": cleared.payment.transaction_id,
        "order_no": instruction.order_no,
        "currency": instruction.currency,
    }
    match instruction.kind:
        case InstructionKind.CAPTURE:
            return CaptureRow(**ids, amount=amount)
        case InstructionKind.CANCEL:
            return CancelRow(**ids, amount=whole)
        case InstructionKind.REVIEW:
            flag = instruction.review_flag or FIRST_REVIEW_FLAG
            return ReviewRow(**ids, amount=whole, review_flag=flag)
        case _:
            return RefundRow(
                **ids,
                amount=whole,
                refund_amount=amount,
                # The reason comes back in the reply and stands in the portal: ours names the row.
                refund_reason=instruction.reason or f"recon {instruction.instruction_id}",
                refund_reference=instruction.instruction_id,
            )
