"""The query in shards: what a worker is handed, and that it answers what one process would."""

import http.client
import pickle
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc
import pytest

from recon.config.cluster import ClusterSettings
from recon.config.settings import GatewaySettings, load_settings
from recon.model.errors import ConfigurationError
from recon.model.nights import Mode
from recon.model.words import KeyAnswer
from recon.steps.ground.kept_answers import table_of_run
from recon.steps.night import query_shards
from recon.steps.night.query_shards import (
    Shard,
    ask_with,
    asked_in_shards,
    configuration_of,
    shared,
)
from recon.store.nights import runs
from recon.store.nights.answer_parts import BASELINE
from recon.workers.dask_workers import workers_of

ACCOUNT = ("100042", "100042001")


def shard_of(merchant: Any, *keys: str) -> Shard:
    """A shard as the night would hand it out."""
    configuration = configuration_of(load_settings(merchant.variables))
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    return Shard(keys, ACCOUNT, at, 1, 4, 0, None, configuration)


def test_a_worker_asks_nothing_after_the_deadline_of_the_run(merchant: Any) -> None:
    """Every key has an answer all the same: none that can be used, and why."""
    late = replace(shard_of(merchant, "A", "B"), ends_in_seconds=0.0)

    found = ask_with(late, variables=merchant.variables)

    why = "not asked any more: the time for asking the gateway was over"
    assert found.answers == dict.fromkeys("AB", (KeyAnswer.FAILED, why))


def test_a_worker_answers_by_its_own_key_and_the_clock_of_the_night(merchant: Any) -> None:
    """No database is known to it, and its machine's clock does not count."""
    order_no = merchant.payments("captured")[0].order_no
    without = {
        name: value for name, value in merchant.variables.items() if name != "RECON_DATABASE_URL"
    }

    found = ask_with(shard_of(merchant, order_no, "NOBODY"), variables=without)

    assert {key: answer.value for key, (answer, _) in found.answers.items()} == {
        order_no: "found",
        "NOBODY": "not_found",
    }
    (row,) = found.observations
    assert (row["queried_at"] - datetime(2026, 11, 21, 2, tzinfo=UTC)).total_seconds() < 240


def test_a_shard_carries_no_secret(merchant: Any) -> None:
    """Neither the sign key nor the database's address is in what a scheduler sees."""
    merchant.variables["RECON_SIGN_KEY"] = "a-key-that-nobody-may-see"

    seen = pickle.dumps(shard_of(merchant, "A1"))

    assert b"a-key-that" not in seen
    assert b"sqlite" not in seen


@pytest.mark.parametrize("name", ["RECON_GATEWAY_BASE_URL", "rules.toml", "gateway.toml"])
def test_a_worker_that_is_configured_otherwise_is_refused(merchant: Any, name: str) -> None:
    """Another gateway, other codes or another pace would be another night."""
    shard = shard_of(merchant, "A1")
    config = Path(merchant.variables["RECON_CONFIG_DIR"]) / name
    if name == "rules.toml":
        config.write_text('[query_result]\n"1" = "failed"\n')
    elif name == "gateway.toml":
        config.write_text("calls_per_second = 7\n")
    else:
        merchant.variables[name] = "http://127.0.0.1:9"

    with pytest.raises(ConfigurationError, match="another configuration than the night"):
        ask_with(shard, variables=merchant.variables)


def test_the_calls_in_flight_of_an_account_are_shared_out() -> None:
    """All shards of a round together have no more than one process; the pace is kept by lanes."""
    gateway = GatewaySettings(calls_per_second=10, queries_in_flight=6)

    part = shared(gateway, 4)

    assert (part.calls_per_second, part.queries_in_flight) == (10, 1)
    assert shared(gateway, 1) == gateway


class InRounds:
    """Workers of another process, played: what they are handed, and how much at once."""

    partitions = 2
    elsewhere = True

    def __init__(self) -> None:
        self.rounds: list[list[Shard]] = []

    def each(self, work: Any, items: Any) -> Any:
        """Notes a round, answers nothing about its keys."""
        assert work is query_shards.ask_shard
        self.rounds.append([*items])
        return iter([f"found {len(item.keys)}" for item in self.rounds[-1]])

    def notice(self, name: str, *, clock: Any) -> str:
        """One for all shards of an account."""
        assert pickle.loads(pickle.dumps(clock)) is clock  # noqa: S301 - ours
        return f"notice of {name}"


