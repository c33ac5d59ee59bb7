# SPDX-License-Identifier: GPL-2.0-or-later
"""USB serial ports and the serial numbers of their devices: port names change, serial numbers are permanent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput

SYSFS = Path("/sys")
DEVICES = Path("/dev")
LINK = "fastenough-gauge-"
"""Prefix of the permanent names by gauge/70-fastenough-gauge.rules; the serial number follows."""


@dataclass(frozen=True)
class Port:
    """A USB serial port; ``serial`` is None if the adapter has no serial number."""

    device: str
    serial: str | None
    product: str | None


def _attribute(place: Path, name: str) -> str | None:
    """An attribute in sysfs, in the characters that udev allows in names; None if it does not exist."""
    try:
        text = (place / name).read_text(errors="replace").strip()
    except OSError:
        return None
    return re.sub(r"[^A-Za-z0-9#+\-.:=@_/]", "_", text).replace("/", "_") or None


def _usb_device(place: Path) -> Path | None:
    """The USB device of a port, by its directory in sysfs."""
    return next((above for above in (place, *place.parents) if (above / "idVendor").is_file()), None)


def ports(sysfs: Path = SYSFS, devices: Path = DEVICES) -> list[Port]:
    """All USB serial ports, sorted by name."""
    usb_ports = []
    for entry in sorted((sysfs / "class" / "tty").glob("tty*")):
        usb = _usb_device((entry / "device").resolve()) if (entry / "device").exists() else None
        if usb is not None:
            usb_ports.append(Port(str(devices / entry.name), _attribute(usb, "serial"), _attribute(usb, "product")))
    return usb_ports


def serial_of(device: str, sysfs: Path = SYSFS, devices: Path = DEVICES) -> str | None:
    """The serial number of a port, by its name or a link to it; None if it has none."""
    real = str(Path(device).resolve())
    return next((port.serial for port in ports(sysfs, devices) if str(Path(port.device).resolve()) == real), None)


def find_port(named: str | None, sysfs: Path = SYSFS, devices: Path = DEVICES) -> str:
    """The port with this name or serial number, or the only port; raises BadInput."""
    if named and "/" in named:
        return named
    present = ports(sysfs, devices)
    if named:
        return _with_serial(named, present, devices)
    if len(present) != 1:
        problem = (
            "no USB serial port found"
            if not present
            else (f"several USB serial ports found: {', '.join(port.device for port in present)}")
        )
        raise BadInput(f"{problem}; plug in the gauge, or name its port, as in: fastenough gauge id /dev/ttyACM0")
    return present[0].device


def _with_serial(serial: str, present: list[Port], devices: Path) -> str:
    matching = [port.device for port in present if port.serial == serial]
    if len(matching) > 1:
        raise BadInput(f"several ports have the serial number {serial}: {', '.join(matching)}; name one of them")
    if matching:
        return matching[0]
    link = devices / f"{LINK}{serial}"
    if link.exists():
        return str(link)
    there = ", ".join(port.serial for port in present if port.serial) or "none"
    raise BadInput(
        f"no gauge with the serial number {serial} is plugged in (found: {there}); see "
        "fastenough gauge list, or name its port, such as /dev/ttyACM0"
    )
