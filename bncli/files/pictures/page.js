{
  // What is computed anew when the page is touched. Nothing here is needed to read it.
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";

  /** An element with attributes and children; text is text, never markup. */
  const make = (tag, attributes = {}, ...children) => {
    const element = ["svg", "rect", "circle"].includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };
  /** A name that is not endless. */
  const short = (name) => (name.length > 100 ? `${name.slice(0, 70)}…${name.slice(-20)}` : name);
  const named = (name) => make("bdi", {}, short(name));
  const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–");
  const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(3);
  const clipped = (share) => Math.min(Math.max(share, 0), 1);

  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  /** Whole numbers out of three letters each. */
  const wholes = (text) => text.match(/.../g).map((three) =>
    [...three].reduce((sum, letter) => 64 * sum + LETTERS.indexOf(letter), 0) - (1 << 17));

  // --- pictures of another class -----------------------------------------------------------------------------------

  /** How low and high each value's log-odds may be: twice the standard error of so many rows. */
  const bounds = (one, label) => one.rows && one.rows.map((rows, code) => {
    const scores = one.base.map((base, y) => base + one.values[y][code] / 1000);
    const k = scores.length, most = Math.max(...scores);
    const shares = scores.map((score) => Math.exp(((k - 1) / k) * (score - most)));
    const p = shares[label] / shares.reduce((a, b) => a + b);
    const error = 2 / Math.sqrt(Math.max(rows * p * (1 - p), 1e-9)), value = one.values[label][code] / 1000;
    return [value - error, value + error];
  });

  const place = (one, value) => one.inside + (1 - 2 * one.inside) * (value - one.low) / (one.high - one.low);

  const steps = (figure, one, label) => {
    const [left, top, wide, high] = one.frame;
    const ys = (values) => values.map((value) => top + high * (1 - clipped(place(one, value))));
    const xs = one.edges.map((edge) => (left + wide * edge).toFixed(1));
    const outline = (heights) => `M${xs[0]} ${heights[0].toFixed(1)}` +
      heights.map((y, i) => `V${y.toFixed(1)}H${xs[i + 1]}`).join("");
    figure.querySelector(".curve").setAttribute("d", outline(ys(one.values[label].map((value) => value / 1000))));
    const between = bounds(one, label);
    if (!between) return;
    const back = ys(between.map((pair) => pair[0]));
    let band = outline(ys(between.map((pair) => pair[1])));
    for (let i = back.length - 1; i >= 0; i--) band += `V${back[i].toFixed(1)}H${xs[i]}`;
    figure.querySelector(".band").setAttribute("d", band + "Z");
  };

  const bars = (figure, one, label) => {
    const [left, wide] = one.frame;
    const zero = place(one, 0), between = bounds(one, label);
    const rects = figure.querySelectorAll("rect.raise, rect.lower"), lines = figure.querySelectorAll(".bound");
    one.values[label].forEach((thousandths, code) => {
      const value = thousandths / 1000, share = place(one, value), rect = rects[code];
      rect.setAttribute("class", value < 0 ? "lower" : "raise");
      rect.setAttribute("x", left + wide * Math.min(zero, share));
      rect.setAttribute("width", Math.max(wide * Math.abs(share - zero), 0.5));
      rect.firstChild.textContent = `${rect.firstChild.textContent.replace(/: [^:]*$/, "")}: ${signed(value)}`;
      if (!between) return;
      const y = lines[code].getAttribute("d").match(/^M\S+ (\S+)H/)[1];
      const [low, high] = between[code].map((end) => (left + wide * clipped(place(one, end))).toFixed(1));
      lines[code].setAttribute("d", `M${low} ${y}H${high}`);
    });
  };

  const map = (figure, one, label) => {
    const svg = figure.querySelector("svg");
    svg.querySelectorAll("path").forEach((path) => path.remove());
    for (const [values, columns, left, top, wide, high] of one.layers) {
      const found = {};
      values[label].forEach((thousandths, cell) => {
        const level = Math.round((one.shades * thousandths) / 1000 / one.scale);
        if (!level) return;
        const x = left + (cell % columns) * wide, y = top + Math.floor(cell / columns) * high;
        const shade = (level > 0 ? "p" : "n") + Math.abs(level);
        found[shade] = (found[shade] || "") + `M${x.toFixed(1)} ${y.toFixed(1)}h${wide}v${high}h-${wide}z`;
      });
      for (const [shade, outline] of Object.entries(found)) {
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("class", shade);
        path.setAttribute("d", outline);
        svg.prepend(path);
      }
    }
  };

  const DRAW = { steps, bars, map };
  for (const one of Object.values(DATA.pictures)) {
    if (one.values) one.values = one.values.map(wholes);
    for (const layer of one.layers || []) layer[0] = layer[0].map(wholes);
  }
  for (const select of document.querySelectorAll("[data-switch]")) {
    const section = select.closest("section");
    select.addEventListener("change", () => {
      const label = Number(select.value);
      for (const group of section.querySelectorAll("[data-label]")) {
        const shown = Number(group.dataset.label) === label;
        if (group instanceof SVGElement) {
          if (shown) group.removeAttribute("display"); else group.setAttribute("display", "none");
        } else group.hidden = !shown;
      }
      for (const figure of section.querySelectorAll("figure")) {
        const one = DATA.pictures[figure.id];
        if (one) DRAW[one.kind](figure, one, label);
        const drawn = figure.querySelector("svg"), told = figure.querySelector("figcaption [data-label]:not([hidden])");
        if (told) drawn.setAttribute("aria-label", told.textContent);
      }
      section.dataset.chosen = label;
    });
  }

  // --- the navigation marks the section in view --------------------------------------------------------------------

  const sections = [...document.querySelectorAll("main > section")];
  const follow = () => {
    const inView = sections.filter((one) => one.getBoundingClientRect().top < innerHeight / 3).pop() || sections[0];
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${inView.id}`) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", follow, { passive: true });
  follow();

  // --- what a link leads to is opened ------------------------------------------------------------------------------

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") {
      for (let one = target; one; one = one.parentElement.closest("details")) one.open = true;
      target.querySelector("summary").focus();
    }
  };
  addEventListener("hashchange", open);
  open();

  // --- threshold and costs -----------------------------------------------------------------------------------------

  const thresholds = (panel, data) => {
    const { positives, negatives } = data, label = short(data.label), other = short(data.other);
    const slider = make("input", { type: "range", min: 0, max: data.t.length - 1, value: data.start, oninput: () => show() });
    const cost = (what, start) => make("input", { type: "number", min: 0, step: "any", value: start, "aria-label": what, oninput: () => show() });
    const missed = cost(`Cost of a missed ${label}`, data.costs[0]), alarm = cost(`Cost of a false positive, ${other} predicted as ${label}`, data.costs[1]);
    const value = make("output", { "aria-live": "polite" }), matrix = make("tbody"), rates = make("dl", { class: "duo" });
    const price = (i) => (Number(missed.value) * (positives - data.tp[i]) + Number(alarm.value) * data.fp[i]) / (positives + negatives);
    const show = () => {
      const i = Number(slider.value), from = Number(data.t[i].toPrecision(4)), tp = data.tp[i], fp = data.fp[i], all = positives + negatives;
      const fn = positives - tp, tn = negatives - fp, told = tp + fp;
      value.textContent = `${label} is predicted if its probability is at least ${from}`;
      slider.setAttribute("aria-valuetext", `${from}`);
      const count = (number) => `${Number(number.toPrecision(10)).toLocaleString("en")}`;
      const cell = (number, kind) => make("td", { class: kind }, count(number));
      matrix.replaceChildren(
        make("tr", {}, make("th", { scope: "row" }, `true ${label}`), cell(tp, "right"), cell(fn, "wrong")),
        make("tr", {}, make("th", { scope: "row" }, `true ${other}`), cell(fp, "wrong"), cell(tn, "right")));
      const figures = [
        ["Error rate", percent((fn + fp) / all)], ["Precision", percent(tp / told)], [`Predicted ${label}`, percent(told / all)],
        ["Recall", percent(tp / positives)], ["Cost per row", price(i).toPrecision(4)], ["F1", percent((2 * tp) / (2 * tp + fp + fn))],
      ];
      rates.replaceChildren(...figures.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", { class: "number" }, text))));
      mark("roc", fp / negatives, tp / positives);
      mark("precision-recall", tp / positives, told ? tp / told : 1);
      panel.dataset.figures = JSON.stringify({ threshold: data.t[i], tp, fp, fn, tn, cost: price(i) });
    };
    /** Moves the point of a curve; the frame is that of unit_curves. */
    const mark = (name, x, y) => {
      const svg = document.querySelector(`#picture-${name} svg`), [left, top, side, inside] = data.frame;
      if (!svg || !Number.isFinite(x + y)) return;
      const dot = svg.querySelector(".mark") || svg.appendChild(make("circle", { class: "mark", r: 6 }));
      const share = (value) => inside + (1 - 2 * inside) * value;
      dot.setAttribute("cx", left + side * share(x));
      dot.setAttribute("cy", top + side * (1 - share(y)));
    };
    const cheapest = () => {
      let best = 0;
      data.t.forEach((_, i) => { if (price(i) < price(best) - 1e-12) best = i; });
      slider.value = best;
      show();
    };
    panel.replaceChildren(
      make("h3", {}, panel.getAttribute("aria-label")),
      make("label", {}, "Threshold ", slider), value,
      make("table", { class: "matrix" }, make("caption", {}, "Decisions at this threshold"),
        make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, `predicted ${label}`), make("th", { scope: "col" }, `predicted ${other}`))), matrix),
      rates,
      make("div", { class: "fields" }, make("label", {}, `Cost of a missed ${label}`, missed), make("label", {}, "Cost of a false positive", alarm)),
      make("p", {}, make("button", { type: "button", onclick: cheapest }, "Set the threshold with the lowest cost")),
    );
    show();
  };

  // --- what if: one row, by hand -----------------------------------------------------------------------------------

  /** log-odds of every class against the others: of scores, S less their mean, times K / (K - 1). */
  const contrasts = (scores) => {
    const all = MODEL.labels.length === 2 ? [0, scores[0]] : scores, k = all.length;
    const mean = all.reduce((a, b) => a + b) / k;
    return all.map((score) => ((score - mean) * k) / (k - 1));
  };
  const probabilities = (codes) => {
    const totals = MODEL.labels.map(() => 0);
    let scores = [];
    for (const stage of STAGES) {
      scores = stage.anew ? stage.shift.slice() : scores.map((score, r) => score + stage.shift[r]);
      for (const table of stage.tables) entryOf(table, codes).forEach((number, r) => { scores[r] += number; });
      softmax(scores).forEach((share, label) => { totals[label] += stage.weight * share; });
    }
    return totals;
  };
  const oddsOf = (shares, label) => Math.log(shares[label]) -
    shares.reduce((sum, p, y) => (y === label ? sum : sum + Math.log(p)), 0) / (shares.length - 1);

  /** [what, log-odds] of the label: the effects of the row, or how the odds change where a value is unknown. */
  const contributions = (codes, label, data) => {
    if (data.effects) {
      return STAGES[0].tables.map((table, number) => {
        const what = table.axes.map(([p]) => MODEL.inputs[p].name).join(" & ");
        return [what, contrasts(entryOf(table, codes))[label], number];
      });
    }
    const whole = oddsOf(probabilities(codes), label);
    return data.inputs.map(({ name }) => {
      const p = MODEL.inputs.findIndex((one) => one.name === name);
      const without = codes.map((code, i) => (i === p ? MODEL.inputs[p].frequencies.length : code));
      return [name, whole - oddsOf(probabilities(without), label)];
    });
  };

  const bar = (share, kind) => make("svg", { "aria-hidden": "true", viewBox: "0 0 100 10", preserveAspectRatio: "none" },
    make("rect", { class: kind, width: 100 * Math.min(share, 1), height: 10 }));

  const whatIf = (panel, data) => {
    const fields = data.inputs.map((one) => {
      const id = { "aria-label": one.name, oninput: () => show() };
      let field;
      if (one.options) {
        field = make("select", id, ...one.options.map((option) => make("option", { value: option }, short(option))), make("option", { value: "", "data-missing": true }, "(missing)"));
        field.selectedIndex = one.value;
      } else field = make("input", { type: "number", step: "any", value: one.value, placeholder: "missing", ...id });
      return field;
    });
    const row = () => {
      const values = { ...data.others };
      data.inputs.forEach((one, i) => {
        const field = fields[i], gone = one.options ? field.selectedOptions[0].dataset.missing !== undefined : field.value === "";
        values[one.name] = gone ? null : one.options ? field.value : Number(field.value);
      });
      return values;
    };
    const heading = make("p", { role: "status" }), classes = make("div", { class: "results" }), reasons = make("div", { class: "results" });
    const about = make("p");
    const show = () => {
      const values = row(), found = predict_proba(values), shares = MODEL.labels.map((label) => found[label]);
      const best = shares.indexOf(Math.max(...shares)), told = short(MODEL.labels[best]);
      heading.textContent = `${told}: ${percent(shares[best])}`;
      const order = shares.map((_, y) => y).sort((a, b) => shares[b] - shares[a]).slice(0, 12);
      classes.replaceChildren(...order.flatMap((y) => [named(MODEL.labels[y]), bar(shares[y], "raise"), make("span", { class: "number" }, percent(shares[y]))]));
      const codes = MODEL.inputs.map((one) => codeOf(one, values));
      const all = contributions(codes, best, data);
      const most = all.slice().sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 15);
      const largest = Math.max(...most.map(([, number]) => Math.abs(number)), 1e-12);
      about.textContent = data.effects
        ? `Contributions to the log-odds of ${told}. With the base of ${signed(contrasts(STAGES[0].shift)[best])} they add up to ${signed(oddsOf(shares, best))}.`
        : `Change of the log-odds of ${told} by each value, compared with a missing value.`;
      reasons.replaceChildren(...most.flatMap(([name, number]) => [named(name), bar(Math.abs(number) / largest, number < 0 ? "lower" : "raise"), make("span", { class: "number" }, signed(number))]));
      panel.dataset.probabilities = JSON.stringify(shares);
      panel.dataset.contributions = JSON.stringify(all.map(([name, number]) => [name, number]));
    };
    panel.replaceChildren(
      make("h3", {}, panel.getAttribute("aria-label")),
      make("div", { class: "form" },
        make("div", { class: "fields" }, ...data.inputs.map((one, i) => make("label", {}, named(one.name), fields[i]))),
        make("div", { class: "answer" }, heading, classes, about, reasons)),
    );
    show();
  };

  const PANELS = { thresholds, "what-if": whatIf };
  for (const [kind, data] of Object.entries(DATA.panels)) PANELS[kind](document.getElementById(`panel-${kind}`), data);
  document.documentElement.dataset.ready = "true";
}
