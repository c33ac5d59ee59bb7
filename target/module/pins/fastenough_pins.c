// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fastenough_pins.ko: a GPIO chip over QEMU's ivshmem-doorbell, for guests whose machine has no pins.
 *
 * The bench (fastenough/virtual/shared_pins.py) writes the levels of the inputs to the shared memory, counts their edges
 * there, and rings the doorbell.  As in a chip with latches, edges of one direction that precede the interrupt are one
 * interrupt.  The driver writes each change of an output to a ring there and rings the bench's doorbell.  Nothing here
 * sleeps, not even on PREEMPT_RT.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gpio/driver.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/version.h>

#define LINES 8
#define RING_ENTRIES 16384u
#define BENCH (1u << 16) /* the bench's peer number and first vector */

/* QEMU's registers, in bytes. */
#define DOORBELL 12
#define REGISTERS_BAR 0
#define SHARED_BAR 2

/* The shared memory, in bytes. */
#define INPUT_LEVELS 0
#define INPUT_RISES(line) (32 + 4 * (line))
#define INPUT_FALLS(line) (64 + 4 * (line))
#define OUTPUT_CHANGES 128
#define OUTPUT_RING(change) (4096 + 4 * ((change) % RING_ENTRIES))

struct pins {
	struct gpio_chip chip;
	void __iomem *registers;
	void __iomem *shared;
	raw_spinlock_t lock; /* protects outputs, levels, changes and enabled */
	u32 outputs;
	u32 levels;
	u32 changes;
	u32 edge_mask[2]; /* lines with an interrupt on falling, on rising edges */
	u32 enabled;
	u32 seen[2][LINES]; /* counters of falling and rising edges at the last interrupt */
};

static int pins_get_direction(struct gpio_chip *chip, unsigned int line)
{
	struct pins *pins = gpiochip_get_data(chip);

	return READ_ONCE(pins->outputs) & BIT(line) ? GPIO_LINE_DIRECTION_OUT : GPIO_LINE_DIRECTION_IN;
}

static int pins_get(struct gpio_chip *chip, unsigned int line)
{
	struct pins *pins = gpiochip_get_data(chip);
	u32 levels = READ_ONCE(pins->outputs) & BIT(line) ? READ_ONCE(pins->levels) : readl(pins->shared + INPUT_LEVELS);

	return !!(levels & BIT(line));
}

static void put(struct pins *pins, unsigned int line, bool level)
{
	if (!!(pins->levels & BIT(line)) == level)
		return;
	pins->levels ^= BIT(line);
	writel(line << 1 | level, pins->shared + OUTPUT_RING(pins->changes));
	pins->changes++;
	writel(pins->changes, pins->shared + OUTPUT_CHANGES);
	writel(BENCH, pins->registers + DOORBELL);
}

static void set_line(struct gpio_chip *chip, unsigned int line, int level, u32 becomes_output)
{
	struct pins *pins = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&pins->lock, flags);
	WRITE_ONCE(pins->outputs, pins->outputs | becomes_output);
	if (pins->outputs & BIT(line))
		put(pins, line, level);
	raw_spin_unlock_irqrestore(&pins->lock, flags);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static int pins_set(struct gpio_chip *chip, unsigned int line, int level)
{
	set_line(chip, line, level, 0);
	return 0;
}
#else
static void pins_set(struct gpio_chip *chip, unsigned int line, int level)
{
	set_line(chip, line, level, 0);
}
#endif

static int pins_direction_output(struct gpio_chip *chip, unsigned int line, int level)
{
	set_line(chip, line, level, BIT(line));
	return 0;
}

static int pins_direction_input(struct gpio_chip *chip, unsigned int line)
{
	struct pins *pins = gpiochip_get_data(chip);
	unsigned long flags;

	raw_spin_lock_irqsave(&pins->lock, flags);
	put(pins, line, 0); /* a released line falls */
	WRITE_ONCE(pins->outputs, pins->outputs & ~(u32)BIT(line));
	raw_spin_unlock_irqrestore(&pins->lock, flags);
	return 0;
}

static struct pins *pins_of(struct irq_data *irq)
{
	return gpiochip_get_data(irq_data_get_irq_chip_data(irq));
}

static void enable(struct pins *pins, unsigned int line, bool enabled)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pins->lock, flags);
	WRITE_ONCE(pins->enabled, enabled ? pins->enabled | BIT(line) : pins->enabled & ~(u32)BIT(line));
	raw_spin_unlock_irqrestore(&pins->lock, flags);
}

static void pins_mask(struct irq_data *irq)
{
	enable(pins_of(irq), irqd_to_hwirq(irq), false);
	gpiochip_disable_irq(irq_data_get_irq_chip_data(irq), irqd_to_hwirq(irq));
}

static void pins_unmask(struct irq_data *irq)
{
	gpiochip_enable_irq(irq_data_get_irq_chip_data(irq), irqd_to_hwirq(irq));
	enable(pins_of(irq), irqd_to_hwirq(irq), true);
}

