# SPDX-License-Identifier: GPL-2.0-or-later
"""Print the memory that the firmware takes of a microcontroller; fail if less than 200 bytes remain for the stack."""

import subprocess
import sys

SRAM = {"atmega328p": 2048, "atmega32u4": 2560, "atmega2560": 8192}
FLASH = {"atmega328p": 32768 - 512, "atmega32u4": 32768 - 4096, "atmega2560": 262144 - 8192}
"""Without the usual boot loader."""
LEAST_STACK = 200

size, mcu, image = sys.argv[1:]
sections = {}
for line in subprocess.run([size, "-A", image], check=True, capture_output=True, text=True).stdout.splitlines():
    words = line.split()
    if len(words) == 3 and words[1].isdigit():
        sections[words[0]] = int(words[1])
flash = sections[".text"] + sections.get(".data", 0)
sram = sections.get(".data", 0) + sections.get(".bss", 0) + sections.get(".noinit", 0)
left = SRAM[mcu] - sram
print(f"{mcu}: flash {flash} of {FLASH[mcu]}, SRAM {sram} of {SRAM[mcu]}, {left} left for the stack")
sys.exit(0 if left >= LEAST_STACK and flash <= FLASH[mcu] else 1)
