"""The terminal as a front end: an app in Textual, and a plain prompt without it."""

import asyncio
import time

from textual.app import App
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from ._prompt import (
    as_number,
    describe_check,
    describe_item,
    describe_state,
    find_classes,
    list_classes,
)


class _Choice(ModalScreen):
    """A list to choose from, narrowed by what is typed; returns the chosen value."""

    BINDINGS = [("escape", "dismiss(None)", "Back")]

    def __init__(self, title, entries, placeholder, free=False):
        super().__init__()
        self._title, self._entries, self._placeholder = title, entries, placeholder
        self._free = free  # whether what is typed is itself an answer

    def compose(self):
        with Vertical(id="choice"):
            yield Static(self._title, markup=False)
            yield Input(placeholder=self._placeholder)
            yield OptionList()

    def on_mount(self):
        self.on_input_changed(None)
        self.query_one(Input).focus()

    def on_input_changed(self, event):
        """Show the entries that fit what is typed."""
        typed = "" if event is None else event.value
        names = [shown for shown, _ in self._entries]
        self._found = [self._entries[i] for i in find_classes(typed, names)]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(_plain(shown)) for shown, _ in self._found)

    def on_input_submitted(self, event):
        """Choose what is typed, or the first entry that fits."""
        if self._free:
            self.dismiss(event.value)
        elif self._found:
            self.dismiss(self._found[0][1])

    def on_option_list_option_selected(self, event):
        """Choose the selected entry."""
        self.dismiss(self._found[event.option_index][1])

    def on_key(self, event):
        """Move from the field to the list."""
        if event.key == "down" and self.query_one(Input).has_focus:
            self.query_one(OptionList).focus()


