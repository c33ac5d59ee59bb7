// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A USB host for the RP2040 of rp2040js, in simulated time: it sets a serial port up as Linux does, and carries its bytes.
 * The emulator's own takes a packet at the moment it is offered, however many come; this one takes them one after the other,
 * each in the time of the wire, and looks at what is easily wrong and seen on a real bus only: DATA0 and DATA1, sizes, who is
 * asked at which address, and buffers touched that the controller has.
 */
const CYCLES_OF_BYTE = 125 / 12 * 8; // 12 Mbit/s
const OVERHEAD = 13; // bytes of a transaction that are no data
const CYCLES_OF_RESET = 1_250_000; // 10 ms
const CYCLES_OF_PAUSE = 250; // between looks at endpoints that have nothing
const PATIENCE_CYCLES = 12_500_000;
const ADDRESS = 5;
const PACKET = 64;
const [AVAILABLE, STALL, DATA1, FULL] = [1 << 10, 1 << 11, 1 << 13, 1 << 15];
const [ENDPOINT_ON, ENDPOINT_TELLS] = [1 << 31, 1 << 29];
const [CONTROL_TELLS, PULL_UP] = [1 << 29, 1 << 16];
const [STATUS_RESET, STATUS_SETUP] = [1 << 19, 1 << 17];
const [GET_DESCRIPTOR, SET_ADDRESS, SET_CONFIGURATION] = [6, 5, 9];
const [SET_LINE_CODING, GET_LINE_CODING, SET_LINE_STATE] = [0x20, 0x21, 0x22];
const [TO_HOST, OF_INTERFACE] = [0x80, 0x21];
const [DEVICE, CONFIGURATION, STRING] = [1, 2, 3];
const [DTR_AND_RTS, NO_LINE] = [3, 0];
const SPEED = [0x20, 0xa1, 0x07, 0x00, 0, 0, 8]; // 500,000 baud, 8N1

function setup(type, request, value, index, length) {
  return Uint8Array.of(type, request, value & 255, value >> 8, index & 255, index >> 8, length & 255, length >> 8);
}

export class UsbHost {
  constructor(chip, take) {
    Object.assign(this, { chip, take, usb: chip.usbCtrl, view: chip.usbDPRAMView, memory: chip.usbDPRAM });
    Object.assign(this, { freeAt: 0, finish: null, address: 0, told: {}, plan: null, transfer: null,
      attached: false, open: false, toggles: {}, sending: [], heard: [], held: false });
    this.usb.DPRAMUpdated = () => {};
  }

  /* One transaction after the other; nothing happens to a bus on which nobody pulls up. */
  step(cycle) {
    if (cycle < this.freeAt)
      return;
    this.now = cycle;
    this.freeAt = cycle + CYCLES_OF_PAUSE;
    const finish = this.finish;
    this.finish = null;
    if (finish)
      finish();
    else if (!this.attached && this.usb.sieCtrl & PULL_UP)
      this.reset();
    else if (this.plan)
      this.follow();
    else if (this.open)
      this.carry();
  }

  send(bytes) {
    this.sending.push(...bytes);
  }

  /* What is on its way is lost, and the device is found anew. */
  reset() {
    Object.assign(this, { attached: true, open: false, address: 0, transfer: null, sending: [], heard: [] });
    this.usb.sieStatus |= STATUS_RESET;
    this.usb.sieStatusUpdated();
    this.plan = this.setUp();
    this.freeAt = this.now + CYCLES_OF_RESET;
    this.finish = null;
  }

  close() {
    this.plan = this.leave();
  }

  reopen() {
    this.plan = this.enter();
  }

  * setUp() {
    const first = yield setup(TO_HOST, GET_DESCRIPTOR, DEVICE << 8, 0, 64);
    yield setup(0, SET_ADDRESS, ADDRESS, 0, 0);
    this.address = ADDRESS;
    this.told.device = yield setup(TO_HOST, GET_DESCRIPTOR, DEVICE << 8, 0, first[0]);
    const head = yield setup(TO_HOST, GET_DESCRIPTOR, CONFIGURATION << 8, 0, 9);
    this.told.configuration = yield setup(TO_HOST, GET_DESCRIPTOR, CONFIGURATION << 8, 0, head[2] | head[3] << 8);
    const language = yield setup(TO_HOST, GET_DESCRIPTOR, STRING << 8, 0, 255);
    this.told.strings = [];
    for (const index of this.told.device.slice(14, 17)) {
      const told = yield setup(TO_HOST, GET_DESCRIPTOR, STRING << 8 | index, language[2] | language[3] << 8, 255);
      this.told.strings.push(Buffer.from(told.slice(2)).toString('utf16le'));
    }
    this.told.refused = (yield setup(TO_HOST, GET_DESCRIPTOR, STRING << 8 | 99, 0, 255)) === null;
    this.toggles = {};
    yield setup(0, SET_CONFIGURATION, 1, 0, 0);
    yield* this.enter();
  }

  * enter() {
    yield [setup(OF_INTERFACE, SET_LINE_CODING, 0, 0, SPEED.length), SPEED];
    this.told.coding = yield setup(OF_INTERFACE | TO_HOST, GET_LINE_CODING, 0, 0, SPEED.length);
    yield setup(OF_INTERFACE, SET_LINE_STATE, DTR_AND_RTS, 0, 0);
    this.open = true;
  }

