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
#define CLK_USB_CTRL CLOCKS(0x54) /* from the USB's PLL, unless told otherwise */
#define CLK_ENABLE (1u << 11)

#define SSI(offset) REGISTER(0x18000000 + (offset))
#define SSI_CONTROL SSI(0x00)
#define SSI_FRAMES_OF_8_BITS (7u << 16)
#define SSI_ENABLE SSI(0x08)
#define SSI_SLAVES SSI(0x10)
#define SSI_RECEIVED SSI(0x24)
#define SSI_DATA SSI(0x60)

#define RESETS_CLEAR REGISTER(0x4000c000 + CLEAR_BITS)
#define RESETS_DONE REGISTER(0x4000c008)
#define RESET_IO_BANK0 (1u << 5)
#define RESET_PADS_BANK0 (1u << 8)
#define RESET_PIO0 (1u << 10)
#define RESET_PLL_SYS (1u << 12)
#define RESET_PLL_USB (1u << 13)
#define RESET_TIMER (1u << 21)
#define RESET_UART0 (1u << 22)
#define RESET_USB (1u << 24)

#define XOSC_CTRL REGISTER(0x40024000)
#define XOSC_STATUS REGISTER(0x40024004)
#define XOSC_STARTUP REGISTER(0x4002400c)
#define XOSC_1_TO_15_MHZ 0xaa0u
#define XOSC_ENABLE (0xfabu << 12)
#define XOSC_STABLE (1u << 31)

#define PLL_SYS 0x40028000
#define PLL_USB 0x4002c000
#define PLL_CS(pll) REGISTER(pll)
#define PLL_POWER_CLEAR(pll) REGISTER((pll) + 0x4 + CLEAR_BITS)
#define PLL_MULTIPLIER(pll) REGISTER((pll) + 0x8)
#define PLL_DIVIDERS(pll) REGISTER((pll) + 0xc)
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

#define USB_MEMORY 0x50100000
#define USB_BYTES ((volatile uint8_t *)USB_MEMORY)
#define USB_SETUP USB_BYTES
/* By endpoint, and whether it is out of the host or into it. */
#define USB_ENDPOINT(number, out) REGISTER(USB_MEMORY + 8 * (number) + 4 * (out))
#define USB_ENDPOINT_ON (1u << 31)
#define USB_ENDPOINT_TELLS (1u << 29) /* of each buffer */
#define USB_ENDPOINT_TYPE(type) ((uint32_t)(type) << 26)
#define USB_BUFFER(number, out) REGISTER(USB_MEMORY + 0x80 + 8 * (number) + 4 * (out))
#define USB_BUFFER_LENGTH 0x3ffu
#define USB_BUFFER_READY (1u << 10)
#define USB_BUFFER_STALL (1u << 11)
#define USB_BUFFER_DATA1 (1u << 13)
#define USB_BUFFER_FULL (1u << 15)
#define USB_CONTROL_DATA 0x100 /* of endpoint 0, both ways */

#define USB(offset) REGISTER(0x50110000 + (offset))
#define USB_ADDRESS USB(0x00)
#define USB_MAIN USB(0x40)
#define USB_MAIN_ON 1
#define USB_LINE USB(0x4c)
#define USB_LINE_CONTROL_TELLS (1u << 29)
#define USB_LINE_PULL_UP (1u << 16)
#define USB_STATUS USB(0x50)
#define USB_STATUS_RESET (1u << 19)
#define USB_STATUS_SETUP (1u << 17)
#define USB_DONE USB(0x58) /* a bit for each buffer: 2 * endpoint + out */
#define USB_STALL_CONTROL USB(0x68)
#define USB_STALL_BOTH 3
#define USB_WIRING USB(0x74)
#define USB_WIRING_INSIDE 9
#define USB_POWER USB(0x78)
#define USB_POWER_TAKEN_FOR_GRANTED 0xc
#define USB_TELLS USB(0x90)
#define USB_TELLING USB(0x98)
#define USB_OF_RESET (1u << 12)
#define USB_OF_SETUP (1u << 16)
#define USB_OF_BUFFER (1u << 4)

#define SYSTICK_CONTROL REGISTER(0xe000e010)
#define SYSTICK_RELOAD REGISTER(0xe000e014)
#define SYSTICK_COUNT REGISTER(0xe000e018)
#define SYSTICK_EACH_CYCLE 5
#define INTERRUPT_ENABLE REGISTER(0xe000e100)
#define INTERRUPT_PRIORITY(interrupt) (*(volatile uint32_t *)(0xe000e400 + 4 * ((interrupt) / 4)))
#define AFTER_OTHERS(interrupt) (0xc0u << 8 * ((interrupt) % 4)) /* its three neighbours are first */
#define INTERRUPT_USB 5
#define INTERRUPT_PIO0 7
#define INTERRUPT_UART0 20

#endif
