// Draws the timeline of the report page. The element timeline-data holds {names, steps}; a step is
//   {length, path: [begin, length, hue, name, ...], ranks: [[label, [lane, depth, begin, length, hue, name, ...], ...], ...]}
// in nanoseconds of the step; a lane's begins are those after the span before. A hue of 16 and more: the name says
// how long it took.
(() => {
  const element = document.getElementById('timeline-data');
  if (!element) return;
  const data = JSON.parse(element.textContent);
  const canvas = document.querySelector('.timeline canvas'), tip = document.querySelector('.timeline .tip');
  const said = document.querySelector('.said'), context = canvas.getContext('2d');
  const family = getComputedStyle(document.body).fontFamily;
  const kHues = ['compute', 'gather', 'reduce', 'optimizer', 'copy', 'wait', 'idle', 'idle', 'muted'];
  const kAxis = 22, kLane = 18, kHeader = 22, kGap = 8, kSaysDuration = 16, kHatched = [5, 7, 8];
  let step, rows, view, width, height, gutter, selected = null, patterns = {};

  const time = ns => {
    for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]])
      if (Math.abs(ns) >= size) return `${Number((ns / size).toPrecision(3))} ${unit}`;
    return `${Math.round(ns)} ns`;
  };
  // Of a mark on the axis: the unit of the later end of what is seen, and the digits that marks so far apart differ in.
  const mark = (ns, every, last) => {
    const [unit, size] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]].find(([, size]) => last >= size) || ['ns', 1];
    const digits = Math.max(0, Math.ceil(Math.log10(size / every) - 1e-9));
    return ns === 0 ? '0' : `${(ns / size).toFixed(digits)} ${unit}`;
  };
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

  // Rows of a step: the critical path, then a line for each rank and its lanes. Spans by begin.
  const rowsOf = found => {
    const out = [];
    const lane = (label, rank, flat, from, size) => {
      const spans = [];
      let at = 0;
      for (let i = from; i < flat.length; i += size) {
        const [depth, begin, length, hue, name] = size === 5 ? flat.slice(i, i + 5) : [0, ...flat.slice(i, i + 4)];
        at = size === 5 ? at + begin : begin;
        spans.push({depth, begin: at, end: at + length, hue: hue % kSaysDuration, says: hue >= kSaysDuration, name});
      }
      out.push({label, rank, spans});
    };
    if (found.path.length) lane('critical path', '', found.path, 0, 4);
    for (const [label, ...lanes] of found.ranks) {
      out.push({header: label});
      for (const flat of lanes) lane(flat[0], label.split(':')[0], flat, 1, 5);
    }
    let y = kAxis;
    for (const row of out) {
      if (row.header && y > kAxis) y += kGap;
      row.y = y;
      y += row.header ? kHeader : kLane + 2;
    }
    height = y + 4;
    return out;
  };

  const text = (row, span) => {
    const name = data.names[span.name];
    return `${row.rank ? row.rank + ', ' : ''}${row.label}: ${name}${span.says ? '' : ': ' + time(span.end - span.begin)}`;
  };

  // Waits, pauses and what is missing are hatched: told apart without colour.
  const fillOf = (hue, colours) => {
    if (!kHatched.includes(hue)) return colours[hue];
    if (!patterns[hue]) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 6;
      const c = tile.getContext('2d');
      c.fillStyle = colours[hue];
      c.globalAlpha = .35;
      c.fillRect(0, 0, 6, 6);
      c.globalAlpha = 1;
      c.strokeStyle = colours[hue];
      c.lineWidth = 2;
      for (const d of [-6, 0, 6]) { c.beginPath(); c.moveTo(d - 1, 7); c.lineTo(d + 7, -1); c.stroke(); }
      patterns[hue] = context.createPattern(tile, 'repeat');
    }
    return patterns[hue];
  };

  const x = at => gutter + (width - gutter) * (at - view.from) / (view.to - view.from);
  const at = px => view.from + (px - gutter) / (width - gutter) * (view.to - view.from);

  const axis = (ink, muted, line) => {
    const about = (view.to - view.from) / Math.max(4, Math.floor((width - gutter) / 110));
    const power = 10 ** Math.floor(Math.log10(about));
    const every = [1, 2, 5, 10].map(f => f * power).find(f => f >= about);
    context.font = '12px ' + family;
    for (let t = Math.ceil(view.from / every) * every; t <= view.to; t += every) {
      context.fillStyle = line;
      context.fillRect(Math.round(x(t)), kAxis - 6, 1, height - kAxis);
      context.fillStyle = muted;
      const label = mark(t, every, view.to), wide = context.measureText(label).width;
      if (x(t) + wide < width) context.fillText(label, x(t) + 4, kAxis - 8);
    }
  };

  const draw = () => {
    width = canvas.clientWidth;
    gutter = width < 560 ? 74 : 120;
    const scale = window.devicePixelRatio || 1;
    canvas.style.height = height + 'px';
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    patterns = {};
    const [ink, muted, line, raised, panel] = ['text', 'muted', 'line', 'raised', 'panel'].map(colour);
    const colours = kHues.map(colour);
    axis(ink, muted, line);
    for (const row of rows) {
      if (row.header) {
        context.font = '600 13px ' + family;
        context.fillStyle = ink;
        context.fillText(row.header, 0, row.y + 16);
        continue;
      }
      context.fillStyle = raised;
      context.fillRect(gutter, row.y, width - gutter, kLane);
      context.font = '12px ' + family;
      context.fillStyle = muted;
      context.fillText(row.label, 0, row.y + 13, gutter - 6);
      for (const span of row.spans) {
        if (span.end < view.from || span.begin > view.to) continue;
        const left = Math.max(x(span.begin), gutter), wide = Math.max(Math.min(x(span.end), width) - left, .7);
        const inset = span.hue === 7 ? 0 : Math.min(2 * span.depth, 6);
        context.fillStyle = fillOf(span.hue, colours);
        context.fillRect(left, row.y + inset, wide, kLane - inset);
        if (wide > 3) {  // where one ends and the next begins
          context.fillStyle = panel;
          context.fillRect(left + wide - .6, row.y + inset, .6, kLane - inset);
        }
      }
    }
    if (selected) {
      const left = Math.max(x(selected.span.begin), gutter), right = Math.min(x(selected.span.end), width);
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(left - 1, selected.row.y - 1, Math.max(right - left, 1) + 2, kLane + 2);
    }
  };

  const show = (from, to) => {
    const all = step.length, length = Math.min(Math.max(to - from, Math.min(all, 1000)), all);
    const first = Math.min(Math.max(from, 0), all - length);
    view = {from: first, to: first + length};
    tip.hidden = true;
    draw();
  };
  const zoom = (factor, around = (view.from + view.to) / 2) =>
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const move = share => {
    const by = share * (view.to - view.from);
    show(view.from + by, view.to + by);
  };

  const choose = index => {
    step = data.steps[index];
    rows = rowsOf(step);
    selected = null;
    tip.hidden = true;
    document.querySelectorAll('[data-step]').forEach(b => b.setAttribute('aria-pressed', b.dataset.step === String(index)));
    show(0, step.length);
  };

  // The innermost span under the pointer; a finger may miss by some pixels.
  const spanAt = (px, py, slack) => {
    const row = rows.find(r => !r.header && py >= r.y && py < r.y + kLane + 2);
    if (!row || px < gutter) return null;
    let best = null;
    for (const span of row.spans) {
      if (x(span.begin) > px + slack || Math.max(x(span.end), x(span.begin) + 1) < px - slack) continue;
      if (!best || span.depth > best.depth || (span.depth === best.depth && span.end - span.begin <= best.end - best.begin))
        best = span;
    }
    return best && {row, span: best};
  };
  const point = (px, py, slack) => {
    const found = spanAt(px, py, slack);
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = text(found.row, found.span);
    tip.style.left = Math.max(0, Math.min(px + 12, width - tip.offsetWidth)) + 'px';
    tip.style.top = found.row.y + kLane + 8 + 'px';
  };

  const pointers = new Map();
  let travelled = 0;
  canvas.addEventListener('pointerdown', e => {
    pointers.set(e.pointerId, e.offsetX);
    travelled = 0;
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    const before = pointers.get(e.pointerId);
    if (before === undefined) return point(e.offsetX, e.offsetY, 2);
    travelled += Math.abs(e.offsetX - before);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== e.pointerId)[1];
      const now = Math.abs(e.offsetX - other);
      if (now > 8) zoom(Math.max(Math.abs(before - other), 8) / now, at((e.offsetX + other) / 2));
    } else if (travelled > 4) {
      tip.hidden = true;
      move((before - e.offsetX) / (width - gutter));
    }
    pointers.set(e.pointerId, e.offsetX);
  });
  const up = e => {
    if (pointers.delete(e.pointerId) && e.type === 'pointerup' && travelled <= 4) point(e.offsetX, e.offsetY, e.pointerType === 'touch' ? 10 : 2);
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => { if (!pointers.size) tip.hidden = true; });
  canvas.addEventListener('dblclick', e => zoom(.4, at(e.offsetX)));
  canvas.addEventListener('wheel', e => {
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY / 300), at(e.offsetX));
    else if (e.deltaX || e.shiftKey) move((e.deltaX || e.deltaY) / (width - gutter));
    else return;  // the page scrolls
    e.preventDefault();
  }, {passive: false});

  // Keys go from span to span, which are read out.
  const select = (row, span) => {
    selected = {row, span};
    if (span.end < view.from || span.begin > view.to) {
      const half = (view.to - view.from) / 2, middle = (span.begin + span.end) / 2;
      show(middle - half, middle + half);
    } else {
      draw();
    }
    said.textContent = text(row, span);
  };
  const walk = (by, byRow) => {
    const lanes = rows.filter(r => !r.header && r.spans.length);
    if (!lanes.length) return;
    let row = selected ? selected.row : lanes[0];
    const from = selected ? selected.span.begin : view.from;
    if (byRow) row = lanes[Math.min(Math.max(lanes.indexOf(row) + byRow, 0), lanes.length - 1)];
    let index = selected && !byRow ? row.spans.indexOf(selected.span) + by : row.spans.findIndex(s => s.end > from);
    index = Math.min(Math.max(index, 0), row.spans.length - 1);
    select(row, row.spans[index]);
  };
  const keys = {
    '+': () => zoom(.5), '=': () => zoom(.5), '-': () => zoom(2), '0': () => show(0, step.length),
    ArrowLeft: () => move(-.2), ArrowRight: () => move(.2), ArrowUp: () => walk(0, -1), ArrowDown: () => walk(0, 1),
    n: () => walk(1, 0), p: () => walk(-1, 0),
  };
  canvas.addEventListener('keydown', e => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    keys[e.key]();
    e.preventDefault();
  });

  document.querySelectorAll('[data-step]').forEach(b => b.addEventListener('click', () => choose(Number(b.dataset.step))));
  document.querySelectorAll('[data-zoom]').forEach(b => b.addEventListener('click', () => keys[{in: '+', out: '-', all: '0'}[b.dataset.zoom]]()));
  new ResizeObserver(() => { if (canvas.clientWidth !== width) draw(); }).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  // Paper is white, whatever the screen is.
  const print = on => { document.documentElement.classList.toggle('printing', on); draw(); };
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  choose(0);
})();
