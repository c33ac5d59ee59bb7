// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The RP2040 gauge in simulated time: its very image in rp2040js, with a board of exactly known delays, driven by a
 * script on standard input in the words of exact.c.  The emulator lets the PIO run by itself; here it takes a step with
 * each cycle of the processor, and the serial line takes the time of its baud rate, or of a USB (usb_host.mjs) where the image
 * has one.
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
 *   truth K              print the board's own histograms in the gauge's words, and clear them
 *   trace FILE           from now on write each edge, `out|in LEVEL CYCLE`, one a line
 *   raw FILE             from now on write each byte of the serial line
 *   usb                  print what the device told of itself
 *   reset, close, open   the USB's host resets the device and sets it up anew; closes the port; opens it
 *   hold N               with 1 the host reads nothing, with 0 it does again
 *   serve FD CYCLES      for so long, the line goes to this master of a pseudo-terminal; no longer than that is open
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
const CYCLES_OF_BYTE = HERTZ / 500000 * 10;
const TELL_LIMIT_CYCLES = 60 * HERTZ;
const OUT_PIN = 2;
const IN_PIN = 3;
const FLASH = 0x10000000;
const SECOND_STAGE = 0x20041f00; // where the chip's ROM puts the first 256 bytes of the flash
const CYCLES_BETWEEN_READS = 20000;
const MARK_OF_SIMULATION = 0x53494d55;
const UART_SEND = { room: 32, full: 1 << 5, empty: 1 << 7 };
const FLASH_ID = [0x4b, 0, 0, 0, 0, 0xe6, 0x60, 0x58, 0x38, 0x83, 0x2a, 0x45, 0x21]; // answers to the bytes that ask

const chip = new RP2040();
const pio = chip.pio[0];
const uart = chip.uart[0];
const usb = new UsbHost(chip, takeByte);
chip.logger = { debug() {}, info() {}, warn: complain, error: complain };

let cycle = 0;
let random = 12345;
const events = []; // [cycle, function], soonest first
const sending = [];
const receiving = [];
let lineFreeAt = 0;
let line = '';
let inFrame = false;
let echo = false;
let replied = false;
let hosted = null; // bytes for the host's port
let trace = null;
let raw = null;
const board = { follows: null, deaf: 0, lastIn: 0, falls: 0, haveFall: false, expected: 0, kept: [[], []] };

function complain(component, message) {
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

function boardSees(level) {
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
    board.kept[Number(level)].push(answer - seen);
    driveInput(level);
  });
}

function fall() {
  const now = cycle;
  if (!board.falls)
    return;
  driveInput(false);
  if (board.haveFall)
    board.kept[0].push(now - board.lastFall - board.expected);
  board.lastFall = now;
  board.haveFall = true;
  board.falls--;
  at(now + board.low, () => driveInput(true));
  if (board.falls)
    at(now + board.period + draw(0, board.jitter), fall);
}

function takeByte(byte) {
  if (raw !== null)
    writeSync(raw, Uint8Array.of(byte));
  if (hosted)
    hosted.push(byte);
  else if (byte === 0)
    inFrame = !inFrame; // raw samples are no part of replies
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

/* The line carries a byte each way at a time. */
function serveLine() {
  lineFreeAt = cycle + CYCLES_OF_BYTE;
  if (sending.length)
    takeByte(sending.shift());
  if (receiving.length)
    uart.feedByte(receiving.shift());
}

function stepPio() {
  for (const machine of pio.machines)
    if (machine.enabled) // the emulator's own step() does not ask
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

/* What has come from the host's port: null once it is closed there. */
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
  hosted = [];
  for (let bytes; cycle < end && (bytes = readHost(port)) !== null; run(CYCLES_BETWEEN_READS)) {
    send(bytes);
    if (hosted.length)
      writeSync(port, Uint8Array.from(hosted.splice(0)));
  }
  hosted = null;
}

function say(text) {
  const limit = cycle + TELL_LIMIT_CYCLES;
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

function tellTruth(k) {
  for (const series of [0, 1]) {
    const values = board.kept[series];
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
    board.kept[series] = [];
  }
  process.stdout.write('ok\n');
}

function square(period, jitter, low, falls) {
  Object.assign(board, { period, jitter, low, falls, haveFall: false, follows: null });
  at(cycle + period, fall);
}

function still() {
  board.follows = null;
  board.falls = 0;
  driveInput(true);
}

function tellUsb() {
  process.stdout.write(JSON.stringify(usb.told) + '\nok\n');
}

/* The emulator's flash has no number. */
function giveFlashItsId() {
  const flash = chip.peripherals[0x18000];
  const asked = [];
  const [read, write] = [flash.readUint32.bind(flash), flash.writeUint32.bind(flash)];
  flash.writeUint32 = (offset, value) => {
    if (offset === 0x60)
      asked.push(FLASH_ID[asked.length]);
    else if (offset !== 0x10) // which flash is meant: there is one
      write(offset, value);
  };
  flash.readUint32 = (offset) => {
    if (offset === 0x24)
      return asked.length;
    return offset === 0x60 && asked.length ? asked.shift() : read(offset);
  };
}

const COMMANDS = {
  say, type, still, square, serve,
  usb: tellUsb,
  reset: () => usb.reset(),
  close: () => usb.close(),
  open: () => usb.reopen(),
  hold: (held) => { usb.held = Boolean(held); },
  run: (cycles) => run(Number(cycles)),
  follow: (min, max) => { board.follows = () => draw(min, max); },
  count: (from) => { let next = from; board.follows = () => next++; },
  deaf: (edges) => { board.deaf = edges; },
  expect: (period) => { board.expected = period; },
  truth: tellTruth,
  trace: (path) => { trace = openSync(path, 'w'); },
  raw: (path) => { raw = openSync(path, 'w'); },
  cost: () => process.stdout.write(`cycles=${cycle} cpu_ms=${Math.round(process.cpuUsage().user / 1000)}\n`),
};
const WITH_TEXT = ['say', 'type', 'trace', 'raw'];

function play(script) {
  for (const words of script.split('\n').filter(Boolean)) {
    const [name, rest] = /^(\S+) ?(.*)$/.exec(words).slice(1);
    if (!(name in COMMANDS))
      throw new Error(`'${name}' is no command of the script`);
    COMMANDS[name](...(WITH_TEXT.includes(name) ? [rest] : rest.split(' ').filter(Boolean).map(Number)));
  }
}

/* What the chip's ROM does: the blocks of the file are in the flash, the first 256 bytes are run from RAM. */
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
  get: () => (uart.rxFIFO.full ? 1 << 6 : 0) | (uart.rxFIFO.empty ? 1 << 4 : 0) |
    (sending.length >= UART_SEND.room ? UART_SEND.full : 0) | (sending.length ? 0 : UART_SEND.empty),
});
giveFlashItsId();
chip.peripherals[0x40058].scratchData[0] = MARK_OF_SIMULATION;
boot();
chip.gpio[IN_PIN].setInputValue(true);
chip.gpio[1].setInputValue(true);
chip.gpio[OUT_PIN].addListener((state) => boardSees(state === GPIOPinState.High));
play(readFileSync(0, 'utf8'));
for (const file of [trace, raw])
  if (file !== null)
    closeSync(file);
