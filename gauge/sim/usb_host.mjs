// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A USB host for the RP2040 of rp2040js, in simulated time: it configures a serial port as Linux does, and transfers its bytes.
 * The emulator's own host takes any number of packets at once.  This one takes one packet after the other, each in its time on
 * the bus, and checks what otherwise fails only on a real bus: DATA0 and DATA1, sizes, the device address, and buffers that
 * belong to the controller.
 */
const CYCLES_PER_BYTE = 125 / 12 * 8; // 12 Mbit/s
const OVERHEAD = 13; // bytes of a transaction beside its data
const CYCLES_OF_RESET = 1_250_000; // 10 ms
const CYCLES_OF_PAUSE = 250; // between polls of endpoints without data
const TIMEOUT_CYCLES = 12_500_000;
const ADDRESS = 5;
const PACKET = 64;
const [AVAILABLE, STALL, DATA1, FULL] = [1 << 10, 1 << 11, 1 << 13, 1 << 15];
const [EP_CONTROL_ENABLE, EP_CONTROL_INTERRUPT_PER_BUFF] = [1 << 31, 1 << 29];
const [SIE_CTRL_EP0_INT_1BUF, SIE_CTRL_PULLUP_EN] = [1 << 29, 1 << 16];
const [SIE_STATUS_BUS_RESET, SIE_STATUS_SETUP_REC] = [1 << 19, 1 << 17];
const [GET_DESCRIPTOR, SET_ADDRESS, SET_CONFIGURATION] = [6, 5, 9];
const [SET_LINE_CODING, GET_LINE_CODING, SET_CONTROL_LINE_STATE] = [0x20, 0x21, 0x22];
const [DIRECTION_IN, CLASS_INTERFACE] = [0x80, 0x21];
const [DEVICE, CONFIGURATION, STRING] = [1, 2, 3];
const [DTR_AND_RTS, NO_SIGNALS] = [3, 0];
const SPEED = [0x20, 0xa1, 0x07, 0x00, 0, 0, 8]; // 500,000 baud, 8N1

function setup(type, request, value, index, length) {
  return Uint8Array.of(type, request, value & 255, value >> 8, index & 255, index >> 8, length & 255, length >> 8);
}

export class UsbHost {
  constructor(chip, take) {
    Object.assign(this, { chip, take, usb: chip.usbCtrl, view: chip.usbDPRAMView, memory: chip.usbDPRAM });
    Object.assign(this, { freeAt: 0, onDone: null, address: 0, descriptors: {}, plan: null, transfer: null,
      attached: false, open: false, toggles: {}, sending: [], received: [], readPaused: false });
    this.usb.DPRAMUpdated = () => {};
  }

  /* One transaction after the other; a bus without a pull-up stays idle. */
  step(cycle) {
    if (cycle < this.freeAt)
      return;
    this.now = cycle;
    this.freeAt = cycle + CYCLES_OF_PAUSE;
    const onDone = this.onDone;
    this.onDone = null;
    if (onDone)
      onDone();
    else if (!this.attached && this.usb.sieCtrl & SIE_CTRL_PULLUP_EN)
      this.reset();
    else if (this.plan)
      this.advancePlan();
    else if (this.open)
      this.transferData();
  }

  send(bytes) {
    this.sending.push(...bytes);
  }

  /* Data in transfer are lost, and the device is enumerated again. */
  reset() {
    Object.assign(this, { attached: true, open: false, address: 0, transfer: null, sending: [], received: [] });
    this.usb.sieStatus |= SIE_STATUS_BUS_RESET;
    this.usb.sieStatusUpdated();
    this.plan = this.enumerate();
    this.freeAt = this.now + CYCLES_OF_RESET;
    this.onDone = null;
  }

  close() {
    this.plan = this.closePort();
  }

  openAgain() {
    this.plan = this.openPort();
  }

