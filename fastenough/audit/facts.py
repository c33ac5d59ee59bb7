# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of one machine, for checks: access to a missing fact raises, so that it cannot give FINE."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fastenough.facts.cpu import MOST_CPUS, cpu_list, list_form

_OF_EVERY_KERNEL = "CONFIG_INIT_ENV_ARG_LIMIT"
"""An option that every configuration has: without it the text is incomplete, and other options may be missing."""
_MASK = re.compile(rf"[0-9a-fA-F]{{1,{MOST_CPUS // 4}}}")


class Unknown(Exception):
    """A fact that a check needs is unknown; the message is the reason."""


class Facts:
    """Accessors for a profile (docs/facts.md)."""

    def __init__(self, profile: Mapping[str, Any]) -> None:
        self._profile = profile

    def get(self, fact: str, *keys: str) -> Any:
        """Return a fact, or its value under the keys; None if any of them is missing."""
        value: Any = self._profile.get(fact)
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def need(self, fact: str, *keys: str) -> Any:
        """Return the same as ``get``; raise Unknown, with the reason, if it is missing."""
        value = self.get(fact, *keys)
        if value is None:
            where = " ".join((fact, *keys)).replace("_", " ")
            raise Unknown(self.reason(fact) or f"{where}: not reported by this machine")
        return value

    def reason(self, fact: str) -> str | None:
        """Return why a fact is absent; None if it is present."""
        reason = self.get("absent", fact)
        return None if reason is None else str(reason)

    @cached_property
    def _options(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self.need("kernel_config", "set"))
        return {name: value for name, _, value in pairs}

    def option(self, name: str) -> str:
        """Return a kernel option's value without quotes, ``n`` if it is not set; raise Unknown."""
        value = self._options.get(f"CONFIG_{name}")
        if value is None and _OF_EVERY_KERNEL not in self._options:
            raise Unknown(f"the known kernel configuration is incomplete and has no CONFIG_{name}")
        return "n" if value is None else value.strip('"')

    @cached_property
    def arguments(self) -> dict[str, str]:
        """The kernel's command line by name: the last value of each, "" for flags; raises Unknown."""
        arguments = str(self.need("cmdline")).partition(" -- ")[0].split()
        return {name.replace("-", "_"): value for name, _, value in (argument.partition("=") for argument in arguments)}

    @property
    def count(self) -> int:
        """Number of online CPUs; raises ValueError for an impossible one."""
        count = int(self.need("cpu", "count"))
        if not 0 < count <= MOST_CPUS:
            raise ValueError("impossible number of CPUs")
        return count

    @property
    def online(self) -> set[int]:
        text = self.get("cpu_isolation", "online")
        return set(cpu_list(text)) if text else set(range(self.count))

    @property
    def set_apart(self) -> str:
        """CPUs for real-time tasks, in the kernel's list form: the isolated ones, else the last."""
        apart = as_cpus(self.get("cpu_isolation", "isolated")) or {max(self.online)}
        return list_form(apart)

    @property
    def others(self) -> str:
        """CPUs for all other tasks, in the kernel's list form."""
        left = self.online - set(cpu_list(self.set_apart))
        return list_form(left or self.online)

    @property
    def hypervisor(self) -> str | None:
        """Its name, None on bare hardware; raises Unknown."""
        if "hypervisor" not in self._profile or self.reason("hypervisor"):
            raise Unknown("hypervisor detection failed")
        name = self._profile["hypervisor"]
        return None if name is None else str(name)

    def interrupt_threads(self) -> list[Mapping[str, Any]]:
        """Return the interrupt threads; raise Unknown where kernel threads are hidden, as in a container."""
        self.require_all_tasks()
        return list(self.need("interrupt_threads"))

    def require_all_tasks(self) -> None:
        """Raise Unknown where kernel threads are hidden, since other tasks may be hidden too."""
        if not self.need("interrupt_threads"):
            raise Unknown("kernel threads are not visible here, so other tasks may be hidden too")

    @property
    def kernel_release(self) -> tuple[int, int]:
        """Major and minor number of the kernel; raise ValueError where its release is malformed."""
        release = re.match(r"(\d+)\.(\d+)", str(self.need("kernel", "release")))
        if release is None:
            raise ValueError("malformed kernel release")
        return int(release[1]), int(release[2])

    @property
    def real_time_kernel(self) -> bool:
        return str(self.need("kernel", "preemption")) == "preempt-rt"

    @property
    def x86(self) -> bool:
        return str(self.need("cpu", "architecture")) in ("x86_64", "i686", "i586")


def as_cpus(text: object) -> set[int]:
    """Parse the kernel's list form of CPUs; return the empty set for other text, such as ``(null)``."""
    numbers = str(text or "").strip()
    return set(cpu_list(numbers)) if re.fullmatch(r"\d[\d,-]*", numbers) else set()


def mask_form(cpus: set[int]) -> str:
    """CPU numbers as a hexadecimal mask in groups of 32 bits, as the kernel requires."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [bits >> shift & 0xFFFFFFFF for shift in range(0, max(1, bits.bit_length()), 32)]
    return ",".join([f"{words[-1]:x}", *(f"{word:08x}" for word in words[-2::-1])])


def as_mask(text: object) -> set[int]:
    """Parse a hexadecimal mask of CPUs; raise Unknown."""
    digits = str(text).strip().replace(",", "")
    if not _MASK.fullmatch(digits):
        raise Unknown(f"{ascii(text)[:40]} is not a CPU mask")
    return {cpu for cpu, bit in enumerate(reversed(f"{int(digits, 16):b}")) if bit == "1"}
