"""What people decided, signed by the sandbox's desk, without the act that takes it in."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection

from recon.desk.endorsement import Endorsement, Kind, endorse, instant
from recon.desk.held_keys import SANDBOX_KEYS
from recon.store.money.endorsement_rows import named_database, next_sequence, save

NONCE = "00" * 16


def said(
    connection: Connection,
    kind: Kind,
    subject: str,
    *people: str,
    at: datetime,
    says: Mapping[str, str] | None = None,
    items: Mapping[str, str] | None = None,
    until: datetime | None = None,
) -> None:
    """Each of these people, all of them approvers, says the same."""
    assert SANDBOX_KEYS.private is not None
    for name in people:
        statement = Endorsement(
            kind=kind,
            subject=subject,
            items=items or {},
            says=says or {},
            person=name.split()[0].lower(),
            name=name,
            role="approver",
            proven=False,
            at=instant(at),
            valid_until=instant(until) if until else "",
            sequence=next_sequence(connection),
            nonce=NONCE,
            database=named_database(connection, chance=NONCE, at=at),
        )
        signed = endorse(statement, key=SANDBOX_KEYS.private)
        save(connection, signed, statement=statement, at=at)
