"""`recon rejected-rows`: order rows that nobody delivered again, and the decision on one."""

import os
from typing import Annotated

import typer

from recon.cli.one_time_codes import Code
from recon.cli.people_commands import As, ask_desk_to
from recon.cli.speaking import say

rejected_rows = typer.Typer(
    help="Order rows that could not be read and still stand for their orders.",
    no_args_is_help=True,
)


@rejected_rows.command("list")
def listed() -> None:
    """Every rejected order row that was not delivered again, with its number, file and line."""
    from recon.steps.files.rejected_rows import outstanding_rows
    from recon.steps.ground.environment import environment_of, system_clock

    count = 0
    with environment_of(os.environ, clock=system_clock) as environment:
        for run, rows in outstanding_rows(environment):
            for row in rows:
                order = row.order_no or "an order whose number could not be read"
                where = f"{row.source} line {row.line}, {row.column}: {row.reason}"
                say(f"{row.reject_id}  {run.merchant_id}/{run.account_id}  {order}  {where}")
                count += 1
    say(f"{count} rejected rows stand for orders that are not verified.")


@rejected_rows.command("dismiss")
def dismiss(
    row: Annotated[int, typer.Argument(help="Its number, as `recon rejected-rows list` shows it.")],
    *,
    reason: Annotated[str, typer.Option(help="Why it stands for no order; kept in the history.")],
    name: As,
    code: Code = "",
) -> None:
    """Decide that a row stands for no order: the next night judges the payment without it."""
    done = ask_desk_to("dismiss", {"row": str(row), "reason": reason}, name=name, code=code)
    say(f"Noted: {done['source']} line {done['line']} stands for no order from the next night on.")
