/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock tree, from a crystal of 12 MHz, and the time of the program. */
#include "chip.h"
#include "machine.h"
#include "parts.h"

#define TICKS_OF_MICROSECOND (CLOCK_HZ / 1000000)
#define CRYSTAL_MHZ 12
#define STARTUP_1_MS 47 /* in 256 periods of the crystal */
#define USED_BLOCKS (RESETS_RESET_IO_BANK0_BITS | RESETS_RESET_PADS_BANK0_BITS | RESETS_RESET_PIO0_BITS | \
	             RESETS_RESET_PLL_SYS_BITS | RESETS_RESET_TIMER_BITS)

void chip_begin(uint32_t parts)
{
	RESETS_RESET_CLR = parts;
	while ((RESETS_RESET_DONE & parts) != parts)
		;
}

static void crystal_begin(void)
{
	XOSC_CTRL = XOSC_CTRL_FREQ_RANGE_VALUE_1_15MHZ;
	XOSC_STARTUP = STARTUP_1_MS;
	XOSC_CTRL = XOSC_CTRL_FREQ_RANGE_VALUE_1_15MHZ | XOSC_CTRL_ENABLE_VALUE_ENABLE << XOSC_CTRL_ENABLE_LSB;
	while (!(XOSC_STATUS & XOSC_STATUS_STABLE_BITS))
		;
	CLOCKS_CLK_SYS_CTRL = 0;
	CLOCKS_CLK_REF_CTRL = CLOCKS_CLK_REF_CTRL_SRC_VALUE_XOSC_CLKSRC;
	while (!(CLOCKS_CLK_REF_SELECTED & (1u << CLOCKS_CLK_REF_CTRL_SRC_VALUE_XOSC_CLKSRC)))
		;
}

void pll_begin(uint32_t pll, uint32_t multiplier, uint32_t first, uint32_t second)
{
	PLL_CS(pll) = 1;
	PLL_FBDIV_INT(pll) = multiplier;
	PLL_PWR_CLR(pll) = PLL_PWR_PD_BITS | PLL_PWR_VCOPD_BITS;
	while (!(PLL_CS(pll) & PLL_CS_LOCK_BITS))
		;
	PLL_PRIM(pll) = first << PLL_PRIM_POSTDIV1_LSB | second << PLL_PRIM_POSTDIV2_LSB;
	PLL_PWR_CLR(pll) = PLL_PWR_POSTDIVPD_BITS;
}

static void run_from_pll(void)
{
	pll_begin(PLL_SYS_BASE, 125, 6, 2);
	CLOCKS_CLK_SYS_CTRL = 0;
	CLOCKS_CLK_SYS_CTRL = CLOCKS_CLK_SYS_CTRL_SRC_VALUE_CLKSRC_CLK_SYS_AUX;
	while (!(CLOCKS_CLK_SYS_SELECTED & (1u << CLOCKS_CLK_SYS_CTRL_SRC_VALUE_CLKSRC_CLK_SYS_AUX)))
		;
}

void clock_begin(void)
{
	crystal_begin();
	chip_begin(USED_BLOCKS);
	run_from_pll();
	WATCHDOG_TICK = CRYSTAL_MHZ | WATCHDOG_TICK_ENABLE_BITS;
	M0PLUS_SYST_RVR = 0xffffff;
	M0PLUS_SYST_CVR = 0;
	M0PLUS_SYST_CSR = M0PLUS_SYST_CSR_CLKSOURCE_BITS | M0PLUS_SYST_CSR_ENABLE_BITS;
}

void machine_lock(void)
{
	__asm__ volatile("cpsid i" : : : "memory");
}

void machine_unlock(void)
{
	__asm__ volatile("cpsie i" : : : "memory");
}

/* Microseconds since the start; reading the low word keeps the high one that belongs to it. */
static uint32_t microseconds(uint32_t *high)
{
	uint32_t low = TIMER_TIMELR;

	*high = TIMER_TIMEHR;
	return low;
}

/* Ticks, modulo 2^24, since the counter was started. */
static uint32_t cycles(void)
{
	return 0xffffff - M0PLUS_SYST_CVR;
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
	uint32_t about = TIMER_TIMELR * TICKS_OF_MICROSECOND;

	return about + (uint32_t)((int32_t)((cycles() - about) << 8) >> 8);
}

int32_t clock_ahead(uint32_t tick)
{
	return (int32_t)((tick - cycles()) << 8) >> 8;
}
