/* SPDX-License-Identifier: GPL-2.0-or-later */
#define raw_smp_processor_id() 0
