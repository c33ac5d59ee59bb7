/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock tree, from a crystal of 12 MHz, and the time of the program. */
#include "chip.h"
#include "machine.h"
#include "parts.h"

#define TICKS_OF_MICROSECOND (CLOCK_HZ / 1000000)
#define CRYSTAL_MHZ 12
#define FROM_CRYSTAL 2
#define FROM_PLL 1
#define STARTUP_1_MS 47 /* in 256 periods of the crystal */
#define USED (RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PIO0 | RESET_PLL_SYS | RESET_TIMER)

void chip_begin(uint32_t parts)
{
	RESETS_CLEAR = parts;
	while ((RESETS_DONE & parts) != parts)
		;
}

static void crystal_begin(void)
{
	XOSC_CTRL = XOSC_1_TO_15_MHZ;
	XOSC_STARTUP = STARTUP_1_MS;
	XOSC_CTRL = XOSC_1_TO_15_MHZ | XOSC_ENABLE;
	while (!(XOSC_STATUS & XOSC_STABLE))
		;
	CLK_SYS_CTRL = 0;
	CLK_REF_CTRL = FROM_CRYSTAL;
	while (!(CLK_REF_SELECTED & (1u << FROM_CRYSTAL)))
		;
}

void pll_begin(uint32_t pll, uint32_t multiplier, uint32_t first, uint32_t second)
{
	PLL_CS(pll) = 1;
	PLL_MULTIPLIER(pll) = multiplier;
	PLL_POWER_CLEAR(pll) = PLL_POWER_DOWN | PLL_OSCILLATOR_DOWN;
	while (!(PLL_CS(pll) & PLL_LOCK))
		;
	PLL_DIVIDERS(pll) = first << 16 | second << 12;
	PLL_POWER_CLEAR(pll) = PLL_DIVIDERS_DOWN;
}

static void run_from_pll(void)
{
	pll_begin(PLL_SYS, 125, 6, 2);
	CLK_SYS_CTRL = 0;
	CLK_SYS_CTRL = FROM_PLL;
	while (!(CLK_SYS_SELECTED & (1u << FROM_PLL)))
		;
}

void clock_begin(void)
{
	crystal_begin();
	chip_begin(USED);
	run_from_pll();
	WATCHDOG_TICK = CRYSTAL_MHZ | WATCHDOG_TICK_ON;
	SYSTICK_RELOAD = 0xffffff;
	SYSTICK_COUNT = 0;
	SYSTICK_CONTROL = SYSTICK_EACH_CYCLE;
}

/* Microseconds since the start; reading the low word keeps the high one that belongs to it. */
static uint32_t microseconds(uint32_t *high)
{
	uint32_t low = MICROSECONDS_LOW;

	*high = MICROSECONDS_HIGH;
	return low;
}

/* Ticks, modulo 2^24, since the counter was started. */
static uint32_t cycles(void)
{
	return 0xffffff - SYSTICK_COUNT;
}

/* The microseconds, of the same crystal, say which turn of the counter of cycles this is. */
uint64_t machine_ticks(void)
{
	uint32_t high, low, count;
	uint64_t about;

	machine_lock();
	low = microseconds(&high);
	count = cycles();
	machine_unlock();
	about = ((uint64_t)high << 32 | low) * TICKS_OF_MICROSECOND;
	return about + (uint64_t)(int64_t)((int32_t)((count - (uint32_t)about) << 8) >> 8);
}

/* Without products of 64 bits; 62.5 pairs are a microsecond. */
uint32_t clock_pairs(void)
{
	uint32_t high, low = microseconds(&high);
	uint32_t about = low * (TICKS_OF_MICROSECOND / 2) + (low >> 1 | high << 31);

	return about + (uint32_t)((int32_t)((cycles() / 2 - about) << 9) >> 9);
}

uint32_t machine_now(void)
{
	uint32_t about = MICROSECONDS_LOW * TICKS_OF_MICROSECOND;

	return about + (uint32_t)((int32_t)((cycles() - about) << 8) >> 8);
}

int32_t clock_ahead(uint32_t tick)
{
	return (int32_t)((tick - cycles()) << 8) >> 8;
}
