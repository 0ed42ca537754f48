"""All commands of `recon gateway` under one name."""

import typer

from recon.cli import (
    gateway_doctor,
    gateway_money,
    gateway_payments,
    gateway_query,
    gateway_questions,
)

calls = typer.Typer(help="One call to the gateway, for people.", no_args_is_help=True)
calls.command("doctor")(gateway_doctor.doctor)
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
