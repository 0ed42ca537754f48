"""All commands of `recon gateway` under one name, and the one that looks at the way there."""

import os
from typing import Annotated

import typer

from recon.cli import gateway_money, gateway_payments, gateway_query, gateway_questions
from recon.cli.choices import Account, Merchant
from recon.cli.speaking import say
from recon.cli.tables import AsJson, show_json

WRONG_EXIT_CODE = 1


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
    from recon.steps.care.gateway_differences import KnownOrders
    from recon.steps.care.gateway_doctor import gateway_checks
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
calls.command("query")(gateway_query.query)
calls.command("refunds")(gateway_questions.refunds)
calls.command("optimise")(gateway_questions.optimise)
calls.command("capture")(gateway_money.capture)
calls.command("refund")(gateway_money.refund)
calls.command("cancel")(gateway_money.cancel)
calls.command("review")(gateway_money.review)
calls.command("authorise")(gateway_payments.authorise)
calls.command("checkout")(gateway_payments.checkout)
calls.command("cancel-subscription")(gateway_payments.cancel_subscription)
calls.command("payout")(gateway_payments.payout)


@calls.callback()
def _calls() -> None:
    """One call to the gateway, for people.

    Exit codes: 0 done, 1 refused, 2 usage, 3 waits for a person, 4 the outcome is not known.
    """
