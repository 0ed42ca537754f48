"""A real Chromium on real pages of a sandbox gateway; skipped with a reason where there is none."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import Caller

collect_ignore = [] if os.environ.get("PREFECT_FORMS") else ["test_prefect_forms.py"]
"""It starts a server, a worker and some interpreters: campaign `prefect-forms` only."""

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGE_MILLISECONDS = 15_000
"""How long a page may take on a machine that does other work."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of pages share one worker."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a module; its event loop must not outlive them."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Screen:
    """One window, and what it complained of or asked of other hosts."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@pytest.fixture
def window(chromium: Browser) -> Iterator[Any]:
    """A maker of windows, with or without JavaScript; a page that complains fails the test."""
    screens: list[Screen] = []

    def opened(*, scripts: bool = True) -> Screen:
        context = chromium.new_context(java_script_enabled=scripts, viewport=VIEWPORT)
        context.set_default_timeout(PAGE_MILLISECONDS)
        screen = Screen(context.new_page())
        screen.page.on("pageerror", lambda error: screen.complaints.append(str(error)))
        screen.page.on("request", lambda asked: screen.hosts.add(asked.url.split("/")[2]))
        screens.append(screen)
        return screen

    yield opened
    for screen in screens:
        screen.page.context.close()
        assert screen.complaints == []
        assert all(host.startswith("127.0.0.1:") for host in screen.hosts), screen.hosts


VIEWPORT: Any = {"width": 1200, "height": 900}


@pytest.fixture
def gateway() -> Iterator[Any]:
    """A client of a sandbox that nobody else uses."""
    with serving(SandboxOptions(orders=200)) as sandbox:
        caller = Caller(sandbox.base_url)
        with caller.http:
            yield caller
