from datetime import date, datetime

from tests.golden.figures import differences, freeze, frozen

TABLES = {
    "workbook, Breaks": {
        "look": "0123456789abcdef",
        "A17": 'He said "no": Ł €\tC:\\new',
        "F17": 12.5,
        "G17": 3,
        "H17": True,
        "I17": date(2026, 11, 20),
        "J17": datetime(2026, 11, 20, 22, 30, 1),  # noqa: DTZ001 - a cell has no zone
    },
    "help": {"recon approve": "Usage: recon approve\n\n ╭─ Options ─╮\n it's '''so'''\n"},
}


def test_what_is_frozen_is_read_back_as_it_was(tmp_path):
    """Texts with quotes and lines, numbers, flags and days come back with their kinds."""
    freeze(TABLES, path=tmp_path / "frozen.toml")

    assert frozen(tmp_path / "frozen.toml") == TABLES
    assert differences(frozen(tmp_path / "frozen.toml"), TABLES) == []


def test_each_difference_names_its_sheet_and_cell():
    """A cell of another value or kind, one that came and one that went: one sentence each."""
    before = {"workbook, Breaks": {"A1": "12", "B1": 1.0, "C1": "gone"}}
    now = {"workbook, Breaks": {"A1": 12, "B1": 1.0, "D1": "new"}}

    assert [each.sentence for each in differences(before, now)] == [
        'workbook, Breaks: A1 was "12", is 12',
        'workbook, Breaks: C1 was "gone", is nothing',
        'workbook, Breaks: D1 was nothing, is "new"',
    ]


def test_a_table_that_came_or_went_differs():
    """Also without any other change."""
    table = {"exit codes": {"recon": 0}}

    assert differences({}, table) == [("exit codes", "exit codes: recon was nothing, is 0")]
    assert differences(table, {}) == [("exit codes", "exit codes: recon was 0, is nothing")]
