# SPDX-License-Identifier: GPL-2.0-or-later
"""Who watches a farm is told of each new maximum, change of a tail, FAIL and silent board: once, and until it is taken.

What was seen is noted in the history's database before anything is sent, and what a receiver took right after it took
it.  Killed between the two, the same alert is sent again, in the same words: to Alertmanager that is the same alert,
and a webhook knows it by its id.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fastenough import words
from fastenough.farm.alerts_kept import Alert, Key, Seen, accept, known, note, pending, prepare
from fastenough.history import OWNER, Happening, History, Standing, State, changes, events, runs, standing
from fastenough.history.tail import TAIL, TailWatch, last_good
from fastenough.model import BadInput, FastenoughError, Verdict
from fastenough.words import iso

_LOOK_BACK_S = 60 * 3600
"""A ring holds 48 hours: what comes later than that after it happened is told by nobody."""
_DAY_S = 86400
_CHANGED_WITHIN_S = 7 * _DAY_S
_TAIL_BACK_S = 60 * _DAY_S
"""A change of the tail is seen when some twenty cycles have followed it."""
_PATIENCE_S = 10.0
_SHOWN_FOR_S = _DAY_S
"""So long Alertmanager shows what happened at one moment."""
_LASTS_S = 30 * _DAY_S
_SEVERITY = {"fail": "critical", "silent": "warning", "refused": "warning", TAIL: "warning", "maximum": "info"}
_ALERT = {
    "fail": "FastenoughFail",
    "silent": "FastenoughBoardSilent",
    "refused": "FastenoughRecordingRefused",
    TAIL: "FastenoughTailChanged",
    "maximum": "FastenoughNewMaximum",
}


# --- what is seen


def happened(history: History, boards: Sequence[Standing], now_s: int, noted: Container[Key]) -> Iterator[Seen]:
    """New maxima of 30 days, and changes of tails; but for what was ``noted`` already, with what stands beside each."""
    for one in boards:
        name = one.board.name
        for event in events(history, OWNER, name, now_s - _LOOK_BACK_S, now_s + 1):
            key = f"{event.at_s} {event.value_ns}"
            if (
                event.new_maximum
                and event.series == one.board.main
                and (name, "maximum", key) not in noted
                and _was_watched(history, name, event)
            ):
                yield _new_maximum(history, one, event, key)
        for change in changes(history, OWNER, name, now_s - _TAIL_BACK_S, now_s + 1):
            if change.kind == TAIL and (name, TAIL, str(change.at_s)) not in noted:
                yield Seen(
                    name,
                    TAIL,
                    str(change.at_s),
                    change.at_s,
                    f"{name}: tail changed: median of the cycle maxima {change.now}, before {change.was}",
                    more=_beside(history, name, change.at_s) | {"run": change.run},
                )


def _was_watched(history: History, name: str, event: Happening) -> bool:
    """Whether the board had measured for a day: of its first one, every maximum is new."""
    return bool(runs(history, OWNER, name, 0, event.at_s - _DAY_S))


def _new_maximum(history: History, one: Standing, event: Happening, key: str) -> Seen:
    limit = one.board.limit_ns
    above = "" if limit is None or event.value_ns <= limit else f", above the limit of {words.latency(limit)}"
    where = "" if event.cpu is None else f" on CPU {event.cpu}"
    summary = f"{one.board.name}: new maximum: {words.latency(event.value_ns)}{where}{above}"
    more = {"value_ns": str(event.value_ns), "culprit": event.culprit or "unknown", "run": event.run}
    return Seen(
        one.board.name, "maximum", key, event.at_s, summary, more=more | _beside(history, one.board.name, event.at_s)
    )


def _beside(history: History, name: str, at_s: int) -> dict[str, str]:
    """What changed before, as far as it shapes latencies, and the last run that kept the limit."""
    changed = [
        f"{change.key}: {change.was} → {change.now}"
        for change in changes(history, OWNER, name, at_s - _CHANGED_WITHIN_S, at_s + 1)
        if change.kind != TAIL and change.latency
    ]
    return {
        "changed_within_7_days": "; ".join(changed[:5]) or "nothing that affects latency",
        "last_run_within_limit": last_good(history, OWNER, name, at_s) or "unknown",
    }


def lasting(boards: Sequence[Standing], now_s: int) -> Iterator[Seen]:
    """Boards that fail or are above their limit, of which nothing comes, or of which recordings are refused."""
    for one in (one for one in boards if one.state is not State.RETIRED):
        name, at_s = one.board.name, one.seen_s or now_s
        if one.verdict == Verdict.FAIL:
            yield Seen(name, "fail", "fail", at_s, f"{name}: FAIL: {one.verdict_reason}", lasts=True)
        elif one.above_ns is not None:
            yield Seen(
                name,
                "fail",
                "fail",
                at_s,
                f"{name}: maximum latency {words.latency(one.above_ns)} within 30 days, above the "
                f"limit of {words.latency(one.board.limit_ns)}",
                lasts=True,
            )
        if one.state is State.DEAD or one.silence:
            why = f"dead: {one.reason}" if one.state is State.DEAD else f"silent: {one.silence}"
            yield Seen(name, "silent", "silent", at_s, f"{name}: {why}", lasts=True)
        if one.refusal is not None and now_s - one.refusal.at_s < _DAY_S:
            yield Seen(
                name,
                "refused",
                "refused",
                one.refusal.at_s,
                f"{name}: recording {one.refusal.name} {one.refusal.label}: {one.refusal.reason}",
                lasts=True,
            )


# --- who is told


@dataclass(frozen=True)
class Receiver:
    """Alertmanager (API v2), or any other program that takes JSON.  ``url`` may be secret: only ``host`` is shown."""

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

    def take(self, alert: Alert) -> None:
        """Send one; raises FastenoughError where it is not accepted."""
        parts = urlsplit(self.url)
        path = f"{parts.path.rstrip('/')}/api/v2/alerts" if self.alertmanager else parts.path or "/"
        body: Any = [_alert(alert, self.site)] if self.alertmanager else _message(alert, self.site)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_PATIENCE_S)
        try:
            connection.request(
                "POST",
                path + (f"?{parts.query}" if parts.query else ""),
                json.dumps(body).encode(),
                {"Content-Type": "application/json", "Idempotency-Key": _key(alert)},
            )
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise FastenoughError(f"{self.host} did not accept the alert: {error or type(error).__name__}") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise FastenoughError(f"{self.host} did not accept the alert: HTTP status {status}")


def _key(alert: Alert) -> str:
    return f"{alert.id}-{'end' if alert.end else 'begin'}"


def _page(alert: Alert, site: str) -> str:
    return f"{site.rstrip('/')}/board/{alert.seen.board}/" if site else ""


def _alert(alert: Alert, site: str) -> dict[str, Any]:
    """In the form of Alertmanager: the same whenever it is sent, but that its end has come once it has ended."""
    seen = alert.seen
    until_s = alert.noted_s + (_LASTS_S if seen.lasts else _SHOWN_FOR_S)
    return {
        "labels": {
            "alertname": _ALERT[seen.kind],
            "board": seen.board,
            "severity": _SEVERITY[seen.kind],
            "alert": str(alert.id),
        },
        "annotations": {"summary": seen.summary, **seen.more},
        "startsAt": iso(alert.noted_s),
        "endsAt": iso((alert.ended_s or 0) if alert.end else until_s),
        **({"generatorURL": _page(alert, site)} if site else {}),
    }


def _message(alert: Alert, site: str) -> Mapping[str, Any]:
    seen = alert.seen
    return {
        "id": alert.id,
        "state": "ended" if alert.end else "new",
        "kind": seen.kind,
        "board": seen.board,
        "severity": _SEVERITY[seen.kind],
        "text": seen.summary,
        "at": iso(seen.at_s),
        "ended": iso(alert.ended_s) if alert.end and alert.ended_s else None,
        "page": _page(alert, site),
        **seen.more,
    }


class Alerting:
    """One farm's alerts; ``look`` is called once a minute."""

    def __init__(self, history: History, receivers: Sequence[Receiver]) -> None:
        self._history = history
        self._receivers = receivers
        self._tails = TailWatch()
        prepare(history)

    def look(self, now_s: int) -> list[str]:
        """Note what is new, and send what nobody has taken yet; why some receivers take nothing now, in words."""
        self._tails.look(self._history)
        boards = standing(self._history, OWNER, now_s)
        new = list(happened(self._history, boards, now_s, known(self._history)))
        note(self._history, new, list(lasting(boards, now_s)), now_s)
        return [fault for receiver in self._receivers for fault in self._send(receiver)]

    def _send(self, receiver: Receiver) -> Iterator[str]:
        for alert in pending(self._history, receiver.id):
            try:
                receiver.take(alert)
            except FastenoughError as error:
                yield str(error)
                return
            accept(self._history, receiver.id, alert)
