# SPDX-License-Identifier: GPL-2.0-or-later
"""Alerts of a farm: one for each new maximum, tail change, FAIL and silent board, repeated until accepted.

Observations are stored in the database of the history before an alert is sent, and its acceptance right after it.  A
process killed between the two sends the same alert again with the same text: Alertmanager treats it as one alert, and
a webhook recognizes it by its id.  An observation is a single event, or a condition that lasts and ends.  Its key
follows from its content, so that storing it twice changes nothing.  A rebuild of the history keeps these tables, so
that old alerts are not sent again.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    UniqueConstraint,
    exists,
    insert,
    inspect,
    select,
    text,
    update,
)

from fastenough import words
from fastenough.analysis.records import chance_of_excess, records_expected
from fastenough.history import (
    NEW_FOR_S,
    OWNER,
    BoardChange,
    BoardCondition,
    BoardStatus,
    History,
    LatencyEvent,
    board_statuses,
    boards_under_rebuild,
    changes,
    cycle_maxima,
    new_maxima,
    noted_changes,
    runs,
)
from fastenough.history.schema import BOARD, CYCLE_S
from fastenough.history.tail import APART_S, CYCLES_A_YEAR, TAIL, TAIL_KINDS, TailWatch, last_good
from fastenough.model import BadInput, FastenoughError, Unavailable, Verdict
from fastenough.words import iso

_LOOK_BACK_S = 60 * 3600
"""A ring holds 48 hours; events that arrive later than that cause no alert."""
_DAY_S = 86400
_CHANGED_WITHIN_S = 7 * _DAY_S
_NOTED_BACK_S = 14 * _DAY_S
"""Tail changes that were noted earlier cause no alert."""
_PATIENCE_S = 10.0
_SHOWN_FOR_S = _DAY_S
"""Time for which Alertmanager shows a single event."""
_LASTS_S = 30 * _DAY_S
"""Time after which Alertmanager ends a condition that is no longer reported."""
_OF_ONE_ALERT = (400, 413, 422)
"""Client errors that depend on the alert: another one may be accepted."""
_MOST_REFUSALS = 10
"""Maximum number of alerts that a receiver refuses per look."""
_MOST_NAMED = 10_000
"""Names in one query; SQLite takes 32,766."""
_SEVERITY = {"fail": "critical", "silent": "warning", "refused": "warning", TAIL: "warning", "maximum": "info"}
STRONG = "strong evidence"
_REBUILT = (
    "new alerts wait until the history has been rebuilt; if no 'fastenough farm rebuild' is running, run it, or start "
    "the farm"
)
_ALERT = {
    "fail": "FastenoughFail",
    "silent": "FastenoughBoardSilent",
    "refused": "FastenoughRecordingRefused",
    TAIL: "FastenoughTailChanged",
    "maximum": "FastenoughNewMaximum",
}


# --- observations


def new_observations(
    history: History, boards: Sequence[BoardStatus], now_s: int, noted: Collection[Key], false_changes: float
) -> Iterator[Observation]:
    """Yield new 30-day maxima and tail changes that are not ``noted`` yet, each with its context."""
    for status in boards:
        name = status.board.name
        for event in new_maxima(history, OWNER, name, status.board.main, now_s - _LOOK_BACK_S, now_s + 1):
            key = f"{event.at_s} {event.value_ns}"
            if (name, "maximum", key) not in noted and _has_day_of_data(history, name, event):
                more = _evidence(history, name, event, false_changes / len(boards))
                yield _new_maximum(status, event, key, more | _context(history, name, event.at_s))
        yield from _tail_observations(history, name, now_s, noted)


def _tail_observations(history: History, name: str, now_s: int, noted: Collection[Key]) -> Iterator[Observation]:
    """Yield recently noted tail changes of a board, and those that were withdrawn since.

    A change is identified by the time at which it was noted: its place may move.
    """
    for change in noted_changes(history, OWNER, name, now_s - _NOTED_BACK_S, now_s + 1):
        key, ended = str(change.noted_s), f"{change.noted_s} withdrawn"
        known, withdrawn = _is_known(noted, (name, TAIL, key)), change.withdrawn_s is not None
        if known != withdrawn or (withdrawn and _is_known(noted, (name, TAIL, ended))):
            continue
        yield Observation(
            name,
            TAIL,
            ended if withdrawn else key,
            change.at_s,
            f"{name}: {'withdrawn, later cycles do not show it: ' if withdrawn else ''}{_tail_text(change)}",
            more=_context(history, name, change.at_s) | {"run": change.run},
        )


def _is_known(noted: Collection[Key], key: Key) -> bool:
    """Whether a board's change was noted, also a few cycles earlier or later, as when recordings came late."""
    at_s, _, ended = key[2].partition(" ")
    for board, kind, other in noted:
        other_s, _, other_ended = other.partition(" ")
        if (board, kind, other_ended) == (*key[:2], ended) and abs(int(other_s) - int(at_s)) < APART_S:
            return True
    return False


