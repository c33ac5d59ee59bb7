/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number that each flash has from its maker: the chip has none.  Nothing else reads the flash once the program runs. */
#include "chip.h"
#include "parts.h"

#define READ_UNIQUE_ID 0x4b
#define BYTES_BEFORE 5 /* the command and four of no meaning */
#define EXCHANGED (BYTES_BEFORE + FLASH_ID_BYTES)
#define PATIENCE 10000
_Static_assert(EXCHANGED <= 16, "all of it fits the queue, which must not run dry in between");

/* A byte is sent for each that is received. */
static void exchange_begin(void)
{
	SSI_SSIENR = 0;
	SSI_CTRLR0 = (8u - 1) << SSI_CTRLR0_DFS_32_LSB;
	SSI_SER = 1;
	SSI_SSIENR = 1;
	SSI_DR0 = READ_UNIQUE_ID;
	for (uint8_t i = 1; i < EXCHANGED; i++)
		SSI_DR0 = 0;
}

void flash_id(uint8_t id[FLASH_ID_BYTES])
{
	exchange_begin();
	for (uint32_t patience = PATIENCE; SSI_RXFLR < EXCHANGED; patience--)
		if (!patience)
			break;
	for (uint8_t i = 0; i < BYTES_BEFORE; i++)
		(void)SSI_DR0;
	for (uint8_t i = 0; i < FLASH_ID_BYTES; i++)
		id[i] = (uint8_t)SSI_DR0;
}
