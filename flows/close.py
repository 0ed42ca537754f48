"""Flow `close`: the close of a month, prepared and signed in Prefect's form.

The first run only prepares: verdict, what blocks it, and the digest that is signed. A reviewer and
an approver, in any order, put their names under that digest; two people open a closed month again.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field, SecretStr

from flows.approve import Reason, ShortName
from flows.outcome import in_words
from flows.page_text import on_a_page
from tasks.running import opened_environment, say, sentences_only

if TYPE_CHECKING:
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.month_index import AccountMonth
    from recon.steps.care.signed_closes import CloseWord
    from recon.steps.ground.environment import Environment
    from recon.steps.people.at_desk import Acts

Month = Annotated[str, Field(pattern=r"^(20[0-9]{2}-(0[1-9]|1[0-2]))?$")]
Digest = Annotated[str, Field(pattern=r"^([0-9a-f]{16,64})?$")]
Id = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{1,64})?$")]
BLOCKERS_SHOWN_MAX = 20


class Closing(StrEnum):
    """What the form offers."""

    PREPARE = "prepare"
    REVIEWER = "reviewer"
    APPROVER = "approver"
    REOPEN = "reopen"


@flow(
    name="close",
    flow_run_name="close: {act} {month} {merchant_id}/{account_id} {name}",
    retries=0,
    persist_result=False,
)
@in_words()
def close(  # noqa: PLR0917 - the fields of a form
    act: Closing = Closing.PREPARE,
    month: Month = "",
    merchant_id: Id = "",
    account_id: Id = "",
    digest: Digest = "",
    reason: Reason = "",
    name: ShortName = "",
    code: SecretStr | None = None,
) -> State[Any]:
    """Prepare the close of a month, sign it as its reviewer or its approver, or open it again.

    Args:
        act: prepare looks only; the reviewer signs first, then an approver, which closes it; reopen
            is one of the two words that open a closed month again.
        month: Such as 2026-11; without it the month before this one.
        merchant_id: Of the account; for prepare it may be left out for all.
        account_id: Of the account; for prepare it may be left out for all.
        digest: Of what you looked at, as prepare shows it, its first 16 digits or all.
        reason: Why a closed month is opened again; kept in the history.
        name: Your short name in approvers.toml.
        code: Your current one-time code.
    """
    with sentences_only("close"), opened_environment() as environment:
        wanted = _month(month, environment=environment)
        account = (merchant_id, account_id)
        if act is Closing.PREPARE:
            return _prepared(wanted, account, environment=environment)
        _refuse_unnamed(account, name=name)
        if act is Closing.REOPEN:
            return _reopened(
                wanted, account, reason=reason, who=(name, code), environment=environment
            )
        signs = (act.value, digest)
        return _signed(wanted, account, signs=signs, who=(name, code), environment=environment)


def _month(text: str, *, environment: "Environment") -> "BusinessMonth":
    """The month of the form, or the one before today's."""
    from recon.period.business_month import BusinessMonth

    if text:
        return BusinessMonth.named(text)
    this = BusinessMonth.named(f"{environment.clock():%Y-%m}")
    return BusinessMonth.named(f"{this.before:%Y-%m}")


def _refuse_unnamed(account: tuple[str, str], *, name: str) -> None:
    from recon.model.errors import UsageError

    if not all((*account, name)):
        msg = "name the merchant, the account and who you are"
        raise UsageError(msg)


def _prepared(
    month: "BusinessMonth", account: tuple[str, str], *, environment: "Environment"
) -> State[Any]:
    """Every account that fits: its workbook in the reports, and what is signed."""
    from recon.cli.month_commands import declared_accounts, index_of_months

    merchant_id, account_id = account
    lines: list[str] = []
    indexed = []
    settings = environment.settings
    for which in declared_accounts(settings, merchant=merchant_id, account=account_id):
        own, shown = _of_account(month, which, environment=environment)
        indexed.append(own)
        lines += shown
    verdicts = [each.standing for each in indexed]
    pages = index_of_months(indexed, month=month, out=None, settings=settings)
    lines += [f"- {on_a_page(page)}" for page in pages]
    sentence = f"{month.name}: {', '.join(verdicts)}."
    return _ended(lines, sentence=sentence, name=verdicts[0] if len(verdicts) == 1 else "Prepared")


