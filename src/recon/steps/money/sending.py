"""Whether money may be sent and how much: the switch for everybody, and the account's limits."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

from recon.config.limits import CurrencyLimits
from recon.instructions.allowance import TWO_PEOPLE, RuleAllowance, SendingAllowance
from recon.instructions.instruction import Instruction
from recon.instructions.planning import RULE_APPROVER
from recon.model.business_date import midnight
from recon.model.errors import UsageError
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.ground.two_words import REASON_CHARACTERS_MAX, agreed
from recon.steps.money.gate import Gate
from recon.steps.money.restore import by_people_only
from recon.store import Connection
from recon.store.money import sending_rows
from recon.store.money.endorsement_rows import ALLOW_SENDING
from recon.store.money.sending_rows import Stopped
from recon.store.nights.runs import Run

NAME_CHARACTERS_MAX = 100
NOT_BY_RULE = f"{TWO_PEOPLE}: a rule approved it earlier, and no rule approves for it now"


def stop_sending(*, by: str, reason: str, environment: Environment) -> None:
    """From now on nobody sends money: a running night ends before its next batch.

    Raises:
        UsageError: name or reason is missing or too long, or sending is stopped already.
    """
    name, why = by.strip(), reason.strip()
    if not name or not why:
        msg = "say who does it (--as) and why (--reason); nothing was changed"
        raise UsageError(msg)
    if len(name) > NAME_CHARACTERS_MAX or len(why) > REASON_CHARACTERS_MAX:
        msg = (
            f"a name has at most {NAME_CHARACTERS_MAX} characters and a reason "
            f"{REASON_CHARACTERS_MAX}; nothing was changed"
        )
        raise UsageError(msg)
    with environment.store.writing() as connection:
        stop = sending_rows.stopped(connection)
        if stop is not None:
            msg = f"{stop}; nothing was changed"
            raise UsageError(msg)
        sending_rows.turn_switch(connection, stop=True, by=name, reason=why, at=environment.clock())


def allow_sending(*, person: Person, reason: str, environment: Environment) -> bool:
    """One person's word that money may be sent again; True when it is the second, and it may.

    Raises:
        UsageError: sending is not stopped, or the word does not count (`steps.agreement`).
    """
    with environment.store.writing() as connection:
        stop = sending_rows.stopped(connection)
        if stop is None:
            msg = "sending is not stopped; nothing was changed"
            raise UsageError(msg)
        both = agreed(
            connection,
            ALLOW_SENDING,
            subject=str(stop.turn),
            reason=reason,
            person=person,
            environment=environment,
        )
        if both:
            at = environment.clock()
            sending_rows.turn_switch(connection, stop=False, by=both, reason=reason.strip(), at=at)
    return bool(both)


def sending_stopped(environment: Environment) -> Stopped | None:
    """Who stopped all sending; None while money may be sent."""
    with environment.store.reading() as connection:
        return sending_rows.stopped(connection)


def halted(gate: Gate, *, environment: Environment) -> Gate:
    """The gate, closed for everything while sending is stopped."""
    stop = sending_stopped(environment)
    if stop is None:
        return gate
    reasons = "; ".join(part for part in (str(stop), gate.closed_because) if part)
    return replace(gate, closed_because=reasons)


def rule_allowance(connection: Connection, run: Run, *, environment: Environment) -> RuleAllowance:
    """What planning may approve by rule, less what it approved earlier in this night."""
    return RuleAllowance(
        lambda currency: _bounds(run, currency=currency, environment=environment),
        approved=sending_rows.approved_by_rule(connection, run),
        paid_before=sending_rows.paid_payees(connection, run),
        needs_limit=not environment.settings.is_sandbox,
    )


def rule_approves(connection: Connection, run: Run, *, environment: Environment) -> bool:
    """Whether a rule may approve at all tonight; else everything waits for people."""
    settings = environment.settings
    account = settings.account(run.merchant_id, account_id=run.account_id)
    return account.auto_approve and not by_people_only(
        connection, run, calendar=settings.rules.business_calendar
    )


def no_longer_by_rule(
    connection: Connection, run: Run, *, approved: Iterable[Instruction], environment: Environment
) -> dict[str, str]:
    """Instruction id -> why its rule, asked again, does not approve it any more.

    What an earlier night approved by rule, a dry run too, goes only as far as the rule goes now:
    each night's sum is counted again under the bounds that hold now, what was sent of it first.
    """
    by_rule = [item for item in approved if item.approved_by == RULE_APPROVER]
    if not by_rule:
        return {}
    if not rule_approves(connection, run, environment=environment):
        return dict.fromkeys((item.instruction_id for item in by_rule), NOT_BY_RULE)
    nights = sending_rows.nights_planned(connection, run)
    used = sending_rows.used_by_rule(connection, run, nights=nights.values())
    allowances: dict[date, RuleAllowance] = {}
    reasons = {}
    for item in by_rule:
        night = nights.get(item.instruction_id, run.business_date)
        if night not in allowances:
            allowances[night] = RuleAllowance(
                lambda currency: _bounds(run, currency=currency, environment=environment),
                approved=used.get(night, {}),
                needs_limit=not environment.settings.is_sandbox,
            )
        if because := allowances[night].hold_on(
            item.kind, currency=item.currency, amount=item.amount
        ):
            reasons[item.instruction_id] = because
    return reasons


def sending_allowance(
    connection: Connection, run: Run, *, environment: Environment
) -> SendingAllowance:
    """What may still be sent tonight and on this calendar day."""
    calendar = environment.settings.rules.business_calendar
    today = calendar.local_date(environment.clock())
    return SendingAllowance(
        lambda currency: _bounds(run, currency=currency, environment=environment),
        night=sending_rows.sent_this_night(connection, run),
        day=sending_rows.sent_between(
            connection,
            run,
            start=midnight(today, zone=calendar.zone),
            end=midnight(today + timedelta(days=1), zone=calendar.zone),
        ),
    )


def _bounds(run: Run, *, currency: str, environment: Environment) -> CurrencyLimits:
    account = f"{run.merchant_id}/{run.account_id}"
    return environment.settings.limits.of(account, currency=currency)
