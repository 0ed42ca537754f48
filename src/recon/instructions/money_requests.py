"""Conversion of eligible instructions to the gateway client's rows, which it signs and sends."""

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
"""Review flag for an instruction that names none; the gateway's document shows no other."""


@dataclass(frozen=True, slots=True)
class InstructionEndorsements:
    """What people endorsed for some instructions, for a signer to verify."""

    seen: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    """Instruction id -> its terms as the approvers saw them."""
    endorsements: Sequence[Mapping[str, str]] = ()
    """Signed by the approvals service: document, signature, key."""


EndorsementsOf = Callable[[Sequence[str]], InstructionEndorsements]
"""Instruction ids -> their endorsements."""


def no_endorsements(_instruction_ids: Sequence[str]) -> InstructionEndorsements:
    """Return no endorsements, for a journal without approvals by people."""
    return InstructionEndorsements()


class GatewayOfMoney:
    """The gateway as used by the sender, for one (merchant, account) and one settle step.

    `endorsements` is called only if a separate signer process signs.
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
        """Return why this row must not be sent at all; "" if it may."""
        try:
            row = self._row_of(eligible)
        except ReconError as error:
            return str(error)
        operation, interface = _operation(eligible.instruction.kind), self._account.interface
        problems = check_rows(operation, rows=[row], interface=interface)
        return "; ".join(f"{problem.field} {problem.reason}" for problem in problems)

    def prepare(self, rows: Sequence[Eligible]) -> PreparedRequest:
        """Return one batch of one kind as a signed request, the same bytes for the same rows.

        Raises:
            UnsignedError: The request could not be signed.
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
        """Send a request once, on a connection of its own.

        Raises:
            NotSentError: It was certainly not sent.
            UnknownOutcomeError: It may have arrived, and no usable reply came.
        """
        return await self._client.transport.send(request)

    def read(self, request: PreparedRequest, reply: RawReply) -> BatchReply:
        """Return the outcome of each row from the reply; accepts any bytes."""
        return read_batch_reply(request, reply)

    def _signer(self, instructions: Sequence[Instruction]) -> SecretStr | Signer:
        """Return the key, or the signer with the instructions and their endorsements."""
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
        """Return the request row: the amount that moves, and the payment's own where needed."""
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
                    # The reply and the portal show the reason: by default it names the row.
                    refund_reason=instruction.reason or f"recon {instruction.instruction_id}",
                    refund_reference=instruction.instruction_id,
                )


def _operation(kind: InstructionKind) -> Operation:
    return Operation(kind.replace("_", ""))
