# SPDX-License-Identifier: GPL-2.0-or-later
"""First import of the fork server of acts, so that the server ends with the farm.  Import it nowhere else.

Without it the server would end later, after the exit handlers of its libraries.
"""

from __future__ import annotations

from fastenough.farm.child_process import end_with_parent

end_with_parent()
