// Label texts by hand. `mount(root, desk)` builds the interface in an element; the local
// page and the notebook widget differ only in the desk that they pass.
//
// A desk has `call(method, args) -> {status, content}` (rejects if nothing answers),
// `listen({changed, stopped, ending, lost}) -> stop`, and `leave(client)`.
// Texts and names reach the document as text nodes only.

const h = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child != null));
  return element;
};
const bar = (label) => h("div", { class: "bar", role: "progressbar", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" }, h("div", {}));
const fill = (element, share) => {  // null: nobody knows how far
  element.classList.toggle("unknown", share === null);
  element.firstChild.style.width = `${100 * Math.min(1, share ?? 1)}%`;
  if (share === null) element.removeAttribute("aria-valuenow"); else element.setAttribute("aria-valuenow", Math.round(100 * Math.min(1, share)));
  return element;
};
const svg = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const kbd = (key) => h("kbd", { "aria-hidden": "true" }, key);
const encode = (value) => JSON.stringify(value);
const say = (label) => (Array.isArray(label) ? label.join(" + ") || "no class" : String(label));
const percent = (p) => `${Math.round(100 * p)} %`;
const short = (number) => String(Number(number.toPrecision(4)));
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const HUES = 8;
const hue = (element, place) => { element.style.setProperty("--hue", place < 0 ? "var(--line)" : `var(--hue-${place % HUES})`); return element; };
const failure = () => h("p", { class: "warning", role: "alert", hidden: true });
const showFailure = (fails, error) => { fails.hidden = !error; fails.textContent = error || ""; };
const breakable = (name) => say(name).split(/(?<=[_\-/])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));  // between words only
const cut = (text, n) => (text.length > n ? `${text.slice(0, n).replace(/\s+\S*$/, "")} …` : text);  // at the end of a word
const brief = (text) => cut(Array.isArray(text) ? text.join(" | ") : text, 200);
const marked = (text, wanted, source = wanted.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+")) => {  // an excerpt around the first match; all matches are marked
  const whole = (Array.isArray(text) ? text.join(" | ") : text).replace(/\s+/g, " ");
  const pattern = source && new RegExp(source, "gi");
  const place = pattern ? whole.search(pattern) : 0, start = place > 24 ? whole.lastIndexOf(" ", place - 12) + 1 : 0, excerpt = cut(whole.slice(start), 300);
  const found = pattern ? [...excerpt.matchAll(pattern)].filter(([part]) => part) : [], ends = [0, ...found.map((match) => match.index + match[0].length)];
  return [start ? "… " : null, ...found.flatMap((match, i) => [excerpt.slice(ends[i], match.index), h("mark", {}, match[0])]), excerpt.slice(ends.at(-1))];
};
const about = ([share, low, high]) => `${percent(share)} (${Math.round(100 * low)}–${Math.round(100 * high)})`;
const range = ([share, low, high]) => svg("svg", { viewBox: "0 0 300 22", "aria-hidden": "true" }, svg("rect", { class: "track", x: 0, y: 8, width: 300, height: 6, rx: 3 }),
  svg("rect", { class: "range", x: 300 * low, y: 6, width: Math.max(2, 300 * (high - low)), height: 10, rx: 5 }), svg("rect", { x: 300 * share - 2, y: 2, width: 4, height: 18, rx: 2 }));
const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");
const BLIND = "Drawn at random: you answer without help.";
const NAMED = { " ": "Space", ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", Escape: "Esc", "=": "+" };  // keys, as the desk's list of commands has them
const MOST_EXAMPLE = 1000;  // characters of a text that becomes an example
const describeUndo = ({ event, label, name, n_items: n }, classes) => ({
  tell: n > 1 ? `${n} answers were taken back.` : `The answer${label === null ? "" : ` ${say(label)}`} was taken back.`, skip: "The text is not skipped any more.", rename: `The new name ${name} was taken back.`,
  add: classes.some((entry) => entry.name === name) ? `The class ${name} stays: it has labels.` : `The class ${name} was removed again.`, remove: `The class ${name} is there again.`,
  describe: `The change of ${name} was taken back.`,
}[event] ?? "The last step was taken back.");
const unread = (text, read) => {  // what the encoder does not read is marked
  if (read === null) return [text];
  const place = Array.from(text).slice(0, read).join("").length;  // read counts characters, not UTF-16 units
  return [text.slice(0, place), h("span", { class: "unread", title: "The model does not read this part." }, text.slice(place))];
};
const AFTER_NAME = /:?\t|:(?:\s|$)/;
export const parseClasses = (text, known = []) => new Map(text.split("\n").flatMap((row) => {  // as parse_classes in Python
  const line = row.trim(), begins = (name) => line === name || (line.startsWith(name) && line.slice(name.length).search(AFTER_NAME) === 0);
  const whole = known.filter(begins).sort((a, b) => b.length - a.length)[0], start = whole?.length ?? 0;
  const found = line.slice(start).match(AFTER_NAME), end = found ? start + found.index : line.length;
  const [description, ...examples] = found ? line.slice(end + found[0].length).split("\t").map((cell) => cell.trim()) : [""];
  return (found || whole !== undefined ? [line.slice(0, end)] : line.split(",")).map((name) => [name.trim(), { description, examples }]);
}).filter(([name]) => name));
const moveTo = (event, element) => {  // move the focus there, if there is one
  if (!element) return false;
  event.preventDefault();
  event.stopPropagation();
  element.focus();
  return true;
};
const newId = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
const explain = (error) => (error?.name === "TimeoutError" ? "No reply for 20 seconds: the program is busy." : "No connection.");
const RETRY = 1000, MANY = 9;
const KINDS = [["single-label", "One class"], ["multi-label", "Several classes, or none"], ["regression", "A number"]];
const RENEW = 40000;  // the desk gives the items of a silent page to others

const memory = {  // what this browser remembers; nothing where it may not
  get(name) { try { return localStorage.getItem(`skactive:${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`skactive:${name}`, value); } catch { /* full or forbidden */ } },
  remove(name) { try { localStorage.removeItem(`skactive:${name}`); } catch { /* forbidden */ } },
  tab(name, value) { try { return value === undefined ? sessionStorage.getItem(`skactive:${name}`) : sessionStorage.setItem(`skactive:${name}`, value); } catch { return null; } },
  names() { try { return Object.keys(localStorage).map((name) => name.replace(/^skactive:/, "")); } catch { return []; } },
};

// Answers in the order in which they were given. Each stays here, and in the browser's
// storage, until the desk says that it is on the disk.
class Outbox {
  constructor(desk, scope, client, { stored, refused, changed }) {
    Object.assign(this, { desk, stored, refused, changed, entries: [], fault: "", sending: null, timer: 0 });
    this.prefix = `outbox:${scope}:`;
    this.name = this.prefix + client;
    const held = new Promise((resolve) => { this.unlock = resolve; });
    navigator.locks?.request(this.name, () => held);
  }
  async adopt() {  // what a closed or crashed page could not send
    const take = (name) => {
      this.entries.push(...JSON.parse(memory.get(name) ?? "[]"));
      this.save();
      memory.remove(name);
    };
    for (const name of memory.names()) {
      if (!name.startsWith(this.prefix) || name === this.name) continue;
      if (navigator.locks) await navigator.locks.request(name, { ifAvailable: true }, (lock) => { if (lock) take(name); });
      else take(name);
    }
    return this.flush();
  }
  save() {
    if (this.entries.length) memory.set(this.name, encode(this.entries));
    else memory.remove(this.name);
  }
  add(entry) {
    this.entries.push(entry);
    this.save();
    return this.flush();
  }
  flush() {  // whether everything is stored
    clearTimeout(this.timer);
    this.sending ??= this.send().finally(() => {
      this.sending = null;
      this.changed();
      if (this.entries.length && !this.fault) this.flush();  // added just now
    });
    return this.sending;
  }
  async send() {
    while (this.entries.length) {
      const [entry] = this.entries;
      let reply;
      try {
        reply = await this.desk.call(entry.method, entry.args);
      } catch (error) {
        return this.fail(explain(error));
      }
      if (reply.status >= 500 || [401, 403].includes(reply.status)) return this.fail(reply.content?.error ?? `Error ${reply.status}.`);
      this.entries.shift();
      this.save();
      if (reply.status >= 400) this.refused(entry, reply.content.error);
      else this.stored(entry, reply.content);
    }
    this.fault = "";
    return true;
  }
  fail(message) {
    this.fault = message;
    this.timer = setTimeout(() => this.flush(), RETRY);
    return false;
  }
  close() { clearTimeout(this.timer); this.unlock(); }
}

class Labeling {
  constructor(root, desk, options) {
    Object.assign(this, { root, desk, options, client: newId(), state: null, queue: [], visiting: null });
    Object.assign(this, { states: new Map(), question: undefined });  // by question, where several are asked about each text
    Object.assign(this, { busy: false, turn: 0, lost: false, stopped: null, ended: false, guard: 0, filterText: "", buttons: new Map() });
    Object.assign(this, { selected: new Set(), confirmed: false });  // where several classes can be chosen
    Object.assign(this, { lists: {}, dismissed: "" });  // what was looked for in the lists; the line that was closed
    Object.assign(this, { series: null, used: [], ranked: new Map(), probable: new Map() });  // texts one after another; the last classes; places of classes
    this.scope = options.scope ?? location.pathname;
    this.annotator = memory.tab(this.scope) || null;
    this.hidden = memory.get("predictions") === "hidden";
    this.outbox = new Outbox(desk, this.scope, this.client, {
      stored: (entry, content) => this.stored(entry, content),
      refused: (entry, error) => this.refused(entry, error),
      changed: () => this.showFault(),
    });
    this.build();
    this.setTheme(memory.get("theme") ?? "auto");
    this.closers = [];
    const on = (target, event, handler) => {
      target.addEventListener(event, handler);
      this.closers.push(() => target.removeEventListener(event, handler));
    };
    on(options.keys ?? root, "keydown", (event) => this.onKey(event));
    on(window, "pagehide", () => desk.leave(this.client));
    on(window, "beforeunload", (event) => { if (this.outbox.entries.length) event.preventDefault(); });
    on(document, "visibilitychange", () => { this.since = performance.now(); });
    const renew = setInterval(() => { if (!document.hidden && !this.busy) this.refill(); }, RENEW);
    this.closers.push(() => clearInterval(renew));
    this.start();
  }
  async start() {
    await this.outbox.adopt();
    this.closers.push(this.desk.listen({
      changed: (version) => this.changed(version),
      stopped: (finished) => { this.stopped = finished; this.lost = this.away = true; if (finished) this.end(); this.showFault(); },
      ending: (result) => this.end(result),
      lost: (asleep) => { this.away = true; this.lost = !asleep; this.showFault(); },
    }));
  }
  close() {
    this.closers.forEach((close) => close());
    this.outbox.close();
    this.desk.leave(this.client);
    this.root.replaceChildren();
  }

  // What the desk knows --------------------------------------------------------------
  async ask(method, args = {}) {  // the content, or undefined after an error was shown
    try {
      const reply = await this.desk.call(method, this.signed(method, this.of(args)));
      if (reply.status < 400) { this.setLost(false); return reply.content; }
      this.warn(reply.content?.error ?? `Error ${reply.status}.`);
      if (reply.status === 409) await this.refresh();
    } catch (error) {
      if (error?.name === "TimeoutError") this.warn(explain(error), "reply");  // a slow reply
      else this.setLost(true);
    }
    return undefined;
  }
  signed(method, args) { return this.annotator && method !== "finish" ? { annotator: this.annotator, ...args } : args; }  // nobody sees what is hidden from this person
  setLost(lost) { this.lost = lost; if (!lost) this.calm("reply"); this.showFault(); }
  async changed(version) {  // also after the connection came back
    if (this.ended) return this.options.restart();  // the same command goes on
    const returned = this.away;
    this.away = false;
    this.stopped = null;
    this.setLost(false);
    if (this.outbox.entries.length) await this.outbox.flush();
    if (this.state?.version !== version && !this.busy) await this.refresh();
    if (this.dialog.open) this.relist?.();
    const shown = this.partOf(this.queue[0]), unpredicted = shown?.prediction === null && !shown.blind && this.state?.model.n_labels > 0;
    if (returned || unpredicted || this.queue.length < 2) await this.refill(returned);
  }
  async refresh() {
    const { turn } = this, fetch = (question) => this.ask("state", { annotator: this.annotator, ...(question === undefined ? {} : { question }) });
    const state = await fetch(this.question), others = (state?.questions ?? []).map(({ name }) => name).filter((name) => name !== state.question);
    for (const other of await Promise.all(others.map(fetch))) if (other && turn === this.turn) this.setState(other, false, state.question);
    if (turn === this.turn) { if (state) this.setState(state); }
    else if (!this.busy) await this.refresh();  // an answer was faster: its state is newer
  }
  async refill(replace = false) {  // prefetch; the text that is being read stays
    const turn = this.turn;
    const items = await this.ask("next", { client: this.client, annotator: this.annotator, n_queries: 2 });
    if (!items) return;
    if (this.busy) return;  // what is being done fetches again
    if (turn !== this.turn) return this.refill(replace);
    const waiting = new Set(this.outbox.entries.flatMap(({ args }) => args.ids ?? args.id));
    const fresh = items.filter((item) => !waiting.has(item.id));
    const [shown] = this.queue;
    const again = fresh.find((item) => item.id === shown?.id);
    const stays = shown && (!replace || again);
    const known = new Set(this.state?.classes.map(({ name }) => encode(name))), old = this.partOf(shown), now = this.partOf(again), renamed = old?.top?.some(([name]) => !known.has(encode(name)));
    if (again?.questions) shown.questions = { ...again.questions, [this.question]: old };
    if (again && (replace || renamed || (old.prediction === null && now.prediction !== null))) {  // of the first model
      Object.assign(old, now);
      if (!this.visiting) this.showItem(false);
    }
    this.queue = stays ? [shown, ...fresh.filter((item) => item.id !== shown.id)] : fresh;
    if (!stays) {
      this.moveOn();
      if (shown) this.guard = performance.now() + 400;  // a key meant for the text before
      this.showItem(true, this.options.page && document.activeElement === document.body);
    }
  }
  setState(state, shows = true, active = state.question) {
    const { question, questions, undo, version } = state;
    if (state.seq < this.states.get(question)?.seq) return;  // an older reply that came later
    if (question !== undefined) this.states.delete(undefined);  // the first screen
    this.states.set(question, state);
    if (questions) for (const other of this.states.values()) Object.assign(other, { questions, undo, version });
    this.question ??= active;
    if (question === this.question) this.state = state;
    if (shows) this.showState();
  }
  get starting() { return Boolean(this.state.start) || (!this.numeric && this.state.classes.length < 2); }  // the classes come first
  get several() { return this.state?.target === "multi-label"; }
  get numeric() { return this.state?.target === "regression"; }
  get many() { return !this.numeric && this.state.classes.length > MANY; }
  get chosen() { return this.state.classes.map(({ name }) => name).filter((name) => this.selected.has(encode(name))); }
  get item() { return this.visiting ?? this.partOf(this.queue[0]) ?? null; }
  // Several questions: the active one has the tiles and the keys
  partOf(shown) { return shown?.questions?.[this.question] ?? shown; }
  of(args) { return this.question === undefined ? args : { question: this.question, ...args }; }
  activate(question) {
    if (question === undefined || !this.states.has(question)) return;
    this.question = question;
    this.state = this.states.get(question);
  }
  moveOn(from = 0) {  // to the next open question of the text
    const items = this.queue[0]?.questions, names = Object.keys(items ?? {});
    if (!this.visiting) this.activate([...names.slice(from), ...names.slice(0, from)].find((name) => items[name].open));
  }
  settle({ id }, args, isSkip) {  // a text leaves when no question of it is open
    const [first] = this.queue;
    this.queue = this.queue.filter((other) => {
      if (other.id !== id) return true;
      const items = Object.entries(other.questions ?? {});
      for (const [name, item] of items) if (isSkip || name === args.question) Object.assign(item, { open: false }, isSkip ? {} : { label: args.label });
      for (const { name, only_if: condition } of isSkip ? [] : this.state.questions ?? []) {  // what depends on this answer
        if (condition?.[0] === args.question) other.questions[name].open = other.questions[name].label === null && [args.label].flat().some((label) => encode(label) === encode(condition[1]));
      }
      return items.some(([, item]) => item.open);
    });
    const same = first !== undefined && first === this.queue[0];
    this.moveOn(same ? Object.keys(first.questions ?? {}).indexOf(this.question) + 1 : 0);
  }
  async turnTo(question) {  // another question about the text that is shown
    if (this.busy || question === this.question) return;
    const item = this.visiting && await this.ask("item", { id: this.visiting.id, question });
    if (item === undefined) return;
    this.activate(question);
    Object.assign(this, { visiting: item, series: null });
    this.showItem();
    this.showState();
    this.ui.text.focus();
  }
  showQuestions() {  // a strip for each, above and below the tiles
    const { questions = [] } = this.state, { above, below } = this.ui, items = this.visiting ? { [this.question]: this.visiting } : this.queue[0]?.questions ?? {};
    const look = encode([questions, this.question, Object.entries(items).map(([name, { label, open }]) => [name, label, open])]);
    if (above.look === look) return;
    above.look = look;
    const rows = ({ classes: { length: n } }, most) => (n > MANY ? 3 : Math.max(1, Math.ceil(n / (n === 4 ? 2 : most)))), all = [...this.states.values()];
    this.root.classList.toggle("asks", questions.length > 0);
    for (const [name, most] of [["wide", 3], ["narrow", 2]]) this.root.style.setProperty(`--${name}-rows`, Math.max(...all.map((state) => rows(state, most))));  // the text stays where it is
    const strips = questions.map(({ name, n_labeled: n, goal }) => {
      const { label = null, open = true } = items[name] ?? {}, numeric = typeof label === "number" && this.states.get(name)?.target === "regression";
      const said = label !== null ? h("span", { class: "said", dir: "auto" }, numeric ? short(label) : say(label)) : open ? null : h("span", { class: "said note" }, "not asked");
      return h("button", { type: "button", class: "question", "aria-current": name === this.question && "true", onclick: () => this.turnTo(name) },
        h("b", { dir: "auto" }, name), said, h("span", { class: "note" }, goal === null ? plural(n, "label") : `${n} of ${goal}`));
    });
    const at = questions.findIndex(({ name }) => name === this.question) + 1;
    above.replaceChildren(...strips.slice(0, at));
    below.replaceChildren(...strips.slice(at));
    above.hidden = !at;
    below.hidden = at >= strips.length;
  }
  get settling() { return this.visiting !== null && this.series?.way === "settled"; }
  get offers() {  // what a machine says, the source that was right more often first: Space takes it; or what people said
    if (this.settling) return [...new Map(this.item.said.map(({ annotator, label }) => [encode(label), [annotator ?? "nobody", label]])).values()];
    const { prediction = null, suggestion = null } = this.item ?? {}, all = [["prediction", this.hidden ? null : prediction], ["suggestion", suggestion]];
    return (this.state.suggestions?.leads ? all.reverse() : all).filter(([, label]) => label !== null);
  }
  keysOf(name) { return (this.state.commands[name] ?? ["", ""])[this.many ? 1 : 0].split(" "); }
  offerKey(source) { return (this.keysOf(["accept", "other"][this.offers.findIndex(([name]) => name === source)] ?? "none")[0] ?? "").replace(/^[a-z]$/, (key) => key.toUpperCase()); }

  // What a person does ---------------------------------------------------------------
  async put(method, args, item, text) {  // an answer or a skip; then the next text
    if (this.busy || !item || performance.now() < this.guard) return;
    this.busy = true;
    this.turn += 1;
    this.calm("answer");
    const slow = setTimeout(() => this.root.classList.add("saving"), 300);
    const seconds = Math.round((performance.now() - this.since) / 100) / 10;
    const way = item !== this.visiting || (this.walking && !this.reviewing) ? undefined : this.series?.way;
    const extra = method === "answer" ? { seconds, ...(item.way === "repeat" || way ? { way: item.way === "repeat" ? item.way : way } : {}) } : {};
    this.sent = item;
    const sent = this.of({ id: item.id, ...args, client: this.client, annotator: this.annotator, ...extra });
    await this.outbox.add({ method, args: sent });
    const following = !this.wasRefused && this.visiting === item ? await this.following() : this.visiting;
    clearTimeout(slow);
    this.root.classList.remove("saving");
    this.turn += 1;
    this.busy = false;
    if (!this.wasRefused) {
      if (method === "answer") this.used = [...new Set([...[args.label].flat().map(encode), ...this.used])].slice(0, 30);
      if (this.visiting === item) this.visiting = following;
      this.settle(item, sent, method === "skip");
      this.announce(text);
    }
    const again = this.wasRefused && (this.several || this.numeric);  // what was chosen stays
    this.wasRefused = false;
    this.showItem(!again);
    this.refill();
    requestAnimationFrame(() => setTimeout(() => this.showState()));  // the next text is painted first
  }
  answer(label) { return this.put("answer", { label, ...(this.example && { example: this.example }) }, this.item, `Saved: ${say(label)}.`); }
  choose(name) {  // the answer, or one of several
    if (!this.several) return this.answer(name);
    if (this.busy || !this.item || performance.now() < this.guard) return;
    const id = encode(name), on = !this.selected.has(id);
    if (on) this.selected.add(id);
    else this.selected.delete(id);
    this.announce(`${say(name)} ${on ? "checked" : "not checked"}.`);
    this.showChosen();
    this.showClasses();
  }
  submit() {  // what is checked or typed
    if (this.busy || !this.item) return;
    if (this.numeric) {
      const text = this.ui.number.value.trim(), value = Number(text.replace(",", "."));
      if (!text || !Number.isFinite(value)) return this.showChosen(text ? `${text} is not a number.` : "Type a number.");
      return this.answer(value);
    }
    if (!this.chosen.length && !this.confirmed) {
      this.showChosen("No class is checked. Press Enter again if no class applies.");
      this.confirmed = true;
    } else this.answer(this.chosen);
  }
  uncheck() {
    this.selected.clear();
    this.ui.number.value = "";
    this.showChosen();
    this.showClasses();
  }
  async skip() {
    if (!this.visiting) return this.put("skip", {}, this.item, "Skipped.");
    if (this.busy) return;
    this.busy = true;
    this.visiting = await this.following();
    this.busy = false;
    this.showItem();
  }
  stored(entry, content) {
    this.calm("reply");
    if (["answer", "answer_all", "skip"].includes(entry.method)) this.setState(content, !this.busy);
    else if (this.item?.id === content.id && entry.args.question === this.question) { Object.assign(this.item, content); this.showItem(false); }
  }
  refused(entry, error) {
    this.wasRefused = entry.method === "answer" && entry.args.id === this.sent?.id;
    this.warn(`Not stored: ${error}`);
  }
  accept(place = 0) {
    if (this.several && this.selected.size) return this.showChosen("Press Enter to save what is checked, or Esc to clear it.");
    const [source, label] = this.offers[place] ?? [];
    if (!source) return this.announce(place ? "There is no second one to accept." : "There is no prediction to accept.");
    if (this.busy || performance.now() < this.guard) return;
    this.answer(label);
    if (memory.get("space") || place || this.settling) return;  // elsewhere, Space skips
    memory.set("space", "known");
    this.warn(`Space accepted the ${source}. ${this.keysOf("skip")[0].toUpperCase()} skips a text, and Backspace undoes.`, "answer");
  }
  async undo() {
    if (this.busy) return;
    if (this.outbox.entries.length) return this.warn("Some answers are not stored yet; undo is possible when they are.");
    const last = this.state?.undo;
    if (!last) return this.announce("There is nothing to undo.");
    this.busy = true;
    this.turn += 1;
    const shown = await this.ask("undo", { seq: last.seq, client: this.client, annotator: this.annotator, ...(last.question && { question: last.question }) });
    await this.refresh();
    this.turn += 1;
    this.busy = false;
    this.activate(last.question);
    const item = this.partOf(shown);
    if (item?.id) {
      if (this.series && this.visiting) this.series.items.unshift(this.visiting);
      this.visiting = item.label === null && !this.series ? null : item;
      this.queue = this.queue.filter((other) => other.id !== item.id);
      if (!this.visiting) this.queue.unshift(shown);
      this.showItem();
    }
    if (item !== undefined) this.announce(describeUndo(last, this.state.classes));
    this.refill();
  }
  async mark(method, args, message, { item } = this) {
    if (item && await this.outbox.add({ method, args: this.of({ id: item.id, ...args, annotator: this.annotator }) })) this.announce(message);
  }
  visit(item, series = null) {
    this.opener = this.ui.text;  // keys are for the text
    this.dialog.close();
    this.series = series;
    this.visiting = item;
    this.showItem();
  }
  leave() { this.series = this.visiting = null; this.showItem(); }

  onKey(event) {
    if (event.key === "Escape" && this.dialog.open && !this.dialog.matches(":modal")) return this.dialog.close();
    if (this.dialog.open || this.ended || !this.state || this.starting || event.defaultPrevented) return;
    const { target } = event, { key: raw, code } = event;
    const field = target.matches?.("input, textarea, select, [contenteditable]");
    if ((event.ctrlKey || event.metaKey) && raw === "z" && !field) { event.preventDefault(); return void this.undo(); }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = /^[\x20-\x7e]$/.test(raw) ? raw.toLowerCase() : /^Key[A-Z]$/.test(code) ? code[3].toLowerCase() : raw;
    if (field) {
      if (raw === "Escape" && this.ui.guide.contains(target)) this.ui.text.focus();
      if (target === this.ui.filter) this.onFilterKey(event);
      if (target === this.ui.number) this.onNumberKey(event);
      return;
    }
    const role = target.getAttribute?.("role"), inClasses = role === "radio" || role === "checkbox";
    if (inClasses && this.moveFocus(event)) return;
    if (this.ui.recent.contains(target) && this.moveInRecent(event)) return;
    const saves = key === "Enter" && role === "checkbox";  // Space checks it
    if ((key === " " || key === "Enter") && !saves && target.matches?.("button")) return;  // it is pressed
    if (this.numeric && /^[-+.,0-9]$/.test(key)) return this.ui.number.focus();  // which gets the key
    const entry = this.many ? this.matches["123456789".indexOf(key)] : this.state.classes.find((entry) => entry.key && entry.key === key);
    const does = { accept: () => this.accept(), other: () => this.accept(1), skip: () => this.skip(), undo: () => this.undo(), flag: () => this.flag(), note: () => this.openNote(), example: !this.numeric && (() => this.takeExample()), why: () => this.openWhy(),
      alike: !this.numeric && (() => this.openAlike()), find: !this.numeric && (() => this.openFilter()), help: () => this.openHelp(),
      recent: !this.ui.text.scrollTop && this.ui.recent.checkVisibility() && (() => this.ui.recent.lastElementChild.firstChild.focus()),
      back: () => (this.selected.size && !this.series ? this.uncheck() : this.visiting && this.leave()),
      save: this.reviewing && !this.several ? () => this.keep() : this.several || this.numeric ? () => this.submit() : this.walking && (() => this.skip()) };
    const command = does[Object.keys(does).find((name) => this.keysOf(name).includes(NAMED[key] ?? key))] || (entry && (() => this.choose(entry.name)));
    if (!command && this.many && /^[\p{L}\p{N}]$/u.test(raw)) return this.openFilter();  // which gets the key
    if (!command) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat) command();  // a key that is held answers once
  }
  flag() { this.mark("flag", { on: !this.item?.flag }, this.item?.flag ? "The flag was removed." : "Flagged."); }

  // Classes --------------------------------------------------------------------------
  openFilter() { this.filtering = true; this.showClasses(); this.ui.filter.focus(); }
  onFilterKey(event) {
    const [first] = this.matches, typed = this.filterText.trim() && this.matches.some(({ name }) => say(name).includes(event.key));
    const nth = this.many && !typed ? this.matches["123456789".indexOf(event.key)] : undefined;  // digits of a name are typed
    if (nth) { event.preventDefault(); this.choose(nth.name); if (this.several) this.leaveFilter(); }
    else if (event.key === " " && !this.filterText && this.many) { event.preventDefault(); this.accept(); }
    else if (event.key === "Enter") {
      event.preventDefault();
      if (!this.filterText.trim()) { if (this.several) this.submit(); }
      else if (first) {
        this.choose(first.name);
        if (this.several) this.leaveFilter();
      }
    } else if (event.key === "Escape") this.leaveFilter();
    else if (event.key === "ArrowDown" && first) { event.preventDefault(); this.buttons.get(encode(first.name)).focus(); }
    else return;
    event.stopPropagation();
  }
  onNumberKey(event) {
    if (event.key === "Enter" && !event.repeat) this.submit();
    else if (event.key === "Escape") { this.uncheck(); this.ui.text.focus(); }
    else if (event.key === " " && !this.ui.number.value) this.accept();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  leaveFilter() { this.clearFilter(); this.ui.text.focus(); }
  clearFilter() { this.ui.filter.value = this.filterText = ""; this.filtering = false; this.showClasses(); }
  get matches() {  // the classes that hold every typed word; the likely ones first
    const plain = (text) => say(text).toLowerCase().replace(/[_\-/]+/g, " ");
    const words = plain(this.filterText).split(/\s+/).filter(Boolean), { classes } = this.state;
    if (!words.length && !this.many) return classes;
    const places = words.length ? this.probable : this.ranked, order = ({ name }) => places.get(encode(name)) ?? places.size;
    const rank = ({ name }) => {  // a whole name, the begin of a word, or any part
      const text = plain(name);
      return text === words.join(" ") ? 0 : words.every((word) => ` ${text}`.includes(` ${word}`)) ? 1 : 2;
    };
    return classes.filter(({ name }) => words.every((word) => plain(name).includes(word)))
      .map((entry) => [words.length ? rank(entry) : 0, order(entry), entry]).sort(([a, x], [b, y]) => a - b || x - y).map(([, , entry]) => entry);
  }
  rankClasses() {  // the likely ones, then the last ones; the order stays while a text is shown
    const likely = this.hidden || !this.item ? [] : (this.item.top ?? []).map(([label]) => encode(label));
    const places = (ids) => new Map([...new Set(ids)].map((id, i) => [id, i]));
    const near = [...new Set([...likely.slice(0, MANY), ...this.used])].slice(0, MANY);
    this.ranked = places([...near, ...this.used.slice(0, MANY)]);
    this.probable = places([...likely, ...this.used]);
  }
  showClasses() {
    const { filter, classes } = this.ui, all = this.state.classes, item = this.item;
    filter.hidden = all.length <= MANY && !this.filtering;
    classes.setAttribute("role", this.several ? "group" : "radiogroup");
    classes.hidden = this.numeric;
    classes.dataset.columns = all.length > MANY ? "" : { 1: 1, 2: 2, 4: 2 }[all.length] ?? 3;
    this.root.classList.toggle("many", all.length > MANY);
    const shown = this.matches;
    const likely = new Map(this.hidden || !item ? [] : (item.top ?? []).map(([label, p]) => [encode(label), p]));
    const prediction = this.hidden || !item ? null : item.prediction, expected = new Set((Array.isArray(prediction) ? prediction : prediction === null ? [] : [prediction]).map(encode));
    const old = this.buttons;
    this.buttons = new Map(shown.map((entry, i) => {
      const id = encode(entry.name);
      const button = old.get(id) ?? h("button", { type: "button", role: this.several ? "checkbox" : "radio", onclick: () => this.choose(entry.name) });
      const p = likely.get(id), given = item !== null && item.label !== null && encode(item.label) === id;
      const checked = this.several ? this.selected.has(id) : given, predicted = expected.has(id);
      const key = this.many ? "123456789"[i] ?? "" : entry.key, accepts = predicted && !this.several && !this.many ? this.offerKey("prediction") : null;
      const look = encode([entry, p, checked, predicted, key, accepts]);
      if (button.look !== look) {
        button.look = look;
        button.title = entry.description;
        button.setAttribute("aria-checked", checked);
        button.classList.toggle("predicted", predicted);
        button.style.setProperty("--share", p ?? 0);
        hue(button, all.indexOf(entry));
        if (key) button.setAttribute("aria-keyshortcuts", key);
        else button.removeAttribute("aria-keyshortcuts");
        button.replaceChildren(
          key ? kbd(key) : "", h("span", { class: "name", dir: "auto", title: [say(entry.name), entry.description].filter(Boolean).join(": ") }, breakable(entry.name)),
          p >= 0.005 || accepts ? h("span", { class: "share" }, p >= 0.005 ? h("span", {}, h("span", { class: "sr" }, "predicted "), percent(p)) : null, accepts ? kbd(accepts) : null) : "");
      }
      button.tabIndex = i ? -1 : 0;
      button.classList.toggle("first", i === 0 && this.filterText.trim() !== "");
      return [id, button];
    }));
    const nodes = [...this.buttons.values()];
    if (this.many && !this.filterText) nodes.splice(MANY, 0, this.rule);
    if (nodes.length !== classes.children.length || nodes.some((node, i) => node !== classes.children[i])) classes.replaceChildren(...nodes);
    this.ui.nomatch.hidden = shown.length > 0 || !this.filterText;
  }
  showChosen(hint = "") {  // the row of Save
    const { ui } = this, names = this.several ? this.chosen : [];
    this.confirmed = false;
    ui.save.hidden = !this.several && !this.numeric;
    ui.field.hidden = !this.numeric;
    ui.chosen.textContent = hint || (names.length ? say(names) : this.several ? "Check the classes that apply." : "");
    if (hint) this.announce(hint);
  }
  moveFocus(event) {
    const all = [...this.buttons.values()], here = all.indexOf(event.target), last = all.length - 1;
    const to = { ArrowDown: here + 1, ArrowRight: here + 1, ArrowUp: here - 1, ArrowLeft: here - 1, Home: 0, End: last }[event.key];
    const next = all[to > last ? 0 : to < 0 ? last : to];
    all.forEach((button) => { button.tabIndex = button === (next ?? event.target) ? 0 : -1; });
    return moveTo(event, next);
  }

  // What is shown --------------------------------------------------------------------
  build() {
    const page = this.options.page, ui = (this.ui = {});
    const button = (text, action, key, extra = {}) =>
      h("button", { type: "button", onclick: action, "aria-keyshortcuts": key && key.toUpperCase(), ...extra }, key ? kbd(key) : null, text);
    const act = (text, action, key, extra) => button(text, () => { action(); if (!this.dialog.open) ui.text.focus(); }, key, extra);
    ui.source = h(page ? "h1" : "h3", { class: "source", dir: "auto" });
    ui.theme = button("Theme", () => this.setTheme({ auto: "light", light: "dark", dark: "auto" }[this.theme]), null, { class: "link theme" });
    ui.edit = button("Classes", () => this.openClasses());
    ui.guideButton = button("Guide", () => this.setGuide(!this.guided), null, { class: "wide", "aria-expanded": "false" });
    ui.check = button("Check", () => this.review());
    ui.disputed = button("Disagreements", () => this.walk("history", "", { only: "disputed" }, {}, "settled"), null, { class: "disputed", title: "Texts that people answered differently" });
    ui.nav = h("nav", { "aria-label": "Tools", onclick: () => this.setMenu(false) }, page ? ui.guideButton : null, button("History", () => this.openList("history")), ui.check, ui.disputed,
      button("Search", () => this.openList("search")), ui.edit, button("Quality", () => this.openQuality()), button("Help", () => this.openHelp(), "?"),
      this.options.finish ? button("Finish", () => this.openFinish(), null, { class: "finish" }) : null);
    ui.menu = button("Menu", () => this.setMenu(!this.root.classList.contains("menu-open")), null, { class: "menu", "aria-expanded": "false" });
    ui.bar = bar("Progress");
    ui.progress = h("span", {});
    ui.row = h("div", { class: "done" }, ui.bar, ui.progress);
    ui.estimate = h("p", { class: "estimate" });
    ui.fault = h("div", { class: "fault", role: "alert", hidden: true });
    ui.warning = h("div", { class: "warning", role: "alert", hidden: true });
    ui.status = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    ui.mode = h("div", { class: "mode", hidden: true });
    ui.older = h("p", { class: "older", hidden: true });
    ui.text = h("div", { class: "text", tabindex: "0", role: "region", "aria-label": "Text to label", "aria-live": "polite" });
    ui.columns = h("dl", { class: "columns", hidden: true });
    ui.card = h("div", { class: "card" }, ui.text, ui.columns);
    ui.recent = h("ol", { class: "recent", "aria-label": "Last answers" });
    ui.guide = h(page ? "aside" : "div", { class: "guide", "aria-label": "Guide", tabindex: "0" });
    ui.meanings = h("div", {});
    ui.guide.append(h("h2", {}, "Classes"), ui.meanings, this.addForm(() => ui.text.focus()));
    ui.ending = h("section", { class: "ending", "aria-label": "Result", hidden: true });
    ui.guess = h("div", { class: "guess" });
    this.buildStart();
    ui.filter = h("input", { type: "search", class: "filter", placeholder: "Type to find a class", "aria-label": "Find a class",
      autocomplete: "off", spellcheck: "false", oninput: () => { this.filterText = ui.filter.value; this.showClasses(); this.announce(plural(this.buttons.size, "class").replace("classs", "classes")); } });
    ui.classes = h("div", { class: "classes", role: "radiogroup", "aria-label": "Classes" });
    this.rule = h("hr", { class: "rule", "aria-hidden": "true" });
    ui.nomatch = h("p", { class: "note nomatch", hidden: true }, "No class matches.");
    ui.number = h("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
    ui.field = h("label", { class: "number" }, "Number", ui.number);
    ui.chosen = h("span", { class: "chosen", dir: "auto" });
    ui.save = h("div", { class: "save", hidden: true }, ui.field,
      h("button", { type: "button", class: "primary", "aria-keyshortcuts": "Enter", onclick: () => { this.submit(); ui.text.focus(); } }, kbd("Enter"), "Save"), ui.chosen);
    ui.flag = act("Flag", () => this.flag(), "f", { "aria-pressed": "false" });
    ui.note = act("Note", () => this.openNote(), "n");
    ui.undo = act("Undo", () => this.undo(), "u");
    ui.skip = act("Skip", () => this.skip(), "s");
    ui.why = act("Why", () => this.openWhy(), "w");
    ui.alike = act("Alike", () => this.openAlike(), "a", { title: "Label similar texts of one class at once" });
    ui.example = act("Example", () => this.takeExample(), "e", { "aria-pressed": "false", title: "Make the text, or what is selected of it, an example of its class" });
    ui.actions = h("div", { class: "actions" }, ui.undo, ui.skip, ui.flag, ui.note, ui.why, ui.alike, ui.example);
    ui.show = h("input", { type: "checkbox", onchange: () => this.setHidden(!ui.show.checked) });
    ui.annotator = button("", () => this.openName(), null, { class: "link" });
    ui.facts = h("span", {});
    ui.size = button("Text size", () => this.setSize({ 100: 125, 125: 150 }[this.size] ?? 100), null, { class: "link" });
    this.dialog = h("dialog", { onclose: () => { this.root.classList.remove("beside"); this.dialog.replaceChildren(); (this.opener?.isConnected ? this.opener : ui.text).focus(); } });
    ui.above = h("div", { class: "questions", hidden: true });
    ui.below = h("div", { class: "questions", hidden: true });
    this.main = h(page ? "main" : "div", { class: "work" }, ui.start, ui.ending, h("div", { class: "reading" }, h("div", { class: "alerts" }, ui.fault, ui.warning, ui.older), h("div", { class: "strip" }, ui.recent), ui.mode, ui.card),
      h("div", { class: "answering" }, ui.above, h("div", { class: "aid" }, ui.guess, ui.filter), ui.classes, ui.nomatch, ui.save, ui.below, ui.actions, this.dialog));
    this.root.classList.remove("ended", "starting", "many", "menu-open", "saving", "beside");
    this.root.classList.add("skactive");
    this.root.classList.toggle("skactive-whole", Boolean(page));
    if (!page) this.root.dataset.lmSuppressShortcuts = "true";  // those of JupyterLab
    this.root.replaceChildren(
      h(page ? "header" : "div", { class: "top" }, ui.source, ui.row, ui.menu, ui.nav), h("div", { class: "body" }, this.main, page ? ui.guide : null),
      h(page ? "footer" : "div", { class: "foot" }, ui.estimate, h("label", {}, ui.show, " Show predictions"), ui.theme, ui.annotator, ui.size, ui.facts), ui.status);
    this.setGuide(memory.get("guide") !== "closed", false);
    this.setHidden(this.hidden);
    this.setSize(Number(memory.get("size")) || 100);
  }
  setSize(size) {  // of the text, in percent
    this.size = size;
    if (size === 100) memory.remove("size");
    else memory.set("size", size);
    this.root.style.setProperty("--larger", size / 100);
    this.ui.size.textContent = `Text size: ${size} %`;
  }
  setMenu(open) {  // on a phone
    this.root.classList.toggle("menu-open", open);
    this.ui.menu.setAttribute("aria-expanded", open);
  }
  setGuide(open, remember = true) {  // the classes beside the text, on a wide window
    this.guided = open;
    this.root.classList.toggle("guided", open);
    this.ui.guideButton.setAttribute("aria-expanded", open);
    if (remember) memory.set("guide", open ? "open" : "closed");
  }
  setTheme(theme) {
    this.theme = theme;
    if (theme === "auto") memory.remove("theme");
    else memory.set("theme", theme);
    const look = theme === "auto" ? { true: "light", false: "dark" }[document.body.dataset.jpThemeLight] ?? "auto" : theme;  // of JupyterLab
    this.root.dataset.theme = look;
    if (this.options.page) document.documentElement.dataset.theme = look;
    this.ui.theme.textContent = `Theme: ${theme}`;
  }
  setHidden(hidden) {
    this.hidden = hidden;
    this.ui.show.checked = !hidden;
    memory.set("predictions", hidden ? "hidden" : "shown");
    if (this.state) { this.showItem(false); this.showRecent(); }
  }
  announce(text) {  // an old message is no news
    clearTimeout(this.forget);
    this.ui.status.textContent = text;
    if (text) this.forget = setTimeout(() => this.announce(""), 5000);
  }
  calm(event) { if (this.ui.warning.until === event) this.ui.warning.hidden = true; }
  warn(message, until = "") {  // the next "reply" or "answer"
    if (this.ended) return;
    const { warning } = this.ui;
    warning.until = until;
    warning.hidden = false;
    warning.replaceChildren(message, " ", h("button", { type: "button", class: "link", onclick: () => { warning.hidden = true; this.ui.text.focus(); } }, "Close"));
  }
  showFault() {
    const { fault } = this.ui, kept = this.outbox.entries.length, trouble = this.outbox.fault || (this.lost ? "No connection." : "");
    if (!kept) this.outbox.fault = "";
    const reason = this.stopped === null || !this.lost ? trouble : this.stopped ? "The session was finished." : "The program that shows this page was stopped.";
    const text = kept && trouble ? `${reason} ${plural(kept, "answer")} kept in this browser, not yet stored. Trying again …`
      : this.ended ? "" : this.lost ? `${reason} ${this.stopped ? "All answers are stored. You can close this page." : "All answers are stored. The page goes on when it is back."}` : "";
    if (fault.textContent !== text) fault.textContent = text;
    fault.hidden = !text;
    fault.classList.toggle("calm", this.stopped === true && !kept);
  }
  showState() {
    const { state, ui } = this, { n_labels: wanted, n_labeled: done, model, suggestions } = state;
    ui.source.textContent = state.source || "Labeling";
    ui.annotator.textContent = `Annotator: ${this.annotator ?? state.annotator ?? "no name"}`;
    ui.annotator.disabled = state.coders?.length > 0;  // the link says who it is
    if (state.start) return ui.start.hidden && this.showStart();
    ui.bar.hidden = wanted === null;
    fill(ui.bar, done / (wanted || 1));
    ui.progress.textContent = `${this.question === undefined ? "" : `${this.question}: `}${wanted === null ? plural(done, "label") : `${done} of ${wanted}${done >= wanted ? ": goal reached" : ""}`}`;
    ui.estimate.textContent = ui.estimate.title = state.estimate;
    const agreement = suggestions?.compared ? `suggestions agree with ${suggestions.agreed} of ${suggestions.compared} answers (${percent(suggestions.low)} to ${percent(suggestions.high)})` : null;
    ui.facts.textContent = ui.facts.title = [
      model.error && `training failed: ${model.error}`,
      model.n_labels ? `model of ${plural(model.n_labels, "label")}${model.adapted ? `, tuned on ${model.adapted}` : ""}${model.training ? ", training …" : ""}` : model.training ? "a model is trained …" : null,
      model.encoded < 1 ? `${percent(model.encoded)} of the texts read` : null,
      state.random_only ? "random texts only" : null, state.n_skipped ? `${state.n_skipped} skipped` : null, state.n_flagged ? `${state.n_flagged} flagged` : null, agreement,
    ].filter(Boolean).join(" · ");
    if (this.options.page) document.title = `${wanted === null ? done : `${done}/${wanted}`} ${state.source || "Labeling"}`;
    if (ui.start.hidden === this.starting) this.showStart();
    this.showKeys();
    this.showQuestions();
    this.showRecent();
    this.showGuide();
    this.showClasses();
    this.showOlder();
    if (!this.item) this.showItem(false);
  }
  showItem(isNew = true, focus = this.hasFocus()) {
    const { item, ui } = this;
    if (!this.state) return;
    ui.edit.hidden = this.numeric;
    if (isNew || item?.top !== this.rankedFor) this.rankClasses();
    this.rankedFor = item?.top;
    if (isNew) {
      const label = item?.label ?? null;
      this.selected = new Set(Array.isArray(label) && !this.settling ? label.map(encode) : []);
      this.setExample("");
      ui.number.value = "";
      this.showChosen();
      this.since = performance.now();
      if (this.filterText || this.filtering) this.clearFilter();
      const texts = item === null ? [] : Array.isArray(item.text) ? item.text : [item.text];
      const whole = texts.length === 1 && item.read ? Array.from(texts[0]).length : 0;
      ui.text.replaceChildren(...whole > item?.read ? [h("p", { class: "note cut" }, `The model reads the first ${item.read.toLocaleString("en")} of ${plural(whole, "character")}.`)] : [], ...texts.map((text) => h("p", { dir: "auto" }, unread(text, item.read ?? null))));
      const columns = Object.entries(item?.columns ?? {});
      ui.columns.hidden = !columns.length;
      ui.columns.replaceChildren(...columns.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, /^https?:\/\/\S+$/.test(value) ? h("a", { href: value, target: "_blank", rel: "noreferrer" }, value) : value))));
      ui.text.scrollTop = 0;
      if (focus && !this.dialog.open && !this.starting) ui.text.focus({ preventScroll: true });
    }
    if (item === null) {
      ui.text.replaceChildren(h("p", { class: "note" }, this.state.done ? "No text is left to label." : this.lost ? "The next text comes when the connection is back." : "The next text is being chosen …"));
    }
    ui.mode.hidden = !this.visiting;
    this.showOlder();
    if (this.visiting) this.showMode(item);
    const accept = (name, label, extra, source) => h("button", { type: "button", class: source, title: this.tell(label), onclick: () => { this.answer(label); ui.text.focus(); } },
      kbd(this.offerKey(source)), `${name} `, h("b", { dir: "auto" }, this.tell(label)), extra);
    const onButton = !this.several && !this.numeric;  // the class's own button shows the prediction
    const offered = { prediction: () => !onButton && accept(item.held_out ? "Model without it:" : "Prediction:", item.prediction, item.probability === null ? "" : ` ${percent(item.probability)}`, "prediction"),
      suggestion: () => accept("Suggestion:", item.suggestion, "", "suggestion") };
    const none = h("span", { class: "note" }, this.hidden ? "Predictions are hidden." : item?.blind ? BLIND : item && "No prediction yet.");
    ui.guess.replaceChildren(...this.settling ? [h("span", { class: "note" }, "Choose an answer above, or a class.")] : this.offers.length ? this.offers.map(([source]) => offered[source]()).filter(Boolean) : [none]);
    ui.flag.setAttribute("aria-pressed", Boolean(item?.flag));
    ui.note.classList.toggle("set", Boolean(item?.note));
    ui.note.title = item?.note ?? "";
    this.showQuestions();
    this.showClasses();
  }
  showRecent() {  // the last answers, the newest at the text
    const { recent } = this.ui, focused = recent.contains(document.activeElement), entries = [...(this.state.recent ?? [])].reverse();
    const place = new Map(this.state.classes.map(({ name }, i) => [encode(name), i])), look = encode([entries, this.hidden, [...place.keys()]]);
    if (recent.look === look) return;
    recent.look = look;
    recent.hidden = !entries.length;
    recent.replaceChildren(...entries.map((entry, i) => {
      const { label, predicted } = entry, missed = label !== null && predicted !== null && encode(label) !== encode(predicted);
      const [first] = Array.isArray(label) ? label : [label];
      return h("li", {}, hue(h("button", { type: "button", tabindex: i === entries.length - 1 ? "0" : "-1", onclick: () => this.correct(entry.id) },
        h("b", { class: "hued", dir: "auto" }, label === null ? "skipped" : this.numeric ? short(label) : say(label)), h("span", { class: "excerpt", dir: "auto" }, brief(entry.text)),
        missed && !this.hidden ? h("span", { class: "note" }, "the model said ", h("span", { dir: "auto" }, this.numeric ? short(predicted) : say(predicted))) : null), label === null ? -1 : place.get(encode(first)) ?? -1));
    }));
    if (focused) recent.lastElementChild?.firstChild.focus();
  }
  moveInRecent(event) {
    const all = [...this.ui.recent.querySelectorAll("button")], here = all.indexOf(event.target);
    return moveTo(event, { ArrowUp: all[here - 1] ?? all[0], ArrowDown: all[here + 1] ?? this.ui.text, Escape: this.ui.text }[event.key]);
  }
  async correct(id) {
    const item = await this.ask("item", { id });
    if (item) this.visit(item);
  }
  showGuide() {  // what the classes mean, and how many texts have them
    const { guide } = this.ui;
    this.ui.guideButton.hidden = guide.hidden = this.numeric || this.starting;
    this.listClasses(this.ui.meanings);
  }
  describeClasses(root = null) {  // of a root that can be edited, or of none
    return h("dl", { class: "meanings" }, this.state.classes.map((entry, i) => {
      const { key, name, description, examples, taken, count, share } = entry, all = [...examples, ...taken];
      const row = hue(h("div", {},
        h("dt", {}, h("b", { dir: "auto" }, key && !this.many ? kbd(key) : null, breakable(name)), h("span", { class: "note", title: share && "Labels, and the share of all texts" }, plural(count, "label"), share ? ` · ${about(share)}` : ""),
          root && h("button", { type: "button", class: "link", "aria-label": `Edit ${say(name)}`, onclick: () => this.editClass(entry, root, row) }, "Edit")),
        description || all.length ? h("dd", { dir: "auto" }, description, all.map((text) => h("q", { dir: "auto" }, text))) : null), i);
      return row;
    }));
  }

  // The codebook ---------------------------------------------------------------------
  listClasses(root) {  // what the classes mean; what is being edited stays
    const look = encode(this.state.classes);
    if (root.look === look || root.querySelector(".edit")) return;
    root.look = look;
    root.replaceChildren(this.describeClasses(root));
  }
  addForm(done = () => {}) {
    const field = h("input", { type: "text", autocomplete: "off", placeholder: "name: description" });
    return this.form("New class", "", async (text) => {
      const typed = parseClasses(text, this.state.classes.map(({ name }) => say(name)));
      for (const [name, about] of typed) {
        const error = await this.add(name, about);
        if (error) return error;
      }
      if (!typed.size) return "A class needs a name.";
      field.value = "";
      done();
      return false;  // for the next one
    }, "Add the class", field);
  }
  editClass(entry, root, row) {  // a form in the place of a class
    const { name, description, count } = entry, { classes, closed } = this.state, at = classes.findIndex((other) => encode(other.name) === encode(name)), left = { examples: [...entry.examples], taken: [...entry.taken] };
    const field = h("input", { type: "text", autocomplete: "off" }), words = h("textarea", { rows: "3", placeholder: "What belongs here, and what does not" }), fails = failure();
    const place = h("select", {}, classes.map((_, i) => h("option", { value: i, selected: i === at }, String(i + 1))));
    const close = () => {
      root.replaceChildren();
      root.look = "";
      this.listClasses(root);
      if (this.dialog.contains(root)) root.querySelector(`[aria-label="${CSS.escape(`Edit ${say(name)}`)}"]`)?.focus();
      else this.ui.text.focus();
    };
    const change = async (method, args, message) => {
      const error = await this.change(method, args, message);
      showFailure(fails, error);
      if (!error) close();
    };
    const save = (event) => {
      event.preventDefault();
      const next = this.parse(field.value), text = words.value.trim(), args = {};
      if (encode(next) !== encode(name)) args.new = next;
      if (text !== description) args.description = text;
      for (const key of ["examples", "taken"]) if (left[key].length < entry[key].length) args[key] = left[key];
      if (Number(place.value) !== at) args.place = Number(place.value);
      if (!Object.keys(args).length) return close();
      return change("edit_class", { name, ...args }, "new" in args ? `Renamed ${say(name)} to ${say(next)}.` : `Changed ${say(name)}.`);
    };
    const examples = ["examples", "taken"].flatMap((key) => entry[key].map((text) => {
      const line = h("li", { class: "row" }, h("q", { dir: "auto" }, text), h("button", { type: "button", class: "link", "aria-label": `Remove the example ${text}`, onclick: () => { left[key].splice(left[key].indexOf(text), 1); line.remove(); words.focus(); } }, "Remove"));
      return line;
    }));
    const onKey = (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && event.ctrlKey) save(event);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    const merges = h("p", { class: "note", role: "status", hidden: true }, "The two classes become one.");
    field.addEventListener("input", () => { merges.hidden = !classes.some((other, i) => i !== at && encode(other.name) === encode(this.parse(field.value))); });
    field.value = say(name);
    words.value = description;
    row.replaceChildren(h("dt", {}, h("b", { dir: "auto" }, breakable(name))), h("dd", {}, h("form", { class: "edit", onsubmit: save, onkeydown: onKey },
      h("label", {}, "Name", field), merges, h("label", {}, "Description", words), examples.length ? h("ul", { class: "list" }, examples) : null, fails,
      h("div", { class: "line" }, closed ? h("label", { class: "line" }, "Place", place) : null, h("button", { type: "submit", class: "primary" }, "Save"), h("button", { type: "button", onclick: close }, "Cancel"),
        count ? null : h("button", { type: "button", "aria-label": `Delete ${say(name)}`, onclick: () => change("remove_class", { name }, `Deleted the class ${say(name)}.`) }, "Delete")))));
    (description ? field : words).focus();
    row.scrollIntoView({ block: "nearest" });
  }
  setExample(text) {  // what the next answer makes an example
    this.example = text;
    this.ui.example.setAttribute("aria-pressed", Boolean(text));
  }
  async takeExample() {
    const { item, state } = this, selection = getSelection();
    if (!item) return;
    const part = this.ui.text.contains(selection.anchorNode) ? selection.toString().trim() : "", text = (part || [item.text].flat().join("\n\n")).trim().slice(0, MOST_EXAMPLE);
    if (item.label === null) {
      this.setExample(this.example ? "" : text);
      return this.announce(this.example ? "The text becomes an example of the class that you answer." : "The text becomes no example.");
    }
    for (const { name, taken } of state.classes.filter((entry) => [item.label].flat().some((label) => encode(label) === encode(entry.name)))) {
      const on = !taken.includes(text), error = await this.change("edit_class", { name, taken: on ? [...taken, text] : taken.filter((other) => other !== text) }, `${on ? "An" : "No"} example of ${say(name)}.`);
      if (error) this.warn(error);
    }
  }
  // The end --------------------------------------------------------------------------
  end(result = this.result ?? {}) {  // what was written; nothing else can be done
    this.ended = true;
    this.result = result;
    const { ui, state } = this, { steps = [], done, error, n_labeled: n = state?.n_labeled ?? 0 } = result, first = ui.ending.hidden;
    const over = done || (this.stopped && !steps.length), words = error ? "The result is not complete" : over ? "Finished" : "Writing the result …";
    const advice = over ? "You can close this page." : "Leave the program running; it goes on without this page.";
    if (first) {
      this.root.classList.add("ended");
      ui.warning.hidden = true;
      this.setMenu(false);
      this.dialog.close();
      ui.ending.hidden = false;
      ui.source.textContent ||= result.source ?? "Labeling";
      ui.ending.replaceChildren(h("h2", { tabindex: "-1" }), h("p", { role: "status" }), h("ul", { class: "steps" }), h("div", {}));
    }
    const [title, about, list, details] = ui.ending.children;
    const copies = (result.sources?.person ?? n) - n, waits = this.waiting(), also = copies > 0 ? ` They also label ${copies === 1 ? "1 copy" : `${copies} copies`} of these texts.` : "";
    const sentence = `${plural(n, "label")} by people ${n === 1 ? "is" : "are"} stored.${also} ${result.accuracy ?? ""} ${waits ? `Left as they are: ${waits}. ` : ""}${error ?? advice}`;
    if (title.textContent !== words) title.textContent = words;
    if (about.textContent !== sentence) about.textContent = sentence;
    list.hidden = Boolean(done);
    list.replaceChildren(...steps.map(({ name, share, seconds, past }) => h("li", { class: past ? "past" : "" }, h("span", {}, name),
      past || error ? null : [fill(bar(name), share), h("span", { class: "note" }, share === null ? `${seconds} s` : percent(share))])));
    const parts = Object.entries(result.questions ?? {});
    if (!parts.length) this.showWritten(details, result);
    else if (details.children.length !== parts.length) details.replaceChildren(...parts.map(([name]) => h("section", {}, h("h3", { dir: "auto" }, name), h("div", {}))));
    parts.forEach(([, part], i) => this.showWritten(details.children[i].lastChild, part));
    if (first && this.options.page) title.focus();
    this.showFault();
  }
  showWritten(root, result) {  // files, commands and counts
    const { classes = [], sources, file, codebook, card, model, predict, command } = result, look = encode([result.done, classes, sources, file, codebook, card, model, predict, command]);
    if (root.look === look) return;
    root.look = look;
    const copy = async ({ target }, text) => {
      try { await navigator.clipboard.writeText(text); this.announce("Copied."); } catch { getSelection().selectAllChildren(target.previousSibling); }
    };
    const line = (words, text) => (text ? [h("dt", {}, words), h("dd", {}, h("code", { dir: "ltr" }, text), h("button", { type: "button", "aria-label": `Copy: ${words}`, onclick: (event) => copy(event, text) }, "Copy"))] : []);
    const columns = [["person", "by people"], ["given", "given"], ["model", "predicted"]];
    const row = (name, counts, place) => hue(h("tr", {}, h("th", { scope: "row" }, h("span", { class: place < 0 ? "" : "hued", dir: "auto" }, breakable(name))), columns.map(([source]) => h("td", {}, source === "model" && !result.done ? "…" : (counts[source] ?? 0).toLocaleString("en")))), place);
    root.replaceChildren(h("dl", {}, line("The labeled table", file), line("The codebook", codebook), line("The card for a paper", card), line("The model", model), line("Predict another file", predict), line("Continue: the same command goes on where you stopped", command)),
      sources ? h("table", {}, h("thead", {}, h("tr", {}, ["Texts", ...columns.map(([, words]) => words)].map((words) => h("th", { scope: "col" }, words)))),
        h("tbody", {}, classes.map(({ name, ...counts }, i) => row(name, counts, i)), row("All", sources, -1))) : "");
  }
  hasFocus() { return this.options.page || this.root.contains(document.activeElement); }

  // Dialogs --------------------------------------------------------------------------
  open(title, ...content) {
    const { activeElement } = document, named = this.question === undefined ? title : `${title}: ${this.question}`, beside = content.at(-1) === true && content.pop();  // what the mouse pressed must not get the next Space
    if (!this.dialog.open) this.opener = activeElement?.matches(":focus-visible") ? activeElement : this.ui.text;
    const close = h("button", { type: "button", onclick: () => this.dialog.close() }, "Close");
    this.dialog.setAttribute("aria-label", named);
    this.dialog.replaceChildren(h("div", { class: "title" }, h("h2", { dir: "auto" }, named), close), ...content.filter(Boolean));
    this.relist = null;
    this.root.classList.toggle("beside", beside);
    if (!this.dialog.matches(":modal")) {
      this.dialog.removeAttribute("open");  // of another kind
      this.dialog[beside ? "show" : "showModal"]();
    }
    this.dialog.querySelector("[autofocus]")?.focus();
  }
  openBeside(title, ...content) { this.open(title, ...content, true); }  // in place of the answers: the text stays in sight
  form(label, value, action, submit, field = h("input", { type: "text", autocomplete: "off", autofocus: true })) {
    if (value !== null) field.value = value;
    const fails = failure();
    const send = async (event) => {
      event?.preventDefault();
      const error = await action(field.value);
      showFailure(fails, error);
      if (!error && error !== false) this.dialog.close();
    };
    field.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) send(event); });
    return h("form", { onsubmit: send }, h("label", {}, label, field), fails, h("button", { type: "submit", class: "primary" }, submit, field.matches("textarea") ? kbd("Ctrl+Enter") : null));
  }
  openNote() {
    const { item } = this;
    if (!item) return;
    const field = h("textarea", { rows: "3", autofocus: true });
    this.openBeside("Note", this.form("A note on this text", item.note, (text) => { this.mark("note", { text }, text.trim() ? "The note was saved." : "The note was removed.", { item }); }, "Save", field));
  }
  openName() {
    const save = async (name) => {
      if (!(await this.outbox.flush())) return "Some answers are not stored yet.";
      memory.tab(this.scope, name.trim());
      this.options.restart();
      return false;
    };
    this.open("Annotator", this.form("Your name; it is stored with every answer", this.annotator ?? this.state.annotator ?? "", save, "Save"));
  }
  openHelp() {
    const { state } = this, offers = this.offers.length, explains = state.model.n_labels > 0 && this.item !== null && !this.item.blind;
    const works = { answer: !this.numeric, number: this.numeric, find: !this.numeric, save: this.several || this.numeric || this.reviewing, accept: offers > 0, other: offers > 1, undo: state.undo !== null,
      why: explains, example: !this.numeric, alike: explains && !this.numeric, recent: state.recent.length > 0, back: this.visiting !== null || this.selected.size > 0 };  // now
    const keys = Object.entries(state.commands).filter(([name]) => this.keysOf(name)[0] && (works[name] ?? true))
      .map(([name, words]) => [(name === "answer" && !this.many ? state.classes.map(({ key }) => key) : this.keysOf(name)).map((key) => key.replace(/^[a-z]$/, (letter) => letter.toUpperCase())), words[3]]);
    this.open("Help", h("h3", {}, "Keys"), h("dl", { class: "keys" }, keys.map(([all, what]) => [h("dt", {}, all.map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
      this.numeric ? null : h("h3", {}, "Classes"), this.numeric ? null : this.describeClasses());
  }
  waiting() {  // what nobody has looked at, in words
    const { n_doubtful: doubtful = 0, n_disputed: disputed = 0, n_skipped: skipped = 0, n_flagged: flagged = 0 } = { ...this.state, ...this.result };
    return [doubtful && plural(doubtful, "doubtful answer"), disputed && plural(disputed, "disagreement"), skipped && `${skipped} skipped`, flagged && `${flagged} flagged`].filter(Boolean).join(", ");
  }
  async openFinish() {
    const finish = async () => {
      if (!(await this.outbox.flush())) return "Some answers are not stored yet.";
      if ((await this.ask("finish")) === undefined) return "The session was not finished.";
      this.end();
    };
    const words = `${plural((this.state.questions ?? [this.state]).reduce((n, { n_labeled }) => n + n_labeled, 0), "label")} stored. Finish now? It ends for everyone, and the result is written.`, waits = this.waiting();
    const about = h("p", { role: "status" });
    this.open("Finish", about, waits ? h("p", {}, `Still waiting: ${waits}.`) : null, this.form(words, null, finish, "Finish", h("span", {})));
    this.dialog.querySelector("button.primary").focus();
    const { sentence: good = "", minutes = null } = await this.query("quality", {});
    about.textContent = `${good.replace(/\.?$/, ".")} ${minutes === null ? "" : `Finishing takes about ${minutes < 1.5 ? "a minute" : `${Math.round(minutes)} minutes`}.`}`;
  }
  parse(text) { return this.state.classes.length && this.state.classes.every(({ name }) => typeof name === "number") && text.trim() && !isNaN(text) ? Number(text) : text.trim(); }
  async add(text, about = {}) {  // one class, or an error; words about a known one are new
    const name = this.parse(text);
    if (name === "") return "A class needs a name.";
    const like = this.state.classes.find((entry) => say(entry.name).toLowerCase() === text.trim().toLowerCase());
    if (like && about.description) return this.change("edit_class", { name: like.name, description: about.description }, `Changed ${say(like.name)}.`);
    if (like) return `There is already a class ${say(like.name)}.`;
    return this.change("add_class", { name, ...about }, `Added the class ${text.trim()}.`);
  }
  get typed() { return parseClasses(this.ui.start.querySelector("textarea").value, this.state.start?.names); }
  get asked() {  // the questions of the first screen
    const { ui } = this, further = [...ui.further.children].map((part) => [...part.querySelectorAll("input, select, textarea")]);
    return [[ui.name, { value: this.kind }, ui.start.querySelector("label > textarea")], ...further].map(([name, { value: kind }, field], i) => {
      const typed = kind === "regression" ? new Map() : parseClasses(field.value, i ? [] : this.state.start?.names);
      return { name: name.value.trim(), kind, typed, fields: { name, field } };
    });
  }
  findFault(asked) {  // what a person must change first, or undefined
    for (const [i, { name, kind, typed, fields }] of asked.entries()) {
      const fault = (field, words) => { field.focus(); return words; }, same = asked.findIndex((other) => other.name.toLowerCase() === name.toLowerCase());
      if (!name) return fault(fields.name, `Type a name for question ${i + 1}.`);
      if (same < i) return fault(fields.name, `Type another name for question ${i + 1}: question ${same + 1} is called ${asked[same].name}, too.`);
      if (name.includes(":")) return fault(fields.name, `Type a name without a colon for question ${i + 1}.`);
      if (kind !== "regression" && typed.size < 2) return fault(fields.field, `Type at least two classes for ${name}.`);
    }
    return undefined;
  }
  addQuestion() {
    const { ui } = this, name = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const leave = (part) => { part.remove(); ui.start.refresh(); ui.add.focus(); };
    const onkeydown = (event) => { if (event.key === "Enter" && event.ctrlKey) ui.start.requestSubmit(); };
    ui.further.append(h("fieldset", { class: "further" }, h("legend"), h("label", {}, "Name", name), h("label", {}, "Kind", h("select", {}, KINDS.map(([value, words]) => h("option", { value }, words)))),
      h("button", { type: "button", class: "link", onclick: (event) => leave(event.target.parentElement) }, "Remove"), h("label", {}, "Classes, separated by commas or one per line", h("textarea", { rows: "2", spellcheck: "false", onkeydown }))));
    ui.start.refresh();
    ui.add.scrollIntoView({ block: "nearest" });
    name.focus();
  }
  get kind() { return this.ui.start.querySelector("input[type=radio]:checked")?.value ?? this.state.target; }
  async begin() {  // with at least two classes
    const { typed, kind } = this, known = this.state.classes.map(({ name }) => say(name)), asks = Boolean(this.state.start);
    const names = [...typed.keys()].filter((name) => asks || !known.includes(name)), goal = this.ui.goal.value.trim();
    if (kind !== "regression" && names.length + (asks ? 0 : known.length) < 2) return "Type at least two classes.";
    const { asked } = this, fault = asks && asked.length > 1 && this.findFault(asked);
    if (fault) return fault;
    if (asks && !/^[1-9]\d*$/.test(goal)) return "The goal is a number of labels, such as 200.";
    if (asks) {
      const [first, ...more] = asked.map(({ name, kind: its, typed: words }) => ({ name, kind: its, classes: Object.fromEntries([...words].map(([word, about]) => [word, about.examples.length ? about : about.description])) }));
      const error = await this.change("begin", { ...first, more, n_labels: Number(goal) }, "Ready. Answer with the keys.");
      if (!error && more.length) await this.refresh();  // the other questions
      return error;
    }
    for (const name of names) {
      const error = await this.add(name, typed.get(name));
      if (error) return error;
    }
    return false;
  }
  onStartKey(event) {  // Enter starts after commas, or on an empty line
    const { value, selectionStart: end, form } = event.target;
    const onLine = value.slice(0, end).split("\n").pop().trim();
    if (event.key !== "Enter" || event.shiftKey || (onLine && (value.trim().includes("\n") || this.typed.size < 2))) return;
    event.preventDefault();
    form.requestSubmit();
  }
  buildStart() {
    const { ui } = this;
    const show = () => {
      ui.names.replaceChildren(...[...this.typed.keys()].map((name, i) => hue(h("li", { class: "hued", dir: "auto" }, name), i)));
      ui.start.classList.toggle("numbers", this.kind === "regression");
      ui.naming.hidden = !ui.further.children.length;
      for (const [i, part] of [...ui.further.children].entries()) {
        part.querySelector("legend").textContent = `Question ${i + 2}`;
        part.querySelector("button").setAttribute("aria-label", `Remove question ${i + 2}`);
      }
    };
    ui.names = h("ul", { class: "names", "aria-label": "Classes so far" });
    ui.name = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    ui.naming = h("label", { class: "naming", hidden: true }, "Name of question 1", ui.name, h("span", { class: "note" }, "The names are those of the columns in the labeled table."));
    ui.further = h("div");
    ui.add = h("button", { type: "button", class: "add", onclick: () => this.addQuestion() }, "Add a question");
    ui.kinds = h("fieldset", { class: "kinds", onchange: show }, h("legend", {}, "What is asked about each text?"),
      KINDS.map(([value, words], i) => h("label", {}, h("input", { type: "radio", name: "kind", value, checked: i === 0 }), words)));
    ui.goal = h("input", { type: "text", inputmode: "numeric", value: "200", autocomplete: "off" });
    ui.start = this.form("Which classes? Separate them by commas, or write one per line.", "", () => this.begin(), "Start",
      h("textarea", { rows: "4", spellcheck: "false", oninput: show, onkeydown: (event) => this.onStartKey(event) }));
    const [label, fails, button] = ui.start.children;
    label.append(h("span", { class: "note asked" }, "People and the model read a description: “refund: wants the money back”."));
    ui.goals = h("label", { class: "goal" }, "Labels to reach", ui.goal);
    ui.samples = h("div", { class: "samples" });
    ui.start.replaceChildren(h("h2", {}, "What do you want to find out?"), ui.samples, ui.naming, ui.kinds, label, ui.names, ui.further, ui.add, h("div", { class: "go" }, fails, ui.goals, button));
    ui.start.classList.add("start");
    ui.start.hidden = true;
    ui.start.refresh = show;
  }
  showStart() {  // the first screen
    const { state, ui } = this, { start } = state;
    ui.start.hidden = !this.starting;
    this.root.classList.toggle("starting", this.starting);
    ui.card.hidden = Boolean(start);
    ui.add.hidden = !start?.name;
    for (const element of [ui.kinds, ui.goals, ui.start.querySelector(".asked")]) element.hidden = !start;
    if (start) {
      for (const input of ui.kinds.querySelectorAll("input")) input.parentElement.hidden = !start.kinds.includes(input.value);
      ui.kinds.querySelector(`[value="${start.kinds[0]}"]`).checked = true;
      ui.goal.value = start.n_labels ?? 200;
      ui.name.value ||= start.name ?? "";
      ui.samples.replaceChildren(h("p", { class: "note" }, `The first of ${plural(state.n_pool, "text")}:`), ...start.texts.map((text) => h("blockquote", { dir: "auto" }, brief(text))));
      const field = ui.start.querySelector("textarea");
      if (!field.value) field.value = start.names.map((name) => `${name}\n`).join("");
      ui.start.refresh();
    }
    if (this.hasFocus() && !this.dialog.open) (this.starting ? ui.start.querySelector("textarea") : ui.text).focus();
  }
  openClasses() {
    const root = h("div", {}), show = () => this.listClasses(root), form = this.addForm(show);
    show();
    this.openBeside("Classes", root, form);
    form.querySelector("input").focus();
    this.relist = show;
  }
  async change(method, args, message) {  // text is an error
    const state = await this.query(method, { ...args, annotator: this.annotator });
    if (state.error) return state.error;
    this.setState(state);
    this.announce(message);
    this.refill("new" in args);
  }
  // Modes: texts one after another, and lists -----------------------------------------
  get walking() { return this.visiting !== null && this.series?.way === "review"; }
  get reviewing() { return this.walking && this.visiting.label !== null; }
  async following(series = this.series) {  // the next text of a series, or null; the one behind it is fetched as well
    const load = (entry) => entry && (entry.text === undefined ? (entry.loads ??= this.ask("item", { id: entry.id, held_out: true })) : entry);
    const next = await load(series?.items.shift());
    if (next) load(series.items[0]);
    else this.series = null;
    return next ?? null;
  }
  async startSeries(way, items, words) {  // a series of texts, or of their ids
    const series = { way, items, words, total: items.length }, first = await this.following(series);
    if (first) this.visit(first, series);
  }
  async walk(kind, query, where, ways = {}, way = "review") {  // all texts of a list, one after another
    const found = await this.ask(kind, { query, where, only_ids: true, ...ways });
    if (found?.items.length) await this.startSeries(way, found.items);
  }
  showOlder() {  // answers that a new class may fit, or that a description may change
    const { older } = this.state, { ui } = this, look = encode(older), about = older && encode([older.name, older.described]), name = (label) => h("b", { dir: "auto" }, say(label));
    ui.older.hidden = !older || this.visiting !== null || about === this.dismissed;
    if (!older || ui.older.look === look) return;
    ui.older.look = look;
    const { n_items: n, n_likely: likely, n_blind: blind } = older, close = () => { this.dismissed = about; this.showOlder(); ui.text.focus(); };
    const first = `the ${likely} ${older.described ? "that the model would change" : "that the model takes for it"}${blind ? ` and ${blind} drawn at random` : ""}`;
    ui.older.replaceChildren(h("span", {}, `${n.toLocaleString("en")} `, older.label === null ? "" : [name(older.label), " "], n === 1 ? "answer is" : "answers are", older.described ? " older than the description of " : " older than ", name(older.name), "."),
      h("button", { type: "button", class: "link", onclick: () => this.walk("history", "", { before: older.name, ...older.label === null ? {} : { label: older.label } }) }, likely ? `Look through them, ${first} first` : "Look through them"), h("button", { type: "button", class: "link", onclick: close }, "Not now"));
  }
  async query(method, args) {  // the content, or what failed
    try {
      const { status, content } = await this.desk.call(method, this.signed(method, this.of(args)));
      return status < 400 ? content : { error: content.error };
    } catch (error) { return { error: explain(error) }; }
  }
  async review() {  // doubtful answers one after another
    const found = await this.query("check", { n_items: 100 }), { items = [], n_labels: n, computing, error } = found;
    if (items.length) return this.startSeries("review", items);
    this.open("Check", h("p", { role: "status" }, error ?? (n === null ? (computing ? "Looking for doubtful answers …" : "Answers are checked from the first model on.") : `No answer is doubtful, of ${plural(n, "label")}${computing ? "; they are checked again …" : "."}`)));
    this.relist = () => this.review();  // until there is one
  }
  keep() { return this.numeric && this.ui.number.value.trim() ? this.submit() : this.answer(this.item.label); }
  tell(label) { return this.numeric ? short(label) : say(label); }
  who({ annotator }) { return annotator === (this.annotator ?? this.state.annotator ?? null) ? "You" : annotator ?? "Somebody"; }
  showMode(item) {  // why an earlier text is shown
    const { series, ui } = this, name = (label) => h("b", { dir: "auto" }, this.tell(label));
    const place = series ? h("span", { class: "place" }, `${series.total - series.items.length} of ${series.total}`) : null;
    const labeled = item.label === null ? "This text is not labeled." : [`Labeled `, name(item.label), item.annotator ? ` by ${item.annotator}` : "", `. ${this.numeric ? "Type another number" : "Choose a class"} to correct it.`];
    const without = item.held_out && item.prediction !== null ? [". A model trained without this answer says ", name(item.prediction), item.probability === null ? "." : `, ${percent(item.probability)}.`] : ".";
    const key = (label) => this.keysOf(["accept", "other"][this.offers.findIndex(([, other]) => encode(other) === encode(label))] ?? "none")[0].replace(/^[a-z]$/, (letter) => letter.toUpperCase());
    const said = this.settling ? h("div", { class: "said" }, item.said.map(({ annotator, label, note }) => h("button", { type: "button", onclick: () => { this.answer(label); ui.text.focus(); } },
      key(label) ? kbd(key(label)) : null, h("span", { dir: "auto" }, annotator ?? "Somebody", ": "), name(label), note ? h("q", { class: "note", dir: "auto" }, note) : null))) : "";
    const what = this.settling ? ["These answers differ. What you choose counts from now on."] : this.reviewing ? [`${this.who(item)} said `, name(item.label), without] : series?.way === "more" ? ["The model takes this text for ", name(series.words), "."] : labeled;
    ui.mode.replaceChildren(h("span", { class: "what" }, place, ...[what].flat()), said,
      this.settling ? h("button", { type: "button", onclick: () => { this.skip(); ui.text.focus(); } }, kbd(this.keysOf("skip")[0].toUpperCase()), "Leave it open") : "",
      this.walking ? h("button", { type: "button", onclick: () => { if (this.reviewing) this.keep(); else this.skip(); ui.text.focus(); } }, kbd("Enter"), this.reviewing ? "Keep it" : "Next") : "",
      h("button", { type: "button", class: "link", onclick: () => { this.leave(); ui.text.focus(); } }, "Back ", kbd("Esc")));
  }
  showKeys() {
    const { ui } = this, count = this.state.n_doubtful, disputed = this.state.n_disputed;
    for (const name of ["skip", "undo", "flag", "note", "why", "alike"]) {
      const [key] = this.keysOf(name);
      ui[name].firstChild.textContent = key;
      ui[name].setAttribute("aria-keyshortcuts", { "→": "ArrowRight", "←": "ArrowLeft" }[key] ?? key.toUpperCase());
    }
    ui.alike.hidden = ui.example.hidden = this.numeric;
    if (ui.check.dataset.count !== String(count)) ui.check.replaceChildren("Check", count ? h("span", { class: "badge" }, h("span", { class: "sr" }, " "), String(count), h("span", { class: "sr" }, " doubtful answers")) : "");
    ui.check.dataset.count = count;
    ui.disputed.hidden = !disputed;
    ui.disputed.replaceChildren("Disagreements", h("span", { class: "badge" }, h("span", { class: "sr" }, " "), String(disputed)));
  }
  isBlind({ blind }) {  // says why nothing of the model is shown
    if (blind) this.announce(BLIND);
    return blind;
  }
  async openAlike() {  // many texts at once
    const { item } = this;
    if (!item || this.isBlind(item)) return;
    const note = h("p", { role: "status" }, "Looking for similar texts …");
    this.open("Alike", h("blockquote", { dir: "auto" }, brief(item.text)), note);
    const found = await this.query("similar", { id: item.id, n_items: 20 });
    if (!note.isConnected) return;
    if (!found.items?.length) return void (note.textContent = found.error ?? `No other text is taken for ${say(found.label)}.`);
    note.replaceChildren(`${plural(found.items.length, "text")} like this one that the model takes for `, h("b", { dir: "auto" }, say(found.label)), ". Uncheck the wrong ones, then press Enter.");
    const form = this.tickForm(found.items, found.label, () => this.dialog.close());
    note.after(form);
    form.querySelector("input").focus();
  }
  tickForm(items, label, done) {  // texts that get one label at once; a class is chosen or added if the label is null
    const since = performance.now(), list = h("ul", { class: "list ticks" }), save = h("button", { type: "submit", class: "primary" }), fails = failure(), id = newId();
    const into = h("input", { type: "text", list: id, autocomplete: "off", "aria-label": "Class", placeholder: "Class", hidden: label !== null, oninput: () => show() });
    const boxes = () => [...list.querySelectorAll("input")], count = () => boxes().filter((box) => box.checked).length, name = () => (label === null ? into.value.trim() : say(label));
    const show = () => { save.textContent = `Save ${count()}${name() && ` as ${name()}`}`; save.disabled = !count() || !name(); };
    list.replaceChildren(...items.map((other) => h("li", {}, h("label", {}, h("input", { type: "checkbox", checked: true, onchange: show }), h("span", { dir: "auto" }, brief(other.text)),
      label === null || other.probability === null ? null : h("span", { class: "note" }, percent(other.probability))))));
    list.addEventListener("keydown", (event) => {
      const all = boxes(), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) moveTo(event, all[all.indexOf(event.target) + step]);
    });
    const submit = async (event) => {
      event.preventDefault();
      const chosen = items.filter((_, i) => boxes()[i].checked), all = items.length;
      if (save.disabled) return;
      save.disabled = true;
      const known = this.state.classes.find((entry) => say(entry.name) === name()), own = label ?? known?.name ?? this.parse(name()), error = label === null && !known ? await this.add(name()) : null;
      showFailure(fails, error);
      if (error) return void (save.disabled = false);
      await this.answerAll(chosen.map(({ id: one }) => one), label === null && this.several ? [own] : own, (performance.now() - since) * chosen.length / all);
      done(chosen);
    };
    show();
    return h("form", { onsubmit: submit }, list, fails, h("div", { class: "line" }, into, h("datalist", { id }, this.state.classes.map((entry) => h("option", { value: say(entry.name) }))), save));
  }
  async openThemes() {  // groups of similar texts, to find classes
    const note = h("p", { role: "status" }, "Looking for groups of similar texts …"), list = h("div", { class: "themes" });
    this.open("Themes", note, list);
    const found = await this.query("themes", {});
    if (!note.isConnected) return;
    if (found.error) return void (note.textContent = found.error);
    note.textContent = "Groups of similar texts, by the features before any training. Open one to label its texts at once.";
    const most = (words, pairs) => (pairs.length ? h("span", { class: "note" }, `${words} ${pairs.map(([name, n]) => `${say(name)} ${n}`).join(", ")}`) : null);
    list.replaceChildren(...found.themes.map(({ size, words, labels, predictions, items }) => {
      const body = h("div", {}), fill = (left) => body.replaceChildren(left.length ? this.tickForm(left, null, (chosen) => fill(left.filter((item) => !chosen.includes(item)))) : h("p", { class: "note" }, "All of these have labels."));
      return h("details", { ontoggle: () => { if (!body.firstChild) fill(items); } }, h("summary", {}, h("b", { dir: "auto" }, words.join(", ") || "no common words"), " ", h("span", { class: "note" }, `${percent(size)} of the texts`), most("labels:", labels), most("predicted:", predictions)), body);
    }));
    list.querySelector("summary").focus();
  }
  async answerAll(ids, label, time) {  // one label for several texts, and one step for Undo
    const seconds = Math.round(time / 100) / 10;
    await this.outbox.add({ method: "answer_all", args: this.of({ ids, label, client: this.client, annotator: this.annotator, seconds, way: "bulk" }) });
    this.announce(`Saved: ${plural(ids.length, "text")} as ${say(label)}.`);
    this.refill();
  }
  async openWhy() {  // the words and the labeled texts behind a prediction
    const { item } = this;
    if (!item || this.isBlind(item)) return;
    const note = h("p", { role: "status" }, "Leaving out each word in turn …");
    this.open("Why", note);
    const found = await this.query("explain", { id: item.id });
    if (!note.isConnected) return;
    if (!found.items) return void (note.textContent = found.error);
    if (!item.held_out) { Object.assign(item, { prediction: found.prediction, probability: found.probability, top: found.top }); this.showItem(false); }  // of the newest model, here and there
    const texts = [item.text].flat(), most = Math.max(...found.words.map(([, , , fall]) => Math.abs(fall)), 0), some = this.numeric ? 0 : 0.01;
    const level = (fall) => (Math.abs(fall) < Math.max(some, most / 5) ? "" : fall < 0 ? "against" : fall > most / 2 ? "strong" : "weak");
    const letters = texts.map((text) => Array.from(text)), word = ([part, from, to]) => letters[part].slice(from, to).join("");  // Python counts characters
    const shown = letters.map((all, part) => {
      const own = found.words.filter(([number]) => number === part);
      return h("p", { dir: "auto" }, own.map((entry, i) => [word([part, i ? own[i - 1][2] : 0, entry[1]]), level(entry[3]) ? h("mark", { class: level(entry[3]) }, word(entry)) : word(entry)]), word([part, own.at(-1)?.[2] ?? 0]));
    });
    const best = found.words.filter(([, , , fall]) => level(fall) && fall > 0).sort((a, b) => b[3] - a[3]).filter((entry, i, all) => all.findIndex((other) => word(other) === word(entry)) === i).slice(0, 3);
    const marks = found.words.some((entry) => level(entry[3])) ? h("p", { class: "note" }, "Marked words speak for the prediction, underlined words against it.") : "";
    const without = (fall) => (this.numeric ? short(found.prediction - fall) : percent(Math.max(0, found.probability - fall)));
    note.replaceChildren("The model says ", h("b", { dir: "auto" }, this.tell(found.prediction)), found.probability === null ? "" : `${found.prediction.length > 1 && this.several ? ", on average" : ""} ${percent(found.probability)}`, ". ",
      ...(best.length ? best.flatMap((entry, i) => [i ? ", " : "Without ", h("b", { dir: "auto" }, word(entry)), `: ${without(entry[3])}`]) : [found.error || "No single word decides it."]), best.length ? "." : "");
    const near = found.items.map((other) => this.entry(other, "", `similarity ${percent(other.similarity)}`));
    note.after(h("div", { class: "why", tabindex: "0", role: "region", "aria-label": "The text" }, shown), marks, h("h3", {}, near.length ? "The most similar labeled texts" : "No labeled text to compare"), h("ul", { class: "list" }, near));
  }
  async openQuality() {
    const body = h("div", { class: "quality" }), doubtful = h("input", { type: "checkbox" }), fails = failure();
    const random = h("input", { type: "checkbox", onchange: async () => {
      showFailure(fails, await this.change("draw", { random_only: random.checked }, random.checked ? "All texts are drawn at random." : "The model chooses texts again."));
      await fill();
      random.focus();
    } });
    const share = (value) => h("td", { class: value ? "" : "note" }, value ? about(value) : "cannot tell yet");
    const fill = async () => {
      const found = await this.ask("quality");
      if (!found || !body.isConnected) return;
      const { accuracy, interval, curve } = found;
      random.checked = this.state.random_only;
      const missing = found.classes.filter((entry) => entry.missing).sort((a, b) => b.missing - a.missing).slice(0, 3);
      body.replaceChildren(...[h("p", { class: "sentence" }, found.sentence), accuracy === null ? null : range([accuracy, ...interval]),
        accuracy === null ? null : h("p", { class: "note" }, sentence(found.gain)),
        found.agreement ? h("p", { class: "agreement", dir: "auto" }, sentence(found.agreement)) : null,
        found.repeats ? h("p", {}, found.repeats) : null, curve.length > 1 ? this.drawCurve(curve) : null,
        this.state.random_only === null ? null : this.showShares(found),
        this.state.random_only === null ? null : h("label", { class: "line" }, random, "Random texts only: shares are soon exact, but the model learns less"),
        missing.length ? h("p", {}, `Label ${missing.map(({ name, missing: n }) => `${n} more of ${say(name)}`).join(", ")}: a class needs 10.`) : null,
        this.numeric ? null : h("table", {}, h("thead", {}, h("tr", {}, ["Class", "Labels", "Recall", "Precision", "Ask for it"].map((title) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, found.classes.map((entry) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, breakable(entry.name)), h("td", {}, entry.count.toLocaleString("en")), share(entry.recall), share(entry.precision),
            h("td", {}, h("button", { type: "button", onclick: () => this.more(entry.name, doubtful.checked, fails) }, entry.missing ? `${entry.missing} more` : "More", h("span", { class: "sr" }, ` of ${say(entry.name)}`))))))),
        fails, this.numeric ? null : h("label", { class: "line" }, doubtful, "Ask for doubtful texts of a class, not for likely ones"),
        this.numeric ? null : h("p", { class: "note" }, "Recall: the share of the texts of a class that the model finds. Precision: the share of what it takes for the class that is right. Both are of at least ten random texts. With 95 % confidence, all intervals of this table are right at once.")].filter(Boolean));
    };
    this.open("How good is it?", body);
    await fill();
    this.relist = () => { if (!body.contains(document.activeElement)) fill(); };
  }
  showShares({ classes, goal, why }) {  // how many texts of all are of each class
    const row = ({ name, share }, i) => hue(h("tr", {}, h("th", { scope: "row", class: "hued", dir: "auto" }, breakable(name)),
      h("td", { "aria-hidden": "true" }, share ? range(share) : ""), h("td", { class: share ? "" : "note" }, share ? about(share) : "cannot tell yet")), i);
    return h("section", {}, h("h3", {}, "How many texts are of each class?"), h("p", { class: "note" }, why && this.several ? `${sentence(why)} ` : "", sentence(goal), why ? "" : " In parentheses: the interval of 95 % for each share."),
      why ? null : h("table", { class: "shares" }, h("tbody", {}, classes.map(row))));
  }
  drawCurve(curve) {  // accuracy by labels
    const last = curve.at(-1)[0], x = (n) => (36 + 258 * (n / last)).toFixed(1), y = (p) => (8 + 84 * (1 - p)).toFixed(1);
    const line = (pick) => curve.map(([n, p, interval]) => `${x(n)},${y(pick(p, interval))}`);
    const words = `Accuracy after ${curve.map(([n, p]) => `${n} labels: ${percent(p)}`).join(", ")}`;
    return svg("svg", { viewBox: "0 0 300 112", class: "curve", role: "img", "aria-label": words },
      ...[0, 0.5, 1].flatMap((p) => [svg("line", { x1: 36, x2: 294, y1: y(p), y2: y(p) }), svg("text", { x: 30, y: Number(y(p)) + 3, "text-anchor": "end" }, percent(p))]),
      svg("polygon", { points: [...line((_, [low]) => low), ...line((_, [, high]) => high).reverse()].join(" ") }), svg("polyline", { points: line((p) => p).join(" ") }),
      ...curve.map(([n, p]) => svg("circle", { cx: x(n), cy: y(p), r: 2.2 })), ...(x(curve[0][0]) < 230 ? [svg("text", { x: x(curve[0][0]), y: 108, "text-anchor": "middle" }, String(curve[0][0]))] : []), svg("text", { x: 294, y: 108, "text-anchor": "end" }, `${last} labels`));
  }
  async more(label, doubtful, fails) {  // texts that the model takes for a class
    const found = await this.query("more", { label, doubtful, n_items: 20 });
    if (found.items?.length) return this.startSeries("more", found.items, label);
    showFailure(fails, found.error ?? "There is no such text.");
  }
  entry(item, query, extra, source) {  // of a list; it opens the text
    const soft = (text) => (text ? h("span", { class: "note" }, ` ${text}`) : null), ways = { bulk: "with others", more: "more of a class", review: "checked", settled: "settled" };
    return h("li", {}, h("button", { type: "button", class: "entry", onclick: () => this.visit(item) },
      item.label === null ? soft(this.listed === "history" ? "skipped" : "not labeled") : h("b", { dir: "auto" }, say(item.label)), soft(extra), item.flag ? " ⚑ flagged" : "", soft(item.annotator), soft(ways[item.way]),
      h("span", { class: "excerpt", dir: "auto" }, marked(item.text, query, source)), item.note ? h("span", { class: "note", dir: "auto" }, item.note) : null));
  }
  async openList(kind) {
    const search = kind === "search", since = performance.now(), list = h("ul", { class: "list rows" }), note = h("p", { class: "note", role: "status" }), checked = new Set();
    const kept = (this.lists[kind] ??= { text: "", fields: {}, n: 20, top: 0 });  // the same list comes back
    const more = h("button", { type: "button", hidden: true, onclick: () => fill(list.children.length) }, "More");
    const first = async () => { clearTimeout(wait); await fill(0); list.querySelector("button")?.click(); };
    const query = h("input", { type: "search", autofocus: true, value: kept.text, "aria-label": "Text to find", placeholder: "Text to find", onkeydown: (event) => { if (event.key === "Enter") first(); },
      oninput: () => { clearTimeout(wait); wait = setTimeout(() => fill(0), 150); } });
    const choose = (name, hidden, options, onchange = () => fill(0)) => h("select", { "aria-label": name, hidden, onchange }, options.map(([value, text]) => h("option", { value: value && encode(value) }, text)));
    const names = this.state.classes.map(({ name }) => [name, say(name)]), added = this.state.classes.filter(({ name }) => this.state.added.includes(name));
    const only = choose("Which", false, [["", "All texts"], ["flag", "Flagged"], ["note", "With a note"], search ? ["unlabeled", "Not labeled"] : ["skipped", "Skipped"], ...(this.state.n_doubtful ? [["doubtful", "Doubtful"]] : [])]);
    const before = choose("When", !added.length, [["", "Any time"], ...added.map(({ name }) => [name, `Before ${say(name)}`])]);
    const likely = choose("Fits", search || !added.length, [["", "Any prediction"], ...added.map(({ name }) => [name, `May be ${say(name)}`])]);
    const filters = { label: choose("Class", this.numeric, [["", "Every class"], ...names]), by: choose("Annotator", !kept.people, [["", "Everybody"], ...(kept.people ?? [])]), only, before, likely };
    const into = choose("Change to", true, [["", "Choose a class"], ...names], () => check()), change = h("button", { type: "button", class: "primary", hidden: true, onclick: async () => {
      await this.answerAll([...checked], JSON.parse(into.value), performance.now() - since);
      await fill(0);
      note.prepend(`${this.ui.status.textContent} Undo takes all of it back. `);
      query.focus();
    } });
    const all = h("input", { type: "checkbox", onchange: () => { for (const box of list.querySelectorAll("input")) box.checked = all.checked; check(); } });
    const through = h("button", { type: "button", hidden: true, onclick: () => this.walk(kind, query.value.trim(), where(), ways()) });
    const check = () => {  // several rows of one class
      checked.clear();
      for (const [i, box] of list.querySelectorAll("input").entries()) if (box.checked) checked.add(kept.items[i].id);
      into.hidden = change.hidden = !checked.size;
      change.disabled = !into.value;
      change.textContent = `Change ${checked.size}`;
      all.checked = checked.size > 0 && checked.size === list.children.length;
    };
    const how = choose("How", !search, [["", "Words"], ["regex", "Pattern"], ["meaning", "Meaning"]]), ways = () => (how.value ? { how: JSON.parse(how.value) } : {});
    const where = () => {
      const set = Object.entries(filters).filter(([, field]) => field.value);
      return set.length ? Object.fromEntries(set.map(([name, field]) => [name, JSON.parse(field.value)])) : null;
    };
    let wait = 0, turn = 0;
    const fill = async (start, n_items = 20) => {
      const mine = (turn += 1), text = query.value.trim(), asks = text || where() || !search;
      if (how.value.includes("regex")) try { RegExp(text); } catch (error) { return void (note.textContent = error.message); }
      const found = asks ? await this.query(kind, { query: text, start, n_items, where: where(), ...ways() }) : { items: [], total: 0 };
      if (mine !== turn || !list.isConnected) return;
      if (found.error) return void (note.textContent = found.error);
      this.listed = kind;
      const row = (item) => h("li", {}, this.several || this.numeric ? null : h("input", { type: "checkbox", "aria-label": `Check: ${cut(brief(item.text), 40)}`, onchange: check }), this.entry(item, text, "", how.value.includes("regex") ? text : undefined).firstChild);
      list.replaceChildren(...(start ? list.children : []), ...found.items.map(row));
      const items = [...(start ? kept.items : []), ...found.items];
      Object.assign(kept, { text: query.value, how: how.value, items, n: items.length, fields: Object.fromEntries(Object.entries(filters).map(([name, field]) => [name, field.value])) });
      more.hidden = items.length >= found.total;
      all.parentElement.hidden = this.several || this.numeric || !items.length;
      through.hidden = !items.length;
      through.textContent = `Go through ${found.total === 1 ? "this one" : `these ${found.total.toLocaleString("en")}`}`;
      note.textContent = !asks ? "All texts are searched, also those that are not labeled." : !found.total ? "Nothing found." : `${more.hidden ? "" : `${items.length} of `}${plural(found.total, "text")}. Enter takes the first.`;
      if (found.annotators?.length > 1 && !kept.people) {
        kept.people = found.annotators.filter((name) => name !== null).map((name) => [name, name]);
        filters.by.hidden = false;
        filters.by.append(...kept.people.map(([name]) => h("option", { value: encode(name) }, name)));
      }
      check();
    };
    list.addEventListener("scroll", () => { if (list.isConnected) kept.top = list.scrollTop; });
    this.open(search ? "Search" : "History", query, h("div", { class: "filters" }, Object.values(filters), how, search && !this.numeric ? h("button", { type: "button", onclick: () => this.openThemes() }, "Themes") : null), note,
      h("div", { class: "bulk" }, h("label", { class: "line" }, all, "All"), into, change, through), list, more);
    how.value = kept.how ?? "";
    for (const [name, field] of Object.entries(filters)) {
      field.value = kept.fields[name] ?? "";
      if (field.selectedIndex < 0) field.value = "";  // a class that is gone
    }
    const { top } = kept;
    await fill(0, Math.max(20, kept.n));
    list.scrollTop = top;
  }
}

export function mount(root, desk, options = {}) {
  const restart = () => { labeling.close(); labeling = new Labeling(root, desk, { ...options, restart }); };
  let labeling = new Labeling(root, desk, { ...options, restart });
  return () => labeling.close();
}

// Over HTTP. A page that is not looked at gives up its stream: a browser has few.
export function httpDesk(base) {
  return {
    async call(method, args) {
      const response = await fetch(`${base}api/${method}`, { method: "POST", body: encode(args), headers: { "Content-Type": "application/json" }, signal: AbortSignal.timeout(20000) });
      return { status: response.status, content: await response.json() };
    },
    leave(client) { navigator.sendBeacon(`${base}api/release`, encode({ client })); },
    listen({ changed, stopped, ending, lost }) {
      let source = null, timer = 0, ends = false;
      const open = () => {
        if (ends && source.readyState !== EventSource.CLOSED) return;  // the end is shown, looked at or not
        source?.close();
        clearTimeout(timer);
        if (document.hidden) return lost(true);
        source = new EventSource(`${base}events`);
        source.onmessage = (event) => { ends = false; changed(Number(event.data)); };
        source.addEventListener("stop", (event) => stopped(JSON.parse(event.data)));
        source.addEventListener("ending", (event) => { ends = true; ending(JSON.parse(event.data)); });
        source.onerror = () => { lost(); if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY); };
      };
      document.addEventListener("visibilitychange", open);
      open();
      return () => { document.removeEventListener("visibilitychange", open); clearTimeout(timer); source?.close(); };
    },
  };
}

// Over the messages of anywidget.
export function modelDesk(model) {
  const waiting = new Map();
  let listener = null;
  model.on("msg:custom", (message) => {
    if ("version" in message) listener?.changed(message.version);
    waiting.get(message.call)?.(message);
    waiting.delete(message.call);
  });
  return {
    call(method, args) {
      const call = newId();
      return new Promise((resolve, reject) => {
        waiting.set(call, resolve);
        setTimeout(() => { if (waiting.delete(call)) reject(new DOMException("no answer", "TimeoutError")); }, 20000);
        model.send({ call, method, args });
      });
    },
    leave(client) { model.send({ call: newId(), method: "release", args: { client } }); },
    listen(callbacks) {
      listener = callbacks;
      model.send({ call: newId(), method: "listen" });
      return () => { listener = null; };
    },
  };
}

export default {
  render({ model, el }) {
    const root = el.appendChild(h("div", { tabindex: "-1" }));
    return mount(root, modelDesk(model), { scope: model.get("scope") });
  },
};

const page = document.getElementById("skactive-page");
if (page) mount(page, httpDesk(location.pathname), { page: true, finish: true, keys: document });
