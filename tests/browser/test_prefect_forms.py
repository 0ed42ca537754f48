"""Prefect's own pages in a real browser, on what `make serve` starts: campaign `prefect-forms`.

A night by its form, its refunds approved by two people with codes, the night that sends them, the
workbook found from its artifact, and a doubt decided by the message that stands beside it.
Pictures of it are left in out/pages.
"""

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as NothingHappenedError

from flows import serve
from flows.serve import auth_of, free_port
from tests.flows.prefect_api import REPLY_SECONDS_MAX, prefect_api
from tests.recon.steps.demo_people import (
    CODE_LIVES,
    PEOPLE,
    declare_people,
    message_beside,
    phone_of,
    refund_reported,
)

PICTURES = Path(__file__).parents[2] / "out" / "pages"
NIGHT = "100042-100042001"
RUN_SECONDS_MAX = 900
"""A worker starts an interpreter with all of Prefect for each run, on a machine at other work."""
PAGE_MILLISECONDS = 180_000
SHOWN = {
    "summary": "what it did",
    "totals": "what must be equal",
    "breaks": "effect on ledger",
}
"""Kind of artifact -> a column of its table, which no other page shows."""
HAND_MILLISECONDS = 1_000
PRESSES_MAX = 4
OPENED = re.compile(r"/artifacts/artifact/")
"""Where an artifact's own page lies; the list of a key shows some of its words, too."""
TOAST_MILLISECONDS = 1_000
"""How long a message takes to slide in, where a picture is to show it."""
SUBMITTED = re.compile(r"tab=Runs$")
"""Where a form leads that made a run."""
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}


