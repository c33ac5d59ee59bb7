/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers used here, by the names of the RP2040's datasheet. */
#ifndef GAUGE_CHIP_H
#define GAUGE_CHIP_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLEAR_BITS 0x3000 /* added to the address of a peripheral's register: what is written is cleared there */
#define SET_BITS 0x2000

#define CLOCKS(offset) REGISTER(0x40008000 + (offset))
#define CLK_REF_CTRL CLOCKS(0x30)
#define CLK_REF_SELECTED CLOCKS(0x38)
#define CLK_SYS_CTRL CLOCKS(0x3c)
#define CLK_SYS_SELECTED CLOCKS(0x44)
#define CLK_PERI_CTRL CLOCKS(0x48)
#define CLK_PERI_ENABLE (1u << 11)

#define RESETS_CLEAR REGISTER(0x4000c000 + CLEAR_BITS)
#define RESETS_DONE REGISTER(0x4000c008)
#define RESET_IO_BANK0 (1u << 5)
#define RESET_PADS_BANK0 (1u << 8)
#define RESET_PIO0 (1u << 10)
#define RESET_PLL_SYS (1u << 12)
#define RESET_TIMER (1u << 21)
#define RESET_UART0 (1u << 22)

#define XOSC_CTRL REGISTER(0x40024000)
#define XOSC_STATUS REGISTER(0x40024004)
#define XOSC_STARTUP REGISTER(0x4002400c)
#define XOSC_1_TO_15_MHZ 0xaa0u
#define XOSC_ENABLE (0xfabu << 12)
#define XOSC_STABLE (1u << 31)

#define PLL_SYS_CS REGISTER(0x40028000)
#define PLL_SYS_POWER_CLEAR REGISTER(0x40028004 + CLEAR_BITS)
#define PLL_SYS_MULTIPLIER REGISTER(0x40028008)
#define PLL_SYS_DIVIDERS REGISTER(0x4002800c)
#define PLL_LOCK (1u << 31)
#define PLL_POWER_DOWN (1u << 0)
#define PLL_DIVIDERS_DOWN (1u << 3)
#define PLL_OSCILLATOR_DOWN (1u << 5)

#define PIN_STATUS(pin) REGISTER(0x40014000 + 8 * (pin))
#define PIN_INPUT_HIGH (1u << 17)
#define PIN_FUNCTION(pin) REGISTER(0x40014004 + 8 * (pin))
#define FUNCTION_UART 2
#define FUNCTION_PIO0 6
#define PAD(pin) REGISTER(0x4001c004 + 4 * (pin))
#define PAD_INPUT_PULLED_UP 0x4a /* input enabled, pull-up, Schmitt trigger */

#define UART(offset) REGISTER(0x40034000 + (offset))
#define UART_DATA UART(0x00)
#define UART_FLAGS UART(0x18)
#define UART_DIVISOR UART(0x24)
#define UART_DIVISOR_64THS UART(0x28)
#define UART_LINE UART(0x2c)
#define UART_CONTROL UART(0x30)
#define UART_INTERRUPTS UART(0x38)
#define UART_RECEIVE_EMPTY (1u << 4)
#define UART_SEND_FULL (1u << 5)
#define UART_SEND_EMPTY (1u << 7)
#define UART_BUSY (1u << 3)
#define UART_8_BITS_FIFO 0x70
#define UART_ON 0x301
#define UART_WHEN_RECEIVED 0x50 /* bytes, or a few of them and then a pause */

#define MICROSECONDS_HIGH REGISTER(0x40054008)
#define MICROSECONDS_LOW REGISTER(0x4005400c)
#define WATCHDOG_SCRATCH0 REGISTER(0x4005800c)
#define WATCHDOG_TICK REGISTER(0x4005802c)
#define WATCHDOG_TICK_ON (1u << 9)

#define PIO(offset) REGISTER(0x50200000 + (offset))
#define PIO_CONTROL PIO(0x00)
#define PIO_FIFOS PIO(0x04)
#define PIO_FAULTS PIO(0x08)
#define PIO_SEND(machine) PIO(0x10 + 4 * (machine))
#define PIO_RECEIVE(machine) PIO(0x20 + 4 * (machine))
#define PIO_OUTPUTS PIO(0x3c)
#define PIO_PROGRAM(at) PIO(0x48 + 4 * (at))
#define PIO_MACHINE(machine, offset) PIO(0xc8 + 24 * (machine) + (offset))
#define PIO_DIVIDER(machine) PIO_MACHINE(machine, 0x00)
#define PIO_EXECUTION(machine) PIO_MACHINE(machine, 0x04)
#define PIO_SHIFTING(machine) PIO_MACHINE(machine, 0x08)
#define PIO_PLACE(machine) PIO_MACHINE(machine, 0x0c)
#define PIO_EXECUTE(machine) PIO_MACHINE(machine, 0x10)
#define PIO_PINS(machine) PIO_MACHINE(machine, 0x14)
#define PIO_INTERRUPTS PIO(0x12c)
#define PIO_RECEIVE_EMPTY(machine) (0x100u << (machine))
#define PIO_SEND_EMPTY(machine) (0x1000000u << (machine))
#define PIO_RECEIVED(machine) (1u << (machine))

#define SYSTICK_CONTROL REGISTER(0xe000e010)
#define SYSTICK_RELOAD REGISTER(0xe000e014)
#define SYSTICK_COUNT REGISTER(0xe000e018)
#define SYSTICK_EACH_CYCLE 5
#define INTERRUPT_ENABLE REGISTER(0xe000e100)
#define INTERRUPT_PIO0 7
#define INTERRUPT_UART0 20

#endif
