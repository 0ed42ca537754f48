import pytest

from recon.config.retention import retention_of
from recon.model.errors import ConfigurationError


def test_without_an_age_everything_is_kept() -> None:
    """Nothing is old by default."""
    keeps = retention_of({})

    assert set(keeps.model_dump(exclude={"schedule_deletes"}).values()) == {None}
    assert keeps.schedule_deletes is False


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"retention": {"archive_days": 30}}, "archive_days"),
        ({"retention": {"nights_days": 89}}, "nights_days"),
        ({"retention": {"metrics_days": 0}}, "metrics_days"),
        ({"retention": {"history_days": 400}}, "history_days"),
        ({"retention": {"schedule_deletes": True}}, "schedule_deletes needs a schedule"),
        ({"retention": {"schedule": {"cron": "0 6 * * 6", "zone": "Mars/Base"}}}, "time zone"),
        ({"retention": {"backups": {"folder": "/b", "files": "*", "days": 90}}}, "files"),
        (
            {"retention": {"backups": {"folder": "/b", "files": "recon-*", "days": 90, "keep": 1}}},
            "keep",
        ),
    ],
)
def test_what_would_delete_too_much_is_refused_by_name(
    tables: dict[str, object], named: str
) -> None:
    """Evidence is kept a quarter, backups have names and some stay, the history has no age."""
    with pytest.raises(ConfigurationError, match=named):
        retention_of(tables)
