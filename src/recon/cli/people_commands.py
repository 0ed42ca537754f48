"""What people decide: approve, reject, resolve, release, agree, sign, answer, stop sending, enrol.

A code is asked for without an echo (`one_time_codes`); it is never printed, stored or logged. The
process that people decide at is `recon desk`.
"""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recon.cli.night_choices import Night, RunOption, run_of
from recon.cli.one_time_codes import Code, code_of
from recon.cli.speaking import complain, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recon.settlement.approval import ApprovalList
    from recon.settlement.instruction import Instruction
    from recon.steps.ground.environment import Environment
    from recon.steps.people.at_desk import Acts
    from recon.steps.people.returned_answers import Form

As = Annotated[str, typer.Option("--as", help="Your short name in approvers.toml.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the history.")]
ITEMS_SHOWN_MAX = 50
REFUSALS_SHOWN_MAX = 10
"""Lines on the terminal; the result workbook has them all."""


def approve(
    *,
    name: As = "",
    wanted: Annotated[
        str, typer.Option("--list", help="The digest of the list you looked at.")
    ] = "",
    code: Code = "",
    merchant: Annotated[str, typer.Option(help="Only this merchant's.")] = "",
    account: Annotated[str, typer.Option(help="Only this account's.")] = "",
    instruction: Annotated[
        list[str] | None, typer.Option(help="Only these instructions; may be repeated.")
    ] = None,
) -> None:
    """Show what waits for people; with --list and --as say yes to exactly that list.

    Two different people say yes to the same list, in any order, one of them an approver whose
    limit covers it. Nothing is sent now: the next night does.
    """
    from recon.steps.money.approve import Narrowing

    if not wanted:
        from recon.steps.ground.environment import environment_of, system_clock

        with environment_of(os.environ, clock=system_clock, signs=False) as environment:
            _show(environment, Narrowing(merchant, account, tuple(instruction or ())))
        return
    body = {"list": wanted, "merchant_id": merchant, "account_id": account}
    done = ask_desk_to(
        "approve", {**body, "instruction_ids": instruction or []}, name=name, code=code
    )
    count = done["count"]
    if done["complete"]:
        say(f"Approved: {count} instructions go with the next night.")
    else:
        say(f"Noted: {count} instructions wait for a second person, who says the same list.")


def reject(
    instruction: Annotated[list[str], typer.Argument(help="Ids, as `recon approve` shows them.")],
    *,
    name: As,
    reason: Reason,
    code: Code = "",
) -> None:
    """Take back instructions that wait for approval; they are never sent."""
    body = {"instruction_ids": instruction, "reason": reason}
    done = ask_desk_to("reject", body, name=name, code=code)
    had = f" {' and '.join(done['overruled'])} had said yes." if done["overruled"] else ""
    say(f"Rejected: {done['count']} instructions will not be sent.{had}")


def take_back(
    subject: Annotated[
        str,
        typer.Argument(
            help="What it was about: a list's digest, an instruction, a run, or an override such "
            "as allow-sending."
        ),
    ],
    *,
    name: As,
    code: Code = "",
) -> None:
    """Take back your own yes, verdict, release or signature while it waits for a second person."""
    from recon.cli.workbooks import remove_signed_copies
    from recon.steps.ground.environment import environment_of, system_clock

    done = ask_desk_to("take-back", {"subject": subject}, name=name, code=code)
    say(f"Taken back: {done['what']}. It counts for nothing; somebody may say it anew.")
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        for copy in remove_signed_copies(subject, environment=environment):
            say(f"Removed: {copy}")


def resolve(
    instruction: Annotated[str, typer.Argument(help="Its id, as `recon status` shows it.")],
    *,
    verdict: Annotated[str, typer.Option(help="applied or not_applied.")],
    evidence: Annotated[str, typer.Option(help="What you saw and where.")],
    name: As,
    message: Annotated[
        str, typer.Option(help="The message of the gateway's that you go by, as `status` names it.")
    ] = "",
    code: Code = "",
) -> None:
    """Decide a doubt that evidence cannot decide; two people say the same, one an approver.

    Your word replaces only your own earlier one; that somebody says the opposite is told.
    """
    body = {"instruction_id": instruction, "verdict": verdict, "evidence": evidence}
    done = ask_desk_to("resolve", {**body, "message": message}, name=name, code=code)
    say(done["sentence"])


