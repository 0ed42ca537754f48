"""Fields of a request that have a form: amounts with exactly their decimals, codes, dates, ids."""

import re
from datetime import date
from typing import Any
from uuid import UUID

from recon.model.errors import AmountError
from recon.model.money import WIRE_DECIMALS_MIN, exponent, parse_minor_units

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}", re.ASCII)


def wire_minor_units(text: Any, *, currency: str) -> int | None:
    """Minor units of an amount with a point and exactly the wire's decimals, None for all else.

    Two decimals, or the currency's own where these are more; JPY 1000 is `1000.00`.
    """
    if not isinstance(text, str):
        return None
    try:
        decimals = max(WIRE_DECIMALS_MIN, exponent(currency))
        minor_units = parse_minor_units(text, currency=currency)
    except AmountError:
        return None
    return minor_units if len(text.partition(".")[2]) == decimals else None


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in its usual form."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def is_date(text: str) -> bool:
    """Whether a text is a day as YYYY-MM-DD."""
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def is_country(text: str) -> bool:
    """Whether a text has the form of a two-letter country code."""
    return _COUNTRY.fullmatch(text) is not None
