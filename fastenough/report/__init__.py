# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in, documents out (SPEC section 10); pure: knows neither machine nor store."""

import logging

# Before matplotlib is loaded: of a home that cannot be written it warns in two lines, and goes on well.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

from fastenough.report.write import require_writable, write_report  # noqa: E402

__all__ = ["require_writable", "write_report"]
