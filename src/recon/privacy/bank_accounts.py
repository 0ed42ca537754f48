"""Masking of bank account numbers (IBAN): only country and last four characters are left.

A number counts only if length (by country) and check digits are right, which an order number hardly
ever satisfies.
"""

import re
from functools import cache

from recon.privacy.card_numbers import SEPARATORS

DISPLAYED_FIRST = 2
DISPLAYED_LAST = 4
CHECK_MODULUS = 97
CHECK_REMAINDER = 1
LETTER_BASE = 36

_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27"
    " DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28"
    " IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22"
    " MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24"
    " SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
LENGTH_OF_COUNTRY = {word[:2]: int(word[2:]) for word in _LENGTHS.split()}
"""Country code -> length of its IBANs, without spaces."""

_BEGINS = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}")
"""The beginning of every IBAN: checked first, as hardly any text has one."""


@cache
def _numbers() -> re.Pattern[str]:
    """Return the pattern of all countries; compiling it takes longer than most commands use it."""
    return re.compile(
        r"(?<![A-Za-z0-9])(?=[A-Z]{2}[0-9]{2})(?:"  # checked first, for speed
        + "|".join(
            rf"{country}[0-9]{{2}}(?:{SEPARATORS}?[A-Za-z0-9]){{{length - 4}}}"
            for country, length in LENGTH_OF_COUNTRY.items()
        )
        + r")(?![A-Za-z0-9])"
    )


def masked_accounts(text: str) -> str:
    """Return the text with every IBAN, grouped or not, cut to the form `DE…3000`."""
    return _numbers().sub(_masked, text) if _BEGINS.search(text) else text


def _masked(match: re.Match[str]) -> str:
    plain = re.sub(SEPARATORS, "", match[0])
    if not _has_check_digits(plain):
        return match[0]
    return f"{plain[:DISPLAYED_FIRST]}…{plain[-DISPLAYED_LAST:]}"


def _has_check_digits(number: str) -> bool:
    """Return whether a number passes the check of ISO 13616 (modulo 97 is 1)."""
    rotated = number[4:] + number[:4]
    digits = "".join(str(int(character, LETTER_BASE)) for character in rotated)
    return int(digits) % CHECK_MODULUS == CHECK_REMAINDER
