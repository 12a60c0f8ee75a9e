"use strict";
// Search: every word must occur in an entry. The topic that a word stands for comes first, then titles that are the text
// or begin with it. A page comes before a heading, and an option last, unless hyphens were typed.
(() => {
  const MOST = 12;
  const form = document.querySelector("form");
  const field = document.getElementById("search");
  const results = document.getElementById("results");
  const status = document.getElementById("status");
  form.hidden = false;

  const rank = ([title, place, about], text, words) => {
    const name = title.toLowerCase();
    if (place === SYNONYMS[text] && name !== text) return 4.5;
    if (!words.every((word) => `${name} ${about.toLowerCase()}`.includes(word))) return 0;
    const isOption = name.startsWith("--") && !text.startsWith("-");
    const less = isOption ? 0.5 : place.includes("#") ? 0.2 : 0;
    if (name === text) return 4 - less;
    if (name.startsWith(text)) return 3 - less;
    return (words.every((word) => name.includes(word)) ? 2 : 1) - less;
  };

  const find = (typed) => {
    const text = typed.trim().toLowerCase();
    const words = text.split(/\s+/).filter(Boolean);
    if (text.length < 2) return [];
    return ENTRIES.map((entry) => [rank(entry, text, words), entry])
      .filter(([value]) => value > 0)
      .sort(([a], [b]) => b - a)
      .slice(0, MOST)
      .map(([, entry]) => entry);
  };

  const show = () => {
    const found = find(field.value);
    const isShort = field.value.trim().length < 2;
    results.replaceChildren(...found.map(([title, place, about]) => {
      const link = document.createElement("a");
      const context = document.createElement("span");
      link.href = place;
      link.textContent = title;
      context.textContent = about;
      link.append(context);
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
    results.hidden = found.length === 0;
    status.textContent = isShort ? "" : `${found.length || "no"} results`;
  };

  const hide = () => { results.hidden = true; };

  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  results.addEventListener("click", hide);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = results.querySelector("a");
    if (first && !results.hidden) first.click();
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) hide(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hide(); field.blur(); }
    if (event.key === "/" && !event.target.matches("input")) { event.preventDefault(); field.focus(); }
    if (["ArrowDown", "ArrowUp"].includes(event.key) && form.contains(event.target) && !results.hidden) {
      const stops = [field, ...results.querySelectorAll("a")];
      const next = stops[stops.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) next.focus();
      event.preventDefault();
    }
  });
})();
