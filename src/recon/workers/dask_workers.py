"""Parts of a night on a Dask cluster: by the address of its scheduler, or on this machine.

Dask is imported when the first part is handed out, never before. What it brings to a worker is a
function of ours and plain values: no key, no password, no address of a database. A part that a dead
worker had in hand is done again by another. The connection is TLS with certificates on both sides,
for whoever may hand a worker a part may do anything that the worker may.
"""

import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Self

from recon import __version__
from recon.config.cluster import LOCAL, ClusterSettings, Done, InProcess, Item, Workers
from recon.config.keys import key_of_file
from recon.model.errors import ClusterError, ConfigurationError, ReconError
from recon.model.uptime import collect_seldom, give_back, keep_freed, pool_of
from recon.privacy.own_files import WITHOUT_PLUGINS, program_variables

ATTEMPTS = 3
"""So often a part is begun whose process was ended from outside."""
WAITING_MAX = 1
"""Parts that are handed out beside those in work: whoever ends one has the next."""
START = (
    "from recon.model.uptime import collect_seldom; collect_seldom(); "
    f"from {__name__} import answer; answer()"
)
KEPT = (
    "what was done before is kept: start the night again, with `compared_at_once = 1` in "
    "cluster.toml where this comes again"
)

Answer = tuple[Any, ReconError | None]
"""What came of a part, or why nothing did."""


@dataclass(frozen=True, slots=True)
class ProcessPool(InProcess):
    """This process asks the gateway; others of this machine do the parts of a comparison."""

    helps: bool = True
    at_once: int = 2
    """So many processes."""
    variables: Mapping[str, str] | None = None
    """Of the night; None: those of this process."""
    seconds_max: float = 900

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers.

        Raises:
            ReconError: what the work itself raises.
            ClusterError: the process of a part was ended from outside each time, or takes too long.
        """
        in_hand: deque[Future[Any]] = deque()
        with closing(self._begun(needs)) as processes:
            for item in items:
                if len(in_hand) >= self.at_once + WAITING_MAX:
                    yield processes.result(in_hand.popleft())
                in_hand.append(processes.hand_out(work, item))
            while in_hand:
                yield processes.result(in_hand.popleft())

    def _begun(self, needs: Collection[str]) -> "_Processes":
        given = os.environ if self.variables is None else self.variables
        variables = program_variables(os.environ) | {
            name: given[name] for name in needs if name in given
        }
        return _Processes(self.at_once, variables=variables, seconds_max=self.seconds_max)


class _Processes:
    """Processes that wait for parts or have one in work; none before there is one."""

    def __init__(self, at_once: int, *, variables: Mapping[str, str], seconds_max: float) -> None:
        self._variables = variables
        self._seconds_max = seconds_max
        # A thread for each process: it does nothing but write a part and read what came of it.
        self._threads = ThreadPoolExecutor(at_once)
        self._lock = Lock()
        self._waiting: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._is_over = False

    def hand_out(self, work: Callable[[Item], Done], item: Item) -> "Future[Any]":
        """Let the next process that is free do a part."""
        return self._threads.submit(self._done, pickle.dumps((work, item)))

    def result(self, part: "Future[Any]") -> Any:
        """What came of a part; see ProcessPool.each."""
        try:
            done, error = part.result(timeout=self._seconds_max)
        except TimeoutError:
            msg = (
                f"a part of the comparison was not done within {self._seconds_max:g} s "
                f"(result_seconds in cluster.toml); {KEPT}"
            )
            raise ClusterError(msg) from None
        if error is not None:
            raise error
        return done

    def close(self) -> None:
        """End all processes, whatever they do."""
        with self._lock:
            self._is_over = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            _let_go(process)

    def _done(self, task: bytes) -> Answer:
        """What came of a part, by the first process that does not die over it."""
        try:
            for _ in range(ATTEMPTS):
                process = self._free()
                if (answered := _answer_of(process, task=task)) is not None:
                    self._waiting.append(process)
                    return answered
                self._forget(process)
        except OSError as error:
            why = error.strerror or type(error).__name__
            msg = f"a process for a part of the comparison could not be begun: {why}; {KEPT}"
            return None, ClusterError(msg)
        msg = (
            f"processes over one part of the comparison were ended from outside {ATTEMPTS} times, "
            f"perhaps for want of memory; {KEPT}"
        )
        return None, ClusterError(msg)

    def _free(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._waiting:
                return self._waiting.pop()
            if self._is_over:
                raise ProcessLookupError
            process = _begin(self._variables)
            self._all.append(process)
            return process

    def _forget(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._all.remove(process)
        _let_go(process)


def _begin(variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(  # noqa: S603 - this very Python, our own module
        [sys.executable, "-P", "-c", START],
        env={**variables, **pool_of(variables), **WITHOUT_PLUGINS, **path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _answer_of(process: "subprocess.Popen[bytes]", *, task: bytes) -> Answer | None:
    """What a process makes of a part; None when it was ended from outside."""
    if process.stdin is None or process.stdout is None:
        return None
    try:
        process.stdin.write(task)
        process.stdin.flush()
        answer: Answer = pickle.load(process.stdout)  # noqa: S301 - of the process begun here
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return answer


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    """End a process, if it is not over, and close what leads to it."""
    process.kill()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):  # half a part, which nobody reads any more
            pipe.close()
    process.wait()


def answer() -> None:
    """In such a process: do the parts that come, until no more do, and say what came of each."""
    reply = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing that a library prints stands in an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    tasks = os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    while tasks.peek(1):
        pickle.dump(_outcome(tasks), reply)
        reply.flush()
        give_back()


def _outcome(tasks: BinaryIO) -> Answer:
    try:
        work, item = pickle.load(tasks)  # noqa: S301 - of the process that began this
        return work(item), None
    except ReconError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - there is nobody above
        where = _where(error)
        return None, ClusterError(f"the process of a part of the comparison met {where}; {KEPT}")


def _where(error: Exception) -> str:
    """The kind of an error and where it rose; never its words, which may quote a file."""
    step = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(step.filename).name}:{step.lineno}"


RETRIES = 3
"""So often a part is done again whose worker died, or which met an error of a worker."""
IN_HAND_FOR_EACH = 2
"""Parts handed out for each thread of the workers: one in work, one that waits beside it."""
OWN_PREFIX = "RECON_"
"""Variables that a worker needs which is started here."""
NOT_FOR_WORKERS = frozenset(
    {"RECON_DATABASE_URL", "RECON_SEAL_KEY", "RECON_SEAL_KEY_FILE", "RECON_DESK_KEY_FILE"}
)
"""Variables that it must not use: blank there, since a process takes over what it does not get."""
NO_PAGES: dict[str, object] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Nobody on this machine reads over the shoulder of a cluster that is started here."""
NO_PROFILE: dict[str, object] = {"distributed.worker.profile.enabled": False}
"""Nobody reads either what a worker does each hundredth of a second: a tenth of its time."""

