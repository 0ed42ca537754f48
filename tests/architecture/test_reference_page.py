import pytest

from recon.files.typing.typed_table import _RULES
from tests.architecture.reference_page import MODELS, PAGE, RULES, SETTINGS, fields_of, page


def test_the_reference_is_what_the_code_has():
    assert {f"{kind} {last}" for kind, last in _RULES} == set(RULES)
    assert PAGE.read_text("utf-8") == page(), "python -m tests.architecture.reference_page"


@pytest.mark.parametrize("table", SETTINGS, ids=lambda table: table["model"])
def test_every_key_of_a_table_has_its_meaning_once(table):
    named = [name for names in table["keys"] for name in names.split()]

    assert sorted(named) == sorted(fields_of(MODELS[str(table["model"])]))
