"""Prefect flows with forms for decisions of people, built from the models in `recon.acts`.

Each form first only shows what it is about; both people then name the digest, the instruction or
the run that it showed. Prefect hides a one-time code in its form but stores it; therefore a code is
accepted once, and for a minute or so. A decision never sends money.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Self

from prefect import Flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed
from pydantic import Field, SecretStr
from pydantic.fields import FieldInfo

from flows.artifacts import on_a_page, table_lines
from flows.outcome import as_flow
from recon import acts
from recon.acts import Act, ActContext, act_of, perform
from recon.instructions.approval import list_of, sums_text
from recon.model.business_date import BusinessMonth
from recon.model.errors import UsageError
from recon.model.money import Money
from recon.model.terms import DIGITS_READ, InstructionKind
from recon.steps.approvals import people, returned_answers
from recon.steps.approvals.sign_off import Night, nights, to_sign
from recon.steps.money import gate
from recon.steps.money.approve import waiting
from recon.steps.runtime.environment import Environment, named_accounts
from reports.close_preview import close_preview, index_of_months
from reports.workbook_io import drawings
from tasks.night_tasks import echo, opened_environment

if TYPE_CHECKING:
    from recon.config.settings import Settings
    from recon.instructions.approval import ApprovalList
    from recon.instructions.instruction import Instruction
    from recon.model.figures import Attention
    from recon.store.nights.runs import Run

ShortName = Annotated[str, Field(pattern=r"^([a-z][a-z0-9._-]{0,39})?$")]
ROWS_DISPLAYED_MAX = 1_000
"""Maximum lines of waiting items; the digest and the sums cover all of them."""
DOUBTS_DISPLAYED_MAX = 100
"""Maximum rows of doubts; `recon status` has all of them."""
NIGHTS_DISPLAYED = 14

Given = Mapping[str, Any]
Preview = Callable[[Environment, Given], tuple[str, Sequence[str]]]
"""Returns what a form is about: a sentence, and the lines of its page."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One action that a form offers."""

    model: type[Act]
    fixed: Given = field(default_factory=dict)
    """Fields of the act that the choice itself sets."""
    taken: Given = field(default_factory=dict)
    """Field of the act -> the form's field with its value, if the names differ."""

    def act(self, given: Given) -> Act:
        """Build the act from the form's values; empty fields are left out."""
        fields = {
            name: given.get(self.taken.get(name, name), "") for name in self.model.model_fields
        } | dict(self.fixed)
        if self.model is acts.RejectInstructions and fields["instructions"]:
            fields["list_digest"] = ""  # the ticked boxes are that list
        return act_of(self.model, {name: value for name, value in fields.items() if value})


