# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of ``scipy.special``, which is imported when the first of them is called.

The import takes 0.2 s, about half of what a command spends before its work, and most commands call none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Import ``scipy.special``, return its attribute of this name, and store it in this module."""
        if name.startswith("_"):
            raise AttributeError(name)
        function = globals()[name] = getattr(import_module("scipy.special"), name)
        return function