  * enumerate() {
    const first = yield setup(DIRECTION_IN, GET_DESCRIPTOR, DEVICE << 8, 0, 64);
    yield setup(0, SET_ADDRESS, ADDRESS, 0, 0);
    this.address = ADDRESS;
    this.descriptors.device = yield setup(DIRECTION_IN, GET_DESCRIPTOR, DEVICE << 8, 0, first[0]);
    const head = yield setup(DIRECTION_IN, GET_DESCRIPTOR, CONFIGURATION << 8, 0, 9);
    this.descriptors.configuration = yield setup(DIRECTION_IN, GET_DESCRIPTOR, CONFIGURATION << 8, 0, head[2] | head[3] << 8);
    const language = yield setup(DIRECTION_IN, GET_DESCRIPTOR, STRING << 8, 0, 255);
    this.descriptors.strings = [];
    for (const index of this.descriptors.device.slice(14, 17)) {
      const descriptors = yield setup(DIRECTION_IN, GET_DESCRIPTOR, STRING << 8 | index, language[2] | language[3] << 8, 255);
      this.descriptors.strings.push(Buffer.from(descriptors.slice(2)).toString('utf16le'));
    }
    this.descriptors.refused = (yield setup(DIRECTION_IN, GET_DESCRIPTOR, STRING << 8 | 99, 0, 255)) === null;
    this.toggles = {};
    yield setup(0, SET_CONFIGURATION, 1, 0, 0);
    yield* this.openPort();
  }

  * openPort() {
    yield [setup(CLASS_INTERFACE, SET_LINE_CODING, 0, 0, SPEED.length), SPEED];
    this.descriptors.coding = yield setup(CLASS_INTERFACE | DIRECTION_IN, GET_LINE_CODING, 0, 0, SPEED.length);
    yield setup(CLASS_INTERFACE, SET_CONTROL_LINE_STATE, DTR_AND_RTS, 0, 0);
    this.open = true;
  }

  * closePort() {
    yield setup(CLASS_INTERFACE, SET_CONTROL_LINE_STATE, NO_SIGNALS, 0, 0);
    this.open = false;
  }

  /* A control transfer: its setup, its data, its status the other way. */
  advancePlan() {
    if (!this.transfer) {
      const { value, done } = this.plan.next(this.result);
      if (done) {
        this.plan = null;
        return;
      }
      const [request, data] = Array.isArray(value) ? value : [value, []];
      this.transfer = { request, data, dataIn: [], expected: request[6] | request[7] << 8, until: this.now + TIMEOUT_CYCLES };
      this.toggles[0] = this.toggles[1] = true;
      this.transact(8, () => this.sendSetup(request));
      return;
    }
    if (this.now > this.transfer.until)
      throw new Error(`usb: no answer to ${[...this.transfer.request]}`);
    this.continueTransfer(this.transfer);
  }

  continueTransfer(transfer) {
    const fromDevice = transfer.request[0] & DIRECTION_IN;
    const ended = transfer.expected === 0;
    if ([0, 1].every((place) => this.control(place) & STALL) && this.usb.epStallArm === 3) {
      this.usb.epStallArm = 0;
      this.end(null);
    } else if (ended ? fromDevice : !fromDevice)
      this.sendPacket(0, ended ? [] : transfer.data, () => (ended ? this.end(transfer.dataIn) : transfer.expected = 0));
    else
      this.receivePacket(0, (bytes) => {
        transfer.dataIn.push(...bytes);
        if (ended)
          this.end(null);
        else if (bytes.length < PACKET || transfer.dataIn.length >= transfer.expected) {
          transfer.expected = 0;
          this.toggles[1] = true;
        }
      });
  }

  end(result) {
    this.result = result;
    this.transfer = null;
  }

  sendSetup(request) {
    this.memory.set(request);
    this.usb.sieStatus |= SIE_STATUS_SETUP_REC;
    this.usb.sieStatusUpdated();
  }

