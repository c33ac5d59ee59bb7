# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that the kernel samples, clears or fills for safety."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Change, Group, Seen, Severity, boot, build, costs, fine

_INTERVAL = "kfence.sample_interval"
_FILLED = {
    "init_on_alloc": ("INIT_ON_ALLOC_DEFAULT_ON", "memory is cleared as it is given"),
    "init_on_free": ("INIT_ON_FREE_DEFAULT_ON", "memory is cleared as it is given back"),
    "page_poison": ("", "pages are filled as they are given back"),
}
"""Arguments of the boot line, each with the option that it overrules, and what it does."""
_NO = ("0", "n", "no", "off")


def _sampled_ms(facts: Facts) -> str:
    """How often KFENCE samples an allocation; "0" where it does not."""
    if facts.option("KFENCE") != "y":
        return "0"
    return facts.arguments.get(_INTERVAL, facts.option("KFENCE_SAMPLE_INTERVAL"))


def _does(facts: Facts, argument: str, option: str) -> bool:
    built_in = bool(option) and facts.option(option) == "y"
    if argument == "page_poison" and facts.option("PAGE_POISONING") != "y":
        return False
    return facts.arguments[argument].lower() not in _NO if argument in facts.arguments else built_in


def _look(facts: Facts) -> Seen:
    said: list[str] = []
    changes: list[Change] = []
    sampled_ms = _sampled_ms(facts)
    by_interrupt = facts.option("KFENCE_STATIC_KEYS") == "y" and sampled_ms != "0"
    if sampled_ms != "0":
        said.append(
            f"KFENCE samples an allocation every {sampled_ms} ms"
            + (", and interrupts every CPU for it" if by_interrupt else "")
        )
        changes += [boot(f"{_INTERVAL}=0"), *([build("CONFIG_KFENCE_STATIC_KEYS=n")] if by_interrupt else [])]
    for argument, (option, does) in _FILLED.items():
        if _does(facts, argument, option):
            said.append(does)
            changes.append(boot(f"{argument}=0"))
    if not said:
        return fine("none of it")
    return costs("; ".join(said), *changes, severity=Severity.MEDIUM if by_interrupt else None)


CHECK = Check(
    "memory-hardening",
    "memory sampled or cleared for safety",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="What the kernel allocates is written once more, in paths that a real-time task waits for; KFENCE with static "
    "branches patches code at each sample, which interrupts all CPUs.",
    source="kernel: lib/Kconfig.kfence (KFENCE_STATIC_KEYS), security/Kconfig.hardening; kernel-hardening-checker "
    "recommends what is found here",
    elsewhere="security: what a defect leaves in memory can be read or used",
)
