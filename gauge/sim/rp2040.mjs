// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The RP2040 gauge in simulated time: its image in rp2040js, with a board of exactly known delays, controlled by a script on
 * standard input with the commands of exact.c.  The emulator runs the PIO independently; here the PIO steps once per cycle of
 * the processor.  The serial line takes the time of its baud rate, or of the USB (usb_host.mjs) if the image has one.
 *
 *   node rp2040.mjs PACKAGES IMAGE.uf2 <SCRIPT
 *
 *   say TEXT             send a line, run until the reply's last line, print the reply
 *   type TEXT            send a line without waiting
 *   run CYCLES           let time pass
 *   follow MIN MAX       the board answers each edge after MIN to MAX cycles, drawn evenly
 *   count FROM           the board answers after FROM cycles, FROM + 1, FROM + 2, ...
 *   deaf N               the board misses the next N edges
 *   square PERIOD JITTER LOW N   the board falls N times, every PERIOD + 0 to JITTER cycles, low for LOW
 *   still                the board does nothing
 *   expect PERIOD        deviations of falls are counted from this period
 *   truth K              print the board's own histograms in the gauge's format, and clear them
 *   trace FILE           from now on write each edge as a line `out|in LEVEL CYCLE`
 *   raw FILE             from now on write each byte of the serial line
 *   usb                  print the descriptors of the device
 *   reset, close, open   the USB host resets and configures the device; closes the port; opens it
 *   hold N               1: the host stops reading; 0: it continues
 *   serve FD CYCLES      connect the line to this pseudo-terminal master for CYCLES, at most until it is closed
 *   cost                 print cycles simulated and CPU time used
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { UsbHost } from './usb_host.mjs';

const [packages, imagePath] = process.argv.slice(2);
const { RP2040, GPIOPinState } = createRequire(resolve(packages, 'package.json'))('rp2040js');

const HERTZ = 125e6;
const CYCLE_NS = 8;
const CYCLES_PER_BYTE = HERTZ / 500000 * 10;
const REPLY_TIMEOUT_CYCLES = 60 * HERTZ;
const OUT_PIN = 2;
const IN_PIN = 3;
const FLASH = 0x10000000;
const SECOND_STAGE = 0x20041f00; // where the chip's ROM copies the first 256 bytes of the flash
const XIP_SSI_BASE = 0x18000000;
const [SSI_SER_OFFSET, SSI_RXFLR_OFFSET, SSI_DR0_OFFSET] = [0x10, 0x24, 0x60];
const WATCHDOG_BASE = 0x40058000;
const CYCLES_BETWEEN_READS = 20000;
const SIMULATION_MARK = 0x53494d55;
const UART_FIFO_SIZE = 32;
const [UARTFR_RXFE, UARTFR_TXFF, UARTFR_RXFF, UARTFR_TXFE] = [1 << 4, 1 << 5, 1 << 6, 1 << 7];
const FLASH_ID = [0x4b, 0, 0, 0, 0, 0xe6, 0x60, 0x58, 0x38, 0x83, 0x2a, 0x45, 0x21]; // the replies to the bytes of the command

const chip = new RP2040();
const pio = chip.pio[0];
const uart = chip.uart[0];
const usb = new UsbHost(chip, receiveByte);
chip.logger = { debug() {}, info() {}, warn: logError, error: logError };

let cycle = 0;
let random = 12345;
const events = []; // [cycle, function], in order
const sending = [];
const receiving = [];
let lineFreeAt = 0;
let line = '';
let inFrame = false;
let echo = false;
let replied = false;
let hostBytes = null; // bytes for the host's port
let trace = null;
let raw = null;
const board = { follows: null, deaf: 0, lastIn: 0, falls: 0, haveFall: false, expected: 0, samples: [[], []] };

function logError(component, message) {
  process.stderr.write(`${component}: ${message}\n`);
}

function draw(min, max) {
  random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
  return min + Math.floor(random / 2 ** 32 * (max - min + 1));
}

function at(when, act) {
  let place = events.length;
  while (place && events[place - 1][0] > when)
    place--;
  events.splice(place, 0, [when, act]);
}

function note(way, level) {
  if (trace !== null)
    writeSync(trace, `${way} ${Number(level)} ${cycle}\n`);
}

function driveInput(level) {
  note('in', level);
  chip.gpio[IN_PIN].setInputValue(level);
}

