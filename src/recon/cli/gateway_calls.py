"""One call to the gateway, for people (`recon gateway query` and its like).

The API document names the search of refunds and no more; only the profile `extended` has it. What
moves a payment writes the journal of the nights: towards a gateway on this machine
it is sent at once, elsewhere it waits for another person's approval and for the next night. What
starts one, pays out or ends a contract is not journalled: what moves money of it is refused outside
the sandbox. A card comes from a prompt or a private file, never from an argument, and is neither
kept nor shown; such files may be read by their owner alone.
"""

import asyncio
import inspect
import json
import os
import stat
import uuid
from collections.abc import Coroutine, Iterable
from dataclasses import asdict
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from recon.cli.night_choices import Account, Merchant, opened
from recon.cli.output import AsJson, echo, show, show_checks, show_json
from recon.model.errors import ConfigurationError, UsageError
from recon.privacy.own_files import for_owner

if TYPE_CHECKING:
    from pydantic import BaseModel

WRONG_EXIT_CODE = 1
NOT_KNOWN_EXIT_CODE = 4
KEYS_MAX = 1_000
PAYMENT_COLUMNS = (
    *("order_no", "transaction_id", "amount", "currency", "payment_status", "state"),
    *("query_result", "transaction_date"),
)
REFUND_COLUMNS = (
    *("order_no", "transaction_id", "refund_amount", "currency", "refund_status"),
    *("refund_reference_id", "refund_reference", "refund_date", "refund_processing_date", "answer"),
)
REFUND_FIELDS = (
    *("key", "order_no", "transaction_id", "currency", "amount", "refund_amount"),
    *("refund_status", "payment_status", "refund_reference", "refund_reference_id"),
    *("refund_reason", "refund_date", "refund_processing_date"),
)


calls = typer.Typer(help="One call to the gateway, for people.", no_args_is_help=True)


@calls.callback()
def _calls() -> None:
    """One call to the gateway, for people.

    Exit codes: 0 done, 1 refused, 2 usage, 3 waits for a person, 4 the outcome is not known.
    """


Orders = Annotated[
    list[str] | None,
    typer.Option("--order", help="An order that the gateway has, best one of each currency."),
]
Refunded = Annotated[
    list[str] | None,
    typer.Option("--refunded", help="An order of which money went back to the shopper."),
]


@calls.command("doctor")
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
    from recon.steps.admin.gateway_doctor import gateway_checks
    from recon.steps.runtime.environment import system_clock

    checks = gateway_checks(
        load_settings(os.environ),
        account=(merchant, account),
        clock=system_clock,
        orders=orders or (),
        refunded=refunded or (),
    )
    show_checks(checks, wrong="WRONG", as_json=as_json, exit_code=WRONG_EXIT_CODE)


@calls.command("query")
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
    from recon.config.settings import load_settings
    from recon.instructions.queries import look_up
    from recon.steps.runtime.environment import system_clock

    if len(keys) > KEYS_MAX:  # a person reads what comes back
        msg = f"{len(keys)} numbers; at most {KEYS_MAX} at once"
        raise typer.BadParameter(msg)
    settings = load_settings(os.environ)
    of_refunds = refunds or references
    is_order = not (references if of_refunds else transactions)
    others = "references" if of_refunds else "trades"
    named = {"order_nos" if is_order else others: keys}

    def question(client: Any) -> Any:
        return client.refunds(**named) if of_refunds else client.query(**named)

    looked_up: Any = asyncio.run(
        look_up(
            question,
            account=(merchant, account),
            settings=settings,
            clock=system_clock,
            randomness=SystemRandom(),
        )
    )
    if of_refunds:
        rows = [
            {field: str(getattr(refund, field)) for field in REFUND_FIELDS}
            for refund in looked_up.found
        ]
        stated_in, unknown = "answer", "no refund"
    else:
        rows = [_row(record, state=settings.rules.state_of) for record in looked_up.found]
        stated_in, unknown = "state", "not known to the gateway"
    key = "order_no" if is_order else "refund_reference" if of_refunds else "transaction_id"
    rows += [{key: each, stated_in: unknown} for each in looked_up.not_found]
    rows += [{key: each.key, stated_in: f"no answer: {each.reason}"} for each in looked_up.failed]
    if as_json:
        show_json(rows)
    else:
        show(rows, columns=REFUND_COLUMNS if of_refunds else PAYMENT_COLUMNS)
    if looked_up.failed:
        raise typer.Exit(NOT_KNOWN_EXIT_CODE)


