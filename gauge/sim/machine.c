/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#include <avr_uart.h>
#include <sim_elf.h>

/* General purpose registers, at the same addresses in the whole family, that mark a simulation for the firmware. */
#define GPIOR1 0x4a
#define GPIOR2 0x4b

/* Long steps make the simulation fast.  The sleep of simavr would wait in real time. */
#define STEP_CYCLES 1000

static void on_uart_output(struct avr_irq_t *irq, uint32_t byte, void *context)
{
	struct machine *machine = context;

	(void)irq;
	machine->on_byte(machine->context, (uint8_t)byte);
}

static void on_uart_ready(struct avr_irq_t *irq, uint32_t value, void *context)
{
	struct machine *machine = context;

	(void)irq;
	if (value)
		machine->uart_ready = 1;
}

static void on_uart_busy(struct avr_irq_t *irq, uint32_t value, void *context)
{
	struct machine *machine = context;

	(void)irq;
	if (value)
		machine->uart_ready = 0;
}

static void skip_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
	(void)avr;
	(void)cycles;
}

static void log_errors(avr_t *avr, const int level, const char *format, va_list values)
{
	(void)avr;
	if (level <= LOG_ERROR)
		vfprintf(stderr, format, values);
}

static void attach_uart(struct machine *machine, char name)
{
	avr_t *avr = machine->avr;
	uint32_t flags = 0;

	avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS(name), &flags);
	machine->uart_input = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_INPUT);
	machine->uart_ready = 1;
	avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUTPUT), on_uart_output,
				machine);
	avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUT_XON), on_uart_ready,
				machine);
	avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ(name), UART_IRQ_OUT_XOFF), on_uart_busy,
				machine);
}

static void mark_simulated(avr_t *avr)
{
	avr->data[GPIOR1] = 'S';
	avr->data[GPIOR2] = 'I';
}

int machine_load(struct machine *machine, const char *mcu, const char *image, timer16_output output,
		 machine_byte on_byte, void *context)
{
	const struct timer16_map *map = timer16_map(mcu);
	elf_firmware_t firmware = { 0 };

	avr_global_logger_set(log_errors);
	*machine = (struct machine){ .on_byte = on_byte, .context = context };
	if (!map || !(machine->avr = avr_make_mcu_by_name(mcu))) {
		fprintf(stderr, "'%s' is not supported; choose atmega328p, atmega32u4 or atmega2560\n", mcu);
		return -1;
	}
	if (elf_read_firmware(image, &firmware)) {
		fprintf(stderr, "%s: not a firmware image; name the .elf file\n", image);
		return -1;
	}
	avr_init(machine->avr);
	firmware.frequency = MACHINE_HZ;
	avr_load_firmware(machine->avr, &firmware);
	machine->avr->frequency = MACHINE_HZ;
	machine->avr->sleep = skip_sleep;
	machine->avr->run_cycle_limit = STEP_CYCLES;
	attach_uart(machine, map->uart);
	timer16_attach(&machine->timer, machine->avr, map, output, context);
	mark_simulated(machine->avr);
	return 0;
}

int machine_step(struct machine *machine)
{
	int state = avr_run(machine->avr);

	return state == cpu_Done || state == cpu_Crashed ? -1 : 0;
}

int machine_receive(struct machine *machine, uint8_t byte)
{
	if (!machine->uart_ready)
		return 0;
	avr_raise_irq(machine->uart_input, byte);
	return 1;
}

void machine_reset(struct machine *machine)
{
	avr_reset(machine->avr);
	machine->timer.running = 0;
	machine->uart_ready = 1;
	mark_simulated(machine->avr);
}
