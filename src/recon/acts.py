"""What people decide: one model for each act, with its fields, their help and their checks.

The commands (`recon.cli`) and the forms (`flows`) are made of these models and call `perform`, and
nothing else. An act is shown to the person, then their code is asked for, then the desk carries it
out: it proves who they are, then stores and signs the decision. Where a desk has a process of its
own (`RECON_DESK_SOCKET`) the act goes to its socket, else it is carried out here, by the same
functions.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from recon.config.declared import mistakes_of
from recon.config.keys import given
from recon.desk.held_keys import SOCKET
from recon.desk.server import ask_desk
from recon.instructions.approval import reported_of, reported_with, sums_text
from recon.model.business_date import BusinessMonth
from recon.model.errors import ArchiveError, SourceMissingError, UsageError
from recon.model.money import Money
from recon.model.resolutions import Import
from recon.month.close import closed_view, differing_lines
from recon.month.signing import (
    CloseDecision,
    DrawnClose,
    MonthToSign,
    other_role,
    reopen_month,
    sign_close,
)
from recon.privacy.card_numbers import holds_card
from recon.privacy.own_files import folder_for_now, for_owner
from recon.steps.approvals import people, returned_answers, verdicts
from recon.steps.approvals.returned_answers import Form
from recon.steps.approvals.sign_off import (
    Night,
    NightToSign,
    SignedCopy,
    answers_of,
    file_to_sign,
    sign,
    to_sign,
)
from recon.steps.compare.rebuild import run_named
from recon.steps.files import file_decisions, order_files
from recon.steps.money import approve, gate
from recon.steps.money.approve import Narrowing, Waiting
from recon.steps.night.report import Workbooks, rebuild_answered
from recon.steps.runtime.environment import Environment, one_account
from recon.steps.runtime.identity import (
    Person,
    identify,
    refuse_lost,
    refuse_open_files,
    remember,
    speaker,
    the_desk,
)

TEXT_CHARACTERS_MAX = 4_000
FILE_NAME_CHARACTERS_MAX = 255
ITEMS_DISPLAYED_MAX = 50
"""Lines on a terminal; the result workbook has them all."""


def _without_card(text: str) -> str:
    if holds_card(text):
        msg = "holds a card number; say it without the number"
        raise ValueError(msg)
    return text


Text = Annotated[str, Field(max_length=TEXT_CHARACTERS_MAX)]
StoredText = Annotated[Text, AfterValidator(_without_card)]
"""What stands in the history for ever and is shown to many. Not evidence, which quotes ids of
payments: one long id in forty looks like a card."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
AccountId = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{1,64})?$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")]
Digits = Annotated[str, Field(pattern=r"^([0-9a-f]{12,64})?$")]
Month = Annotated[str, Field(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$")]
Role = Literal["reviewer", "approver"]
Reason = Annotated[StoredText, Field(description="Why; kept in the history.")]
Merchant = Annotated[
    AccountId, Field(description="The merchant's number; may be left out where one is declared.")
]
Account = Annotated[
    AccountId, Field(description="The account's number; may be left out where one is declared.")
]
Show = Callable[[str], None]


class Done(BaseModel):
    """The result of an act, as the desk replies."""

    model_config = ConfigDict(frozen=True)

    sentence: str
    ending: str = "Noted"
    """The same in one or two words: the state of a run in Prefect."""
    exit_code: int = 0
    """Of its command."""
    warnings: tuple[str, ...] = ()
    """What else the person has to know."""
    night: Night | None = None
    """As it stands after a signature."""
    answers: Import | None = None
    """What became of a returned workbook."""
    after: tuple[str, ...] = ()
    """What the person's own process did then; a sentence for each."""


@dataclass(frozen=True, slots=True)
class Drawings:
    """What `reports` reads and draws for an act; handed in, for the steps never import it."""

    form: Form
    close: DrawnClose
    copy: SignedCopy
    write_copy: Callable[..., Path]
    remove_copies: Callable[[Path], list[Path]]
    write_import: Callable[..., Path]
    workbooks: Workbooks


DrawingsOf = Callable[[], Drawings]
"""Called by the acts that need it: importing what draws takes its time."""


@dataclass(frozen=True, slots=True)
class ActContext:
    """The process in which an act is performed or carried out."""

    environment: Environment
    drawings: DrawingsOf


class Act(BaseModel):
    """An act of one person. Its text is the help of its command."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    act: ClassVar[str]
    about: ClassVar[str] = ""
    """The field that a command takes as its argument."""
    moves_money: ClassVar[bool] = True
    """Else anybody may do it at a sandbox where nobody is declared."""
    decision_fields: ClassVar[tuple[str, ...]] = ()
    """Without all of these its subject is only shown."""
    waits_by: ClassVar[str] = ""
    """The field by which one takes back one's own decision while it waits for another person's."""

    @classmethod
    def show_subject(cls, _given: Mapping[str, Any], _context: ActContext, _show: Show) -> None:
        """Show what people look at before they decide."""

    def completed(self, _context: ActContext, _show: Show) -> Self:
        """The act with what was left out, shown to the person before their code is asked for."""
        return self

    def carry_out(self, _person: Person, _drawings: DrawingsOf) -> Done:
        """Carry it out, in the desk."""
        raise NotImplementedError

    def follow_up(self, _done: Done, _context: ActContext) -> Iterator[str]:
        """What the person's own process does afterwards; a sentence for each step."""
        yield from ()


class AboutAccount(Act):
    """An act about something of one account."""

    merchant_id: Merchant = ""
    account_id: Account = ""

    def completed(self, context: ActContext, _show: Show) -> Self:
        """With its account, which may be left out where one is declared."""
        merchant, account = one_account(
            context.environment.settings, merchant=self.merchant_id, account=self.account_id
        )
        return self.model_copy(update={"merchant_id": merchant, "account_id": account})

    @property
    def account(self) -> tuple[str, str]:
        """Merchant and account."""
        return self.merchant_id, self.account_id


class Approve(Act):
    """Show what waits for people; with --list and --as say yes to exactly that list.

    Two different people say yes to the same list, in any order, one of them an approver whose
    limit covers it. Nothing is sent now: the next night does.
    """

    act: ClassVar[str] = "approve"
    decision_fields: ClassVar[tuple[str, ...]] = ("list_digest", "write_off")
    waits_by: ClassVar[str] = "list_digest"
    list_digest: Annotated[
        str,
        Field(pattern=r"^([0-9a-f]{16,64})?$", description="The digest of the list you looked at."),
    ] = ""
    merchant_id: Annotated[AccountId, Field(description="Only this merchant's.")] = ""
    account_id: Annotated[AccountId, Field(description="Only this account's.")] = ""
    instructions: Annotated[
        tuple[Name, ...], Field(description="Only these instructions; may be repeated.")
    ] = ()
    write_off: Annotated[
        int | None,
        Field(
            description="Instead of a list: agree to a write-off that somebody else brought in, by "
            "the number of its answer; one of the two is an approver.",
            ge=1,
        ),
    ] = None

    @classmethod
    def show_subject(cls, given: Mapping[str, Any], context: ActContext, show: Show) -> None:
        """The list that waits: what deserves a second look, and its digest."""
        only = Narrowing(
            given.get("merchant_id", ""),
            given.get("account_id", ""),
            tuple(given.get("instructions", ())),
        )
        for line in _lines_of(approve.waiting(context.environment, only=only)):
            show(line)
        for line in write_offs_waiting(context.environment):
            show(line)

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store the approval."""
        if bool(self.list_digest) == (self.write_off is not None):
            msg = "name the list that you looked at (--list), or one write-off (--write-off)"
            raise UsageError(msg)
        if self.write_off is not None:
            agreed = verdicts.agree_write_off(self.write_off, person=person)
            return Done(sentence=f"Agreed: break {agreed} may be written off.", ending="Agreed")
        only = Narrowing(self.merchant_id, self.account_id, self.instructions)
        to_sign, until = approve.approve(
            self.list_digest, person=person, environment=person.environment, only=only
        )
        count = len(to_sign.items)
        if until is not None:
            sentence = f"Approved: {count} instructions go with the next night, until "
            sentence += f"{until:%Y-%m-%d %H:%M} UTC; then they wait for approval again."
            return Done(sentence=sentence, ending="Approved")
        sentence = f"Noted: {count} instructions wait for a second person, who says the same list."
        return Done(sentence=sentence)


def _lines_of(wait: Waiting) -> Iterator[str]:
    approvals = wait.approvals
    if not approvals.items:
        yield "No instruction waits for approval."
        return
    yield (
        f"List {approvals.digest}: {len(approvals.items)} instructions, {sums_text(approvals.sums)}"
    )
    if wait.first_by and wait.valid_until:
        yield f"  {wait.first_by} approved it; valid until {wait.valid_until:%Y-%m-%d %H:%M} UTC"
    for title, items in (
        ("largest", approvals.largest),
        ("look like repeats", approvals.repeats),
        ("to payees never paid before", approvals.first_payees),
    ):
        if not items and items is not approvals.largest:
            continue
        yield f"  {title} ({len(items)} of {len(approvals.items)}):"
        for item in items[:ITEMS_DISPLAYED_MAX]:
            yield f"    {reported_of(item)}{f' - {item.hold}' if item.hold else ''}"
            related = wait.related if items is approvals.repeats else {}
            for first in related.get(item.instruction_id, ()):
                yield f"      beside {reported_with(first)}"
    yield f"To approve it: recon approve --list {approvals.digest} --as NAME"


def write_offs_waiting(environment: Environment) -> Iterator[str]:
    """Each write-off that waits for a second person: its number, order, money and who asks."""
    with environment.store.reading() as connection:
        waiting = [*people.write_offs(connection, environment=environment)]
    for answer, order in waiting:
        given_up = "an amount that is not kept"
        if answer.exposure is not None and answer.currency:
            given_up = str(Money.of_minor_units(answer.exposure, currency=answer.currency))
        yield (
            f"Write-off {answer.answer_id}: {order or answer.break_id}, {given_up}, by "
            f"{answer.given_by}. To agree: recon approve --write-off {answer.answer_id} --as NAME"
        )


class RejectInstructions(Act):
    """Take back instructions that wait for approval; they are never sent."""

    act: ClassVar[str] = "reject"
    about: ClassVar[str] = "instructions"
    instructions: Annotated[
        tuple[Name, ...], Field(description="Ids, as `recon approve` shows them.")
    ] = ()
    list_digest: Annotated[
        Digits, Field(description="Instead of ids: the digest of the list that waits, all of it.")
    ] = ""
    reason: Reason

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store the rejection of one person, which is enough."""
        ids: Sequence[str] = self.instructions
        if self.list_digest:
            to_sign = approve.waiting(person.environment).approvals
            if ids or to_sign.digest != self.list_digest:
                msg = f"the list is {to_sign.digest} now; look at it before you reject all of it"
                raise UsageError(msg)
            ids = [item.instruction_id for item in to_sign.items]
        if not ids:
            msg = "name the instructions, or the digest of the list (`recon approve` shows both)"
            raise UsageError(msg)
        count, overruled = approve.reject(
            ids, person=person, reason=self.reason, environment=person.environment
        )
        had = f" {' and '.join(overruled)} had said yes." if overruled else ""
        sentence = f"Rejected: {count} instructions will not be sent.{had}"
        return Done(sentence=sentence, ending="Rejected")


class TakeBack(Act):
    """Take back your own yes, verdict, release or signature while it waits for a second person."""

    act: ClassVar[str] = "take-back"
    subject: Text
    """A list's digest, an instruction, a run, or one of `OVERRIDES`."""

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Delete the decision."""
        what = verdicts.decisions_taken_back(self.subject, person=person)
        sentence = f"Taken back: {what}. It counts for nothing; somebody may say it anew."
        return Done(sentence=sentence, ending="Taken back")

    def follow_up(self, _done: Done, context: ActContext) -> Iterator[str]:
        """No copy of a workbook names them any more."""
        path, _ = file_to_sign(self.subject, environment=context.environment)
        for copy in context.drawings().remove_copies(Path(path)) if path else ():
            yield f"Removed: {copy}"


class Resolve(Act):
    """Decide a doubt that evidence cannot decide; two people say the same, one an approver.

    Yours replaces only your own earlier decision; you are told of an opposite one.
    """

    act: ClassVar[str] = "resolve"
    about: ClassVar[str] = "instruction"
    waits_by: ClassVar[str] = "instruction"
    instruction: Annotated[Name, Field(description="Its id, as `recon status` shows it.")]
    verdict: Annotated[Text, Field(description="applied or not_applied.")]
    evidence: Annotated[Text, Field(description="What you saw and where; kept in the history.")]
    message: Annotated[
        Digits,
        Field(description="The message of the gateway's that you go by, as `status` names it."),
    ] = ""

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store the verdict."""
        decision = verdicts.resolve(
            self.instruction,
            verdict=self.verdict,
            evidence=self.evidence,
            message=self.message,
            person=person,
        )
        sentence = verdicts.sentence_of(decision, verdict=self.verdict)
        return Done(sentence=sentence, ending="Decided" if decision.decided else "Noted")


SENDING, RESTORE, SPILL_FILE = "sending", "restore", "spill-file"
CLOSED, REOPENED = "close", "reopen"
OVERRIDES = {
    SENDING: "allow-sending",
    RESTORE: "accept-restore",
    SPILL_FILE: "set-file-aside",
    CLOSED: "close-month",
    REOPENED: "reopen-month",
}
"""What is no list, instruction or run -> the subject by which a decision on it is taken back."""


def subject_of(decision: str) -> str:
    """The subject by which a decision on a list, an instruction, a run or a hold is taken back."""
    return OVERRIDES.get(SPILL_FILE if _is_path(decision) else decision, decision)


def _is_path(hold: str) -> bool:
    return "/" in hold or Path(hold).is_file()


class ReleaseHold(Act):
    """With --hold lift what holds money back; two people do, and nothing is sent by it.

    A NOT PROVEN night holds refunds and payouts. After a stop (`sending`) the next night sends
    again. With a database that was put back from a backup (`restore`) everything that was not sent
    yet waits for people: it may have been sent after the backup. A spill file that does not fit
    stops the nights: it is kept under another name, and what its batch left in flight is in doubt.
    """

    act: ClassVar[str] = "release"
    about: ClassVar[str] = "hold"
    waits_by: ClassVar[str] = "hold"
    hold: Annotated[
        Text,
        Field(
            description="A night (its run or business date), `sending`, `restore`, or the path of "
            "a spill file."
        ),
    ]
    reason: Annotated[StoredText, Field(description="Why it may go on; kept in the history.")]

    def completed(self, context: ActContext, _show: Show) -> Self:
        """The whole path of the file, or the run."""
        if self.hold in OVERRIDES:
            return self
        if _is_path(self.hold):
            return self.model_copy(update={"hold": str(Path(self.hold).resolve())})
        with context.environment.store.reading() as connection:
            return self.model_copy(update={"hold": run_named(connection, self.hold).run_id})

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store one of the two decisions."""
        reason, environment = self.reason, person.environment
        if self.hold == SENDING:
            if gate.allow_sending(person=person, reason=reason, environment=environment):
                sentence = "Money may be sent again; the next night sends what waits."
                return Done(sentence=sentence, ending="Allowed")
            must, until = "allow it", " Sending is still stopped."
        elif self.hold == RESTORE:
            waiting = gate.accept_restore(person=person, reason=reason, environment=environment)
            if waiting is not None:
                left = f"{waiting} instructions that were not sent yet now wait for people."
                return Done(sentence=f"Accepted. {left}", ending="Accepted")
            must, until = "accept it", " Nothing is sent until then."
        elif "/" in self.hold:
            quarantined = verdicts.exclude_file(Path(self.hold), person=person, reason=reason)
            if quarantined is not None:
                sentence = f"Set aside: {quarantined}. Start the night again."
                return Done(sentence=sentence, ending="Set aside")
            must, until = "set it aside", " Nights stop until then."
        elif verdicts.release(self.hold, reason=reason, person=person):
            return Done(sentence="Released.", ending="Released")
        else:
            must, until = "release it", ""
        return Done(sentence=f"Noted: a second person must {must}, too.{until}")


class DismissRow(Act):
    """With --row decide that a row stands for no order: the next night judges without it."""

    act: ClassVar[str] = "dismiss"
    about: ClassVar[str] = "row"
    row: Annotated[int, Field(ge=1, description="Its number in `recon order-file check`.")]
    reason: Reason

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store it."""
        reject = order_files.dismiss_row(self.row, person=person, why=self.reason)
        which = f"{reject.source} line {reject.line}"
        return Done(sentence=f"Noted: {which} stands for no order from the next night on.")


class AboutFile(AboutAccount):
    """An act about a file of an account's inbox."""

    about: ClassVar[str] = "file"
    moves_money: ClassVar[bool] = False
    file: Annotated[
        Text, Field(description="A file that was refused whole, or was expected and never came.")
    ]
    reason: Reason


class ReadAgain(AboutFile):
    """Let the next night read a file once more though its content is known.

    For a file that is still in the inbox, after its layout or the rules were corrected. What it
    asks for and was planned already is not planned twice.
    """

    act: ClassVar[str] = "read-again"

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store it."""
        file_decisions.read_again(
            self.file, account=self.account, person=person, reason=self.reason
        )
        when = "by the next night that finds it in the inbox"
        return Done(sentence=f"Noted: {self.file} is read again {when}.")


class DismissFile(AboutFile):
    """With --file dismiss a file that was refused whole, or that was expected and never came.

    Its night no longer lacks it: start that night again. Another content under the name counts.
    """

    act: ClassVar[str] = "dismiss-file"

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store it."""
        dismissed = file_decisions.dismiss(
            self.file, account=self.account, person=person, reason=self.reason
        )
        night = f"the night of {dismissed.business_date}"
        return Done(sentence=f"Let go: {self.file}. Start {night} again.")


class ImportAnswers(Act):
    """List each answer of a returned workbook beside its break; with --yes and --as take them in.

    Only the cream cells are read; where they were sorted without the other columns, the list shows
    it. The same file again changes nothing. A result workbook beside it says what was taken. Where
    it was saved into the delivered workbook itself, the workbook is written again with the answers,
    to be signed.
    """

    act: ClassVar[str] = "import"
    about: ClassVar[str] = "workbook"
    decision_fields: ClassVar[tuple[str, ...]] = ("yes",)
    workbook: Annotated[
        Path | None, Field(exclude=True, description="The workbook with filled-in cream cells.")
    ] = None
    yes: Annotated[bool, Field(exclude=True, description="Each stands beside its break.")] = False
    file_name: Text = ""
    content: str = ""

    @classmethod
    def show_subject(cls, given: Mapping[str, Any], context: ActContext, show: Show) -> None:
        """Each answer beside its break."""
        path, form = _workbook_of(given.get("workbook")), context.drawings().form
        done, rows = returned_answers.listed(path, form=form, environment=context.environment)
        for row in (returned_answers.LISTED, *rows) if rows else ():
            show(" | ".join(row))
        for warning in refused(done):
            show(warning)
        show(returned_answers.sentence_of(done, listed_only=True))
        if rows:
            show(f"Each beside its break? recon import-resolutions {path} --as NAME --yes")

    def completed(self, _context: ActContext, _show: Show) -> Self:
        """With the file's bytes: the desk may not read whoever's file it is."""
        path = _workbook_of(self.workbook)
        content = base64.b64encode(path.read_bytes()).decode()
        return self.model_copy(update={"file_name": path.name, "content": content})

    def carry_out(self, person: Person, drawings: DrawingsOf) -> Done:
        """Read it in a folder of the desk's own."""
        name = Path(self.file_name).name[:FILE_NAME_CHARACTERS_MAX]
        try:
            content = base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError):
            msg = "the workbook did not arrive whole"
            raise UsageError(msg) from None
        with folder_for_now("recon-answers-") as folder:
            path = folder / (name or "workbook.xlsx")
            with open(path, "wb", opener=for_owner) as file:
                file.write(content)
            done = returned_answers.import_resolutions(path, person=person, form=drawings().form)
        return Done(
            sentence=returned_answers.sentence_of(done),
            ending="Taken with refusals" if done.refusals else "Taken",
            exit_code=int(bool(done.refusals)),
            warnings=refused(done),
            answers=done,
        )

    def follow_up(self, done: Done, context: ActContext) -> Iterator[str]:
        """The result beside the workbook; and the delivered one again where it holds them."""
        answers, drawings = done.answers, context.drawings()
        if answers is None:
            return
        if not answers.repeated:
            yield f"Result: {drawings.write_import(answers, next_to=self.workbook)}"
        again = rebuild_answered(
            answers, environment=context.environment, workbooks=drawings.workbooks
        )
        if again:
            yield f"{again}."
        yield from filter(None, [to_sign(answers.run_id, environment=context.environment)])


def refused(done: Import) -> tuple[str, ...]:
    """Each cell that was not taken, and why."""
    return tuple(
        f"{each.cell}: {each.value!r} was not taken: {each.reason}." for each in done.refusals
    )


def _workbook_of(path: Path | None) -> Path:
    if path is None or not path.is_file():
        msg = f"the workbook {path} does not exist"
        raise SourceMissingError(msg)
    return path


class SignOff(Act):
    """Sign a night's workbook; refused while a high break has no owner and comment.

    What is signed is shown before the code is asked for; a file swapped after that is refused. A
    copy beside the workbook, called -reviewed (or -awaits-review) and then -approved, says who
    signed which file.
    """

    act: ClassVar[str] = "sign-off"
    about: ClassVar[str] = "run_id"
    waits_by: ClassVar[str] = "run_id"
    run_id: Annotated[AccountId, Field(description="A run, or the business date of a night.")] = ""
    role: Annotated[Role, Field(description="reviewer or approver; they sign in any order.")]
    workbook_sha256: Annotated[
        Digits,
        Field(
            description="Of the file that you looked at, its first 16 digits or all; without it "
            "the one that lies there now."
        ),
    ] = ""

    def completed(self, context: ActContext, show: Show) -> Self:
        """The file and its hash, so that one that is swapped meanwhile is refused."""
        with context.environment.store.reading() as connection:
            run_id = run_named(connection, self.run_id).run_id
        path, digest = file_to_sign(run_id, environment=context.environment)
        if self.workbook_sha256:
            path, digest = "the file that you looked at", self.workbook_sha256
        if digest:
            show(f"To sign: {path}, SHA-256 {digest}")
        return self.model_copy(update={"run_id": run_id, "workbook_sha256": digest})

    def carry_out(self, person: Person, drawings: DrawingsOf) -> Done:
        """Store the signature."""
        night = sign(
            NightToSign(self.run_id, self.role, self.workbook_sha256),
            person=person,
            copy=drawings().copy,
        )
        which = f"{night.merchant_id}/{night.account_id} {night.business_date}"
        sentence = f"{which}: {night.status} ({night.run_id}), {night.signed_text}."
        return Done(sentence=sentence, ending="Signed", night=night)

    def follow_up(self, done: Done, context: ActContext) -> Iterator[str]:
        """The copy that says who signed."""
        night, environment = done.night, context.environment
        if night is not None:
            copy = context.drawings().write_copy(
                Path(night.workbook),
                signatures=night.signed,
                answers=answers_of(night, environment=environment),
                timezone=environment.settings.rules.calendar.timezone,
            )
            yield f"Signed copy: {copy}"
            yield to_sign(night.run_id, environment=environment)


class AboutMonth(AboutAccount):
    """An act about a month of one account."""

    month: Annotated[Month, Field(description="The month, such as 2026-11.")]

    @property
    def business_month(self) -> BusinessMonth:
        """The month as the steps take it."""
        return BusinessMonth.named(self.month)


class SignClose(AboutMonth):
    """Put your name under a month as it was prepared; the second of two closes it."""

    act: ClassVar[str] = "sign-close"
    role: Annotated[Role, Field(description="Two people close a month, in any order.")]
    digest: Annotated[
        Digest, Field(description="Of what you looked at, as shown, its first 16 digits or all.")
    ]

    def carry_out(self, person: Person, drawings: DrawingsOf) -> Done:
        """Store the signature, or close the month."""
        environment = person.environment
        environment.settings.account(self.merchant_id, account_id=self.account_id)
        to_sign = MonthToSign(self.business_month, self.account, self.role, self.digest)
        decision = sign_close(
            to_sign, person=person, drawn=drawings().close, environment=environment
        )
        return _became(decision, role=self.role, month=self.month)


def _became(decision: CloseDecision, *, role: str, month: str) -> Done:
    lapsed = f"The signature of {decision.lapsed} lapsed: what they signed is not what is there."
    warnings = ((lapsed,) if decision.lapsed else ()) + tuple(
        f"Moved: {each}" for each in decision.moved
    )
    if decision.closed is not None:
        sentence = f"{month} is CLOSED by {decision.closed.by}; folder {decision.closed.folder}."
        return Done(sentence=sentence, ending="CLOSED", warnings=warnings)
    until = f"{decision.valid_until:%Y-%m-%d %H:%M} UTC" if decision.valid_until else "it lapses"
    sentence = f"Signed as {role}: the {other_role(role)} must sign the same until {until}."
    return Done(sentence=sentence, ending="Signed", warnings=warnings)


class ReopenMonth(AboutMonth):
    """Open a closed month again; two people do. Its sealed folder stays."""

    act: ClassVar[str] = "reopen-month"
    reason: Reason

    def completed(self, context: ActContext, show: Show) -> Self:
        """What would move; a folder that cannot be read keeps nobody from opening the month."""
        named = super().completed(context, show)
        which = f"{self.month} of {'/'.join(named.account)}"
        try:
            view = closed_view(
                self.business_month, account=named.account, environment=context.environment
            )
        except ArchiveError as error:
            show(f"What would move cannot be shown: {error}")
            return named
        if view is None:
            msg = f"{which} is not closed; nothing was changed"
            raise UsageError(msg)
        show(f"{which}: {view.closed.as_text}")
        for line in differing_lines(view.differs):
            show(line)
        return named

    def carry_out(self, person: Person, _drawings: DrawingsOf) -> Done:
        """Store one of the two decisions."""
        environment = person.environment
        environment.settings.account(self.merchant_id, account_id=self.account_id)
        decision = reopen_month(
            self.business_month,
            account=self.account,
            reason=self.reason,
            person=person,
            environment=environment,
        )
        if decision.reopened:
            sentence = f"REOPENED: {self.month}. Its folder {decision.closed.folder} stays."
            return Done(sentence=sentence, ending="REOPENED")
        sentence = "Noted: a second person must say the same. The month is still closed."
        return Done(sentence=sentence)


class OneName(Act):
    """An act for which the name of one person is enough, without a code: no money moves by it."""

    def done(self, name: str, environment: Environment) -> Done:
        """Do it; the name stands in the history."""
        raise NotImplementedError


class StopSending(OneName):
    """Stop all sending of money at once: a night at work ends before its next batch."""

    act: ClassVar[str] = "stop-sending"
    reason: Reason

    def done(self, name: str, environment: Environment) -> Done:
        """Stop it."""
        gate.stop_sending(by=name, reason=self.reason, environment=environment)
        sentence = (
            "Sending is stopped for every account, until `recon approve --hold sending`. Nights "
            "still compare."
        )
        return Done(sentence=sentence, ending="Stopped")


class Withdraw(OneName):
    """Take back an instruction that was never sent, so that no later night sends it."""

    act: ClassVar[str] = "withdraw"
    about: ClassVar[str] = "instruction"
    instruction: Annotated[Name, Field(description="Its id, as `recon status` shows it.")]
    reason: Reason

    def done(self, name: str, environment: Environment) -> Done:
        """Take it back."""
        taken = people.withdraw(
            self.instruction, by=name, reason=self.reason, environment=environment
        )
        sentence = f"Withdrawn: {taken.kind} of {taken.subject}. It will not be sent."
        return Done(sentence=sentence, ending="Withdrawn")


DESK_ACTS: Mapping[str, type[Act]] = {
    each.act: each
    for each in (
        *(Approve, RejectInstructions, TakeBack, Resolve, ReleaseHold, DismissRow, ReadAgain),
        *(DismissFile, ImportAnswers, SignOff, SignClose, ReopenMonth),
    )
}
"""The acts that the desk carries out, by their names on the socket."""

AnAct = TypeVar("AnAct", bound=Act)


def act_of(model: type[AnAct], fields: Mapping[str, Any]) -> AnAct:
    """An act of what somebody gave.

    Raises:
        UsageError: a field is missing, too long or wrong; its value is not repeated.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        wrong = "; ".join(f"{field}: {what}" for field, what in mistakes_of(error))
        msg = f"{wrong}; nothing was changed"
        raise UsageError(msg) from None


def perform(
    act: Act, *, name: str, code: Callable[[], SecretStr | None], context: ActContext, show: Show
) -> Done:
    """Perform an act of one person from its beginning to its end; returns the result.

    Args:
        act: the act.
        name: the person's short name.
        code: called when the person has seen what it is about.
        context: this process.
        show: takes what it is about, then the result.

    Raises:
        ReconError: the desk refuses; with its message.
    """
    if not name.strip():
        msg = "say who you are (--as); nothing was changed"
        raise UsageError(msg)
    act = act.completed(context, show)
    done = submit(act, who=(name, code()), context=context)
    show(done.sentence)
    after = []
    for sentence in act.follow_up(done, context):
        show(sentence)
        after.append(sentence)
    return done.model_copy(update={"after": tuple(after)})


def submit(act: Act, *, who: tuple[str, SecretStr | None], context: ActContext) -> Done:
    """Have an act carried out: by the desk's socket where there is one, else here.

    Raises:
        ReconError: the desk refuses; with its message.
    """
    name, code = who
    if isinstance(act, OneName):
        return act.done(name, context.environment)
    body = {
        **act.model_dump(mode="json"),
        "person": name,
        "code": code.get_secret_value() if code else "",
    }
    variables = context.environment.variables
    if given(variables, SOCKET):
        return Done.model_validate(ask_desk(Path(variables[SOCKET]), act.act, body=body))
    with the_desk(context.environment):
        return carry_out(act.act, body, origin="", context=context)


def carry_out(act: str, body: Mapping[str, Any], *, origin: str, context: ActContext) -> Done:
    """Carry out an act in the desk: prove who the person is, then store and sign the decision.

    Raises:
        ReconError: what a step refuses; or an unknown act.
    """
    model = DESK_ACTS.get(act)
    if model is None:
        msg = f"the desk knows no decision {act[:40]!r} (known: {', '.join(sorted(DESK_ACTS))})"
        raise UsageError(msg)
    environment = context.environment
    refuse_open_files(environment)
    refuse_lost(environment)
    fields = dict(body)
    name, code = (_text(fields.pop(field, "")) for field in ("person", "code"))
    prove = identify if model.moves_money else speaker
    person = prove(
        name, code=SecretStr(code) if code else None, environment=environment, origin=origin
    )
    done = act_of(model, fields).carry_out(person, context.drawings)
    remember(environment)
    if person.before:
        tried = f"{person.before}: if that was not you, inform whoever runs this installation."
        return done.model_copy(update={"warnings": (tried, *done.warnings)})
    return done


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
        msg = f"a name and a code are texts of at most {TEXT_CHARACTERS_MAX} characters"
        raise UsageError(msg)
    return value
