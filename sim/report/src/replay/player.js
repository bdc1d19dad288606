// Plays a trace: the model of its state at any time, the map, the time line, the controls.
//
// What tests (and anyone at the console) may use, `window.quiver`:
//   stateAt(t)   the state at t microseconds: { time, newest, leader, deputies, drones: { name: { state, epoch, cut, kem } } }
//   shown()      the same of what is drawn
//   seek(t), step(±1), play(), pause(), select(name), where(name), speed, time, end, playing, frames, error
'use strict';
(() => {
  const WHAT = { on: 0, off: 1, holds: 2, leads: 3, captured: 4, cut: 5, story: 6, kem: 7 };
  const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const [SHORTEST, MOST_DRAWN, MOST_TRAILS, FRAMES] = [400_000, 3000, 500, 5000];
  // Where nothing happens for so many seconds of a viewer's time, it is skipped, but for so much before the next thing.
  const [QUIET, BEFORE] = [1e6, 0.3e6];
  const [PLAY, PAUSE] = ['M4 2l10 6-10 6z', 'M3 2h4v12H3zM9 2h4v12H9z'];
  const at = id => document.getElementById(id);

  // The first of so many indices whose time is later than this one.
  function after(count, time, when) {
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (when(middle) <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The state of every node at a time, from the facts until then.
  class Model {
    constructor(trace) {
      this.trace = trace;
      this.hubs = trace.kgcs + trace.leaders;
      this.count = this.hubs + trace.edges;
      this.names = Array.from({ length: this.count }, (_, node) =>
        node < trace.kgcs ? `kgc-${node + 1}` : node < this.hubs ? `leader-${node - trace.kgcs}` : `edge-${node - this.hubs}`);
      const order = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
      const sorted = trace.epochs.map((_, index) => index).sort((a, b) => order(trace.epochs[a], trace.epochs[b]));
      this.rank = [];
      sorted.forEach((epoch, rank) => { this.rank[epoch] = rank; });
      this.epochName = epoch => epoch < 0 ? null : `${trace.epochs[epoch][0]}-${trace.epochs[epoch][1]}.${trace.epochs[epoch][2]}`;
      let time = 0;
      this.facts = trace.facts.map(([after, ...fact]) => [time += after, ...fact]);
      this.reset();
    }

    reset() {
      [this.time, this.next, this.newest] = [-1, 0, -1];
      this.on = new Uint8Array(this.count);
      this.cut = new Uint8Array(this.count);
      this.captured = new Uint8Array(this.count);
      // Of an edge the second factor that it shares with the leader of its epoch.
      this.kem = new Int32Array(this.count).fill(-1);
      // Of an edge the epoch it holds, of a leader the epoch it leads with.
      this.epoch = new Int32Array(this.count).fill(-1);
    }

    seek(time) {
      if (time < this.time) this.reset();
      this.time = time;
      for (; this.next < this.facts.length && this.facts[this.next][0] <= time; this.next++) {
        const [, node, what, argument] = this.facts[this.next];
        if (what === WHAT.on || what === WHAT.off) this.on[node] = what === WHAT.on;
        else if (what === WHAT.cut) this.cut[node] = argument;
        else if (what === WHAT.captured) this.captured[node] = argument;
        else if (what === WHAT.kem) this.kem[node] = argument;
        else if (what === WHAT.holds || what === WHAT.leads) this.epoch[node] = argument;
        if (what === WHAT.leads && argument >= 0 && (this.newest < 0 || this.rank[argument] > this.rank[this.newest])) this.newest = argument;
      }
      return this;
    }

    state(node) {
      if (!this.on[node]) return 'down';
      if (this.captured[node]) return 'captured';
      if (this.epoch[node] < 0) return 'out';
      return this.epoch[node] === this.newest ? 'current' : 'behind';
    }

    // The leader in office with the highest epoch, and the others that are on.
    reign() {
      const leaders = [];
      for (let node = this.trace.kgcs; node < this.hubs; node++) if (this.on[node]) leaders.push(node);
      const leading = leaders.filter(node => this.epoch[node] >= 0).sort((a, b) => this.rank[this.epoch[b]] - this.rank[this.epoch[a]]);
      return { leader: leading[0] ?? null, others: leading.slice(1), deputies: leaders.filter(node => this.epoch[node] < 0) };
    }

    // The second factor of a drone with its leader, in words.
    factor(node) {
      if (this.epoch[node] < 0 || this.kem[node] < -1) return null;
      if (this.kem[node] < 0) return 'classical';
      const [set, terms, made] = this.trace.kems[this.kem[node]];
      return `${set}, term ${terms}, ${Math.floor((this.time - made) / 1e6)} s old`;
    }

    describe() {
      const { leader, deputies } = this.reign();
      const drones = {};
      for (let node = this.hubs; node < this.count; node++) {
        drones[this.names[node]] = { state: this.state(node), epoch: this.epochName(this.epoch[node]), cut: Boolean(this.cut[node]), kem: this.factor(node) };
      }
      return {
        time: this.time, newest: this.epochName(this.newest), drones,
        leader: leader === null ? null : this.names[leader], deputies: deputies.map(node => this.names[node]),
      };
    }

    counts() {
      const counts = { current: 0, behind: 0, out: 0, captured: 0, down: 0 };
      for (let node = this.hubs; node < this.count; node++) counts[this.state(node)]++;
      return counts;
    }

    story(node) {
      const lines = [];
      for (const [time, of, what, argument] of this.facts) {
        if (of !== node) continue;
        if (what === WHAT.story) lines.push([time, this.trace.texts[argument]]);
        else if (what === WHAT.holds) lines.push([time, argument < 0 ? 'holds no key any more' : `holds the key of ${this.epochName(argument)}`]);
        else if (what === WHAT.leads) lines.push([time, argument < 0 ? 'leads no more' : `leads with epoch ${this.epochName(argument)}`]);
        else if (what === WHAT.kem && argument >= -1) lines.push([time, argument < 0 ? 'shares no second factor with a leader' : `shares ${this.trace.kems[argument][0]} with its leader, term ${this.trace.kems[argument][1]}`]);
        else if (what === WHAT.cut) lines.push([time, argument ? 'is cut off: no leader and it hear each other' : 'hears a leader again']);
      }
      for (const event of this.trace.events) if (event.kind === 'violation' && event.node === node) lines.push([event.at, event.text]);
      return lines.sort((a, b) => a[0] - b[0]);
    }
  }

  // Messages under way, in columns, in order of their sending.
  class Hops {
    constructor(rows) {
      const count = rows.length;
      Object.assign(this, {
        count, longest: 0, sent: new Float64Array(count), took: new Float64Array(count),
        from: new Uint32Array(count), to: new Uint32Array(count), purpose: new Uint8Array(count),
      });
      let time = 0;
      rows.forEach(([after, from, to, purpose, took], hop) => {
        this.sent[hop] = time += after;
        [this.from[hop], this.to[hop], this.purpose[hop], this.took[hop]] = [from, to, purpose, took];
        this.longest = Math.max(this.longest, took);
      });
    }

    // When they were sent, and when they arrived.
    arrivals() {
      return [...this.sent, ...this.sent.map((sent, hop) => sent + Math.max(this.took[hop], 0))];
    }

    // Those that are drawn at a time: under way, or sent less than `shortest` ago.
    underWay(time, shortest) {
      const found = [];
      for (let hop = after(this.count, time - Math.max(this.longest, shortest), hop => this.sent[hop]); hop < this.count && this.sent[hop] <= time; hop++) {
        if (time < this.sent[hop] + Math.max(this.took[hop], shortest)) found.push(hop);
      }
      return found;
    }
  }

  // Where nodes are drawn: on the map if drones have places, on rings around the leaders if not.
  class Layout {
    constructor(model, width, height) {
      const places = model.trace.places;
      Object.assign(this, { model, places, width, height, x: new Float32Array(model.count), y: new Float32Array(model.count) });
      // KGCs stand in a column at the left, so that they cover no drone on a narrow screen.
      const column = places?.range ? 0 : 74;
      const radius = Math.min((width - column) * 0.46, height / 2 - 26);
      this.middle = [Math.max(width / 2, column + radius / 0.92), height / 2];
      this.scale = places ? radius / places.reach : 0;
      if (places) this.radius = Math.max(3, Math.min(8, 130 / Math.sqrt(model.trace.edges)));
      else this.rings(radius);
      this.placeHubs();
      const lost = places ? places.paths.map((path, edge) => path.length ? -1 : edge).filter(edge => edge >= 0) : [];
      lost.forEach((edge, index) => this.put(model.hubs + edge, width - 24, height - 24 - index * (this.radius * 3)));
    }

    put(node, x, y) { [this.x[node], this.y[node]] = [x, y]; }

    rings(radius) {
      const { trace, hubs } = this.model;
      const spacing = Math.min(44, Math.sqrt(Math.PI * radius * radius * 0.8 / Math.max(trace.edges, 1)));
      this.radius = Math.max(1.8, Math.min(9, spacing * 0.34));
      const rings = [];
      let room = 0;
      for (let ring = radius; room < trace.edges; ring -= spacing) {
        room += Math.max(1, Math.floor(2 * Math.PI * ring / spacing));
        rings.push([ring, room]);
      }
      let edge = 0;
      for (const [ring, until] of rings) {
        // Every ring is filled to the same part.
        const here = Math.round(trace.edges * until / room) - edge;
        for (let index = 0; index < here; index++, edge++) {
          const angle = 2 * Math.PI * index / here - Math.PI / 2;
          this.put(hubs + edge, this.middle[0] + ring * Math.cos(angle), this.middle[1] + ring * Math.sin(angle));
        }
      }
    }

    placeHubs() {
      const { kgcs, leaders } = this.model.trace;
      const inTheMiddle = (first, count, from) => {
        for (let index = 0; index < count; index++) {
          const angle = 2 * Math.PI * index / count - Math.PI / 2;
          const ring = count > 1 ? from : 0;
          this.put(first + index, this.middle[0] + ring * Math.cos(angle), this.middle[1] + ring * Math.sin(angle));
        }
      };
      const aside = (first, count) => {
        for (let index = 0; index < count; index++) this.put(first + index, 42, this.middle[1] + (index - (count - 1) / 2) * 46);
      };
      if (this.places?.range) return inTheMiddle(0, kgcs + leaders, 30);
      if (this.places) return aside(0, kgcs + leaders);
      aside(0, kgcs);
      inTheMiddle(kgcs, leaders, 38);
    }

    // Moves drones to where they are at a time.
    move(time) {
      if (!this.places) return;
      const here = new Map();
      this.places.paths.forEach((path, edge) => {
        if (!path.length) return;
        const next = after(path.length, time, index => path[index][0]);
        const [from, to] = [path[Math.max(next - 1, 0)], path[Math.min(next, path.length - 1)]];
        const part = to[0] > from[0] && time > from[0] ? (time - from[0]) / (to[0] - from[0]) : 0;
        const [x, y] = [1, 2].map(axis => from[axis] + (to[axis] - from[axis]) * part);
        // Drones in one place are drawn around it.
        const index = here.get(`${x},${y}`) ?? 0;
        here.set(`${x},${y}`, index + 1);
        const [turn, away] = [index * 2.4, Math.sqrt(index) * this.radius * 2.6];
        this.put(this.model.hubs + edge, this.middle[0] + x * this.scale + away * Math.cos(turn), this.middle[1] - y * this.scale + away * Math.sin(turn));
      });
    }

    nearest(x, y, within) {
      let [best, node] = [within * within, -1];
      for (let other = 0; other < this.model.count; other++) {
        const distance = (this.x[other] - x) ** 2 + (this.y[other] - y) ** 2;
        if (distance < best) [best, node] = [distance, other];
      }
      return node;
    }
  }

  // Shapes: every state has one of its own, for eyes that do not see its colour.
  function polygon(pen, x, y, radius, corners, turn) {
    pen.beginPath();
    for (let corner = 0; corner < corners; corner++) {
      const angle = 2 * Math.PI * corner / corners + turn;
      pen.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    }
    pen.closePath();
  }

  function mark(pen, ink, state, x, y, radius, filled) {
    pen.fillStyle = pen.strokeStyle = ink[state] ?? ink.soft;
    pen.lineWidth = Math.max(1.2, radius / 4);
    if (state === 'current' || state === 'out') {
      pen.beginPath();
      pen.arc(x, y, state === 'out' ? radius * 0.85 : radius, 0, 2 * Math.PI);
      if (state === 'current') pen.fill(); else pen.stroke();
    } else if (state === 'behind') {
      polygon(pen, x, y, radius * 1.25, 3, -Math.PI / 2);
      pen.fill();
    } else if (state === 'captured') {
      polygon(pen, x, y, radius * 1.35, 4, 0);
      if (filled) pen.fill();
      pen.stroke();
    } else {
      const arm = radius * 0.7;
      pen.beginPath();
      for (const way of [1, -1]) { pen.moveTo(x - arm, y - arm * way); pen.lineTo(x + arm, y + arm * way); }
      pen.stroke();
    }
  }

  function fail(text) {
    const notice = at('notice');
    notice.hidden = false;
    notice.textContent = `${text} It is made again by: ${at('notice').querySelector('code')?.textContent ?? ''}`;
    window.quiver = { error: text };
  }

  // The trace, if all of it is there.
  function read() {
    const [data, end] = [at('trace'), at('end')];
    if (!data || !end) return fail('This replay was cut short: the file ends before the trace does.');
    if (data.textContent.length !== Number(end.dataset.length)) return fail('This replay is damaged: a part of its trace is missing.');
    try {
      return JSON.parse(data.textContent);
    } catch (error) {
      return fail(`This replay is damaged: its trace cannot be read (${error.message}).`);
    }
  }

  function start() {
    const trace = read();
    if (!trace) return;
    at('notice').hidden = true;
    at('player').hidden = false;

    const model = new Model(trace), asked = new Model(trace), hops = new Hops(trace.hops);
    const [map, line] = [at('map'), at('line')];
    const pens = new Map([map, line].map(canvas => [canvas, canvas.getContext('2d')]));
    const stops = [...new Set([0, ...trace.events.map(event => event.at), trace.end])].sort((a, b) => a - b);
    // Times at which something is to be seen, to a ten-thousandth of the whole.
    const grain = Math.max(1, trace.end / 1e4), coarse = when => Math.ceil(when / grain) * grain;
    const happenings = [...new Set([...model.facts.map(fact => fact[0]), ...hops.arrivals()].map(coarse))].sort((a, b) => a - b);
    const [ink, frames, counts] = [{}, [], new Map(trace.counted)];
    let [time, playing, speed, selected, hovered, story, told, last, layout, sprites, background, stale] =
      [0, false, 1, -1, -1, [], -1, null, null, null, null, true];

    const seconds = micros => `${(micros / 1e6).toFixed(3)} s`;
    const title = node => {
      const epoch = model.epochName(model.epoch[node]);
      if (node < trace.kgcs) return `${model.names[node]}${model.on[node] ? '' : ', off'}`;
      if (node < model.hubs) return `${model.names[node]}, ${!model.on[node] ? 'off' : epoch ? `leads with epoch ${epoch}` : 'stands by'}`;
      return `${model.names[node]}, ${{ down: 'off' }[model.state(node)] ?? model.state(node)}${epoch ? `, epoch ${epoch}` : ''}${model.factor(node) ? `, ${model.factor(node)}` : ''}${model.cut[node] ? ', cut off' : ''}`;
    };

    function dip() {
      const style = getComputedStyle(document.documentElement);
      const names = ['paper', 'panel', 'ink', 'soft', 'edge', 'grid', 'axis', 'accent', 'shade', 'current', 'behind', 'captured', 'down', 'fault', 'violation', ...trace.purposes];
      for (const name of names) ink[name] = style.getPropertyValue(`--${name}`).trim();
      ink.out = ink.soft;
      for (const canvas of document.querySelectorAll('#states canvas')) {
        const pen = canvas.getContext('2d');
        pen.clearRect(0, 0, 20, 20);
        mark(pen, ink, canvas.dataset.state, 10, 10, 6, false);
      }
    }

    function fit() {
      dip();
      for (const canvas of [map, line]) {
        const [ratio, box] = [window.devicePixelRatio || 1, canvas.getBoundingClientRect()];
        [canvas.width, canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
        pens.get(canvas).setTransform(ratio, 0, 0, ratio, 0, 0);
      }
      const box = map.getBoundingClientRect();
      layout = new Layout(model, box.width, box.height);
      drawSprites();
      drawBackground();
      stale = true;
    }

    // Every look of a drone once, to be copied a thousand times.
    function drawSprites() {
      const [ratio, size] = [window.devicePixelRatio || 1, Math.ceil(layout.radius * 4)];
      sprites = { size };
      for (const state of ['current', 'behind', 'out', 'captured', 'down']) {
        for (const filled of [0, 1]) for (const cut of [0, 1]) {
          const canvas = document.createElement('canvas');
          canvas.width = canvas.height = size * ratio;
          const pen = canvas.getContext('2d');
          pen.setTransform(ratio, 0, 0, ratio, 0, 0);
          if (cut) {
            pen.globalAlpha = 0.55;
            pen.strokeStyle = ink.fault;
            pen.setLineDash([2, 2]);
            pen.beginPath();
            pen.arc(size / 2, size / 2, layout.radius * 1.7, 0, 2 * Math.PI);
            pen.stroke();
            pen.setLineDash([]);
          }
          mark(pen, ink, state, size / 2, size / 2, layout.radius, filled);
          sprites[`${state}${filled}${cut}`] = canvas;
        }
      }
    }

    // ---- the map

    function drawPlaces(pen) {
      const places = layout.places;
      if (!places) return;
      const [x, y] = layout.middle, reach = places.reach * layout.scale;
      pen.strokeStyle = ink.edge;
      pen.strokeRect(x - reach, y - reach, 2 * reach, 2 * reach);
      if (places.admitted) {
        const edge = index => Math.round(2 * reach * index / places.admitted.length);
        pen.fillStyle = ink.accent;
        pen.globalAlpha = 0.1;
        places.admitted.forEach((row, down) => [...row].forEach((in_, right) => {
          const [left, top] = [Math.round(x - reach) + edge(right), Math.round(y - reach) + edge(down)];
          if (in_ === '1') pen.fillRect(left, top, edge(right + 1) - edge(right), edge(down + 1) - edge(down));
        }));
        pen.globalAlpha = 1;
      }
      if (places.range) {
        pen.beginPath();
        pen.arc(x, y, places.range * layout.scale, 0, 2 * Math.PI);
        pen.fillStyle = ink.shade;
        pen.fill();
        pen.strokeStyle = ink.axis;
        pen.setLineDash([5, 5]);
        pen.stroke();
        pen.setLineDash([]);
      }
      pen.fillStyle = ink.soft;
      pen.font = '12px system-ui, sans-serif';
      pen.textAlign = 'left';
      pen.fillText(places.range ? `${2 * places.reach} m across, in range within ${places.range} m` : `${2 * places.reach} m across, shaded where the policy admits`, x - reach + 6, y + reach - 7);
    }

    function drawHops(pen) {
      let underWay = hops.underWay(time, SHORTEST * speed);
      const every = Math.ceil(underWay.length / MOST_DRAWN);
      if (every > 1) underWay = underWay.filter(hop => hop % every === 0);
      const uncounted = counts.get(Math.floor(time / 1e6))?.reduce((sum, count) => sum + count, 0);
      at('drawn').hidden = !(every > 1 || uncounted);
      at('drawn').textContent = uncounted ? `${uncounted} messages in this second, not drawn` : `1 in ${every} messages drawn`;
      const [size, trails] = [Math.max(2.6, Math.min(6, layout.radius * 0.75)), underWay.length <= MOST_TRAILS];
      for (const purpose of trace.purposes.keys()) {
        pen.fillStyle = ink[trace.purposes[purpose]];
        for (const hop of underWay) {
          if (hops.purpose[hop] !== purpose) continue;
          const lost = hops.took[hop] < 0;
          const part = (time - hops.sent[hop]) / Math.max(hops.took[hop], SHORTEST * speed);
          const way = lost ? Math.min(part, 0.5) : part;
          const [from, to] = [hops.from[hop], hops.to[hop]];
          const [right, down] = [layout.x[to] - layout.x[from], layout.y[to] - layout.y[from]];
          const [x, y] = [layout.x[from] + right * way, layout.y[from] + down * way];
          if (trails) {
            const tail = Math.min(way, 0.16);
            pen.beginPath();
            pen.moveTo(x - right * tail, y - down * tail);
            pen.lineTo(x, y);
            pen.globalAlpha = 0.3;
            pen.lineWidth = size * 0.6;
            pen.strokeStyle = pen.fillStyle;
            pen.stroke();
            pen.globalAlpha = 1;
          }
          if (lost && part > 0.5) {
            pen.strokeStyle = ink.violation;
            pen.lineWidth = 1.5;
            pen.beginPath();
            for (const side of [1, -1]) { pen.moveTo(x - size, y - size * side); pen.lineTo(x + size, y + size * side); }
            pen.stroke();
          } else {
            pen.fillRect(x - size / 2, y - size / 2, size, size);
          }
        }
      }
    }

    function drawHub(pen, node, { leader, others }) {
      const [x, y, radius] = [layout.x[node], layout.y[node], node < trace.kgcs ? 9 : 13];
      pen.globalAlpha = model.on[node] ? 1 : 0.4;
      const leads = node === leader || others.includes(node);
      pen.fillStyle = pen.strokeStyle = model.captured[node] ? ink.captured : node < trace.kgcs ? ink.soft : ink.accent;
      pen.lineWidth = 2;
      if (node < trace.kgcs) polygon(pen, x, y, radius * 1.2, 4, Math.PI / 4); else polygon(pen, x, y, radius, 6, 0);
      const area = pen.fillStyle;
      if (!leads) { pen.fillStyle = ink.panel; pen.fill(); pen.fillStyle = area; } else pen.fill();
      pen.stroke();
      if (!model.on[node]) mark(pen, ink, 'down', x, y, radius * 0.8);
      if (leads) { pen.fillStyle = ink.panel; pen.font = '700 13px system-ui, sans-serif'; pen.textAlign = 'center'; pen.fillText('★', x, y + 4.5); }
      pen.fillStyle = ink.ink;
      label(pen, trace.kgcs === 1 && node === 0 ? 'kgc' : model.names[node], x, y + radius + 14);
      pen.globalAlpha = 1;
    }

    function label(pen, text, x, y) {
      pen.font = '600 12px system-ui, sans-serif';
      pen.textAlign = 'center';
      pen.lineWidth = 3.5;
      pen.strokeStyle = ink.panel;
      pen.lineJoin = 'round';
      pen.strokeText(text, x, y);
      pen.fillStyle = ink.ink;
      pen.fillText(text, x, y);
    }

    function drawMap() {
      const [pen, reign] = [pens.get(map), model.reign()];
      layout.move(time);
      pen.clearRect(0, 0, layout.width, layout.height);
      pen.lineWidth = 1;
      drawPlaces(pen);
      drawHops(pen);
      const half = sprites.size / 2;
      for (let node = model.hubs; node < model.count; node++) {
        const filled = model.epoch[node] >= 0 && model.epoch[node] === model.newest ? 1 : 0;
        pen.drawImage(sprites[`${model.state(node)}${filled}${model.cut[node]}`], layout.x[node] - half, layout.y[node] - half, sprites.size, sprites.size);
      }
      for (let node = 0; node < model.hubs; node++) drawHub(pen, node, reign);
      if (trace.edges <= 60) for (let node = model.hubs; node < model.count; node++) {
        pen.fillStyle = ink.soft;
        pen.font = '11px system-ui, sans-serif';
        pen.textAlign = 'center';
        pen.fillText(node - model.hubs, layout.x[node], layout.y[node] + layout.radius + 13);
      }
      if (selected >= 0) {
        const [x, y, radius] = [layout.x[selected], layout.y[selected], selected < model.hubs ? 18 : layout.radius + 6];
        pen.beginPath();
        pen.arc(x, y, radius, 0, 2 * Math.PI);
        pen.lineWidth = 2.5;
        pen.strokeStyle = ink.ink;
        pen.stroke();
        if (selected >= model.hubs) label(pen, model.names[selected], x, y - radius - 6);
      }
      const names = nodes => nodes.map(node => model.names[node]).join(', ');
      const words = [model.newest < 0 ? 'no epoch yet' : `newest epoch ${model.epochName(model.newest)}`];
      words.push(reign.leader === null ? 'nobody leads' : `${names([reign.leader])} leads${reign.others.length ? `, and so does ${names(reign.others)}` : ''}`);
      if (reign.deputies.length && trace.leaders > 1) words.push(`${names(reign.deputies)} stand${reign.deputies.length === 1 ? 's' : ''} by`);
      at('reign').textContent = words.join('\n');
    }

    // ---- the time line

    const ROWS = { states: [4, 46], epochs: [51, 65], commands: [68, 82], faults: [85, 99] };
    const LEFT = 62;
    const across = micros => LEFT + (line.clientWidth - LEFT - 6) * micros / Math.max(trace.end, 1);

    // All of the time line but the hand: shares of states over time, epochs, what is done, faults.
    function drawBackground() {
      const width = line.clientWidth, ratio = window.devicePixelRatio || 1;
      background = document.createElement('canvas');
      [background.width, background.height] = [line.width, line.height];
      const pen = background.getContext('2d');
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      const [top, bottom] = ROWS.states;
      const stack = ['current', 'behind', 'captured', 'out', 'down'];
      const step = Math.ceil((width - LEFT - 6) / 800);
      for (let x = LEFT; x < width - 6; x += step) {
        const now = asked.seek(trace.end * (x - LEFT) / (width - LEFT - 6)).counts();
        let y = bottom;
        for (const state of stack) {
          const height = (bottom - top) * now[state] / Math.max(trace.edges, 1);
          pen.fillStyle = state === 'out' ? ink.edge : state === 'down' ? ink.shade : ink[state];
          pen.fillRect(x, y - height, step, height);
          y -= height;
        }
      }
      pen.fillStyle = ink.soft;
      pen.font = '11px system-ui, sans-serif';
      pen.textAlign = 'right';
      pen.fillText('drones', LEFT - 8, 29);
      for (const [row, y] of [['epochs', 62], ['actions', 79], ['faults', 96]]) pen.fillText(row, LEFT - 8, y);
      pen.textAlign = 'center';
      for (let tick = 0; tick <= 6; tick++) {
        const moment = trace.end * tick / 6;
        pen.textAlign = tick === 0 ? 'left' : tick === 6 ? 'right' : 'center';
        pen.fillText(`${(moment / 1e6).toFixed(trace.end < 20e6 ? 1 : 0)} s`, across(moment), 111);
      }
      pen.lineWidth = 1;
      for (const event of trace.events) drawEvent(pen, event);
    }

    function drawEvent(pen, event) {
      const x = across(event.at), until = across(event.until ?? event.at);
      const row = { epoch: 'epochs', leader: 'epochs', command: 'commands', phase: 'commands' }[event.kind] ?? 'faults';
      const [top, bottom] = ROWS[row], middle = (top + bottom) / 2;
      if (event.kind === 'epoch' || event.kind === 'leader') {
        const opens = event.kind === 'leader' || event.text.includes('opens a term');
        pen.fillStyle = ink.accent;
        pen.fillRect(x - (opens ? 1 : 0.5), opens ? top : top + 5, opens ? 2.5 : 1.5, bottom - top - (opens ? 0 : 5));
        if (opens) { polygon(pen, x, top + 3, 4.5, 6, 0); pen.fill(); }
      } else if (event.kind === 'command' || event.kind === 'phase') {
        pen.strokeStyle = pen.fillStyle = ink.soft;
        if (event.kind === 'phase') {
          pen.fillStyle = ink.shade;
          pen.strokeStyle = ink.axis;
          pen.fillRect(x, top, Math.max(2, until - x), bottom - top);
          pen.strokeRect(x + 0.5, top + 0.5, Math.max(2, until - x - 1), bottom - top - 1);
          pen.textAlign = 'left';
          pen.fillStyle = ink.ink;
          if (pen.measureText(event.text).width < until - x - 10) pen.fillText(event.text, x + 6, bottom - 3.5);
        } else { pen.beginPath(); pen.arc(x, middle, 2.6, 0, 2 * Math.PI); pen.fill(); }
      } else {
        pen.fillStyle = ink[{ fault: 'fault', adversary: 'captured', violation: 'violation' }[event.kind]];
        if (event.until) { pen.globalAlpha = 0.35; pen.fillRect(x, top + 3, Math.max(2, until - x), bottom - top - 6); pen.globalAlpha = 1; }
        if (event.kind === 'violation') { pen.fillRect(x - 1, ROWS.states[0], 2.5, bottom); polygon(pen, x, middle, 7, 3, Math.PI / 2); }
        else polygon(pen, x, middle, event.kind === 'fault' ? 4 : 5, event.kind === 'fault' ? 3 : 4, event.kind === 'fault' ? -Math.PI / 2 : 0);
        pen.fill();
      }
    }

    function drawLine() {
      const pen = pens.get(line);
      pen.clearRect(0, 0, line.clientWidth, line.clientHeight);
      pen.drawImage(background, 0, 0, line.clientWidth, line.clientHeight);
      pen.fillStyle = ink.ink;
      pen.fillRect(across(time) - 0.75, 0, 1.5, 100);
      polygon(pen, across(time), 3, 5, 3, Math.PI / 2);
      pen.fill();
    }

    // ---- words

    function tell() {
      const until = story.findLastIndex(([when]) => when <= time) + 1;
      if (until === told) return;
      const list = at('story');
      if (until < told || told < 0) { list.replaceChildren(); told = 0; }
      for (const [when, text] of story.slice(told, until)) {
        const [item, button, stamp] = ['li', 'button', 'time'].map(name => document.createElement(name));
        stamp.textContent = seconds(when);
        button.type = 'button';
        // A line does not end within the name of an epoch.
        button.append(stamp, text.replace(/(\d)-(\d)/g, '$1\u2011$2'));
        button.onclick = () => { pause(); seek(when); };
        item.append(button);
        list.append(item);
      }
      told = until;
      list.scrollTop = list.scrollHeight;
    }

    function write() {
      at('clock').textContent = seconds(time);
      at('seek').value = 1000 * time / Math.max(trace.end, 1);
      at('seek').setAttribute('aria-valuetext', seconds(time));
      for (const [state, count] of Object.entries(model.counts())) at(`count-${state}`).textContent = count;
      const event = trace.events.findLast(event => event.at <= time);
      at('now').textContent = event ? `${seconds(event.at)}  ${event.text}${event.times > 1 ? `, and ${event.times - 1} more like it` : ''}` : '';
      at('play').querySelector('path').setAttribute('d', playing ? PAUSE : PLAY);
      at('play').setAttribute('aria-label', playing ? 'Pause' : 'Play');
      at('now').setAttribute('aria-live', playing ? 'off' : 'polite');
      tell();
    }

    function draw() {
      const begin = performance.now();
      model.seek(time);
      drawMap();
      drawLine();
      write();
      frames.push(performance.now() - begin);
      if (frames.length > FRAMES) frames.shift();
      stale = false;
    }

    // ---- the controls

    function frame(now) {
      if (playing) {
        time = Math.min(trace.end, time + Math.min(now - (last ?? now), 100) * 1000 * speed);
        if (at('skip').checked) skip();
        if (time >= trace.end) playing = false;
        stale = true;
      }
      last = now;
      if (stale) draw();
      requestAnimationFrame(frame);
    }

    function skip() {
      const index = after(happenings.length, time, index => happenings[index]), next = happenings[index] ?? trace.end;
      const shown = index > 0 ? happenings[index - 1] : 0;
      if (next - time > QUIET * speed && time - shown > (SHORTEST + BEFORE) * speed) time = next - BEFORE * speed;
    }

    function seek(to) { time = Math.max(0, Math.min(trace.end, to)); draw(); }
    function play() { if (time >= trace.end) time = 0; playing = true; stale = true; }
    function pause() { playing = false; stale = true; }
    function step(way) {
      pause();
      seek(way > 0 ? stops.find(stop => stop > time) ?? trace.end : stops.findLast(stop => stop < time) ?? 0);
    }
    function setSpeed(to) { speed = to; at('speed').value = to; stale = true; }
    function faster(way) {
      const index = SPEEDS.indexOf(speed) + way;
      if (index in SPEEDS) setSpeed(SPEEDS[index]);
    }
    function select(node) {
      [selected, story, told] = [node, node < 0 ? [] : model.story(node), -1];
      at('who').value = node < 0 ? '' : node;
      draw();
    }

    function hover(event) {
      hovered = layout.nearest(event.offsetX, event.offsetY, Math.max(12, layout.radius * 2));
      tip(hovered < 0 ? '' : title(hovered), map, event);
    }
    function hoverLine(event) {
      const near = trace.events.filter(it => Math.abs(across(it.at) - event.offsetX) < 4 || (it.until && it.at !== it.until && event.offsetY > 68 && across(it.at) <= event.offsetX && event.offsetX <= across(it.until)));
      line.title = near.slice(0, 6).map(it => `${seconds(it.at)}  ${it.text}${it.times > 1 ? `, and ${it.times - 1} more like it` : ''}`).join('\n');
    }
    function tip(text, over, event) {
      const box = at('tip');
      box.hidden = !text;
      box.textContent = text;
      box.style.left = `${Math.min(event.offsetX + 14, over.clientWidth - box.offsetWidth - 8)}px`;
      box.style.top = `${over.offsetTop + Math.max(event.offsetY - 34, 4)}px`;
      over.style.cursor = text ? 'pointer' : '';
    }

    const keys = {
      ' ': () => playing ? pause() : play(), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
      ArrowUp: () => faster(1), ArrowDown: () => faster(-1),
      Home: () => { pause(); seek(0); }, End: () => { pause(); seek(trace.end); },
    };
    addEventListener('keydown', event => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('select, #story')) return;
      if (event.key === ' ' && event.target.closest('button')) return;
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    at('play').onclick = () => keys[' ']();
    at('back').onclick = () => step(-1);
    at('next').onclick = () => step(1);
    at('speed').onchange = event => setSpeed(Number(event.target.value));
    at('seek').oninput = event => seek(trace.end * event.target.value / 1000);
    at('who').onchange = event => select(event.target.value === '' ? -1 : Number(event.target.value));
    map.onclick = event => select(layout.nearest(event.offsetX, event.offsetY, Math.max(14, layout.radius * 2)));
    map.onpointermove = hover;
    map.onpointerleave = () => { at('tip').hidden = true; };
    line.onpointermove = event => { if (event.buttons) pull(event); else hoverLine(event); };
    const pull = event => seek(trace.end * (event.offsetX - LEFT) / Math.max(line.clientWidth - LEFT - 6, 1));
    line.onpointerdown = event => { line.setPointerCapture(event.pointerId); pull(event); };
    addEventListener('resize', fit);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', fit);

    at('speed').append(...SPEEDS.map(value => new Option(`${value} ×`, value)));
    at('who').append(...model.names.map((name, node) => new Option(name, node)));
    for (const purpose of trace.purposes) {
      const [item, spot] = [document.createElement('li'), document.createElement('i')];
      spot.style.background = `var(--${purpose})`;
      item.append(spot, purpose);
      at('purposes').append(item);
    }
    const lost = document.createElement('li');
    lost.innerHTML = '<i class="lost">×</i>lost';
    at('purposes').append(lost);
    // Drones that fly are to be seen all the time.
    at('skip').checked = !trace.places?.range;
    // The slowest with which the whole takes a minute at most.
    const most = at('skip').checked ? QUIET : Infinity;
    const takes = value => happenings.reduce((sum, when, index) => sum + Math.min((when - (happenings[index - 1] ?? 0)) / value, most), 0);
    setSpeed(SPEEDS.find(value => takes(value) <= 60e6) ?? SPEEDS.at(-1));
    const find = name => model.names.indexOf(name);
    window.quiver = {
      stateAt: micros => asked.seek(micros).describe(), shown: () => model.describe(),
      seek, step, play, pause, select: name => select(find(name)),
      where: name => [layout.x[find(name)], layout.y[find(name)]],
      get speed() { return speed; }, set speed(to) { setSpeed(to); },
      get time() { return time; }, get playing() { return playing; }, end: trace.end, frames, error: null,
    };
    fit();
    requestAnimationFrame(frame);
  }

  if (document.readyState === 'loading') addEventListener('DOMContentLoaded', start); else start();
})();
