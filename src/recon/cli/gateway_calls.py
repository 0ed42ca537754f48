"""`recon gateway`: its commands under one name, the doctor, and the questions that only read.

The API document names the search of refunds and `optimise` and no more; only the profile `extended`
has them.
"""

import asyncio
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from random import SystemRandom
from typing import Annotated, Any

import typer

from recon.cli import gateway_money, gateway_payments
from recon.cli.night_choices import Account, Merchant
from recon.cli.speaking import AsJson, say, show, show_json

REFUSED_EXIT_CODE = WRONG_EXIT_CODE = 1
INCOMPLETE_EXIT_CODE = 4
KEYS_MAX = 1_000
PAYMENT_COLUMNS = (
    *("order_no", "transaction_id", "amount", "currency", "payment_status", "state"),
    *("query_result", "transaction_date"),
)
REFUND_COLUMNS = (
    *("order_no", "transaction_id", "refund_amount", "currency", "refund_status"),
    *("refund_reference_id", "refund_reference", "refund_date", "refund_processing_date", "told"),
)
REFUND_FIELDS = (
    *("key", "order_no", "transaction_id", "currency", "amount", "refund_amount"),
    *("refund_status", "payment_status", "refund_reference", "refund_reference_id"),
    *("refund_reason", "refund_date", "refund_processing_date"),
)


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
    from recon.gateway_client import MethodsRequest
    from recon.instructions.account import best_methods, gateway_account
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


