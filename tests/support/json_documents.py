# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape of the document that each command prints with ``--json``, from which docs/schemas is derived.

``python -m tests.support.json_documents`` writes docs/schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jsonschema

from fastenough.analysis import Assessment, Comparison, Measures
from fastenough.analysis.advice import Advice
from fastenough.analysis.excluded_runs import ExcludedRuns
from fastenough.analysis.gate import Departure, LimitResult
from fastenough.analysis.instructions import MaximaComparison, PathComparison
from fastenough.analysis.station_delays import StationAgreement, StationResult
from fastenough.analysis.task_set import TaskAnswer
from fastenough.analysis.uncertainty import LatencyUncertainty
from fastenough.audit.finding import Change, Finding
from fastenough.campaign.expand import RunSpec
from fastenough.cli.audit_measure import AuditMeasurement
from fastenough.cli.bench_kernel import KernelBuild
from fastenough.cli.doctor import Diagnosis
from fastenough.cli.farm_causes import CauseRanking
from fastenough.cli.farm_first_change import FirstChange
from fastenough.cli.farm_judge import ArchiveJudgment
from fastenough.cli.farm_kernels import KernelComparison
from fastenough.cli.farm_order import OrderResult
from fastenough.exchange.rows import SERIES_COLUMNS
from fastenough.farm.bisect import Bisection
from fastenough.farm.tokens import Token
from fastenough.fleet.access import FleetUser
from fastenough.fleet.compaction import CompactedPartition
from fastenough.fleet.quarantine import LiftedQuarantine, QuarantinedMachine
from fastenough.fleet.trial import FleetTrialResult
from fastenough.gauge.calibration import Calibration, SelfTest
from fastenough.gauge.ports import Port
from fastenough.gauge.protocol import Identity
from fastenough.hunt.phases import Confirmed
from fastenough.implementations.catalogue import ProbeEntry
from fastenough.jobs.ab import AbResult
from fastenough.jobs.bisect import CommitBisection
from fastenough.jobs.bound import CpuBound
from fastenough.jobs.calibrate import WitnessResult
from fastenough.jobs.fleet import FleetResult
from fastenough.jobs.plan_test import DurationPlan
from fastenough.jobs.pull import PullResult
from fastenough.jobs.verify import Verified
from fastenough.loads import Load
from fastenough.model import Outcome, Series, Verdict
from fastenough.recording.samples_parquet import Exported
from fastenough.reference import Reference
from fastenough.reference.claims import Claim
from fastenough.store import RunSummary
from fastenough.store.campaign import PlannedRun
from fastenough.virtual.bench_process import BenchState
from tests.support.cli_calls import ROOT
from tests.support.json_schemas import Either, Extended, ListOf, Maybe, Versioned, field_types, schema_of

SCHEMAS = ROOT / "docs" / "schemas"
_Object = Mapping[str, Any]
_Strings = ListOf(str)

_ASSESSMENT = Versioned(
    {"assessment": Assessment, "report": _Strings, "conclusion": Maybe(str), "tasks": Maybe(TaskAnswer)}
)
_CAMPAIGN = Versioned({"campaign": str, "stopped": bool, "runs": ListOf(RunSummary)})
_BENCH = Versioned({"running": bool, **{name: Maybe(kind) for name, kind in field_types(BenchState).items()}})
_FAULTS = Versioned({"faults": Mapping[str, str]})
_BOARD_CHANGE = Versioned({"board": str, "change": Literal["retired", "renamed", "withdrawn"]})
_TOKEN = Extended(Token, {}, omitted=("sha256",))
_FLEET_USER = Extended(FleetUser, {}, omitted=("bcrypt",))
_FARM_LINE = {"at_s": float, "message": str}

