/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC-16/XMODEM (polynomial 0x1021, start 0, "123456789" gives 0x31C3), a byte at a time without a table. */
#ifndef GAUGE_CRC16_H
#define GAUGE_CRC16_H

#include <stdint.h>

static inline uint16_t crc16_add(uint16_t crc, uint8_t byte)
{
	uint8_t high = (uint8_t)(crc >> 8) ^ byte;

	high ^= high >> 4;
	return (uint16_t)(crc << 8) ^ ((uint16_t)high << 12) ^ ((uint16_t)high << 5) ^ high;
}

#endif
