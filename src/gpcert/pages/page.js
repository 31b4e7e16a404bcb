"use strict";
// The table of points: sorts by a click on a heading, filters by the boxes under it, opens a row's details.
// All text was escaped when the page was written; this script only moves, hides and clones what is there.
(() => {
  const table = document.querySelector("#points table");
  if (!table) return;
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  const PAGE = 200;
  let shown = PAGE;
  let sorted = { column: -1, up: true };

  const value = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const isNumber = headings.map((heading) => heading.dataset.kind === "number");

  const filters = document.createElement("tr");
  filters.className = "filters";
  const tests = headings.map((heading, column) => {
    const cell = filters.appendChild(document.createElement("th"));
    if (heading.dataset.kind === "choice") {
      const select = cell.appendChild(document.createElement("select"));
      const choices = [...new Set(rows.map((row) => value(row, column)))].sort();
      select.append(new Option("all", ""), ...choices.map((choice) => new Option(choice, "=" + choice)));
      select.setAttribute("aria-label", "only " + heading.textContent);
      select.addEventListener("change", update);
      return (row) => select.value === "" || "=" + value(row, column) === select.value;
    }
    const input = cell.appendChild(document.createElement("input"));
    input.placeholder = isNumber[column] ? "> 0.1" : "contains";
    input.setAttribute("aria-label", "filter " + heading.textContent);
    input.addEventListener("input", update);
    return isNumber[column] ? numeric(input, column) : (row) => contains(value(row, column), input.value);
  });
  table.tHead.append(filters);

  function numeric(input, column) {
    return (row) => {
      const found = /^\s*(<=|>=|<|>|=)?\s*(-?[\d.]+(?:e-?\d+)?)\s*$/i.exec(input.value);
      if (!found) return true;
      const own = Number.parseFloat(value(row, column));
      const limit = Number(found[2]);
      switch (found[1]) {
        case "<": return own < limit;
        case "<=": return own <= limit;
        case ">": return own > limit;
        case ">=": return own >= limit;
        default: return own === limit;
      }
    };
  }

  function contains(text, wanted) {
    return text.toLowerCase().includes(wanted.trim().toLowerCase());
  }

  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      sorted = { column, up: sorted.column === column ? !sorted.up : true };
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      update();
    });
  });

  function compare(first, second) {
    const [a, b] = [value(first, sorted.column), value(second, sorted.column)];
    if (!isNumber[sorted.column]) return a.localeCompare(b, undefined, { numeric: true });
    const [p, q] = [Number.parseFloat(a), Number.parseFloat(b)];
    // Rows without a number come last, whichever way.
    if (Number.isNaN(p) || Number.isNaN(q)) return (Number.isNaN(p) - Number.isNaN(q)) * (sorted.up ? 1 : -1);
    return p - q;
  }

  const search = document.querySelector("#search");
  const count = document.querySelector("#count");
  const more = document.querySelector("#more");
  search.addEventListener("input", update);
  more.addEventListener("click", () => { shown += PAGE; draw(); });

  let kept = rows;
  function update() {
    shown = PAGE;
    kept = rows.filter((row) => contains(row.textContent, search.value) && tests.every((test) => test(row)));
    if (sorted.column >= 0) {
      kept.sort(compare);
      if (!sorted.up) kept.reverse();
    }
    draw();
  }

  function draw() {
    body.replaceChildren(...kept.slice(0, shown));
    body.querySelectorAll("button[aria-expanded=true]").forEach((button) => button.setAttribute("aria-expanded", "false"));
    count.textContent = `${kept.length} of ${rows.length} points` + (kept.length > shown ? `, the first ${shown} shown` : "");
    more.hidden = kept.length <= shown;
  }

  body.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const row = button.closest("tr");
    if (button.getAttribute("aria-expanded") === "true") {
      row.nextElementSibling.remove();
      button.setAttribute("aria-expanded", "false");
      return;
    }
    const detail = document.createElement("tr");
    detail.className = "detail";
    const cell = detail.appendChild(document.createElement("td"));
    cell.colSpan = headings.length;
    cell.append(document.getElementById(button.dataset.detail).content.cloneNode(true));
    row.after(detail);
    button.setAttribute("aria-expanded", "true");
  });

  update();
})();
