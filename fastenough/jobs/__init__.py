# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: a whole job each, from what a person wants to what they are told, used by command line, web and farm alike."""