def _of_account(
    month: "BusinessMonth", which: tuple[str, str], *, environment: "Environment"
) -> "tuple[AccountMonth, list[str]]":
    from recon.steps.care.close_digest import seen_close
    from recon.steps.care.close_files import close_name, write_close_files
    from recon.steps.care.closed_view import closed_view
    from recon.steps.care.month_closes import prepared_close
    from recon.steps.care.month_index import of_closed, of_prepared
    from reports.month_workbook import write_close_workbook
    from reports.sheets.words import in_words

    title = f"## {'/'.join(which)}"
    view = closed_view(month, account=which, environment=environment)
    if view is not None:
        lines = [f"{view.closed.in_words}, folder {view.closed.folder}."]
        differs = [f"Would be different today: {each}" for each in view.differs or ()]
        lines += differs or ["Nothing would be different today."]
        return of_closed(view, workbook=None), [
            title,
            "",
            *(f"- {on_a_page(line)}" for line in lines),
            "",
        ]
    prepared = prepared_close(month, account=which, environment=environment)
    folder = environment.settings.account(which[0], account_id=which[1]).reports
    seen = seen_close(prepared)
    write_close_files(prepared, files=seen.files, folder=folder)
    path = folder / f"{close_name(prepared)}.xlsx"
    workbook = write_close_workbook(prepared, path, seen=seen)
    lines = [f"{prepared.verdict.value}; workbook {workbook}; digest {seen.digest}"]
    signed = prepared.state.signed
    lines += [f"Signed by {signed.by} ({signed.role})"] if signed else []
    lines += [
        f"Blocked: {in_words(each.what, code=each.code)}. Next: {each.where}"
        for each in prepared.blockers[:BLOCKERS_SHOWN_MAX]
    ]
    own = of_prepared(prepared, workbook=workbook)
    return own, [title, "", *(f"- {on_a_page(line)}" for line in lines), ""]


def _acts() -> "Acts":
    from recon.steps.care.months_at_desk import acts_of_months
    from reports.month_workbook import close_workbook

    return acts_of_months(close_workbook)


def _signed(
    month: "BusinessMonth",
    account: tuple[str, str],
    *,
    signs: tuple[str, str],
    who: tuple[str, SecretStr | None],
    environment: "Environment",
) -> State[Any]:
    from recon.steps.care.months_at_desk import SIGN_CLOSE, close_body, close_word_of
    from recon.steps.care.signed_closes import MonthToSign
    from recon.steps.people.at_desk import say as say_at_desk

    role, digest = signs
    body = close_body(MonthToSign(month, account, role, digest))
    reply = say_at_desk(SIGN_CLOSE, body, who=who, environment=environment, more=_acts())
    return _became(close_word_of(reply), month=month.name, role=role)


def _became(word: "CloseWord", *, month: str, role: str) -> State[Any]:
    """What became of a name under a month."""
    from recon.steps.care.signed_closes import other_role

    lines = [f"- Moved: {on_a_page(each)}" for each in word.moved]
    lapsed = f" The signature of {word.lapsed} lapsed: figures moved." if word.lapsed else ""
    if word.closed is not None:
        closed = word.closed
        sentence = f"{month} is CLOSED by {closed.by}; folder {closed.folder}."
        return _ended(lines, sentence=sentence, name="CLOSED")
    until = f" until {word.valid_until:%Y-%m-%d %H:%M} UTC" if word.valid_until else ""
    sentence = (
        f"{month}: signed as {role}; the {other_role(role)} must sign the same{until}.{lapsed}"
    )
    return _ended(lines, sentence=sentence, name="Signed")


def _reopened(
    month: "BusinessMonth",
    account: tuple[str, str],
    *,
    reason: str,
    who: tuple[str, SecretStr | None],
    environment: "Environment",
) -> State[Any]:
    from recon.steps.care.months_at_desk import REOPEN_MONTH, reopen_body, reopen_word_of
    from recon.steps.people.at_desk import say as say_at_desk

    body = reopen_body(month, account=account, reason=reason)
    reply = say_at_desk(REOPEN_MONTH, body, who=who, environment=environment, more=_acts())
    if reopen_word_of(reply).reopened:
        return _ended([], sentence=f"{month.name} is REOPENED; its folder stays.", name="REOPENED")
    sentence = f"{month.name}: noted, a second person must say the same; it is still closed."
    return _ended([], sentence=sentence, name="Noted")


def _ended(lines: Sequence[str], *, sentence: str, name: str) -> State[Any]:
    say(sentence)
    markdown = "\n".join(["# Close", "", on_a_page(sentence), "", *lines])
    create_markdown_artifact(markdown=markdown, key="close", description=on_a_page(sentence))
    return Completed(name=name, message=sentence)
