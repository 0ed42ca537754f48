"""Our cleared instructions as the client's rows, signed and sent by it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import SecretStr

from recon.config.settings import Settings
from recon.gateway_client import (
    BatchReply,
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    InvalidRequestError,
    Operation,
    PayoutRow,
    PreparedRequest,
    RawReply,
    RefundRow,
    ReviewRow,
    Row,
    Signer,
    check_rows,
    read_batch_reply,
)
from recon.instructions.account import SignerSocket, gateway_account
from recon.instructions.eligibility import Eligible
from recon.instructions.instruction import Instruction, terms_of
from recon.instructions.sealing import Seal, payee_identity
from recon.model.errors import ConfigurationError, Defect, ReconError
from recon.model.money import Money
from recon.model.terms import Clock, InstructionKind

FIRST_REVIEW_FLAG = "1"
"""What a review sets that names no flag; the document shows no other."""


@dataclass(frozen=True, slots=True)
class InstructionEndorsements:
    """What people said of some instructions, for a signer to check."""

    seen: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    """Instruction id -> its terms as they saw them."""
    endorsements: Sequence[Mapping[str, str]] = ()
    """The desk's: document, signature, key."""


EndorsementsOf = Callable[[Sequence[str]], InstructionEndorsements]
"""Instruction ids -> what people said of them."""


def no_endorsements(_instruction_ids: Sequence[str]) -> InstructionEndorsements:
    """Where no people are asked."""
    return InstructionEndorsements()


class GatewayOfMoney:
    """The gateway as the sender sees it, for one (merchant, account) and one settle step.

    `endorsements` is asked only where a signer signs.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        account: tuple[str, str],
        clock: Clock,
        endorsements: EndorsementsOf = no_endorsements,
    ) -> None:
        self._account = gateway_account(settings, merchant_id=account[0], account_id=account[1])
        self._endorsements = endorsements
        self._client = self._account.client(clock=clock)

    def problem(self, eligible: Eligible) -> str:
        """Why this row must not be sent at all; "" when it may."""
        try:
            row = self._row_of(eligible)
        except ReconError as error:
            return str(error)
        operation, interface = _operation(eligible.instruction.kind), self._account.interface
        problems = check_rows(operation, rows=[row], interface=interface)
        return "; ".join(f"{problem.field} {problem.reason}" for problem in problems)

    def prepare(self, rows: Sequence[Eligible]) -> PreparedRequest:
        """Canonical bytes of one batch of one kind; the same ones for the same rows.

        Raises:
            UnsignedError: nobody signed it.
        """
        instructions = [row.instruction for row in rows]
        try:
            return self._client.prepare(
                _operation(instructions[0].kind),
                [self._row_of(row) for row in rows],
                sign_key=self._signer(instructions),
            )
        except (InvalidRequestError, ConfigurationError) as error:
            raise Defect(str(error)) from error

    async def send(self, request: PreparedRequest) -> RawReply:
        """One request on a connection of its own, once.

        Raises:
            NotSentError: it surely did not leave.
            UnknownOutcomeError: it may have arrived, and nothing usable came back.
        """
        return await self._client.transport.send(request)

    def read(self, request: PreparedRequest, reply: RawReply) -> BatchReply:
        """What the reply says, row by row; total over any bytes."""
        return read_batch_reply(request, reply)

    def _signer(self, instructions: Sequence[Instruction]) -> SecretStr | Signer:
        """Who signs; one elsewhere is told which instructions the rows are, and who said yes."""
        ours = self._account.sign_key
        if not isinstance(ours, SignerSocket):
            return ours
        endorsements = self._endorsements(
            [instruction.instruction_id for instruction in instructions]
        )
        rows = [
            {
                "instruction_id": instruction.instruction_id,
                "terms": terms_of(instruction),
                "seen": endorsements.seen.get(instruction.instruction_id, {}),
            }
            for instruction in instructions
        ]
        grounds = {"rows": rows, "endorsements": list(endorsements.endorsements)}
        return ours.on(grounds)

    def _row_of(self, eligible: Eligible) -> Row:
        """What goes out: what moves, and a payment's own amount beside it."""
        instruction, payment = eligible.instruction, eligible.payment
        currency = instruction.currency
        if instruction.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return CancelSubscriptionRow(
                recurring_id=instruction.recurring_id, contract_name=instruction.contract_name
            )
        amount = Money.of_minor_units(instruction.amount, currency=currency).amount
        if instruction.kind is InstructionKind.PAYOUT:
            seal = Seal(self._account.settings.seal_key)
            if not instruction.sealed:
                msg = "the payee's details were erased when this payout became final"
                raise Defect(msg)
            row = PayoutRow.model_validate(
                json.loads(seal.open(instruction.sealed))
                | {
                    "request_id": instruction.gateway_request_id,
                    "payment_amount": amount,
                    "payment_currency": currency,
                }
            )
            if seal.digest(payee_identity(row)) != instruction.payee_digest:
                msg = (
                    f"the sealed details are of another payee than {instruction.payee}, whom "
                    "people approved"
                )
                raise Defect(msg)
            return row
        whole = Money.of_minor_units(payment.amount, currency=currency).amount
        ids = {
            "transaction_id": payment.transaction_id,
            "order_no": instruction.order_no,
            "currency": currency,
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
                    # It comes back in the reply and stands in the portal: ours names the row.
                    refund_reason=instruction.reason or f"recon {instruction.instruction_id}",
                    refund_reference=instruction.instruction_id,
                )


def _operation(kind: InstructionKind) -> Operation:
    return Operation(kind.replace("_", ""))
