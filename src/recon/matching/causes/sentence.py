"""One sentence of a reason, and when it holds."""

from collections.abc import Callable
from typing import NamedTuple

from recon.matching.causes.reason_facts import Facts


def always(_: Facts) -> bool:
    """The last sentence of a code holds for all that is left."""
    return True


class Sentence(NamedTuple):
    """Words with the names of amounts and clauses in braces; a capital name begins a sentence."""

    words: str
    holds: Callable[[Facts], bool] = always
