"use strict";
// The page keeps no state but the text: every change asks the server for the parts that follow from it.
const at = (id) => document.getElementById(id);
const area = at("text");
const past = [];
let waiting = null, running = false, saved = area.value;

async function ask(action, body) {
  const answer = await fetch("/do/" + action, {
    method: "POST", credentials: "same-origin",
    headers: {"content-type": "application/json"}, body: JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({error: "The studio gave no answer. Is it still running?"}));
  if (!answer.ok) throw new Error(found.error || "The studio refused this.");
  return found;
}

// One request is under way; of those that come meanwhile only the newest is sent. So a smooth drag repaints all along.
async function request(action, body) {
  if (running) { waiting = [action, body]; return; }
  running = true;
  try { show(await ask(action, body), action === "change"); }
  catch (error) { at("verdict").textContent = error.message; }
  finally {
    running = false;
    if (waiting) { const [next, asked] = waiting; waiting = null; request(next, {...asked, text: area.value}); }
  }
}

function show(found, changed) {
  if (changed && found.text !== area.value) { past.push(area.value); area.value = found.text; at("undo").disabled = false; }
  const focused = document.activeElement, id = focused && focused.id;
  for (const [name, html] of Object.entries(found.parts)) {
    const part = at(name);
    // A slider that is being dragged must stay the same element; its neighbours follow when it is let go.
    if (focused && part.contains(focused) && focused.type === "range") { follow(part, html); continue; }
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    // What was typed or chosen and not yet sent stays.
    const typed = [...part.querySelectorAll("#adding input, #adding select")].map((one) => [one.id, one.value]);
    part.innerHTML = html;
    for (const [name_, value] of typed) if (at(name_)) at(name_).value = value;
    const after = part.querySelectorAll("details");
    if (after.length === open.length) after.forEach((one, place) => { one.open = open[place]; });
  }
  if (id && at(id) && document.activeElement !== at(id)) at(id).focus();
  at("verdict").textContent = found.verdict;
  numbers(found.lines);
  told();
}

function follow(part, html) {
  const fresh = document.createElement("div");
  fresh.innerHTML = html;
  const here = part.querySelectorAll(".card"), there = fresh.querySelectorAll(".card");
  if (here.length !== there.length) return;
  here.forEach((card, place) => {
    card.querySelector("p:not(.slide)").innerHTML = there[place].querySelector("p:not(.slide)").innerHTML;
    const mine = card.querySelector(".number"), new_ = there[place].querySelector(".number");
    if (mine !== document.activeElement) mine.value = new_.getAttribute("value");
    card.querySelector("input[type=range]").setAttribute("aria-valuetext", "epsilon " + mine.value);
  });
}

function numbers(lines) {
  const marks = new Map((lines || []).map(([line, kind]) => [line, kind]));
  const count = area.value.split("\n").length, list = at("numbers");
  list.replaceChildren(...Array.from({length: count}, (_, place) => {
    const item = document.createElement("li");
    item.textContent = String(place + 1);
    if (marks.has(place + 1)) item.className = marks.get(place + 1);
    return item;
  }));
  area.style.height = "auto";
  area.rows = Math.max(count + 1, 20);
}

const told = () => { at("saved").textContent = area.value === saved ? "" : "not saved"; };
const change = (what, name, more) => request("change", {text: area.value, what, name, ...more});

document.addEventListener("input", (event) => {
  const one = event.target;
  if (one === area) { numbers(); told(); request("plan", {text: area.value}); }
  else if (one.dataset.slide) {
    const epsilon = Number((10 ** (one.value / 100)).toPrecision(3));
    change("epsilon", one.dataset.slide, {value: epsilon});
  }
});
document.addEventListener("change", (event) => {
  const one = event.target;
  if (one.tagName === "INPUT" && one.dataset.change) change(one.dataset.change, one.dataset.name, {value: one.value});
});
document.addEventListener("click", (event) => {
  const one = event.target.closest("button");
  if (!one) return;
  if (one.dataset.line) toLine(Number(one.dataset.line));
  else if (one.dataset.factor) {
    const weight = parseFloat(one.parentElement.querySelector("span").textContent.replace("weight", ""));
    change("weight", one.dataset.name, {value: weight * Number(one.dataset.factor)});
  } else if (one.dataset.change) change(one.dataset.change, one.dataset.name, {});
  else if (one.id === "add") {
    change("add", at("add-name").value, {
      what_of: at("add-what").value, of: at("add-of").value, goal: at("add-goal").value,
      requirement: at("add-requirement").value,
    });
    at("add-name").value = "";
  }
});

function toLine(line) {
  tab("text");
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] || "").length);
}

