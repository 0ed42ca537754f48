"""`recon db`, `doctor`, `set-aside` and `housekeeping`: what an operator does around nights."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from random import SystemRandom
from typing import Annotated

import typer

from recon.cli.one_time_codes import Code
from recon.cli.people_commands import As, ask_desk_to
from recon.cli.speaking import complain, say
from recon.cli.tables import AsJson, show_json

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
    ],
) -> None:
    """Create the tables, or bring them to the version this program needs; safe to repeat."""
    from recon.store.database import migrate

    say(f"The database is at version {migrate.upgrade(url)}.")


def grants(
    app: Annotated[str, typer.Option(help="The role of nights.")] = "",
    people: Annotated[str, typer.Option(help="The role of the desk, where people speak.")] = "",
    read: Annotated[str, typer.Option(help="The role of those who only look.")] = "",
    migrate: Annotated[str, typer.Option(help="The role that owns and changes tables.")] = "",
) -> None:
    """Print the SQL that gives four PostgreSQL roles exactly the rights they need.

    The owner of the database reads it, then runs it (`recon db grants | psql ...`), after the first
    `recon db upgrade` and after each later one. psql ends with 3 and changes nothing where one
    statement is refused.
    """
    from recon.store.database.roles import Roles, script

    named = {"app": app, "people": people, "read": read, "migrate": migrate}
    roles = Roles(**{role: name for role, name in named.items() if name})
    say("\n".join(script(roles)))


def doctor(*, as_json: AsJson = False) -> None:
    """Look at variables, files, folders, database and gateway; one line each, nothing changes."""
    from recon.steps.care.doctor import checked, checks
    from recon.steps.ground.environment import system_clock

    rows: list[dict[str, object]] = []
    answers = checks(os.environ, clock=system_clock, randomness=SystemRandom())
    for check in (*answers, *(checked(name, look) for name, look in _of_prefect())):
        rows.append({"name": check.name, "ok": check.ok, "sentence": check.sentence})
        if not as_json:
            say(f"{'ok     ' if check.ok else 'MISSING'} {check.name}: {check.sentence}")
    if as_json:
        show_json(rows)
    if not all(row["ok"] for row in rows):
        raise typer.Exit(DOCTOR_FAILED_EXIT_CODE)


def _of_prefect() -> Iterable[tuple[str, Callable[[], str]]]:
    """Lines about Prefect; one that says so where no server is named."""
    if not os.environ.get("PREFECT_API_URL", "").strip():
        sentence = (
            "PREFECT_API_URL is not set: nights start from the command line or another scheduler"
        )
        return [("Prefect", lambda: sentence)]
    from flows.prefect_health import health_checks

    return health_checks()


def accept_restore(
    *,
    name: As,
    reason: Annotated[str, typer.Option(help="What happened; kept in the history.")],
    code: Code = "",
) -> None:
    """Go on with a database that was restored from a backup; two people accept it.

    Everything that was not sent yet then waits for people: it may have been sent after the backup.
    """
    waiting = ask_desk_to("accept-restore", {"reason": reason}, name=name, code=code)["waiting"]
    if waiting is None:
        say("Noted: a second person must accept it, too. Nothing is sent until then.")
    else:
        say(f"Accepted. {waiting} instructions that were not sent yet now wait for people.")


def set_aside(
    file: Annotated[Path, typer.Argument(help="The spill file that a night named.")],
    *,
    name: As,
    reason: Annotated[str, typer.Option(help="Why it is not needed; kept in the history.")],
    code: Code = "",
) -> None:
    """Keep a spill file that does not fit under another name, so that nights go on; two people do.

    Nothing is sent by it. What its batch left in flight is in doubt and is asked about.
    """
    body = {"file": str(file.resolve()), "reason": reason}
    kept = ask_desk_to("set-aside", body, name=name, code=code)["kept"]
    if not kept:
        say("Noted: a second person must set it aside, too. Nights stop until then.")
    else:
        say(f"Set aside: {kept}. Start the night again.")


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
    from recon.steps.care import housekeeping as keeping
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        spared = keeping.housekeeping(environment)
        stayed: tuple[str, ...] = ()
        if delete:
            spared, stayed = keeping.delete(spared, by=name, environment=environment)
    if not spared:
        say("Nothing to delete." if delete else "retention.toml names no age: everything is kept.")
    for kind in spared:
        say(f"{'Deleted: ' if delete else ''}{kind}")
        for note in () if delete else kind.notes:
            say(f"  {note}")
    for sentence in stayed:
        complain(sentence)
    if stayed:
        raise typer.Exit(1)
