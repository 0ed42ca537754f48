"""`recon gateway refunds | optimise`: what the gateway knows beside orders; read only.

The API document names both operations and no more; only the profile `extended` describes them.
"""

import asyncio
import os
import uuid
from random import SystemRandom
from typing import Annotated, Any

import typer

from recon.cli.choices import Account, Merchant
from recon.cli.gateway_query import INCOMPLETE_EXIT_CODE, refuse_too_many
from recon.cli.speaking import say
from recon.cli.tables import AsJson, show, show_json

REFUSED_EXIT_CODE = 1
COLUMNS = (
    *("order_no", "transaction_id", "refund_amount", "currency", "refund_status"),
    *("refund_reference_id", "refund_reference", "refund_date", "refund_processing_date", "told"),
)
FIELDS = (
    *("key", "order_no", "transaction_id", "currency", "amount", "refund_amount"),
    *("refund_status", "payment_status", "refund_reference", "refund_reference_id"),
    *("refund_reason", "refund_date", "refund_processing_date"),
)


def refunds(
    keys: Annotated[list[str], typer.Argument(help="Order numbers.")],
    merchant: Merchant,
    account: Account,
    *,
    references: Annotated[
        bool, typer.Option("--references", help="The numbers are references of your own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search refunds (`retrievalRefund`, profile extended); changes nothing."""
    from recon.config.settings import load_settings
    from recon.gateway.refunds import look_up_refunds
    from recon.steps.ground.environment import system_clock

    refuse_too_many(keys)
    refunds_found = asyncio.run(
        look_up_refunds(
            order_nos=[] if references else keys,
            references=keys if references else [],
            account=(merchant, account),
            settings=load_settings(os.environ),
            clock=system_clock,
            randomness=SystemRandom(),
        )
    )
    name = "refund_reference" if references else "order_no"
    rows = [
        {field: _shown(getattr(refund, field)) for field in FIELDS}
        for refund in refunds_found.found
    ]
    rows += [{name: key, "told": "no refund"} for key in refunds_found.not_found]
    rows += [{name: item.key, "told": f"no answer: {item.reason}"} for item in refunds_found.failed]
    if as_json:
        show_json(rows)
    else:
        show(rows, columns=COLUMNS)
    if refunds_found.failed:
        raise typer.Exit(INCOMPLETE_EXIT_CODE)


def optimise(
    merchant: Merchant,
    account: Account,
    *,
    currency: Annotated[str, typer.Option(help="Such as EUR.")],
    amount: Annotated[str, typer.Option(help="Such as 12.50.")],
    shopper_id: Annotated[str, typer.Option(help="Your own id of the shopper.")],
    shopper_email: Annotated[str, typer.Option(help="The shopper's address; it is signed.")],
    shopper_country: Annotated[str, typer.Option(help="Two letters, such as DE.")],
    as_json: AsJson = False,
) -> None:
    """Ask which payment methods suit a shopper (`optimise`, profile extended); moves nothing."""
    from recon.cli.private_files import checked
    from recon.config.settings import load_settings
    from recon.gateway.account import gateway_account
    from recon.gateway.one_call import best_methods
    from recon.gateway_client import MethodsRequest
    from recon.steps.ground.environment import system_clock

    declared = gateway_account(load_settings(os.environ), merchant_id=merchant, account_id=account)
    request = checked(
        MethodsRequest,
        {
            "request_id": str(uuid.UUID(int=SystemRandom().getrandbits(128), version=4)),
            "currency": currency,
            "amount": amount,
            "shopper_id": shopper_id,
            "shopper_email": shopper_email,
            "shopper_country": shopper_country,
        },
    )
    methods = best_methods(request, account=declared, clock=system_clock)
    if as_json:
        show_json({"methods": list(methods.methods), "told": methods.reason})
    else:
        say("\n".join(methods.methods) or methods.reason or "The gateway names no method.")
    if methods.reason:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _shown(value: Any) -> str:
    return str(value)
