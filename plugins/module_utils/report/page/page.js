"use strict";
// Draws the document of a run. All texts of others are inserted as text nodes and attributes, never as markup.
const KINDS = {
  good: ["installed", "known", "ready", "preparing-successful", "provisioned", "Available", "ok"],
  bad: ["error", "cancelled", "disconnected", "preparing-failed", "failed", "Degraded", "Unavailable"],
  wait: ["insufficient", "pending-for-input", "discovering", "registering", "inspecting", "installing-pending-user-action", "interrupted", "stopped"],
};
const GROUPS = { run: "Run", hosts: "Hosts", services: "Lab services", operators: "ClusterOperators" };
const ROWS = 400, STEP = 300, TICKS = 8, OPEN = 12;
const byName = new Intl.Collator("en", { numeric: true }).compare;
const kind = state => Object.keys(KINDS).find(name => KINDS[name].includes(state)) || "run";
const clock = at => at === null || at === undefined ? "" : new Date(at).toISOString().slice(11, 19);
const lasting = ms => { const s = Math.max(0, Math.round(ms / 1000)); return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`; };
const size = bytes => bytes < 1024 ? `${bytes} B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const $ = id => document.getElementById(id);
let run, lines = [], shown = [], items = [];
const view = { zoom: 1, all: false, closed: {}, from: 0, at: null };

function el(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) made.setAttribute(key, value);
  made.append(...inside.filter(part => part !== undefined && part !== null));
  return made;
}
function panel(id, title, ...fixed) {
  const body = el("div", { id: id });
  $("page").append(el("section", { "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title), ...fixed, body));
}
function link(path, text) {
  return el("a", { href: path.split("/").map(encodeURIComponent).join("/") }, text || path);
}
function button(text, action, label) {
  const made = el("button", { type: "button", "aria-label": label }, text);
  made.addEventListener("click", action);
  return made;
}

// ---------------------------------------------------------------------------------------------------------- verdict
function verdict() {
  const v = run.verdict, first = v.causes[0];
  const fact = (name, ...what) => what.every(part => !part) ? [] : [el("dt", {}, name), el("dd", {}, ...what)];
  const parts = [el("div", { class: "bar" }, el("h1", {}, v.cluster), el("span", { class: "pill " + (v.result === "running" ? "run" : kind(v.result)) }, v.result), v.start === null ? "" : `${lasting(v.end - v.start)}`)];
  if (first) {
    parts.push(el("div", { class: "cause" }, el("p", {}, el("b", {}, "First cause: "), first.text),
      v.moment === null ? null : el("p", {}, "Since ", button(clock(v.moment), () => openLog(v.moment), "Show the logs at " + clock(v.moment)), " UTC"),
      first.next ? el("p", {}, "Next: ", el("code", {}, first.next)) : null, v.evidence ? el("p", {}, "Evidence: ", link(v.evidence)) : null));
    if (v.causes.length > 1) parts.push(el("details", {}, el("summary", {}, `${count(v.causes.length - 1, "other cause")}`), ...v.causes.slice(1).map(one => el("p", {}, one.text, el("br", {}), el("code", {}, one.next)))));
  }
  parts.push(el("dl", {}, ...fact("Profile", v.profile), ...fact("Cluster", v.about), ...fact("Payload", v.payload && el("span", { class: "mono" }, v.payload)), ...fact("Program", v.program),
    ...fact("Started", v.start === null ? "" : new Date(v.start).toISOString().slice(0, 19).replace("T", " ") + " UTC"),
    ...fact("Faults", v.faults.length ? el("span", {}, ...v.faults.flatMap((one, i) => [i ? el("br", {}) : "", one.at ? `${clock(one.at)} ${one.text}` : one.text])) : ""),
    ...fact("Not shown", run.missing.length ? el("span", { class: "warning" }, ...run.missing.flatMap((one, i) => [i ? el("br", {}) : "", one])) : "")));
  $("verdict").replaceChildren(...parts);
}

// --------------------------------------------------------------------------------------------------------- timeline
const bounds = () => {
  const ends = run.lanes.flatMap(lane => [...lane.states, ...lane.stages].flatMap(one => [one.start, one.end]).concat(lane.marks.map(one => one.at)));
  const low = ends.reduce((a, b) => Math.min(a, b), run.verdict.start ?? Infinity), high = ends.reduce((a, b) => Math.max(a, b), run.verdict.end ?? -Infinity);
  return Number.isFinite(low) && Number.isFinite(high) ? [low, Math.max(high, low + 1000)] : [0, 1000];
};
function timeline() {
  const [low, high] = bounds(), share = at => `${((at - low) / (high - low)) * 100}%`, box = $("rows"), focused = document.activeElement?.dataset?.item;
  items = [];
  const place = (node, start, end) => { node.style.left = share(start); if (end !== undefined) node.style.width = `${((end - start) / (high - low)) * 100}%`; return node; };
  const ticks = [], every = niceStep((high - low) / TICKS / view.zoom);
  for (let at = Math.ceil(low / every) * every; at < high && ticks.length < 1000; at += every) ticks.push(place(el("i", { class: "tick" }, clock(at)), at));
  const rows = [el("div", { class: "lane axis" }, el("b", {}, "UTC"), el("div", { class: "track" }, ...ticks))];
  let group = "";
  for (const lane of run.lanes) {
    if (lane.group !== group) {
      group = lane.group;
      const all = run.lanes.filter(one => one.group === group).length, name = group;
      if (group !== "run") rows.push(el("div", { class: "lane group" }, el("b", {}, button(`${view.closed[group] ? "▸" : "▾"} ${GROUPS[group]} (${all})`, () => { view.closed[name] = !view.closed[name]; timeline(); })), el("div", { class: "track" })));
    }
    if (view.closed[group]) continue;
    const row = [], track = el("div", { class: "track" });
    const add = (one, className, text, message) => {
      const node = place(el("i", { class: className, role: "button", tabindex: "-1", title: message, "data-item": `${items.length},${row.length}` }, text), one.start ?? one.at, one.end);
      node.said = { at: one.start ?? one.at, message, host: lane.group === "hosts" ? lane.name : "" };
      row.push(node);
      track.append(node);
    };
    const describe = one => `${lane.name}: ${one.state}, ${clock(one.start)} to ${clock(one.end)} (${lasting(one.end - one.start)})${one.text ? ": " + one.text : ""}`;
    for (const one of lane.states) add(one, "state " + (lane.name === "Stages" ? { failed: "bad", interrupted: "wait", ok: "good", running: "run" }[one.text] || "bad" : kind(one.state)), one.state, describe(one));
    for (const one of lane.stages) add(one, "stage", one.state, describe(one));
    for (const one of lane.failing) add(one, "failing", "", `${lane.name}: fails ${describe(one).slice(lane.name.length + 2)}`);
    for (const one of lane.marks) add(one, "mark " + one.level, "", `${lane.name}: ${clock(one.at)} ${one.text}`);
    row.sort((a, b) => a.said.at - b.said.at);
    row.forEach((node, i) => { node.dataset.item = `${items.length},${i}`; });
    items.push(row);
    if (run.verdict.moment !== null && lane.name !== "Messages") track.append(place(el("i", { class: "moment", title: "The first cause showed first: " + clock(run.verdict.moment) }), run.verdict.moment));
    rows.push(el("div", { class: "lane" + (lane.stages.length ? " tall" : "") }, el("b", { title: lane.name }, lane.name), track));
  }
  box.replaceChildren(...rows);
  const entry = (focused && box.querySelector(`[data-item="${focused}"]`)) || items.find(row => row.length)?.[0];
  if (entry) { entry.tabIndex = 0; if (focused) entry.focus({ preventScroll: true }); }
}
function niceStep(ms) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map(s => s * 1000).find(step => step >= ms) || Math.ceil(ms / 86400000) * 86400000;
}
function zoom(factor) {
  const box = $("timeline"), middle = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
  view.zoom = factor ? Math.min(200, Math.max(1, view.zoom * factor)) : 1;
  $("rows").style.setProperty("--zoom", view.zoom);
  timeline();
  box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
}
function focusItem(node) {
  for (const one of $("rows").querySelectorAll("[tabindex='0'][data-item]")) one.tabIndex = -1;
  node.tabIndex = 0;
  node.focus();
  node.scrollIntoView({ block: "nearest", inline: "nearest" });
}
function keys(event) {
  if (event.key === "+" || event.key === "=") zoom(2);
  else if (event.key === "-") zoom(0.5);
  else if (event.key === "0") zoom(0);
  else if (!event.target.dataset?.item) return;
  else {
    const [row, at] = event.target.dataset.item.split(",").map(Number), near = event.target.said.at;
    const other = step => { for (let i = row + step; items[i]; i += step) if (items[i].length) return items[i].reduce((a, b) => Math.abs(b.said.at - near) < Math.abs(a.said.at - near) ? b : a); };
    const next = { ArrowRight: () => items[row][at + 1], ArrowLeft: () => items[row][at - 1], ArrowDown: () => other(1), ArrowUp: () => other(-1), Home: () => items[row][0], End: () => items[row].at(-1) }[event.key];
    if (event.key === "Enter" || event.key === " ") openLog(event.target.said.at, event.target.said.host);
    else if (!next) return;
    else if (next()) focusItem(next());
  }
  event.preventDefault();
}

// -------------------------------------------------------------------------------------------------------- validations
function validations() {
  const failed = new Set(run.validations.filter(one => one.first_failed !== null || !["success", "disabled"].includes(one.now)).map(one => one.id));
  const ids = [...new Set(run.validations.map(one => one.id))].filter(id => view.all || failed.has(id)).sort(byName);
  const hosts = [...new Set(run.validations.map(one => one.host))].sort(byName);
  const cells = new Map(run.validations.map(one => [`${one.host}\n${one.id}`, one]));
  const signs = { success: ["✓", "good-text"], failure: ["✗", "bad-text"], error: ["✗", "bad-text"], pending: ["…", "dim"], disabled: ["–", "dim"] };
  const cell = one => {
    if (!one) return el("td", {});
    const [sign, look] = signs[one.now] || ["?", "dim"];
    const text = `${one.host || "cluster"}, ${one.id}: ${one.now}. First failed: ${clock(one.first_failed) || "never"}, first passed: ${clock(one.first_passed) || "never"}. ${one.message}`;
    return el("td", { class: look, title: text }, sign + (one.first_failed !== null && one.now === "success" ? "*" : ""), el("span", { hidden: "" }, text));
  };
  const bad = run.validations.filter(one => ["failure", "error"].includes(one.now));
  $("validations").replaceChildren(...[
    !run.validations.length ? el("p", { class: "dim" }, "The assisted service has reported no validations.")
      : !ids.length ? el("p", { class: "dim" }, `All ${count(cells.size, "validation")} passed when they were first checked.`)
      : el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Validations by host" }, el("table", { class: "matrix" }, el("thead", {}, el("tr", {}, el("th", {}), ...ids.map(id => el("th", { scope: "col" }, id)))),
        el("tbody", {}, ...hosts.map(host => el("tr", {}, el("th", { scope: "row" }, host || "cluster"), ...ids.map(id => cell(cells.get(`${host}\n${id}`)))))))),
    bad.length ? el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Failing validations" }, el("table", {}, el("thead", {}, el("tr", {}, ...["Fails now", "Validation", "First failed", "First passed", "Message"].map(text => el("th", {}, text)))),
      el("tbody", {}, ...bad.slice(0, 50).map(one => el("tr", {}, el("td", {}, one.host || "cluster"), el("td", {}, one.id), el("td", { class: "number" }, clock(one.first_failed)), el("td", { class: "number" }, clock(one.first_passed) || "never"), el("td", {}, one.message)))))) : null,
    ids.length ? el("p", { class: "dim" }, "✓ passes, ✓* failed before, ✗ fails, … pending, – disabled.") : null].filter(part => part));
}

