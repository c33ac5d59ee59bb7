/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock tree, from a 12 MHz crystal, and the time of the program. */
#include "drivers.h"
#include "machine.h"
#include "registers.h"

#define TICKS_PER_MICROSECOND (CLOCK_HZ / 1000000)
#define CRYSTAL_MHZ 12
#define STARTUP_1_MS 47 /* in units of 256 crystal periods */
#define USED_BLOCKS (RESETS_RESET_IO_BANK0_BITS | RESETS_RESET_PADS_BANK0_BITS | RESETS_RESET_PIO0_BITS | \
	             RESETS_RESET_PLL_SYS_BITS | RESETS_RESET_TIMER_BITS)

void unreset_blocks(uint32_t blocks)
{
	RESETS_RESET_CLR = blocks;
	while ((RESETS_RESET_DONE & blocks) != blocks)
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

void pll_begin(uint32_t pll, uint32_t fbdiv, uint32_t postdiv1, uint32_t postdiv2)
{
	PLL_CS(pll) = 1u << PLL_CS_REFDIV_LSB;
	PLL_FBDIV_INT(pll) = fbdiv;
	PLL_PWR_CLR(pll) = PLL_PWR_PD_BITS | PLL_PWR_VCOPD_BITS;
	while (!(PLL_CS(pll) & PLL_CS_LOCK_BITS))
		;
	PLL_PRIM(pll) = postdiv1 << PLL_PRIM_POSTDIV1_LSB | postdiv2 << PLL_PRIM_POSTDIV2_LSB;
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
	unreset_blocks(USED_BLOCKS);
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

/* Microseconds since the start.  Reading the low word latches the high one. */
static uint32_t read_microseconds(uint32_t *high)
{
	uint32_t low = TIMER_TIMELR;

	*high = TIMER_TIMEHR;
	return low;
}

/* Ticks since the counter was started, modulo 2^24. */
static uint32_t read_cycles(void)
{
	return 0xffffff - M0PLUS_SYST_CVR;
}

/* The timer of microseconds, which has the same crystal, provides the upper bits of the cycle counter. */
uint64_t machine_ticks(void)
{
	uint32_t high, low, count;
	uint64_t about;

	machine_lock();
	low = read_microseconds(&high);
	count = read_cycles();
	machine_unlock();
	about = ((uint64_t)high << 32 | low) * TICKS_PER_MICROSECOND;
	return about + (uint64_t)(int64_t)((int32_t)((count - (uint32_t)about) << 8) >> 8);
}

/* Avoids 64-bit products.  One microsecond is 62.5 pairs. */
uint32_t clock_pairs(void)
{
	uint32_t high, low = read_microseconds(&high);
	uint32_t about = low * (TICKS_PER_MICROSECOND / 2) + (low >> 1 | high << 31);

	return about + (uint32_t)((int32_t)((read_cycles() / 2 - about) << 9) >> 9);
}

uint32_t machine_now(void)
{
	uint32_t about = TIMER_TIMELR * TICKS_PER_MICROSECOND;

	return about + (uint32_t)((int32_t)((read_cycles() - about) << 8) >> 8);
}

int32_t clock_ahead(uint32_t tick)
{
	return (int32_t)((tick - read_cycles()) << 8) >> 8;
}
