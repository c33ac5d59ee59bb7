# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong input to the probe: one line that says what is wrong and how to fix it, status 2, nothing left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.units import parse_duration_ns
from tests.support.privileges import needs_root

pytestmark = pytest.mark.untimed

WRONG = {
    "": "name a probe",
    "nosuch": "unknown probe 'nosuch'",
    "timer --bogus": "unknown option --bogus",
    "timer -Z": "unknown option -Z",
    "timer stray": "'stray' is not an option",
    "timer -D": "a value is missing",
    "timer -i 5parsecs": "'5parsecs' is not a time",
    "timer -i 1e3": "is not a time",
    "timer -i -5": "is not a time",
    "timer -i 0": "out of range",
    "timer -i 4us": "out of range",
    "timer -i 11s": "out of range",
    "timer -D 0": "out of range",
    "timer -D 99999999999999999999s": "is not a time",
    "timer -p 0": "choose 1 to 99",
    "timer -p 100": "choose 1 to 99",
    "timer -p high": "'high' is not a whole number",
    "timer -l -1": "out of range",
    "timer -t 0": "out of range",
    "timer -a 4095": "there is no CPU 4095",
    "timer -a 0-": "is not a list of CPUs",
    "timer -a 1,,2": "is not a list of CPUs",
    "timer --affinity=two": "is not a list of CPUs",
    "timer --policy=sporadic": "choose one of fifo, rr, deadline, other",
    "timer --method=sleep": "choose one of clock_nanosleep-abs",
    "timer -c 7": "choose one of monotonic, realtime",
    "timer --quiet=yes": "takes no value",
    "timer --policy other -p 5": "--priority has no effect",
    "timer --runtime 10us": "for --policy deadline",
    "timer --latency -5": "neither a number of us nor off",
    "timer --method setitimer -t 2": "only one",
    "timer --method ppoll -c realtime -a 0": "supports only the monotonic clock",
    "timer --json --record -": "both use standard output",
    "timer --record=": "not empty",
    "timer --record /nonexistent/x --policy other --allow-difference": "cannot write the recording",
    "timer --record . --policy other --allow-difference": "cannot write the recording",
    "spin --width 2s": "out of range",
    "spin --width 15ms --window 20ms": "half of each window",
    "spin --policy deadline": "spin supports fifo, rr and other",
    "spin --report 2m": "shorter --report",
}


def _refused(arguments: list[str], directory: Path) -> str:
    """The one line the probe refuses these arguments with."""
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("fastenough-probe: ")
    assert list(directory.iterdir()) == []
    return done.stderr


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_usage(probe_binary: str, tmp_path: Path, arguments: str) -> None:
    words = arguments.split()
    record = [] if "--record" in arguments or not words else ["--record", "left-behind"]
    assert WRONG[arguments] in _refused([probe_binary, *words[:1], *record, *words[1:]], tmp_path)


@needs_root("it becomes another user")
def test_without_the_right_to_real_time(probe_binary: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    for directory in [Path(probe_binary).parent, *Path(probe_binary).parents]:
        if not directory.stat().st_mode & 0o001:
            pytest.skip("the probe lies where nobody else may run it")
    error = _refused([*nobody, probe_binary, "timer", "-D", "100ms", "--record", "left-behind"], tmp_path)
    assert "policy fifo is refused" in error and "run as root" in error


def test_a_recording_is_never_overwritten(probe_binary: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("precious\n")
    done = subprocess.run(
        [probe_binary, "timer", "-D", "100ms", "--allow-difference", "--record", str(kept)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2 and "exists already" in done.stderr
    assert kept.read_text() == "precious\n"


def test_help_knows_every_probe_and_option(probe_binary: str) -> None:
    def said(*arguments: str) -> str:
        return subprocess.run([probe_binary, *arguments], capture_output=True, text=True, check=True, timeout=20).stdout

    names = [line.split()[0] for line in said("--list").splitlines()]
    assert {"timer", "spin"} <= set(names)
    for name in names:
        helped = said(name, "--help")
        assert "--duration" in helped and "--record" in helped
    assert all(f"--{option}" in said("timer", "--help") for option in ("method", "clock", "distance", "offset"))


def test_every_unit_of_a_plan_is_one_of_the_probe(probe_binary: str, tmp_path: Path) -> None:
    """A plan's times reach it as they are written."""
    with pytest.raises(ValueError, match="units: ") as caught:
        parse_duration_ns("1 parsec")
    units = str(caught.value).partition("units: ")[2].rstrip(")").split(", ")
    assert {"us", "min", "d"} <= set(units)
    for unit in units:
        assert "unknown option --bogus" in _refused([probe_binary, "timer", f"--warm-up=1{unit}", "--bogus"], tmp_path)