function outputChanged(level) {
  note('out', level);
  if (!board.follows)
    return;
  if (board.deaf) {
    board.deaf--;
    return;
  }
  const seen = cycle;
  const answer = Math.max(seen + Math.max(1, board.follows()), board.lastIn + 1);
  board.lastIn = answer;
  at(answer, () => {
    board.samples[Number(level)].push(answer - seen);
    driveInput(level);
  });
}

function fall() {
  const now = cycle;
  if (!board.falls)
    return;
  driveInput(false);
  if (board.haveFall)
    board.samples[0].push(now - board.lastFall - board.expected);
  board.lastFall = now;
  board.haveFall = true;
  board.falls--;
  at(now + board.low, () => driveInput(true));
  if (board.falls)
    at(now + board.period + draw(0, board.jitter), fall);
}

function receiveByte(byte) {
  if (raw !== null)
    writeSync(raw, Uint8Array.of(byte));
  if (hostBytes)
    hostBytes.push(byte);
  else if (byte === 0)
    inFrame = !inFrame; // raw samples are not part of replies
  else if (inFrame || byte === 13)
    return;
  else if (byte !== 10)
    line += String.fromCharCode(byte);
  else {
    if (echo)
      process.stdout.write(line + '\n');
    replied ||= /^(ok|error)/.test(line);
    line = '';
  }
}

/* Transfers one byte in each direction. */
function serveLine() {
  lineFreeAt = cycle + CYCLES_PER_BYTE;
  if (sending.length)
    receiveByte(sending.shift());
  if (receiving.length)
    uart.feedByte(receiving.shift());
}

function stepPio() {
  for (const machine of pio.machines)
    if (machine.enabled) // the emulator's step() does not test this
      machine.step();
  pio.checkChangedPins();
}

function step() {
  const cycles = chip.core.executeInstruction();
  for (let i = 0; i < cycles; i++) {
    while (events.length && events[0][0] <= cycle)
      events.shift()[1]();
    stepPio();
    cycle++;
  }
  chip.clock.tick(cycles * CYCLE_NS);
  if (cycle >= lineFreeAt && (sending.length || receiving.length))
    serveLine();
  usb.step(cycle);
}

function run(cycles) {
  for (const end = cycle + cycles; cycle < end;)
    step();
}

function send(bytes) {
  if (usb.attached)
    usb.send(bytes);
  else
    receiving.push(...bytes);
}

function type(text) {
  send(Buffer.from(text + '\n'));
}

/* The bytes from the host's port; null if it was closed. */
function readHost(port) {
  const buffer = Buffer.alloc(4096);
  try {
    return buffer.subarray(0, readSync(port, buffer));
  } catch (error) {
    if (error.code === 'EAGAIN')
      return buffer.subarray(0, 0);
    if (error.code === 'EIO')
      return null;
    throw error;
  }
}

function serve(port, cycles) {
  const end = cycle + cycles;
  hostBytes = [];
  for (let bytes; cycle < end && (bytes = readHost(port)) !== null; run(CYCLES_BETWEEN_READS)) {
    send(bytes);
    if (hostBytes.length)
      writeSync(port, Uint8Array.from(hostBytes.splice(0)));
  }
  hostBytes = null;
}

function say(text) {
  const limit = cycle + REPLY_TIMEOUT_CYCLES;
  replied = false;
  echo = true;
  type(text);
  while (!replied && cycle < limit)
    step();
  echo = false;
  if (!replied)
    process.stdout.write('silence\n');
}

function bucketOf(magnitude, k) {
  const shift = Math.max(0, 31 - Math.clz32(magnitude | 1) - k);
  return shift * 2 ** k + (magnitude >>> shift);
}

function printHistograms(k) {
  for (const series of [0, 1]) {
    const values = board.samples[series];
    const counts = new Map();
    let sum = 0, squares = 0n;
    for (const value of values) {
      const place = (value < 0 ? '-' : '') + bucketOf(Math.abs(value), k);
      counts.set(place, (counts.get(place) ?? 0) + 1);
      sum += value;
      squares += BigInt(value) ** 2n;
    }
    for (const [place, count] of counts)
      process.stdout.write(`b ${series} ${place} ${count}\n`);
    const least = values.reduce((a, b) => Math.min(a, b), values[0] ?? 0);
    const greatest = values.reduce((a, b) => Math.max(a, b), values[0] ?? 0);
    process.stdout.write(`series=${series} count=${values.length} min=${least} max=${greatest} sum=${sum} ` +
      `sum_sq=${squares}\n`);
    board.samples[series] = [];
  }
  process.stdout.write('ok\n');
}

