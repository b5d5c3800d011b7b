"""Two visitors of pages: one has a mouse, the other only a keyboard. Both do the same steps."""

import re
from typing import Any
from urllib.parse import urlsplit

from tests.browser.axe import barriers
from tests.browser.conftest import shot

CONFIRM = "main button.main"
MOST_TABS = 250
"""Most times that Tab is pressed to reach an element."""
REPORT_CSP = """
document.addEventListener('securitypolicyviolation', one =>
    console.error(`CSP: ${one.violatedDirective} ${one.blockedURI}`));
"""


class Hands:
    """What a visitor does on a page; each new kind of page is looked at by axe-core.

    `name` begins the names of pictures; `seen` has the kinds of pages that were looked at.
    """

    def __init__(self, page: Any, *, name: str) -> None:
        page.add_init_script(REPORT_CSP)
        self.page = page
        self.name = name
        self.seen: set[str] = set()

    def open(self, path: str) -> None:
        """Open an address, as from a bookmark."""
        self.page.goto(path)
        self.look()

    def follow(self, link: str) -> None:
        """Use the first link of the content with this text."""
        self._go(self.page.locator("main").get_by_role("link", name=link).first)

    def send(self, button: str = CONFIRM) -> None:
        """Use a button that sends its form: by default, the main one of the content."""
        self._go(self.page.locator(button).first)

    def key(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        self.page.keyboard.press(key)

    def look(self) -> None:
        """Fail if the page does not fit, or if axe-core finds a barrier on it.

        Not on those of the admin: their fields are Django's.
        """
        kind = re.sub(r"[0-9a-f-]{36}|\d+", "N", urlsplit(self.page.url).path)
        if self.page.locator("main > .notice:visible").count():
            kind += "answer"
        if kind in self.seen:
            return
        self.seen.add(kind)
        shot(self.page, f"act-{self.name}-{re.sub('[^a-zA-Z]+', '-', kind)}")
        width = self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= self.page.viewport_size["width"], kind
        found = [] if kind.startswith("/admin/") else barriers(self.page)
        assert not found, f"{kind}: {found}"

    def fill(self, field: str, value: Any) -> None:
        """Write or choose a value, whichever the field of this name takes."""
        is_choice = self._field(field).evaluate("one => one.matches('select')")
        (self.choose if is_choice else self.type)(field, str(value))

    def type(self, field: str, text: str) -> None:
        """Write a text into the field of this name, in place of what it has."""
        raise NotImplementedError

    def choose(self, field: str, value: str) -> None:
        """Choose the option of this value."""
        raise NotImplementedError

    def _reach(self, target: Any) -> None:
        """Go to an element, so that it can be used."""

    def _use(self, target: Any) -> None:
        raise NotImplementedError

    def _go(self, target: Any) -> None:
        self._reach(target)
        with self.page.expect_navigation():
            self._use(target)
        self.look()

    def _field(self, name: str) -> Any:
        return self.page.locator(f"main [name={name}], footer [name={name}]").first


class Mouse(Hands):
    """A visitor with a mouse."""

    def type(self, field: str, text: str) -> None:
        self._field(field).click()
        self._field(field).fill(text)

    def choose(self, field: str, value: str) -> None:
        self._field(field).select_option(value)

    def _use(self, target: Any) -> None:
        target.click()


class Keyboard(Hands):
    """A visitor without a mouse: Tab goes to an element, keys use it."""

    def type(self, field: str, text: str) -> None:
        target = self._field(field)
        self._reach(target)
        kind = target.get_attribute("type")
        if kind in ("date", "time"):
            # From behind, Tab comes to the button of the field, then to its last part.
            if not target.evaluate("one => one.matches(':focus')"):
                self.key("Shift+Tab")
            for _ in range(4):
                self.key("ArrowLeft")
        if kind == "date":
            year, month, day = text.split("-")
            text = month + day + year
        elif kind == "time":
            # The clock of the language, with seconds if the field has them.
            text = text.replace(":", "") + ("00" if target.get_attribute("step") else "") + "AM"
        else:
            self.key("Control+a")
        self.page.keyboard.type(text)

    def choose(self, field: str, value: str) -> None:
        target = self._field(field)
        self._reach(target)
        values = target.evaluate("one => [...one.options].map(option => option.value)")
        steps = values.index(value) - values.index(target.input_value())
        for _ in range(abs(steps)):
            self.key("ArrowDown" if steps > 0 else "ArrowUp")
        assert target.input_value() == value

    def _use(self, target: Any) -> None:
        self.key("Enter")

    def _reach(self, target: Any) -> None:
        target.wait_for()
        if target.evaluate(IN_MAIN):
            self.key("Tab")  # to the link over the navigation
            # A navigation, too: a slow one would end the wait for that of the target.
            with self.page.expect_navigation():
                self.key("Enter")
        for _ in range(MOST_TABS):
            where = target.evaluate(WHERE)
            if where == "here":
                # guard: the focus can be seen
                assert target.evaluate(OUTLINED), f"no outline: {target}"
                return
            self.key("Shift+Tab" if where == "before" else "Tab")
        raise AssertionError(f"Tab does not reach {target}")


WHERE = """one => one === document.activeElement ? 'here'
    : document.activeElement.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING
    ? 'before' : 'after'"""
IN_MAIN = "one => document.activeElement === document.body && Boolean(one.closest('main'))"
OUTLINED = "one => getComputedStyle(one).outlineStyle !== 'none'"
