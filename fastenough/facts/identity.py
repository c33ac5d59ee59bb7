# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of the machine, from files that every user can read: one-way hashes, one per hardware identifier."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator

from fastenough.facts.fact import Absent, Fact, Inputs

_MACHINE_ID = "/etc/machine-id"
_MOUNTS = "/proc/self/mountinfo"
_SERIAL = "/proc/device-tree/serial-number"
_ADDRESS = "/sys/class/net/*/address"
_ORIGIN = "/sys/class/net/*/addr_assign_type"
_DEVICE = "/sys/class/net/*/device/uevent"
"""Only an interface of a device has it: loopback, veth, bridges, VLANs and tunnels have none."""

_PERMANENT = "0"
"""NET_ADDR_PERM of the kernel's linux/netdevice.h: neither random, nor taken from another interface, nor set."""
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NOT_UNIQUE = 0b11
"""Bits of a MAC address's first byte: group address, and locally administered (as virtual machines have it)."""
_DIGITS = 32


def _machine_id(inputs: Inputs) -> bytes:
    """The ID of the installed system; raises Absent if there is none that lasts over a boot."""
    text = inputs.text(_MACHINE_ID)
    if not re.fullmatch(r"[0-9a-f]{32}", text) or set(text) == {"0"}:
        raise Absent(f"{_MACHINE_ID} holds no machine ID")
    if f" {_MACHINE_ID} " in (inputs.get(_MOUNTS) or ""):
        raise Absent(f"the machine ID lasts until the next boot only ({_MACHINE_ID} is a mount)")
    return text.encode()


def _mac_addresses(inputs: Inputs) -> Iterator[tuple[str, bool]]:
    """Unique permanent addresses of network devices, and whether the device is on USB, and so easily moved."""
    addresses = {name: text.lower() for (name,), text in inputs.matching(_ADDRESS)}
    origins = {name: text for (name,), text in inputs.matching(_ORIGIN)}
    for (name,), device in inputs.matching(_DEVICE):
        address = addresses.get(name, "")
        if origins.get(name) == _PERMANENT and _MAC.fullmatch(address) and not int(address[:2], 16) & _NOT_UNIQUE:
            yield address, "MODALIAS=usb:" in device


def _hardware(inputs: Inputs) -> list[str]:
    """Identifiers of the hardware.  Adapters on USB count only if there is nothing else."""
    serial = inputs.get(_SERIAL)
    lasting = [f"serial {serial}"] if serial and serial.strip("0") else []
    movable: list[str] = []
    for address, on_usb in _mac_addresses(inputs):
        (movable if on_usb else lasting).append(f"mac {address}")
    return lasting or movable


def _machine(inputs: Inputs) -> list[str]:
    """One hash per identifier of the hardware, keyed with the machine ID, which is nowhere recorded."""
    key = _machine_id(inputs)
    identifiers = _hardware(inputs)
    if not identifiers:
        raise Absent("the hardware shows no unique identifier (serial number, permanent MAC address)")
    return sorted(
        {
            hmac.new(key, f"fastenough machine: {identifier}".encode(), hashlib.sha256).hexdigest()[:_DIGITS]
            for identifier in identifiers
        }
    )


FACTS = (Fact("machine", _machine, files=(_MACHINE_ID, _MOUNTS, _SERIAL, _ADDRESS, _ORIGIN, _DEVICE)),)
