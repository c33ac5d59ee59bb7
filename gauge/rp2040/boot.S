/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From reset to main().  The chip's ROM reads the first 256 bytes of the flash, checks the CRC in the last four (pack.py
 * writes it), and runs them: they map the flash into memory.  The program is then copied to RAM, because the time of a read
 * from the flash varies, and that of code in RAM is constant.
 */
	.syntax unified
	.cpu cortex-m0plus
	.thumb

#define XIP_SSI_BASE 0x18000000
#define SSI_CTRLR0_OFFSET 0x00
#define SSI_CTRLR0_DFS_32_LSB 16
#define SSI_CTRLR0_TMOD_LSB 8
#define SSI_CTRLR0_TMOD_VALUE_EEPROM_READ 3
#define SSI_CTRLR1_OFFSET 0x04
#define SSI_SSIENR_OFFSET 0x08
#define SSI_BAUDR_OFFSET 0x14
#define SSI_SPI_CTRLR0_OFFSET 0xf4
#define SSI_SPI_CTRLR0_XIP_CMD_LSB 24
#define SSI_SPI_CTRLR0_INST_L_LSB 8
#define SSI_SPI_CTRLR0_INST_L_VALUE_8B 2
#define SSI_SPI_CTRLR0_ADDR_L_LSB 2
#define PPB_BASE 0xe0000000
#define M0PLUS_VTOR_OFFSET 0xed08
#define FLASH_TABLE 0x10000100
/* 8-bit command 0x03, and a 24-bit address in units of 4 bits */
#define READ_COMMAND (0x03 << SSI_SPI_CTRLR0_XIP_CMD_LSB) | \
	(SSI_SPI_CTRLR0_INST_L_VALUE_8B << SSI_SPI_CTRLR0_INST_L_LSB) | (6 << SSI_SPI_CTRLR0_ADDR_L_LSB)
#define STACK_PAINT 0xc5c5c5c5

	/* Reads by command 0x03 on one data line with a 24-bit address: every flash supports that. */
	.section .boot2, "ax"
	.thumb_func
	.global boot2
boot2:
	ldr r3, =XIP_SSI_BASE
	movs r1, #0
	str r1, [r3, #SSI_SSIENR_OFFSET]
	movs r1, #4
	str r1, [r3, #SSI_BAUDR_OFFSET]
	/* frames of 32 bits */
	ldr r1, =((32 - 1) << SSI_CTRLR0_DFS_32_LSB) | (SSI_CTRLR0_TMOD_VALUE_EEPROM_READ << SSI_CTRLR0_TMOD_LSB)
	str r1, [r3, #SSI_CTRLR0_OFFSET]
	movs r1, #0
	str r1, [r3, #SSI_CTRLR1_OFFSET]
	ldr r0, =XIP_SSI_BASE + SSI_SPI_CTRLR0_OFFSET
	ldr r1, =READ_COMMAND
	str r1, [r0]
	movs r1, #1
	str r1, [r3, #SSI_SSIENR_OFFSET]
	ldr r0, =FLASH_TABLE
	ldr r1, =PPB_BASE + M0PLUS_VTOR_OFFSET
	str r0, [r1]
	ldmia r0, {r0, r1}
	msr msp, r0
	bx r1
	.pool

	/* The vector table until the one in RAM is copied. */
	.section .flash_table, "a"
	.word stack_top
	.word start

	.section .flash_start, "ax"
	.thumb_func
	.global start
start:
	ldr r0, =image_in_flash
	ldr r1, =image_begin
	ldr r2, =image_end
	b 2f
1:	ldmia r0!, {r3}
	stmia r1!, {r3}
2:	cmp r1, r2
	blo 1b
	movs r3, #0
	ldr r1, =zero_begin
	ldr r2, =zero_end
	b 2f
1:	stmia r1!, {r3}
2:	cmp r1, r2
	blo 1b
	ldr r3, =STACK_PAINT
	ldr r1, =stack_bottom
	ldr r2, =stack_top
1:	stmia r1!, {r3}
	cmp r1, r2
	blo 1b
	ldr r0, =ram_table
	ldr r1, =PPB_BASE + M0PLUS_VTOR_OFFSET
	str r0, [r1]
	ldr r0, =main
	bx r0
	.pool

	/* Faults and unexpected interrupts stop the program: the bench then receives no more replies. */
	.text
	.thumb_func
halt:
	b halt

	/* An image has one of the two serial lines. */
	.weak usb_interrupt
	.thumb_set usb_interrupt, halt
	.weak uart_interrupt
	.thumb_set uart_interrupt, halt

	.section .ram_table, "a"
ram_table:
	.word stack_top
	.word start
	.rept 14
	.word halt
	.endr
	.rept 5
	.word halt
	.endr
	.word usb_interrupt   /* 5 */
	.word halt
	.word edges_interrupt /* 7, PIO0 */
	.rept 12
	.word halt
	.endr
	.word uart_interrupt  /* 20, UART0 */
	.rept 5
	.word halt
	.endr
