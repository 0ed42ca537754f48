"""What people say of months at the desk: that one is closed, or open again.

The desk's room lies below this one, so its acts are handed to it by whoever starts it.
"""

from dataclasses import asdict
from functools import partial

from pydantic import TypeAdapter

from recon.period.business_month import BusinessMonth
from recon.steps.care.reopened_months import ReopenWord, reopen_month
from recon.steps.care.sealed_closes import DrawnClose
from recon.steps.care.signed_closes import CloseWord, MonthToSign, sign_close
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.people.at_desk import Acts, Body, Reply, text_said

SIGN_CLOSE, REOPEN_MONTH = "sign-close", "reopen-month"
_WORD = TypeAdapter(CloseWord)
_REOPEN = TypeAdapter(ReopenWord)


def acts_of_months(drawn: DrawnClose) -> Acts:
    """The acts, with what draws the workbook of a close."""
    return {SIGN_CLOSE: partial(_sign, drawn=drawn), REOPEN_MONTH: _reopen}


def close_body(wanted: MonthToSign) -> dict[str, str]:
    """What is said of a month, for the desk."""
    words = asdict(wanted) | {"month": wanted.month.name}
    merchant_id, account_id = words.pop("account")
    return {**words, "merchant_id": merchant_id, "account_id": account_id}


def close_word_of(reply: Reply) -> CloseWord:
    """What became of a word under a month, as the desk replied."""
    return _WORD.validate_python(reply["word"])


def reopen_body(month: BusinessMonth, *, account: tuple[str, str], reason: str) -> dict[str, str]:
    """What is said of a month that is to be open again, for the desk."""
    where = {"merchant_id": account[0], "account_id": account[1]}
    return {"month": month.name, "reason": reason, **where}


def reopen_word_of(reply: Reply) -> ReopenWord:
    """What became of such a word, as the desk replied."""
    return _REOPEN.validate_python(reply["word"])


def _reopen(body: Body, person: Person, environment: Environment) -> Reply:
    month = BusinessMonth.named(text_said(body, "month"))
    account = (text_said(body, "merchant_id"), text_said(body, "account_id"))
    environment.settings.account(account[0], account_id=account[1])
    reason = text_said(body, "reason")
    word = reopen_month(
        month, account=account, reason=reason, person=person, environment=environment
    )
    return {"word": _REOPEN.dump_python(word, mode="json")}


def _sign(body: Body, person: Person, environment: Environment, *, drawn: DrawnClose) -> Reply:
    wanted = MonthToSign(
        BusinessMonth.named(text_said(body, "month")),
        (text_said(body, "merchant_id"), text_said(body, "account_id")),
        text_said(body, "role"),
        text_said(body, "seen"),
    )
    environment.settings.account(wanted.account[0], account_id=wanted.account[1])
    word = sign_close(wanted, person=person, drawn=drawn, environment=environment)
    return {"word": _WORD.dump_python(word, mode="json")}
