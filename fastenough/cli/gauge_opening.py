# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge that a command works on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from fastenough.gauge.ports import find_port
from fastenough.gauge.protocol import Refused
from fastenough.gauge.session import Gauge
from fastenough.model import BadInput

port_argument = click.argument("port", required=False)


@contextlib.contextmanager
def opened(port: str | None) -> Iterator[Gauge]:
    """The gauge at a port or with a serial number, or the only gauge; raises BadInput if it refuses a request."""
    try:
        with Gauge(find_port(port)) as gauge:
            yield gauge
    except Refused as error:
        raise BadInput(f"refused by the gauge: {error}") from error
