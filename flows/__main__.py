"""`python -m flows`: write, apply and check what Prefect's server has of the configuration.

Each command is safe to repeat; repeat them after accounts or schedules change.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from prefect.client.orchestration import get_client

from flows.automations import establish
from flows.deployments import WORK_POOL, pool_text, text_of
from flows.prefect_health import health_checks
from recon.config.retention import RetentionFile
from recon.config.settings import config_dir_of, load_file, load_file_settings
from recon.model.errors import ReconError
from recon.privacy.own_files import replace_result
from recon.steps.admin.doctor import checked

app = typer.Typer(
    help="Prefect's server, made from the configuration.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command("files")
def files(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="With the forms of parts of a night, and of doubts, too."),
    ] = False,
) -> None:
    """Write prefect.yaml (a night per account, and forms of every day) and pool.json.

    By the template of the pool a run cannot bring a program, variables or a folder.
    """
    accounts = load_file_settings(os.environ).accounts
    config_dir = config_dir_of(os.environ)
    retention = load_file("retention", RetentionFile, config_dir=config_dir).retention
    project, pool = out / "prefect.yaml", out / "pool.json"
    replace_result(project, text_of(accounts, retention=retention, parts=every))
    replace_result(pool, pool_text())
    create = f"prefect work-pool create {WORK_POOL} --type process --overwrite"
    typer.echo(f"{project}: {len(accounts)} accounts. Now:")
    typer.echo(f"  {create} --base-job-template {pool}")
    typer.echo(f"  prefect --no-prompt deploy --all --prefect-file {project}")
    typer.echo("  python -m flows apply")


@app.command("apply")
def apply(
    block: Annotated[
        str,
        typer.Option(
            help="The notification block that rings, such as slack-webhook/operators; without it "
            "only the automation is made that needs none."
        ),
    ] = "",
) -> None:
    """Make the automations."""
    with get_client(sync_client=True) as client:
        for name, done in establish(client, block=block):
            typer.echo(f"{name}: {done}")


@app.command("doctor")
def doctor() -> None:
    """Look at the server, its doors, worker, deployments and automations; JSON, a row each."""
    rows = []
    for name, look in health_checks():
        rows.append(checked(name, look))
        if not rows[0].ok:
            break  # the server does not answer, so nothing else can be checked
    typer.echo(json.dumps([asdict(row) for row in rows]))


def main() -> int:
    """Run one command; return the exit code of the process."""
    try:
        app()
    except ReconError as error:
        typer.echo(str(error), err=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