def form(
    name: str,
    text: str,
    *,
    choice: tuple[str, str, str],
    choices: Mapping[str, Choice],
    fields: Sequence[str],
    preview: Preview,
    page_after: bool = True,
    boxes: Mapping[str, tuple[Any, str]] = MappingProxyType({}),
) -> Flow[..., State[Any]]:
    """Build a flow whose form shows something, or takes one of several decisions on it.

    Args:
        name: Name of the flow.
        text: Its description, for its page.
        choice: The field that selects the action, its value for only showing, and its help text.
        choices: The actions, by their values of that field besides the one that only shows.
        fields: Fields of the acts, in the form's order.
        preview: Returns what the form is about.
        page_after: Whether that is shown again after a decision.
        boxes: Lists of check boxes between the choice and `fields`: name -> type and help text.
    """
    chooses, shows, help_ = choice
    # An enum with the same name as its field would take over the title, so the page would lack it.
    offered = StrEnum(chooses.title(), {each.upper(): each for each in (shows, *choices)})  # type: ignore[misc]  # of a table
    infos = {
        each: info
        for every in choices.values()
        for each, info in every.model.model_fields.items()
        if each in fields
    }

    def run(**given: Any) -> State[Any]:
        chosen, who, code = (given.pop(each) for each in (chooses, "name", "code"))
        with opened_environment() as environment:
            if boxes:
                given = dict(boxes_ticked(environment, given | {chooses: chosen}))
            if chosen == shows:
                sentence, lines = preview(environment, given)
                return ended(name, sentence=sentence, ending="Shown", lines=lines)
            done = perform(
                choices[chosen].act(given),
                name=who,
                code=lambda: code,
                context=ActContext(environment, drawings),
                show=echo,
            )
            return ended(
                name,
                sentence=done.sentence,
                ending=done.ending,
                warnings=(*done.after, *done.warnings),
                lines=["", *(preview(environment, given)[1] if page_after else ())],
            )

    helps = {
        chooses: help_,
        **{each: help_text for each, (_, help_text) in boxes.items()},
        **{each: infos[each].description for each in fields},
        "name": "Your short name in approvers.toml.",
        "code": "Your current one-time code.",
    }
    kinds: dict[str, tuple[Any, Any]] = {
        chooses: (offered, shows),
        **{each: (kind, []) for each, (kind, _) in boxes.items()},
        **{each: (_kind(infos[each]), "") for each in fields},
        "name": (ShortName, ""),
        "code": (SecretStr | None, None),
    }
    run.__name__ = name.replace("-", "_")
    run.__doc__ = "\n".join(
        [text, "", "Args:", *(f"    {each}: {help_text}" for each, help_text in helps.items())]
    )
    parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what Prefect looks at
        [parameter(each, annotation=kind, default=value) for each, (kind, value) in kinds.items()]
    )
    named = f"{name}: {{{chooses}}} {' '.join(f'{{{each}}}' for each in fields[:1])} {{name}}"
    return as_flow(name, named=named)(run)


def ended(
    name: str,
    *,
    sentence: str,
    ending: str,
    warnings: Sequence[str] = (),
    lines: Sequence[str] = (),
) -> State[Any]:
    """Publish the result of a form's run on its page, and return its final state."""
    echo(sentence)
    warned = [f"- {on_a_page(each)}" for each in warnings]
    page = "\n".join([f"# {name.capitalize()}", "", on_a_page(sentence), "", *warned, *lines])
    create_markdown_artifact(page, key=KEYS[name], description=on_a_page(sentence))
    return Completed(name=ending, message=sentence)


def _kind(info: FieldInfo) -> Any:
    """Return the type of a form's field: that of its act, with an empty value allowed."""
    pattern = next((each.pattern for each in info.metadata if hasattr(each, "pattern")), None)
    return Annotated[str, Field(pattern=rf"^({pattern[1:-1]})?$")] if pattern else acts.Text


KEYS = {
    "approve": "approvals",
    "resolve": "doubts",
    "sign-off": "sign-off",
    "close": "close",
    "stop-sending": "sending",
    "allow-sending": "sending",
    "import-resolutions": "answers-taken",
}
"""Form -> the key of its page."""


def approvals_page(environment: Environment, given: Given) -> tuple[str, Sequence[str]]:
    """Show the list that waits, or its ticked part; then offer all waiting items in the form."""
    every = waiting(environment).approvals
    offer(every)
    ticked = [each for each in every.items if each.instruction_id in given["instructions"]]
    approvals = list_of(ticked) if ticked else every
    count, left = len(approvals.items), len(every.items) - len(approvals.items)
    sentence = f"Waits: {count} instructions"
    sentence += f", {sums_text(approvals.sums)}, list {approvals.digest}." if count else "."
    lines = ["", *(f"- {on_a_page(each)}" for each in acts.write_offs_waiting(environment))]
    sentence += f" {left} more are not ticked." if left else ""
    return sentence, [*lines_of_list(approvals), *lines]


