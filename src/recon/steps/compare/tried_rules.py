"""Which rules were tried on past nights before they became those of a night, by the history."""

import json
from collections.abc import Mapping
from typing import Any

from recon.config.rules import Rules
from recon.model.words import DIGITS_READ
from recon.store import Connection
from recon.store.database import history

TRIED, EVENT = "rules", "tried"
"""Entity and event of the history."""


def tried(
    connection: Connection, rules: Rules, *, account: tuple[str, str]
) -> list[Mapping[str, Any]]:
    """What `recon what-if` answered of exactly these rules for an account, oldest first."""
    answers = [
        json.loads(str(row["data"]))
        for row in history.of_entity(connection, rules.digest)
        if (row["entity"], row["event"]) == (TRIED, EVENT)
    ]
    return [answer for answer in answers if answer["account"] == "/".join(account)]


def quoted(answer: Mapping[str, Any]) -> str:
    """An answer as page one names it."""
    nights = "1 night" if answer["nights"] == 1 else f"{answer['nights']} nights"
    return (
        f"`recon what-if` tried these rules on {nights} from {answer['first']} to "
        f"{answer['last']}: digest {answer['digest'][:DIGITS_READ]}."
    )
