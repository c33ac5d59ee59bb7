# SPDX-License-Identifier: GPL-2.0-or-later
"""Complete jobs, from the request of a person to the result: shared by command line, web and farm."""
