"""What people say of months at the desk: that one is closed.

The desk's room lies below this one, so its acts are handed to it by whoever starts it.
"""

from dataclasses import asdict
from functools import partial

from pydantic import TypeAdapter

from recon.period.business_month import BusinessMonth
from recon.steps.care.sealed_closes import DrawnClose
from recon.steps.care.signed_closes import CloseWord, MonthToSign, sign_close
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.people.at_desk import Acts, Body, Reply, text_said

SIGN_CLOSE = "sign-close"
_WORD = TypeAdapter(CloseWord)


def acts_of_months(drawn: DrawnClose) -> Acts:
    """The acts, with what draws the workbook of a close."""
    return {SIGN_CLOSE: partial(_sign, drawn=drawn)}


def close_body(wanted: MonthToSign) -> dict[str, str]:
    """What is said of a month, for the desk."""
    words = asdict(wanted) | {"month": wanted.month.name}
    merchant_id, account_id = words.pop("account")
    return {**words, "merchant_id": merchant_id, "account_id": account_id}


def close_word_of(reply: Reply) -> CloseWord:
    """What became of a word under a month, as the desk replied."""
    return _WORD.validate_python(reply["word"])


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
