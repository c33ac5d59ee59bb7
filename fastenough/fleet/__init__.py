# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards that publish: chunks by MQTT into NATS JetStream, takers, an archive, a trial (docs/fleet-boards.md)."""