def boxes_ticked(environment: Environment, given: Given) -> Given:
    """Resolve the ticked instructions and kinds to instruction ids; () for all.

    Raises:
        UsageError: something ticked no longer waits (nothing left would mean all that waits), the
            list changed, or a kind is rejected without the digest of a list that was shown.
    """
    kinds, named = given["kinds"], {text.partition(" ")[0] for text in given["instructions"]}
    waits = waiting(environment).approvals.items if kinds or named else ()
    of_kinds = [each for each in waits if not kinds or each.kind in kinds]
    meant = [each for each in of_kinds if not named or each.instruction_id in named]
    if missing := sorted(named - {each.instruction_id for each in meant}):
        what = f" as {' or '.join(kinds)}" if kinds else ""
        msg = f"{', '.join(missing)} waits no more{what}: show the list again, nothing was changed"
        raise UsageError(msg)
    if kinds and not meant:
        msg = f"no {' or '.join(kinds)} waits: show the list again, nothing was changed"
        raise UsageError(msg)
    seen = given["list_digest"]
    if kinds and not seen and given["decision"] == "reject":
        msg = "what of a kind is rejected is the list that was shown: give its digest"
        raise UsageError(msg)
    if meant and seen and (now := list_of(meant).digest) != seen:
        msg = (
            f"what is ticked is the list {now} now, not {seen}: show it again, nothing was changed"
        )
        raise UsageError(msg)
    ids = tuple(each.instruction_id for each in meant)
    return {name: value for name, value in given.items() if name != "kinds"} | {"instructions": ids}


def offer(approvals: "ApprovalList") -> None:
    """Update the form with a box for each waiting instruction, in Prefect's stored schema."""
    boxes = [
        " ".join(filter(None, (item.instruction_id, item.kind, _money(item), item.order_no)))
        for item in approvals.items[:ROWS_DISPLAYED_MAX]
    ]
    try:
        with suppress(ObjectNotFound), get_client(sync_client=True) as client:
            form_of_people = client.read_deployment_by_name("approve/approve")
            fields = form_of_people.parameter_openapi_schema or {}
            enum = {"enum": boxes} if boxes else {}
            fields["properties"]["instructions"]["items"] = {"type": "string"} | enum
            change = DeploymentUpdate(parameter_openapi_schema=fields)
            client.update_deployment(form_of_people.id, change)
    except Exception as error:  # noqa: BLE001 - whatever Prefect's client raises, the list is shown
        echo(f"the boxes of the form are those of before ({type(error).__name__})")


def _money(item: "Instruction") -> str:
    return str(Money.of_minor_units(item.amount, currency=item.currency)) if item.currency else ""


def lines_of_list(approvals: "ApprovalList") -> list[str]:
    """Return table lines of all that waits: what deserves a second look first, then the rest."""
    looked_at = (*approvals.repeats, *approvals.first_payees, *approvals.largest)
    preview = {item.instruction_id: item for item in (*looked_at, *approvals.items)}
    lines = table_lines(
        ("instruction", "kind", "order", "amount", "why it waits"),
        (
            (item.instruction_id, item.kind, item.order_no, _money(item), item.hold)
            for item in islice(preview.values(), ROWS_DISPLAYED_MAX)
        ),
    )
    if (more := len(preview) - ROWS_DISPLAYED_MAX) > 0:
        others = "tick a kind and show again, or see the workbooks' sheets Instructions"
        lines += ["", f"{more:,} more wait and are part of this list: {others}."]
    return lines


def doubts_page(environment: Environment, _: Given) -> tuple[str, Sequence[str]]:
    """Show the money in doubt, over all accounts."""
    undecided, now = people.undecided(environment), environment.clock()
    return f"{len(undecided)} in doubt.", lines_of_doubts(undecided, now=now)


def lines_of_doubts(preview: "Sequence[tuple[Run, Attention]]", *, now: datetime) -> list[str]:
    """Return a list line for each doubt: the money, since when, its id, and all that is known.

    A list, since a page cuts the last columns of a table.
    """
    lines = [
        f"- {on_a_page(f'{run.merchant_id}/{run.account_id}: {line}')}"
        for run, instruction in preview[:DOUBTS_DISPLAYED_MAX]
        for _, line in people.attention_lines([instruction], now=now)
    ]
    if (more := len(preview) - DOUBTS_DISPLAYED_MAX) > 0:
        lines += ["", f"{more} more are in `recon status`."]
    return lines


