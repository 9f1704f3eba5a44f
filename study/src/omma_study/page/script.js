"use strict";
(() => {
  const models = JSON.parse(document.getElementById("models").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "6 3", "2 2.5"];
  const LEARNING = /*learning*/, FIXED = /*fixed*/; // how many colours there are of either

  // Elements, with attributes and children.
  const make = (name, attributes = {}, ...children) => {
    const drawn = ["svg", "path", "line", "text", "circle", "g", "rect", "polyline"];
    const element = drawn.includes(name)
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };
  const tip = make("div", { class: "tip", role: "status" });
  document.body.append(tip);
  const showTip = (event, ...children) => {
    tip.replaceChildren(...children);
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 14 + box.width > innerWidth
      ? event.clientX - 14 - box.width : event.clientX + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.min(event.clientY + 12, innerHeight - box.height - 4)}px`;
  };
  const hideTip = () => { tip.style.display = "none"; };
  const row = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));

  // A policy and its variant that learns from estimates share a colour, and differ by dashes.
  const looks = (model) => {
    const found = {};
    for (const [name, policy] of Object.entries(model.policies)) {
      const [kind, many] = policy.fixed ? ["g", FIXED] : ["c", LEARNING];
      const again = Math.floor(policy.color / many);
      const dash = DASHES[(policy.dash + again) % DASHES.length];
      found[name] = { colour: `var(--${kind}${policy.color % many})`, dash };
    }
    return found;
  };
  const swatch = (look) => make("svg", { width: 22, height: 8, viewBox: "0 0 22 8",
    style: "width:22px;flex:none" }, make("line", { x1: 0, x2: 22, y1: 4, y2: 4,
    stroke: look.colour, "stroke-width": 2.2, "stroke-dasharray": look.dash }));

  const ticks = (low, high, wanted) => {
    const rough = (high - low || 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const found = [];
    for (let at = Math.ceil(low / step); at * step <= high + 1e-9; at += 1) found.push(at * step);
    return found.map((value) => Number(value.toPrecision(12)));
  };
  const short = (value) => {
    if (value >= 1e6) return `${value / 1e6}M`;
    if (value >= 1e4) return `${value / 1e3}k`;
    return `${value}`;
  };
  const plain = (value) => (value > 0 && value < 1e-3 ? value.toExponential() : String(value));
  const percent = (value) => (value === null ? "–" : value.toFixed(2));

  // A frame with axes; returns the scales and the group to draw on.
  const frame = ({ xs, ys, xTicks, yTicks, xLabel, yLabel, xScale, height = 300 }) => {
    const width = Math.min(540, innerWidth - 64), left = 54, right = 12, above = 10, below = 40;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${yLabel} against ${xLabel}` });
    const along = xScale ?? ((x) => (x - xs[0]) / (xs[1] - xs[0] || 1));
    const x = (value) => left + along(value) * (width - left - right);
    const y = (value) => above + (1 - (value - ys[0]) / (ys[1] - ys[0] || 1))
      * (height - above - below);
    for (const value of yTicks ?? ticks(ys[0], ys[1], 5)) {
      svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: y(value),
        y2: y(value) }), make("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" },
        `${value}`));
    }
    for (const [value, text] of xTicks) {
      svg.append(make("text", { x: x(value), y: height - below + 16, "text-anchor": "middle" },
        text));
    }
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 6,
      "text-anchor": "middle" }, xLabel), make("text", { x: 10, y: (height - below) / 2,
      transform: `rotate(-90 10 ${(height - below) / 2})`, "text-anchor": "middle" }, yLabel));
    return { svg, x, y, width, height, left, right, above, below };
  };
  const span = (values, pad = 0.06) => {
    const known = values.filter((value) => value !== null);
    const low = Math.min(...known), high = Math.max(...known);
    const room = (high - low || 1) * pad;
    return [Math.max(low - room, low >= 0 ? 0 : low - room), high + room];
  };
  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${
    y.toFixed(1)}`).join("");
  const fromPointer = (event, svg, width) => {
    const box = svg.getBoundingClientRect();
    return (event.clientX - box.left) / box.width * width;
  };
  const nearest = (values, wanted) => values.reduce((best, value, i) =>
    (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? i : best), 0);

  const legend = (model, names, hidden, redraw) => {
    const look = looks(model);
    return make("div", { class: "legend" }, ...names.map((name) => make("button", {
      type: "button", "aria-pressed": String(!hidden.has(name)),
      onclick: () => {
        if (hidden.has(name)) hidden.delete(name); else hidden.add(name);
        redraw();
      } }, swatch(look[name]), model.policies[name].title)));
  };
  const chooser = (label, options, chosen, change) => {
    const select = make("select", { onchange: (event) => change(event.target.value) },
      ...Object.entries(options).map(([value, text]) => make("option", { value,
        selected: value === chosen ? "" : null }, text)));
    return make("label", {}, `${label} `, select);
  };

  // The metric so far.
  const drawRunning = (model, column, hidden) => {
    const curves = Object.entries(model.running[column]).filter(([name]) => !hidden.has(name));
    if (!curves.length) return make("p", {}, "Nothing is chosen.");
    const rows = curves[0][1].rows, look = looks(model);
    // The first rows swing widely: they do not stretch the scale.
    const from = Math.min(3, rows.length - 1);
    const ys = span(curves.flatMap(([, curve]) => curve.mean.slice(from)));
    const xs = [0, rows[rows.length - 1]];
    const f = frame({ xs, ys, xTicks: ticks(...xs, 5).map((t) => [t, short(t)]),
      xLabel: "rows so far", yLabel: `${model.columns[column]} [%]` });
    const clamp = (value) => f.y(Math.min(Math.max(value, ys[0]), ys[1]));
    for (const [name, { rows: at, mean, std }] of curves) {
      const known = at.map((_, i) => i).filter((i) => mean[i] !== null);
      if (known.every((i) => std[i] !== null)) {
        const upper = known.map((i) => [f.x(at[i]), clamp(mean[i] + std[i])]);
        const lower = known.map((i) => [f.x(at[i]), clamp(mean[i] - std[i])]).reverse();
        f.svg.append(make("path", { d: `${path([...upper, ...lower])}Z`,
          fill: look[name].colour, opacity: 0.14 }));
      }
      f.svg.append(make("path", { d: path(known.map((i) => [f.x(at[i]), clamp(mean[i])])),
        fill: "none", stroke: look[name].colour, "stroke-width": 1.8,
        "stroke-dasharray": look[name].dash }));
    }
    const cross = make("line", { class: "cross", y1: f.above, y2: f.height - f.below,
      visibility: "hidden" });
    f.svg.append(cross);
    f.svg.addEventListener("pointermove", (event) => {
      const i = nearest(rows.map(f.x), fromPointer(event, f.svg, f.width));
      cross.setAttribute("x1", f.x(rows[i]));
      cross.setAttribute("x2", f.x(rows[i]));
      cross.setAttribute("visibility", "visible");
      const order = [...curves].sort((a, b) => (b[1].mean[i] ?? -1) - (a[1].mean[i] ?? -1));
      showTip(event, make("b", {}, `${rows[i].toLocaleString("en")} rows`), make("table", {},
        ...order.map(([name, curve]) => row(swatch(look[name]), model.policies[name].title,
          percent(curve.mean[i])))));
    });
    f.svg.addEventListener("pointerleave", () => {
      cross.setAttribute("visibility", "hidden");
      hideTip();
    });
    return f.svg;
  };

  // What each λ is worth. Zero has a place of its own, left of the others.
  const drawPriors = (model, column, hidden) => {
    const curves = Object.entries(model.priors[column]).filter(([name]) => !hidden.has(name));
    if (!curves.length) return make("p", {}, "Nothing is chosen.");
    const look = looks(model);
    const priors = [...new Set(Object.values(model.priors[column]).flat().map((one) => one.prior)
      .filter((prior) => prior !== null))].sort((a, b) => a - b);
    if (!priors.length) return make("p", {}, "No policy here has a prior.");
    const place = (prior) => (priors.length > 1
      ? 0.04 + 0.92 * priors.indexOf(prior) / (priors.length - 1) : 0.5);
    const ys = span(curves.flatMap(([, list]) => list.map((one) => one.mean)));
    const f = frame({ ys, xScale: place, xTicks: priors.map((p) => [p, plain(p)]),
      xLabel: "prior λ", yLabel: `${model.columns[column]} [%]` });
    for (const [name, list] of curves) {
      const style = { fill: "none", stroke: look[name].colour, "stroke-width": 1.8,
        "stroke-dasharray": look[name].dash };
      const told = (one) => (event) => showTip(event, make("b", {}, model.policies[name].title),
        make("div", {}, `${one.prior === null ? "no prior" : `λ = ${plain(one.prior)}`}: ${
          percent(one.mean)}${one.std === null ? "" : ` ± ${percent(one.std)}`}`));
      if (list[0].prior === null) {
        const y = f.y(list[0].mean);
        f.svg.append(make("line", { ...style, x1: f.left, x2: f.width - f.right, y1: y, y2: y,
          onpointermove: told(list[0]), onpointerleave: hideTip }));
        continue;
      }
      const ordered = [...list].sort((a, b) => a.prior - b.prior);
      f.svg.append(make("path", { ...style,
        d: path(ordered.map((one) => [f.x(one.prior), f.y(one.mean)])) }));
      for (const one of ordered) {
        f.svg.append(make("circle", { cx: f.x(one.prior), cy: f.y(one.mean), r: 4,
          fill: look[name].colour, onpointermove: told(one), onpointerleave: hideTip }));
      }
    }
    return f.svg;
  };

  // Which labels gained: each against its frequency.
  const drawLabels = (model, column, first, second) => {
    const { names, rates, values } = model.labels;
    const base = values[column][first], other = values[column][second];
    const gains = other.map((value, j) => value - base[j]);
    const positive = rates.filter((rate) => rate > 0);
    const low = Math.log10(Math.min(...positive)), high = Math.log10(Math.max(...positive));
    const xTicks = [];
    for (let power = Math.ceil(low); power <= Math.floor(high); power += 1) {
      xTicks.push([10 ** power, `${Number((100 * 10 ** power).toPrecision(3))} %`]);
    }
    if (xTicks.length < 2) {
      xTicks.length = 0;
      for (const rate of [10 ** low, 10 ** high]) {
        xTicks.push([rate, `${Number((100 * rate).toPrecision(2))} %`]);
      }
    }
    const reach = Math.max(1, ...gains.map(Math.abs)) * 1.06;
    const f = frame({ ys: [-reach, reach], xTicks, height: 280, xLabel: "how often the label occurs",
      yLabel: "gain [points]",
      xScale: (rate) => 0.02 + 0.96 * (Math.log10(rate) - low) / (high - low || 1) });
    f.svg.append(make("line", { x1: f.left, x2: f.width - f.right, y1: f.y(0), y2: f.y(0),
      stroke: "var(--ink)" }));
    gains.forEach((gain, j) => {
      if (rates[j] <= 0) return;
      f.svg.append(make("circle", { cx: f.x(rates[j]), cy: f.y(gain), r: 3.2, opacity: 0.7,
        fill: gain >= 0 ? "var(--c2)" : "var(--c1)", onpointerleave: hideTip,
        onpointermove: (event) => showTip(event, make("b", {}, names[j]), make("div", {},
          `${percent(base[j])} → ${percent(other[j])} (${gain >= 0 ? "+" : "−"}${
            Math.abs(gain).toFixed(2)})`), make("div", {},
          `in ${Number((100 * rates[j]).toPrecision(3))} % of the rows`)) }));
    });
    const order = gains.map((_, j) => j).sort((a, b) => gains[b] - gains[a]);
    const list = (head, ids) => (ids.length ? make("div", {}, make("h4", {}, head), make("table",
      {}, ...ids.map((j) => row(names[j], percent(base[j]), "→", percent(other[j]))))) : "");
    const gained = order.filter((j) => gains[j] > 0), lost = order.filter((j) => gains[j] < 0);
    const still = gains.length - gained.length - lost.length;
    return make("div", { class: "beside" }, f.svg, make("div", {}, make("p", { class: "notes" },
      `${gained.length} of ${gains.length} labels gained, ${lost.length} lost, ${
        still} did not change.`), list("Gained most", gained.slice(0, 8)),
    list("Lost most", lost.slice(-8).reverse())));
  };

  // A view: its tools, its drawing, its legend; all of it is drawn anew at each change.
  const view = (title, wide, draw) => {
    const body = make("div", { class: wide ? "view wide" : "view" });
    const redraw = () => {
      hideTip();
      body.replaceChildren(make("h3", {}, title), ...draw(redraw));
    };
    redraw();
    return body;
  };
  const views = (model) => {
    const columns = Object.fromEntries(Object.entries(model.columns)
      .filter(([name]) => model.running[name]));
    const first = Object.keys(columns)[0];
    if (!first) return [];
    const state = { running: first, priors: first, labels: first, hidden: new Set() };
    const curves = (kind, data, draw) => (redraw) => [
      make("div", { class: "tools" }, chooser("metric", columns, state[kind], (value) => {
        state[kind] = value;
        redraw();
      })), draw(model, state[kind], state.hidden),
      legend(model, Object.keys(data[state[kind]]), state.hidden, redraw)];
    const found = [view("Running performance", false, curves("running", model.running,
      drawRunning))];
    if (Object.values(model.priors).some((one) => Object.values(one).flat()
      .some((entry) => entry.prior !== null))) {
      found.push(view("What the prior does", false, curves("priors", model.priors, drawPriors)));
    }
    if (model.labels) found.push(view("Which labels gained", true, labelsView(model, columns,
      state)));
    return found;
  };
  const labelsView = (model, columns, state) => (redraw) => {
    const titles = Object.fromEntries(Object.keys(model.labels.values[state.labels])
      .map((name) => [name, model.policies[name].title]));
    const names = Object.keys(titles);
    const pick = (wanted, other) => (names.includes(wanted) ? wanted : other);
    state.from = pick(state.from, names[0]);
    state.to = pick(state.to, pick("omma", names[names.length - 1]));
    const set = (key) => (value) => {
      state[key] = value;
      redraw();
    };
    return [make("div", { class: "tools" }, chooser("metric", columns, state.labels,
      set("labels")), chooser("from", titles, state.from, set("from")), chooser("to", titles,
      state.to, set("to")), make("span", {}, `each label by its ${
      model.labels.measured[state.labels]}`)),
    drawLabels(model, state.labels, state.from, state.to)];
  };

  // Views are drawn when they come near the window: a study has many.
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      const model = models.find((one) => one.id === entry.target.id);
      entry.target.querySelector(".views").replaceChildren(...views(model));
    }
  }, { rootMargin: "600px" });
  const sections = document.querySelectorAll("section");
  const watch = () => { for (const section of sections) observer.observe(section); };
  watch();
  let before = innerWidth;  // a phone's bars come and go: only another width draws anew
  addEventListener("resize", () => {
    if (innerWidth !== before) watch();
    before = innerWidth;
  });
  document.getElementById("where").addEventListener("change", (event) => {
    document.getElementById(event.target.value).scrollIntoView();
  });
})();