_AUDIT = Versioned(
    {
        "board": str,
        "machine": str,
        "conclusion": str,
        "findings": ListOf(Extended(Finding, {"changes": ListOf(Extended(Change, {"instruction": str}))})),
        "measured": Maybe(AuditMeasurement),
    }
)
_CALIBRATION = Versioned(
    {
        "board": str,
        "calibrations": ListOf(Extended(WitnessResult, {"passed": bool | None, "shortfall": str | None})),
    }
)
_STATIONS = Versioned(
    {
        "board": str,
        "stations": ListOf(
            {
                "station": str,
                "cpu": int,
                "injector": str,
                "rows": ListOf(Extended(StationResult, {"excess_ns": float | None, "tolerated_ns": float | None})),
                "reason": str | None,
                "passed": bool | None,
                "shortfall": str | None,
                "unrecorded_by_reason": ListOf(tuple[str, int]),
            }
        ),
        "agreement": ListOf(Extended(StationAgreement, {"unexplained": int})),
    }
)
_MONITOR_LINES = Either(
    (
        {"type": Literal["begin"], "version": int, "run": str, "parameters": _Object},
        {
            "type": Literal["interval"],
            "seq": int | None,
            "end_mono_ns": int | None,
            "stations": ListOf(
                {
                    "station": str,
                    "cpu": int | None,
                    "n": int,
                    "lost": int,
                    "current_ns": int | None,
                    "worst_ns": int | None,
                    "age_ns": int | None,
                }
            ),
        },
        {
            "type": Literal["wake-up"],
            "mono_ns": int,
            "wall_ns": int | None,
            "cpu": int | None,
            "delay_ns": int | None,
            "stations": Mapping[str, float],
            "longest": str | None,
            "blamed": str | None,
            "culprit": _Object,
        },
        {"type": Literal["skipped"], "events": int},
        {"type": Literal["missing"], "lines": int},
        {"type": Literal["end"], "outcome": Outcome | None, "reasons": _Strings, "counters": _Object},
    )
)
_GAUGE_RUN = Versioned(
    {
        "outcome": Outcome,
        "reasons": _Strings,
        "run": Maybe(str),
        "store": Maybe(str),
        "recording": Maybe(str),
        "series": ListOf(
            {
                "series": str,
                "count": int,
                "lost": int,
                "missed": int,
                "min_ns": float | None,
                "mean_ns": float | None,
                "p99_ns": float | None,
                "max_ns": float | None,
            }
        ),
    }
)
_IMPORT = Versioned(
    {
        "runs": ListOf(
            {
                "id": str,
                "new": bool,
                "tool": str,
                "version": str | None,
                "series": ListOf(
                    {
                        "name": str,
                        "unit": Literal["ns"],
                        "count": int | None,
                        "min": float | None,
                        "max": float | None,
                        "mean": float | None,
                        "overflow": int | None,
                    }
                ),
            }
        )
    }
)
_EXPORT = {
    "runs": ListOf(
        {
            "id": str,
            "head": _Object,
            "end": _Object | None,
            "cut_off": str | None,
            "duration_ns": int | None,
            "series": ListOf(
                {
                    "name": str,
                    **{column: Any for column in SERIES_COLUMNS if column != "series"},
                    "labels": _Object,
                    "count": int | None,
                    "lost": int,
                    "missed": int,
                    "min_ns": float | None,
                    "max_ns": float | None,
                    "mean_ns": float | None,
                    "quantiles": ListOf(
                        {
                            "quantile": float,
                            "ns": float | None,
                            "at_least_ns": float | None,
                            "lower_ns": float | None,
                            "upper_ns": float | None,
                            "reason": str | None,
                        }
                    ),
                    "buckets": ListOf({"least_ns": float, "greatest_ns": float, "count": int}),
                }
            ),
        }
    )
}

LINES = {"monitor", "farm run", "farm take", "farm try", "farm alert"}
"""Commands that print one document per line."""