def nights_page(environment: Environment, _: Given) -> tuple[str, Sequence[str]]:
    """Show the last nights, and who signed them."""
    last = environment.clock().date()
    listed = nights(last - timedelta(days=NIGHTS_DISPLAYED), last=last, environment=environment)
    ran = [night for night in listed if night.run_id]
    waits = sum(night.unsigned_days > 0 for night in ran)
    sentence = f"{len(ran)} nights of the last {NIGHTS_DISPLAYED} days, {waits} not signed."
    lines = [
        f"- {night.business_date}: {on_a_page(missing)}"
        for night in ran
        if night.unsigned_days and (missing := to_sign(night.run_id, environment=environment))
    ]
    return sentence, [*lines_of_nights(ran), "", *lines]


def lines_of_nights(preview: Sequence[Night]) -> list[str]:
    """Return table lines of nights with their verdicts and signatures."""
    return table_lines(
        ("account", "night", "verdict", "run", "workbook", "signed", "void"),
        (
            (
                *(f"{night.merchant_id}/{night.account_id}", str(night.business_date)),
                *(night.status, night.run_id, night.workbook_sha256[:DIGITS_READ]),
                *(night.signed_text, night.void_because),
            )
            for night in preview
        ),
    )


def sending_page(environment: Environment, _: Given) -> tuple[str, Sequence[str]]:
    """Show whether money is sent."""
    stop = gate.sending_stopped(environment)
    return (f"{stop}." if stop else "Money may be sent."), ()


def month_page(environment: Environment, given: Given) -> tuple[str, Sequence[str]]:
    """Show a month of each matching account: its workbook in the reports, and its signatures."""
    this = BusinessMonth.named(f"{environment.clock():%Y-%m}")
    month = BusinessMonth.named(given["month"] or f"{this.before:%Y-%m}")
    settings = environment.settings
    lines: list[str] = []
    indexed = []
    for which in named_accounts(
        settings, merchant=given["merchant_id"], account=given["account_id"]
    ):
        preview = close_preview(month, account=which, folder=None, environment=environment)
        indexed.append(preview.own)
        page = (*preview.lines, *preview.blocked)
        lines += [f"## {'/'.join(which)}", "", *(f"- {on_a_page(line)}" for line in page), ""]
    pages = index_of_months(indexed, month=month, out=None, settings=settings)
    lines += [f"- {on_a_page(page)}" for page in pages]
    return f"{month.name}: {', '.join(each.status for each in indexed)}.", lines


def answers_page(environment: Environment, given: Given) -> tuple[str, Sequence[str]]:
    """Show the answers of a returned workbook, each with its break."""
    path = returned_path(Path(given["workbook"]), settings=environment.settings)
    done, rows = returned_answers.listed(path, form=drawings().form, environment=environment)
    lines = ["", *table_lines(returned_answers.LISTED, rows[:ROWS_DISPLAYED_MAX])]
    lines += ["", *(f"- {on_a_page(each)}" for each in acts.refused(done))]
    return returned_answers.sentence_of(done, listed_only=True), lines


