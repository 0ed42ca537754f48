"""Options that several commands share, with their defaults from the environment."""

from datetime import date
from typing import Annotated

import typer

Merchant = Annotated[
    str, typer.Option(envvar="RECON_MERCHANT", help="The merchant's number at the gateway.")
]
Account = Annotated[
    str, typer.Option(envvar="RECON_ACCOUNT", help="The account's number at the gateway.")
]
BusinessDate = Annotated[
    str,
    typer.Option(
        envvar="RECON_BUSINESS_DATE",
        help="The day to settle, such as 2026-11-20; without it the last one that has closed.",
        show_default=False,
    ),
]


def date_of(text: str) -> date:
    """A date as people type it.

    Raises:
        typer.BadParameter: anything but year, month and day with hyphens.
    """
    from recon.model.business_date import date_of_text

    try:
        return date_of_text(text)
    except ValueError as error:
        msg = f"{text!r} is not a date such as 2026-11-20"
        raise typer.BadParameter(msg) from error
