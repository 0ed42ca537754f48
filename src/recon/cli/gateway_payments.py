"""`recon gateway authorise | checkout | cancel-subscription | payout`: one call, for people.

A card comes from a prompt or a private file, never from an argument, and is neither kept nor
shown. None of these calls is journalled by the nights: what moves money is refused outside the
sandbox.
"""

import os
import uuid
from pathlib import Path
from random import SystemRandom
from typing import Annotated, Any

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.private_files import checked, read_private
from recon.cli.speaking import AsJson, say, show_json
from recon.privacy.own_files import for_owner

EXIT_CODES = {"done": 0, "accepted": 0, "pending": 0, "failed": 1, "rejected": 1, "not_sent": 1}
NOT_KNOWN_EXIT_CODE = 4
IN_A_QUERY = "Ask `recon gateway query`, or look into the gateway's portal."
IN_THE_PORTAL = "No question to the gateway shows it: look it up in the portal."
CARD_FIELDS = ("card", "expiration_month", "expiration_year", "security_code")

OrderNo = Annotated[str, typer.Argument(help="A new order number.")]
Currency = Annotated[str, typer.Option(help="Such as EUR.")]
Amount = Annotated[str, typer.Option(help="Such as 12.50.")]
FieldsFile = Annotated[
    Path | None,
    typer.Option("--fields", help="JSON file (mode 0600) with more fields of the API document."),
]