def _tail_text(change: BoardChange) -> str:
    if change.until_s is None:
        return f"tail changed: median of the cycle maxima {change.now}, before {change.was}"
    return f"tail drifts: cycle maxima went from {change.was} to {change.now}"


def _has_day_of_data(history: History, name: str, event: LatencyEvent) -> bool:
    """Whether the board had measured for a day before the event; on the first day every maximum is new."""
    return bool(runs(history, OWNER, name, 0, event.at_s - _DAY_S))


def _new_maximum(status: BoardStatus, event: LatencyEvent, key: str, more: Mapping[str, str]) -> Observation:
    limit = status.board.limit_ns
    above = "" if limit is None or event.value_ns <= limit else f", above the limit of {words.exact_time(limit)}"
    where = "" if event.cpu is None else f" on CPU {event.cpu}"
    value = {"value_ns": str(event.value_ns), "culprit": event.culprit or "unknown", "run": event.run}
    return Observation(
        status.board.name,
        "maximum",
        key,
        event.at_s,
        f"{status.board.name}: new maximum: {words.latency(event.value_ns)}{where}{above}; so far above the rest by "
        f"chance {more['expected_per_board_and_year']} times per board and year: {more['evidence']}",
        more={**value, **more},
    )


def _evidence(history: History, name: str, event: LatencyEvent, false_changes: float) -> dict[str, str]:
    """Return the grade of a new maximum, and the expected number of such maxima by chance per board and year.

    ``false_changes``: accepted number per board and year.  A newest cycle with the value itself is left out: the
    interval of the event began in it.
    """
    cycle_s = event.at_s // CYCLE_S * CYCLE_S
    earlier = cycle_maxima(history, OWNER, name, event.series, cycle_s - NEW_FOR_S, cycle_s)
    if earlier[-1:] == [event.value_ns]:
        earlier.pop()
    expected = records_expected(len(earlier), CYCLES_A_YEAR)
    so_high = expected * chance_of_excess(event.value_ns, np.array(earlier, dtype=np.float64))
    grade = STRONG if so_high <= false_changes else "weak evidence" if so_high <= 1 else "expected by chance"
    return {
        "evidence": grade,
        "expected_per_board_and_year": f"{so_high:.2g}",
        "new_maxima_per_board_and_year": f"{expected:.2g}",
    }


def _context(history: History, name: str, at_s: int) -> dict[str, str]:
    """Return recent changes that affect latency, and the last run within the limit."""
    changed = [
        f"{change.key}: {change.was} → {change.now}"
        for change in changes(history, OWNER, name, at_s - _CHANGED_WITHIN_S, at_s + 1)
        if change.kind not in TAIL_KINDS and change.latency
    ]
    return {
        "changed_within_7_days": "; ".join(changed[:5]) or "nothing that affects latency",
        "last_run_within_limit": last_good(history, OWNER, name, at_s) or "unknown",
    }