function connections() {
  $("connections").closest("section").hidden = !run.connections.length;
  const from = [...new Set(run.connections.map(one => one.host))].sort(byName), to = [...new Set(run.connections.map(one => one.to))].sort(byName);
  const cells = new Map(run.connections.map(one => [`${one.host}\n${one.to}`, one]));
  const cell = (host, other) => {
    const one = cells.get(`${host}\n${other}`), text = one && `${host} to ${other}: ${one.text}`;
    return one ? el("td", { class: one.ok ? "good-text" : "bad-text", title: text }, one.ok ? "✓" : "✗", el("span", { hidden: "" }, text)) : el("td", {});
  };
  const bad = run.connections.filter(one => !one.ok);
  $("connections").replaceChildren(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Connections between hosts" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("th", {}, "from \\ to"), ...to.map(name => el("th", { scope: "col" }, name)))), el("tbody", {}, ...from.map(host => el("tr", {}, el("th", { scope: "row" }, host), ...to.map(other => cell(host, other))))))),
    ...bad.slice(0, 50).map(one => el("p", { class: "bad-text" }, `${one.host} to ${one.to}: ${one.text}`)));
}
function checks() {
  $("checks").closest("section").hidden = !run.checks.length;
  const rows = [...run.checks].sort((a, b) => a.ok - b.ok).map(one => el("tr", {}, el("td", { class: one.ok ? "good-text" : "bad-text" }, one.ok ? "✓ ok" : "✗ failed"), el("td", {}, one.name), el("td", {}, one.found)));
  $("checks").replaceChildren(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Checks" }, el("table", {}, el("tbody", {}, ...rows))));
}

// --------------------------------------------------------------------------------------------------------------- logs
function logs() {
  lines = run.sources.flatMap((source, s) => source.lines.map((line, i) => [line.at, s, i]));
  lines.sort((a, b) => (a[0] ?? Infinity) - (b[0] ?? Infinity) || a[1] - b[1] || a[2] - b[2]);
  options($("host"), ["", ...new Set(run.sources.map(one => one.host).filter(Boolean))].sort(byName), "all hosts");
  options($("source"), ["", ...run.sources.map(one => one.name)], "all logs");
  options($("unit"), ["", ...[...new Set(run.sources.flatMap(one => one.lines.map(line => line.unit)))].filter(Boolean).sort(byName)], "all units");
  filter(false);
}
function options(select, values, all) {
  const was = select.value;
  if (values.length === select.options.length && values.every((value, i) => select.options[i].value === value)) return;
  select.replaceChildren(...values.map(value => el("option", { value }, value || all)));
  select.value = values.includes(was) ? was : "";
}
function filter(move = true) {
  const host = $("host").value, source = $("source").value, unit = $("unit").value, text = $("text").value.toLowerCase(), levels = { "": null, warning: ["warning", "error"], error: ["error"] }[$("severity").value];
  shown = lines.filter(([at, s, i]) => {
    const from = run.sources[s], line = from.lines[i];
    return (!host || from.host === host) && (!source || from.name === source) && (!unit || line.unit === unit) && (!levels || levels.includes(line.level)) && (!text || line.text.toLowerCase().includes(text))
      && (at !== null || source);
  });
  if (view.at !== null) view.from = Math.max(0, here() - 20);
  else if (move || view.from >= shown.length) view.from = 0;
  drawLines();
}
// The line of the chosen second, else the last one: many logs have whole seconds only.
function here() {
  const at = Math.floor(view.at / 1000) * 1000, found = shown.findIndex(one => one[0] >= at);
  return found < 0 ? shown.map(one => one[0] !== null).lastIndexOf(true) : found;
}
function drawLines() {
  const part = shown.slice(view.from, view.from + ROWS), target = view.at === null ? -1 : here() - view.from;
  const rows = part.map(([at, s, i], n) => {
    const source = run.sources[s], line = source.lines[i];
    return el("tr", { class: [line.level, n === target ? "here" : ""].join(" ").trim() }, el("td", { class: "number" }, clock(at)), el("td", {}, source.name), el("td", {}, line.unit), el("td", {}, line.text));
  });
  $("lines").replaceChildren(el("table", { class: "mono" }, el("tbody", {}, ...rows)));
  $("lines").querySelector(".here")?.scrollIntoView({ block: "center" });
  const only = $("source").value && run.sources.find(one => one.name === $("source").value);
  $("known").replaceChildren(shown.length ? `${view.from + 1} to ${view.from + part.length} of ${count(shown.length, "line")}. ` : "No line matches the filter. ",
    ...(only ? [only.left_out ? `${size(only.left_out)} before them are only in ` : "The whole log: ", link(only.path)] : [el("span", { class: "dim" }, "A log of its own shows lines without a time, too.")]));
  $("earlier").disabled = view.from === 0;
  $("later").disabled = view.from + ROWS >= shown.length;
}
function openLog(at, host) {
  view.at = at;
  $("host").value = host && [...$("host").options].some(one => one.value === host) ? host : "";
  $("text").value = $("source").value = $("unit").value = $("severity").value = "";
  filter();
  $("logs-title").scrollIntoView({ block: "start" });
  $("lines").focus({ preventScroll: true });
}
function page(by) {
  view.at = null;
  view.from = Math.max(0, Math.min(shown.length - 1, view.from + by));
  drawLines();
  $("lines").scrollTop = 0;
}

// ------------------------------------------------------------------------------------------------ topology, time, files
function topology() {
  $("topology").closest("section").hidden = !run.topology;
  const nodes = run.lanes.filter(lane => lane.group === "hosts").length, was = $("topology").querySelector("details");
  const image = el("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": "Drawing" }, el("img", { alt: `Machines and networks of ${run.verdict.cluster}, with their end states`, src: "data:image/svg+xml," + encodeURIComponent(run.topology) }));
  if (nodes <= OPEN) $("topology").replaceChildren(image);
  else {
    const more = el("details", {}, el("summary", {}, count(nodes, "machine")));
    more.addEventListener("toggle", () => more.append(image), { once: true });
    more.open = Boolean(was?.open);
    $("topology").replaceChildren(more);
  }
}
function screens() {
  $("screens").closest("section").hidden = !run.screens.length;
  $("screens").replaceChildren(...run.screens.map(one => el("figure", { class: "drawing" }, el("figcaption", {}, link(one.path, one.host)),
    one.png ? el("img", { alt: `Screen of ${one.host}`, src: "data:image/png;base64," + one.png }) : null)));
}
// Whose time it was: the wait is the machines' but for what it noticed late, other stages are ours, and the rest is between them.
function shares() {
  const stages = run.steps.filter(one => !one.name), all = (run.verdict.end ?? 0) - (run.verdict.start ?? 0);
  const sum = waits => stages.filter(one => (one.stage === "wait") === waits).reduce((total, one) => total + one.end - one.start, 0);
  if (!stages.length || all <= 0) return [];
  const polls = Math.max(0, Math.min(run.polls, sum(true)));
  const found = [["agentlab", sum(false), "var(--run)"], ["machines", sum(true) - polls, "var(--good)"], ["poll intervals of the wait", polls, "var(--wait)"], ["between the stages", Math.max(0, all - sum(false) - sum(true)), "var(--idle)"]];
  const tinted = (node, tint) => { node.style.setProperty("--tint", tint); return node; };
  const bar = el("div", { class: "shares", "aria-hidden": "true" }, ...found.map(([, time, tint]) => { const part = tinted(el("i", {}), tint); part.style.flex = `${time} 0 0px`; return part; }));
  return [el("div", { class: "bar" }, ...found.map(([name, time, tint]) => tinted(el("span", { class: "share" }, `${name} ${lasting(time)}, ${Math.round(time / all * 100)} %`), tint))), bar];
}
function steps() {
  const [low, high] = bounds();
  const row = one => {
    const bar = el("i", {});
    bar.style.left = `${((one.start - low) / (high - low)) * 100}%`;
    bar.style.width = `${((one.end - one.start) / (high - low)) * 100}%`;
    const usual = one.median === null ? "" : `usually ${lasting(one.median)}`, slow = one.median !== null && one.end - one.start > 1.5 * one.median + 2000;
    return el("div", { class: one.name ? "step task" : "step" }, el("span", {}, one.name || one.stage), el("span", { class: "meter" }, bar), el("span", { class: "number" }, lasting(one.end - one.start)), el("span", { class: "number " + (slow ? "warning" : "dim") }, usual));
  };
  const former = run.former ? el("p", { class: "dim" }, `"usually" is the median of ${count(run.former, "installed run")} of this profile on this machine.`) : null;
  $("steps").replaceChildren(...shares(), ...(run.steps.length ? run.steps.map(row) : [el("p", { class: "dim" }, "No stage has begun.")]), ...(former ? [former] : []));
}
function changes() {
  $("changes").closest("section").hidden = !run.changes.length;
  const open = [...$("changes").querySelectorAll("details[open]")].map(one => one.dataset.file);
  $("changes").replaceChildren(...run.changes.map(one => {
    const signs = { "+": "good-text", "-": "bad-text", "@": "dim" }, lines = one.diff.map(line => el("span", { class: signs[line[0]] }, line + "\n"));
    return el("details", { "data-file": one.file, open: open.includes(one.file) || run.changes.length < 4 ? "" : null }, el("summary", {}, one.file), el("pre", { tabindex: "0", role: "region", "aria-label": "Difference of " + one.file }, ...lines));
  }));
}
function files() {
  const rows = run.files.map(one => el("tr", {}, el("td", {}, link(one.path)), el("td", { class: "number" }, size(one.size))));
  $("files").replaceChildren(el("details", {}, el("summary", {}, `${count(rows.length, "file")}, ${size(run.files.reduce((sum, one) => sum + one.size, 0))}`), el("div", { class: "wide" }, el("table", {}, el("tbody", {}, ...rows)))));
}