  /* The data of the line: first from the device, then to it. */
  transferData() {
    const [into, out] = this.endpoints();
    const bytes = this.sending.slice(0, PACKET);
    if (!this.readPaused && this.receivePacket(into, (packet) => this.receive(packet)))
      return;
    if (bytes.length)
      this.sendPacket(out, bytes, () => this.sending.splice(0, bytes.length));
  }

  /* As a driver does: after a packet of full size it expects another one. */
  receive(packet) {
    this.received.push(...packet);
    if (packet.length < PACKET)
      this.received.splice(0).forEach((byte) => this.take(byte));
  }

  /* The bulk endpoints IN and OUT, from the configuration descriptor. */
  endpoints() {
    const endpoints = [0, 0];
    const bytes = this.descriptors.configuration;
    for (let at = 0; at < bytes.length; at += bytes[at])
      if (bytes[at + 1] === 5 && bytes[at + 3] === 2)
        endpoints[bytes[at + 2] & DIRECTION_IN ? 0 : 1] = bytes[at + 2] & 15;
    return endpoints;
  }

  /* The buffer control of a place: 2 * endpoint for IN, 1 more for OUT. */
  control(place) {
    return this.view.getUint32(0x80 + 4 * place, true);
  }

  memoryOf(place) {
    if (place < 2)
      return 0x100;
    const endpoint = this.view.getUint32(4 * place, true);
    if (!(endpoint & EP_CONTROL_ENABLE) || !(endpoint & EP_CONTROL_INTERRUPT_PER_BUFF))
      throw new Error(`usb: endpoint ${place >> 1} is not configured`);
    return endpoint & 0xffc0;
  }

  availableBuffer(place) {
    if ((this.usb.addrEndp & 0x7f) !== this.address)
      throw new Error(`usb: no device at address ${this.address}`);
    const control = this.control(place);
    if (!(control & AVAILABLE))
      return null;
    if (Boolean(control & DATA1) !== Boolean(this.toggles[place]))
      throw new Error(`usb: endpoint ${place >> 1} has the wrong data toggle`);
    return control;
  }

  receivePacket(endpoint, use) {
    const place = 2 * endpoint;
    const control = this.availableBuffer(place);
    if (control === null)
      return false;
    const length = control & 0x3ff;
    if (!(control & FULL) || length > PACKET)
      throw new Error(`usb: endpoint ${endpoint} offers an invalid packet`);
    this.transact(length, () => {
      const from = this.memoryOf(place);
      const bytes = [...this.memory.slice(from, from + length)];
      if (this.completeBuffer(place, control & ~(AVAILABLE | FULL)))
        use(bytes);
    });
    return true;
  }

  sendPacket(endpoint, bytes, then) {
    const place = 2 * endpoint + 1;
    const control = this.availableBuffer(place);
    if (control === null)
      return;
    if (bytes.length > (control & 0x3ff))
      throw new Error(`usb: endpoint ${endpoint} has no room for a packet`);
    this.transact(bytes.length, () => {
      this.memory.set(bytes, this.memoryOf(place));
      if (this.completeBuffer(place, control & ~(AVAILABLE | 0x3ff) | FULL | bytes.length))
        then();
    });
  }

  /* False if the device has withdrawn the buffer meanwhile. */
  completeBuffer(place, control) {
    if (!(this.control(place) & AVAILABLE))
      return false;
    this.toggles[place] = !this.toggles[place];
    this.view.setUint32(0x80 + 4 * place, control, true);
    if (place >= 2 || this.usb.sieCtrl & SIE_CTRL_EP0_INT_1BUF) {
      this.usb.buffStatus |= 1 << place;
      this.usb.buffStatusUpdated();
    }
    return true;
  }

  transact(bytes, onDone) {
    this.freeAt = this.now + Math.round((bytes + OVERHEAD) * CYCLES_PER_BYTE);
    this.onDone = onDone;
  }
}
