"""`recon order-file propose`: the layout of a merchant's own files, from samples of them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.speaking import complain, say

if TYPE_CHECKING:
    from recon.steps.files.proposed_layouts import Checked, Proposed

NOT_USABLE_EXIT_CODE = 1
SHOWN_REJECTS_MAX = 10


def propose(
    samples: Annotated[
        list[Path], typer.Argument(help="Files of one layout, up to 8 MiB each; more decide more.")
    ],
    kind: Annotated[
        str, typer.Option("--as", help="orders, gateway, settlement, ledger, instructions or bank.")
    ] = "orders",
    merchant: Merchant = "",
    account: Account = "",
    answer: Annotated[
        list[str] | None,
        typer.Option(help="What was asked, as KEY=TEXT, such as zone=Europe/Lisbon; may repeat."),
    ] = None,
) -> None:
    """Write the layout (TOML) of files like these samples; what fits two ways is asked.

    The layout goes to the output, all else beside it. Ends with 0 when nothing is asked and a night
    would take every row of the samples, with 1 when not.
    """
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.files.proposed_layouts import KINDS, propose_layout

    if kind not in KINDS:
        msg = f"--as {kind} is none of {', '.join(KINDS)}"
        raise typer.BadParameter(msg)
    proposed = propose_layout(
        samples,
        kind=kind,
        rules=load_rules(config_dir=config_dir_of(os.environ)),
        account=(merchant, account),
        answers=dict(map(_answer, answer or ())),
    )
    say(proposed.text.rstrip("\n"))
    _tell(proposed, samples=samples)
    if not proposed.usable:
        raise typer.Exit(NOT_USABLE_EXIT_CODE)


def _answer(text: str) -> tuple[str, str]:
    key, equals, decided = text.partition("=")
    if not key or not equals:
        msg = f"--answer {text} is not KEY=TEXT"
        raise typer.BadParameter(msg)
    return key, decided


def _tell(proposed: "Proposed", *, samples: list[Path]) -> None:
    for key, question in proposed.proposal.questions.items():
        complain(f"{key}: {question}")
    if proposed.proposal.questions:
        complain(f"{len(proposed.proposal.questions)} asked: --answer KEY=TEXT, once for each.")
    for path, checked in zip(samples, proposed.checked, strict=False):
        _tell_sample(path, checked)


def _tell_sample(path: Path, checked: "Checked") -> None:
    if checked.source is None:
        complain(f"A night would refuse it whole: {checked.refusal}")
        return
    by = checked.source.skipped_by
    skipped = f", {checked.source.rows_skipped} skipped ({by})" if by else ""
    complain(
        f"{path.name}: {checked.source.rows_read} rows, {checked.source.rows_accepted} would be "
        f"accepted, {checked.source.rows_rejected} refused{skipped}."
    )
    for reject in checked.rejects[:SHOWN_REJECTS_MAX]:
        complain(f"line {reject.line}, {reject.column}: {reject.reason}")
