/* SPDX-License-Identifier: GPL-2.0-or-later */
#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
