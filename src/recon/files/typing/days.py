"""Days as text: of the calendar, and near enough to count from."""

from datetime import date

from recon.files.typing.instants import YEAR_MAX, YEAR_MIN


def what_is_wrong_with_day(text: str) -> str:
    """Why a text is no day that can be judged; "" when it is one.

    Args:
        text: such as 2026-11-19.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return "is no date such as 2026-11-19"
    # A week before or behind the calendar's own ends cannot be counted.
    if not YEAR_MIN <= day.year <= YEAR_MAX:
        return f"is not between the years {YEAR_MIN} and {YEAR_MAX}"
    return ""