def lasting_observations(boards: Sequence[BoardStatus], now_s: int) -> Iterator[Observation]:
    """Yield the boards that FAIL or exceed their limit, are silent or dead, or have refused recordings."""
    for status in (status for status in boards if status.state is not BoardCondition.RETIRED):
        name, at_s = status.board.name, status.seen_s or now_s
        if status.verdict == Verdict.FAIL:
            yield Observation(name, "fail", "fail", at_s, f"{name}: FAIL: {status.verdict_reason}", lasts=True)
        elif status.above_ns is not None:
            yield Observation(
                name,
                "fail",
                "fail",
                at_s,
                f"{name}: maximum latency {words.latency(status.above_ns)} within 30 days, above the "
                f"limit of {words.exact_time(status.board.limit_ns)}",
                lasts=True,
            )
        if status.state is BoardCondition.DEAD or status.silence:
            why = f"dead: {status.reason}" if status.state is BoardCondition.DEAD else f"silent: {status.silence}"
            yield Observation(name, "silent", "silent", at_s, f"{name}: {why}", lasts=True)
        if status.refusal is not None and now_s - status.refusal.at_s < _DAY_S:
            yield Observation(
                name,
                "refused",
                "refused",
                status.refusal.at_s,
                f"{name}: recording {status.refusal.name} {status.refusal.label}: {status.refusal.reason}",
                lasts=True,
            )


def undecided_conditions(boards: Sequence[BoardStatus]) -> set[tuple[str, str]]:
    """Board and kind of the conditions that may last or have ended: FAIL of boards whose verdict is on another
    requirement than the present one."""
    return {
        (status.board.name, "fail")
        for status in boards
        if status.verdict_reason and not status.verdict and status.state is not BoardCondition.RETIRED
    }


# --- receivers


class AlertRefused(FastenoughError):
    """A receiver does not accept an alert; it may accept others."""


@dataclass(frozen=True)
class Receiver:
    """Alertmanager (API v2), or a webhook that accepts JSON.  ``url`` may be secret: messages show only ``host``."""

    url: str
    alertmanager: bool
    site: str = ""

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.alertmanager} {self.url}".encode()).hexdigest()

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable or not self.url.isprintable() or " " in self.url:
            raise BadInput(
                "invalid alert receiver URL (not shown: it may be secret); use http://HOST:PORT or https://HOST/PATH"
            )

    def take(self, alert: Alert, now_s: int) -> None:
        """Send one alert; raises AlertRefused if this alert is not accepted, FastenoughError if none is at present."""
        if self.alertmanager:
            self._post([_alertmanager_body(alert, self.site, now_s)], {"Idempotency-Key": _key(alert)})
        else:
            self._post(_webhook_body(alert, self.site), {"Idempotency-Key": _key(alert)})

    def repeat(self, alerts: Sequence[Alert], now_s: int) -> None:
        """Send accepted alerts again if this is Alertmanager, which ends those that are not repeated and loses all at
        its restart; raises FastenoughError."""
        if self.alertmanager and alerts:
            self._post([_alertmanager_body(alert, self.site, now_s) for alert in alerts], {})

    def _post(self, body: object, headers: Mapping[str, str]) -> None:
        parts = urlsplit(self.url)
        path = f"{parts.path.rstrip('/')}/api/v2/alerts" if self.alertmanager else parts.path or "/"
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_PATIENCE_S)
        try:
            connection.request(
                "POST",
                path + (f"?{parts.query}" if parts.query else ""),
                json.dumps(body).encode(),
                {"Content-Type": "application/json", **headers},
            )
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise FastenoughError(f"{self.host} did not accept the alert: {error or type(error).__name__}") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise (AlertRefused if status in _OF_ONE_ALERT else FastenoughError)(
                f"{self.host} did not accept the alert: HTTP status {status}"
            )


