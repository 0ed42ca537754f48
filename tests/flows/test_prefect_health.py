import pytest

from flows import prefect_health
from recon.model.errors import ReconError

pytestmark = pytest.mark.flow

ACCOUNT = '[accounts."100042/{}"]\ninbox = "/i"\nreports = "/r"\nschedule = {}\n'
WEEKLY = '[retention]\nschedule = { cron = "0 6 * * 6", zone = "Europe/London" }\n'
LONDON = '{{ cron = "{} 2 * * *", zone = "Europe/London" }}'


@pytest.fixture
def lines(server, deployed, tmp_path, monkeypatch):
    """The doctor's lines about the real server, whose deployments merchants.toml fits."""
    assert deployed
    (tmp_path / "merchants.toml").write_text(
        ACCOUNT.format("100042001", LONDON.format(30))
        + ACCOUNT.format("100042002", LONDON.format(45))
    )
    (tmp_path / "retention.toml").write_text(WEEKLY)
    for name, value in {
        "RECON_CONFIG_DIR": str(tmp_path),
        "RECON_DATABASE_URL": "sqlite:////nowhere",
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_SIGN_KEY": "x",
    }.items():
        monkeypatch.setenv(name, value)
    from prefect.client.orchestration import SyncPrefectClient

    monkeypatch.setattr(
        prefect_health,
        "_client",
        lambda: SyncPrefectClient(server.api_url, auth_string=server.auth),
    )
    return dict(prefect_health.health_checks())


@pytest.fixture
def night_of_100042001(deployed):
    """The deployment of an account's night; on again at the end."""
    night = next(one for one in deployed.read_deployments() if one.name == "100042-100042001")
    yield night
    deployed.resume_deployment(night.id)
    (schedule,) = night.schedules
    said = {"parameters": schedule.parameters}
    deployed.update_deployment_schedule(night.id, schedule.id, active=True, **said)


def test_the_server_answers_with_our_version(lines):
    assert "version 3." in lines["Prefect"]()


def test_a_server_that_is_gone_is_told(lines, monkeypatch):
    from prefect.client.orchestration import SyncPrefectClient

    monkeypatch.setattr(
        prefect_health, "_client", lambda: SyncPrefectClient("http://127.0.0.1:9/api")
    )
    with pytest.raises(ReconError, match="does not answer"):
        lines["Prefect"]()


def test_a_pool_is_healthy_with_a_worker(lines, deployed):
    with pytest.raises(ReconError, match="prefect worker start --pool recon"):
        lines["Prefect's worker"]()
    deployed.send_worker_heartbeat("recon", "worker-1", heartbeat_interval_seconds=60)

    assert lines["Prefect's worker"]() == "worker-1 for the pool recon"


def test_a_worker_that_went_away_does_not_count(lines, deployed, monkeypatch):
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import WorkerStatus

    deployed.send_worker_heartbeat("recon", "worker-2", heartbeat_interval_seconds=60)
    known = deployed.read_workers_for_work_pool("recon")
    gone = [one.model_copy(update={"status": WorkerStatus.OFFLINE}) for one in known]
    monkeypatch.setattr(SyncPrefectClient, "read_workers_for_work_pool", lambda *_: gone)

    assert "worker-2" in {one.name for one in gone}
    with pytest.raises(ReconError, match="nobody works for the pool"):
        lines["Prefect's worker"]()


def test_deployments_are_as_the_merchants(lines, deployed, tmp_path):
    look = lines["Prefect's deployments"]
    (tmp_path / "retention.toml").write_text(WEEKLY + "schedule_deletes = true\n")
    with pytest.raises(ReconError, match=r"^housekeeping has another schedule"):
        look()
    (tmp_path / "retention.toml").write_text(WEEKLY)
    assert look() == f"{len(deployed.read_deployments())} as the configuration has them"
    (tmp_path / "merchants.toml").write_text(
        ACCOUNT.format("100042001", LONDON.format(10))
        + ACCOUNT.format("100042009", LONDON.format(45))
    )

    with pytest.raises(
        ReconError, match="100042-100042009 is missing; 100042-100042001 has another schedule"
    ):
        look()


def test_a_server_of_another_version_is_told(lines, monkeypatch):
    from prefect.client.orchestration import SyncPrefectClient

    monkeypatch.setattr(SyncPrefectClient, "client_version", lambda _: "2.20.1")

    with pytest.raises(ReconError, match=r"server is Prefect 3\..*, this environment has 2\.20\.1"):
        lines["Prefect"]()


def test_a_night_that_will_not_start_by_itself_is_told(lines, deployed, night_of_100042001):
    look, night = lines["Prefect's deployments"], night_of_100042001
    deployed.pause_deployment(night.id)
    with pytest.raises(ReconError, match=f"^{night.name} is paused"):
        look()
    deployed.resume_deployment(night.id)
    (schedule,) = night.schedules
    said = {"parameters": schedule.parameters}  # which the server would forget
    deployed.update_deployment_schedule(night.id, schedule.id, active=False, **said)

    with pytest.raises(ReconError, match=f"^{night.name} has another schedule, or none is active"):
        look()


def test_missing_automations_are_named_with_the_command(lines, monkeypatch):
    look = lines["Prefect's automations"]
    monkeypatch.setattr(prefect_health, "missing_automations", lambda _: ["recon: bell"])
    with pytest.raises(ReconError, match=r"recon: bell.*flows apply"):
        look()
    monkeypatch.setattr(prefect_health, "missing_automations", lambda _: [])

    assert look() == "all there"