def _row(record: Any, *, state: Any) -> dict[str, Any]:
    from recon.gateway_client.replies import RISK_FIELDS

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


Order = Annotated[str, typer.Argument(help="The merchant's order number.")]
MOVED = (
    *("kind", "order_no", "transaction_id", "currency", "amount", "state", "instruction_id"),
    *("message", "refund_reference_id"),
)
"""Of the instruction, as JSON."""
MOVED_COLUMNS = ("kind", "order_no", "transaction_id", "amount", "state", "refund_reference_id")
EXIT_CODES_OF_MOVES = {"confirmed": 0, "rejected": 1, "planned": 3, "approved": 3}
"""State of the instruction -> code; 3 waits for a person or for its night."""


By = Annotated[str, typer.Option("--as", help="Who asks for it; kept in the history.")]
Transaction = Annotated[str, typer.Option(help="Which payment, where the order has several.")]
RequestId = Annotated[
    str,
    typer.Option(
        help="An id of your own; the like of an earlier one waits for people, with an id too."
    ),
]


def _mover(kind: str, help_: str, **own: tuple[Any, Any]) -> None:
    """Add a command that moves a payment; `own`: options of this kind alone, with defaults."""

    def command(
        order: Order,
        merchant: Merchant,
        account: Account,
        *,
        name: By,
        transaction: Transaction = "",
        request_id: RequestId = "",
        as_json: AsJson = False,
        **money: str,
    ) -> None:
        from recon.model.money import Money
        from recon.model.terms import InstructionKind
        from recon.steps.money.by_hand import HandRequest, carry_out

        request = HandRequest(
            InstructionKind(kind),
            merchant,
            account,
            order_no=order,
            by=name,
            transaction_id=transaction,
            request_id=request_id,
            **money,
        )
        with opened() as environment:
            result = carry_out(request, environment=environment)
        message = result.message or result.hold
        shown = {each: getattr(result, each) for each in MOVED}
        amount = str(Money.of_minor_units(result.amount, currency=result.currency))
        row = {**shown, "amount": amount, "message": message}
        if as_json:
            show_json(row)
        else:
            show([row], columns=MOVED_COLUMNS)
            echo(f"{message or 'Done.'} [{result.instruction_id}]")
        if code := EXIT_CODES_OF_MOVES.get(result.state.value, NOT_KNOWN_EXIT_CODE):
            raise typer.Exit(code)

    signature = inspect.signature(command)
    *parameters, _ = signature.parameters.values()
    parameters += [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=kind_, default=default)
        for each, (kind_, default) in own.items()
    ]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what Typer looks at
    calls.command(kind, help=help_)(command)


PART = "Not the whole authorisation, but so much, such as 12.50."
REASON = "Shown at the gateway, at most 50 characters."
JOURNALLED = "by the journal of the nights."
_mover(
    "capture",
    f"Capture an authorised payment, {JOURNALLED}",
    amount=(Annotated[str, typer.Option(help=PART)], ""),
)
_mover(
    "refund",
    f"Refund a captured payment, whole or in part, {JOURNALLED}",
    amount=(Annotated[str, typer.Option(help="How much, such as 12.50.")], inspect.Parameter.empty),
    reason=(Annotated[str, typer.Option(help=REASON)], ""),
)
_mover("cancel", f"Cancel (release) an authorised payment, {JOURNALLED}")
_mover("review", f"Set the review flag of a payment, {JOURNALLED}")


EXIT_CODES = {"done": 0, "accepted": 0, "pending": 0, "failed": 1, "rejected": 1, "not_sent": 1}
IN_A_QUERY = "Ask `recon gateway query`, or look into the gateway's portal."
IN_THE_PORTAL = "No question to the gateway shows it: look it up in the portal."
CARD_FIELDS = {
    "card": "Card number",
    "expiration_month": "Month of expiry",
    "expiration_year": "Year of expiry",
    "security_code": "Security code",
}
"""Field of a card -> what it is asked for as."""

