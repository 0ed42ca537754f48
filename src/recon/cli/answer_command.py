"""`recon answer`: the workbook of a night with its cream cells filled, for import-resolutions."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import Night, RunOption, run_of
from recon.cli.speaking import say


def answer(
    night: Night = "",
    *,
    run: RunOption = "",
    owner: Annotated[str, typer.Option(help="Who looks after these breaks.")],
    comment: Annotated[str, typer.Option(help="What is being done about them.")],
    breaks: Annotated[
        list[str] | None,
        typer.Option(
            "--break",
            help="A break's id; may be repeated. Without it every break of severity high or above "
            "that has no owner or no comment.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The workbook; else answers-… in the account's reports.")
    ] = None,
) -> None:
    """Write a night's workbook with an owner and a comment for its breaks; it changes nothing.

    `recon import-resolutions` takes it in, as it takes a workbook that people filled.
    """
    from recon.cli.workbooks import workbooks
    from recon.steps.care.answered_workbook import WantedAnswer, answered_workbook
    from recon.steps.ground.environment import environment_of, system_clock

    named = run_of(night, run)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        path, count = answered_workbook(
            named,
            WantedAnswer(owner, comment, breaks or ()),
            path=out,
            environment=environment,
            workbooks=workbooks(),
        )
    say(f"Answered: {count} break{'s' * (count != 1)}, in {path}")
    say(f"To take them in: recon import-resolutions {path} --as NAME")
