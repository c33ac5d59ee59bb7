# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough verify``: check a pack and recompute its verdict."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, say, say_list
from fastenough.cli.progress import Work
from fastenough.jobs.verify import Verified, verify
from fastenough.model import ExitStatus
from fastenough.pack.derived import Versions
from fastenough.pack.signature import Signer

_FILE = click.Path(path_type=Path, dir_okay=False)


def signer_text(signer: Signer | None) -> str:
    """Who signed, in one sentence."""
    if signer is None:
        return "not signed: whoever has the pack can change it and its hashes"
    if signer.principal is None:
        return f"signed with {signer.key}; the signer is unknown: pass --signers FILE to check who it is"
    return f"signed by {signer.principal} with {signer.key}"


def _print(path: Path, verified: Verified) -> None:
    say(f"{path}: intact: {words.counted(verified.members, 'file')}, {words.counted(len(verified.runs), 'run')}")
    say(signer_text(verified.signer))
    same = "recomputed, the same" if verified.same else "recomputed, NOT the one in the pack"
    say(f"{verified.assessment.verdict}: {verified.assessment.headline} ({same})")
    say_list("Differences", verified.differences)
    say_list("Stated by the pack, not recomputed", verified.not_recomputed)
    if verified.versions != verified.versions_here:
        say("packed with " + _programs(verified.versions))
        say("verified with " + _programs(verified.versions_here))


def _programs(versions: Versions) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(versions).items())


@click.command(cls=Command, example="fastenough verify evidence.zip --signers allowed_signers")
@click.argument("pack", type=_FILE)
@click.option("--signers", type=_FILE, metavar="FILE", help="Allowed signers (ssh-keygen(1)); one must have signed.")
@json_option
def command(*, pack: Path, signers: Path | None, as_json: bool) -> ExitStatus:
    """Check an evidence pack and recompute its verdict.

    Checks the hashes and the signature of PACK, judges its recordings by its question, and compares the verdicts.  The
    status is 0 if the verdict is the same, 1 if it differs, and 2 if PACK is damaged or not signed as required.
    """
    with Work("checking the hashes") as work:
        verified = verify(pack, signers, work.step)
    if as_json:
        print_json({"pack": str(pack)} | asdict(verified))
    else:
        _print(pack, verified)
    return ExitStatus.DONE if verified.same else ExitStatus.FAIL
