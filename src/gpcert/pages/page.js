"use strict";
// Tables that sort, filter, open details and become CSV; a slider over the radius; values where one points.
// All text was escaped when the page was written. The rows lie in `noscript`, one to a line, which is plain text
// to a browser that runs scripts: only the lines that are looked at become elements.

const PAGE = 200;
const make = (name, more = {}, ...children) => {
  const made = Object.assign(document.createElement(name), more);
  made.append(...children);
  return made;
};
const entities = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const plain = (text) => (text.includes("&") ? text.replace(/&[#\w]+;/g, (found) => entities[found] ?? found) : text);
const inside = (cell) => (cell.endsWith("</a>") ? cell.slice(0, -4) : cell);
const cellsOf = (line) => line.split(/<\/t[hd]>/).slice(0, -1).map(inside).map((cell) => plain(cell.slice(cell.lastIndexOf(">") + 1)));
const number = (text) => (/^-?\d/.test(text) ? Number.parseFloat(text) : Number.NaN);

function dataTable(root) {
  const source = root.querySelector("noscript.lines").textContent;
  const start = source.indexOf("<tbody>\n") + 8;
  const lines = source.slice(start, source.indexOf("\n</tbody>", start)).split("\n");
  const detail = root.querySelector("noscript.more")?.textContent.split("\n").slice(1, -1);
  const noun = root.dataset.noun; // rows, images, rows that differ
  const frame = make("div", { className: "scroll", tabIndex: 0 });
  frame.innerHTML = source.slice(source.indexOf("<table>"), start) + "</tbody></table>";
  const table = frame.firstChild;
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const names = headings.map((heading) => heading.textContent);
  const isNumber = headings.map((heading) => heading.dataset.kind === "number");
  let values = null; // the cells of every line as text, once they are needed
  const valuesOf = () => (values ??= lines.map(cellsOf));
  let kept = lines.map((_, k) => k);
  let shown = PAGE;
  let sorted = { column: -1, up: true };

  const search = make("input", { type: "search", className: "search", placeholder: "search all columns", ariaLabel: "search" });
  const count = make("span", { className: "count soft", role: "status" });
  const trouble = make("span", { className: "trouble", role: "alert" });
  const csv = make("button", { type: "button", className: "csv" }, "save as CSV");
  const more = make("button", { type: "button", className: "more" }, "show more");
  const hint = make("p", { className: "hint soft" }, "The table is wider than the page: it scrolls sideways, to “" + names.at(-1) + "”.");
  root.append(make("div", { className: "tools" }, search, count, trouble, csv), hint, frame, more);

  const filters = table.tHead.appendChild(make("tr", { className: "filters" }));
  const tests = headings.map((heading, column) => {
    const cell = filters.appendChild(make("th"));
    if (heading.dataset.kind === "choice") {
      const choices = JSON.parse(heading.dataset.choices);
      const select = make("select", { ariaLabel: "only " + names[column], onchange: update }, new Option("all", ""));
      select.append(...choices.map((choice) => new Option(choice === "" ? "(none)" : choice, "=" + choice)));
      cell.append(select);
      return () => (select.value === "" ? null : (row) => "=" + row[column] === select.value);
    }
    const placeholder = isNumber[column] ? "> 0.1" : "contains";
    const input = make("input", { placeholder, ariaLabel: "filter " + names[column], oninput: update });
    cell.append(input);
    return () => (isNumber[column] ? numeric(input, column) : containing(input, column));
  });

  function containing(input, column) {
    const wanted = input.value.trim().toLowerCase();
    return wanted === "" ? null : (row) => row[column].toLowerCase().includes(wanted);
  }

  function numeric(input, column) {
    const text = input.value.trim();
    const found = /^(<=|>=|<|>|=|≤|≥)?\s*(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)$/i.exec(text);
    const words = /^[a-z][a-z ]*$/i.test(text); // "none found"
    input.ariaInvalid = text === "" || found || words ? null : "true";
    if (text === "") return null;
    if (words) return (row) => row[column].includes(text);
    if (!found) {
      const comma = /\d,\d/.test(text) ? ` Write a decimal point: ${text.replace(/(\d),(\d)/g, "$1.$2")}` : " Write for example > 0.1 or 0.25";
      trouble.append(make("span", {}, `“${text}” under “${names[column]}” is not understood, and filters nothing.${comma} `));
      return null;
    }
    const limit = Number(found[2]);
    const holds = {
      "<": (own) => own < limit, "<=": (own) => own <= limit, "≤": (own) => own <= limit,
      ">": (own) => own > limit, ">=": (own) => own >= limit, "≥": (own) => own >= limit,
    }[found[1]] ?? ((own) => own === limit);
    return (row) => holds(number(row[column]));
  }

  headings.forEach((heading, column) => {
    const button = make("button", { type: "button" }, names[column]);
    heading.replaceChildren(button, make("span", { className: "paper" }, names[column])); // no button repeats on paper
    button.onclick = () => {
      sorted = { column, up: sorted.column === column ? !sorted.up : true };
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.ariaSort = sorted.up ? "ascending" : "descending";
      update();
    };
  });

  const collator = new Intl.Collator(undefined, { numeric: true });
  function order(rows) {
    const { column, up } = sorted;
    const side = up ? 1 : -1;
    const keys = isNumber[column] ? rows.map((row) => number(row[column])) : rows.map((row) => row[column]);
    return (a, b) => {
      const [p, q] = [keys[a], keys[b]];
      if (!isNumber[column]) return side * collator.compare(p, q) || a - b;
      // Rows without a number come last, whichever way.
      if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q) || a - b;
      return side * (p - q) || a - b;
    };
  }

  function update() {
    shown = PAGE;
    trouble.replaceChildren();
    const active = tests.map((test) => test()).filter(Boolean);
    const wanted = search.value.trim().toLowerCase();
    if (wanted) active.push((row) => row.some((cell) => cell.toLowerCase().includes(wanted)));
    kept = lines.map((_, k) => k);
    if (active.length) kept = kept.filter((k) => active.every((test) => test(valuesOf()[k])));
    if (sorted.column >= 0) kept.sort(order(valuesOf()));
    draw();
  }

  function draw() {
    const some = kept.slice(0, shown);
    body.innerHTML = some.map((k) => lines[k]).join("");
    some.forEach((k, i) => {
      const name = body.rows[i].cells[0];
      if (!detail) return;
      const button = make("button", { type: "button", ariaExpanded: "false" }, name.textContent);
      button.dataset.k = k;
      name.replaceChildren(button);
    });
    count.textContent = `${kept.length} of ${lines.length} ${noun}` + (kept.length > shown ? `, the first ${shown} shown` : "");
    more.hidden = kept.length <= shown;
    more.textContent = "show more";
    wide();
  }

  function wide() {
    hint.hidden = frame.scrollWidth <= frame.clientWidth + 1;
  }

  function open(button) {
    const row = button.closest("tr");
    if (button.ariaExpanded === "true") {
      row.nextElementSibling.remove();
      button.ariaExpanded = "false";
      return;
    }
    const inside = make("div");
    inside.innerHTML = detail[button.dataset.k].replace(/^<details><summary>[^<]*<\/summary>/, "").replace(/<\/details>$/, "");
    inside.style.maxWidth = `${frame.clientWidth - 24}px`; // as wide as what is seen of a table that scrolls
    row.after(make("tr", { className: "detail" }, make("td", { colSpan: headings.length }, inside)));
    button.ariaExpanded = "true";
  }

  function save() {
    // A spreadsheet must not take a name for a formula.
    const cell = (text) => `"${(/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" : "") + text.replaceAll('"', '""')}"`;
    const rows = [names, ...kept.map((k) => valuesOf()[k])].map((row) => row.map(cell).join(","));
    const file = new Blob(["\ufeff" + rows.join("\r\n") + "\r\n"], { type: "text/csv" });
    const link = make("a", { href: URL.createObjectURL(file), download: "rows.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  search.oninput = update;
  csv.onclick = save;
  more.onclick = () => {
    if (kept.length > shown) {
      shown += PAGE;
      draw();
    } else update();
  };
  body.onclick = (event) => { const button = event.target.closest("button"); if (button) open(button); };
  addEventListener("resize", wide);
  update();
  return (k) => { // show one row, opened
    search.value = "";
    kept = [k];
    draw();
    open(body.querySelector("button"));
    root.scrollIntoView();
    count.textContent = `1 of ${lines.length} ${noun}`;
    more.textContent = `show all ${noun}`;
    more.hidden = false;
  };
}

// The rows at another radius: recounted and recoloured.
function slider(root, show) {
  const data = JSON.parse(root.dataset.rows);
  const safe = data.safe.map((radius) => radius ?? Infinity);
  const unsafe = data.unsafe.map((radius) => radius ?? Infinity);
  const n = safe.length;
  const marks = [...root.querySelectorAll(".mark")];
  const looks = safe.map((_, k) => (data.right.length && !data.right[k] ? "mark wrong " : "mark "));
  const readout = root.querySelector(".readout");
  const percent = (k, of) => {
    const rest = (1000 * k) % of, down = (1000 * k - rest) / of;  // to the nearest, of two the even one
    const near = down + Number(2 * rest > of || (2 * rest === of && down % 2 === 1));
    const tenths = Math.min(Math.max(near, Number(k > 0)), 1000 - Number(k < of));
    return `${Math.floor(tenths / 10)}.${tenths % 10} %`;
  };
  const state = (k, radius) => (safe[k] >= radius ? "safe" : unsafe[k] <= radius ? "unsafe" : "unknown");

  function move(stop) {
    const radius = data.stops[stop];
    const states = safe.map((_, k) => state(k, radius));
    const many = (name) => states.filter((each) => each === name).length;
    let told = `Radius ${data.told[stop]}: ${many("safe")} of ${n} ${data.noun} proved safe (${percent(many("safe"), n)}), ` +
      `${many("unsafe")} ${data.lost}, ${many("unknown")} not decided`;
    if (data.right.length) {
      const held = (k) => data.right[k] && states[k] === "safe";
      const right = states.filter((_, k) => held(k)).length;
      told += `; right and proved safe: ${right} of ${n} (${percent(right, n)})`;
      const by = data.classes.map((name, c) => {
        const own = data.truth.map((each, k) => (each === c ? k : -1)).filter((k) => k >= 0);
        return own.length ? `“${name}” ${own.filter(held).length} of ${own.length}` : "";
      }).filter(Boolean);
      if (by.length > 1 && by.length <= 12) told += `, by class: ${by.join(", ")}`;
    }
    readout.textContent = told + ".";
    marks.forEach((mark) => mark.setAttribute("class", looks[mark.dataset.k] + states[mark.dataset.k]));
  }

  marks.forEach((mark) => { mark.onclick = () => show?.(Number(mark.dataset.k)); });
  if (data.stops.length > 1) {
    const input = make("input", { type: "range", min: 0, max: data.stops.length - 1, value: data.start, ariaLabel: "radius" });
    const value = make("output", {}, data.told[data.start]);
    input.oninput = () => { value.textContent = data.told[input.value]; move(Number(input.value)); };
    readout.before(make("label", { className: "range" }, "radius ", input, value));
  }
  move(data.start);
}

// What curves say where one points.
function pointing(plot) {
  const { ends: [left, right, low, high, width], curves } = JSON.parse(plot.dataset.told);
  const tip = make("div", { className: "tip soft", hidden: true });
  plot.after(tip);
  plot.onpointermove = (event) => {
    const box = plot.getBoundingClientRect();
    const at = low + ((event.clientX - box.left) / box.width * width - left) / (right - left) * (high - low);
    const x = Math.abs(at - high) < (high - low) / 100 ? high : at; // the end itself cannot be hit otherwise
    const place = (xs, told) => xs.findIndex((end) => x <= end) + (told.length > xs.length && xs.includes(x) ? 1 : 0);
    const found = curves.map(({ name, xs, told }) => [name, told[place(xs, told)]]).filter(([, said]) => said);
    tip.hidden = x < low || !found.length;
    tip.textContent = `radius ${x.toPrecision(3)}: ` + found.map(([name, said]) => `${name} ${said}`).join("; ");
  };
  plot.onpointerleave = () => { tip.hidden = true; };
}

const shows = new Map();
document.querySelectorAll(".data").forEach((root) => shows.set(root, dataTable(root)));
document.querySelectorAll(".slide").forEach((root) => {
  const follows = (other) => root.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  const table = [...shows.keys()].find((other) => other.querySelector("noscript.more") && follows(other));
  slider(root, shows.get(table));
});
document.querySelectorAll("[data-told]").forEach(pointing);
// Paper has no clicks: what is folded away is printed, and folded again.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("main details:not([open])")].filter((each) => !each.closest(".settings, .data, .long"));
  opened.forEach((each) => { each.open = true; });
});
addEventListener("afterprint", () => opened.forEach((each) => { each.open = false; }));
