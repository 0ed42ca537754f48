"""Short tables for people, and the same as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from recon.cli.speaking import say

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(rows: Sequence[Mapping[str, Any]], *, columns: Sequence[str]) -> None:
    """Print rows under their column names, as wide as they are, so that a pipe loses nothing."""
    lines = [list(columns), *([str(row.get(name, "")) for name in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        say("  ".join(cells).rstrip())


def show_json(document: Any) -> None:
    """Print one JSON document; dates and amounts as text."""
    say(json.dumps(document, indent=2, default=str))