OrderNo = Annotated[str, typer.Argument(help="A new order number.")]
Currency = Annotated[str, typer.Option(help="Such as EUR.")]
Amount = Annotated[str, typer.Option(help="Such as 12.50.")]
FieldsFile = Annotated[
    Path | None,
    typer.Option("--fields", help="JSON file (mode 0600) with more fields of the API document."),
]


@calls.command("authorise")
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
    """Start a payment by card, or by another method (--payment-method)."""
    from recon.gateway_client import ApmPayment, CardPayment

    if payment_method and card_file:
        msg = "a card and --payment-method are two ways to pay"
        raise typer.BadParameter(msg)
    client, played = _place(merchant, account)
    given = _fields(fields, order_no=order_no, currency=currency, amount=amount)
    payment: ApmPayment | CardPayment
    if payment_method:
        payment = checked(ApmPayment, given | {"payment_method": payment_method})
    elif played or live_card:
        payment = checked(CardPayment, given | ({} if given.get("token_id") else _card(card_file)))
    else:
        msg = "a card is taken for the sandbox only; --live-card allows it. Nothing was sent"
        raise UsageError(msg)
    reply = _called(client.pay(payment))
    _show_outcome(reply, _facts(reply.record), findings=reply.findings, as_json=as_json)


@calls.command("checkout")
def checkout(
    order_no: OrderNo,
    merchant: Merchant,
    account: Account,
    *,
    currency: Currency,
    amount: Amount,
    fields: FieldsFile = None,
    return_url: Annotated[str, typer.Option(help="Where the shopper comes back to; https.")] = "",
    page: Annotated[
        Path | None, typer.Option(help="Write the page here, for a browser; mode 0600.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a payment on the gateway's own page; money moves only when the shopper pays there."""
    from recon.gateway_client import HostedPayment

    client, _ = _place(merchant, account)
    given = _fields(fields, order_no=order_no, currency=currency, amount=amount)
    given |= {"return_url": return_url} if return_url else {}
    reply = _called(client.pay(checked(HostedPayment, given)))
    if page is not None and reply.page:
        with open(page, "wb", opener=for_owner) as file:
            file.write(reply.page)
    facts = _facts(reply.record)
    if reply.form is not None:
        facts = {"posts_to": reply.form.action, "inputs": str(len(reply.form.inputs))}
    _show_outcome(reply, facts, findings=reply.findings, as_json=as_json)


CONTRACT_FIELDS = ("recurring_id", "contract_name")


RowFile = Annotated[
    Path, typer.Argument(help="JSON file (mode 0600) with the fields of the API document.")
]


@calls.command("payout")
def payout(file: RowFile, merchant: Merchant, account: Account, *, as_json: AsJson = False) -> None:
    """Pay a beneficiary (sandbox only); elsewhere payouts need two people and a night."""
    from recon.gateway_client import PayoutRow

    client, _ = _place(merchant, account, only_played="a payout")
    row = checked(PayoutRow, {"request_id": str(uuid.uuid4()), **read_private(file)})
    reply = _called(client.payout(row))
    facts = {"request_id": str(row.request_id), **_facts(reply.rows[0].payout)}
    _show_outcome(
        reply.rows[0], facts, findings=reply.findings, as_json=as_json, where=IN_THE_PORTAL
    )


@calls.command("cancel-subscription")
def cancel_subscription(
    file: RowFile, merchant: Merchant, account: Account, *, as_json: AsJson = False
) -> None:
    """End a recurring contract (sandbox only); what is already contracted is still charged."""
    from recon.gateway_client import CancelSubscriptionRow

    client, _ = _place(merchant, account, only_played="the end of a subscription")
    fields = read_private(file)
    if set(fields) != set(CONTRACT_FIELDS):
        msg = f"{file} must hold exactly {', '.join(CONTRACT_FIELDS)}; nothing was sent"
        raise UsageError(msg)
    reply = _called(client.cancel_subscription(CancelSubscriptionRow(**fields)))
    _show_outcome(reply.rows[0], {}, findings=reply.findings, as_json=as_json, where=IN_THE_PORTAL)


def _place(merchant: str, account: str, *, only_played: str = "") -> tuple[Any, bool]:
    """The client of the account, and whether its gateway is the sandbox.

    Raises:
        UsageError: it is not, and what is asked for is of the sandbox only.
    """
    from recon.config.settings import load_settings
    from recon.instructions.account import gateway_account
    from recon.steps.runtime.environment import system_clock

    settings = load_settings(os.environ)
    if only_played and not settings.is_sandbox:
        msg = (
            f"{only_played} by hand is for the sandbox only, since no journal would know of it: "
            "put it into an instruction file, where two people approve it and a night sends it "
            "once. Nothing was sent"
        )
        raise UsageError(msg)
    declared = gateway_account(settings, merchant_id=merchant, account_id=account)
    return declared.client(clock=system_clock), settings.is_sandbox


def _called(call: Coroutine[Any, Any, Any]) -> Any:
    """What one call came to; it is made once, whatever happens. Errors name fields, not values."""
    from recon.gateway_client import GatewayClientError

    try:
        return asyncio.run(call)
    except GatewayClientError as error:
        raise UsageError(str(error)) from None


def _fields(path: Path | None, **given: str) -> dict[str, Any]:
    """Fields of the file under those of the command; a card has its own way in."""
    fields = {} if path is None else read_private(path)
    cards = [name for name in CARD_FIELDS if name in fields]
    if cards:
        msg = f"{path} holds {', '.join(cards)}: a card comes from --card-file or the prompt only"
        raise UsageError(msg)
    return {**fields, **given}


def _card(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {
            field: typer.prompt(text, hide_input=True, err=True)
            for field, text in CARD_FIELDS.items()
        }
    card = read_private(path)
    if set(card) != set(CARD_FIELDS):
        msg = f"{path} must hold exactly {', '.join(CARD_FIELDS)}; nothing was sent"
        raise UsageError(msg)
    return card


FACTS = (
    *("transaction_id", "card", "order_status", "connector", "threeds_result", "risk_action"),
    *("risk_score", "recurring_id", "contract_name", "issuer_url", "short_reference_id", "status"),
    *("failure_type", "amount_beneficiary_receives", "amount_payer_pays", "fee_amount"),
    "fee_currency",
)
"""Of the record of a payment or payout, in this order."""


def _facts(record: object) -> dict[str, str]:
    """What may be shown of a record, as far as it is filled."""
    values = {name: getattr(record, name, None) for name in FACTS}
    return {name: str(value) for name, value in values.items() if value not in {"", None}}


def _show_outcome(
    result: Any,
    facts: dict[str, str],
    *,
    findings: Iterable[Any],
    as_json: bool,
    where: str = IN_A_QUERY,
) -> None:
    """Show what a call came to; `where`: what shows the outcome of one that got no answer."""
    outcome = result.outcome.value
    message = result.message or "; ".join(finding.message for finding in findings)
    row = {"outcome": outcome, "code": result.code, "message": message, **facts}
    if as_json:
        show_json(row)
    else:
        echo("\n".join(f"{name}: {value}" for name, value in row.items() if value))
        if outcome == "unknown":
            echo(f"Do not send it again. {where}")
    if code := EXIT_CODES.get(outcome, NOT_KNOWN_EXIT_CODE):
        raise typer.Exit(code)


SAFE_MODES = frozenset({0o600, 0o400})
Fields = TypeVar("Fields", bound="BaseModel")


def read_private(path: Path) -> dict[str, Any]:
    """The JSON object of a file that nobody else can read.

    Raises:
        ConfigurationError: others can read it, or it is not a regular file.
        ReconError: it is not there, or not one JSON object.
    """
    from recon.files.formats.json_text import read_json_object

    if path.exists():
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or stat.S_IMODE(mode) not in SAFE_MODES:
            msg = f"{path} can be read by others (it holds private data): chmod 600 {path}"
            raise ConfigurationError(msg)
    return read_json_object(path)


def checked(model: type[Fields], fields: dict[str, Any]) -> Fields:
    """The message, or which fields are wrong; never what they hold.

    Raises:
        UsageError: naming each field that is unknown, missing or wrong.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['type'].replace('_', ' ')}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        msg = f"{problems}; nothing was sent"
        raise UsageError(msg) from None
