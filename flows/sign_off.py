"""Flow `sign-off`: a person's name under a night's workbook, given in Prefect's form.

The code is a one-time code in a secret field: once used it is refused, whoever may have read it.
The first run without a role only lists the nights.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field, SecretStr

from flows.approve import ShortName
from flows.outcome import in_words
from flows.page_text import on_a_page, table_row
from tasks.running import opened_environment, say, sentences_only

if TYPE_CHECKING:
    from recon.steps.ground.environment import Environment
    from recon.steps.people.sign_off import Night

RunId = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{1,64})?$")]
Seen = Annotated[str, Field(pattern=r"^([0-9a-f]{16,64})?$")]
NIGHTS_SHOWN = 14


class Signing(StrEnum):
    """What the form offers."""

    SHOW = "show"
    REVIEWER = "reviewer"
    APPROVER = "approver"
    TAKE_BACK = "take_back"


@flow(
    name="sign-off",
    flow_run_name="sign-off: {sign_as} {run_id} {name}",
    retries=0,
    persist_result=False,
)
@in_words()
def sign_off(  # noqa: PLR0917 - the fields of a form
    sign_as: Signing = Signing.SHOW,
    run_id: RunId = "",
    workbook_sha256: Seen = "",
    name: ShortName = "",
    code: SecretStr | None = None,
) -> State[Any]:
    """List the last nights, or sign one night's workbook as its reviewer or its approver.

    Args:
        sign_as: show lists the last nights; reviewer and approver sign in any order; take_back
            takes your own name back while the other one is missing.
        run_id: The run whose workbook you looked at; `show` lists them.
        workbook_sha256: Of the file that you looked at, its first 16 digits or all; what `show`
            lists is what the run wrote last.
        name: Your short name in approvers.toml.
        code: Your current one-time code.
    """
    with sentences_only("sign-off"), opened_environment() as environment:
        from recon.model.errors import UsageError

        if sign_as is Signing.SHOW:
            return _listed(environment)
        if not run_id or not name:
            msg = "name the run and who you are"
            raise UsageError(msg)
        if sign_as is Signing.TAKE_BACK:
            return _taken_back(run_id, who=(name, code), environment=environment)
        body = {"run_id": run_id, "role": sign_as.value, "workbook_sha256": workbook_sha256}
        return _signed(body, who=(name, code), environment=environment)


def _signed(
    body: Mapping[str, str],
    *,
    who: tuple[str, SecretStr | None],
    environment: "Environment",
) -> State[Any]:
    from recon.steps.people.at_desk import SIGN_OFF, acts_of_signatures, night_of
    from recon.steps.people.at_desk import say as say_at_desk
    from recon.steps.people.sign_off import answers_of
    from reports.reading.signed_copy import signed_bytes, write_signed_copy

    more = acts_of_signatures(signed_bytes)
    night = night_of(say_at_desk(SIGN_OFF, body, who=who, environment=environment, more=more))
    copy = write_signed_copy(
        Path(night.workbook),
        signatures=night.signed,
        answers=answers_of(night, environment=environment),
        timezone=environment.settings.rules.calendar.timezone,
    )
    run_id, role = body["run_id"], body["role"]
    sentence = f"Signed as {role}: night of {night.business_date}, run {run_id}, copy {copy}."
    return _ended([night], sentence=sentence, name="Signed")


def _taken_back(
    run_id: str, *, who: tuple[str, SecretStr | None], environment: "Environment"
) -> State[Any]:
    from recon.cli.workbooks import remove_signed_copies
    from recon.steps.people.at_desk import say as say_at_desk

    done = say_at_desk("take-back", {"subject": run_id}, who=who, environment=environment)
    remove_signed_copies(run_id, environment=environment)
    return _ended([], sentence=f"Taken back: {done['what']}.", name="Taken back")


def _listed(environment: "Environment") -> State[Any]:
    from recon.steps.people.sign_off import nights

    last: date = environment.clock().date()
    listed = nights(last - timedelta(days=NIGHTS_SHOWN), last=last, environment=environment)
    ran = [night for night in listed if night.run_id]
    waiting = sum(night.unsigned_days > 0 for night in ran)
    sentence = f"{len(ran)} nights of the last {NIGHTS_SHOWN} days, {waiting} not signed."
    return _ended(ran, sentence=sentence, name="Shown")


def _ended(shown: "list[Night]", *, sentence: str, name: str) -> State[Any]:
    say(sentence)
    create_markdown_artifact(
        markdown_of(shown, sentence), key="sign-off", description=on_a_page(sentence)
    )
    return Completed(name=name, message=sentence)


def markdown_of(shown: "list[Night]", sentence: str) -> str:
    """The nights as people read them: what came out, and whose names stand under it."""
    from recon.model.words import DIGITS_READ

    lines = ["# Sign-off", "", on_a_page(sentence), ""]
    if shown:
        lines += [
            "| account | night | verdict | run | workbook | signed | void |",
            "|---|---|---|---|---|---|---|",
        ]
    for night in shown:
        names = (
            ", ".join(f"{signature.role} {signature.by}" for signature in night.signed)
            or "not signed"
        )
        account = f"{night.merchant_id}/{night.account_id}"
        cells = (
            *(account, str(night.business_date), night.standing, night.run_id),
            *(night.workbook_sha256[:DIGITS_READ], names),
        )
        lines.append(table_row(*cells, night.void_because))
    return "\n".join(lines)