approve = form(
    "approve",
    "Show what waits for people, or say yes or no to exactly that list.",
    choice=(
        "decision",
        "show",
        (
            "show looks only, at what is ticked or at all; approve says yes to the list of the "
            "digest, with the same boxes ticked as when it was shown; reject withdraws what is "
            "ticked, or the whole list of the digest, for good; take_back takes your own yes back "
            "while it waits for a second person."
        ),
    ),
    boxes={
        "kinds": (list[InstructionKind], "Only these kinds; none ticked: all of them."),
        "instructions": (list[acts.Text], "Only these; none ticked: all that wait."),
    },
    choices={
        "approve": Choice(acts.Approve),
        "reject": Choice(acts.RejectInstructions),
        "take_back": Choice(acts.TakeBack, taken={"subject": "list_digest"}),
    },
    fields=("list_digest", "reason"),
    preview=approvals_page,
)
resolve = form(
    "resolve",
    "Show money in doubt, or say what became of one instruction; two people say the same.",
    choice=(
        "verdict",
        "show",
        (
            "show looks only; applied says that the money moved; not_applied that it did not; "
            "take_back takes your own word back while it decides nothing."
        ),
    ),
    choices={
        "applied": Choice(acts.Resolve, {"verdict": "applied"}),
        "not_applied": Choice(acts.Resolve, {"verdict": "not_applied"}),
        "take_back": Choice(acts.TakeBack, taken={"subject": "instruction"}),
    },
    fields=("instruction", "evidence", "message"),
    preview=doubts_page,
)
sign_off = form(
    "sign-off",
    "List the last nights, or sign one night's workbook as its reviewer or its approver.",
    choice=(
        "sign_as",
        "show",
        (
            "show lists the last nights; reviewer and approver sign in any order; take_back takes "
            "your own name back while the other one is missing."
        ),
    ),
    choices={
        "reviewer": Choice(acts.SignOff, {"role": "reviewer"}),
        "approver": Choice(acts.SignOff, {"role": "approver"}),
        "take_back": Choice(acts.TakeBack, taken={"subject": "run_id"}),
    },
    fields=("run_id", "workbook_sha256"),
    preview=nights_page,
)
close = form(
    "close",
    "Prepare the close of a month, sign it as its reviewer or its approver, or open it again.",
    choice=(
        "act",
        "prepare",
        (
            "prepare looks only, at the month before this one where none is named; two people "
            "close a month, a reviewer and an approver; reopen is one of the two words that open "
            "it again."
        ),
    ),
    choices={
        "reviewer": Choice(acts.SignClose, {"role": "reviewer"}),
        "approver": Choice(acts.SignClose, {"role": "approver"}),
        "reopen": Choice(acts.ReopenMonth),
    },
    fields=("month", "merchant_id", "account_id", "digest", "reason"),
    preview=month_page,
    page_after=False,
)
stop_sending = form(
    "stop-sending",
    "Show whether money is sent, or stop all sending at once.",
    choice=(
        "turn",
        "show",
        (
            "show looks only; stop ends all sending of every account, a night at work before its "
            "next batch."
        ),
    ),
    choices={"stop": Choice(acts.StopSending)},
    fields=("reason",),
    preview=sending_page,
)
allow_sending = form(
    "allow-sending",
    "Show whether money is sent, or let it be sent again after a stop.",
    choice=(
        "turn",
        "show",
        (
            "show looks only; allow is one of the two words that end a stop; take_back takes your "
            "own allow back while the second is missing."
        ),
    ),
    choices={
        "allow": Choice(acts.ReleaseHold, {"hold": acts.SENDING}),
        "take_back": Choice(acts.TakeBack, {"subject": acts.subject_of(acts.SENDING)}),
    },
    fields=("reason",),
    preview=sending_page,
)


class ReturnedWorkbook(acts.ImportAnswers):
    """One that lies where returned workbooks may lie."""

    def completed(self, context: ActContext, show: acts.Show) -> Self:
        """Read the file, if it is in an allowed folder, with its bytes."""
        path = returned_path(self.workbook or Path(), settings=context.environment.settings)
        return super(ReturnedWorkbook, self.model_copy(update={"workbook": path})).completed(
            context, show
        )


import_resolutions = form(
    "import-resolutions",
    "List the answers of a filled-in workbook, each beside its break, or take them in.",
    choice=(
        "answers",
        "list",
        "list looks only; take takes in what was listed; the same file again changes nothing.",
    ),
    choices={"take": Choice(ReturnedWorkbook, {"yes": "true"})},
    fields=("workbook",),
    preview=answers_page,
    page_after=False,
)


def returned_path(workbook: Path, *, settings: "Settings") -> Path:
    """Return the file if it is in a folder that merchants.toml declares as `reports` or `returned`.

    Whoever may start a flow must not be able to read any other file of the machine through it.

    Raises:
        UsageError: it is somewhere else.
    """
    named = [each for one in settings.accounts.values() for each in (one.returned, one.reports)]
    folders = [each.resolve() for each in named if each]
    for path in ((folder / workbook).resolve() for folder in folders):
        if any(map(path.is_relative_to, folders)) and path.is_file():
            return path
    msg = (
        f"{workbook} is not in {', '.join(sorted({*map(str, folders)}))}: put it there, start again"
    )
    raise UsageError(msg)
