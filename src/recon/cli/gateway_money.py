"""`recon gateway capture | refund | cancel | review`: one movement, for people.

Each writes the journal of the nights. Towards a gateway on this machine it is sent at once;
elsewhere it waits for another person's approval and for the next night.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from recon.cli.night_choices import Account, Merchant, opened
from recon.cli.speaking import AsJson, say, show, show_json

RESULT = (
    *("kind", "order_no", "transaction_id", "currency", "amount", "state", "instruction_id"),
    *("message", "refund_reference_id"),
)
"""Of the instruction, as JSON."""
COLUMNS = ("kind", "order_no", "transaction_id", "amount", "state", "refund_reference_id")
EXIT_CODES = {"confirmed": 0, "rejected": 1, "planned": 3, "approved": 3}
"""State of the instruction -> code; 3 waits for a person or for its night."""
NOT_KNOWN_EXIT_CODE = 4
NEEDED = inspect.Parameter.empty

Order = Annotated[str, typer.Argument(help="The merchant's order number.")]
Who = Annotated[str, typer.Option("--as", help="Who asks for it; kept in the history.")]
Part = Annotated[str, typer.Option(help="How much, such as 12.50.", show_default=False)]
Whole = Annotated[
    str, typer.Option(help="How much, such as 12.50; without it the whole authorisation.")
]
Reason = Annotated[str, typer.Option(help="Shown at the gateway, at most 50 characters.")]
Transaction = Annotated[
    str, typer.Option("--transaction", help="Which payment, where the order has several.")
]
RequestId = Annotated[
    str,
    typer.Option(
        help="An id of your own; the like of an earlier one waits for people, with an id too."
    ),
]
Options = Mapping[str, tuple[Any, Any]]
"""Field of the request -> its option and its default."""
EVERY: Options = {"transaction_id": (Transaction, ""), "request_id": (RequestId, "")}


def _movement(kind: str, text: str, **options: tuple[Any, Any]) -> Callable[..., None]:
    """The command of one kind of movement."""

    def run(
        order: str, merchant: str, account: str, *, name: str, as_json: bool, **given: str
    ) -> None:
        from recon.model.money import Money
        from recon.model.words import InstructionKind
        from recon.steps.money.by_hand import HandRequest, carry_out

        request = HandRequest(
            InstructionKind(kind), merchant, account, order_no=order, by=name, **given
        )
        with opened() as environment:
            result = carry_out(request, environment=environment)
        money = Money.of_minor_units(result.amount, currency=result.currency)
        message = result.message or result.hold
        shown = {name: getattr(result, name) for name in RESULT}
        row = {**shown, "amount": str(money), "message": message}
        if as_json:
            show_json(row)
        else:
            show([row], columns=COLUMNS)
            say(f"{message or 'Done.'} [{result.instruction_id}]")
        if code := EXIT_CODES.get(result.state.value, NOT_KNOWN_EXIT_CODE):
            raise typer.Exit(code)

    fields: Options = {
        "order": (Order, NEEDED),
        "merchant": (Merchant, NEEDED),
        "account": (Account, NEEDED),
        "name": (Who, NEEDED),
        **options,
        **EVERY,
        "as_json": (AsJson, False),
    }
    run.__doc__ = text
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what Typer looks at
        [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=value)
            for each, (kind, value) in fields.items()
        ]
    )
    return run


MOVEMENTS: Mapping[str, Callable[..., None]] = {
    "capture": _movement("capture", "Capture an authorised payment.", amount=(Whole, "")),
    "refund": _movement(
        *("refund", "Give a captured payment back, wholly or in part."),
        amount=(Part, NEEDED),
        reason=(Reason, ""),
    ),
    "cancel": _movement("cancel", "Release an authorised payment."),
    "review": _movement("review", "Set the review flag of a payment."),
}
"""Each command by its name."""
