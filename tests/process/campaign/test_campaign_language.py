# SPDX-License-Identifier: GPL-2.0-or-later
"""The one language of plans: every key is documented, old plans are told what to change, no option is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastenough.board import AS_BOOTED, open_board
from fastenough.board.configuration import ConfigurationChange
from fastenough.campaign import expand, read_plan
from fastenough.campaign.load_file import LOAD_KEYS
from fastenough.campaign.plan_file import CONFIGURATION_KEYS, PIN_KEYS, PLAN_KEYS, REQUIREMENT_KEYS, RUN_KEYS
from fastenough.campaign.runner import on_board, with_configurations
from fastenough.campaign.stop import StopRequest
from fastenough.model import BadInput, Requirement
from tests.support.cli_calls import fastenough

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "plans.md").read_text()
SECTIONS = {title: body for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)}
KEYS = (
    [("The file", key) for key in PLAN_KEYS]
    + [("`[[run]]`", key) for key in RUN_KEYS]
    + [("`requirement`", key) for key in REQUIREMENT_KEYS]
    + [("`[[configuration]]`", key) for key in CONFIGURATION_KEYS]
    + [("`[pins]`", key) for key in PIN_KEYS]
    + [("`[[load]]`", key) for key in LOAD_KEYS]
)


def _plan(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_every_key_is_documented(section: str, key: str) -> None:
    assert re.search(rf"^\| `\[*{key}\]*` \|", SECTIONS[section], re.MULTILINE)


@pytest.mark.parametrize("section", dict.fromkeys(section for section, _ in KEYS))
def test_every_documented_key_is_read(section: str) -> None:
    told = re.findall(r"^\| `\[*([a-z-]+)\]*` \|", SECTIONS[section], re.MULTILINE)
    assert told == [key for where, key in KEYS if where == section]


def test_the_plan_shown_is_a_plan(tmp_path: Path) -> None:
    of_requirement, of_configuration, shown = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (spec,) = expand(read_plan(_plan(tmp_path, HEAD + of_requirement)))
    assert spec.requirement == Requirement(100_000, 1e-6)
    plan = read_plan(_plan(tmp_path, HEAD + of_configuration + RUN))
    assert plan.changes["rt"] == ConfigurationChange(("grub-reboot", "1>2"), "*-rt-*")
    head = 'name = "x"\nboard = "virtual"\ninstrument = "simulated"\nconfigurations = ["stock"]\n'
    (spec,) = expand(read_plan(_plan(tmp_path, head + shown)))
    assert (spec.probe, spec.parameters["max"]) == ("response", "7071us")


def test_a_guests_kernel_may_have_arguments_behind_it(tmp_path: Path) -> None:
    named = ["rt skew_tick=1 nohz=off", "rt"]
    text = f'{HEAD}board = "virtual"\nconfigurations = {named}\n{RUN}'.replace("'", '"')
    assert [spec.configuration for spec in expand(read_plan(_plan(tmp_path, text)))] == named


def test_boards_configurations_and_implementations_are_combined(tmp_path: Path) -> None:
    specs = expand(
        read_plan(
            _plan(
                tmp_path,
                """
