"""Sentences of the engine as finance reads them."""

import pytest

from reports.drawing.look import for_people


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "4390.90 EUR came on 2026-11-16 and on 2026-11-17.",
            "4,390.90 EUR came on 16 Nov 2026 and on 17 Nov 2026.",
        ),
        ("12 JPY, since 2026-11-02: 44048 JPY", "12 JPY, since 2 Nov 2026: 44,048 JPY"),
        ("orders-2026-11-20-app.csv line 4", "orders-2026-11-20-app.csv line 4"),
        (
            "statement 2026-11-20.sta at 2026-11-20T10:00:00Z",
            "statement 2026-11-20.sta at 2026-11-20T10:00:00Z",
        ),
    ],
)
def test_days_and_amounts_stand_as_the_columns_have_them_and_names_of_files_as_they_are(
    said: str, shown: str
) -> None:
    assert for_people(said) == shown
