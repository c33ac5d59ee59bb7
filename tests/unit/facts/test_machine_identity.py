# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of a machine: clones of an image differ, kernels and users do not change it, and it reveals nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from fastenough.facts import collect
from fastenough.link import FakeLink
from fastenough.model import Machines, identifiers_of, is_same_machine

MACHINE_ID = "3f0c5d5f7e0a4c1d9b8e6a7f5c4d3b2a"
SERIAL = "/proc/device-tree/serial-number"
MOUNT = "36 24 0:30 /machine-id /etc/machine-id ro - tmpfs tmpfs rw\n"
ONBOARD = ("00:1b:21:3c:4d:5e", "0", "DRIVER=igb\nMODALIAS=pci:v00008086\n")
CARD = ("00:1b:21:99:99:99", "0", "DRIVER=e1000e\nMODALIAS=pci:v00008086\n")
USB = ("00:e0:4c:01:02:03", "0", "DRIVER=r8152\nMODALIAS=usb:v0BDA\n")

Interface = tuple[str, str, str | None]


def _files(*interfaces: Interface, machine_id: str | None = MACHINE_ID, **more: str) -> dict[str, str]:
    """``interfaces``: address, addr_assign_type and the device's uevent, None for an interface without a device."""
    files = {"/etc/machine-id": f"{machine_id}\n"} if machine_id is not None else {}
    for number, (address, origin, device) in enumerate(interfaces):
        place = f"/sys/class/net/eth{number}"
        files |= {f"{place}/address": f"{address}\n", f"{place}/addr_assign_type": f"{origin}\n"}
        files |= {} if device is None else {f"{place}/device/uevent": device}
    return files | more


def _profile(files: dict[str, str]) -> Mapping[str, Any]:
    return collect(FakeLink(files), ("machine",))


def _machine(files: dict[str, str]) -> frozenset[str]:
    profile = _profile(files)
    assert profile["machine"], profile["absent"]
    return identifiers_of(profile)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((ONBOARD,), (ONBOARD,), True),
        ((ONBOARD,), (CARD,), False),  # clones of one image
        ((ONBOARD,), (ONBOARD, CARD), True),  # a card was added, or a kernel has no driver for it
        ((ONBOARD,), (ONBOARD, USB), True),
        ((ONBOARD, USB), (CARD, USB), False),  # one adapter moved from clone to clone
        ((ONBOARD, ("00:1b:21:00:00:01", "0", "")), (CARD, ("00:1b:21:00:00:01", "0", "")), False),
        ((USB,), (USB,), True),
    ],
)
def test_machines_are_told_apart_by_their_hardware(
    one: tuple[Interface, ...], other: tuple[Interface, ...], same: bool
) -> None:
    assert is_same_machine(_machine(_files(*one)), _machine(_files(*other))) is same


def test_another_installation_is_another_machine() -> None:
    assert not is_same_machine(_machine(_files(ONBOARD)), _machine(_files(ONBOARD, machine_id="1" * 32)))


def test_clones_with_serial_numbers_differ_without_a_network() -> None:
    one, other = (_machine(_files(**{SERIAL: f"{number}\0"})) for number in ("10000000abc", "10000000abd"))
    assert is_same_machine(one, other) is False
    assert is_same_machine(one, _machine(_files(ONBOARD, **{SERIAL: "10000000abc\0"})))


@pytest.mark.parametrize(
    "files",
    [
        {},
        _files(),
        _files(ONBOARD, machine_id=None),
        _files(ONBOARD, machine_id=""),
        _files(ONBOARD, machine_id="uninitialized"),
        _files(ONBOARD, machine_id="0" * 32),
        _files(ONBOARD, machine_id=f"{MACHINE_ID}\n{MACHINE_ID}"),
        _files(ONBOARD, **{"/proc/self/mountinfo": MOUNT}),  # made anew at each boot
        _files(("00:1b:21:3c:4d:5e", "0", None)),  # veth of a container
        _files(("52:54:00:12:34:56", "0", "DRIVER=virtio_net\n")),  # QEMU's default
        _files(("00:1b:21:3c:4d:5e", "1", "")),  # random
        _files(("00:1b:21:3c:4d:5e", "3", "")),  # set by an administrator
        _files(("00:00:00:00:00:00:00", "0", "")),
        _files(("not an address", "0", "")),
        _files(("", "", "")),
        _files(**{SERIAL: "0000000000000000\0"}),
        _files(**{SERIAL: "\0\n"}),
    ],
    ids=str,
)
def test_without_unique_hardware_the_machine_is_unknown(files: dict[str, str]) -> None:
    profile = _profile(files)
    assert profile["machine"] is None and not profile["absent"]["machine"].startswith("not understood")
    assert identifiers_of(profile) == frozenset()
    assert is_same_machine(frozenset(), _machine(_files(ONBOARD))) is None


def test_what_only_root_can_read_changes_nothing() -> None:
    root = {"/sys/class/dmi/id/product_uuid": "4c4c4544-0042", "/sys/class/dmi/id/board_serial": "CN70"}
    assert _machine(_files(ONBOARD, **root)) == _machine(_files(ONBOARD))


def test_no_identifier_is_recorded_itself() -> None:
    text = json.dumps(_profile(_files(ONBOARD, CARD, **{SERIAL: "10000000abc\0"})))
    for secret in (MACHINE_ID, ONBOARD[0], CARD[0], "10000000abc"):
        assert secret not in text
    assert len(json.loads(text)["machine"]) == 3


def test_hostile_files_give_hashes_or_nothing() -> None:
    dice = random.Random(36)
    kinds = ("\0", "\n", "é", "\ufffd", "x" * 100_000, "00:1b:21:3c:4d:5e", MACHINE_ID, "0", "MODALIAS=usb:")
    places = list(_files(ONBOARD, CARD, **{SERIAL: "", "/proc/self/mountinfo": ""}))
    for _ in range(200):
        profile = _profile({place: "".join(dice.choices(kinds, k=dice.randrange(4))) for place in places})
        assert all(len(each) == 32 for each in profile["machine"] or ())
        assert not profile["absent"].get("machine", "").startswith("not understood")


@pytest.mark.parametrize("machine", ["text", {"a": 1}, 7, [], None, True])
def test_any_other_fact_identifies_nothing(machine: Any) -> None:
    assert identifiers_of({"machine": machine}) == frozenset()
    assert identifiers_of(None) == frozenset()


def test_machines_are_numbered_so_that_any_two_sets_of_one_agree() -> None:
    a, ab, b, c = (frozenset(text) for text in ("a", "ab", "b", "c"))
    machines = Machines([frozenset(), a, ab, b, c])
    assert len(machines) == 3
    assert [machines.number(each) for each in (a, ab, b, c)] == [0, 0, 1, 2]
    assert machines.number(frozenset()) is None and machines.number(frozenset("d")) is None
