/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unique number of the flash, because the chip itself has none.  Nothing else reads the flash after boot. */
#include "drivers.h"
#include "registers.h"

#define READ_UNIQUE_ID 0x4b
#define HEADER_BYTES 5 /* the command and four dummy bytes */
#define TRANSFER_BYTES (HEADER_BYTES + FLASH_ID_BYTES)
#define MAX_POLLS 10000
_Static_assert(TRANSFER_BYTES <= 16, "the transfer fits the FIFO, which must not become empty before its end");

/* One byte is sent for each byte that is received. */
static void transfer_begin(void)
{
	SSI_SSIENR = 0;
	SSI_CTRLR0 = (8u - 1) << SSI_CTRLR0_DFS_32_LSB;
	SSI_SER = 1;
	SSI_SSIENR = 1;
	SSI_DR0 = READ_UNIQUE_ID;
	for (uint8_t i = 1; i < TRANSFER_BYTES; i++)
		SSI_DR0 = 0;
}

void flash_id(uint8_t id[FLASH_ID_BYTES])
{
	transfer_begin();
	for (uint32_t polls = MAX_POLLS; SSI_RXFLR < TRANSFER_BYTES; polls--)
		if (!polls)
			break;
	for (uint8_t i = 0; i < HEADER_BYTES; i++)
		(void)SSI_DR0;
	for (uint8_t i = 0; i < FLASH_ID_BYTES; i++)
		id[i] = (uint8_t)SSI_DR0;
}
