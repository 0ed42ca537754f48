"""What people decide, as commands made of the models in `recon.acts`.

The models are imported when such a command is called: until then it is a name and a sentence, so
that `recon --help` stays quick. A code is asked for without an echo (`code_of`); it is never
printed, stored or logged.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from recon.cli.night_choices import Named, Night, named_night, opened, run_of
from recon.cli.output import echo, echo_error

if TYPE_CHECKING:
    from pydantic import SecretStr

    from recon.acts import Act, Done
    from recon.steps.runtime.environment import Environment

FROM_INPUT = "-"
INPUT_CHARACTERS_MAX = 100
Code = Annotated[
    str,
    typer.Option(
        help="- reads your one-time code from the input; without it you are asked. The code itself "
        "is taken here towards the sandbox only: others can read a command line."
    ),
]


def code_of(name: str, *, code: str, environment: "Environment") -> "SecretStr | None":
    """The one-time code; asked for when one is needed and there is a terminal.

    Raises:
        UsageError: the input has none.
    """
    from pydantic import SecretStr

    from recon.model.errors import UsageError

    if code == FROM_INPUT and not (code := sys.stdin.readline(INPUT_CHARACTERS_MAX).strip()):
        msg = "--code - reads the one-time code from the input, which is empty; nothing was changed"
        raise UsageError(msg)
    if not code and _needs(name, environment=environment) and sys.stdin.isatty():
        code = typer.prompt("One-time code", hide_input=True)
    return SecretStr(code) if code else None


def refuse_typed(code: str, *, environment: "Environment") -> None:
    """Refuse a code that stands on the command line, before anything else is looked at.

    Raises:
        UsageError: the gateway is not on this machine.
    """
    from recon.model.errors import UsageError
    from recon.steps.runtime.environment import is_on_this_machine

    if code not in {"", FROM_INPUT} and not is_on_this_machine(environment.settings):
        msg = (
            "a one-time code on the command line can be read by everybody on this machine, and "
            "used before you: leave --code away and you are asked for it, or say --code - and hand "
            "it over on the input. Nothing was changed; take the next code, this one was seen"
        )
        raise UsageError(msg)


def _needs(name: str, *, environment: "Environment") -> bool:
    from recon.config.approvers import person_key

    every = environment.settings.approvers
    declared = every.get(person_key(name, declared=every))
    return bool(declared and (declared.code_secret_env or declared.code_secret_file))


NAME_HELP = "Your short name in approvers.toml."
TAKE_BACK = typer.Option(
    "--take-back", help="Instead: take back your own decision while it waits for another person."
)
WARNINGS_DISPLAYED_MAX = 10
"""Lines on the terminal; the result workbook has them all."""
FLAGS = {
    "list_digest": "--list",
    "merchant_id": "--merchant",
    "account_id": "--account",
    "instructions": "--instruction",
}
"""Field of an act -> its option, where it is not the field's name."""
VARIABLES = {"merchant_id": "RECON_MERCHANT", "account_id": "RECON_ACCOUNT"}
"""Fields that the environment may give, where an act is about one account."""


class ActGroup(TyperGroup):
    """A group of commands of which those of acts are made when one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, whole."""
        name, command, rest = super().resolve_command(ctx, args)
        models = getattr(getattr(command, "callback", None), "models", "")
        return name, command_of(str(name), models) if models else command, rest


def act(models: str, sentence: str) -> Callable[[], None]:
    """A placeholder for a command of acts until it is called; the help lists its sentence."""

    def later() -> None:
        raise NotImplementedError

    later.__doc__ = sentence
    later.models = models  # type: ignore[attr-defined]  # read by `ActGroup`
    return later


def command_of(name: str, models: str) -> Any:
    """The command of some acts: an argument or option for each of their fields that has a help.

    Each but the first is meant where the field that it is about is given.
    """
    from recon import acts

    first, *others = (getattr(acts, each) for each in models.split())

    def run(**given: Any) -> None:
        who, code, is_back = given.pop("name"), given.pop("code", ""), given.pop("take_back", False)
        if "night" in given:
            which_of = run_of if is_back else named_night
            night, run_id = given.pop("night"), given.pop("run")
            given["run_id"] = which_of(night or run_id)
        meant: type[Act] = next((each for each in others if given[each.about]), first)
        if is_back:
            subject = acts.subject_of(given[meant.waits_by])
            perform(acts.TakeBack, {"subject": subject}, name=who, code=code)
            return
        if workbook := given.pop("looked_at", None):
            given["workbook_sha256"] = _sha256(workbook)
        fields = {
            field: value
            for field, value in given.items()
            if value not in (None, "", (), [])
            # The environment may name the account of another act.
            and (field in meant.model_fields or field not in VARIABLES)
        }
        perform(meant, fields, name=who, code=code)

    run.__doc__ = "\n\n".join(filter(None, map(inspect.getdoc, (first, *others))))
    parameters: dict[str, inspect.Parameter] = {}
    for model in (first, *others):
        for field, kind, value in _parameters(model, is_only=not others, is_first=model is first):
            parameters.setdefault(
                field,
                inspect.Parameter(
                    field, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=value
                ),
            )
    run.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]  # what Typer looks at
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    one.command(name)(run)
    return get_command(one)


