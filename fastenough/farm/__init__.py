# SPDX-License-Identifier: GPL-2.0-or-later
"""The farm: many boards watched for years, each switched, measured and pulled by processes that can be killed."""