class LabelingApp(App):
    """The terminal app of a Desk: the same keys as on the page."""

    CSS = """
    #status { color: $text-muted; padding: 0 1; }
    #error { color: $error; padding: 0 1; }
    #text { height: 1fr; border: round $primary; padding: 0 1; }
    #prediction { padding: 0 1; }
    #classes { padding: 0 1; height: auto; max-height: 12; }
    #choice { background: $surface; border: round $primary; margin: 2 4; padding: 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [
        ("space", "accept", "Accept"),
        ("slash", "pick", "Find"),
        ("s,right", "skip", "Skip"),
        ("u,left", "undo", "Undo"),
        ("f", "flag", "Flag"),
        ("n", "note", "Note"),
        ("question_mark", "help", "Help"),
        ("ctrl+q", "quit", "Finish"),
        ("equals_sign", "history", "History"),
        ("exclamation_mark", "check", "Check"),
        ("plus_sign", "add_class", "Class"),
    ]

    def __init__(self, desk, client="terminal"):
        super().__init__()
        self._desk, self._client = desk, client
        self._item, self._state, self._since = None, None, 0.0
        # Names that are chosen where several can be, and whether Enter found none.
        self._selected, self._is_empty_confirmed = [], False
        if desk.target == "multi-label":
            self.bind("enter", "save", description="Save")
            self.bind("escape", "clear", description="Clear", show=False)
        elif desk.target == "regression":
            self.bind("enter", "number", description="Number")

    def check_action(self, action, parameters):
        """Whether an action exists; numbers have no classes."""
        is_of_classes = action in ("pick", "add_class")
        return not is_of_classes or self._desk.target != "regression"

    def compose(self):
        yield Static(id="status", markup=False)
        with VerticalScroll(id="text"):
            yield Static(id="item", markup=False)
        yield Static(id="prediction", markup=False)
        with VerticalScroll(id="classes"):
            yield Static(id="list", markup=False)
        yield Static(id="error", markup=False)
        yield Footer()

    async def on_mount(self):
        """Show the first item."""
        self.title = "skactive"
        await self._show_next()
        self.set_interval(1.0, self._refresh)

    async def on_key(self, event):
        """Answer with the key of a class."""
        if self._state is None or len(self.screen_stack) > 1:
            return
        for entry in self._state["classes"]:
            if event.character and entry["key"] == event.character:
                event.stop()
                await self._choose(entry["name"])

    async def _choose(self, name):
        """Answer with a class, or check it where several can be chosen."""
        if self._desk.target != "multi-label":
            await self._answer(name)
        elif self._item is not None:
            chosen = self._selected
            chosen.remove(name) if name in chosen else chosen.append(name)
            self._is_empty_confirmed = False
            self._show_classes()

    async def action_save(self):
        """Answer with the checked classes; without any, at the second time."""
        if not self._selected and not self._is_empty_confirmed:
            self._is_empty_confirmed = True
            self.notify("Press Enter again: no class applies.")
        else:
            await self._answer(list(self._selected))

    def action_clear(self):
        """Remove all check marks."""
        self._selected.clear()
        self._show_classes()

    def action_number(self):
        """Type the number that answers."""
        if self._item is not None:
            shown = self._item["prediction"]
            hint = "a number" if shown is None else f"a number, such as {shown:.6g}"
            self.push_screen(_Choice("Number", [], hint, free=True), self._typed)

    async def _typed(self, text):
        if text and (value := as_number(text)) is not None:
            await self._answer(value)
        elif text:
            self.notify(f"{text} is not a number.", markup=False)

    async def action_accept(self):
        """Accept the prediction, or the suggestion if there is no prediction."""
        item = self._item or {}
        for name in ("prediction", "suggestion"):
            if item.get(name) is not None:
                await self._answer(item[name])
                return

    async def action_skip(self):
        """Set the item aside."""
        if self._item is not None:
            done = await self._try(self._desk.skip, self._item["id"], self._client)
            if done is not None:
                await self._show_next()

    async def action_undo(self):
        """Undo the last answer and show its item again."""
        undo = self._state and self._state["undo"]
        if undo:
            item = await self._try(self._desk.undo, undo["seq"], self._client)
            if item is not None:
                self._show(item)
            await self._refresh()

    async def action_flag(self):
        """Flag the item, or remove its flag."""
        if self._item is not None:
            on = not self._item["flag"]
            item = await self._try(self._desk.flag, self._item["id"], on)
            self._show(item or self._item, restart=False)

    def action_note(self):
        """Write a note."""
        if self._item is not None:
            screen = _Choice("Note", [], self._item["note"] or "a note", free=True)
            self.push_screen(screen, self._note)

    async def _note(self, text):
        if text is not None:
            item = await self._try(self._desk.note, self._item["id"], text)
            self._show(item or self._item, restart=False)

    def action_pick(self):
        """Find a class by a part of its name."""
        entries = [(str(c["name"]), c["name"]) for c in self._state["classes"]]
        screen = _Choice("Class", entries, "a part of the name; Enter takes the first")
        self.push_screen(screen, self._picked)

    async def _picked(self, name):
        if name is not None:
            await self._choose(name)

    def action_add_class(self):
        """Add a class."""
        self.push_screen(_Choice("New class", [], "its name", free=True), self._add)

    async def _add(self, name):
        if name and await self._try(self._desk.add_class, name) is not None:
            await self._refresh()

    async def action_history(self):
        """Choose an earlier item to correct."""
        page = await asyncio.to_thread(self._desk.history)
        self._choose_item("Earlier answers", page["items"])

    async def action_check(self):
        """Choose an answer that the model contradicts."""
        page = await self._try(self._desk.check)
        if page is not None:
            self._choose_item(describe_check(page), page["items"])

    def _choose_item(self, title, items):
        entries = [(describe_item(item), item) for item in items]
        self.push_screen(_Choice(title, entries, "a part of it"), self._show_chosen)

    def _show_chosen(self, item):
        if item is not None:
            self._show(item)

    def action_help(self):
        """Show the classes with their descriptions, and the keys."""
        keys = [
            f"{self.get_key_display(binding)}  {binding.description}"
            for _, binding in self._bindings
        ]
        lines = [*list_classes(self._state, about=True), *keys]
        entries = [(line, None) for line in lines]
        self.push_screen(_Choice("Classes and keys", entries, "a part of it"))

    async def _answer(self, label):
        if self._item is None:
            return
        seconds = round(time.monotonic() - self._since, 1)
        place = self._item["id"], label, self._client, None, seconds
        state = await self._try(self._desk.answer, *place)
        if state is not None:
            self._state = state
            await self._show_next()

    async def _show_next(self):
        items = await self._try(self._desk.next, self._client, None, 1)
        if items is not None:
            self._show(items[0] if items else None)
        await self._refresh()

    async def _refresh(self):
        state = await self._try(self._desk.state)
        if state is not None:
            self._state = state
            self.query_one("#status", Static).update(describe_state(state))
            self._show_classes()

    def _show_classes(self):
        several = self._desk.target == "multi-label"
        chosen = self._selected if several else None
        lines = list_classes(self._state, selected=chosen)
        self.query_one("#list", Static).update("\n".join(lines))

    def _show(self, item, restart=True):
        self._item = item
        if restart:
            self._since = time.monotonic()
            label = None if item is None else item["label"]
            self._selected = list(label) if isinstance(label, list) else []
            self._is_empty_confirmed = False
            if self._state is not None:
                self._show_classes()
        text, below = "Nothing is left to label. Ctrl+Q finishes.", ""
        if item is not None:
            text = item["text"]
            text = text if isinstance(text, str) else "\n\n".join(text)
            below = describe_item(item, text=False)
        self.query_one("#item", Static).update(text)
        self.query_one("#prediction", Static).update(below)
        self.query_one("#text").scroll_home(animate=False)

    async def _try(self, function, *args):
        """Return the result of a call of the desk; show its error and return None."""
        result, message = None, ""
        try:
            result = await asyncio.to_thread(function, *args)
        except (ValueError, TypeError, OSError, RuntimeError) as exc:
            message = f"NOT STORED: {exc}"
        shown = self.query("#error")
        if not shown:  # the app closes
            return None
        shown.first(Static).update(message)
        return result


def _plain(text):
    """Return a text that Textual shows as it is."""
    from textual.content import Content

    return Content(text)
