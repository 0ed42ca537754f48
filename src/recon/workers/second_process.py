"""One piece of work in a second process of this machine, while the night's own does another.

It is begun for the piece and ends with it. Its environment holds what Python needs, what the night
says that the piece needs, and nothing else of ours: no key, no password, no database.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from recon.config.cluster import Done, InProcess, Item
from recon.model.errors import ClusterError, ReconError
from recon.model.freed_memory import pool_of
from recon.privacy.own_programs import WITHOUT_PLUGINS, program_variables

ATTEMPTS = 3
"""So often a piece is begun whose process was ended from outside."""
START = (
    "from recon.model.collecting import collect_seldom; collect_seldom(); "
    f"from {__name__} import answer; answer()"
)
KEPT = (
    "what was done before is kept: start the night again, with `compare_beside = false` in "
    "cluster.toml where this comes again"
)


@dataclass(frozen=True, slots=True)
class WithSecondProcess(InProcess):
    """This process does every part; a second one does what may be done beside it."""

    helps: bool = True
    variables: Mapping[str, str] | None = None
    """Of the night; None: those of this process."""
    seconds_max: float = 900

    @contextmanager
    def meanwhile(
        self, work: Callable[[Item], Done], item: Item, *, needs: Collection[str] = ()
    ) -> Iterator[Callable[[], Done]]:
        """See Workers."""
        given = os.environ if self.variables is None else self.variables
        variables = program_variables(os.environ) | {
            name: given[name] for name in needs if name in given
        }
        piece = _Piece(work, item, variables=variables, seconds_max=self.seconds_max)
        try:
            yield piece.done
        finally:
            piece.let_go()


class _Piece(Generic[Item, Done]):
    """A piece of work in hand."""

    def __init__(
        self,
        work: Callable[[Item], Done],
        item: Item,
        *,
        variables: Mapping[str, str],
        seconds_max: float,
    ) -> None:
        self._task = pickle.dumps((work, item))
        self._variables = variables
        self._seconds_max = seconds_max
        self._process = self._begun()

    def done(self) -> Done:
        """What came of it.

        Raises:
            ReconError: what the work itself raises.
            ClusterError: its process was ended from outside each time, or takes too long.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                self._process = self._begun()
            if (answered := self._answered()) is not None:
                return answered[0]
        msg = (
            f"the second process of the comparison was ended from outside {ATTEMPTS} times, "
            f"perhaps for want of memory; {KEPT}"
        )
        raise ClusterError(msg)

    def let_go(self) -> None:
        """End its process, if it is not over."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(ValueError):  # what it says is read already
            self._process.communicate()

    def _answered(self) -> tuple[Done] | None:
        """What came of it; None when its process was ended from outside."""
        try:
            content, _ = self._process.communicate(timeout=self._seconds_max)
        except subprocess.TimeoutExpired:
            msg = (
                f"the second process of the comparison did not end within {self._seconds_max:g} s "
                f"(result_seconds in cluster.toml); {KEPT}"
            )
            raise ClusterError(msg) from None
        if self._process.returncode:
            return None
        done, error = pickle.loads(content)  # noqa: S301 - of the process that was started here
        if error is not None:
            raise error
        return (done,)

    def _begun(self) -> "subprocess.Popen[bytes]":
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with tempfile.TemporaryFile() as task:
            task.write(self._task)
            task.seek(0)
            return subprocess.Popen(  # noqa: S603 - this very Python, our own module
                [sys.executable, "-P", "-c", START],
                env={**self._variables, **pool_of(self._variables), **WITHOUT_PLUGINS, **path},
                stdin=task,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )


def answer() -> None:
    """In the second process: do the piece that it was begun for, and say what came of it."""
    reply = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing that a library prints stands in the answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    done: Any = None
    problem: ReconError | None = None
    try:
        work, item = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this
        done = work(item)
    except ReconError as error:
        problem = error
    except Exception as error:  # noqa: BLE001 - there is nobody above
        problem = ClusterError(f"the second process of the comparison met {_where(error)}; {KEPT}")
    with reply:
        pickle.dump((done, problem), reply)


def _where(error: Exception) -> str:
    """The kind of an error and where it rose; never its words, which may quote a file."""
    step = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(step.filename).name}:{step.lineno}"
