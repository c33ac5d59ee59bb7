# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m fastenough``."""

from fastenough.cli import main

if __name__ == "__main__":
    main()
