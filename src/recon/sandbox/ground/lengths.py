"""Lengths of fields under the profile extended, as the bundled profiles.toml has them (A-03)."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from recon.config.settings import load_tables
from recon.sandbox.ground.signatures import text_of


@cache
def lengths() -> Mapping[str, int]:
    """Characters at most, by field."""
    return dict(load_tables("profiles", config_dir=None)["extended"]["lengths"])


def too_long(fields: Mapping[str, Any], *, profile: str) -> str:
    """The first field that is longer than it may be, "" when none is; `base` knows no lengths."""
    if profile != "extended":
        return ""
    bounds = lengths()
    given = (name for name in fields if name in bounds)
    return next((name for name in given if len(text_of(fields[name])) > bounds[name]), "")
