"""One money movement that a person requests at the command line, outside any night.

It goes through the same journal as a night's instructions, under the account's lock: planned,
checked against the gateway's answer, claimed, sent once, its outcome stored. To a gateway on this
machine (the sandbox) it is sent at once; for any other it only becomes an instruction that waits
for another person's approval and for the next night, since nobody moves money alone.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from recon.config.approvers import person_key
from recon.files.typing.table_schema import Grammar
from recon.files.typing.text_cells import is_fit
from recon.instructions.eligibility import Baseline, Eligible, QueriedPayment
from recon.instructions.instruction import Instruction
from recon.instructions.planning import HOLD_CHARACTERS, Action, Plan, plan
from recon.instructions.queries import ask
from recon.model.errors import AmountError, FolderError, NightHeldError, ReconError, UsageError
from recon.model.money import parse_minor_units
from recon.model.nights import Mode
from recon.model.terms import InstructionKind, InstructionState, KeyAnswer
from recon.privacy.card_numbers import holds_card
from recon.privacy.own_files import make_folder
from recon.steps.money.gate import Gate, restored_since, sending_stopped
from recon.steps.money.settle import WITHDRAW_IT, MoneyOfRun
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import note_queried, reply_rows, save, seal, this_moment
from recon.store.database.night_lock import account_lock
from recon.store.money import instruction_rows
from recon.store.nights import runs
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import BY_HAND, Run, this_process

ORIGIN = "recon gateway"
"""The origin of such an instruction, in place of the name of an order file."""

NAME_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class HandRequest:
    """A person's request for one money movement."""

    kind: InstructionKind
    merchant_id: str
    account_id: str
    order_no: str
    by: str
    """Who requests it."""
    amount: str = ""
    """Written as in files; "" means the whole payment."""
    transaction_id: str = ""
    reason: str = ""
    request_id: str = ""


def carry_out(request: HandRequest, *, environment: Environment) -> Instruction:
    """Record one movement, send it if the gateway is the sandbox, and return the instruction.

    Raises:
        UsageError: the request is not valid or not eligible; nothing was stored or sent.
        FolderError: the folder for the history's head cannot be made; nothing was stored or sent.
        NightHeldError: a night is running on the account.
    """
    account = environment.settings.account(request.merchant_id, account_id=request.account_id)
    reports = account.reports
    if not request.by.strip():
        msg = "say who asks for it (--as)"
        raise UsageError(msg)
    if not is_fit(request.request_id, grammar=Grammar.TRANSACTION):
        msg = (
            "--request-id is an id of letters, digits and . _ -, at most 50, as in an order file; "
            "nothing was stored or sent"
        )
        raise UsageError(msg)
    if holds_card(request.reason):
        msg = "--reason holds a card number; say it without the number: nothing was stored or sent"
        raise UsageError(msg)
    stopped = sending_stopped(environment)
    if stopped is not None:
        msg = f"{stopped}; nothing was stored or sent"
        raise UsageError(msg)
    request = replace(request, by=_asker(request.by, environment=environment))
    try:
        make_folder(reports)  # the history's head is noted here before anything is sent
    except OSError as error:
        msg = (
            f"the reports folder {reports} cannot be made ({error.strerror}); nothing was "
            "stored or sent: correct `reports` in merchants.toml, or make the folder"
        )
        raise FolderError(msg) from error
    at_work = (
        f"a night is at work on {request.merchant_id}/{request.account_id}; nothing was stored or "
        "sent: try again when it has ended"
    )
    with ExitStack() as held:
        try:
            held.enter_context(account_lock(environment.store, request))
        except NightHeldError as error:
            raise NightHeldError(at_work) from error
        with environment.store.reading() as connection:
            # A night that lost its lock but still runs may have a request under way.
            if runs.living(connection, request) is not None:
                raise NightHeldError(at_work)
        return _carry_out(request, environment=environment)


def _asker(name: str, *, environment: Environment) -> str:
    """Return the requester's name in approvers.toml, so that someone else must approve.

    In the sandbox any name is accepted.

    Raises:
        UsageError: approvers.toml declares nobody of that name.
    """
    every = environment.settings.approvers
    declared = every.get(person_key(name, declared=every))
    if declared is not None:
        return declared.name
    if environment.settings.is_sandbox:
        return " ".join(name.split())
    known = ", ".join(sorted(environment.settings.approvers)) or "nobody"
    msg = (
        f"approvers.toml declares no {name.strip()!r} (declared: {known}): whoever asks for money "
        "by hand stands there, so that nobody approves what they asked for; nothing was stored or "
        "sent"
    )
    raise UsageError(msg)


def _carry_out(request: HandRequest, *, environment: Environment) -> Instruction:
    now = environment.clock()
    # Only a value, never stored as a run, so it never counts as a night.
    run = Run(
        run_id=f"{BY_HAND}{environment.new_id()[:12]}",
        merchant_id=request.merchant_id,
        account_id=request.account_id,
        business_date=now.date(),
        mode=Mode.LIVE,
        status="finished",
        step="by hand",
        owner=this_process(),
        started_at=now,
        as_of=now,
        verdict="",
        workbook="",
        problem="",
    )
    money = MoneyOfRun(run, environment=environment)
    money.doubts.note_refund_numbers()
    baseline = _ask(request, run=run, money=money, environment=environment)
    payment = _payment(request, baseline=baseline)
    instruction = _planned(request, payment=payment, run=run, money=money, environment=environment)
    # An instruction that waits for another person is evaluated again by the night that sends it.
    is_approved = instruction.state is InstructionState.APPROVED
    restored = restored_since(run, environment=environment) if is_approved else ""
    queued = money.queue_of(
        [instruction], baselines={request.order_no: baseline}, gate=Gate(restored, "")
    )
    for ineligible in queued.ineligible:
        reason = ineligible.reason.removesuffix(WITHDRAW_IT)
        msg = f"{request.kind} of order {request.order_no}: {reason}; nothing was stored or sent"
        raise UsageError(msg)
    with environment.store.writing() as connection:
        instruction_rows.save_plan(
            connection, run, plan=Plan((instruction,), ()), at=environment.clock()
        )
    if is_approved:
        _send(queued.eligible[0], money=money, environment=environment)
    with environment.store.reading() as connection:
        return instruction_rows.of_id(connection, instruction.instruction_id) or instruction


