# SPDX-License-Identifier: GPL-2.0-or-later
"""A board behind ssh that is rebooted into its configurations: waited for, and not believed when it is another one.

The board is a real SSH server in mounts of its own, where ``reboot`` gives the boot another id, as a reboot does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.board import open_board
from fastenough.board.configuration import _BOOT_ID, ConfigurationChange, SwitchableBoard, _boot_id
from fastenough.campaign.stop import StopRequest
from fastenough.facts import collect
from fastenough.link import BoardGone, LocalLink
from fastenough.link.fake import FakeLink
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.model import FastenoughError
from fastenough.settings import BoardBusy, Settings
from tests.support.privileges import own_mounts
from tests.support.ssh_boards import NAME, ssh_server

pytestmark = pytest.mark.machines

REBOOT = '#!/bin/sh\n[ "${{0##*/}}" = reboot ] && cat /proc/sys/kernel/random/uuid >{place}/boot_id\n'
CHOSEN = ("sh", "-c", "echo $0 >>{place}/chosen")


@contextmanager
def _board(place: Path, monkeypatch: pytest.MonkeyPatch, reboot: str = REBOOT) -> Iterator[None]:
    """While inside, NAME is a board whose boot id and whose ``reboot`` (systemctl, as Debian's) lie in ``place``."""
    systemctl = Path("/usr/sbin/reboot").resolve()
    if systemctl.name != "systemctl":
        pytest.skip("reboot is not systemctl here, so that nothing can stand in for it")
    place.chmod(0o755)
    (place / "boot_id").write_text("first\n")
    (place / "reboot").write_text(reboot.format(place=place))
    (place / "reboot").chmod(0o755)
    mounts = (
        f"mount --bind {place}/boot_id /proc/sys/kernel/random/boot_id && "
        f'mount --bind {place}/reboot {systemctl} && exec "$@"'
    )
    with ssh_server(prefix=[*own_mounts(), "sh", "-c", mounts, "sh"]) as server:
        monkeypatch.setenv(CONFIG_SETTING, str(server.config))
        yield


def _nobody(board: str, configuration: str, why: str) -> None:
    raise AssertionError(f"{board} {configuration} {why}")


def _changed(place: Path, changes: Mapping[str, str], boot_s: float = 60.0) -> SwitchableBoard:
    """``changes``: configuration to the pattern of its kernel."""
    words = [word.format(place=place) for word in CHOSEN]
    return SwitchableBoard(
        open_board(NAME),
        {name: ConfigurationChange((*words, name), kernel) for name, kernel in changes.items()},
        _nobody,
        StopRequest().sleep,
        boot_s=boot_s,
    )


def test_it_is_rebooted_into_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _board(tmp_path, monkeypatch):
        board = _changed(tmp_path, {"stock": "", "rt": "*"})
        ids = ["first"]
        for configuration in ("stock", "rt"):
            with board.boot(configuration) as booted:
                assert booted.configuration.name == configuration
                assert booted.link.run(["echo", "there"]).text == "there\n"
            ids.append((tmp_path / "boot_id").read_text())
        assert len(set(ids)) == 3
        assert (tmp_path / "chosen").read_text() == "stock\nrt\n"


def test_a_board_that_another_bench_measures_is_not_rebooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _board(tmp_path, monkeypatch), open_board(NAME).boot("any") as booted, Settings(booted.link):
        with pytest.raises(BoardBusy), _changed(tmp_path, {"stock": ""}).boot("stock"):
            pass
        assert (tmp_path / "boot_id").read_text() == "first\n"


def test_what_came_up_must_be_what_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _board(tmp_path, monkeypatch):
        board = _changed(tmp_path, {"stock": "", "rt": "", "moon": "*-moon"})
        with board.boot("stock"):
            pass
        for configuration, why in (("rt", "command line as stock"), ("moon", r"but moon requires \*-moon")):
            with pytest.raises(FastenoughError, match=why), board.boot(configuration):
                pass


def test_a_name_that_contradicts_the_kernel_is_not_what_came_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a boot loader that ignored the selection; a pattern of the kernel takes precedence."""
    name = "stock" if collect(LocalLink(), ("kernel",))["kernel"]["preemption"] == "preempt-rt" else "rt"
    with _board(tmp_path, monkeypatch):
        with pytest.raises(FastenoughError, match="preemption"), _changed(tmp_path, {name: ""}).boot(name):
            pass
        with _changed(tmp_path, {name: "*"}).boot(name) as booted:
            assert booted.configuration.name == name


def test_a_board_that_does_not_go_down_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _board(tmp_path, monkeypatch, "#!/bin/sh\n"):
        board = _changed(tmp_path, {"stock": "*"}, boot_s=1.0)
        with pytest.raises(BoardGone, match=re.escape("within 1 s: it has not shut down")), board.boot("stock"):
            pass


def test_a_command_that_fails_is_told_and_nothing_is_rebooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _board(tmp_path, monkeypatch):
        board = SwitchableBoard(
            open_board(NAME),
            {"rt": ConfigurationChange(("sh", "-c", "echo no such entry >&2; exit 3"))},
            _nobody,
            StopRequest().sleep,
        )
        with pytest.raises(FastenoughError, match="failed: no such entry"), board.boot("rt"):
            pass
        assert (tmp_path / "boot_id").read_text() == "first\n"


def test_a_boot_id_of_no_characters_is_one_all_the_same() -> None:
    link = FakeLink({})
    ids = []
    for content in (b"\xff\xfe\x80\n", b"\xff\xfeother\n"):
        link.write(_BOOT_ID, content)
        ids.append(_boot_id(link))
        assert collect(link, ("boot_id",))["boot_id"] == ids[-1]
    assert len({*ids}) == 2
