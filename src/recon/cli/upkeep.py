"""`recon db upgrade` and `recon doctor`: what an operator needs before the first night."""

import os
from random import SystemRandom
from typing import Annotated

import typer

from recon.cli.speaking import say

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
    from recon.store.migrate import upgrade as migrate

    say(f"The database is at version {migrate(url)}.")


def doctor() -> None:
    """Look at variables, files, folders, database and gateway; one line each, nothing changes."""
    from recon.steps.doctor import checks
    from recon.steps.environment import system_clock

    failed = 0
    for check in checks(os.environ, clock=system_clock, randomness=SystemRandom()):
        failed += not check.ok
        say(f"{'ok     ' if check.ok else 'MISSING'} {check.name}: {check.sentence}")
    if failed:
        raise typer.Exit(DOCTOR_FAILED_EXIT_CODE)
