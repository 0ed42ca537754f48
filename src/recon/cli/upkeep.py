"""What an operator does around nights: `db`, `doctor`, `housekeeping`, `prefect`.

And what runs until Ctrl-C: the sandbox gateway, the signer, the receiver of notifications.
"""

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recon.cli.speaking import AsJson, complain, say, show_json
from recon.privacy.own_files import write_result

if TYPE_CHECKING:
    from recon.config.retention import Retention
    from recon.config.settings import AccountSettings

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
    from recon.sandbox import SandboxOptions, serve

    options = SandboxOptions(
        port=port,
        seed=seed,
        orders=orders,
        state=state,
        fault_plan=fault_plan,
        merchant=merchant,
        account=account,
        sign_key=sign_key,
        profile=profile,
        registered_ip=registered_ip,
        capture_mode=capture_mode,
        real_clock=real_clock,
        notify_url=notify_url,
    )
    serve(options)


def signer(
    rules: Annotated[
        Path,
        typer.Option(
            "--rules",
            envvar="RECON_SIGNER_RULES",
            help="The signer's own file: socket, keys, the desk's key, its limits.",
        ),
    ],
) -> None:
    """Hold the sign keys apart from nights and workers, and sign for them over a Unix socket.

    Queries are signed freely; money only where two people endorsed the very row at the desk, or
    within the limits of the signer's own file.
    """
    from recon.signer.server import sign_until_ended

    sign_until_ended(rules, clock=partial(datetime.now, UTC), ready=say)


def notifications(
    *,
    host: Annotated[
        str, typer.Option(help="The address to listen on; elsewhere a proxy must do TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free port.", min=0, max=65535)] = 8420,
) -> None:
    """Receive the gateway's notifications, verify them and keep them as evidence."""
    from recon.config.settings import load_settings
    from recon.notifications.receiver import receive_until_ended
    from recon.steps.ground.environment import system_clock

    settings = load_settings(os.environ)

    def ready(base_url: str) -> None:
        say(base_url)
        for key in sorted(settings.accounts):
            say(f"{base_url}/notifications/{key}")

    receive_until_ended(settings, host=host, port=port, clock=system_clock, ready=ready)


DIFFERS_EXIT_CODE = 1

prefect = typer.Typer(
    help="Deployments and automations of Prefect, made from the configuration.",
    no_args_is_help=True,
)


@prefect.command("deployments")
def deployments(
    out: Annotated[Path, typer.Option(help="The file to write or to compare.")] = Path(
        "prefect.yaml"
    ),
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say where the file differs.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option("--all", help="With the forms of parts of a night, and of doubts, too."),
    ] = False,
) -> None:
    """Write prefect.yaml from the configuration: a night per account, and forms of every day."""
    from flows.deployments import compared, text_of
    from recon.model.errors import SourceMissingError

    accounts, retention = _declared()
    if not check:
        write_result(out, text_of(accounts, retention=retention, parts=every))
        deploy = "prefect --no-prompt deploy --all, then recon prefect schedules"
        say(f"{out}: {len(accounts)} accounts. Now: {deploy}")
        return
    if not out.is_file():
        msg = f"{out} does not exist; without --check it is written"
        raise SourceMissingError(msg)
    text = out.read_text(encoding="utf-8")
    wrong = compared(text, accounts=accounts, retention=retention, parts=every)
    for sentence in wrong or [f"{out} is as the configuration has it"]:
        say(sentence)
    if wrong:
        raise typer.Exit(DIFFERS_EXIT_CODE)


def _declared() -> "tuple[dict[str, AccountSettings], Retention]":
    """Accounts and retention, of which the deployments are made."""
    from recon.config.retention import retention_of
    from recon.config.settings import config_dir_of, load_file_settings, load_tables

    tables = load_tables("retention", config_dir=config_dir_of(os.environ))
    return load_file_settings(os.environ).accounts, retention_of(tables)


@prefect.command("schedules")
def schedules() -> None:
    """Take away the schedules on Prefect's server that the configuration lacks; safe to repeat.

    A deploy leaves beside its own what was declared under another name or for another account.
    """
    from prefect.client.orchestration import get_client

    from flows.deployments import project_of
    from flows.standing_schedules import take_away

    accounts, retention = _declared()
    with get_client(sync_client=True) as client:
        gone = take_away(client, project=project_of(accounts, retention=retention))
    for surplus in gone:
        say(f"taken away: {surplus}")
    if not gone:
        say("every schedule on the server is as the configuration has it")


@prefect.command("pool")
def pool(
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("pool.json"),
) -> None:
    """Write the template of the work pool: a run cannot bring a program, variables or a folder."""
    from flows.deployments import WORK_POOL, pool_text

    write_result(out, pool_text())
    create = f"prefect work-pool create {WORK_POOL} --type process --overwrite"
    say(f"{out}: now: {create} --base-job-template {out}")


@prefect.command("automations")
def automations(
    block: Annotated[
        str,
        typer.Option(
            help="The notification block that rings, such as slack-webhook/operators; without it "
            "only the automation is made that needs none."
        ),
    ] = "",
) -> None:
    """Make the automations on Prefect's server, or put them right; safe to repeat."""
    from prefect.client.orchestration import get_client

    from flows.automations import establish

    with get_client(sync_client=True) as client:
        for name, done in establish(client, block=block):
            say(f"{name}: {done}")