// ---------------------------------------------------------------------------------------------------------------- start
function build() {
  const labelled = (text, control) => el("label", {}, text, control), all = el("input", { type: "checkbox" });
  all.addEventListener("change", () => { view.all = all.checked; validations(); });
  $("page").append(el("section", { "aria-label": "Verdict" }, el("div", { id: "verdict" })));
  panel("timing", "Timeline", el("div", { class: "bar" }, button("−", () => zoom(0.5), "Zoom out"), button("+", () => zoom(2), "Zoom in"), button("Whole run", () => zoom(0)), el("span", { class: "dim" }, "Arrow keys move, Enter opens the logs, + and − zoom.")));
  $("timing").append(el("div", { class: "timeline", id: "timeline", role: "region", tabindex: "0", "aria-label": "Timeline" }, el("div", { class: "rows", id: "rows" })), el("p", { id: "said", role: "status" }));
  const say = event => { if (event.target.said) $("said").textContent = event.target.said.message; };
  $("timeline").addEventListener("keydown", keys);
  $("timeline").addEventListener("mouseover", say);
  $("timeline").addEventListener("focusin", say);
  $("timeline").addEventListener("click", event => { if (event.target.said) openLog(event.target.said.at, event.target.said.host); });
  $("timeline").addEventListener("wheel", event => { if (event.ctrlKey) { event.preventDefault(); zoom(event.deltaY < 0 ? 1.5 : 1 / 1.5); } }, { passive: false });
  panel("validations", "Validations", el("div", { class: "bar" }, labelled("Also those that never failed", all)));
  panel("connections", "Connections between hosts");
  panel("checks", "Checks of the installed cluster");
  const choose = id => { const made = el("select", { id }); made.addEventListener("change", () => filter()); return made; };
  const severity = choose("severity"), text = el("input", { id: "text", type: "search" });
  severity.append(...[["", "all"], ["warning", "warnings and errors"], ["error", "errors"]].map(([value, name]) => el("option", { value }, name)));
  text.addEventListener("input", () => filter());
  panel("logs", "Logs", el("div", { class: "bar" }, labelled("Host", choose("host")), labelled("Log", choose("source")), labelled("Unit", choose("unit")), labelled("Severity", severity), labelled("Text", text)));
  const earlier = button("Earlier", () => page(-STEP)), later = button("Later", () => page(STEP));
  earlier.id = "earlier";
  later.id = "later";
  $("logs").append(el("div", { class: "bar" }, earlier, later, el("span", { id: "known", role: "status" })), el("div", { class: "lines", id: "lines", tabindex: "0", role: "region", "aria-label": "Lines" }));
  panel("topology", "Machines and networks");
  panel("screens", "Screens when logs were gathered");
  panel("steps", "Where the time went");
  panel("changes", "Differences from the last good run");
  panel("files", "Files");
}
function render(document_) {
  run = document_;
  document.title = `${run.verdict.cluster}: ${run.verdict.result}`;
  for (const draw of [verdict, timeline, validations, connections, checks, logs, topology, screens, steps, changes, files]) draw();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
async function start() {
  build();
  const bytes = Uint8Array.from(atob($("data").textContent), letter => letter.charCodeAt(0));
  render(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
  if (run.verdict.moment !== null) { view.at = run.verdict.moment; filter(); window.scrollTo(0, 0); }
  if (!run.live) return;
  const source = new EventSource("changes");
  source.addEventListener("run", event => render(JSON.parse(event.data)));
  source.addEventListener("end", () => source.close());
}
start().catch(error => { $("page").prepend(el("section", { class: "error" }, `This page cannot be shown: ${error}. Its data is also in run.json, next to it.`)); });
