# SPDX-License-Identifier: GPL-2.0-or-later
"""Causes without the numbers that differ between boards."""

from __future__ import annotations

import pytest

from fastenough.recording.culprits import general_cause


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("task kworker/0:1", "task kworker/*"),
        ("task kworker/12:0H", "task kworker/*H"),
        ("task kworker/0:1-events", "task kworker/*-events"),
        ("task kworker/0:1H-kblockd", "task kworker/*H-kblockd"),
        ("task kworker/u8:1", "task kworker/u*"),
        ("task kworker/u8:1-events", "task kworker/u*-events"),
        ("task kworker/u16:3+flush-8:0", "task kworker/u*-flush-8:0"),
        ("task kworker/R-rcu_gp", "task kworker/R-rcu_gp"),
        ("task ksoftirqd/0", "task ksoftirqd/*"),
        ("task migration/1", "task migration/*"),
        ("task cpuhp/2", "task cpuhp/*"),
        ("task rcuc/1", "task rcuc/*"),
        ("task irq/23-eth0", "task irq/*-eth0"),
        ("task irq/23-s-eth0", "task irq/*-s-eth0"),
        ("task irq/27", "task irq/*"),
        ("task valve 7", "task valve 7"),
        ("task axis/1", "task axis/1"),
        ("task mmcqd/0", "task mmcqd/0"),
        ("task jbd2/sda1-8", "task jbd2/sda1-8"),
        ("task kworker/x", "task kworker/x"),
        ("interrupt nvme0q1/3", "interrupt nvme0q1/3"),
        ("soft-IRQ timer", "soft-IRQ timer"),
        ("the task itself (overrun)", "the task itself (overrun)"),
    ],
)
def test_numbers_of_cpus_workers_and_interrupts_are_no_part_of_a_cause(cause: str, expected: str) -> None:
    assert general_cause(cause) == expected
    assert general_cause(expected) == expected
