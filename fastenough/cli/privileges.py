# SPDX-License-Identifier: GPL-2.0-or-later
"""Rights to measure, granted already or through sudo, and access to a board."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from fastenough.board import AS_BOOTED, Board, open_board
from fastenough.board.local import LocalBoard
from fastenough.campaign import Plan, expand
from fastenough.campaign.plan import BREAK, BY_KERNEL, GPIO_PROBES
from fastenough.files import Untrusted
from fastenough.implementations import DEFAULT, Act
from fastenough.implementations.linux_user import probe_arguments
from fastenough.link import Link, LocalLink, find_probe
from fastenough.link.local import SudoLink, may_sudo
from fastenough.model import BadInput, ExitStatus

ALLOWED = "allow-difference"
"""The probe parameter that --as-granted sets."""
_GRANTED_BY = ("policy", "priority", "latency", "default-system")
DMA_LATENCY = "/dev/cpu_dma_latency"
LOCAL = "local"
_TRIAL = ("--interval=1ms", "--duration=20ms")

as_granted_option = click.option(
    "--as-granted",
    is_flag=True,
    help="Measure without root. Runs whose real-time settings were not fully applied cannot PASS.",
)


def boards_for(plan: Plan, as_granted: bool, tell: Callable[[str], None]) -> tuple[Callable[[str], Board], Plan]:
    """A function that opens the plan's boards with the rights that the plan needs, and the plan to measure with.

    Raises BadInput if the rights are missing; its note has the commands that grant them to an ordinary user.
    """
    if as_granted:
        tell(
            "measuring with the rights of this user: runs whose real-time settings are not fully applied are marked "
            "not-real-time and cannot PASS"
        )
        return open_board, _allowing(plan)
    if plan.boards and LOCAL not in plan.boards:
        return open_board, plan
    link, root = LocalLink(), os.geteuid() == 0
    lacking = refusal(link, plan)
    if lacking is None and (root or not _needs_root(plan)):
        return open_board, plan
    if not root and may_sudo():
        tell("not root: the probe and the settings run through sudo; loads run as this user, who owns all files")
        return lambda name: LocalBoard(SudoLink()) if name == LOCAL else open_board(name), plan
    if lacking is not None:
        refused = BadInput(
            f"not granted: {lacking}; grant it{'' if root else ' as shown above'}, or measure without it: --as-granted"
        )
        if not root:
            refused.add_note(how_to_grant())
        raise refused
    return open_board, plan


def _needs_root(plan: Plan) -> bool:
    """Whether the plan changes the board: settings, a module, pin directions, a trace."""
    return bool(plan.settings) or any(
        entry.probe in {**GPIO_PROBES, **BY_KERNEL}
        or BREAK in entry.parameters
        or set(entry.implementations) != {DEFAULT}
        for entry in plan.entries
    )


def refusal(link: Link, plan: Plan) -> str | None:
    """The right that the plan's probes request and the board refuses to this user; None if none is refused."""
    trials = {
        tuple(sorted((name, spec.parameters[name]) for name in _GRANTED_BY if name in spec.parameters)): spec
        for spec in reversed(expand(plan))
        if ALLOWED not in spec.parameters and spec.implementation == DEFAULT
    }
    probe = find_probe(link)
    for parameters in trials:
        completed = link.run([probe, *probe_arguments(Act("timer", dict(parameters))), *_TRIAL])
        message = completed.stderr.decode(errors="replace").strip()
        if completed.status == ExitStatus.BAD_INPUT and ALLOWED in message:
            return message.removeprefix("fastenough-probe: ").partition(" (or measure")[0]
    return None


def how_to_grant() -> str:
    """Commands for root that grant the rights, ready to paste."""
    name = _user()
    lines = [
        f"printf '%s\\n' '{name} - rtprio 99' '{name} - memlock unlimited' '{name} - nice -20' "
        "| sudo tee /etc/security/limits.d/fastenough.conf   # and log in again",
    ]
    if os.path.exists(DMA_LATENCY) and not os.access(DMA_LATENCY, os.W_OK):  # noqa: PTH110 - as os.access
        lines.append(
            f'echo \'KERNEL=="cpu_dma_latency", OWNER="{name}", MODE="0600"\' '
            "| sudo tee /etc/udev/rules.d/70-fastenough.rules && sudo udevadm control --reload "
            f"&& sudo udevadm trigger {DMA_LATENCY}"
        )
    return "\n".join(lines)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}:{os.geteuid()}"


def _allowing(plan: Plan) -> Plan:
    return replace(
        plan, entries=tuple(replace(entry, parameters={**entry.parameters, ALLOWED: (True,)}) for entry in plan.entries)
    )


@contextmanager
def accessed_board(board: str, configuration: str = AS_BOOTED) -> Iterator[tuple[Link, str]]:
    """A link to the board, and why sudo is not used on it, or an empty text.

    This machine needs no probe for that.
    """
    if board == LOCAL:
        yield _own_machine()
        return
    with open_board(board).boot(configuration) as booted:
        yield booted.link, ""


def _own_machine() -> tuple[Link, str]:
    """Through sudo if runs will use sudo; the text says why sudo is refused."""
    if os.geteuid() == 0:
        return LocalLink(), ""
    try:
        return (SudoLink() if may_sudo() else LocalLink()), ""
    except Untrusted as reason:
        return LocalLink(), str(reason)
