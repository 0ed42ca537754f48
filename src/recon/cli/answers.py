"""`recon import-resolutions`: the answers that finance wrote into a workbook, taken in."""

from pathlib import Path
from typing import Annotated

import typer

from recon.cli.one_time_codes import Code
from recon.cli.people import As, ask_desk_to
from recon.cli.speaking import complain, say

REFUSALS_SHOWN_MAX = 10
"""Lines on the terminal; the result workbook has them all."""


def import_resolutions(
    workbook: Annotated[Path, typer.Argument(help="The workbook with filled-in cream cells.")],
    *,
    name: As,
    code: Code = "",
) -> None:
    """Take in the answers of a returned workbook; a result workbook beside it says what was taken.

    Only the cream cells are read. The same file again changes nothing. Whoever brings answers
    does not sign the night as its reviewer.
    """
    from recon.cli.workbooks import form
    from recon.steps.people import resolutions
    from recon.steps.people.at_desk import IMPORT, file_body, import_of
    from reports.reading.import_workbook import write_import

    done = import_of(ask_desk_to(IMPORT, file_body(workbook), name=name, code=code, form=form()))
    say(resolutions.sentence_of(done))
    for refusal in done.refusals[:REFUSALS_SHOWN_MAX]:
        complain(f"{refusal.cell}: {refusal.value!r} was not taken: {refusal.reason}.")
    if not done.repeated:
        say(f"Result: {write_import(done, beside=workbook)}")
    if done.refusals:
        raise typer.Exit(1)
