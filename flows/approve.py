"""Flow `approve`: a person's yes or no to the list that waits, given in Prefect's form.

Prefect hides the code in its form and yet stores it; a code therefore counts once, and for a minute
or so. The first run without a digest only shows the list; the digest is what both people then name.
"""

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field, SecretStr

from flows.outcome import in_words
from flows.page_text import on_a_page, table_row
from tasks.running import opened_environment, say, sentences_only

if TYPE_CHECKING:
    from recon.settlement.approval import ApprovalList
    from recon.steps.ground.environment import Environment

Digest = Annotated[str, Field(pattern=r"^([0-9a-f]{16})?$")]
ShortName = Annotated[str, Field(pattern=r"^([a-z][a-z0-9._-]{0,39})?$")]
Reason = Annotated[str, Field(max_length=300)]


ROWS_SHOWN_MAX = 1_000
"""Lines of the page; the digest and the sums are of all."""


class Decision(StrEnum):
    """What the form offers."""

    SHOW = "show"
    APPROVE = "approve"
    REJECT = "reject"
    TAKE_BACK = "take_back"


@flow(name="approve", flow_run_name="approve: {decision} {name}", retries=0, persist_result=False)
@in_words()
def approve(  # noqa: PLR0917 - the fields of a form
    decision: Decision = Decision.SHOW,
    list_digest: Digest = "",
    name: ShortName = "",
    code: SecretStr | None = None,
    reason: Reason = "",
) -> State[Any]:
    """Show what waits for people, or say yes or no to exactly that list.

    Args:
        decision: show looks only; approve says yes to the list of the digest; reject withdraws all
            of it for good; take_back takes your own yes back while it waits for a second person.
        list_digest: The digest that `show` told; it stands for every amount and order on the list.
        name: Your short name in approvers.toml.
        code: Your current one-time code.
        reason: Why, for a rejection; kept in the history.
    """
    with sentences_only("approve"), opened_environment() as environment:
        from recon.model.errors import UsageError
        from recon.steps.money import approve as approvals
        from recon.steps.people.at_desk import say as say_at_desk

        if decision is Decision.SHOW:
            waiting = approvals.waiting(environment)
            return _ended(waiting.wanted, ending="Waits", name="Shown")
        if not list_digest or not name:
            msg = "name the digest of the list and who you are"
            raise UsageError(msg)
        wanted = approvals.waiting(environment).wanted
        if decision is Decision.TAKE_BACK:
            taken = {"subject": list_digest}
            done = say_at_desk("take-back", taken, who=(name, code), environment=environment)
            return _ended(wanted, ending=f"Taken back: {done['what']}; waits", name="Taken back")
        if decision is Decision.APPROVE:
            body: dict[str, Any] = {"list": list_digest}
            done = say_at_desk("approve", body, who=(name, code), environment=environment)
            complete = done["complete"]
            sentence = "Approved by two people" if complete else "Waits for a second person"
            return _ended(wanted, ending=sentence, name="Approved" if complete else "Noted")
        if wanted.digest != list_digest:
            msg = f"the list is {wanted.digest} now; look at it before you reject it"
            raise UsageError(msg)
        ids = [item.instruction_id for item in wanted.items]
        body = {"instruction_ids": ids, "reason": reason}
        done = say_at_desk("reject", body, who=(name, code), environment=environment)
        had = (
            f", to which {' and '.join(done['overruled'])} had said yes"
            if done["overruled"]
            else ""
        )
        return _ended(wanted, ending=f"Rejected{had}", name="Rejected")


def waiting_for_people(environment: "Environment") -> int:
    """How many instructions wait for a yes or no, over all accounts."""
    from recon.steps.money.approve import waiting

    return len(waiting(environment).wanted.items)


def _ended(wanted: "ApprovalList", *, ending: str, name: str) -> State[Any]:
    from recon.settlement.approval import sums_in_words

    count = len(wanted.items)
    sentence = f"{ending}: {count} instructions"
    sentence += f", {sums_in_words(wanted.sums)}, list {wanted.digest}." if count else "."
    say(sentence)
    create_markdown_artifact(
        markdown_of(wanted, sentence), key="approvals", description=on_a_page(sentence)
    )
    return Completed(name=name, message=sentence)


def markdown_of(wanted: "ApprovalList", sentence: str) -> str:
    """All that waits, as people read it: what deserves a second look first, then the largest."""
    from recon.model.money import Money

    lines = ["# Approvals", "", on_a_page(sentence), ""]
    if wanted.items:
        lines += ["| instruction | kind | order | amount | why it waits |", "|---|---|---|---|---|"]
    looked_at = (*wanted.repeats, *wanted.first_payees, *wanted.largest)
    shown = {item.instruction_id: item for item in (*looked_at, *wanted.items)}
    for item in islice(shown.values(), ROWS_SHOWN_MAX):
        money = Money.of_minor_units(item.amount, currency=item.currency)
        cells = (item.instruction_id, item.kind, item.order_no, str(money), item.hold)
        lines.append(table_row(*cells))
    if (more := len(shown) - ROWS_SHOWN_MAX) > 0:
        lines += ["", f"{more} more wait; the workbooks' sheets Instructions have all of them."]
    return "\n".join(lines)
