# SPDX-License-Identifier: GPL-2.0-or-later
"""The bound on a real kernel that has the events: one of the user's own, since no kernel of Debian's has them."""

from __future__ import annotations

import gzip

import pytest

from fastenough.jobs.bound import bounds_of, recorded
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import find_kernel, registered_names
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.probe import PROBE, install
from tests.support.presence import present
from tests.support.virtual_boards import BOOT_S

pytestmark = pytest.mark.untimed

_EVENTS = b"\0preemptirq\0"
"""The name of their group, as a kernel's image holds it that was built with them."""
_SECONDS = 2.0


def _has_events(kernel: Kernel) -> bool:
    content = kernel.image.read_bytes()
    return _EVENTS in (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)


@pytest.mark.matrix
def test_no_wake_up_is_later_than_the_bound_of_its_own_trace() -> None:
    name = next((name for name in registered_names() if _has_events(find_kernel(name))), "")
    if not name:
        pytest.skip(
            "no kernel of one's own has preemptirq events: build one with CONFIG_PREEMPT_TRACER=y "
            "CONFIG_IRQSOFF_TRACER=y, then: fastenough bench up --kernel NAME --image FILE"
        )
    with VirtualBoard(name, boot_timeout_s=BOOT_S, snapshot=False) as board:
        install(board.link)
        task = board.link.start([PROBE, "timer", "--interval", "5ms", "--priority", "90", "-D", "60s", "-q"])
        try:
            found = bounds_of(recorded(board.link, _SECONDS))
        finally:
            task.stop()
        assert board.link.run(["ls", "/sys/kernel/tracing/instances"]).text == "", "nothing of it is left"
    woken = [one for one in found if one.traced.wakeups]
    assert woken
    for one in woken:
        careful = [each.latency_ns for each in one.bounds if each.interrupts.startswith(("each kind", "the fullest"))]
        assert one.traced.sections and one.traced.switches
        observed_ns = present(one.traced.observed_ns, "observed latency")
        assert all(bound_ns is None or observed_ns <= bound_ns for bound_ns in careful), one
