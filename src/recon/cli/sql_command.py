"""`recon sql`: one question over all nights."""

import os
from typing import Annotated

import typer

from recon.cli.speaking import complain, say
from recon.cli.tables import AsJson, show, show_json

LET_GO_SHOWN_MAX = 20
"""Sentences on the terminal; the others are counted."""


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT; docs/SQL.md has ten of them.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Answer one SELECT over all nights: nights, breaks, effects, totals, matches, decisions."""
    from recon.steps.care.sql_questions import answer
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        answered = answer(statement, environment=environment)
    rows = answered.rows.to_pylist()
    if as_json:
        show_json(rows)
    else:
        shown = [{name: "" if cell is None else cell for name, cell in row.items()} for row in rows]
        show(shown, columns=answered.rows.column_names)
        say(f"{len(rows)} rows.")
    for sentence in answered.let_go[:LET_GO_SHOWN_MAX]:
        complain(f"Of this night only breaks, totals and decisions answer: {sentence}")
    if len(answered.let_go) > LET_GO_SHOWN_MAX:
        complain(f"… and {len(answered.let_go) - LET_GO_SHOWN_MAX} more nights like it.")
    if not answered.is_whole:
        complain(f"These are the first {len(rows)} rows; ask for fewer, or read the files.")