@dataclass
class Desk:
    """Prefect's pages of one machine, and what lies behind them."""

    folder: Path
    url: str
    page: Page
    api: httpx.Client
    """Of Prefect's server; one for all that is asked of it, with one token."""

    def form(self, name, **given):
        """The form of a deployment; `given` as a link to it would have it."""
        link = f"{self.url}/deployments/deployment/{self.deployment(name)}/run"
        self.page.goto(f"{link}?parameters={quote(json.dumps(given))}")
        self.page.get_by_role("button", name="Submit").wait_for()
        return self.page

    def field(self, name):
        """The part of a form that asks for one parameter."""
        title = self.page.get_by_text(re.compile(rf"^{name}( |$)"))
        return self.page.locator(".p-label", has=title).last

    def choose(self, name, word):
        """Open a list by the keyboard and take a word of it."""
        self.field(name).locator(".p-label__body button").first.focus()
        self.page.keyboard.press("ArrowDown")
        options = self.page.locator("[role=option], .p-select-option")
        options.get_by_text(word, exact=True).click()
        # While the list folds up it takes what is clicked next.
        options.first.wait_for(state="hidden")
        self.field(name).get_by_text(word, exact=True).first.wait_for()

    def tick(self, name, words):
        """Tick the first box of a list that begins or goes on so; what it says."""
        self.field(name).locator(".p-label__body button").first.focus()
        self.page.keyboard.press("ArrowDown")
        box = self.page.locator("[role=option], .p-select-option").filter(has_text=words).first
        said = box.inner_text().strip()
        box.click()
        self.picture(f"boxes-{name}")
        self.page.keyboard.press("Escape")
        return said

    def write(self, name, text):
        """Type into a field."""
        self.field(name).locator("textarea, input").first.fill(text)

    def submitted(self, name, *, follow=False):
        """The run that pressing Submit made, when it has ended; `follow` looks on meanwhile."""
        before = {run["id"] for run in self.runs(name)}
        self._pressed(name, before=before)
        give_up_at = time.monotonic() + RUN_SECONDS_MAX
        while time.monotonic() < give_up_at:
            for run in self.runs(name):
                if run["id"] not in before and run["state"]["type"] in ENDED:
                    return run
                if run["id"] not in before and follow:
                    self.page.goto(f"{self.url}/runs/flow-run/{run['id']}")
                    # The worker starts an interpreter first, and the machine may do other work.
                    first = self.page.get_by_text("ingest", exact=True).first
                    first.wait_for(timeout=RUN_SECONDS_MAX * 1_000)
                    self.picture("progress")
                    follow = False
            time.sleep(1)
        pytest.fail(f"the run of {name} did not end in {RUN_SECONDS_MAX} s")

    def _pressed(self, name, *, before):
        """Press Submit, and once more where the page takes no notice, as a person would.

        A form of Prefect that is submitted in the blink of a change waits for ever.
        """
        for _ in range(PRESSES_MAX):
            self.page.wait_for_timeout(HAND_MILLISECONDS)
            self.page.get_by_role("button", name="Submit").click()
            try:
                self.page.wait_for_url(SUBMITTED, timeout=PAGE_MILLISECONDS / PRESSES_MAX)
            except NothingHappenedError:
                if {run["id"] for run in self.runs(name)} - before:
                    return
            else:
                return
        pytest.fail(f"the form of {name} took no notice of Submit")

    def refused(self, name, words, **given):
        """Submit a form with a wrong value and wait for the words beside it; the runs there are."""
        self.form(name, **given)
        self.page.get_by_role("button", name="Submit").click()
        self.page.get_by_text(re.compile(words)).first.wait_for()
        self.page.wait_for_timeout(TOAST_MILLISECONDS)
        self.picture("refused")
        return [run["id"] for run in self.runs(name)]

    def decided(self, name, given, *, choice, by, tries=4):
        """The run of a form by which a person decides something.

        A code lives for about a minute, and the worker takes its time to start: it is the one that
        the phone shows then. Where it took longer still, a new one is given.
        """
        self.form(name)
        self.choose(*choice)
        for field, text in given.items():
            self.write(field, text)
        self.write("name", by)
        self.page.get_by_role("button", name="password", exact=True).click()
        self.write("code", phone_of(self.folder / "demo", by, ahead=CODE_LIVES))
        self.picture(f"{name}-{by}")
        ended = self.submitted(name)
        words = ended["state"]["message"]
        late = ("not right" in words or "used before" in words) and tries > 1
        if not late:
            return ended
        return self.decided(name, given, choice=choice, by=by, tries=tries - 1)

    def approved_by_both(self, digest):
        """The first person's yes, what had moved after it, and the second person's yes."""
        given = {"list_digest": digest}
        noted = self.decided("approve", given, choice=("decision", "approve"), by="anna")
        moved = (self.moved("refund"), self.moved("capture"))
        return (
            noted,
            moved,
            self.decided("approve", given, choice=("decision", "approve"), by="ben"),
        )

    def shown_doubt(self):
        """Let the gateway tell of a refund in doubt; its id and the message, as the page has them.

        The page is what `show` left; whoever decides has nothing else.
        """
        doubt = refund_reported(serve.read_env(self.folder / "demo" / ".env"))
        self.form("resolve")
        self.submitted("resolve")
        self.page.goto(f"{self.url}/artifacts/key/doubts")
        self.page.locator('a[href^="/artifacts/artifact/"]').first.click()
        line = self.page.get_by_role("listitem").filter(has_text=doubt.instruction_id)
        line.wait_for()
        self.picture("doubts")
        shown = " ".join(line.inner_text().split())
        return doubt.instruction_id, message_beside(doubt, shown=shown)

    def doubt_decided(self):
        """How it ended when each person said that a refund in doubt was carried out."""
        instruction, message = self.shown_doubt()
        said = {"instruction": instruction, "evidence": "the portal shows it", "message": message}
        applied = ("verdict", "applied")
        return [self.decided("resolve", said, choice=applied, by=by)["state"] for by in PEOPLE]

    def fault(self, *rules):
        """Replace the gateway's fault plan."""
        address = serve.read_env(self.folder / "demo" / ".env")["RECON_GATEWAY_BASE_URL"]
        faults = f"{address}/_sandbox/faults"
        httpx.post(faults, json={"rules": rules}, timeout=REPLY_SECONDS_MAX).raise_for_status()

    def artifact(self, key, *, words, picture):
        """Open the newest artifact of a key, and wait until it shows some words."""
        self.page.goto(f"{self.url}/artifacts/key/{key}")
        self.page.locator('a[href^="/artifacts/artifact/"]').first.click()
        self.page.wait_for_url(OPENED)
        self.page.get_by_text("Flow Run", exact=True).first.wait_for()
        self.page.get_by_text(words).first.wait_for()
        self.picture(picture)

    def workbook(self):
        """The workbook that the newest artifact names; all other artifacts are opened first."""
        for kind, words in SHOWN.items():
            self.artifact(f"{kind}-100042001", words=words, picture=kind)
        self.artifact("workbook-100042001", words="reconciliation-", picture="workbook")
        named = re.compile(r"reconciliation-[\w-]+\.xlsx")
        shown = self.page.get_by_text(named).first.inner_text()
        return self.folder / "demo" / "reports" / named.findall(shown)[0]

    def deployment(self, name):
        """The id of a deployment."""
        found = self._asked("deployments/filter", {})
        return next(str(one["id"]) for one in found if one["name"] == name)

    def runs(self, name):
        """The newest runs of a deployment that somebody started."""
        wanted = {"deployments": {"id": {"any_": [self.deployment(name)]}}, "limit": 50}
        found = self._asked("flow_runs/filter", wanted | {"sort": "START_TIME_DESC"})
        return [run for run in found if not run["auto_scheduled"]]

    def moved(self, kind):
        """How often the gateway did something for us."""
        address = serve.read_env(self.folder / "demo" / ".env")["RECON_GATEWAY_BASE_URL"]
        reply = httpx.get(f"{address}/_sandbox/effects", timeout=REPLY_SECONDS_MAX)
        done = [json.loads(line) for line in reply.raise_for_status().text.splitlines()]
        return sum(one["origin"] == "api" and one["operation"] == kind for one in done)

    def picture(self, name):
        """Keep what the page looks like."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"prefect-{name}.png")

    def _asked(self, path, wanted):
        found: list[dict[str, Any]] = self.api.post(path, json=wanted).raise_for_status().json()
        return found

    def sign_in(self):
        """Give the password that `make serve` has printed."""
        self.page.goto(self.url)
        self.page.get_by_placeholder("admin:pass").fill(auth_of(self.folder / "prefect"))
        self.page.get_by_role("button", name="Login").click()
        self.page.get_by_role("button", name="Login").wait_for(state="hidden")


@pytest.fixture
def desk(chromium, tmp_path):
    """All programs of one machine, and a window on Prefect's pages."""
    port = free_port()
    folder, command = tmp_path / "serve", [sys.executable, "-m", "flows.serve"]
    try:
        subprocess.run([*command, "start", "--dir", folder, "--port", str(port)], check=True)
        declare_people(folder / "demo")
        page = chromium.new_page(viewport={"width": 1300, "height": 1100})
        page.set_default_timeout(PAGE_MILLISECONDS)
        url = f"http://127.0.0.1:{port}"
        with prefect_api(f"{url}/api", auth=auth_of(folder / "prefect")) as api:
            found = Desk(folder, url, page, api)
            found.sign_in()
            yield found
    finally:
        subprocess.run([*command, "stop", "--dir", folder], check=True)