def _key(alert: Alert) -> str:
    return f"{alert.id}-{'end' if alert.end else 'begin'}"


def _page(alert: Alert, site: str) -> str:
    return f"{site.rstrip('/')}/board/{alert.observation.board}/" if site else ""


def _severity(observation: Observation) -> str:
    return "warning" if observation.more.get("evidence") == STRONG else _SEVERITY[observation.kind]


def _alertmanager_body(alert: Alert, site: str, now_s: int) -> Mapping[str, object]:
    """Return the alert in Alertmanager's format; repeated sends differ only in the end time."""
    observation = alert.observation
    until_s = max(alert.noted_s, now_s) + (_LASTS_S if observation.lasts else _SHOWN_FOR_S)
    return {
        "labels": {
            "alertname": _ALERT[observation.kind],
            "board": observation.board,
            "severity": _severity(observation),
            "alert": str(alert.id),
        },
        "annotations": {"summary": observation.summary, **observation.more},
        "startsAt": iso(alert.noted_s),
        "endsAt": iso((alert.ended_s or 0) if alert.end else until_s),
        **({"generatorURL": _page(alert, site)} if site else {}),
    }


def _webhook_body(alert: Alert, site: str) -> Mapping[str, Any]:
    observation = alert.observation
    return {
        "id": alert.id,
        "state": "ended" if alert.end else "new",
        "kind": observation.kind,
        "board": observation.board,
        "severity": _severity(observation),
        "text": observation.summary,
        "at": iso(observation.at_s),
        "ended": iso(alert.ended_s) if alert.end and alert.ended_s else None,
        "page": _page(alert, site),
        **observation.more,
    }


class Alerting:
    """The alerts of one farm, that of ``tails``, which may be replaced; call ``look`` once a minute."""

    def __init__(self, history: History, receivers: Sequence[Receiver], tails: TailWatch) -> None:
        self._history = history
        self._receivers = receivers
        self.tails = tails
        self._refusals: Counter[tuple[str, str]] = Counter()
        create_tables(history)

    def look(self, now_s: int) -> list[str]:
        """Store new observations and send pending alerts; returns why that was not possible.

        Nothing is observed while boards are rebuilt: their data are incomplete.
        """
        faults = [] if self.tails.boards.isdisjoint(boards_under_rebuild(self._history)) else [_REBUILT]
        if not faults:
            self._observe(now_s)
        return faults + [fault for receiver in self._receivers for fault in self._send(receiver, now_s)]

    def _observe(self, now_s: int) -> None:
        self.tails.look(self._history)
        statuses = board_statuses(self._history, OWNER, now_s)
        boards = [status for status in statuses if status.board.name in self.tails.boards]
        new = list(new_observations(self._history, boards, now_s, noted_keys(self._history), self.tails.false_changes))
        lasting = list(lasting_observations(boards, now_s))
        note_observations(self._history, self.tails.boards, new, lasting, now_s, undecided=undecided_conditions(boards))

    def _send(self, receiver: Receiver, now_s: int) -> Iterator[str]:
        """Send pending alerts, the most often refused last, and again those of conditions that last; yields faults."""
        lasting = under_way(self._history, receiver.id, self.tails.boards)
        alerts = pending(self._history, receiver.id, self.tails.boards)
        refused: list[str] = []
        try:
            for alert in sorted(alerts, key=lambda alert: self._refusals[receiver.id, _key(alert)]):
                if len(refused) == _MOST_REFUSALS:
                    break
                try:
                    receiver.take(alert, now_s)
                except AlertRefused as error:
                    self._refusals[receiver.id, _key(alert)] += 1
                    refused.append(f"{error} (alert {_key(alert)} of {alert.observation.board})")
                else:
                    mark_accepted(self._history, receiver.id, alert)
                    del self._refusals[receiver.id, _key(alert)]
            receiver.repeat(lasting, now_s)
        except Unavailable:
            raise
        except FastenoughError as error:
            yield str(error)
        if refused:
            yield refused[0] + (f", and {len(refused) - 1} more" if len(refused) > 1 else "")