def _send(evaluated: Eligible, *, money: MoneyOfRun, environment: Environment) -> None:
    """Send it; if it was not sent, note the reason for `recon status`: the next night sends it.

    Raises:
        ReconError: it may have been sent, and its outcome could not be stored.
    """
    instruction_id = evaluated.instruction.instruction_id
    failed: ReconError | None = None
    try:
        sent = money.send([evaluated])
        reason = sent.stop_reason or sent.left_out.get(instruction_id, "")
    except ReconError as error:
        failed, reason = error, str(error)
    with environment.store.writing() as connection:
        instruction = instruction_rows.of_id(connection, instruction_id)
        is_unsent = instruction is not None and instruction.state is InstructionState.APPROVED
        if is_unsent:
            hold = (
                f"{evaluated.instruction.approved_by}, and it was not sent: {reason}. The next "
                "night sends it; withdraw it (`recon withdraw`) if it shall not"
            )
            instruction_rows.note_hold(connection, instruction_id, hold=hold)
    if failed and not is_unsent:
        raise failed


def _ask(
    request: HandRequest, *, run: Run, money: MoneyOfRun, environment: Environment
) -> Baseline:
    """Query the order at the gateway and store the answer as evidence, as a night does."""
    moment, order_no = this_moment(environment), request.order_no
    replies = asyncio.run(
        ask(
            [order_no],
            account=run.account,
            settings=environment.settings,
            clock=environment.clock,
            randomness=environment.randomness,
        )
    )
    note_queried(run, phase=BASELINE, keys=[order_no], environment=environment)
    save(run, reply_rows(run, replies, sent=moment), environment=environment)
    seal(run, environment=environment)
    with environment.store.reading() as connection:
        payments = money.payments(connection, replies.observations)
    answer, reason = replies.answers[order_no]
    if answer is not KeyAnswer.FOUND:
        reasons = {
            KeyAnswer.NOT_FOUND: "the gateway does not know it",
            KeyAnswer.UNMAPPED: f"the gateway answered with an unmapped code ({reason})",
        }.get(answer, f"the gateway gave no usable answer ({reason})")
        msg = f"order {order_no}: {reasons}; nothing was stored or sent"
        raise UsageError(msg)
    return Baseline(answer, payments.get(order_no, ()))


def _payment(request: HandRequest, *, baseline: Baseline) -> QueriedPayment:
    """Return the payment requested; the person must name it if the order has several."""
    transaction_id = request.transaction_id
    fitting: Sequence[QueriedPayment] = [
        payment for payment in baseline.payments if transaction_id in {"", payment.transaction_id}
    ]
    if len({payment.transaction_id for payment in fitting}) == 1:
        return fitting[0]
    named = ", ".join(dict.fromkeys(payment.transaction_id for payment in baseline.payments))
    msg = (
        f"order {request.order_no} has the transactions {named}: name one of them with "
        "--transaction; nothing was stored or sent"
    )
    raise UsageError(msg)


def _planned(
    request: HandRequest,
    *,
    payment: QueriedPayment,
    run: Run,
    money: MoneyOfRun,
    environment: Environment,
) -> Instruction:
    """Plan the instruction of a request; it is held if the journal has a similar one."""
    amount = payment.amount
    if request.amount:
        try:
            amount = parse_minor_units(request.amount, currency=payment.currency)
        except AmountError as error:
            msg = f"--amount {error}; nothing was stored or sent"
            raise UsageError(msg) from error
    action = Action(
        action_id=0,
        file_id=0,
        file_name=ORIGIN,
        line=0,
        merchant_id=request.merchant_id,
        account_id=request.account_id,
        order_no=request.order_no,
        transaction_id=payment.transaction_id,
        kind=request.kind,
        currency=payment.currency,
        order_amount=payment.amount,
        action_amount=amount,
        reason=request.reason,
        request_id=request.request_id,
    )
    with environment.store.reading() as connection:
        known = instruction_rows.known(connection, run, only_payments={})
    made = plan(
        [action],
        known=known,
        new_id=environment.new_id,
        auto_approve=True,
        ids_unique=money.ids_unique,
    )
    if not made.new:
        msg = (
            f"request id {request.request_id} was used for exactly this before "
            f"(instruction {made.links[0][1]}); nothing was stored or sent"
        )
        raise UsageError(msg)
    by = request.by.strip()[:NAME_CHARACTERS_MAX]
    own = replace(made.new[0], file_id=None, line=0)
    if own.hold:
        # The requester does not approve it.
        return replace(own, hold=f"asked for by hand by {by}: {own.hold}"[:HOLD_CHARACTERS])
    if environment.settings.is_sandbox:
        return replace(own, state=InstructionState.APPROVED, approved_by=f"by hand: {by}")
    return replace(
        own,
        state=InstructionState.PLANNED,
        approved_by="",
        hold=f"asked for by hand by {by}: another person approves it, the next night sends it",
    )
