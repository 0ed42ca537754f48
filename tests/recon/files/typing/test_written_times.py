import pyarrow as pa
import pytest

from recon.config.file_layouts import FileLayout
from recon.files.typing.instants import days_of, times_in_standard_form, with_clock


@pytest.mark.parametrize(
    ("times", "text", "standard"),
    [
        ("%d.%m.%Y %H:%M", "20.11.2026 09:30", "2026-11-20T09:30:00"),
        ("%d.%m.%y", "20.11.26", "2026-11-20T00:00:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 12:05 AM", "2026-03-04T00:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 12:05 pm", "2026-03-04T12:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 1:05 PM", "2026-03-04T13:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 13:05 PM", None),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 0:05 AM", None),
        ("%b %-d, %Y", "Nov 5, 2026", "2026-11-05T00:00:00"),
        ("%b %-d, %Y", "Nox 5, 2026", None),
        ("%-d.%-m.%Y %-H:%M:%S%z", "5.1.2026 7:00:01+0100", "2026-01-05T07:00:01+0100"),
        ("serial", "46346.395833333336", "2026-11-20T09:30:00.000"),
        ("serial", "25568", None),
        ("serial", "20.11.2026", None),
        ("unix", "1795167000", "2026-11-20T09:30:00+00:00"),
        ("unix", "1795167000.5", None),
    ],
)
def test_a_time_is_what_its_layout_says_or_nothing(
    times: str, text: str, standard: str | None
) -> None:
    """A cell that is written otherwise is a problem, never another moment."""
    problems: dict[int, str] = {}
    cells = pa.array([text, ""], pa.large_string())
    layout = FileLayout(times=times)
    read = times_in_standard_form(cells, layout=layout, typed=False, problems=problems)
    assert read.to_pylist() == [standard or "", ""]
    assert list(problems) == ([] if standard else [0])


def test_a_day_and_its_clock_are_one_time_and_a_date_only_a_day() -> None:
    """Two columns join by a blank; a column of dates keeps the day as it is written."""
    days, clocks = pa.array(["20.11.2026", "", "1.1.2026"]), pa.array(["09:30", "10:00", ""])
    joined = with_clock(days, clocks=clocks)
    assert joined.to_pylist() == ["20.11.2026 09:30", "", "1.1.2026"]
    assert days_of(pa.array(["2026-11-20T09:30:00+01:00", ""])).to_pylist() == ["2026-11-20", ""]
