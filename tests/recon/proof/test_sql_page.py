"""Questions in SQL that ship are answered, and each total that ships says what it proves."""

import re
from typing import Any

import pyarrow as pa
import pytest

from recon.archive.schemas import SCHEMAS
from recon.config.settings import bundled_config_dir
from recon.proof.night_views import DECISION_COLUMNS, VIEWS, NightFolder, ask
from recon.proof.totals_in_sql import sql_files
from reports.sheets.labels import TABLES
from tests.injected.injected_files import planted
from tests.recon.proof.night_folders import compared_night, night_of, written

EXAMPLES = bundled_config_dir() / "examples" / "questions.sql"
QUESTIONS = dict(
    re.findall(
        r"^-- ([^\n]+)\n(SELECT.*?);$", EXAMPLES.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
)
SILENT = {"Control totals that did not tie"}
"""Questions without an answer on a sound night."""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    plan = planted(size=300, broken=200)
    night = compared_night(plan.sources, rules=plan.rules, as_of=plan.as_of)
    folder = written(tmp_path_factory.mktemp("night"), tables=night_of(night))
    about = {"run_id": "R1", "merchant_id": "M1", "account_id": "1", "mode": "live"}
    about |= {"business_date": "2026-11-20", "verdict": "BREAKS OPEN"}
    files = {name: folder / SCHEMAS[name].path for name in VIEWS}
    return (NightFolder({**about, "is_newest": True}, folder, files),)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_ships_has_its_answer(nights, question):
    decision: dict[str, Any] = dict.fromkeys(DECISION_COLUMNS, "") | {"decision": "answer"}
    decisions = pa.Table.from_pylist([decision])
    answered = ask(QUESTIONS[question], nights=nights, decisions=decisions)
    assert (answered.rows.num_rows == 0) == (question in SILENT)


def test_every_total_that_ships_says_what_it_proves():
    """Each file beside a night is of a total that is explained, and each of these has a file."""
    explained = {int(re.sub(r"\D", "", name)) for name in TABLES["proves"]}
    shipped = {int(name[1:3]) for name in sql_files() if re.fullmatch(r"T\d\d_\w+\.sql", name)}
    assert explained == {*shipped, 1}