static void pins_acknowledge(struct irq_data *irq)
{
	/* Nothing to do: the edge was acknowledged before its handler was called. */
}

static int pins_set_type(struct irq_data *irq, unsigned int type)
{
	struct pins *pins = pins_of(irq);
	u32 bit = BIT(irqd_to_hwirq(irq));

	if (!(type & IRQ_TYPE_EDGE_BOTH) || type & ~IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	pins->edge_mask[0] = type & IRQ_TYPE_EDGE_FALLING ? pins->edge_mask[0] | bit : pins->edge_mask[0] & ~bit;
	pins->edge_mask[1] = type & IRQ_TYPE_EDGE_RISING ? pins->edge_mask[1] | bit : pins->edge_mask[1] & ~bit;
	irq_set_handler_locked(irq, handle_edge_irq);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
#define CHIP_TYPE const struct irq_chip
#define CHIP_HAS .flags = IRQCHIP_IMMUTABLE, GPIOCHIP_IRQ_RESOURCE_HELPERS
#else
#define CHIP_TYPE struct irq_chip
#define CHIP_HAS .flags = 0
#endif
static CHIP_TYPE pins_irqs = {
	.name = KBUILD_MODNAME,
	.irq_ack = pins_acknowledge,
	.irq_mask = pins_mask,
	.irq_unmask = pins_unmask,
	.irq_set_type = pins_set_type,
	CHIP_HAS,
};

/* True if an input had such edges since the last call. */
static bool had_edges(struct pins *pins, unsigned int line, bool rising)
{
	u32 now = readl(pins->shared + (rising ? INPUT_RISES(line) : INPUT_FALLS(line)));
	bool had = pins->seen[rising][line] != now;

	pins->seen[rising][line] = now;
	return had;
}

static irqreturn_t pins_interrupt(int irq, void *data)
{
	struct pins *pins = data;
	unsigned int line;

	for (line = 0; line < LINES; line++) {
		bool falls = had_edges(pins, line, false) && pins->edge_mask[0] & BIT(line);
		bool rises = had_edges(pins, line, true) && pins->edge_mask[1] & BIT(line);

		if ((falls || rises) && READ_ONCE(pins->enabled) & BIT(line))
			generic_handle_irq(irq_find_mapping(pins->chip.irq.domain, line));
	}
	return IRQ_HANDLED;
}

static void describe(struct pins *pins, struct pci_dev *device)
{
	struct gpio_chip *chip = &pins->chip;
	struct gpio_irq_chip *irq = &chip->irq;

	chip->label = KBUILD_MODNAME;
	chip->parent = &device->dev;
	chip->owner = THIS_MODULE;
	chip->base = -1;
	chip->ngpio = LINES;
	chip->get_direction = pins_get_direction;
	chip->direction_input = pins_direction_input;
	chip->direction_output = pins_direction_output;
	chip->get = pins_get;
	chip->set = pins_set;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
	gpio_irq_chip_set_chip(irq, &pins_irqs);
#else
	irq->chip = &pins_irqs;
#endif
	irq->handler = handle_bad_irq;
	irq->default_type = IRQ_TYPE_NONE;
}

static int pins_probe(struct pci_dev *device, const struct pci_device_id *id)
{
	struct pins *pins = devm_kzalloc(&device->dev, sizeof(*pins), GFP_KERNEL);
	unsigned int line;
	int status;

	if (!pins)
		return -ENOMEM;
	status = pcim_enable_device(device);
	if (status)
		return status;
	pins->registers = pcim_iomap(device, REGISTERS_BAR, 0);
	pins->shared = pcim_iomap(device, SHARED_BAR, 0);
	if (!pins->registers || !pins->shared)
		return -ENOMEM;
	pci_set_master(device);
	raw_spin_lock_init(&pins->lock);
	status = pci_alloc_irq_vectors(device, 1, 1, PCI_IRQ_MSIX);
	if (status < 0)
		return status;
	for (line = 0; line < LINES; line++) {
		had_edges(pins, line, false);
		had_edges(pins, line, true);
	}
	pins->changes = readl(pins->shared + OUTPUT_CHANGES);
	describe(pins, device);
	status = devm_gpiochip_add_data(&device->dev, &pins->chip, pins);
	if (status)
		return status;
	return devm_request_irq(&device->dev, pci_irq_vector(device, 0), pins_interrupt, IRQF_NO_THREAD, KBUILD_MODNAME, pins);
}

static const struct pci_device_id pins_ids[] = { { PCI_DEVICE(0x1af4, 0x1110) }, {} };
MODULE_DEVICE_TABLE(pci, pins_ids);

static struct pci_driver pins_driver = {
	.name = KBUILD_MODNAME,
	.id_table = pins_ids,
	.probe = pins_probe,
};
module_pci_driver(pins_driver);

MODULE_DESCRIPTION("Pins of fastenough's virtual bench for machines that have none");
MODULE_LICENSE("GPL");