def query(
    keys: Annotated[list[str], typer.Argument(help="Order numbers.")],
    merchant: Merchant,
    account: Account,
    *,
    transactions: Annotated[
        bool, typer.Option("--transactions", help="The numbers are the gateway's transaction ids.")
    ] = False,
    refunds: Annotated[
        bool, typer.Option("--refunds", help="Search refunds of the orders; profile extended.")
    ] = False,
    references: Annotated[
        bool, typer.Option("--references", help="The same by references of your own for refunds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask the gateway what it knows of some orders, or of their refunds; changes nothing."""
    if refunds or references:
        _search_refunds(keys, (merchant, account), by_reference=references, as_json=as_json)
        return
    from recon.config.settings import load_settings
    from recon.instructions.queries import look_up
    from recon.steps.ground.environment import system_clock

    refuse_too_many(keys)
    settings = load_settings(os.environ)
    looked_up = asyncio.run(
        look_up(
            lambda client: client.query(**{"trades" if transactions else "order_nos": keys}),
            account=(merchant, account),
            settings=settings,
            clock=system_clock,
            randomness=SystemRandom(),
        )
    )
    rows = [_row(record, state=settings.rules.state_of) for record in looked_up.found]
    key = "transaction_id" if transactions else "order_no"
    rows += _without(looked_up, key=key, said_in="state", unknown="not known to the gateway")
    _answer(rows, looked_up, columns=PAYMENT_COLUMNS, as_json=as_json)


def _search_refunds(
    keys: Sequence[str], account: tuple[str, str], *, by_reference: bool, as_json: bool
) -> None:
    """Show each number with its refunds (`retrievalRefund`)."""
    from recon.config.settings import load_settings
    from recon.instructions.queries import look_up
    from recon.steps.ground.environment import system_clock

    refuse_too_many(keys)
    refunds_found = asyncio.run(
        look_up(
            lambda client: client.refunds(**{"references" if by_reference else "order_nos": keys}),
            account=account,
            settings=load_settings(os.environ),
            clock=system_clock,
            randomness=SystemRandom(),
        )
    )
    rows: list[Mapping[str, Any]] = [
        {field: str(getattr(refund, field)) for field in REFUND_FIELDS}
        for refund in refunds_found.found
    ]
    key = "refund_reference" if by_reference else "order_no"
    rows += _without(refunds_found, key=key, said_in="told", unknown="no refund")
    _answer(rows, refunds_found, columns=REFUND_COLUMNS, as_json=as_json)


def _without(looked_up: Any, *, key: str, said_in: str, unknown: str) -> list[dict[str, Any]]:
    """A row for each key that the gateway does not know or did not answer."""
    return [
        *({key: each, said_in: unknown} for each in looked_up.not_found),
        *({key: each.key, said_in: f"no answer: {each.reason}"} for each in looked_up.failed),
    ]


def _answer(
    rows: Sequence[Mapping[str, Any]], looked_up: Any, *, columns: Sequence[str], as_json: bool
) -> None:
    """Show the rows; ends with 4 when a key has no answer."""
    if as_json:
        show_json(rows)
    else:
        show(rows, columns=columns)
    if looked_up.failed:
        raise typer.Exit(INCOMPLETE_EXIT_CODE)


Orders = Annotated[
    list[str] | None,
    typer.Option("--order", help="An order that the gateway has, best one of each currency."),
]
Refunded = Annotated[
    list[str] | None,
    typer.Option("--refunded", help="An order of which money went back to the shopper."),
]


def doctor(
    merchant: Merchant,
    account: Account,
    *,
    orders: Orders = None,
    refunded: Refunded = None,
    as_json: AsJson = False,
) -> None:
    """Look at connection, clock, address, signature rule and codes; read only, nothing changes."""
    from recon.config.settings import load_settings
    from recon.steps.care.gateway_doctor import KnownOrders, gateway_checks
    from recon.steps.ground.environment import system_clock

    checks = gateway_checks(
        load_settings(os.environ),
        account=(merchant, account),
        clock=system_clock,
        named=KnownOrders(tuple(orders or ()), tuple(refunded or ())),
    )
    answers = []
    for check in checks:
        answers.append(check)
        if not as_json:
            first, *rest = check.sentence.splitlines()
            say(f"{'ok   ' if check.ok else 'WRONG'} {check.name}: {first}")
            for line in rest:
                say(f"      {line}")
    if as_json:
        show_json(
            [{"name": answer.name, "ok": answer.ok, "told": answer.sentence} for answer in answers]
        )
    if not all(check.ok for check in answers):
        raise typer.Exit(WRONG_EXIT_CODE)


calls = typer.Typer(help="One call to the gateway, for people.", no_args_is_help=True)
calls.command("doctor")(doctor)
calls.command("query")(query)
calls.command("optimise")(optimise)
for _name, _command in gateway_money.MOVEMENTS.items():
    calls.command(_name)(_command)
calls.command("authorise")(gateway_payments.authorise)
calls.command("checkout")(gateway_payments.checkout)
calls.command("cancel-subscription")(gateway_payments.cancel_subscription)
calls.command("payout")(gateway_payments.payout)


@calls.callback()
def _calls() -> None:
    """One call to the gateway, for people.

    Exit codes: 0 done, 1 refused, 2 usage, 3 waits for a person, 4 the outcome is not known.
    """


def refuse_too_many(keys: Sequence[str]) -> None:
    """A person reads what comes back: only so many numbers at once."""
    if len(keys) > KEYS_MAX:
        msg = f"{len(keys)} numbers; at most {KEYS_MAX} at once"
        raise typer.BadParameter(msg)


def _row(record: Any, *, state: Any) -> Mapping[str, Any]:
    from recon.gateway_client.risk_facts import RISK_FIELDS

    return {
        "order_no": record.order_no,
        "transaction_id": record.transaction_id,
        "amount": f"{record.amount:f}",
        "currency": record.currency,
        "payment_status": record.payment_status,
        "state": str(state(record.payment_status)),
        "query_result": record.query_result,
        "reference_no": record.reference_no,
        "transaction_date": record.transaction_date,
        "queried_at": record.queried_at.isoformat(),
        "risk": {name: risk for name, risk in asdict(record.risk).items() if risk},
        "extra": {
            name: _structured(text)
            for name, text in {**record.reply_extra, **record.extra}.items()
            if name not in RISK_FIELDS
        },
    }


def _structured(text: str) -> Any:
    """An object or list as such; it was kept as JSON, which a long one may have outgrown."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
