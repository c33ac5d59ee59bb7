# SPDX-License-Identifier: GPL-2.0-or-later
"""One vocabulary: the same parameters in the words of each implementation, and in those of a recording's head."""

from __future__ import annotations

import pytest

from fastenough.campaign.acts import board_parameters, board_value_lists, instrument_request
from fastenough.campaign.expand import RunSpec
from fastenough.implementations import Act, Value, find_implementation, linux_kernel, linux_user, vocabulary
from fastenough.model import BadInput

RESPONSE = Act("response", {"chip": "gpio", "in": 1, "out": 2, "affinity": 3, "report": "500ms"})


def test_the_probe_and_the_module_are_told_the_same() -> None:
    assert linux_user.probe_arguments(RESPONSE) == [
        "response",
        "--chip=gpio",
        "--in=1",
        "--out=2",
        "--affinity=3",
        "--report=500ms",
        "--until-interrupt",
        "--record=-",
    ]
    assert (
        linux_kernel.insmod_arguments("/m.ko", RESPONSE) == "/m.ko task=response chip=gpio in_line=1 out_line=2 cpu=3"
    )
    thread = Act("timer", {"method": "kernel-thread", "interval": "1ms", "priority": 90}, 1.5)
    assert linux_kernel.insmod_arguments("/m.ko", thread) == "/m.ko task=timer-thread priority=90 period_ns=1000000"
    spin = Act("spin", {"width": "5ms", "window": "20ms", "affinity": 1}, 1.5)
    assert linux_kernel.insmod_arguments("/m.ko", spin) == "/m.ko task=spin cpu=1 width_ns=5000000 window_ns=20000000"
    assert linux_user.how_long(thread) == "--duration=1500ms"


def test_what_a_recording_says() -> None:
    assert vocabulary({"interval": "200us", "allow-difference": True, "in": 1, "method": "ppoll"}) == {
        "interval_ns": 200_000,
        "allow_difference": True,
        "in": 1,
        "method": "ppoll",
    }


def test_a_period_is_two_toggles() -> None:
    asked: dict[str, str | int | float | bool] = {"period": "7071us", "timeout": "1s", "priority": 90}
    assert board_parameters("periodic", asked, by_instrument=True) == {"priority": 90, "interval": "3535500ns"}
    assert board_parameters("periodic", asked, by_instrument=False) == asked
    assert board_parameters("response", {"min": "1ms", "max": "2ms", "in": 3}, by_instrument=True) == {"in": 3}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"period": "7071ns"}, "even number"),
        ({"period": "1s", "timeout": "1s"}, "longer than the period"),
        ({"period": 5}, "period: '5' is no duration"),
    ],
)
def test_periods_that_no_instrument_measures(parameters: dict[str, str | int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        instrument_request("periodic", parameters)


def test_spin_in_the_kernel_has_no_priority() -> None:
    kernel = find_implementation("linux-kernel")
    kernel.check("spin", {"width": ("5ms",), "report": ("1s",)}, {})
    with pytest.raises(BadInput, match="no parameter 'priority' for probe spin; use affinity, width, window, report"):
        kernel.check("spin", {"priority": (98,)}, {})


@pytest.mark.parametrize("name", ["linux-kernel", "xenomai-kernel", "evl-kernel"])
@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("priority", (98, 100)),
        ("priority", (0,)),
        ("priority", ("high",)),
        ("interval", ("1ms", "1us")),
        ("interval", ("2s",)),
        ("interval", ("200",)),
        ("affinity", ("x",)),
        ("affinity", (True,)),
    ],
)
def test_a_module_is_asked_for_nothing_that_it_refuses(name: str, parameter: str, values: tuple[Value, ...]) -> None:
    kernel = find_implementation(name)
    kernel.check("timer", {"priority": (1, 99), "interval": ("20us", "1s"), "affinity": (3,)}, {})
    with pytest.raises(BadInput, match=f"{parameter}(=|:)"):
        kernel.check("timer", {parameter: values}, {})


@pytest.mark.parametrize(("parameter", "value"), [("width", "999us"), ("width", "1s"), ("window", "2s")])
def test_spin_in_the_kernel_has_its_widths(parameter: str, value: str) -> None:
    with pytest.raises(BadInput, match=f"{parameter}={value} is out of range"):
        find_implementation("linux-kernel").check("spin", {parameter: (value,)}, {})


def test_the_warm_up_is_part_of_the_time_that_a_run_takes() -> None:
    assert RunSpec(0, "timer", {"warm-up": "90s"}, "none", 10.0, warm_up_s=2.0).whole_s == 102.0
    assert RunSpec(0, "timer", {}, "none", 10.0, warm_up_s=2.0).whole_s == 12.0
    with pytest.raises(BadInput, match="is not supported with an instrument"):
        board_value_lists("response", {"warm-up": ("1s",)}, by_instrument=True)


def test_an_implementation_that_there_is_not() -> None:
    with pytest.raises(BadInput, match="use one of linux-user, linux-kernel"):
        find_implementation("moon-user")
