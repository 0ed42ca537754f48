"""What a query of 100 orders costs the client, and how many orders the sandbox answers.

`make bench NAME=gateway`. Loopback only, a few seconds for each figure. Each contender runs in a
process of its own; rounds are interleaved, so that other work on the machine hits all alike. Judge
by CPU and its ratio: wall time on a shared machine says little. The peers, aiohttp and orjson, are
no dependencies of recon: uv fetches them into an environment of their own, and without them the
figures of recon stand alone.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from peers import peer_command

HERE = Path(__file__).parent
ROOT = HERE.parent
IN_FLIGHT = (8, 32, 128)
SECONDS_MAX = 240
PEERS = ("aiohttp", "orjson")
LATENCY_MILLISECONDS = 5
SANDBOX_ORDERS = 2_000

Figures = dict[str, float]


@contextmanager
def serving(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and the first line it printed."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            yield process, (process.stdout.readline().strip() if process.stdout else "")
        finally:
            process.terminate()


def measured(command: list[str], *arguments: str) -> Figures | None:
    """Wall and CPU seconds of a contender, None when it cannot run here."""
    script = str(HERE / "gateway_contenders.py")
    ran = subprocess.run(  # noqa: S603 - our own script
        [*command, script, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=ROOT,
    )
    if ran.returncode:
        print(f"{arguments[0]}: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def compare(*, calls: int, repeats: int) -> None:
    """Print CPU per call of each contender at each number of calls in flight."""
    commands = {"ours": [sys.executable]}
    peers = peer_command(PEERS, imports=PEERS, seconds_max=SECONDS_MAX)
    if peers:
        commands["aiohttp"] = peers
    print(f"Client CPU per call of 100 orders: {calls} calls, {LATENCY_MILLISECONDS} ms latency,")
    print(f"median (least to most) of {repeats} rounds.")
    print(f"{'in flight':>9} {'recon us':>22} {'aiohttp+orjson us':>22} {'ratio':>6}")
    stand_in = (sys.executable, str(HERE / "gateway_stand_in.py"), str(LATENCY_MILLISECONDS))
    with serving(*stand_in) as (_, port):
        for in_flight in IN_FLIGHT:
            rounds: dict[str, list[float]] = {name: [] for name in commands}
            for _ in range(repeats):
                for name, command in commands.items():
                    url = f"http://127.0.0.1:{port}"
                    figures = measured(command, name, url, str(calls), str(in_flight))
                    if figures:
                        rounds[name].append(1e6 * figures["cpu"] / calls)
            print(row(in_flight, rounds))


def row(in_flight: int, rounds: dict[str, list[float]]) -> str:
    """One line of the comparison."""
    ours, peer = rounds["ours"], rounds.get("aiohttp", [])
    ratio = f"{statistics.median(ours) / statistics.median(peer):.2f}" if ours and peer else "-"
    return f"{in_flight:>9} {spread(ours):>22} {spread(peer):>22} {ratio:>6}"


def spread(values: list[float]) -> str:
    """Median, least and most."""
    if not values:
        return "-"
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def sandbox_pace(*, calls: int, repeats: int) -> None:
    """Print how many orders the sandbox answers for each second of its own CPU."""
    paces: list[float] = []
    command = (str(Path(sys.executable).with_name("recon")), "sandbox")
    with serving(*command, "--orders", str(SANDBOX_ORDERS)) as (process, url):
        watched = psutil.Process(process.pid)
        orders = known_orders(url)
        for _ in range(repeats):
            before, wall = cpu_of(watched), time.perf_counter()
            ask(url, orders, calls=calls)
            wall = time.perf_counter() - wall
            paces.append(100 * calls / (cpu_of(watched) - before))
    shown = f"{statistics.median(paces):,.0f} ({min(paces):,.0f} to {max(paces):,.0f})"
    print(f"\nSandbox: {shown} orders answered per second of one core, in groups of 100")
    print(f"({calls} calls a round over one connection; the last round took {wall:.1f} s of wall).")


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def known_orders(url: str) -> list[str]:
    """A hundred orders of the default account."""
    with urllib.request.urlopen(f"{url}/_sandbox/effects") as reply:  # noqa: S310 - loopback
        effects = [json.loads(line) for line in reply]
    numbers = [line["order_no"] for line in effects if line["account_id"] == "100042001"]
    return list(dict.fromkeys(numbers))[:100]


def ask(url: str, orders: list[str], *, calls: int) -> None:
    """Ask for the same hundred orders so many times over one connection."""
    import http.client

    from gateway_contenders import body_of

    body, _ = body_of(orders)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    for _ in range(calls):
        connection.request("POST", "/v1/retrievalTrans", body=body, headers=headers)
        reply = json.loads(connection.getresponse().read())
        if len(reply["orders_list"]) != len(orders):
            raise SystemExit(reply["return_message"])
    connection.close()


def main() -> None:
    """Both figures."""
    options = argparse.ArgumentParser(description="The gateway's client and the sandbox, measured.")
    options.add_argument("--calls", type=int, default=400, help="calls of each round")
    options.add_argument("--repeats", type=int, default=3, help="rounds of each figure")
    given = options.parse_args()
    compare(calls=given.calls, repeats=given.repeats)
    sandbox_pace(calls=given.calls, repeats=given.repeats)


if __name__ == "__main__":
    main()
