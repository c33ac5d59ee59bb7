# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports: recordings in, documents out.  Independent of machine and store.

matplotlib takes a second to load, so ``write_report`` is loaded on first use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastenough.report.output import require_writable

# Before matplotlib is loaded: it warns about a read-only home directory.
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