def test_no_more_shards_are_out_than_share_the_pace(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five shards by two workers: three rounds, and none begins before it is wanted."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 2)
    played = InRounds()
    keys = [f"A{number}" for number in range(9)]

    with merchant.environment() as environment:
        asked = asked_in_shards(
            keys, account=ACCOUNT, environment=replace(environment, workers=played)
        )
        next(asked)
        assert len(played.rounds) == 1
        rest = [*asked]

    assert [[shard.keys for shard in one] for one in played.rounds] == [
        [("A0", "A1"), ("A2", "A3")],
        [("A4", "A5"), ("A6", "A7")],
        [("A8",)],
    ]
    assert [one.keys for one in rest][-1] == ("A8",)
    shards = [shard for one in played.rounds for shard in one]
    assert [shard.sharers for shard in shards] == [2, 2, 2, 2, 1]
    assert [shard.number for shard in shards] == [0, 1, 0, 1, 0]
    assert {shard.notice for shard in shards} == {"notice of recon hold 100042/100042001"}


def test_no_more_shards_are_out_than_calls_may_be_in_flight(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shard has one call in flight at least, so one call in all means one shard at a time."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 2)
    path = Path(merchant.variables["RECON_CONFIG_DIR"]) / "gateway.toml"
    path.write_text("queries_in_flight = 1\n")
    played = InRounds()

    with merchant.environment() as environment:
        elsewhere = replace(environment, workers=played)
        list(asked_in_shards(["A", "B", "C"], account=ACCOUNT, environment=elsewhere))

    assert [[shard.sharers for shard in one] for one in played.rounds] == [[1], [1]]


def stored(merchant: Any) -> set[tuple[Any, ...]]:
    """What the last night stored of the gateway's answers."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest_of_accounts(connection)[0]
        table = table_of_run(connection, run, phases=[BASELINE], environment=environment)
        rows = table.filter(pc.is_valid(table["queried_at"])).to_pylist()
    columns = ("order_no", "transaction_id", "amount", "payment_status")
    return {tuple(row[name] for name in columns) for row in rows}


@pytest.mark.process
@pytest.mark.xdist_group("dask")
def test_workers_store_what_one_process_would(
    merchant: Any, dask_cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole query by a real cluster: the same answers, the same observations, one writer."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 5)
    payments = merchant.payments("captured")[:18]
    merchant.drop("orders.csv", *(merchant.order(payment) for payment in payments))
    merchant.night(mode=Mode.DRY_RUN)
    here = stored(merchant)
    keys = [payment.order_no for payment in payments]
    variables = {**merchant.variables}

    def with_variables(shard: Shard) -> Any:
        return ask_with(shard, variables=variables)

    monkeypatch.setattr(query_shards, "ask_shard", with_variables)
    with (
        merchant.environment() as environment,
        workers_of(dask_cluster, variables={}) as elsewhere,
    ):
        asked = [
            *asked_in_shards(
                keys, account=ACCOUNT, environment=replace(environment, workers=elsewhere)
            )
        ]

    columns = ("order_no", "transaction_id", "amount", "payment_status")
    rows = {
        tuple(row[name] for name in columns) for each in asked for row in each.answers.observations
    }
    assert len(asked) == 4
    assert rows == {row for row in here if row[0] in keys}
    assert len(rows) == 18


@dataclass
class Watch:
    """A gateway between the workers and the sandbox: asks one caller to wait, notes all."""

    port: int
    refused: int
    """The number of the call that gets 429, from 1; 0 for none."""
    wait_seconds: int = 2
    began: list[float] = field(default_factory=list)
    """When each call came."""
    refused_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    connections: int = 0
    closed: int = 0

    def answer(self, path: str, body: bytes, kind: str) -> tuple[int, dict[str, str], bytes]:
        """What the sandbox says, or 429."""
        with self.lock:
            self.began.append(time.monotonic())
            if len(self.began) == self.refused:
                self.refused_at = time.monotonic()
                return 429, {"Retry-After": str(self.wait_seconds)}, b""
        behind = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        behind.request("POST", path, body, {"Content-Type": kind})
        reply = behind.getresponse()
        content = reply.read()
        behind.close()
        return reply.status, {"Content-Type": "application/json"}, content


THIRD = 3
"""When all workers are at work."""


@contextmanager
def watched(port: int, *, refused: int = THIRD) -> Iterator[tuple[str, Watch]]:
    """The address of that gateway, and what it saw."""
    watch = Watch(port, refused)

    class Front(BaseHTTPRequestHandler):
        """The calls of one connection."""

        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            with watch.lock:
                watch.connections += 1
            super().setup()

        def finish(self) -> None:
            with watch.lock:
                watch.closed += 1
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, content = watch.answer(self.path, body, self.headers["Content-Type"])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", watch
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_all_shards_of_this_process_go_over_the_same_connections(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine keys, two a shard, one call in flight: one connection, closed with the iterator."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 2)
    gateway = Path(merchant.variables["RECON_CONFIG_DIR"]) / "gateway.toml"
    gateway.write_text("queries_in_flight = 1\ncalls_per_second = 1000\n")
    keys = [payment.order_no for payment in merchant.payments("captured")[:9]]
    port = urlsplit(merchant.variables["RECON_GATEWAY_BASE_URL"]).port
    assert port is not None

    with watched(port, refused=0) as (url, watch):
        merchant.variables["RECON_GATEWAY_BASE_URL"] = url
        with merchant.environment() as environment:
            asked = [*asked_in_shards(keys, account=ACCOUNT, environment=environment)]
        with closing(asked_in_shards(keys, account=ACCOUNT, environment=environment)) as some:
            next(some)
        waited_until = time.monotonic() + CLOSED_WITHIN_SECONDS
        while watch.closed < watch.connections and time.monotonic() < waited_until:
            time.sleep(0.01)

    found = {key for each in asked for key in each.answers.answers}
    assert (len(asked), found) == (5, set(keys))
    assert (len(watch.began), watch.connections, watch.closed) == (6, 2, 2)


def is_paced(began: list[float]) -> bool:
    """Whether calls came at two a second: none before its place, whatever came late before it."""
    return all(each - began[0] >= place / 2 - ARRIVAL_SECONDS for place, each in enumerate(began))


def test_calls_of_two_shards_that_know_nothing_of_each_other_are_not_paced() -> None:
    """Late calls are forgiven, early ones are not."""
    assert is_paced([0.0, 0.54, 1.33, 1.56, 2.09, 2.61])
    assert not is_paced([0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    assert not is_paced([0.0, 0.5, 1.0, 1.0, 1.5, 2.0])


@pytest.mark.process
@pytest.mark.xdist_group("dask")
def test_two_workers_are_no_quicker_than_the_pace_from_their_first_call_on(
    merchant: Any, dask_cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rounds of two shards with one call each: the account's pace holds over all of them."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 1)
    gateway = Path(merchant.variables["RECON_CONFIG_DIR"]) / "gateway.toml"
    gateway.write_text("calls_per_second = 2\n")
    keys = [payment.order_no for payment in merchant.payments("captured")[:6]]
    port = urlsplit(merchant.variables["RECON_GATEWAY_BASE_URL"]).port
    assert port is not None

    with watched(port, refused=0) as (url, watch):
        merchant.variables["RECON_GATEWAY_BASE_URL"] = url
        variables = {**merchant.variables}

        def with_variables(shard: Shard) -> Any:
            return ask_with(shard, variables=variables)

        monkeypatch.setattr(query_shards, "ask_shard", with_variables)
        with (
            merchant.environment() as environment,
            workers_of(dask_cluster, variables={}) as elsewhere,
        ):
            played = replace(environment, workers=elsewhere)
            asked = [*asked_in_shards(keys, account=ACCOUNT, environment=played)]

    assert [len(each.answers.answers) for each in asked] == [1] * 6
    assert len(watch.began) == 6
    assert is_paced(watch.began), [each - watch.began[0] for each in watch.began]


@pytest.mark.process
@pytest.mark.xdist_group("dask")
def test_a_retry_after_that_one_worker_is_given_holds_all_of_them(
    merchant: Any, dask_cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes ask at once; after the 429 to one of them neither calls before it is over.

    All together are no quicker than the account's pace, and every key is answered.
    """
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 4)
    gateway = Path(merchant.variables["RECON_CONFIG_DIR"]) / "gateway.toml"
    gateway.write_text("calls_per_second = 40\n")
    profiles = Path(merchant.variables["RECON_CONFIG_DIR"]) / "profiles.toml"
    profiles.write_text("[user.query.retrievalTrans]\nrows_max = 1\n")
    keys = [payment.order_no for payment in merchant.payments("captured")[:16]]
    port = urlsplit(merchant.variables["RECON_GATEWAY_BASE_URL"]).port
    assert port is not None

    with watched(port) as (url, watch):
        merchant.variables["RECON_GATEWAY_BASE_URL"] = url
        variables = {**merchant.variables}

        def with_variables(shard: Shard) -> Any:
            return ask_with(shard, variables=variables)

        monkeypatch.setattr(query_shards, "ask_shard", with_variables)
        with (
            merchant.environment() as environment,
            workers_of(dask_cluster, variables={}) as elsewhere,
        ):
            played = replace(environment, workers=elsewhere)
            asked = [*asked_in_shards(keys, account=ACCOUNT, environment=played)]

    after = [at - watch.refused_at for at in watch.began if at > watch.refused_at + IN_FLIGHT_MAX]
    answers = [answer.value for each in asked for answer, _ in each.answers.answers.values()]
    assert answers == ["found"] * 16
    assert len(watch.began) == 17
    assert min(after) >= watch.wait_seconds - IN_FLIGHT_MAX
    assert len(after) >= 12
    assert watch.began[-1] - watch.began[0] >= watch.wait_seconds + 12 / 40


CLOSED_WITHIN_SECONDS = 5
ARRIVAL_SECONDS = 0.4
"""By how much calls may arrive more unevenly than they were made."""
IN_FLIGHT_MAX = 0.3
"""Seconds in which a call that had begun before the 429 was read may still come."""