def release(
    night: Night = "",
    *,
    run: RunOption = "",
    spill_file: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a night: a spill file that does not fit and stops the nights; it is "
            "kept under another name, and nothing is sent by it."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why it may go on; kept in the history.")],
    name: As,
    code: Code = "",
) -> None:
    """Lift the hold that a NOT PROVEN night puts on refunds and payouts; two people do.

    Or that of a spill file: what its batch left in flight is in doubt and is asked about.
    """
    if spill_file is not None:
        body = {"file": str(spill_file.resolve()), "reason": reason}
        kept = ask_desk_to("set-aside", body, name=name, code=code)["kept"]
        if not kept:
            say("Noted: a second person must set it aside, too. Nights stop until then.")
        else:
            say(f"Set aside: {kept}. Start the night again.")
        return
    done = ask_desk_to(
        "release", {"run_id": run_of(night, run), "reason": reason}, name=name, code=code
    )
    say("Released." if done["complete"] else "Noted: a second person must release it, too.")


def agree_write_off(
    answer: Annotated[int, typer.Argument(help="The number of the answer.")],
    *,
    name: As,
    code: Code = "",
) -> None:
    """Agree to a write-off that somebody else brought in; one of the two is an approver."""
    done = ask_desk_to("agree-write-off", {"answer_id": str(answer)}, name=name, code=code)
    say(f"Agreed: break {done['break_id']} may be written off.")


def sign_off(
    night: Night = "",
    *,
    run: RunOption = "",
    role: Annotated[str, typer.Option(help="reviewer or approver; they sign in any order.")],
    workbook: Annotated[
        Path | None,
        typer.Option(help="The file that you looked at; without it the one that lies there now."),
    ] = None,
    name: As,
    code: Code = "",
) -> None:
    """Sign a night's workbook; refused while a high break has no owner and comment.

    What is signed is said before the code is asked, and a file that is swapped then is refused. A
    copy beside the workbook, called -reviewed (or -awaits-review) and then -approved, says who
    signed which file.
    """
    from recon.cli.nights_command import line_of
    from recon.cli.workbooks import signed_copy, signing_acts
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.people.at_desk import SIGN_OFF, night_of
    from recon.steps.people.sign_off import answers_of

    run_id = run_of(night, run)
    seen = _seen(run_id, workbook=workbook)
    body = {"run_id": run_id, "role": role, "workbook_sha256": seen}
    signed = night_of(ask_desk_to(SIGN_OFF, body, name=name, code=code, more=signing_acts()))
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        zone = environment.settings.rules.calendar.timezone
        answers = answers_of(signed, environment=environment)
    say(line_of(signed))
    say(f"Signed copy: {signed_copy(signed, answers=answers, timezone=zone)}")


def _seen(run_id: str, *, workbook: Path | None) -> str:
    """The SHA-256 of the file that is to be signed, said; "" where there is none."""
    from recon.files.formats.named_bytes import sha256_of
    from recon.model.errors import SourceMissingError
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.people.sign_off import file_to_sign

    if workbook is None:
        with environment_of(os.environ, clock=system_clock, signs=False) as environment:
            path, digest = file_to_sign(run_id, environment=environment)
    elif workbook.is_file():
        path, digest = str(workbook), sha256_of(workbook)
    else:
        msg = f"the workbook {workbook} does not exist"
        raise SourceMissingError(msg)
    if digest:
        say(f"To sign: {path}, SHA-256 {digest}")
    return digest


