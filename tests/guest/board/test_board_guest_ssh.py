# SPDX-License-Identifier: GPL-2.0-or-later
"""A board of another architecture, with nothing but busybox and dropbear: a guest of the virtual bench, over ssh."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.board import AS_BOOTED, open_board
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.settings import Settings
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.packages import Apt, cache_lock
from fastenough.virtual.qemu import Qemu
from tests.support.cli_calls import command_line

pytestmark = pytest.mark.machines

_MODULES = ("failover", "net_failover", "virtio_net")
_CONFIG = """Host guest
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {place}/key
  IdentitiesOnly yes
  StrictHostKeyChecking accept-new
  UserKnownHostsFile {place}/known
"""
_SERVE = """
mkdir -p /root/.ssh /etc/dropbear /tmp /dev/pts && chmod 700 /root /root/.ssh
echo root:x:0:0:root:/root:/bin/sh >/etc/passwd
ifconfig lo up && ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up || exit 1
dropbear -R -s -p 22 || exit 1
echo serving
"""


def _unpacked() -> Path:
    """dropbear and what it is linked with, for the guest's architecture."""
    with cache_lock() as cache:
        tree = cache / "tree-dropbear"
        if not (tree / "usr" / "sbin" / "dropbear").exists():
            apt = Apt(cache / "apt", "arm64")
            apt.update()
            wanted, known = ["dropbear-bin"], set()
            while wanted:
                package = wanted.pop()
                known.add(package)
                needs = apt.depends(f"{package}:arm64")
                wanted += [name for name in needs if name.startswith(("lib", "zlib")) and name not in known]
            apt.unpack([f"{package}:arm64" for package in sorted(known)], tree)
        return tree


def _libraries(program: Path, tree: Path) -> dict[str, Path]:
    """Place in the guest to file: the program, its interpreter, and every library of the tree."""
    found = {path.name: path for path in tree.rglob("*.so*") if path.is_file()}
    return {"/bin/dropbear": program} | {
        f"/lib/{name}": path.resolve()
        for name, path in found.items()
        if path.stat().st_size < 4 << 20 and "gconv" not in path.parts
    }


def _insert(board: VirtualBoard, kernel: Kernel) -> None:
    for name in _MODULES:
        content = kernel.module(name)
        if content is not None:
            board.link.write(f"/tmp/{name}.ko", content)
            assert board.link.run(["insmod", f"/tmp/{name}.ko"], 30).status == 0


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualBoard]:
    """One that can be reached as ``ssh://guest``."""
    place = tmp_path_factory.mktemp("guest")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / "key")], check=True)
    (place / "config").write_text(_CONFIG.format(port=port, place=place))
    wiring = Qemu._wiring
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_SETTING, str(place / "config"))
        patch.setattr(
            Qemu,
            "_wiring",
            lambda self, machine: [
                *wiring(self, machine),
                "-netdev",
                f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
                "-device",
                "virtio-net-device,netdev=net",
            ],
        )
        with VirtualBoard("stock", snapshot=False) as board:
            _insert(board, board.kernel)
            tree = _unpacked()
            for path, file in _libraries(tree / "usr" / "sbin" / "dropbear", tree).items():
                board.link.write(path, file.read_bytes())
            board.link.run(["chmod", "755", "/bin/dropbear", "/lib/ld-linux-aarch64.so.1"])
            board.link.run(["mkdir", "-p", "/root/.ssh"])
            board.link.write("/root/.ssh/authorized_keys", (place / "key.pub").read_bytes())
            served = board.link.start(["sh", "-c", _SERVE + "exec sleep 100000"])
            assert next(served.lines(60)) == b"serving\n", served.stderr()
            yield board


def test_a_guest_over_ssh_measures_itself(guest: VirtualBoard) -> None:
    with open_board("ssh://guest").boot(AS_BOOTED) as booted:
        assert booted.configuration.kernel_release == guest.kernel.release
        assert booted.link.run(["uname", "-m"]).text == "aarch64\n"
        done = booted.link.run([booted.probe, "timer", "--interval=20ms", "--duration=1s", "--record=-"], 60)
        assert done.status == 0, done.stderr
        assert b'"type":"end"' in done.stdout.splitlines()[-1]
        assert b"fastenough-" not in booted.link.run(["ls", "-A", "/tmp", "/var/tmp", "/dev/shm"]).stdout
    assert b"exe agent" not in guest.link.run(["ps"]).stdout


def test_settings_are_made_and_put_back_over_ssh(guest: VirtualBoard, tmp_path: Path) -> None:
    place = "/proc/sys/kernel/sched_rt_runtime_us"
    before = guest.link.read(place)
    with open_board("ssh://guest").boot(AS_BOOTED) as booted:
        with Settings(booted.link, tmp_path / "journal") as settings:
            settings.apply("rt-throttling", -1)
            assert guest.link.read(place) == b"-1\n"
        assert guest.link.read(place) == before


def test_what_a_lost_link_left_changed_is_put_back_by_the_next(guest: VirtualBoard, tmp_path: Path) -> None:
    place = "/proc/sys/kernel/sched_rt_runtime_us"
    before = guest.link.read(place)
    with open_board("ssh://guest").boot(AS_BOOTED) as booted:
        settings = Settings(booted.link, tmp_path / "journal")
        settings.apply("rt-throttling", -1)
        settings._journal.close()
        assert guest.link.read(place) != before
    with open_board("ssh://guest").boot(AS_BOOTED) as booted, Settings(booted.link, tmp_path / "journal") as settings:
        assert len(settings.restored) == 1
        assert guest.link.read(place) == before


def test_doctor_asks_each_machine_what_is_its_own(guest: VirtualBoard) -> None:
    """The guest has pins, which the bench may lack, and no QEMU; the bench, which has booted the guest, has one."""
    findings = {
        finding["subject"]: finding
        for finding in json.loads(command_line("doctor", "--board", "ssh://guest", "--json").stdout)
    }
    assert findings["GPIO"]["state"] == findings["virtual bench"]["state"] == "fine"
    assert "on this machine" in findings["disk"]["text"]
    assert "root" not in (findings["idle states"]["fix"] or "")
