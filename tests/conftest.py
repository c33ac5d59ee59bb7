# SPDX-License-Identifier: GPL-2.0-or-later
"""What every test may use: a state directory of its own, and the real probe.

Every process of pytest reads this file: what imports a server, a database or a board's link is imported by the fixture
that needs it.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from fastenough.link import find_probe
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.model import NotApplicable
from fastenough.settings import STATE_SETTING
from tests.support.gauge_simulation import Build, RealtimeGauge, realtime_gauge
from tests.support.huge_pages import HUGE_PAGES, only_user
from tests.support.privileges import SkippedForRoot
from tests.support.ssh_boards import Server, ssh_server
from tests.support.tier_files import FOLDER_TIERS
from tests.support.tools import ROOT, build, configure, program, require

if TYPE_CHECKING:
    from tests.support.farm_data import FarmData
    from tests.support.labgrid_lab import Lab
    from tests.support.websites import Served

TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its tier."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        own = {mark.name for mark in item.iter_markers()} & {*FOLDER_TIERS.values()}
        if len(own) > 1:
            raise pytest.UsageError(f"{item.nodeid} is marked {' and '.join(sorted(own))}; one tier is enough")
        if not own:
            item.add_marker(FOLDER_TIERS[folder])


def pytest_configure(config: pytest.Config) -> None:
    """A runner started in the background ignores these signals, and so would all that is interrupted here.

    An example of hypothesis may take as long as a busy machine takes for it.
    """
    hypothesis.settings.register_profile("whatever it takes", deadline=None)
    hypothesis.settings.load_profile("whatever it takes")
    config.pluginmanager.register(SkippedForRoot())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Thousands of modules and tests are made and none is dropped: looking for garbage takes a fifth of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> FarmData:
    """The store of a small farm, only to be read."""
    farm_data = import_module("tests.support.farm_data")
    made: FarmData = farm_data.make_store(tmp_path_factory.mktemp("farm"), boards=5, days=1, cpus=2)
    return made


@pytest.fixture(scope="session")
def website(farm: FarmData, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Its pages as the public sees them, only to be read."""
    websites = import_module("tests.support.websites")
    with websites.serving(websites.site_of(farm, tmp_path_factory.mktemp("website")), farm) as served:
        yield served


@pytest.fixture(scope="session", autouse=True)
def state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Journals of this session; commands started by tests inherit the setting."""
    directory = tmp_path_factory.mktemp("state")
    before = os.environ.get(STATE_SETTING)
    os.environ[STATE_SETTING] = str(directory)
    yield directory
    if before is None:
        del os.environ[STATE_SETTING]
    else:
        os.environ[STATE_SETTING] = before


@pytest.fixture
def huge_pages() -> Iterator[None]:
    """The machine's setting for huge pages, for this test alone; it has to be as before at the test's end."""
    if not HUGE_PAGES.exists():
        pytest.skip("no transparent huge pages")
    with only_user():
        yield


@pytest.fixture
def lasting_facts() -> Iterator[None]:
    """No test that runs beside this one changes a fact of the machine that is in the hash of a profile."""
    with only_user() if HUGE_PAGES.exists() else nullcontext():
        yield


@pytest.fixture(scope="session")
def build_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configured build that this user may add to: the checkout's, or one made now."""
    checkout = ROOT / "build"
    if (checkout / "build.ninja").is_file() and os.access(checkout / "build.ninja", os.W_OK):
        return checkout
    made = tmp_path_factory.mktemp("build")
    configure(made)
    return made


@pytest.fixture(scope="session")
def probe_binary(build_directory: Path) -> str:
    """The probe that is built, or one built now."""
    try:
        return find_probe()
    except NotApplicable:
        return str(program(build_directory, "target/probe/fastenough-probe"))


@pytest.fixture(scope="session")
def monitor_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The monitor that is built, or one built now."""
    program_path: Path = import_module("tests.support.monitored").build_monitor(tmp_path_factory.mktemp("build"))
    return program_path


@pytest.fixture(scope="session")
def inject_binary(build_directory: Path) -> Path:
    """What the monitor is calibrated with."""
    return program(build_directory, "target/monitor/inject/fastenough-inject")


@pytest.fixture(scope="session")
def sleeper_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A periodic task that is nobody's probe: see monitored.py."""
    program_path: Path = import_module("tests.support.monitored").build_sleeper(tmp_path_factory.mktemp("sleeper"))
    return program_path


@pytest.fixture(scope="session")
def gauge_build(build_directory: Path) -> Build:
    """The gauge's firmware and its simulation, as they are built or built now."""
    build(build_directory, "gauge")
    return Build(build_directory)


@pytest.fixture
def instrument(gauge_build: Build, tmp_path: Path) -> Iterator[RealtimeGauge]:
    """A simulated gauge at the pace of the wall clock."""
    with realtime_gauge(gauge_build, tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A board behind ssh."""
    require("ssh", "sshd", "ssh-keygen")
    with ssh_server() as one:
        yield one


@pytest.fixture
def at_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """This bench knows how that board lets it in."""
    monkeypatch.setenv(CONFIG_SETTING, str(server.config))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A labgrid whose places lead to that board."""
    with import_module("tests.support.labgrid_lab").running_lab(tmp_path_factory.mktemp("lab")) as one:
        yield one


@pytest.fixture
def at_lab(at_server: None, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """This bench uses that labgrid."""
    monkeypatch.setenv(import_module("fastenough.board.labgrid").COORDINATOR_SETTING, lab.coordinator)
