from pathlib import Path

import pytest

from tests.architecture.answers_page import PAGE, answers, page, shown


@pytest.mark.timeout(600)
def test_the_ten_answers_of_the_page_are_those_of_the_demos_nights(tmp_path: Path) -> None:
    """Two nights are played and every question asked as a person would; no figure is typed."""
    given = answers(tmp_path / "demo")

    assert len(given) == 10
    assert shown(PAGE.read_text("utf-8")) == given, "python -m tests.architecture.answers_page"
    assert page(given) == PAGE.read_text("utf-8")
