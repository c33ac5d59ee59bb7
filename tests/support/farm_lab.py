# SPDX-License-Identifier: GPL-2.0-or-later
"""A farm of simulated boards for tests: a real labgrid, a rack whose boards fail on request, a person who reserves a
place, and ``fastenough farm run`` as a process that may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastenough.farm.lab import Lab, SimulatedTimes
from fastenough.farm.state_file import read_state
from fastenough.farm.state_machine import BoardState
from fastenough.model import BadInput
from fastenough.store import Store
from tests.support.cli_calls import environment
from tests.support.processes import eventually
from tests.support.rings import recordings

_BOARD = """
[[board]]
name = "{name}"
place = "{name}"
link = "local"
ring = "{ring}"
public = true
simulated = true
"""


class Field:
    """The lab in a folder, and the farm's file there.

    ``times``: keys of every board, such as ``pull="4s"``; ``more``: further boards, as the file has them; ``database``:
    of the history, the store's own where there is none.
    """

    def __init__(  # noqa: PLR0917 - what a farm's file says
        self,
        folder: Path,
        names: Sequence[str],
        pace: SimulatedTimes,
        times: Mapping[str, str],
        more: str = "",
        database: str = "",
    ) -> None:
        self.folder, self.names = folder, tuple(names)
        self.lab = Lab(folder, names, pace)
        self.file = folder / "farm.toml"
        said = "".join(f'{key} = "{value}"\n' for key, value in times.items())
        self.file.write_text(
            f'coordinator = "{self.lab.coordinator}"\nstore = "store"\nstate = "state"\n'
            'reconcile = "3s"\n'
            + f'database = "{database}"\n' * bool(database)
            + "".join(_BOARD.format(name=name, ring=self.lab.rings[name]) + said for name in names)
            + more
        )
        self.farm: subprocess.Popen[bytes] | None = None
        self.lab.start()

    def reach(self, name: str, link: str) -> None:
        """A board by another way than as this machine; before the farm is started."""
        board, kept = f'place = "{name}"\nlink = ', self.file.read_text()
        self.file.write_text(kept.replace(f'{board}"local"', f'{board}"{link}"'))

    def start(self, **more: str) -> None:
        """``more``: of its environment."""
        with (self.folder / "farm.log").open("ab") as log:
            self.farm = subprocess.Popen(
                [sys.executable, "-m", "fastenough", "farm", "run", self.file],
                stdout=log,
                stderr=log,
                env=environment(**more),
                cwd=self.folder,
            )

    def kill(self) -> None:
        """As a power cut does."""
        assert self.farm is not None
        self.farm.kill()
        self.farm.wait()

    def stop(self, within_s: float = 180.0) -> int:
        """In order, within the time that its systemd unit gives it; its exit status."""
        assert self.farm is not None
        self.farm.send_signal(signal.SIGTERM)
        return self.farm.wait(within_s)

    def restart_coordinator(self) -> None:
        """As after a power cut of its machine: it forgets who had what, and its exporter ends with it."""
        for name in ("coordinator", "exporter"):
            self.lab.processes[name].kill()
            self.lab.processes[name].wait()
        self.lab.start_coordinator()
        self.lab.start_exporter()

    def states(self) -> dict[str, BoardState]:
        """Empty before the farm has begun."""
        with suppress(BadInput):
            return read_state(self.folder / "state")[1]
        return {}

    def become(self, state: str, *names: str, within_s: float = 240.0) -> dict[str, BoardState]:
        """The states in which boards first stand so; measuring boards are pulled now and then."""
        wanted = {state, "pulling"} if state == "measuring" else {state}
        states: dict[str, BoardState] = {}

        def so() -> bool:
            nonlocal states
            states = self.states()
            return all(name in states and states[name].activity in wanted for name in names)

        assert eventually(so, within_s), (states, (self.folder / "farm.log").read_text()[-3000:])
        return states

    def ail(self, name: str, fault: str) -> None:
        self._rack(name, fault)

    def switched(self, name: str) -> int:
        """How often its power was switched."""
        return int(self._rack(name, "")["switched"])

    def _rack(self, name: str, fault: str) -> dict[str, Any]:
        address = f"http://127.0.0.1:{self.lab.switch}/fault/{self.names.index(name)}"
        with urllib.request.urlopen(address, fault.encode() or b"?", timeout=60) as answer:
            return dict(json.loads(answer.read()))

    def client(self, person: str, *words: str) -> str:
        """What a person at another desk types."""
        done = subprocess.run(
            [sys.executable, "-m", "labgrid.remote.client", "-x", self.lab.coordinator, *words],
            env={**os.environ, "LG_USERNAME": person},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def holders(self) -> dict[str, str]:
        """Who has which place, as the coordinator says."""
        lines = self.client("anybody", "-v", "places").splitlines()
        found, name = {}, ""
        for line in lines:
            if line.startswith("Place '"):
                name = line.split("'")[1]
            elif line.strip().startswith("acquired:"):
                found[name] = line.split(":", 1)[1].strip()
        return found

    def recorded(self, name: str) -> dict[str, int]:
        """How many intervals lie in a board's ring, by recording, of those that have ended."""
        return {one.run_id: len(one.intervals) for one in recordings(self.lab.rings[name]) if one.end is not None}

    def require_stored(self, name: str, within_s: float = 90.0) -> None:
        """All that a board has recorded up to now comes into the store, each interval once."""
        there, store = self.recorded(name), Store(self.folder / "store")
        assert eventually(lambda: there.keys() <= {run.id for run in store.runs(board=name)}, within_s), self.states()
        assert {run: len(store.load(run).intervals) for run in there} == there
        store.close()

    def end(self) -> None:
        if self.farm is not None and self.farm.poll() is None:
            self.kill()
        self.lab.end()
