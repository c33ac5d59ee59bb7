# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine: board, firmware, and virtualization."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_DMI = "/sys/class/dmi/id/"
_DMI_NAMES = (
    "sys_vendor",
    "product_name",
    "product_version",
    "board_vendor",
    "board_name",
    "board_version",
    "bios_vendor",
    "bios_version",
    "bios_date",
)
_TREE = "/proc/device-tree/"
_CLOCKSOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
_HYPERVISOR_TYPE = "/sys/hypervisor/type"
_ACPI = "/sys/firmware/acpi/tables/FACP"
_CPUINFO = "/proc/cpuinfo"
_PTP = "/sys/class/ptp/ptp*/clock_name"
_IDENTITY_FILES = (
    *(_DMI + name for name in _DMI_NAMES),
    _TREE + "model",
    _TREE + "compatible",
    _TREE + "hypervisor/compatible",
    _TREE + "ibm,partition-name",
    _CLOCKSOURCES,
    _HYPERVISOR_TYPE,
    _ACPI,
    _CPUINFO,
    _PTP,
    "/proc/xen/capabilities",
    "/proc/sysinfo",
)

_DMI_HYPERVISORS = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Virtual Machine", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
)
"""Firmware names by hypervisor, as used by systemd-detect-virt."""
_CLOCK_HYPERVISORS = (("kvm-clock", "kvm"), ("hyperv", "microsoft"), ("xen", "xen"))
_TREE_HYPERVISORS = (("linux,kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware"))
_QEMU_SIGNS = ("QEMU", "dummy-virt", "riscv-virtio", "qemu,")


def _dmi(inputs: Inputs) -> dict[str, str]:
    return {name: text for name in _DMI_NAMES if (text := inputs.get(_DMI + name))}


def _from_tree(inputs: Inputs) -> str | None:
    named = inputs.get(_TREE + "hypervisor/compatible") or ""
    for sign, hypervisor in _TREE_HYPERVISORS:
        if named.startswith(sign):
            return hypervisor
    if inputs.get(_TREE + "ibm,partition-name"):
        return "powervm"
    if any(sign in (inputs.get(_TREE + "compatible") or "") for sign in _QEMU_SIGNS):
        return "qemu"
    return None


def _from_firmware(inputs: Inputs) -> str | None:
    written = " ".join(_dmi(inputs).values())
    return next((hypervisor for sign, hypervisor in _DMI_HYPERVISORS if sign in written), None)


def _from_kernel(inputs: Inputs) -> str | None:
    """The hypervisor that the kernel detected: paravirtual clocks, Xen's directory, CPU flag."""
    kind = inputs.get(_HYPERVISOR_TYPE)
    if kind and "control_d" not in (inputs.get("/proc/xen/capabilities") or ""):
        return kind
    clocks = inputs.get(_CLOCKSOURCES) or ""
    for sign, hypervisor in _CLOCK_HYPERVISORS:
        if sign in clocks:
            return hypervisor
    return None


def _from_cpu(inputs: Inputs) -> str | None:
    cpuinfo = inputs.get(_CPUINFO) or ""
    if "User Mode Linux" in cpuinfo:
        return "uml"
    if "FIRECK" in (inputs.get(_ACPI) or ""):
        return "firecracker"
    if "VM00 Control Program" in (inputs.get("/proc/sysinfo") or ""):
        return "zvm"
    if "QEMU" in cpuinfo:
        return "qemu"
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    return "unknown" if "hypervisor" in flags.split() else None


def _hypervisor(inputs: Inputs) -> str | None:
    """The name of the hypervisor, ``unknown`` for one without a name, None on bare hardware."""
    return _from_kernel(inputs) or _from_firmware(inputs) or _from_tree(inputs) or _from_cpu(inputs)


def _emulated(inputs: Inputs) -> bool:
    """Whether instructions are emulated: a QEMU machine without signs of hardware virtualization.

    On Arm a guest under hardware virtualisation may show no sign either; it then counts as emulated, which forbids
    claims about speed rather than allowing false ones.
    """
    cpuinfo = inputs.get(_CPUINFO) or ""
    identity = " ".join((*_dmi(inputs).values(), inputs.get(_TREE + "compatible") or "", cpuinfo))
    helped = (
        _from_kernel(inputs) is not None
        or "kvm" in (inputs.get(_TREE + "hypervisor/compatible") or "")
        or any("KVM" in name for _, name in inputs.matching(_PTP))
    )
    return any(sign in identity for sign in _QEMU_SIGNS) and not helped


class DeviceTreeFact(TypedDict):
    """Model and compatible strings of the device tree."""

    model: str
    compatible: list[str]


def _device_tree(inputs: Inputs) -> DeviceTreeFact:
    model = inputs.get(_TREE + "model")
    if model is None:
        raise Absent("the board has no device tree")
    compatible = [text for text in (inputs.get(_TREE + "compatible") or "").split("\0") if text]
    return {"model": model, "compatible": compatible}


def _firmware(inputs: Inputs) -> dict[str, str]:
    dmi = _dmi(inputs)
    if not dmi:
        raise Absent("the board has no DMI tables")
    return dmi


def _hostname(inputs: Inputs) -> str:
    return inputs.text("/proc/sys/kernel/hostname")


def _container(inputs: Inputs) -> str | None:
    """The container manager of the bench, None if none is visible."""
    if "/.dockerenv" in inputs.files:
        return "docker"
    if "/run/.containerenv" in inputs.files:
        return "podman"
    return inputs.get("/run/systemd/container")


FACTS = (
    Fact("hostname", _hostname, files=("/proc/sys/kernel/hostname",)),
    Fact("hypervisor", _hypervisor, files=_IDENTITY_FILES),
    Fact("emulated", _emulated, files=_IDENTITY_FILES),
    Fact("container", _container, files=("/.dockerenv", "/run/.containerenv", "/run/systemd/container")),
    Fact("firmware", _firmware, files=tuple(_DMI + name for name in _DMI_NAMES)),
    Fact("device_tree", _device_tree, files=(_TREE + "model", _TREE + "compatible")),
)