DOCUMENTS: Mapping[str, Any] = {
    "assess": Either((_ASSESSMENT, Versioned({"verdict": Verdict, "conclusion": str, "reasons": _Strings}))),
    "run": _CAMPAIGN,
    "campaign plan": Versioned(
        {
            "name": str,
            "title": str,
            "question": str,
            "settings": _Object,
            "runs": ListOf(Extended(RunSpec, {"title": str})),
            "recordings": _Strings,
            "measured_s": float,
            "expected_s": float,
        }
    ),
    "campaign run": _CAMPAIGN,
    "campaign resume": _CAMPAIGN,
    "campaign status": Versioned({"campaign": str, "states": Mapping[str, int], "runs": ListOf(PlannedRun)}),
    "plan-test": Versioned(DurationPlan),
    "list-probes": Versioned(
        {"probes": ListOf(ProbeEntry), "loads": _Strings, "implementations": Mapping[str, list[str]]}
    ),
    "calibrate": Either((_CALIBRATION, _STATIONS)),
    "list": ListOf(RunSummary),
    "show": Versioned(
        {
            "head": _Object,
            "end": _Object | None,
            "cut_off": str | None,
            "damage": str | None,
            "measures": ListOf({"series": Series, "measures": Measures, "uncertainty": ListOf(LatencyUncertainty)}),
            "events": ListOf(_Object),
        }
    ),
    "report": _ASSESSMENT,
    "compare": Versioned(
        {
            "conclusion": str,
            "cautions": _Strings,
            "comparisons": ListOf(Comparison),
            "paths": ListOf(PathComparison),
            "maxima": ListOf(MaximaComparison),
        }
    ),
    "advise": Versioned(Advice),
    "reference": Either(
        (
            ListOf(Reference),
            Versioned({"reference": Reference, "claims": ListOf({"claim": Claim, "computed": str})}),
        )
    ),
    "pack": Versioned(
        {
            "pack": str,
            "signed": bool,
            "runs": _Strings,
            "verdict": Verdict,
            "headline": str,
            "excluded": ListOf(ExcludedRuns),
        }
    ),
    "verify": Versioned(Extended(Verified, {"pack": str})),
    "fleet": Versioned(FleetResult),
    "audit": _AUDIT,
    "ab": Versioned(AbResult),
    "hunt": Versioned(
        {
            "conclusion": str,
            "cautions": _Strings,
            "campaign": str,
            "runs": _Strings,
            "failed": int,
            "worst_fixed": str | None,
            "result": Confirmed | None,
            "load": Load | None,
            "culprit": Either(({"load": Load, "runs": _Strings, "cause": str}, type(None))),
        }
    ),
    "bound": ListOf(CpuBound),
    "monitor": _MONITOR_LINES,
    "monitor pull": Versioned(PullResult),
    "farm run": _FARM_LINE,
    "farm take": _FARM_LINE,
    "farm user add": Versioned({"passwords": Mapping[str, str]}),
    "farm user conf": Versioned({"configuration": str}),
    "farm user list": Versioned({"users": ListOf(_FLEET_USER)}),
    "farm user revoke": Versioned({"revoked": _FLEET_USER}),
    "farm quarantine list": Versioned({"quarantined": ListOf(QuarantinedMachine), "lifted": ListOf(LiftedQuarantine)}),
    "farm quarantine lift": Versioned({"lifted": LiftedQuarantine}),
    "farm order": Versioned(OrderResult),
    "farm compact": Versioned({"compacted": ListOf(CompactedPartition)}),
    "farm judge": Versioned(ArchiveJudgment),
    "farm causes": Versioned(CauseRanking),
    "farm first-change": Versioned(FirstChange),
    "farm kernels": Versioned(KernelComparison),
    "farm try": Either((_FARM_LINE, Versioned(FleetTrialResult))),
    "farm status": Versioned(
        {
            "running": bool,
            "status": str | None,
            "status_at_s": float | None,
            "boards": ListOf(
                {
                    "board": str,
                    "state": str,
                    "since_s": float,
                    "reason": str,
                    "failures": int,
                    "new_at_s": float | None,
                    "refused": str,
                }
            ),
        }
    ),
    "farm board rename": _BOARD_CHANGE,
    "farm board retire": _BOARD_CHANGE,
    "farm board withdraw": _BOARD_CHANGE,
    "farm rebuild": Versioned({"runs": int, "intervals": int, "excluded": Mapping[str, str]}),
    "farm alert": {"faults": _Strings},
    "bisect": Versioned(CommitBisection),
    "farm bisect": Versioned({"bisection": Bisection, "measurements": int}),
    "farm token add": Versioned({"name": str, "token": str}),
    "farm token list": Versioned({"tokens": ListOf(_TOKEN)}),
    "farm token revoke": Versioned({"revoked": _TOKEN}),
    "farm push": Versioned({"stored": Mapping[str, bool]}),
    "web": Either((Versioned({"url": str}), Versioned({"out_dir": str, "files": int}))),
    "check": Versioned(
        {
            "conclusion": str,
            "verdict": Verdict,
            "limits": ListOf(LimitResult),
            "gaps": _Strings,
            "departures": ListOf(Departure),
            "comparisons": ListOf(Comparison),
            "paths": ListOf(PathComparison),
            "maxima": ListOf(MaximaComparison),
            "not_applicable": _Strings,
            "excluded": ListOf(ExcludedRuns),
        }
    ),
    "doctor": Either((ListOf(Diagnosis), Versioned({"restored": _Strings}))),
    "gauge calibrate": Versioned(Extended(Calibration, {"serial": str | None})),
    "gauge flash": Versioned({"board": str, "port": str, "image": str, "written": bool}),
    "gauge id": Versioned(Extended(Identity, {"port": str})),
    "gauge list": ListOf(Port),
    "gauge run": _GAUGE_RUN,
    "gauge selftest": Versioned(Extended(SelfTest, {"serial": str | None})),
    "gauge stop": Versioned({"port": str, "stopped": bool}),
    "bench down": Versioned({"ended": bool}),
    "bench kernel build": Versioned(KernelBuild),
    "bench status": _BENCH,
    "bench up": _BENCH,
    "store export-samples": Versioned(Exported),
    "store rebuild": _FAULTS,
    "store verify": _FAULTS,
    "import": _IMPORT,
    "export": _EXPORT,
    "completion": Versioned({"shell": str, "script": str}),
}
"""By the name of the command; the documents of LINES are one per line."""


def path_of(command: str) -> Path:
    """The file of a command's schema."""
    return SCHEMAS / f"{command.replace(' ', '-')}.json"


def require_valid(command: str, printed: str | bytes) -> Any:
    """The document that a command printed; raises ValidationError unless it has the form of docs/schemas.

    If the command prints one document per line: the list of them.
    """
    validator = jsonschema.Draft202012Validator(json.loads(path_of(command).read_text()))
    if command in LINES:
        documents = [json.loads(line) for line in printed.splitlines()]
        for document in documents:
            validator.validate(document)
        return documents
    document = json.loads(printed)
    validator.validate(document)
    return document


def derived() -> dict[Path, str]:
    """The schema of each command as text, by its file."""
    return {
        path_of(command): json.dumps(schema_of(command, shape), indent=1) + "\n" for command, shape in DOCUMENTS.items()
    }


def main() -> None:
    """Write docs/schemas."""
    SCHEMAS.mkdir(exist_ok=True)
    texts = derived()
    for path in set(SCHEMAS.glob("*.json")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