@pytest.mark.flow
@pytest.mark.timeout(5_400)
def test_refunds_are_approved_by_two_people_and_the_workbook_is_found(desk):
    """A wrong value starts no run; nothing moves before the second person's code, then it does.

    The night is followed while it works, its artifacts are opened, its workbook found. A refund
    whose reply was lost is then decided by both, by the message that the page shows beside it.
    """
    place = {"merchant_id": "100042", "account_id": "100042001", "business_date": "2026-11-20"}
    none = desk.refused(NIGHT, "does not match", **place | {"account_id": "1; drop"})
    desk.form(NIGHT, **place)
    desk.choose("mode", "live")
    first = desk.submitted(NIGHT, follow=True)
    desk.form("approve")
    shown = desk.submitted("approve")
    digest = re.search(r"list ([0-9a-f]{16})", shown["state"]["message"])
    assert digest is not None, shown["state"]["message"]
    desk.artifact("approvals", words=digest[1], picture="approvals")
    desk.form("approve")
    desk.tick("kinds", "cancel")
    cancels = desk.submitted("approve")
    desk.form("approve")
    boxed = desk.tick("instructions", " refund ")
    one = desk.submitted("approve")
    noted, moved_before, approved = desk.approved_by_both(digest[1])
    assert (noted["state"]["name"], approved["state"]["name"]) == ("Noted", "Approved"), (
        noted["state"],
        approved["state"],
    )
    desk.fault({"operation": "refund", "kind": "fin", "when": "after", "nth": 1})
    desk.form(NIGHT, **place)
    desk.choose("mode", "live")
    second = desk.submitted(NIGHT)
    desk.page.goto(f"{desk.url}/runs")
    desk.page.get_by_text(second["name"]).first.wait_for()
    desk.picture("runs")
    workbook = desk.workbook()
    words = desk.doubt_decided()

    assert none == []
    waiting = [int(re.findall("[0-9]+", run["state"]["message"])[0]) for run in (shown, cancels)]
    assert 0 < waiting[1] < waiting[0]
    assert f"{waiting[0] - waiting[1]} more are not ticked." in cancels["state"]["message"]
    assert one["state"]["message"].startswith(f"Waits: 1 instructions, {boxed.split()[2]} ")
    assert (first["state"]["name"], second["state"]["name"]) == ("BREAKS OPEN", "MONEY IN DOUBT")
    assert " live · MONEY IN DOUBT" in second["name"]
    assert moved_before == (0, 0)
    assert desk.moved("refund") > 0
    assert workbook.is_file()
    assert [one["name"] for one in words] == ["Noted", "Decided"], words
    assert words[1]["message"].endswith(", applied.")
