"""What a program that we start takes over from the environment of whoever starts it."""

from collections.abc import Mapping

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "TZ")
KEPT_PREFIXES = ("PYTHON", "LC_")

WITHOUT_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""pydantic asks each installed package whether it wants to see all that is checked, settings and
rows among it, and takes a tenth of a second for the question. To be said before it is loaded."""


def program_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter needs; whatever else stands there could be a key or a password."""
    return {
        name: value
        for name, value in environment.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
