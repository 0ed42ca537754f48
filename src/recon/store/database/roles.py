"""Least privilege on PostgreSQL: SQL for four roles, to be read and run by the database's owner.

The night may insert rows except into tables of people's decisions, update only what it must
(states, counts, outcomes) and delete only what it can compute again. People's decisions are written
by the role of the approvals service alone. Only the owner of the tables could change the history.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Table

from recon.model.errors import ConfigurationError
from recon.store.schema.columns import metadata

ROLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
VERSION_TABLE = "alembic_version"

CHANGING: Mapping[str, str] = {
    "attempt": "outcome code message",
    "batch": "state replied_at closed_at http_status reply_headers reply reply_sha256 "
    "return_status message",
    "exported_journal": "booked_in",
    "instruction": "state hold attempts batch_id transaction_id payment_amount baseline_status "
    "outcome code message refund_reference_id approved_by approved_at sent_at outcome_at "
    "in_doubt_since sealed repeats",
    "notification": "times repeated_at",
    "notification_case": "times",
    "order_action": "instruction_id sealed",
    "run": "status step owner owner_process finished_at problem verdict rules_digest result_digest "
    "workbook workbook_sha256 history_head",
}
"""Table -> columns that a night updates; it updates no others."""

STATED: Mapping[str, str] = {
    "answer_file": "",
    "break_answer": "waits agreed_by agreed_at",
    "endorsement": "",
    "used_code": "",
    "wrong_code": "",
}
"""Tables of people's decisions -> columns that a later decision updates. Approvals service only."""

FOLLOWING: Mapping[str, str] = {
    "contradiction": "verdict closed_at",
    "history": "",
    "order_file": "",
    "instruction": "state hold approved_by approved_at message outcome_at in_doubt_since sealed",
    "reject_end": "",
    "sending_switch": "",
}
"""Further tables to which the approvals service adds rows -> columns it updates by decisions."""

DECIDED = frozenset({"instruction", "contradiction"})
"""Tables whose rows a night inserts; people's decisions only update them."""

COMPUTED = frozenset(
    {
        *("control_total", "reject"),
        *("result_summary", "run_source"),
    }
)
"""Tables whose rows a repeated step of the same run replaces."""

PRIVATE: Mapping[str, str] = {"instruction": "sealed", "order_action": "sealed"}
"""Table -> column hidden from the read role, although it is encrypted."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the four roles, of which logins of people and programs become members."""

    migrate: str = "recon_migrate"
    app: str = "recon_app"
    people: str = "recon_people"
    read: str = "recon_read"

    @property
    def names(self) -> tuple[str, str, str, str]:
        """All four names."""
        return self.migrate, self.app, self.people, self.read

    def __post_init__(self) -> None:
        for name in self.names:
            if not ROLE_NAME.fullmatch(name):
                msg = f"{name!r} cannot be a role: small letters, digits and _ only, 41 at most"
                raise ConfigurationError(msg)


def script(roles: Roles) -> Iterator[str]:
    """Yield a psql script that runs all statements or none; psql exits with 3 on an error."""
    yield "-- For psql, as the owner of the database and of its tables. One who is no superuser"
    yield f"-- needs CREATEROLE the first time, and becomes a member of {roles.migrate}."
    yield "-- Where one statement is refused, psql ends with 3 and nothing is changed."
    yield r"\set ON_ERROR_STOP on"
    yield "BEGIN;"
    yield from statements(roles)
    yield "COMMIT;"


def statements(roles: Roles) -> Iterator[str]:
    """Yield SQL that creates the roles with exactly their rights; it is safe to run again."""
    for name in roles.names:
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') "
            f"THEN CREATE ROLE {name} NOLOGIN; END IF; END $$;"
        )
    # Ownership can be given only to a role whose rights one has; a superuser has those of all.
    yield (
        f"DO $$ BEGIN IF NOT pg_has_role(CURRENT_USER, '{roles.migrate}', 'USAGE') "
        f"THEN GRANT {roles.migrate} TO CURRENT_USER; END IF; END $$;"
    )
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    yield f"GRANT USAGE, CREATE ON SCHEMA public TO {roles.migrate};"
    yield f"GRANT USAGE ON SCHEMA public TO {roles.app}, {roles.people}, {roles.read};"
    tables = [metadata.tables[name] for name in sorted(metadata.tables)]
    for name in (*(table.name for table in tables), VERSION_TABLE):
        yield f"ALTER TABLE {name} OWNER TO {roles.migrate};"
        yield f"REVOKE ALL ON {name} FROM {roles.app}, {roles.people}, {roles.read};"
        yield f"GRANT SELECT ON {name} TO {roles.app}, {roles.people};"
    yield f"GRANT SELECT ON {VERSION_TABLE} TO {roles.read};"
    yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {roles.app}, {roles.people};"
    for table in tables:
        yield from _of_table(table, roles=roles)


def _of_table(table: Table, *, roles: Roles) -> Iterator[str]:
    if table.name not in STATED:
        yield from _writing(table, roles.app, changing=CHANGING.get(table.name, ""))
    if table.name in COMPUTED:
        yield f"GRANT DELETE ON {table.name} TO {roles.app};"
    by_people = {**STATED, **FOLLOWING}
    if table.name in by_people:
        adds = table.name not in DECIDED
        yield from _writing(table, roles.people, changing=by_people[table.name], adds=adds)
    private = PRIVATE.get(table.name, "").split()
    visible = [column.name for column in table.columns if column.name not in private]
    columns = f" ({', '.join(visible)})" if private else ""
    yield f"GRANT SELECT{columns} ON {table.name} TO {roles.read};"


def _writing(table: Table, role: str, *, changing: str, adds: bool = True) -> Iterator[str]:
    if adds:
        yield f"GRANT INSERT ON {table.name} TO {role};"
    if columns := changing.split():
        yield f"GRANT UPDATE ({', '.join(columns)}) ON {table.name} TO {role};"
