# SPDX-License-Identifier: GPL-2.0-or-later
"""File formats for the changes of an audit: one function each, and one line of ``EMITTERS`` for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastenough.audit.emit.lines import Line, of_form, setting_of, text_of
from fastenough.audit.finding import Form


def _option(text: str, *, active: bool) -> str:
    """An option as the kernel's tools read it; ``# CONFIG_NAME is not set`` is no comment to them."""
    name, _, value = text.partition("=")
    if not active:
        return f"# {text}"
    return f"# {name} is not set" if value == "n" else text


def _kernel_fragment(lines: Sequence[Line]) -> str | None:
    """A kernel configuration fragment for merge_config.sh, Yocto and others."""
    written = [
        row
        for line in of_form(lines, Form.CONFIG)
        for row in [*line.comment, *(_option(text, active=line.active) for text in line.change.text.split()), ""]
    ]
    return (
        text_of("Kernel configuration: scripts/kconfig/merge_config.sh .config fastenough.cfg", written)
        if written
        else None
    )


def _boot_line(lines: Sequence[Line]) -> str | None:
    """Kernel boot arguments, as a drop-in for GRUB."""
    written = [
        row
        for line in of_form(lines, Form.BOOT)
        for row in line.written(f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {line.change.text}"')
    ]
    return (
        text_of(
            "Boot line: to /etc/default/grub.d/fastenough.cfg, then update-grub; elsewhere add the arguments to the "
            "kernel command line",
            written,
        )
        if written
        else None
    )


def _sysctl(lines: Sequence[Line]) -> str | None:
    """Kernel variables for sysctl(8)."""
    written = [
        row for line in of_form(lines, Form.SYSCTL) for row in line.written(line.change.text.replace("=", " = ", 1))
    ]
    return text_of("To /etc/sysctl.d/90-fastenough.conf, then sysctl --system", written) if written else None


def _tuned_assignment(line: Line) -> list[str]:
    return line.written(line.change.text.replace("=", " = ", 1))


def _tuned_part(name: str, lines: Sequence[Line], row: Callable[[Line], list[str]] = _tuned_assignment) -> list[str]:
    return [f"[{name}]", *(text for line in lines for text in row(line))] if lines else []


def _tuned_cpu(lines: Sequence[Line]) -> list[str]:
    """Settings that tuned has options for."""
    named = (
        ("governor", "governor = {}"),
        ("energy-preference", "energy_performance_preference = {}"),
        ("idle-latency", "force_latency = {}"),
    )
    rows = [
        row
        for name, template in named
        if (line := setting_of(lines, name)) is not None and line.change.setting
        for row in line.written(template.format(line.change.setting[1]))
    ]
    return ["[cpu]", *rows] if rows else []


def _tuned(lines: Sequence[Line]) -> str | None:
    """A profile for tuned; besides it only the kernel fragment is needed."""
    arguments = of_form(lines, Form.BOOT)
    files = [line for line in of_form(lines, Form.FILE) if "*" not in line.change.text]
    parts = [*_tuned_cpu(lines), *_tuned_part("sysctl", of_form(lines, Form.SYSCTL)), *_tuned_part("sysfs", files)]
    if arguments:
        parts += ["[bootloader]"]
        for number, line in enumerate(arguments):
            parts += line.written(f"cmdline_fastenough{number} = +{line.change.text}")
    return (
        text_of(
            "To /etc/tuned/fastenough/tuned.conf, then tuned-adm profile fastenough",
            ["[main]", "summary = Changes proposed by fastenough audit for this machine", "", *parts],
        )
        if parts
        else None
    )


def _indented(rows: Sequence[str]) -> list[str]:
    return [f"    {row}" if row else "" for row in rows]


def _rt_conf_arguments(lines: Sequence[Line]) -> list[str]:
    arguments = [(line, argument) for line in of_form(lines, Form.BOOT) for argument in line.change.text.split()]
    rows = [row for line, argument in arguments for row in _indented(line.written(f'- "{argument}"'))]
    empty = "" if any(line.active for line, _ in arguments) else " []"
    return ["kernel-cmdline:", f"  parameters:{empty}", *rows] if rows else []


def _rt_conf_rule(section: str, label: str, line: Line | None, rows: Sequence[str]) -> list[str]:
    if line is None:
        return []
    body = [f"{section}:", f"  {label}:", *(f"    {row}" for row in rows)]
    return [*line.comment, *(body if line.active else [f"# {row}" for row in body]), ""]


def _rt_conf(lines: Sequence[Line]) -> str | None:
    """A configuration for Ubuntu's rt-conf (since mid-2025): boot arguments, interrupt affinity and governors.

    ``kernel-cmdline`` has a list of parameters; each rule of ``irq-tuning`` and ``cpu-governance`` has a label.
    """
    interrupts, governor = setting_of(lines, "irq-affinity"), setting_of(lines, "governor")
    cpus = interrupts.change.setting[1] if interrupts is not None and interrupts.change.setting else ""
    parts = [
        *_rt_conf_arguments(lines),
        *_rt_conf_rule("irq-tuning", "all-interrupts", interrupts, (f'cpus: "{cpus}"', "filter: {}")),
        *_rt_conf_rule("cpu-governance", "all-cpus", governor, ('cpus: "all"', 'scaling-governor: "performance"')),
    ]
    return text_of("To /var/snap/rt-conf/common/config.yaml", parts) if parts else None


_SYSTEMD_RIGHTS = (
    "[Service]",
    "# Real-time policy and locked memory, as in the measurement.",
    "CPUSchedulingPolicy=fifo",
    "CPUSchedulingPriority=80",
    "LimitRTPRIO=99",
    "LimitMEMLOCK=infinity",
    "",
)


def _systemd_cpus(lines: Sequence[Line]) -> list[str]:
    for line in of_form(lines, Form.BOOT):
        name, _, value = line.change.text.partition("=")
        if name == "isolcpus":
            return line.written(f"CPUAffinity={value}")
    return []


def _systemd(lines: Sequence[Line]) -> str | None:
    """A systemd drop-in for the service of the real-time task: limits, priority, CPUs."""
    return text_of(
        "To /etc/systemd/system/SERVICE.service.d/fastenough.conf, then systemctl daemon-reload",
        [*_SYSTEMD_RIGHTS, *_systemd_cpus(lines)],
    )


def _tmpfiles_row(line: Line) -> str:
    path, _, value = line.change.text.partition("=")
    return f"w {path} - - - - {value}"


def _tmpfiles(lines: Sequence[Line]) -> str | None:
    """Kernel files written at each boot, for tmpfiles.d(5)."""
    written = [row for line in of_form(lines, Form.FILE) for row in line.written(_tmpfiles_row(line))]
    return text_of("To /etc/tmpfiles.d/fastenough.conf", written) if written else None


Emitter = Callable[[Sequence[Line]], str | None]
"""A function of all lines; the text of the file, or None if it would be empty."""

EMITTERS: tuple[tuple[str, Emitter], ...] = (
    ("fastenough.cfg", _kernel_fragment),
    ("fastenough-grub.cfg", _boot_line),
    ("90-fastenough.conf", _sysctl),
    ("tuned.conf", _tuned),
    ("rt-conf.yaml", _rt_conf),
    ("fastenough-service.conf", _systemd),
    ("fastenough-tmpfiles.conf", _tmpfiles),
)
"""File names and emitters."""