function square(period, jitter, low, falls) {
  Object.assign(board, { period, jitter, low, falls, haveFall: false, follows: null });
  at(cycle + period, fall);
}

function stopBoard() {
  board.follows = null;
  board.falls = 0;
  driveInput(true);
}

function printDescriptors() {
  process.stdout.write(JSON.stringify(usb.descriptors) + '\nok\n');
}

/* The emulator's flash has no unique number, so its SSI registers are intercepted. */
function emulateFlashId() {
  const flash = chip.peripherals[XIP_SSI_BASE >>> 12];
  const replies = [];
  const [read, write] = [flash.readUint32.bind(flash), flash.writeUint32.bind(flash)];
  flash.writeUint32 = (offset, value) => {
    if (offset === SSI_DR0_OFFSET)
      replies.push(FLASH_ID[replies.length]);
    else if (offset !== SSI_SER_OFFSET) // selects the flash: there is one
      write(offset, value);
  };
  flash.readUint32 = (offset) => {
    if (offset === SSI_RXFLR_OFFSET)
      return replies.length;
    return offset === SSI_DR0_OFFSET && replies.length ? replies.shift() : read(offset);
  };
}

const COMMANDS = {
  say, type, square, serve,
  still: stopBoard,
  usb: printDescriptors,
  reset: () => usb.reset(),
  close: () => usb.close(),
  open: () => usb.openAgain(),
  hold: (paused) => { usb.readPaused = Boolean(paused); },
  run: (cycles) => run(Number(cycles)),
  follow: (min, max) => { board.follows = () => draw(min, max); },
  count: (from) => { let next = from; board.follows = () => next++; },
  deaf: (edges) => { board.deaf = edges; },
  expect: (period) => { board.expected = period; },
  truth: printHistograms,
  trace: (path) => { trace = openSync(path, 'w'); },
  raw: (path) => { raw = openSync(path, 'w'); },
  cost: () => process.stdout.write(`cycles=${cycle} cpu_ms=${Math.round(process.cpuUsage().user / 1000)}\n`),
};
const WITH_TEXT = ['say', 'type', 'trace', 'raw'];

function runScript(script) {
  for (const words of script.split('\n').filter(Boolean)) {
    const [name, rest] = /^(\S+) ?(.*)$/.exec(words).slice(1);
    if (!(name in COMMANDS))
      throw new Error(`unknown script command '${name}'`);
    COMMANDS[name](...(WITH_TEXT.includes(name) ? [rest] : rest.split(' ').filter(Boolean).map(Number)));
  }
}

/* As the chip's ROM does: writes the blocks of the file to the flash, and runs its first 256 bytes from RAM. */
function boot() {
  const file = readFileSync(imagePath);
  for (let block = 0; block < file.length; block += 512)
    chip.flash.set(file.subarray(block + 32, block + 32 + file.readUInt32LE(block + 16)),
      file.readUInt32LE(block + 12) - FLASH);
  chip.sram.set(chip.flash.subarray(0, 256), SECOND_STAGE - 0x20000000);
  chip.core.PC = SECOND_STAGE;
}

pio.run = () => {};
uart.onByte = (byte) => sending.push(byte);
Object.defineProperty(uart, 'flags', {
  get: () => (uart.rxFIFO.full ? UARTFR_RXFF : 0) | (uart.rxFIFO.empty ? UARTFR_RXFE : 0) |
    (sending.length >= UART_FIFO_SIZE ? UARTFR_TXFF : 0) | (sending.length ? 0 : UARTFR_TXFE),
});
emulateFlashId();
chip.peripherals[WATCHDOG_BASE >>> 12].scratchData[0] = SIMULATION_MARK;
boot();
chip.gpio[IN_PIN].setInputValue(true);
chip.gpio[1].setInputValue(true);
chip.gpio[OUT_PIN].addListener((state) => outputChanged(state === GPIOPinState.High));
runScript(readFileSync(0, 'utf8'));
for (const file of [trace, raw])
  if (file !== null)
    closeSync(file);
