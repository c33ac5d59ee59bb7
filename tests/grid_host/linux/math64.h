/* SPDX-License-Identifier: GPL-2.0-or-later */
#define div64_ul(dividend, divisor) ((u64)(dividend) / (unsigned long)(divisor))
