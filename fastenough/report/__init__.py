# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in, documents out; pure: knows neither machine nor store.

What draws is loaded when a report is made: that takes a second, which help and a complaint have no use for.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastenough.report.place import require_writable

# Before matplotlib is loaded: of a home that cannot be written it warns in two lines, and goes on well.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

if TYPE_CHECKING:
    from fastenough.report.write import write_report
else:

    def __getattr__(name: str) -> Any:
        if name != "write_report":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from fastenough.report import write  # noqa: PLC0415 - see above

        return write.write_report


__all__ = ["require_writable", "write_report"]
