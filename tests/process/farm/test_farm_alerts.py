# SPDX-License-Identifier: GPL-2.0-or-later
"""Alerts: one for each thing that happens, sent until it is accepted, whatever is killed in between."""

from __future__ import annotations

import http.server
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert, select, update

from fastenough.cli.farm_alert import WEBHOOK_SETTING, command
from fastenough.farm.alerts import ALERT, Alerting, Receiver, create_tables, mark_accepted, pending
from fastenough.history import History, catch_up, declare, disown, ingest, note_refused, rebuild, requirement_text
from fastenough.history.schema import BOARD, CHANGE, CYCLE_S, HOUR
from fastenough.history.tail import TAIL, TailWatch
from fastenough.model import BadInput, ExitStatus, Requirement
from tests.support.cli_calls import environment
from tests.support.farm_data import END_S, INJECTED_NS, LIMIT_NS, FarmData, make_store
from tests.unit.history.test_history_tail import cycles, give_cycles

JUDGED_BY = requirement_text(Requirement(LIMIT_NS))

pytestmark = pytest.mark.machines


@dataclass
class Listener:
    """A receiver on loopback.  ``answer``: the status it gives; 0: it closes the connection instead; ``refuses``: the
    board whose alerts it answers with 400."""

    server: http.server.ThreadingHTTPServer
    got: list[tuple[str, Any]] = field(default_factory=list)
    answer: int = 200
    refuses: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def told(self) -> list[dict[str, Any]]:
        return [message for _, body in self.got for message in (body if isinstance(body, list) else [body])]


@pytest.fixture
def listener() -> Iterator[Listener]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if found.answer == 0:
                self.close_connection = True
                return
            refused = not isinstance(body, list) and body["board"] == found.refuses
            if found.answer < 300 and not refused:
                found.got.append((self.path, body))
            self.send_response(400 if refused else found.answer)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing on the terminal."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Listener(server)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield found
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[FarmData, Path]:
    folder = tmp_path_factory.mktemp("farm")
    data = make_store(folder / "store", boards=4, days=2)
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    catch_up(history, data.store)
    data.declare(history)
    history.close()
    return data, folder / "history.sqlite"


@pytest.fixture
def farm(measured: tuple[FarmData, Path], tmp_path: Path) -> Iterator[tuple[FarmData, History]]:
    """Each test has its own."""
    data, path = measured
    (tmp_path / "history.sqlite").write_bytes(path.read_bytes())
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    yield data, history
    history.close()


def alerting(history: History, receivers: Sequence[Receiver], boards: Sequence[str] = ()) -> Alerting:
    """Of a farm that has these boards, or all of the history."""
    with history.reading() as connection:
        every = list(connection.execute(select(BOARD.c.name)).scalars())
    return Alerting(history, receivers, TailWatch(boards or every, 1.0))


def kinds(history: History) -> Counter[tuple[str, str]]:
    with history.reading() as connection:
        return Counter((row.board, row.kind) for row in connection.execute(select(ALERT.c.board, ALERT.c.kind)))


