"""What an operator does around nights: `db`, `doctor`, `housekeeping`.

And what runs until Ctrl-C: the sandbox gateway; the desk, the signer, the receiver (`serve`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from recon.cli.night_choices import opened
from recon.cli.output import AsJson, echo, echo_error, show_checks

if TYPE_CHECKING:
    from recon.steps.admin.doctor import Check

DOCTOR_FAILED_EXIT_CODE = 2


def upgrade(
    url: Annotated[
        str,
        typer.Option(
            "--url",
            envvar="RECON_DATABASE_URL",
            help="The database, such as sqlite:////var/lib/recon/recon.sqlite.",
            show_default=False,
        ),
    ] = "",
    *,
    grants: Annotated[
        bool,
        typer.Option(
            "--grants",
            help="Instead, of PostgreSQL: print the SQL that gives four roles exactly the rights "
            "they need, after each upgrade, for its owner to read and run (`| psql ...`). psql "
            "ends with 3 and changes nothing where one statement is refused.",
        ),
    ] = False,
    app: Annotated[str, typer.Option(help="The role of nights.")] = "",
    people: Annotated[str, typer.Option(help="The role of the desk, which takes decisions.")] = "",
    read: Annotated[str, typer.Option(help="The role of those who only look.")] = "",
    migrate: Annotated[str, typer.Option(help="The role that owns and changes tables.")] = "",
) -> None:
    """Create the tables, or bring them to the version this program needs; safe to repeat."""
    named = {"app": app, "people": people, "read": read, "migrate": migrate}
    if grants:
        from recon.store.database.roles import Roles, script

        echo("\n".join(script(Roles(**{role: name for role, name in named.items() if name}))))
        return
    if not url or any(named.values()):
        msg = "name the database (--url), or roles for --grants"
        raise typer.BadParameter(msg)
    from recon.store.database.migrate import upgrade as to_newest

    echo(f"The database is at version {to_newest(url)}.")


def doctor(*, as_json: AsJson = False) -> None:
    """Look at variables, files, folders, database and gateway; one line each, nothing changes."""
    from recon.steps.admin.doctor import checks
    from recon.steps.runtime.environment import system_clock

    answers = checks(os.environ, clock=system_clock, randomness=SystemRandom())
    every = chain(answers, _of_prefect())
    show_checks(every, wrong="MISSING", as_json=as_json, exit_code=DOCTOR_FAILED_EXIT_CODE)


def _of_prefect() -> "Iterator[Check]":
    """Lines about Prefect, from its own process; one that says so where no server is named."""
    from recon.steps.admin.doctor import Check

    if not os.environ.get("PREFECT_API_URL", "").strip():
        sentence = (
            "PREFECT_API_URL is not set: nights start from the command line or another scheduler"
        )
        yield Check("Prefect", ok=True, sentence=sentence)
        return
    command = [sys.executable, "-m", "flows", "doctor"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if answer.returncode:
        yield Check("Prefect", ok=False, sentence=answer.stderr.strip() or "it could not be asked")
        return
    yield from (Check(**row) for row in json.loads(answer.stdout))


def housekeeping(
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete it; without this it is only shown.")
    ] = False,
    name: Annotated[str, typer.Option("--as", help="Who deletes; kept in the history.")] = "",
) -> None:
    """Show what is older than retention.toml keeps, or delete it with a line in the history.

    The journal, the history, breaks, answers of people, totals, manifests, signed workbooks and the
    newest workbook of a night are never deleted. The folder of a night goes only when its month is
    closed and every byte of it was verified in the same call.
    """
    from recon.steps.admin import housekeeping as keeping

    with opened() as environment:
        expired, stayed = keeping.housekeeping(environment, by=name if delete else None)
    if not expired:
        echo("retention.toml names no age: everything is kept.")
    for kind in expired:
        echo(f"{'Deleted: ' if delete and kind.count else ''}{kind}")
        for note in kind.notes:
            echo(f"  {note}")
    for sentence in stayed:
        echo_error(sentence)
    if stayed:
        raise typer.Exit(1)


def sandbox(
    *,
    port: Annotated[int, typer.Option(help="0 takes a free port.", min=0, max=65535)] = 0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same population.")] = 42,
    orders: Annotated[int, typer.Option(help="Payments of the population.", min=0)] = 2000,
    state: Annotated[
        Path | None,
        typer.Option(help="File that keeps population, clock and faults; none: in memory."),
    ] = None,
    fault_plan: Annotated[Path | None, typer.Option(help="What goes wrong, and when.")] = None,
    merchant: Annotated[str, typer.Option(help="The merchant it knows.")] = "100042",
    account: Annotated[str, typer.Option(help="The default account.")] = "100042001",
    sign_key: Annotated[str, typer.Option(help="The key that signs.")] = "sandbox",
    profile: Annotated[
        Literal["base", "extended"], typer.Option(help="Which rules of the interface hold.")
    ] = "base",
    registered_ip: Annotated[
        str, typer.Option(help="The one address that may query.")
    ] = "127.0.0.1",
    capture_mode: Annotated[
        Literal["manual", "auto"],
        typer.Option(help="Whether an authorisation is captured at once."),
    ] = "manual",
    real_clock: Annotated[
        bool, typer.Option("--real-clock", help="Its clock moves with real time.")
    ] = False,
    notify_url: Annotated[
        str,
        typer.Option(help="Where notifications go; {merchant_id} and {account_id} are filled."),
    ] = "",
) -> None:
    """Play the gateway on this machine until Ctrl-C; prints its address and what to set."""
    options = dict(locals())  # the parameters, before anything else is named
    from recon.sandbox import SandboxOptions, serve

    serve(SandboxOptions(**options))


SERVED = Literal["desk", "signer", "notifications"]


def serve(
    what: Annotated[SERVED, typer.Argument(help="Which of these processes it is.")],
    *,
    socket: Annotated[
        Path | None, typer.Option(help="Where the desk listens; else RECON_DESK_SOCKET.")
    ] = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="Of the desk, after a backup was put back: go on by the words that the database "
            "has now. Where it is said nowhere to listen, that is all.",
        ),
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option(
            envvar="RECON_SIGNER_RULES",
            help="The signer's own file: socket, keys, the desk's key, its limits.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Where notifications are received; elsewhere a proxy must do TLS."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The same; 0 takes a free port.", min=0, max=65535)
    ] = 8420,
) -> None:
    """Be one of our processes beside the nights, until it is ended.

    The desk hears people: it proves who speaks and signs what they agree to; commands and forms
    bring their words to its socket. The signer holds the sign keys apart from nights and workers
    and signs over a Unix socket: queries freely, money only where two people endorsed the very row
    at the desk, or within the limits of its own file. The receiver of notifications verifies what
    the gateway reports and keeps it as evidence.
    """
    if what == "desk":
        _serve_desk(socket, restored=restored)
    elif what == "signer":
        if rules is None:
            msg = "name the signer's own file (--rules)"
            raise typer.BadParameter(msg)
        from recon.signer.server import sign_until_ended

        sign_until_ended(rules, clock=partial(datetime.now, UTC), ready=echo)
    else:
        _receive_notifications(host, port=port)


def _serve_desk(socket: Path | None, *, restored: bool) -> None:
    from recon.acts import ActContext, carry_out
    from recon.desk.held_keys import PRIVATE, SOCKET
    from recon.desk.server import serve_until_ended
    from recon.model.errors import ConfigurationError
    from recon.steps.runtime.identity import go_on_restored, refuse_open_files, remember, the_desk
    from reports.workbook_io import drawings

    path = socket or Path(os.environ.get(SOCKET, ""))
    if not path.name and not restored:
        msg = f"say where the desk listens: recon serve desk --socket PATH, or set {SOCKET}"
        raise ConfigurationError(msg)
    with opened(signs=False) as environment:
        if environment.desk.private is None:
            msg = f"this process has no key of the desk: set {PRIVATE} (`recon enrol --desk`)"
            raise ConfigurationError(msg)
        if restored:
            lost = go_on_restored(environment)
            echo(
                f"The desk continues with what the database has; decisions up to {lost} "
                "were given, and are lost."
                if lost
                else "The database has every decision that this desk knows; nothing was changed."
            )
        if not path.name:
            return
        refuse_open_files(environment)
        with the_desk(environment) as go_on:
            remember(environment)
            context = ActContext(environment, drawings)
            drawings()

            def carried_out(act: str, body: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
                go_on()
                done = carry_out(act, body, origin=origin, context=context)
                return done.model_dump(mode="json")

            serve_until_ended(
                path,
                carry_out=carried_out,
                ready=lambda at: echo(
                    f"The desk takes decisions at {at}; its key is {environment.desk.name}."
                ),
            )


def _receive_notifications(host: str, *, port: int) -> None:
    from recon.config.settings import load_settings
    from recon.steps.runtime.environment import system_clock
    from recon.webhooks.receiver import receive_until_ended

    settings = load_settings(os.environ)

    def ready(base_url: str) -> None:
        echo(base_url)
        for key in sorted(settings.accounts):
            echo(f"{base_url}/notifications/{key}")

    receive_until_ended(settings, host=host, port=port, clock=system_clock, ready=ready)