  * leave() {
    yield setup(OF_INTERFACE, SET_LINE_STATE, NO_LINE, 0, 0);
    this.open = false;
  }

  /* A control transfer: its setup, its data, its status the other way. */
  follow() {
    if (!this.transfer) {
      const { value, done } = this.plan.next(this.result);
      if (done) {
        this.plan = null;
        return;
      }
      const [request, data] = Array.isArray(value) ? value : [value, []];
      this.transfer = { request, data, got: [], wanted: request[6] | request[7] << 8, until: this.now + PATIENCE_CYCLES };
      this.toggles[0] = this.toggles[1] = true;
      this.transact(8, () => this.ask(request));
      return;
    }
    if (this.now > this.transfer.until)
      throw new Error(`usb: no answer to ${[...this.transfer.request]}`);
    this.goOn(this.transfer);
  }

  goOn(transfer) {
    const fromDevice = transfer.request[0] & TO_HOST;
    const ended = transfer.wanted === 0;
    if ([0, 1].every((place) => this.control(place) & STALL) && this.usb.epStallArm === 3) {
      this.usb.epStallArm = 0;
      this.end(null);
    } else if (ended ? fromDevice : !fromDevice)
      this.give(0, ended ? [] : transfer.data, () => (ended ? this.end(transfer.got) : transfer.wanted = 0));
    else
      this.get(0, (bytes) => {
        transfer.got.push(...bytes);
        if (ended)
          this.end(null);
        else if (bytes.length < PACKET || transfer.got.length >= transfer.wanted) {
          transfer.wanted = 0;
          this.toggles[1] = true;
        }
      });
  }

  end(result) {
    this.result = result;
    this.transfer = null;
  }

  ask(request) {
    this.memory.set(request);
    this.usb.sieStatus |= STATUS_SETUP;
    this.usb.sieStatusUpdated();
  }

  /* The data of the line: what it has to say, then what is to be said to it. */
  carry() {
    const [into, out] = this.endpoints();
    const bytes = this.sending.slice(0, PACKET);
    if (!this.held && this.get(into, (came) => this.hear(came)))
      return;
    if (bytes.length)
      this.give(out, bytes, () => this.sending.splice(0, bytes.length));
  }

  /* As a driver does: more is expected after a packet of full size. */
  hear(came) {
    this.heard.push(...came);
    if (came.length < PACKET)
      this.heard.splice(0).forEach((byte) => this.take(byte));
  }

  /* By the configuration told: the bulk endpoints into the host and out of it. */
  endpoints() {
    const found = [0, 0];
    const bytes = this.told.configuration;
    for (let at = 0; at < bytes.length; at += bytes[at])
      if (bytes[at + 1] === 5 && bytes[at + 3] === 2)
        found[bytes[at + 2] & TO_HOST ? 0 : 1] = bytes[at + 2] & 15;
    return found;
  }

  /* Of a buffer: 2 * endpoint, and 1 more out of the host. */
  control(place) {
    return this.view.getUint32(0x80 + 4 * place, true);
  }

  memoryOf(place) {
    if (place < 2)
      return 0x100;
    const endpoint = this.view.getUint32(4 * place, true);
    if (!(endpoint & ENDPOINT_ON) || !(endpoint & ENDPOINT_TELLS))
      throw new Error(`usb: endpoint ${place >> 1} is not set up`);
    return endpoint & 0xffc0;
  }

  offered(place) {
    if ((this.usb.addrEndp & 0x7f) !== this.address)
      throw new Error(`usb: nobody answers at address ${this.address}`);
    const control = this.control(place);
    if (!(control & AVAILABLE))
      return null;
    if (Boolean(control & DATA1) !== Boolean(this.toggles[place]))
      throw new Error(`usb: endpoint ${place >> 1} counts packets otherwise`);
    return control;
  }

  get(endpoint, use) {
    const place = 2 * endpoint;
    const control = this.offered(place);
    if (control === null)
      return false;
    const length = control & 0x3ff;
    if (!(control & FULL) || length > PACKET)
      throw new Error(`usb: endpoint ${endpoint} offers what is no packet`);
    this.transact(length, () => {
      const from = this.memoryOf(place);
      const bytes = [...this.memory.slice(from, from + length)];
      if (this.taken(place, control & ~(AVAILABLE | FULL)))
        use(bytes);
    });
    return true;
  }

  give(endpoint, bytes, then) {
    const place = 2 * endpoint + 1;
    const control = this.offered(place);
    if (control === null)
      return;
    if (bytes.length > (control & 0x3ff))
      throw new Error(`usb: endpoint ${endpoint} has no room for a packet`);
    this.transact(bytes.length, () => {
      this.memory.set(bytes, this.memoryOf(place));
      if (this.taken(place, control & ~(AVAILABLE | 0x3ff) | FULL | bytes.length))
        then();
    });
  }

  /* False where the device has taken the buffer back meanwhile. */
  taken(place, control) {
    if (!(this.control(place) & AVAILABLE))
      return false;
    this.toggles[place] = !this.toggles[place];
    this.view.setUint32(0x80 + 4 * place, control, true);
    if (place >= 2 || this.usb.sieCtrl & CONTROL_TELLS) {
      this.usb.buffStatus |= 1 << place;
      this.usb.buffStatusUpdated();
    }
    return true;
  }

  transact(bytes, finish) {
    this.freeAt = this.now + Math.round((bytes + OVERHEAD) * CYCLES_OF_BYTE);
    this.finish = finish;
  }
}
