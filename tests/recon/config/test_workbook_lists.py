"""How many rows of a workbook's long lists an account may ask for."""

import pytest
from pydantic import ValidationError

from recon.config.settings import WorkbookLists

LISTS = [("matched_rows", 50_000), ("open_rows", 200_000)]


@pytest.mark.parametrize(("name", "most"), LISTS)
@pytest.mark.parametrize(("at_most", "shown"), [(1, 1), (50, 50), (5_000, 20)])
def test_a_list_may_be_cut_anywhere(name: str, most: int, at_most: int, shown: int) -> None:
    """From one row on, all that is let stand may be shown."""
    lists = WorkbookLists.model_validate({f"{name}_max": at_most, f"{name}_shown": shown})
    longest = WorkbookLists.model_validate({f"{name}_max": most, f"{name}_shown": most})

    assert getattr(lists, f"{name}_max") == at_most
    assert getattr(lists, f"{name}_shown") == shown
    assert getattr(longest, f"{name}_shown") == most


@pytest.mark.parametrize(("name", "most"), LISTS)
def test_what_no_sheet_could_show_is_refused_by_its_key(name: str, most: int) -> None:
    """No rows, more than a sheet holds or a person opens, a share of a row."""
    for key in (f"{name}_max", f"{name}_shown"):
        for rows in (0, -1, most + 1, 1.5, "many"):
            with pytest.raises(ValidationError, match=key):
                WorkbookLists.model_validate({f"{name}_max": most, key: rows})


@pytest.mark.parametrize("name", [name for name, _ in LISTS])
def test_no_more_rows_are_shown_than_may_stand(name: str) -> None:
    """A list would be longer where it is cut than where it is whole; also by the default."""
    both = {f"{name}_max": 50, f"{name}_shown": 51}
    only_the_bound = {f"{name}_max": 50}
    for declared in (both, only_the_bound):
        with pytest.raises(ValidationError, match=f"{name}_shown: more rows than {name}_max"):
            WorkbookLists.model_validate(declared)


def test_a_key_that_nobody_knows_is_refused() -> None:
    """A misspelt bound would bound nothing."""
    with pytest.raises(ValidationError, match="matched_row_max"):
        WorkbookLists.model_validate({"matched_row_max": 5})