def _parameters(
    model: "type[Act]", *, is_only: bool, is_first: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Each parameter of the command: its name, its type and help as Typer reads it, its default.

    Args:
        model: an act.
        is_only: whether the command has no other act, so that Typer asks for its fields.
        is_first: whether what it is about is the command's argument.
    """
    from recon import acts

    needed = inspect.Parameter.empty
    left_out = "" if model.decision_fields or model.waits_by or not is_only else needed
    for field, info in model.model_fields.items():
        help_ = info.description
        if help_ is None:
            continue
        if field == "run_id":
            yield "night", Night, ""
            yield "run", Named, ""
        elif field == "workbook_sha256":
            option = typer.Option("--workbook", help="The file that you looked at.", exists=True)
            yield "looked_at", Annotated[Path | None, option], None
        else:
            typed = {bool, int, int | None, Path | None}
            kind: Any = info.annotation if info.annotation in typed else str
            value: Any = left_out if info.is_required() else info.default
            if kind is int and value == "":
                kind, value = int | None, None
            if isinstance(info.default, tuple):
                kind, value = list[str], []
            if field == model.about and is_first:
                default = needed if info.is_required() or value is None else value
                yield field, Annotated[kind, typer.Argument(help=help_)], default
                continue
            flag = FLAGS.get(field, f"--{field.replace('_', '-')}")
            is_given = field in VARIABLES and issubclass(model, acts.AboutAccount)
            variable = VARIABLES[field] if is_given else None
            yield field, Annotated[kind, typer.Option(flag, help=help_, envvar=variable)], value
    if model.waits_by:
        yield "take_back", Annotated[bool, TAKE_BACK], False
    yield "name", Annotated[str, typer.Option("--as", help=NAME_HELP)], left_out
    if not issubclass(model, acts.OneName):
        yield "code", Code, ""


def perform(
    model: "type[Act]", fields: Mapping[str, Any], *, name: str, code: str
) -> "Done | None":
    """Perform an act and show its result; None where its subject was only shown.

    Raises:
        typer.Exit: it ends with another code than 0.
    """
    from recon import acts
    from reports.workbook_io import drawings

    is_endorsed_already = not model.decision_fields or any(map(fields.get, model.decision_fields))
    decision = acts.act_of(model, fields) if is_endorsed_already else None
    with opened(signs=False) as environment:
        refuse_typed(code, environment=environment)
        context = acts.ActContext(environment, drawings)
        if decision is None:
            model.show_subject(fields, context, echo)
            return None
        confirmed_by = partial(code_of, name, code=code, environment=environment)
        done = acts.perform(decision, name=name, code=confirmed_by, context=context, show=echo)
    for warning in done.warnings[:WARNINGS_DISPLAYED_MAX]:
        echo_error(warning)
    if done.exit_code:
        raise typer.Exit(done.exit_code)
    return done


def _sha256(workbook: Path) -> str:
    """The hash of the file that was looked at, before anybody can swap it."""
    from recon.files.formats.named_bytes import sha256_of

    digest = sha256_of(workbook)
    echo(f"You looked at: {workbook}, SHA-256 {digest}")
    return digest


def enrol(
    name: Annotated[str, typer.Argument(help="The short name in approvers.toml.")] = "",
    *,
    desk_keys: Annotated[
        Path | None,
        typer.Option(
            "--desk",
            help="Instead: make the desk's key in this folder, the private half for the desk "
            "alone, the public one for every night.",
        ),
    ] = None,
) -> None:
    """Make a secret for somebody's one-time codes and show it once, as a picture to scan."""
    if bool(name) == (desk_keys is not None):
        msg = "name one person, or the folder of the desk's key (--desk)"
        raise typer.BadParameter(msg)
    if desk_keys is not None:
        from recon.desk.endorsement import key_id
        from recon.desk.held_keys import PRIVATE, PUBLIC, make_keys

        private, public = desk_keys / "desk.key", desk_keys / "desk.pub"
        made = make_keys(private, public=public)
        echo(f"Made the desk's key {key_id(made)}.")
        echo(f"For the desk alone: {PRIVATE}={private} (mode 0600; keep a copy where only you can)")
        echo(f"For nights and everybody who checks: {PUBLIC}={public}")
        return
    import pyotp
    import segno

    secret = pyotp.random_base32()
    address = pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name="recon")
    echo(f"Scan this with {name}'s authenticator, then clear the screen:")
    segno.make(address).terminal(out=sys.stdout, compact=True)
    echo(f"Secret: {secret}")
    echo(
        "Put it where approvers.toml says (code_secret_env, or code_secret_file with mode 0600). "
        "It is kept nowhere else and shown only now."
    )