@pytest.mark.slow
def test_each_thing_is_told_once(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    declare(history, data.changed, verdict="FAIL", verdict_reason="3 of 9 took longer", judged_by=JUDGED_BY)
    give_cycles(history, data.boards[0], cycles(np.random.default_rng(1), 65))
    receivers = [Receiver(listener.url, True, "https://farm.example"), Receiver(f"{listener.url}/hook?key=1", False)]
    for after_s in (60, 120, 180):
        assert alerting(history, receivers).look(END_S + after_s) == []
    expected = {
        (data.changed, "fail"),
        (data.silent, "silent"),
        (data.injected.board, "maximum"),
        (data.boards[0], "tail"),
    }
    assert expected <= set(kinds(history))
    assert max(kinds(history).values()) == 1
    hooked = [body["id"] for path, body in listener.got if path == "/hook?key=1"]
    listed = [alert["labels"]["alert"] for path, body in listener.got if path == "/api/v2/alerts" for alert in body]
    assert len(hooked) == len(set(hooked)) == len(set(listed)) == sum(kinds(history).values())
    lasting = [alert for alert, times in Counter(listed).items() if times == 3]
    assert len(lasting) == sum(kind in ("fail", "silent") for _, kind in kinds(history))


def test_a_new_maximum_comes_with_its_culprit_and_the_last_good_run(
    farm: tuple[FarmData, History], listener: Listener
) -> None:
    data, history = farm
    assert alerting(history, [Receiver(listener.url, False)]).look(END_S + 60) == []
    told = next(message for message in listener.told() if message["kind"] == "maximum")
    assert told["board"] == data.injected.board
    assert told["value_ns"] == str(INJECTED_NS)
    assert "5,000 µs" in told["text"]
    assert told["run"] == data.injected.run
    runs = [run.id for run in data.store.runs(board=data.injected.board)]
    assert told["last_run_within_limit"] == runs[runs.index(data.injected.run) - 1]
    assert told["culprit"] != "unknown"


@pytest.mark.parametrize(
    ("days", "evidence", "severity", "by_chance"),
    [(0, "weak evidence", "info", 730.5 / 4), (28, "strong evidence", "warning", 730.5 / 60)],
)
def test_a_new_maximum_is_graded_by_the_days_before_it(  # noqa: PLR0917 - the two fixtures and what is expected
    farm: tuple[FarmData, History], listener: Listener, days: int, evidence: str, severity: str, by_chance: float
) -> None:
    """A hundred times what came before: after a day and a half that can be chance, after a month hardly."""
    data, history = farm
    with history.writing() as connection:
        board = connection.execute(select(BOARD.c.id).where(BOARD.c.name == data.injected.board)).scalar_one()
        first_day = (HOUR.c.board == board, HOUR.c.begin_s < data.begin_s + 86400)
        hours = connection.execute(select(HOUR).where(*first_day)).mappings().all()
        for day in range(1, days + 1):
            rows = [{**hour, "begin_s": hour["begin_s"] - 86400 * day} for hour in hours]
            connection.execute(insert(HOUR), [row | {"max_ns": row["max_ns"] + 97 * day} for row in rows])
    assert alerting(history, [Receiver(listener.url, False)]).look(END_S + 60) == []
    told = next(message for message in listener.told() if message["kind"] == "maximum")
    assert (told["evidence"], told["severity"]) == (evidence, severity)
    assert float(told["new_maxima_per_board_and_year"]) == pytest.approx(by_chance, rel=0.05)


def test_a_change_that_is_moved_is_told_once_and_its_withdrawal_too(
    farm: tuple[FarmData, History], listener: Listener
) -> None:
    data, history = farm
    give_cycles(history, data.boards[0], cycles(np.random.default_rng(1), 65))
    sender = alerting(history, [Receiver(listener.url, False)])
    for columns in ({}, {"at_s": CHANGE.c.at_s - CYCLE_S}, {"noted_s": CHANGE.c.noted_s + CYCLE_S}):
        with history.writing() as connection:
            connection.execute(update(CHANGE).where(CHANGE.c.kind == TAIL).values(**{"key": "moved"} | columns))
        assert sender.look(END_S + 60) == []
    for _ in range(2):
        with history.writing() as connection:
            connection.execute(update(CHANGE).where(CHANGE.c.kind == TAIL).values(withdrawn_s=END_S))
        assert sender.look(END_S + 120) == []
    told = [message for message in listener.told() if message["kind"] == "tail"]
    assert ["withdrawn" in message["text"] for message in told] == [False, True]


def test_what_lasts_is_told_when_it_begins_and_when_it_ends(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    receiver = Receiver(listener.url, True)
    declare(history, data.changed, verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY)
    alerting(history, [receiver]).look(END_S + 60)
    declare(history, data.changed, verdict="PASS", verdict_reason="", judged_by=JUDGED_BY)
    for after_s in (120, 180):
        alerting(history, [receiver]).look(END_S + after_s)
    told = [
        alert
        for alert in listener.told()
        if alert["labels"]["alertname"] == "FastenoughFail" and alert["labels"]["board"] == data.changed
    ]
    assert len(told) == 2
    begun, ended = told
    assert begun["labels"] == ended["labels"]
    assert begun["startsAt"] == ended["startsAt"]
    assert begun["endsAt"] > ended["endsAt"] > ended["startsAt"]
    declare(history, data.changed, verdict="FAIL", verdict_reason="again", judged_by=JUDGED_BY)
    alerting(history, [receiver]).look(END_S + 240)
    assert kinds(history)[data.changed, "fail"] == 2, "what comes again is another alert"
    assert kinds(history)[data.injected.board, "fail"] == 1, "above a limit that must never be exceeded, judged or not"


def test_a_refused_recording_is_told_for_a_day(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    receiver = Receiver(listener.url, True)
    history.wall_s = lambda: END_S
    note_refused(history, data.changed, [("ring-1.jsonl", "refused", "a line has no end")])
    for after_s in (60, 120, 86400, 86460):
        alerting(history, [receiver]).look(END_S + after_s)
    told = [alert for alert in listener.told() if alert["labels"]["alertname"] == "FastenoughRecordingRefused"]
    assert [alert["labels"]["board"] for alert in told] == [data.changed] * 3, "begin, repetition and end"
    assert len({alert["startsAt"] for alert in told}) == 1
    begin, repetition, end = (datetime.fromisoformat(alert["endsAt"]).timestamp() for alert in told)
    assert (repetition - begin, end) == (60, END_S + 86400)
    assert "ring-1.jsonl" in told[0]["annotations"]["summary"]


def test_a_farm_alerts_of_its_own_boards_only(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    own = {"/1": {data.changed, data.boards[0]}, "/2": {data.injected.board, data.silent}}
    declare(history, data.changed, verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY)
    senders = [alerting(history, [Receiver(listener.url + path, False)], [*boards]) for path, boards in own.items()]
    for after_s in (60, 120):
        assert [sender.look(END_S + after_s) for sender in senders] == [[], []]
    told = {path: {body["board"] for got, body in listener.got if got == path} for path in own}
    assert data.changed in told["/1"] <= own["/1"] and {data.injected.board, data.silent} == told["/2"]
    assert {message["state"] for message in listener.told()} == {"new"}


def test_the_condition_of_a_board_that_left_the_farm_ends(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    receiver = Receiver(listener.url, False)
    declare(history, data.changed, verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY, farm="f")
    alerting(history, [receiver]).look(END_S + 60)
    left = [name for name in data.boards if name != data.changed]
    disown(history, "f", left)
    for after_s in (120, 180):
        assert alerting(history, [receiver], left).look(END_S + after_s) == []
    states = [message["state"] for message in listener.told() if message["board"] == data.changed]
    assert states.count("new") == states.count("ended") > 0


def test_a_refused_alert_delays_no_other(farm: tuple[FarmData, History], listener: Listener) -> None:
    data, history = farm
    listener.refuses = data.silent
    declare(history, data.changed, verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY)
    sender = alerting(history, [Receiver(listener.url, False)])
    (fault,) = sender.look(END_S + 60)
    assert "400" in fault and data.silent in fault
    assert data.changed in {message["board"] for message in listener.told()}
    assert sender.look(END_S + 120) == [fault], "it stays visible"
    listener.refuses = ""
    assert sender.look(END_S + 180) == []
    assert len(listener.got) == sum(kinds(history).values())


def test_a_condition_never_ends_before_it_begins(farm: tuple[FarmData, History], listener: Listener) -> None:
    """The clock of the bench was set back."""
    data, history = farm
    sender = alerting(history, [Receiver(listener.url, True)])
    declare(history, data.changed, verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY)
    sender.look(END_S + 3600)
    declare(history, data.changed, verdict="PASS", verdict_reason="", judged_by=JUDGED_BY)
    sender.look(END_S + 60)
    ended = [alert for alert in listener.told() if alert["labels"]["board"] == data.changed][-1]
    assert ended["endsAt"] == ended["startsAt"]


def test_an_alert_that_waited_for_days_is_accepted_as_current(
    farm: tuple[FarmData, History], listener: Listener
) -> None:
    _, history = farm
    sender = alerting(history, [Receiver(listener.url, True)])
    listener.answer = 503
    assert len(sender.look(END_S + 60)) == 1
    listener.answer, late_s = 200, END_S + 40 * 86400
    assert sender.look(late_s) == []
    maximum = next(alert for alert in listener.told() if alert["labels"]["alertname"] == "FastenoughNewMaximum")
    assert datetime.fromisoformat(maximum["endsAt"]).timestamp() == late_s + 86400


def test_a_rebuild_causes_no_alert(
    farm: tuple[FarmData, History], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while the boards have no data, nor after it; if it is killed, the next reading of the store ends it."""
    data, history = farm
    history.wall_s = lambda: END_S
    sender = alerting(history, [Receiver(listener.url, False)])
    note_refused(history, data.changed, [("ring-1.jsonl", "refused", "a line has no end")])
    note_refused(history, data.changed, [(data.store.runs(board=data.changed)[0].id, "cut off", "old")])
    assert sender.look(END_S + 60) == []
    before, sent = kinds(history), len(listener.got)
    history.wall_s = lambda: END_S + 3 * 86400
    monkeypatch.setattr(ingest, "_read_runs", lambda *_: sys.exit())
    with pytest.raises(SystemExit):
        rebuild(history, data.store, data.boards, "f")
    monkeypatch.undo()
    declare(history, data.boards[0], verdict="FAIL", verdict_reason="too late", judged_by=JUDGED_BY)
    assert len(sender.look(END_S + 120)) == 1
    assert (kinds(history), len(listener.got)) == (before, sent)
    assert catch_up(history, data.store).faults == {}
    declare(history, data.boards[0], verdict="", verdict_reason="")
    assert sender.look(END_S + 180) == []
    assert (kinds(history), len(listener.got)) == (before, sent)


def test_two_senders_may_send_the_same_alert(farm: tuple[FarmData, History]) -> None:
    data, history = farm
    alerting(history, []).look(END_S + 60)
    alert = pending(history, "receiver", {*data.boards})[0]
    for _ in range(2):
        mark_accepted(history, "receiver", alert)
    assert alert not in pending(history, "receiver", {*data.boards})


@pytest.mark.parametrize("answer", [500, 0, 302])
def test_what_is_not_accepted_is_sent_again(farm: tuple[FarmData, History], listener: Listener, answer: int) -> None:
    _, history = farm
    listener.answer = answer
    sender = alerting(history, [Receiver(listener.url, False)])
    assert "127.0.0.1" in sender.look(END_S + 60)[0]
    assert listener.got == []
    listener.answer = 200
    assert sender.look(END_S + 120) == []
    assert len(listener.got) == sum(kinds(history).values()) > 0


@pytest.mark.slow
def test_nothing_is_lost_or_told_in_other_words_when_the_sender_is_killed(
    farm: tuple[FarmData, History], listener: Listener, tmp_path: Path
) -> None:
    """Killed again and again: each alert is accepted, twice only where the kill came before that was written down."""
    data, history = farm
    create_tables(history)
    with history.writing() as connection:
        connection.execute(
            insert(ALERT),
            [
                {
                    "board": f"b{number}",
                    "kind": "maximum",
                    "key": "k",
                    "at_s": END_S,
                    "noted_s": END_S,
                    "lasts": False,
                    "summary": f"number {number}",
                    "more": "{}",
                }
                for number in range(300)
            ],
        )
    script = (
        "import sys\nfrom fastenough.farm.alerts import Alerting, Receiver\nfrom fastenough.history import "
        "History\nfrom fastenough.history.tail import TailWatch\n"
        "alerting = Alerting(History.at(sys.argv[1]), [Receiver(sys.argv[2], False)], TailWatch(sys.argv[3:], 1.0))\n"
        f"print('ready', flush=True)\nalerting.look({END_S + 60})\n"
    )
    (tmp_path / "alerting.py").write_text(script)
    chance, kills, names = random.Random(5), 0, [f"b{number}" for number in range(300)]
    while len({message["id"] for message in listener.told()}) < 300:
        seen = len(listener.got)
        with subprocess.Popen(
            [sys.executable, tmp_path / "alerting.py", str(history.engine.url), listener.url, *names],
            env=environment(),
            stdout=subprocess.PIPE,
        ) as sender:
            assert sender.stdout is not None
            assert sender.stdout.readline() == b"ready\n"
            while len(listener.got) < seen + 90 and sender.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.01)
            sender.kill()
        kills += 1
        assert kills < 20
    assert alerting(history, [Receiver(listener.url, False)], [*data.boards, *names]).look(END_S + 60) == []
    by_id: dict[int, list[dict[str, Any]]] = {}
    for message in listener.told():
        by_id.setdefault(message["id"], []).append(message)
    assert len(by_id) == sum(kinds(history).values()) >= 300
    twice = [messages for messages in by_id.values() if len(messages) > 1]
    assert len(twice) <= kills
    assert all(messages == [messages[0]] * len(messages) for messages in twice)


def test_the_command_follows_changes_of_the_farm_file(
    farm: tuple[FarmData, History], listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, history = farm
    file, first, second = tmp_path / "farm.toml", data.boards[0], data.boards[1]
    head = f'store = "{data.store.path}"\ndatabase = "{history.engine.url}"\n'
    contents = [f'{head}[[board]]\nname = "{name}"\nlink = "local"\n' for name in (first, second)]
    file.write_text(contents.pop(0))

    def sleep(_: float) -> None:
        if not contents:
            sys.exit()
        file.write_text(contents.pop(0))

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setenv(WEBHOOK_SETTING, listener.url)
    with pytest.raises(SystemExit):
        command.main([str(file)], standalone_mode=False)
    assert [message["board"] for message in listener.told() if message["state"] == "new"] == [first, second]


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:9093", "file:///etc/passwd", "https://:1", "http://a b", "http://h:99999", "http://h\r\nX: y"],
)
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        Receiver(url, False)
    assert not url or url not in str(refused.value)


def test_the_command_tells_a_webhook_out_of_a_file(
    measured: tuple[FarmData, Path], listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = measured
    (tmp_path / "history.sqlite").write_bytes(path.read_bytes())
    (tmp_path / "farm.toml").write_text(
        f'name = "rack"\nstore = "{data.store.path}"\ndatabase = "sqlite:///{tmp_path}/history.sqlite"\n\n'
        '[[board]]\nname = "r1s1"\nlink = "local"\n'
    )
    hook = tmp_path / "hook"
    arguments = [str(tmp_path / "farm.toml"), "--once"]
    hook.write_text(f"{listener.url}/secret\n")
    assert command.main([*arguments, "--webhook-file", str(hook)], standalone_mode=False) == ExitStatus.DONE
    assert {path for path, _ in listener.got} == {"/secret"}
    listener.answer = 503
    hook.write_text(f"{listener.url}/secret2\n")
    assert command.main([*arguments, "--webhook-file", str(hook)], standalone_mode=False) == ExitStatus.BROKEN
    said = capsys.readouterr().err
    assert "127.0.0.1 did not accept the alert: HTTP status 503" in said
    assert "secret" not in said
    with pytest.raises(BadInput, match="no receiver"):
        command.main(arguments, standalone_mode=False)
