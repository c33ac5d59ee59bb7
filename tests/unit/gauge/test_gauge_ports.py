# SPDX-License-Identifier: GPL-2.0-or-later
"""Gauges by serial number: read from sysfs, found whatever their port is called today, named by a udev rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastenough.gauge.ports import LINK, Port, find_port, ports, serial_of
from fastenough.model import BadInput

RULE = Path(__file__).resolve().parents[3] / "gauge" / "70-fastenough-gauge.rules"


@dataclass(frozen=True)
class Machine:
    """A machine's /sys and /dev, as the kernel lays them out for USB serial ports."""

    root: Path

    @property
    def sysfs(self) -> Path:
        return self.root / "sys"

    @property
    def devices(self) -> Path:
        return self.root / "dev"

    def plug(self, name: str, serial: str | None, usb: str = "1-1") -> None:
        device = self.sysfs / "devices" / "usb1" / usb
        interface = device / f"{usb}:1.0"
        (interface / "tty" / name).mkdir(parents=True)
        (device / "idVendor").write_text("2341\n")
        (device / "product").write_text("Arduino Uno\n")
        if serial is not None:
            (device / "serial").write_text(f"{serial}\n")
        (interface / "tty" / name / "device").symlink_to(interface)
        entry = self.sysfs / "class" / "tty"
        entry.mkdir(parents=True, exist_ok=True)
        (entry / name).symlink_to(interface / "tty" / name)
        self.devices.mkdir(exist_ok=True)
        (self.devices / name).touch()

    def unplug(self, name: str, usb: str = "1-1") -> None:
        (self.sysfs / "class" / "tty" / name).unlink()
        shutil.rmtree(self.sysfs / "devices" / "usb1" / usb)
        (self.devices / name).unlink()

    def find(self, named: str | None) -> str:
        return find_port(named, self.sysfs, self.devices)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With a serial port of its own, which is no USB port."""
    made = Machine(tmp_path)
    (made.sysfs / "devices" / "platform" / "serial8250" / "tty" / "ttyS0").mkdir(parents=True)
    (made.sysfs / "class" / "tty").mkdir(parents=True)
    (made.sysfs / "class" / "tty" / "ttyS0").symlink_to(made.sysfs / "devices/platform/serial8250/tty/ttyS0")
    return made


def test_ports_are_listed_with_their_serial_numbers(machine: Machine) -> None:
    machine.plug("ttyACM0", "55736303831351F0B1A2")
    machine.plug("ttyUSB0", None, "1-2")
    assert ports(machine.sysfs, machine.devices) == [
        Port(str(machine.devices / "ttyACM0"), "55736303831351F0B1A2", "Arduino_Uno"),
        Port(str(machine.devices / "ttyUSB0"), None, "Arduino_Uno"),
    ]


def test_a_gauge_is_found_by_its_number_under_its_new_name(machine: Machine) -> None:
    machine.plug("ttyACM0", "A1")
    machine.plug("ttyACM1", "B2", "1-2")
    assert machine.find("A1") == str(machine.devices / "ttyACM0")
    machine.unplug("ttyACM0")
    with pytest.raises(BadInput, match=r"serial number A1 is plugged in \(found: B2\)"):
        machine.find("A1")
    machine.plug("ttyACM7", "A1")
    assert machine.find("A1") == str(machine.devices / "ttyACM7")
    assert serial_of(str(machine.devices / "ttyACM7"), machine.sysfs, machine.devices) == "A1"


def test_the_stable_name_is_a_name_of_the_port(machine: Machine) -> None:
    machine.plug("ttyACM3", "A1")
    link = machine.devices / f"{LINK}A1"
    link.symlink_to("ttyACM3")
    assert serial_of(str(link), machine.sysfs, machine.devices) == "A1"
    assert machine.find(str(link)) == str(link)


def test_the_only_port_needs_no_name_and_several_do(machine: Machine) -> None:
    with pytest.raises(BadInput, match="no USB serial port found"):
        machine.find(None)
    machine.plug("ttyACM0", "A1")
    assert machine.find(None) == str(machine.devices / "ttyACM0")
    machine.plug("ttyACM1", "A1", "1-2")
    with pytest.raises(BadInput, match=r"several USB serial ports found: .*ttyACM0, .*ttyACM1"):
        machine.find(None)
    with pytest.raises(BadInput, match="several ports have the serial number A1"):
        machine.find("A1")


def test_numbers_are_written_as_udev_writes_them(machine: Machine) -> None:
    """A serial number is text from a device: nothing of it leads out of /dev or into a terminal."""
    machine.plug("ttyACM0", "a b/../\x1b[2Jé")
    (port,) = ports(machine.sysfs, machine.devices)
    assert port.serial is not None
    assert re.fullmatch(r"[A-Za-z0-9#+\-.:=@_]+", port.serial)


def test_the_rule_gives_the_name_that_is_looked_for() -> None:
    (line,) = [line for line in RULE.read_text().splitlines() if line and not line.startswith("#")]
    words = line.split(", ")
    assert f'SYMLINK+="{LINK}$env{{ID_SERIAL_SHORT}}"' in words
    assert all(re.fullmatch(r'[A-Z_]+(\{[A-Z_]+\})?(==|!=|\+=|=)"[^"]*"', word) for word in words)


@pytest.mark.skipif(shutil.which("udevadm") is None, reason="udevadm is not installed")
def test_udev_takes_the_rule() -> None:
    done = subprocess.run(["udevadm", "verify", str(RULE)], capture_output=True, text=True, check=False)
    if "Unknown command" in done.stderr or "unknown" in done.stderr.lower():
        pytest.skip("this udevadm cannot verify rules")
    assert done.returncode == 0, done.stdout + done.stderr
