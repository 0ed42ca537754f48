"""`recon prefect …`: what Prefect must know of us, made from the configuration."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.speaking import say
from recon.privacy.own_files import write_result

if TYPE_CHECKING:
    from recon.config.retention import Retention
    from recon.config.settings import AccountSettings

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
