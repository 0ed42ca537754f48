"""`recon gateway capture | refund | cancel | review`: one movement, for people.

Each writes the journal of the nights. Towards a gateway on this machine it is sent at once;
elsewhere it waits for another person's approval and for the next night.
"""

import os
from dataclasses import asdict
from typing import Annotated

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.speaking import AsJson, say, show, show_json

REFUSED_EXIT_CODE = 1
WAITS_EXIT_CODE = 3
NOT_KNOWN_EXIT_CODE = 4
COLUMNS = ("kind", "order_no", "transaction_id", "amount", "state", "refund_reference_id")

Order = Annotated[str, typer.Argument(help="The merchant's order number.")]
Who = Annotated[str, typer.Option("--as", help="Who asks for it; kept in the history.")]
Transaction = Annotated[
    str, typer.Option("--transaction", help="Which payment, where the order has several.")
]
RequestId = Annotated[
    str,
    typer.Option(
        help="An id of your own; the like of an earlier one waits for people, with an id too."
    ),
]


def capture(
    order: Order,
    merchant: Merchant,
    account: Account,
    *,
    name: Who,
    amount: Annotated[
        str, typer.Option(help="How much, such as 12.50; without it the whole authorisation.")
    ] = "",
    transaction: Transaction = "",
    request_id: RequestId = "",
    as_json: AsJson = False,
) -> None:
    """Capture an authorised payment."""
    _ask_for(
        "capture",
        order,
        account=(merchant, account),
        by=name,
        as_json=as_json,
        amount=amount,
        transaction_id=transaction,
        request_id=request_id,
    )


def refund(
    order: Order,
    merchant: Merchant,
    account: Account,
    *,
    name: Who,
    amount: Annotated[str, typer.Option(help="How much, such as 12.50.", show_default=False)],
    reason: Annotated[str, typer.Option(help="Shown at the gateway, at most 50 characters.")] = "",
    transaction: Transaction = "",
    request_id: RequestId = "",
    as_json: AsJson = False,
) -> None:
    """Give a captured payment back, wholly or in part."""
    _ask_for(
        "refund",
        order,
        account=(merchant, account),
        by=name,
        as_json=as_json,
        amount=amount,
        reason=reason,
        transaction_id=transaction,
        request_id=request_id,
    )


def cancel(
    order: Order,
    merchant: Merchant,
    account: Account,
    *,
    name: Who,
    transaction: Transaction = "",
    request_id: RequestId = "",
    as_json: AsJson = False,
) -> None:
    """Release an authorised payment."""
    _ask_for(
        "cancel",
        order,
        account=(merchant, account),
        by=name,
        as_json=as_json,
        transaction_id=transaction,
        request_id=request_id,
    )


def review(
    order: Order,
    merchant: Merchant,
    account: Account,
    *,
    name: Who,
    transaction: Transaction = "",
    request_id: RequestId = "",
    as_json: AsJson = False,
) -> None:
    """Set the review flag of a payment."""
    _ask_for(
        "review",
        order,
        account=(merchant, account),
        by=name,
        as_json=as_json,
        transaction_id=transaction,
        request_id=request_id,
    )


def _ask_for(
    kind: str, order: str, *, account: tuple[str, str], by: str, as_json: bool, **options: str
) -> None:
    from recon.model.money import Money
    from recon.model.words import InstructionKind
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.money.by_hand import HandRequest, carry_out

    request = HandRequest(InstructionKind(kind), *account, order_no=order, by=by, **options)
    with environment_of(os.environ, clock=system_clock) as environment:
        result = carry_out(request, environment=environment)
    money = Money.of_minor_units(result.amount, currency=result.currency)
    row = {**asdict(result), "amount": str(money)}
    if as_json:
        show_json(row)
    else:
        show([row], columns=COLUMNS)
        say(f"{result.message or 'Done.'} [{result.instruction_id}]")
    code = exit_code_of(result.state.value)
    if code:
        raise typer.Exit(code)


def exit_code_of(state: str) -> int:
    """0 confirmed, 1 refused, 3 waits for a person or was not sent, 4 the outcome is not known."""
    waiting = dict.fromkeys(("planned", "approved"), WAITS_EXIT_CODE)
    codes = {"confirmed": 0, "rejected": REFUSED_EXIT_CODE, **waiting}
    return codes.get(state, NOT_KNOWN_EXIT_CODE)
