# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of one machine, for checks: what is not known raises, so that nothing unknown can pass for fine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fastenough.facts.cpu import cpu_list, list_form

_OF_EVERY_KERNEL = "CONFIG_INIT_ENV_ARG_LIMIT"
"""An option that each configuration has: where it is absent, the text is cut, and absence of others says nothing."""


class Unknown(Exception):
    """A fact that a check needs is not known; the message says why."""


class Facts:
    """A profile (docs/facts.md) as checks read it."""

    def __init__(self, profile: Mapping[str, Any]) -> None:
        self._profile = profile

    def get(self, fact: str, *keys: str) -> Any:
        """A fact, or what lies below it under the keys; None where any of them is not there."""
        found: Any = self._profile.get(fact)
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def need(self, fact: str, *keys: str) -> Any:
        """The same; raises Unknown with the reason where it is not there."""
        found = self.get(fact, *keys)
        if found is None:
            where = " ".join((fact, *keys)).replace("_", " ")
            raise Unknown(self.reason(fact) or f"{where}: this machine does not say")
        return found

    def reason(self, fact: str) -> str | None:
        """Why a fact is absent, None where it is not."""
        found = self.get("absent", fact)
        return None if found is None else str(found)

    @cached_property
    def _options(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self.need("kernel_config", "set"))
        return {name: value for name, _, value in pairs}

    def option(self, name: str) -> str:
        """A kernel option's value without quotes, ``n`` where it is not set; raises Unknown."""
        found = self._options.get(f"CONFIG_{name}")
        if found is None and _OF_EVERY_KERNEL not in self._options:
            raise Unknown(f"the kernel's configuration is not known whole, and does not name CONFIG_{name}")
        return "n" if found is None else found.strip('"')

    @cached_property
    def arguments(self) -> dict[str, str]:
        """The kernel's command line by name, "" for what has no value, the last of several; raises Unknown."""
        words = str(self.need("cmdline")).partition(" -- ")[0].split()
        return {name.replace("-", "_"): value for name, _, value in (word.partition("=") for word in words)}

    @property
    def count(self) -> int:
        """CPUs in use."""
        return int(self.need("cpu", "count"))

    @property
    def online(self) -> set[int]:
        text = self.get("cpu_isolation", "online")
        return set(cpu_list(text)) if text else set(range(self.count))

    @property
    def set_apart(self) -> str:
        """The CPUs that may be given to real-time tasks: the isolated ones, else the last; in the kernel's form."""
        apart = as_cpus(self.get("cpu_isolation", "isolated")) or {max(self.online)}
        return list_form(apart)

    @property
    def others(self) -> str:
        """The CPUs that are left for everything else."""
        left = self.online - set(cpu_list(self.set_apart))
        return list_form(left or self.online)

    @property
    def hypervisor(self) -> str | None:
        """Its name, None on bare hardware; raises Unknown."""
        if "hypervisor" not in self._profile or self.reason("hypervisor"):
            raise Unknown("whether there is a hypervisor is not known")
        name = self._profile["hypervisor"]
        return None if name is None else str(name)

    def interrupt_threads(self) -> list[Mapping[str, Any]]:
        """Raises Unknown where no thread of the kernel is seen, as in a container."""
        self.require_all_tasks()
        return list(self.need("interrupt_threads"))

    def require_all_tasks(self) -> None:
        """Raises Unknown where no thread of the kernel is seen: other tasks may be there unseen too."""
        if not self.need("interrupt_threads"):
            raise Unknown("no thread of the kernel can be seen here, so that other tasks may be hidden too")

    @property
    def real_time_kernel(self) -> bool:
        return str(self.need("kernel", "preemption")) == "preempt-rt"

    @property
    def x86(self) -> bool:
        return str(self.need("cpu", "architecture")) in ("x86_64", "i686", "i586")


def as_cpus(text: object) -> set[int]:
    """CPUs out of the kernel's list form; none of what is no list, as ``(null)``."""
    said = str(text or "").strip()
    return set(cpu_list(said)) if re.fullmatch(r"\d[\d,-]*", said) else set()


def as_mask(text: object) -> set[int]:
    """CPUs out of a mask in hexadecimal; raises Unknown."""
    try:
        bits = int(str(text).replace(",", ""), 16)
    except ValueError as error:
        raise Unknown(f"{ascii(text)[:40]} is no mask of CPUs") from error
    return {cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1}