def authorise(
    order_no: OrderNo,
    merchant: Merchant,
    account: Account,
    *,
    currency: Currency,
    amount: Amount,
    fields: FieldsFile = None,
    payment_method: Annotated[
        str, typer.Option(help="Another method than a card; the reply names the issuer's page.")
    ] = "",
    card_file: Annotated[
        Path | None,
        typer.Option(help="JSON file (mode 0600) with the card; without it you are asked."),
    ] = None,
    live_card: Annotated[
        bool, typer.Option("--live-card", help="Allow a card outside the sandbox.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a payment by card, or by another method (`--payment-method`)."""
    from recon.gateway_client import ApmPayment, CardPayment
    from recon.instructions.account import start_payment
    from recon.model.errors import UsageError
    from recon.steps.ground.environment import system_clock

    declared, played = _place(merchant, account)
    given = _fields(fields, order_no=order_no, currency=currency, amount=amount)
    if payment_method:
        apm = checked(ApmPayment, given | {"payment_method": payment_method})
        _tell(start_payment(apm, account=declared, clock=system_clock), as_json=as_json)
        return
    if not (played or live_card):
        msg = "a card is taken for the sandbox only; --live-card allows it. Nothing was sent"
        raise UsageError(msg)
    card = {} if given.get("token_id") else _card(card_file)
    payment = checked(CardPayment, given | card)
    _tell(start_payment(payment, account=declared, clock=system_clock), as_json=as_json)


def checkout(
    order_no: OrderNo,
    merchant: Merchant,
    account: Account,
    *,
    currency: Currency,
    amount: Amount,
    return_url: Annotated[str, typer.Option(help="Where the shopper comes back to; https.")] = "",
    fields: FieldsFile = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the page here, for a browser; mode 0600.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a payment by the gateway's own page; money moves only when the shopper pays there."""
    from recon.gateway_client import HostedPayment
    from recon.instructions.account import start_payment
    from recon.steps.ground.environment import system_clock

    declared, _ = _place(merchant, account)
    given = _fields(fields, order_no=order_no, currency=currency, amount=amount)
    payment = checked(HostedPayment, given | ({"return_url": return_url} if return_url else {}))
    result = start_payment(payment, account=declared, clock=system_clock)
    if page is not None and result.page:
        with open(page, "wb", opener=for_owner) as file:
            file.write(result.page)
    _tell(result, as_json=as_json)


def cancel_subscription(
    recurring_id: Annotated[str, typer.Argument(help="The gateway's id of the contract.")],
    contract_name: Annotated[str, typer.Argument(help="The contract's name.")],
    merchant: Merchant,
    account: Account,
    *,
    as_json: AsJson = False,
) -> None:
    """End a recurring contract (sandbox only); what is already contracted is still charged."""
    from recon.gateway_client import CancelSubscriptionRow, Operation
    from recon.instructions.account import send_row
    from recon.steps.ground.environment import system_clock

    declared = _sandbox_only(merchant, account, what="the end of a subscription")
    row = CancelSubscriptionRow(recurring_id=recurring_id, contract_name=contract_name)
    result = send_row(Operation.CANCEL_SUBSCRIPTION, row, account=declared, clock=system_clock)
    _tell(result, as_json=as_json, where=IN_THE_PORTAL)


def payout(
    file: Annotated[
        Path, typer.Argument(help="JSON file (mode 0600) with the fields of the API document.")
    ],
    merchant: Merchant,
    account: Account,
    *,
    as_json: AsJson = False,
) -> None:
    """Pay a beneficiary (sandbox only); elsewhere payouts need two people and a night."""
    from recon.gateway_client import Operation, PayoutRow
    from recon.instructions.account import send_row
    from recon.steps.ground.environment import system_clock

    declared = _sandbox_only(merchant, account, what="a payout")
    new_id = str(uuid.UUID(int=SystemRandom().getrandbits(128), version=4))
    row = checked(PayoutRow, {"request_id": new_id, **read_private(file)})
    result = send_row(Operation.PAYOUT, row, account=declared, clock=system_clock)
    given = {"request_id": str(row.request_id)}
    _tell(result, as_json=as_json, fields=given, where=IN_THE_PORTAL)


def _place(merchant: str, account: str) -> tuple[Any, bool]:
    """The account at the gateway, and whether that is the sandbox."""
    from recon.config.settings import load_settings
    from recon.instructions.account import gateway_account

    settings = load_settings(os.environ)
    declared = gateway_account(settings, merchant_id=merchant, account_id=account)
    return declared, settings.is_sandbox


def _sandbox_only(merchant: str, account: str, *, what: str) -> Any:
    """The account at the sandbox.

    Raises:
        UsageError: the gateway is not on this machine.
    """
    from recon.model.errors import UsageError

    declared, played = _place(merchant, account)
    if not played:
        msg = (
            f"{what} by hand is for the sandbox only, since no journal would know of it: put it "
            "into an instruction file, where two people approve it and a night sends it once. "
            "Nothing was sent"
        )
        raise UsageError(msg)
    return declared


def _fields(path: Path | None, **given: str) -> dict[str, Any]:
    """Fields of the file under those of the command; a card has its own way in.

    Raises:
        UsageError: the file holds a card.
    """
    from recon.model.errors import UsageError

    fields = {} if path is None else read_private(path)
    cards = [name for name in CARD_FIELDS if name in fields]
    if cards:
        msg = f"{path} holds {', '.join(cards)}: a card comes from --card-file or the prompt only"
        raise UsageError(msg)
    return {**fields, **given}


def _card(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {
            "card": typer.prompt("Card number", hide_input=True, err=True),
            "expiration_month": typer.prompt("Month of expiry", hide_input=True, err=True),
            "expiration_year": typer.prompt("Year of expiry", hide_input=True, err=True),
            "security_code": typer.prompt("Security code", hide_input=True, err=True),
        }
    from recon.model.errors import UsageError

    card = read_private(path)
    if set(card) != set(CARD_FIELDS):
        msg = f"{path} must hold exactly {', '.join(CARD_FIELDS)}; nothing was sent"
        raise UsageError(msg)
    return card


def _tell(
    result: Any,
    *,
    as_json: bool,
    fields: dict[str, str] | None = None,
    where: str = IN_A_QUERY,
) -> None:
    """Show an answer; `where`: what shows the outcome of a call that got none."""
    head = {"outcome": result.outcome, "code": result.code, "message": result.message}
    row = {**head, **(fields or {}), **result.facts}
    if as_json:
        show_json(row)
    else:
        for name, value in row.items():
            if value:
                say(f"{name}: {value}")
    if result.outcome == "unknown" and not as_json:
        say(f"Do not send it again. {where}")
    code = EXIT_CODES.get(result.outcome, NOT_KNOWN_EXIT_CODE)
    if code:
        raise typer.Exit(code)
