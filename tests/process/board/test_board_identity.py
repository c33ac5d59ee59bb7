# SPDX-License-Identifier: GPL-2.0-or-later
"""One machine behind two addresses and two users is one board of the store, the website and the advice.

The machine is a real SSH server in mounts of its own, with another boot ID and network hardware than the bench.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.analysis import grouped
from fastenough.campaign import Entry, Plan, run_campaign
from fastenough.history import OWNER, History, board_statuses, catch_up
from fastenough.jobs.advise import AdviceRequest, advise_by_runs
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.model import Requirement
from fastenough.store import Store
from tests.support.privileges import own_mounts
from tests.support.ssh_boards import NAME, Server, ssh_server

pytestmark = pytest.mark.machines

OTHER = "ssh://other"
BOOT_ID = "11111111-2222-4333-8444-555555555555\n"


def _network(place: Path, address: str) -> Path:
    """A stand-in for /sys/class/net with one interface of a device."""
    device = place / "eth0/device"
    device.mkdir(parents=True)
    (device / "uevent").write_text("DRIVER=igb\nMODALIAS=pci:v00008086\n")
    (place / "eth0/address").write_text(f"{address}\n")
    (place / "eth0/addr_assign_type").write_text("0\n")
    return place


@contextmanager
def _machine(place: Path, address: str) -> Iterator[Server]:
    """A machine whose only network interface has this MAC address, at NAME and at OTHER."""
    place.mkdir(mode=0o755)
    (place / "boot_id").write_text(BOOT_ID)
    mounts = (
        f"mount --bind {place}/boot_id /proc/sys/kernel/random/boot_id && "
        f'mount --bind {_network(place / "net", address)} /sys/class/net && exec "$@"'
    )
    with ssh_server(prefix=[*own_mounts(), "sh", "-c", mounts, "sh"]) as server:
        config = server.config.read_text()
        server.config.write_text(config + config.replace("Host board", "Host other"))
        yield server


def _run(board: str, store: Store) -> list[str]:
    """Measure once; return the printed lines."""
    entry = Entry("timer", ("none",), 0.3, {"interval": ("5ms",), "allow-difference": (True,)}, warm_up_s=0.0)
    lines: list[str] = []
    run_campaign(Plan("test", (entry,), boards=(board,)), store, journal=store.path / "journal", tell=lines.append)
    return lines


@pytest.mark.slow
def test_one_machine_is_one_board_and_a_clone_is_not_merged_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/etc/machine-id").is_file():
        pytest.skip("this machine has no machine ID")
    tmp_path.chmod(0o755)
    store = Store(tmp_path / "store")
    with _machine(tmp_path / "one", "00:1b:21:3c:4d:5e") as server:
        monkeypatch.setenv(CONFIG_SETTING, str(server.config))
        said = [line for board in ("ssh://root@board", OTHER) for line in _run(board, store)]
    assert "another machine" not in "".join(said)
    recordings = [store.load(run.id) for run in store.runs()]
    heads = [recording.head for recording in recordings]
    assert [head.board for head in heads] == [NAME] * 2
    assert [head.address for head in heads] == [NAME, OTHER]
    assert heads[0].machine == heads[1].machine != frozenset()

    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    assert not catch_up(history, store).faults
    assert [each.board.name for each in board_statuses(history, OWNER, 0)] == [NAME]
    wanted = AdviceRequest(Requirement(10**10), "timer")
    assert f"2 runs of timer on {NAME}" in advise_by_runs(recordings, wanted, store).basis

    with _machine(tmp_path / "clone", "00:1b:21:3c:4d:5f") as server:
        monkeypatch.setenv(CONFIG_SETTING, str(server.config))
        assert "another machine" in "".join(_run(NAME, store))
    clone = store.load(store.runs(last=1)[0].id)
    assert clone.head.board == NAME and not clone.head.machine & heads[0].machine
    assert [clone] in grouped([*recordings, clone])
