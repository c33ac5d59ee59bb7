# SPDX-License-Identifier: GPL-2.0-or-later
"""The result of an A/B test on a deterministic board."""

from __future__ import annotations

from fastenough.analysis.compare import cautions
from fastenough.analysis.instructions import (
    MaximaComparison,
    PathComparison,
    compare_instructions,
    instructions_conclusion,
)
from fastenough.cli.instruction_tables import print_instructions
from fastenough.cli.output import print_json, say
from fastenough.jobs.ab import AbResult, AbRounds, AbTest
from fastenough.jobs.ab_deterministic import AbSets
from fastenough.model import ExitStatus
from fastenough.store import Store


def print_result(trial: AbTest, made: AbSets, store: Store, as_json: bool) -> ExitStatus:
    """Print the effect of the change; nothing if the test was stopped."""
    if made.with_change is None or made.with_change.stopped:
        return ExitStatus.INCONCLUSIVE
    without, with_change = ([store.load(run) for run in campaign.runs] for campaign in (made.without, made.with_change))
    comparisons = compare_instructions(without, with_change)
    conclusion = f"with {trial.name}, {instructions_conclusion(comparisons)}"
    caveats = cautions([*without, *with_change])
    if as_json:
        print_json(
            AbResult(
                conclusion,
                made.without.id,
                made.with_change.id,
                trial.change,
                runs=(*made.without.runs, *made.with_change.runs),
                order=("A",) * len(made.without.runs) + ("B",) * len(made.with_change.runs),
                rounds=AbRounds(1, 1),
                decided=all(
                    isinstance(comparison, PathComparison) or comparison.significant for comparison in comparisons
                ),
                paths=[comparison for comparison in comparisons if isinstance(comparison, PathComparison)],
                maxima=[comparison for comparison in comparisons if isinstance(comparison, MaximaComparison)],
                cautions=caveats,
            )
        )
        return ExitStatus.DONE
    say(conclusion)
    for text in caveats:
        say(f"caveat: {text}")
    print_instructions(comparisons, ("without", "with"))
    say("differences between runs without and with the change:")
    for text in dict.fromkeys(text for comparison in comparisons for text in comparison.differences):
        say(text, "  ")
    print(f"runs: {made.without.id} and {made.with_change.id} (fastenough list)")
    return ExitStatus.DONE
