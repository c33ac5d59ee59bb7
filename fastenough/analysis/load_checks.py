# SPDX-License-Identifier: GPL-2.0-or-later
"""Was the machine under the load that is stated, all the time?"""

from __future__ import annotations

from collections.abc import Iterator

from fastenough import words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.merged import load_name
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.recording.head import LoadProof

IDLE_SHARE = 0.1
"""Of the intervals, in so many a load that is there may do nothing: one that waits for a disk does."""


def load_ran(recording: Recording) -> Iterator[Finding]:
    name, stated = load_name(recording), recording.head.load
    proof = recording.end.load if recording.end else None
    if name is None:
        yield Finding(Verdict.INCONCLUSIVE, "the recording does not state under which load it was taken",
                      "measure with fastenough run or assess, which state and prove the load")
    elif stated is not None and stated.read_back:
        yield from _load_read_back(proof, name)
    elif name == "none":
        if (proof is not None and proof.ran is False) or (stated is not None and stated.commands):
            yield Finding(Verdict.BROKEN, "what was to be an idle machine was not", "run it again")
    elif proof is None or proof.name != name:
        yield Finding(Verdict.BROKEN, f"there is no proof that the load {name} ran", "run it again")
    elif proof.ran is not True:
        why = "; ".join(proof.reasons) or "no reason is recorded"
        yield Finding(Verdict.BROKEN, f"the load {name} did not run: {why}", "fix that and run it again")
    elif proof.stated:
        yield Finding(Verdict.INCONCLUSIVE, f"that the load {name} ran was stated by a person and not proven",
                      "measure with a plan (fastenough run --plan), which runs and proves the load")
    else:
        yield from _load_ran_all_the_time(recording, name)


def _load_read_back(proof: LoadProof | None, name: str) -> Iterator[Finding]:
    """Nobody started it, so nobody has failed to: what is not shown is not known."""
    if proof is None or proof.name != name or proof.ran is not True:
        why = "; ".join(proof.reasons) if proof else "the recording does not tell"
        yield Finding(Verdict.INCONCLUSIVE, f"that the board had the load {name} all the time is not shown: {why}",
                      "find out what else ran there, or state the load that it has")


def _load_ran_all_the_time(recording: Recording, name: str) -> Iterator[Finding]:
    """A load that ran for a while has consumed enough for a proof; each interval tells whether it went on."""
    seen, intervals = recording.aggregate.load, recording.aggregate.intervals
    settle = "fix what ends or stops it and run it again"
    if seen.gone or seen.idle > IDLE_SHARE * intervals:
        yield Finding(Verdict.BROKEN, f"the load {name} did not run all the time: it did nothing in "
                      f"{seen.gone + seen.idle} of {words.counted(intervals, 'interval')}", settle)
    elif seen.idle:
        yield Finding(Verdict.INCONCLUSIVE, f"the load {name} may not have run all the time: it did nothing in "
                      f"{seen.idle} of {words.counted(intervals, 'interval')}", settle)
    elif not seen.ran:
        yield Finding(Verdict.INCONCLUSIVE, f"whether the load {name} ran all the time is not recorded: it is told of "
                      f"0 of {words.counted(intervals, 'interval')}",
                      "measure with this version, on a bench that has time to look at the load in each interval")
    elif intervals - seen.ran > IDLE_SHARE * intervals:
        yield Finding(Verdict.INCONCLUSIVE, f"whether the load {name} ran all the time is not known: the bench was "
                      f"busy and looked at it in {seen.ran} of {words.counted(intervals, 'interval')} only",
                      "run it again while the bench has less else to do")
