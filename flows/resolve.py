"""Flow `resolve`: what two people say became of money in doubt, given in Prefect's form.

The first run only shows the doubts, each with what the gateway told of it by itself: of a payout
nothing else ever tells. A person's decision names such a message, and it is kept with it. A verdict
never sends. The code is a one-time code, as in `approve`.
"""

from enum import StrEnum
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
    from collections.abc import Sequence

    from recon.model.figures import Attention
    from recon.store.nights.runs import Run

InstructionId = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{1,64})?$")]
Message = Annotated[str, Field(pattern=r"^([0-9a-f]{12,64})?$")]
Evidence = Annotated[str, Field(max_length=300)]
DOUBTS_SHOWN_MAX = 100
"""Rows of the page; `recon status` has all of them."""


class OfferedWord(StrEnum):
    """What the form offers."""

    SHOW = "show"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    TAKE_BACK = "take_back"


@flow(
    name="resolve",
    flow_run_name="resolve: {verdict} {instruction} {name}",
    retries=0,
    persist_result=False,
)
@in_words()
def resolve(  # noqa: PLR0917 - the fields of a form
    verdict: OfferedWord = OfferedWord.SHOW,
    instruction: InstructionId = "",
    evidence: Evidence = "",
    message: Message = "",
    name: ShortName = "",
    code: SecretStr | None = None,
) -> State[Any]:
    """Show money in doubt, or say what became of one instruction; two people say the same.

    Args:
        verdict: show looks only; applied says that the money moved; not_applied that it did not;
            take_back takes your own word back while it decides nothing.
        instruction: Its id, as `show` lists it.
        evidence: What you saw and where; kept in the history.
        message: The message of the gateway's that you go by, as `show` names it; may stay empty.
        name: Your short name in approvers.toml.
        code: Your current one-time code.
    """
    with sentences_only("resolve"), opened_environment() as environment:
        from recon.model.errors import UsageError
        from recon.steps.people import people
        from recon.steps.people.at_desk import say as say_at_desk

        if verdict is OfferedWord.SHOW:
            undecided = people.undecided(environment)
            return _ended(undecided, sentence=f"{len(undecided)} in doubt.", name="Shown")
        if not instruction or not name:
            msg = "name the instruction and who you are"
            raise UsageError(msg)
        who = (name, code)
        if verdict is OfferedWord.TAKE_BACK:
            taken = {"subject": instruction}
            done = say_at_desk("take-back", taken, who=who, environment=environment)
            sentence, ending = f"Taken back: {done['what']}.", "Taken back"
        else:
            body = {"instruction_id": instruction, "verdict": verdict.value, "evidence": evidence}
            body["message"] = message
            done = say_at_desk("resolve", body, who=who, environment=environment)
            sentence, ending = done["sentence"], "Decided" if done["decided"] else "Noted"
        return _ended(people.undecided(environment), sentence=sentence, name=ending)


def _ended(shown: "Sequence[tuple[Run, Attention]]", *, sentence: str, name: str) -> State[Any]:
    say(sentence)
    create_markdown_artifact(
        markdown_of(shown, sentence), key="doubts", description=on_a_page(sentence)
    )
    return Completed(name=name, message=sentence)


def markdown_of(shown: "Sequence[tuple[Run, Attention]]", sentence: str) -> str:
    """The doubts as people read them: the money, since when, and all that is known of it."""
    from recon.model.money import Money

    lines = ["# Money in doubt", "", on_a_page(sentence), ""]
    with_message = [instruction for _, instruction in shown if instruction.message]
    if with_message:
        # Above the table: its last columns are beyond the edge of a page.
        lines += ["## What the gateway told by itself", ""]
        lines += [
            f"- {instruction.what}, instruction {instruction.instruction_id}: "
            f"{on_a_page(instruction.message)}."
            for instruction in with_message
        ]
        lines += [""]
    if shown:
        lines += [
            "| instruction | what | order | amount | since | account | known, and to do |",
            "|---|---|---|---|---|---|---|",
        ]
    for run, instruction in shown[:DOUBTS_SHOWN_MAX]:
        money = (
            Money.of_minor_units(instruction.amount, currency=instruction.currency)
            if instruction.currency
            else ""
        )
        cells = (
            instruction.instruction_id,
            instruction.what,
            instruction.order_no,
            str(money),
            f"{instruction.since:%Y-%m-%d %H:%M} UTC",
            f"{run.merchant_id}/{run.account_id}",
            instruction.next_step,
        )
        lines.append(table_row(*cells))
    if len(shown) > DOUBTS_SHOWN_MAX:
        more = len(shown) - DOUBTS_SHOWN_MAX
        lines += ["", f"{more} more stand in `recon status`."]
    return "\n".join(lines)
