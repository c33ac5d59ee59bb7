# SPDX-License-Identifier: GPL-2.0-or-later
"""The external instrument: protocol, session, measurement, calibration, flashing of its firmware."""