def enrol(
    name: Annotated[str, typer.Argument(help="The short name in approvers.toml.")],
) -> None:
    """Make a secret for somebody's one-time codes and show it once, as a picture to scan."""
    import pyotp
    import segno

    secret = pyotp.random_base32()
    address = pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name="recon")
    say(f"Scan this with {name}'s authenticator, then clear the screen:")
    segno.make(address).terminal(out=sys.stdout, compact=True)
    say(f"Secret: {secret}")
    say(
        "Put it where approvers.toml says (code_secret_env, or code_secret_file with mode 0600). "
        "It is kept nowhere else and shown only now."
    )


def import_resolutions(
    workbook: Annotated[Path, typer.Argument(help="The workbook with filled-in cream cells.")],
    *,
    name: As,
    code: Code = "",
) -> None:
    """Take in the answers of a returned workbook; a result workbook beside it says what was taken.

    Only the cream cells are read. The same file again changes nothing. Where it was saved into the
    delivered workbook itself, the workbook is written again with the answers, to be signed.
    """
    from recon.cli.workbooks import form, workbooks
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.report import rebuild_answered
    from recon.steps.people import returned_answers
    from recon.steps.people.at_desk import IMPORT, file_body, import_of
    from reports.reading.import_workbook import write_import

    done = import_of(ask_desk_to(IMPORT, file_body(workbook), name=name, code=code, form=form()))
    say(returned_answers.sentence_of(done))
    for refusal in done.refusals[:REFUSALS_SHOWN_MAX]:
        complain(f"{refusal.cell}: {refusal.value!r} was not taken: {refusal.reason}.")
    if not done.repeated:
        say(f"Result: {write_import(done, beside=workbook)}")
    with environment_of(os.environ, clock=system_clock) as environment:
        again = rebuild_answered(done, environment=environment, workbooks=workbooks())
    if again:
        say(f"{again}.")
    if done.refusals:
        raise typer.Exit(1)


def stop_sending(
    *, name: Annotated[str, typer.Option("--as", help="Who does it.")], reason: Reason
) -> None:
    """Stop all sending of money at once: a night at work ends before its next batch."""
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.money import sending

    with environment_of(os.environ, clock=system_clock) as environment:
        sending.stop_sending(by=name, reason=reason, environment=environment)
    say("Sending is stopped for every account, until `recon allow-sending`. Nights still compare.")


def allow_sending(*, name: As, reason: Reason, code: Code = "") -> None:
    """Let money be sent again, from the next night on; two people do."""
    done = ask_desk_to("allow-sending", {"reason": reason}, name=name, code=code)
    if done["complete"]:
        say("Money may be sent again; the next night sends what waits.")
    else:
        say("Noted: a second person must allow it, too. Sending is still stopped.")


def ask_desk_to(
    act: str,
    body: "Mapping[str, Any]",
    *,
    name: str,
    code: str,
    form: "Form | None" = None,
    more: "Acts | None" = None,
) -> "dict[str, Any]":
    """Say something at the desk; what it replies, after telling what it has to tell the person."""
    from recon.model.errors import UsageError
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.people.at_desk import say as say_at_desk

    if not name:
        msg = "say who you are (--as)"
        raise UsageError(msg)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        who = (name, code_of(name, code=code, environment=environment))
        reply = say_at_desk(act, body, who=who, environment=environment, form=form, more=more)
    if reply["before"]:
        complain(f"{reply['before']}: if that was not you, tell whoever runs this installation.")
    return reply


def _show(environment: "Environment", only: object) -> None:
    from recon.settlement.approval import sums_in_words
    from recon.steps.money.approve import Narrowing, waiting

    wait = waiting(environment, only=only if isinstance(only, Narrowing) else None)
    wanted = wait.wanted
    if not wanted.items:
        say("Nothing waits for approval.")
        return
    say(f"List {wanted.digest}: {len(wanted.items)} instructions, {sums_in_words(wanted.sums)}")
    if wait.first_by and wait.valid_until:
        say(f"  {wait.first_by} approved it; valid until {wait.valid_until:%Y-%m-%d %H:%M} UTC")
    _show_items("largest", wanted, items=wanted.largest)
    if wanted.repeats:
        _show_items("look like repeats", wanted, items=wanted.repeats, beside=wait.beside)
    if wanted.first_payees:
        _show_items("to payees never paid before", wanted, items=wanted.first_payees)
    say(f"To approve it: recon approve --list {wanted.digest} --as NAME")


