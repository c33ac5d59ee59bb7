# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards by name, what they can boot, and what they are once booted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.board import AS_BOOTED, configuration_of, open_board
from fastenough.link import FakeLink
from fastenough.model import BadInput, Configuration, NotApplicable
from tests.support.virtual_boards import require_simulated_gauge


def test_names_of_boards() -> None:
    assert open_board("local").name == "local" and open_board("local").configurations() == (AS_BOOTED,)
    assert open_board("virtual").configurations()[:3] == (AS_BOOTED, "stock", "rt")
    assert open_board("virtual:rt").configurations() == (AS_BOOTED, "rt")
    assert open_board("virtual:rt").name == "virtual:rt"


@pytest.mark.parametrize("name", ["", "nowhere", "local:second", "virtual:nt", "LOCAL", "local\n"])
def test_a_name_that_means_no_board(name: str) -> None:
    with pytest.raises(BadInput, match=r"unknown board|only one local board|no configuration"):
        open_board(name)


def test_what_the_local_board_runs(probe_binary: str) -> None:
    with open_board("local").boot("laptop") as booted:
        assert booted.configuration.name == "laptop"
        assert booted.configuration.kernel_release == Path("/proc/sys/kernel/osrelease").read_text().strip()
        assert booted.configuration.command_line == Path("/proc/cmdline").read_text().strip()
        assert Path(booted.probe).is_file() and booted.marks == ()
        with pytest.raises(NotApplicable, match=r"modinfo|not installed"):
            booted.module("no_such_module")
        with pytest.raises(BadInput, match="port of a real gauge"):
            booted.wire_gauge()


def test_a_board_that_tells_nothing() -> None:
    assert configuration_of(FakeLink({}), "lab") == Configuration("lab")


def test_no_virtual_bench_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTENOUGH_RUN", str(tmp_path / "run"))
    with pytest.raises(BadInput, match="fastenough bench up --kernel rt"), open_board("virtual:rt").boot(AS_BOOTED):
        pass
    with pytest.raises(BadInput, match="no configuration 'stock'"), open_board("virtual:rt").boot("stock"):
        pass


def test_a_guest_booted_for_the_purpose() -> None:
    require_simulated_gauge()
    with open_board("virtual").boot("stock") as booted:
        release = booted.link.read("/proc/sys/kernel/osrelease").decode().strip()
        assert booted.configuration.name == "stock" and booted.configuration.kernel_release == release
        assert booted.marks == ("emulated",) and booted.wires is not None
        assert booted.link.run([booted.probe, "--list-json"]).status == 0
        assert booted.link.exists(booted.module("fastenough"))
        with pytest.raises(NotApplicable, match="unknown kernel module other"):
            booted.module("other")
