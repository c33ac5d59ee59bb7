# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards that push: chunks by MQTT into NATS JetStream, takers, an archive, a trial (docs/fleet-boards.md)."""