Connect = Callable[[], AbstractContextManager[Any]]
"""Opens a `distributed.Client`."""


@contextmanager
def workers_of(cluster: ClusterSettings, *, variables: Mapping[str, str]) -> Iterator[Workers]:
    """Who does the parts of a night, until the end of the block.

    Args:
        cluster: as configured.
        variables: the environment of the night, for workers that are started here.
    """
    if not cluster.address:
        yield _of_this_machine(cluster, variables=variables)
        return
    with DaskWorkers(cluster, connect=partial(connected, cluster, variables=variables)) as workers:
        yield workers


def _of_this_machine(cluster: ClusterSettings, *, variables: Mapping[str, str]) -> Workers:
    if cluster.compared_at_once == 1:
        return InProcess()
    return ProcessPool(
        at_once=cluster.compared_at_once,
        variables=variables,
        seconds_max=cluster.result_seconds,
    )


class DaskWorkers:
    """The workers of a cluster: connected at the first part, let go at the end of the block."""

    def __init__(self, cluster: ClusterSettings, *, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._client: Any = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client = None
        self._open.close()

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers; a worker has its own environment.

        Raises:
            ClusterError: the scheduler or all workers are gone, or a part takes too long.
            ConfigurationError: a worker has another release of recon.
        """
        _ = needs
        client = self._connected()
        in_hand_max = IN_HAND_FOR_EACH * max(1, sum(client.ncores().values()))
        in_hand: deque[Any] = deque()
        try:
            for item in items:
                if len(in_hand) >= in_hand_max:
                    yield self._result(in_hand.popleft())
                in_hand.append(self._handed_out(work, item))
            while in_hand:
                yield self._result(in_hand.popleft())
        finally:
            if in_hand and client.status == "running":
                client.cancel([*in_hand], force=True)

    @property
    def helps(self) -> bool:
        """See Workers."""
        return self._cluster.compared_at_once > 1

    def in_words(self) -> str:
        """Who is there, in words.

        Raises:
            ClusterError: nobody is.
        """
        client = self._connected()
        (done,) = self.each(_release, [""])
        threads = client.ncores()
        return f"{len(threads)} workers, {sum(threads.values())} threads, recon {done}"

    def _connected(self) -> Any:
        if self._client is None:
            with _said_plainly(self._cluster):
                self._client = self._open.enter_context(self._connect())
                self._client.wait_for_workers(1, timeout=self._cluster.connect_seconds)
        return self._client

    def _handed_out(self, work: Callable[[Any], Any], item: object) -> Any:
        with _said_plainly(self._cluster):
            return self._client.submit(
                done_by, work, item, release=__version__, pure=False, retries=RETRIES
            )

    def _result(self, future: Any) -> Any:
        with _said_plainly(self._cluster):
            try:
                return future.result(timeout=self._cluster.result_seconds)
            finally:
                future.release()


def done_by(work: Callable[[Item], Done], item: Item, *, release: str) -> Done:
    """What a worker does: the part, under the release that handed it out."""
    if release != __version__:
        msg = (
            f"a worker has recon {__version__}, the night is of recon {release}; install the same "
            "release on all workers, then start the night again"
        )
        raise ConfigurationError(msg)
    _made_ready()
    return work(item)


@cache
def _made_ready() -> None:
    """Once for a worker, whoever started it."""
    collect_seldom()
    keep_freed()


def _release(_: str) -> str:
    return __version__


@contextmanager
def connected(cluster: ClusterSettings, *, variables: Mapping[str, str]) -> Iterator[Any]:
    """A client of the configured cluster; one that is `local` ends with the block."""
    distributed = imported()
    with ExitStack() as open_now:
        kinds = client_options(cluster)
        if cluster.address == LOCAL:
            import dask

            options = local_options(cluster, variables=variables)
            with dask.config.set(NO_PAGES | NO_PROFILE):
                started = open_now.enter_context(distributed.LocalCluster(**options))
            yield open_now.enter_context(distributed.Client(started, **kinds))
            return
        yield open_now.enter_context(distributed.Client(cluster.address, **kinds))


def imported() -> Any:
    """The library, quiet: what it has to say of a lost worker is said by us.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import distributed
    except ImportError:
        msg = (
            "cluster.toml names an address, but Dask is not installed: install recon with its "
            "extra `cluster` (`uv pip install 'recon[cluster]'`), or leave the address out"
        )
        raise ConfigurationError(msg) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


def client_options(cluster: ClusterSettings) -> dict[str, Any]:
    """How a client connects.

    Raises:
        ConfigurationError: others can read the key file, or it is not there.
    """
    options: dict[str, Any] = {"timeout": cluster.connect_seconds, "set_as_default": False}
    if cluster.address == LOCAL:
        return options
    if cluster.key_file is not None:
        key_of_file(cluster.key_file)
    files = {
        "tls_ca_file": str(cluster.ca_file),
        "tls_client_cert": str(cluster.certificate_file),
        "tls_client_key": str(cluster.key_file),
    }
    return options | {"security": imported().Security(require_encryption=True, **files)}


def local_options(cluster: ClusterSettings, *, variables: Mapping[str, str]) -> dict[str, Any]:
    """How processes of this machine are started: TLS here too, for others may use the machine."""
    return {
        "n_workers": cluster.local_workers,
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "protocol": "tls://",
        "security": imported().Security.temporary(),
        "dashboard_address": "127.0.0.1:0",  # a port that is free, and NO_PAGES on it
        "memory_limit": 0,  # nothing is laid aside on a disk
        "silence_logs": logging.CRITICAL,
        "env": {
            name: "" if name in NOT_FOR_WORKERS else value
            for name, value in variables.items()
            if name.startswith(OWN_PREFIX)
        },
    }


@contextmanager
def _said_plainly(cluster: ClusterSettings) -> Iterator[None]:
    """What Dask raises, as sentences of ours."""
    kept = "what was done before is kept: start the night again, or leave `address` out"
    try:
        yield
    except ReconError:
        raise
    except TimeoutError as error:
        msg = (
            f"no worker of {cluster.address} (cluster.toml) was there within "
            f"{cluster.connect_seconds:g} s, or finished a part within "
            f"{cluster.result_seconds:g} s; {kept}"
        )
        raise ClusterError(msg) from error
    except (OSError, CancelledError) as error:
        raise _gone(cluster, kept=kept) from error
    except Exception as error:
        if type(error).__name__ == "ClosedClientError":
            raise _gone(cluster, kept=kept) from error
        if type(error).__name__ != "KilledWorker":
            raise
        msg = (
            f"several workers of {cluster.address} (cluster.toml) died over one part, perhaps for "
            f"want of memory; {kept}"
        )
        raise ClusterError(msg) from None


def _gone(cluster: ClusterSettings, *, kept: str) -> ClusterError:
    return ClusterError(f"the scheduler {cluster.address} (cluster.toml) does not answer; {kept}")
