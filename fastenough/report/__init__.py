# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in, documents out (SPEC section 10); pure: knows neither machine nor store."""

from fastenough.report.write import require_writable, write_report

__all__ = ["require_writable", "write_report"]
