"""`recon signer`: hold the gateway's sign keys and sign what was agreed, until Ctrl-C."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.speaking import say


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