METADATA = MetaData()
ALERT = Table(
    "alert",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("board", String(200), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", String(64), nullable=False),
    Column("at_s", BigInteger, nullable=False),
    Column("noted_s", BigInteger, nullable=False),
    Column("lasts", Boolean, nullable=False),
    Column("ended_s", BigInteger),
    Column("summary", Text, nullable=False),
    Column("more", Text, nullable=False),
    UniqueConstraint("board", "kind", "key"),
)
ACCEPTED = Table(
    "alert_accepted",
    METADATA,
    Column("alert", Integer, primary_key=True, autoincrement=False),
    Column("receiver", String(64), primary_key=True),
    Column("end", Boolean, primary_key=True),
)
"""``receiver`` accepted the alert; ``end``: its end."""


Key = tuple[str, str, str]
"""Board, kind and key of an alert."""


@dataclass(frozen=True)
class Observation:
    """An observation of a board.  ``key`` distinguishes events of one kind; a condition that ``lasts`` exists once at a
    time.  ``more``: context as text, by name."""

    board: str
    kind: str
    key: str
    at_s: int
    summary: str
    lasts: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> Key:
        return self.board, self.kind, self.key


@dataclass(frozen=True)
class Alert:
    """An alert to send.  ``end``: it reports the end of a condition, at ``ended_s``."""

    id: int
    observation: Observation
    noted_s: int
    ended_s: int | None
    end: bool


def create_tables(history: History) -> None:
    """Create missing tables."""
    with history.writing() as connection:
        METADATA.create_all(connection)


def rename_alerts(history: History, board: str, new: str) -> None:
    """Give the single events of a board its new name, so that they are not sent again.

    Its conditions end under the former name, under which receivers know them, and begin again under the new one.
    """
    same = ALERT.alias()
    known = exists().where(same.c.board == new, same.c.kind == ALERT.c.kind, same.c.key == ALERT.c.key)
    with history.writing() as connection:
        if inspect(connection).has_table(ALERT.name):
            _lock(connection)
            events = update(ALERT).where(ALERT.c.board == board, ALERT.c.lasts.is_(False), ~known)
            connection.execute(events.values(board=new))


def noted_keys(history: History) -> set[Key]:
    """The keys of all stored alerts."""
    with history.reading() as connection:
        return _noted_keys(connection)


def _noted_keys(connection: Connection) -> set[Key]:
    return {
        (row.board, row.kind, row.key) for row in connection.execute(select(ALERT.c.board, ALERT.c.kind, ALERT.c.key))
    }


def note_observations(
    history: History,
    boards: Set[str],
    happened: Iterable[Observation],
    lasting: Iterable[Observation],
    now_s: int,
    *,
    undecided: Collection[tuple[str, str]] = (),
) -> None:
    """Store events and current conditions of a farm's boards in one transaction; its conditions missing in ``lasting``
    have ended, except the ``undecided`` ones (board and kind)."""
    with history.writing() as connection:
        _lock(connection)
        before = _noted_keys(connection)
        new = {observation.id: observation for observation in happened if observation.id not in before}
        for observation in new.values():
            _insert(connection, observation, observation.key, now_s)
        current = {(observation.board, observation.kind): observation for observation in lasting}
        _note_lasting(connection, boards, current, undecided, now_s)


def _lock(connection: Connection) -> None:
    """Let no other process change alerts until the end of this transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7702)"))


def _of_others(connection: Connection, boards: Set[str]) -> set[str]:
    """The boards that other farms declare.  Alerts of former boards, which no farm declares, end with any farm."""
    return set(connection.scalars(select(BOARD.c.name).where(BOARD.c.is_declared))) - boards


def _note_lasting(
    connection: Connection,
    boards: Set[str],
    now: Mapping[tuple[str, str], Observation],
    undecided: Collection[tuple[str, str]],
    now_s: int,
) -> None:
    rows = connection.execute(select(ALERT).where(ALERT.c.lasts, ALERT.c.ended_s.is_(None))).mappings().all()
    begun, others = {(row["board"], row["kind"]): row for row in rows}, _of_others(connection, boards)
    for place, row in begun.items():
        if place not in now and place not in undecided and row["board"] not in others:
            ended_s = max(row["noted_s"], now_s)
            connection.execute(update(ALERT).where(ALERT.c.id == row["id"]).values(ended_s=ended_s))
    for place, observation in now.items():
        if place not in begun:
            _insert(connection, observation, f"{observation.key} {now_s}"[:64], now_s)


def _insert(connection: Connection, observation: Observation, key: str, now_s: int) -> None:
    connection.execute(
        insert(ALERT).values(
            board=observation.board,
            kind=observation.kind,
            key=key,
            at_s=observation.at_s,
            noted_s=now_s,
            lasts=observation.lasts,
            summary=observation.summary,
            more=json.dumps(dict(observation.more)),
        )
    )


def pending(history: History, receiver: str, boards: Set[str]) -> list[Alert]:
    """Return the alerts of a farm's boards that a receiver has not accepted yet, in sending order.

    The end of a condition is pending once its begin was accepted.
    """
    names = sorted(boards)
    with history.reading() as connection:
        begins = [
            select(ALERT).where(ALERT.c.board.in_(names[at : at + _MOST_NAMED]), ~_accepted(receiver, end=False))
            for at in range(0, len(names), _MOST_NAMED)
        ]
        ends = select(ALERT).where(
            ALERT.c.ended_s.is_not(None), _accepted(receiver, end=False), ~_accepted(receiver, end=True)
        )
        others = _of_others(connection, boards)
        alerts = [
            _alert_of_row(row, end=end)
            for end, question in (*((False, question) for question in begins), (True, ends))
            for row in connection.execute(question).mappings()
            if not end or row["board"] not in others
        ]
    return sorted(alerts, key=lambda alert: (alert.id, alert.end))


def under_way(history: History, receiver: str, boards: Set[str]) -> list[Alert]:
    """Return the alerts of a farm's boards that a receiver has accepted and whose conditions last."""
    question = select(ALERT).where(ALERT.c.lasts, ALERT.c.ended_s.is_(None), _accepted(receiver, end=False))
    with history.reading() as connection:
        rows = connection.execute(question.order_by(ALERT.c.id)).mappings().all()
    return [_alert_of_row(row, end=False) for row in rows if row["board"] in boards]


def _accepted(receiver: str, *, end: bool) -> ColumnElement[bool]:
    return exists().where(ACCEPTED.c.alert == ALERT.c.id, ACCEPTED.c.receiver == receiver, ACCEPTED.c.end.is_(end))


def _alert_of_row(row: RowMapping, *, end: bool) -> Alert:
    observation = Observation(
        row["board"], row["kind"], row["key"], row["at_s"], row["summary"], row["lasts"], json.loads(row["more"])
    )
    # older versions stored an earlier end if the clock was set back
    ended_s = None if row["ended_s"] is None else max(row["noted_s"], row["ended_s"])
    return Alert(row["id"], observation, row["noted_s"], ended_s, end)


def mark_accepted(history: History, receiver: str, alert: Alert) -> None:
    """Record that a receiver accepted an alert; another process may have sent and recorded it too."""
    with history.writing() as connection:
        _lock(connection)
        row = {"alert": alert.id, "receiver": receiver, "end": alert.end}
        if connection.execute(select(ACCEPTED).filter_by(**row)).first() is None:
            connection.execute(insert(ACCEPTED).values(row))
