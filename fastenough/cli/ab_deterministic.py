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
from fastenough.jobs.ab import AbTest
from fastenough.jobs.ab_deterministic import AbSets
from fastenough.model import ExitStatus
from fastenough.store import Store


def print_result(trial: AbTest, made: AbSets, store: Store, as_json: bool) -> ExitStatus:
    """Print the effect of the change; nothing if the test was stopped."""
    if made.with_it is None or made.with_it.stopped:
        return ExitStatus.INCONCLUSIVE
    without, with_it = ([store.load(run) for run in campaign.runs] for campaign in (made.without, made.with_it))
    comparisons = compare_instructions(without, with_it)
    conclusion = f"with {trial.name}, {instructions_conclusion(comparisons)}"
    if as_json:
        print_json(
            {
                "conclusion": conclusion,
                "campaign": made.without.id,
                "campaign_with": made.with_it.id,
                "change": trial.change,
                "runs": (*made.without.runs, *made.with_it.runs),
                "order": ("A",) * len(made.without.runs) + ("B",) * len(made.with_it.runs),
                "rounds": {"done": 1, "planned": 1},
                "decided": all(
                    isinstance(comparison, PathComparison) or comparison.significant for comparison in comparisons
                ),
                "effects": None,
                "paths": [comparison for comparison in comparisons if isinstance(comparison, PathComparison)],
                "maxima": [comparison for comparison in comparisons if isinstance(comparison, MaximaComparison)],
            }
        )
        return ExitStatus.DONE
    say(conclusion)
    for text in cautions([*without, *with_it]):
        say(f"caveat: {text}")
    print_instructions(comparisons, ("without", "with"))
    say("differences between runs without and with the change:")
    for text in dict.fromkeys(text for comparison in comparisons for text in comparison.differs):
        say(text, "  ")
    print(f"runs: {made.without.id} and {made.with_it.id} (fastenough list)")
    return ExitStatus.DONE