def _show_items(
    title: str,
    wanted: "ApprovalList",
    *,
    items: "Sequence[Instruction]",
    beside: "Mapping[str, Sequence[Instruction]] | None" = None,
) -> None:
    from recon.settlement.approval import told_beside, told_of

    say(f"  {title} ({len(items)} of {len(wanted.items)}):")
    for item in items[:ITEMS_SHOWN_MAX]:
        why = f" - {item.hold}" if item.hold else ""
        say(f"    {told_of(item)}{why}")
        for first in (beside or {}).get(item.instruction_id, ()):
            say(f"      beside {told_beside(first)}")


desk = typer.Typer(help="The desk for people.", no_args_is_help=True)


@desk.callback()
def _desk() -> None:
    """The desk for people: it proves who speaks and signs what they agree to."""


@desk.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="Where the two key files go; the desk's own.")],
) -> None:
    """Make the desk's key: the private half for the desk alone, the public one for every night."""
    from recon.desk.endorsement import key_id
    from recon.desk.held_keys import PRIVATE, PUBLIC
    from recon.desk.key_files import make_keys

    private, public = folder / "desk.key", folder / "desk.pub"
    made = make_keys(private, public=public)
    say(f"Made the desk's key {key_id(made)}.")
    say(f"For the desk alone: {PRIVATE}={private} (mode 0600; keep a copy where only you can)")
    say(f"For nights and everybody who checks: {PUBLIC}={public}")


@desk.command("serve")
def serve(
    socket: Annotated[
        Path | None, typer.Argument(help="Where it listens; else RECON_DESK_SOCKET.")
    ] = None,
) -> None:
    """Hear people until it is ended: commands and forms bring their words to its socket."""
    from recon.cli.workbooks import form, signing_acts
    from recon.desk.held_keys import PRIVATE, SOCKET
    from recon.desk.server import serve_until_ended
    from recon.model.errors import ConfigurationError
    from recon.steps.ground.desk_files import refuse_open_files
    from recon.steps.ground.desk_memory import remember
    from recon.steps.ground.desk_turn import the_desk
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.people.at_desk import hear

    path = socket or Path(os.environ.get(SOCKET, ""))
    if not path.name:
        msg = f"say where the desk listens: recon desk serve SOCKET, or set {SOCKET}"
        raise ConfigurationError(msg)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        if environment.desk.private is None:
            msg = f"this process has no key of the desk: set {PRIVATE} (`recon desk init`)"
            raise ConfigurationError(msg)
        refuse_open_files(environment)
        with the_desk(environment) as go_on:
            remember(environment)
            listen = partial(hear, environment=environment, form=form(), more=signing_acts())

            def heard(act: str, body: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
                go_on()
                return listen(act, body, origin=origin)

            serve_until_ended(
                path,
                hear=heard,
                ready=lambda at: say(
                    f"The desk hears people at {at}; its key is {environment.desk.name}."
                ),
            )


@desk.command("restored")
def restored() -> None:
    """Go on after a backup was put back: by the words that the database has now."""
    from recon.desk.held_keys import PRIVATE
    from recon.model.errors import ConfigurationError
    from recon.steps.ground.desk_memory import go_on_restored
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        if environment.desk.memory is None:
            msg = f"this process has no key of the desk: set {PRIVATE} (`recon desk init`)"
            raise ConfigurationError(msg)
        lost = go_on_restored(environment)
    say(
        f"The desk goes on by what the database has; words up to {lost} were given, and are lost."
        if lost
        else "The database has every word that this desk remembers; nothing was changed."
    )