name = "x"
boards = ["virtual", "virtual:rt"]
configurations = ["rt"]
loads = ["none", "cpu"]
warm-up = "5s"
repeat = 2
[[run]]
probe = "timer"
[[run]]
probe = "timer"
parameters = {method = "kernel-thread"}
implementations = ["linux-kernel"]
loads = ["none"]
repeat = 1
""",
            )
        )
    )
    assert [(spec.board, spec.probe, spec.implementation, spec.load) for spec in specs[:5]] == [
        ("virtual", "timer", "linux-user", "none"),
        ("virtual", "timer", "linux-user", "cpu"),
        ("virtual", "timer", "linux-user", "none"),
        ("virtual", "timer", "linux-user", "cpu"),
        ("virtual", "timer", "linux-kernel", "none"),
    ]
    assert [spec.board for spec in specs] == ["virtual"] * 5 + ["virtual:rt"] * 5
    assert {spec.warm_up_s for spec in specs} == {5.0}


HEAD = 'name = "x"\n'
RUN = '[[run]]\nprobe = "timer"\n'
SIMULATED = 'instrument = "simulated"\nboard = "virtual"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + SIMULATED + '[response]\nmin = "3us"\n', r"plan.toml:4: \[response\] is no longer supported"),
        (HEAD + 'instrument = "simulated"\n' + RUN, "plan.toml:2: the simulated gauge needs a board"),
        (HEAD + SIMULATED + RUN, "plan.toml:2: the simulated gauge needs a board that the plan boots"),
        (
            HEAD + SIMULATED + 'configurations = ["stock"]\n' + RUN,
            "plan.toml:5: run 1: probe timer cannot be measured by",
        ),
        (HEAD + 'board = "moon"\n' + RUN, "plan.toml:2: board: unknown board 'moon'"),
        (HEAD + 'board = "local"\nboards = ["local"]\n' + RUN, "plan.toml:2: board and boards are mutually exclusive"),
        (HEAD + '[[configuration]]\nname = "b"\n' + RUN, "plan.toml:3: configuration 1: name 'b' is not a config"),
        (
            HEAD + '[[configuration]]\nname = "as-booted"\nselect = "a"\n' + RUN,
            "plan.toml:4: configuration 1: select = ",
        ),
        (HEAD + f'title = "{"x" * 121}"\n' + RUN, "plan.toml:2: title has 121 characters; shorten it to at most 120"),
        (
            HEAD + 'board = "virtual"\nconfigurations = ["a"]\n' + RUN,
            "plan.toml:3: configurations: board virtual has no",
        ),
        (
            HEAD + 'board = "virtual"\nconfigurations = ["as-booted a=b"]\n' + RUN,
            "plan.toml:3: configurations: board v",
        ),
        (
            HEAD + RUN + 'implementations = ["moon-user"]\n',
            "plan.toml:4: run 1: implementations: unknown value 'moon-user'",
        ),
        (HEAD + 'self-test = "a"\n' + RUN, "plan.toml:2: self-test requires a gauge"),
        (HEAD + "[pins]\nchip = 'a'\nin = 1\nout = 1\n" + RUN, "plan.toml:4: .pins.: in and out must be differ"),
        (HEAD + "[pins]\nchip = 'a'\nin = -1\nout = 1\n" + RUN, "plan.toml:4: .pins.: in must be at least 0"),
        (HEAD + "[pins]\nchip = 'a'\nin = 1\nout = 2\n" + RUN, "plan.toml:2: .pins. is not used"),
        (
            HEAD + '[[configuration]]\nname = "as-booted"\nkernel = "6*"\n' * 2 + RUN,
            "plan.toml:6: configuration 2: configuration as-booted has two tables",
        ),
        (
            HEAD + '[[load]]\nname = "mine"\ncommands = [["a"]]\n' * 2 + RUN,
            "plan.toml:6: load 2: load mine is defined twice",
        ),
        (HEAD + RUN + "\n" + RUN + "\n\nrepat = 2\n", "plan.toml:9: run 2: unknown key 'repat'; use probe"),
        (
            HEAD + RUN + '[run.parameters]\ninterval = [\n"1ms",\n{}]\n',
            "plan.toml:5: run 1: parameters: interval must be",
        ),
        (HEAD + RUN + "requirement = 5\n", "plan.toml:4: run 1: requirement = 5 is invalid"),
        (HEAD + RUN + "requirement = {}\n", 'plan.toml:4: requirement: limit is missing; add limit = "100us"'),
        (HEAD + RUN + 'requirement = {limit = "100"}\n', "plan.toml:4: run 1: requirement: '100' is no duration"),
        (
            HEAD + RUN + 'requirement = {limit = "1ms", miss-rate = 1}\n',
            "plan.toml:4: run 1: requirement: the miss rate",
        ),
        (
            HEAD + RUN + 'requirement = {limit = "1ms", confidence = "much"}\n',
            "plan.toml:4: requirement: confidence: 'mu",
        ),
        (HEAD + RUN + 'requirement = {limit = "1ms", rate = 1}\n', "plan.toml:4: requirement: unknown key 'rate'"),
    ],
    ids=range(26),
)
def test_what_cannot_be_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = _plan(tmp_path, text)
    with pytest.raises(BadInput, match=said) as caught:
        read_plan(path)
    assert "\n" not in str(caught.value)


def _unasked(board: str, configuration: str, why: str) -> None:
    raise AssertionError(f"{board} {configuration} {why}")


@pytest.mark.parametrize("board", ["", 'board = "virtual"\n'])
def test_how_a_board_is_changed_that_boots_by_itself_is_refused(tmp_path: Path, board: str) -> None:
    """Its kernel would not be compared with the pattern.  Also with the board of the command."""
    changes = 'configurations = ["rt"]\n[[configuration]]\nname = "rt"\nkernel = "9*"\n'
    plan = on_board(read_plan(_plan(tmp_path, HEAD + board + changes + RUN)), "virtual")
    with pytest.raises(BadInput, match=r"plan.toml:.: board virtual boots its configurations by itself"):
        with_configurations(plan, open_board, _unasked, {}, StopRequest().sleep)("virtual")


@pytest.mark.parametrize("other", ["virtual:rt", "ssh://b"])
def test_configuration_tables_of_several_boards_need_one_that_is_changed(tmp_path: Path, other: str) -> None:
    changes = 'configurations = ["rt"]\n[[configuration]]\nname = "rt"\nkernel = "9*"\n'
    plan = read_plan(_plan(tmp_path, HEAD + f'boards = ["virtual", "{other}"]\n' + changes + RUN))
    of = with_configurations(plan, open_board, _unasked, {}, StopRequest().sleep)
    if other == "ssh://b":
        assert of("virtual").configurations() != (AS_BOOTED,)
    else:
        with pytest.raises(BadInput, match="virtual boots its configurations by itself"):
            of("virtual")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "none"), b"--load cannot be used with --plan"),
        (("--duration", "1s"), b"--duration cannot be used with --plan"),
        (("--implementation", "linux-user"), b"--implementation cannot be used with --plan"),
        (("--configuration", "rt"), b"--configuration cannot be used with --plan"),
        (("--board", "virtual"), b"the plan names its own board (local)"),
        (("timer", "interval=1ms"), b"give either a probe or a plan"),
    ],
)
def test_what_the_plan_says_cannot_be_said_beside_it(tmp_path: Path, words: tuple[str, ...], said: bytes) -> None:
    _plan(tmp_path, HEAD + 'board = "local"\n' + RUN)
    ended = fastenough("run", "--plan", "plan.toml", *words, cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (2, 1)
    assert said in ended.stderr
    assert not (tmp_path / "fastenough-data").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('parameters = {interval = "1ms", priority = 98, burst = 3}', b"plan.toml:4: run 1: probe timer has no"),
        (
            'implementations = ["linux-kernel"]\nparameters = {method = "ppoll"}',
            b":5: run 1: linux-kernel does not support method=ppoll",
        ),
        ('implementations = ["linux-kernel"]\nparameters = {burst = 3}', b":5: run 1: linux-kernel has no parameter"),
    ],
)
def test_what_an_implementation_cannot_do_is_told_before_anything(
    tmp_path: Path, probe_binary: str, more: str, said: bytes
) -> None:
    _plan(tmp_path, HEAD + RUN + more + "\n")
    ended = fastenough("run", "--plan", "plan.toml", cwd=tmp_path)
    assert ended.returncode == 2 and said in ended.stderr, ended.stderr
    assert not (tmp_path / "fastenough-data").exists()
