# SPDX-License-Identifier: GPL-2.0-or-later
"""Which pending alerts a receiver gets at a check, and which conditions end."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event

from fastenough.farm.alerts import Alerting, Observation, Receiver, note_observations, pending, under_way
from fastenough.history import History, declare, requirement_text
from fastenough.history.tail import TailWatch
from fastenough.model import Requirement

pytestmark = pytest.mark.check
BOARDS = [f"b{number:02}" for number in range(30)]
RECEIVER = Receiver("http://127.0.0.1:9/hook", False)


@dataclass
class Hook:
    """Stands in for the connection to a webhook.  ``answers``: its status by board, else 200."""

    answers: dict[str, int] = field(default_factory=dict)
    got: list[str] = field(default_factory=list)

    def __call__(self, *_: object, **__: object) -> Hook:
        return self

    def request(self, _method: str, _path: str, body: bytes, _headers: object) -> None:
        self.got.append(json.loads(body)["board"])

    def getresponse(self) -> Any:
        return SimpleNamespace(status=self.answers.get(self.got[-1], 200))

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Hook:
    made = Hook()
    monkeypatch.setattr(http.client, "HTTPConnection", made)
    return made


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    for board in BOARDS:
        declare(opened, board)
    yield opened
    opened.close()


@pytest.fixture
def sender(history: History) -> Alerting:
    made = Alerting(history, [RECEIVER], TailWatch(BOARDS, 1.0))
    note_observations(history, set(BOARDS), [Observation(name, "maximum", "1", 1, name) for name in BOARDS], [], 1)
    return made


@pytest.mark.parametrize("status", [401, 403, 404, 410, 500])
def test_a_receiver_that_accepts_no_alert_gets_one_per_check(sender: Alerting, hook: Hook, status: int) -> None:
    hook.answers = dict.fromkeys(BOARDS, status)
    for _ in range(2):
        (fault,) = sender._send(RECEIVER, 60)
        assert str(status) in fault
    assert hook.got == BOARDS[:1] * 2


@pytest.mark.parametrize("status", [400, 413, 422])
def test_refused_alerts_are_few_per_check_and_delay_no_other(sender: Alerting, hook: Hook, status: int) -> None:
    hook.answers = dict.fromkeys(BOARDS[:25], status)
    counts = []
    for _ in range(4):
        assert len(list(sender._send(RECEIVER, 60))) == 1
        counts.append(len(hook.got))
    assert counts == [10, 20, 35, 45]
    assert set(hook.got) == set(BOARDS)
    hook.answers = {}
    assert list(sender._send(RECEIVER, 120)) == []
    assert len(hook.got) == 45 + 25


@pytest.mark.parametrize("end", [{"verdict": "PASS", "verdict_reason": ""}, {"state": "retired"}, {"limit_ns": None}])
def test_the_fail_of_a_board_ends_only_by_a_verdict_on_its_present_requirement(
    sender: Alerting, hook: Hook, end: Any
) -> None:
    """After an upgrade, or a change of its limit, the last verdict is on another one."""
    history, board = sender._history, BOARDS[0]

    def fails() -> bool:
        sender._observe(100)
        assert list(sender._send(RECEIVER, 100)) == []
        return "fail" in {alert.observation.kind for alert in under_way(history, RECEIVER.id, {board})}

    judged_by, other = (requirement_text(Requirement(limit_ns)) for limit_ns in (1000, 2000))
    declare(history, board, verdict="FAIL", verdict_reason="late", judged_by=judged_by, limit_ns=1000)
    assert fails()
    sent = len(hook.got)
    declare(history, board, judged_by="")
    assert fails()
    declare(history, board, judged_by=judged_by, limit_ns=2000)
    assert fails()
    declare(history, board, judged_by=other)
    assert fails()
    assert len(hook.got) == sent
    declare(history, board, **end)
    assert not fails()


def test_alerts_of_other_farms_are_not_fetched(sender: Alerting) -> None:
    statements: list[str] = []
    event.listen(sender._history.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert [alert.observation.board for alert in pending(sender._history, RECEIVER.id, {"b01"})] == ["b01"]
    begins = [statement for statement in statements if "FROM alert" in statement and "ended_s IS NOT" not in statement]
    assert len(begins) == 1 and "alert.board IN" in begins[0]