function tab(name) {
  for (const other of ["text", "form"]) {
    const here = other === name;
    at("tab-" + other).setAttribute("aria-selected", String(here));
    at("tab-" + other).tabIndex = here ? 0 : -1;
    at("panel-" + other).hidden = !here;
  }
}
for (const name of ["text", "form"]) {
  at("tab-" + name).addEventListener("click", () => tab(name));
  at("tab-" + name).addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const other = name === "text" ? "form" : "text";
    tab(other); at("tab-" + other).focus();
  });
}

function tell(title, text, more) {
  at("telling-title").textContent = title;
  at("telling-text").textContent = text;
  const link = at("telling-link");
  link.hidden = !(more && more.report);
  if (more && more.report) link.href = more.report;
  for (const id of ["telling-over", "telling-theirs"]) at(id).hidden = !(more && more.conflict);
  at("telling").showModal();
}
at("telling-close").addEventListener("click", () => at("telling").close());

async function save(over) {
  try {
    const found = await ask("save", {text: area.value, over});
    if (!found.saved) tell("Changed elsewhere", "Somebody changed " + found.file + " since it was read here.", {conflict: true});
    else { saved = area.value; told(); at("verdict").textContent = found.file + " is saved."; }
  } catch (error) { tell("Not saved", error.message); }
}
at("save").addEventListener("click", () => save(false));
at("telling-over").addEventListener("click", () => { at("telling").close(); save(true); });
at("telling-theirs").addEventListener("click", async () => {
  at("telling").close();
  try { show(await ask("reload", {}), true); saved = area.value; told(); } catch (error) { tell("Not read", error.message); }
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); save(false); }
});
at("undo").addEventListener("click", () => {
  if (!past.length) return;
  area.value = past.pop();
  at("undo").disabled = !past.length;
  numbers(); told(); request("plan", {text: area.value});
});

async function watched(where, work) {
  const watch = setInterval(async () => {
    const found = await (await fetch("/progress")).json().catch(() => ({stage: ""}));
    if (found.stage) where.textContent = found.stage + " …";
  }, 400);
  try { return await work(); } finally { clearInterval(watch); where.textContent = ""; }
}
at("rehearse").addEventListener("click", async () => {
  at("rehearse").disabled = true;
  at("verdict").textContent = "Inventing people …";
  try {
    const found = await watched(at("verdict"), () => ask("rehearse", {text: area.value}));
    tell("Dry run", "People were invented, nothing was charged, and nothing of it may be published.", found);
  } catch (error) { tell("The dry run ended early", error.message); }
  finally { at("rehearse").disabled = false; at("verdict").textContent = ""; }
});

let nonce = "";
at("publish").addEventListener("click", async () => {
  try {
    const found = await ask("ask", {text: area.value});
    nonce = found.nonce;
    at("account").replaceChildren(...[...found.lines, "Ledger: " + found.ledger].map((line) => {
      const item = document.createElement("p"); item.textContent = line; return item;
    }));
    at("first").hidden = !found.first;
    at("grant").checked = false; at("word").value = ""; at("refused").textContent = "";
    at("asking").showModal();
    at("word").focus();
  } catch (error) { tell("Not yet", error.message); }
});
at("cancel").addEventListener("click", () => at("asking").close());
at("confirm").addEventListener("click", async () => {
  at("confirm").disabled = true;
  try {
    const found = await watched(at("stage"), () => ask("publish", {
      text: area.value, nonce, word: at("word").value, grant: at("grant").checked,
    }));
    at("asking").close(); saved = area.value; told();
    tell("Published", "Everything is in " + found.folder + ".", found);
  } catch (error) {
    at("refused").textContent = error.message;
    try { nonce = (await ask("ask", {text: area.value})).nonce; } catch (again) { /* the message above says why */ }
  } finally { at("confirm").disabled = false; }
});

setInterval(async () => {
  if (document.hidden) return;
  const found = await (await fetch("/progress")).json().catch(() => null);
  if (found && found.elsewhere && !at("telling").open && !at("asking").open && area.value === saved) {
    tell("Changed elsewhere", "Somebody changed this study since it was read here.", {conflict: true});
  }
}, 5000);
window.addEventListener("beforeunload", (event) => { if (area.value !== saved) event.preventDefault(); });
numbers();
