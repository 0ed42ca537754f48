"""`recon gateway query`: what the gateway knows of some orders, read only."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from random import SystemRandom
from typing import Annotated, Any

import typer

from recon.cli.choices import Account, Merchant
from recon.cli.tables import AsJson, show, show_json

INCOMPLETE_EXIT_CODE = 4
KEYS_MAX = 1_000
COLUMNS = (
    *("order_no", "transaction_id", "amount", "currency", "payment_status", "state"),
    *("query_result", "transaction_date"),
)


def refuse_too_many(keys: Sequence[str]) -> None:
    """A person reads what comes back: only so many numbers at once."""
    if len(keys) > KEYS_MAX:
        msg = f"{len(keys)} numbers; at most {KEYS_MAX} at once"
        raise typer.BadParameter(msg)


def query(
    keys: Annotated[list[str], typer.Argument(help="Order numbers.")],
    merchant: Merchant,
    account: Account,
    *,
    transactions: Annotated[
        bool, typer.Option("--transactions", help="The numbers are the gateway's transaction ids.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask the gateway what it knows of some orders; changes nothing."""
    from recon.config.settings import load_settings
    from recon.gateway.queries import look_up
    from recon.steps.ground.environment import system_clock

    refuse_too_many(keys)
    settings = load_settings(os.environ)
    looked_up = asyncio.run(
        look_up(
            order_nos=[] if transactions else keys,
            transaction_ids=keys if transactions else [],
            account=(merchant, account),
            settings=settings,
            clock=system_clock,
            randomness=SystemRandom(),
        )
    )
    rows = [_row(record, state=settings.rules.state_of) for record in looked_up.found]
    name = "transaction_id" if transactions else "order_no"
    rows += [{name: key, "state": "not known to the gateway"} for key in looked_up.not_found]
    rows += [{name: item.key, "state": f"no answer: {item.reason}"} for item in looked_up.failed]
    if as_json:
        show_json(rows)
    else:
        show(rows, columns=COLUMNS)
    if looked_up.failed:
        raise typer.Exit(INCOMPLETE_EXIT_CODE)


def _row(record: Any, *, state: Any) -> Mapping[str, Any]:
    from recon.gateway_client.payments.risk_facts import RISK_FIELDS

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
