"""The page says what the report says, runs nothing that a case printed, and works in a browser, also on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.report import build, write
from harness.report.page import _code as code
from harness.report.page import render

from . import sample
from .chromium import BINARY, Browser, chromium

EVIL = (
    "</script></pre></textarea><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\">{{ 7 * 7 }}"
)


class Outline(HTMLParser):
    """Tags with their attributes, and whether they are closed in order."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())

    def every(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(*results: Any) -> str:
    return render(build(list(results) or sample.results(), sample.meta()))


def evil_results() -> list[Any]:
    rule = {
        **sample.rule("evil/x/1"),
        "title": f"Title {EVIL}",
        "text": f"Text {EVIL}\n\n- item {EVIL}\n\n    code {EVIL}",
    }
    evil = {
        "params": {"p": EVIL, EVIL: 1}, "stdout": EVIL, "stderr": EVIL, "stack_dump": EVIL, "leaked": [EVIL],
        "notes": {EVIL: {"deep": EVIL}}, "reproduce": EVIL, "reason": EVIL,
    }  # fmt: skip
    failure = sample.failure(EVIL, expected=EVIL, found=EVIL, import_stack=[EVIL], traceback=[EVIL, EVIL])
    expected = sample.expected(reason=EVIL, link='https://host/"><script>alert(1)</script>')
    return [
        sample.point(rule, "fail", failure=failure, **{**evil, "id": EVIL}),
        sample.point(rule, "xfail", failure=failure, expected=expected, **{**evil, "id": "known"}),
        sample.point(rule, "xpass", expected=expected, **{**evil, "id": "stale"}),
        sample.point(rule, "unsupported", **{**evil, "id": "unsupported"}),
    ]


def test_markup_is_well_formed_and_ids_are_unique() -> None:
    outline = Outline(page())
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(link["href"])[1:] for link in outline.every("a") if str(link["href"]).startswith("#")]
    assert set(targets) <= set(ids)


def test_nothing_is_fetched() -> None:
    text = page()
    outline = Outline(text)
    assert not outline.every("img") + outline.every("iframe") + outline.every("object")
    assert [link["href"] for link in outline.every("link")] == ["data:,"]
    assert all("src" not in script for script in outline.every("script"))
    assert "@import" not in text
    assert "url(" not in text


def test_evil_output_stays_text() -> None:
    text = page(*evil_results())
    outline = Outline(text)
    assert outline.open == []
    assert len(outline.every("script")) == 1
    assert not outline.every("img")
    assert not [name for _, attributes in outline.tags for name in attributes if name.startswith("on")]
    assert "{{ 7 * 7 }}" in text
    assert text.count("&lt;img src=x onerror=") > 20


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("call `f(x)` now", "call <code>f(x)</code> now"),
        ("``a `b` c``", "<code>a `b` c</code>"),
        ("a ` b", "a ` b"),
        ("a `` b ` c", "a `` b ` c"),
        ("`a\nb`", "`a\nb`"),
        ("`<i>` `b`", "<code>&lt;i&gt;</code> <code>b</code>"),
        ("`a``", "`a``"),
    ],
)
def test_words_between_backticks_are_code(text: str, shown: str) -> None:
    assert str(code(text)) == shown


@pytest.mark.parametrize("text", ["`" * 200_000, "`` ` " * 60_000, "".join("`" * n + " " for n in range(1, 700))])
def test_backticks_without_end_are_read_once(text: str) -> None:
    assert len(code(text)) >= len(text) - 2  # a hang if each is held against all the others


def test_known_and_unexpected_failures_differ() -> None:
    outline = Outline(page())
    kinds = {str(element.get("class")) for element in outline.every("details")}
    assert {"point urgent fail", "point urgent crash", "point expected xfail", "point urgent harness-error"} <= kinds
    assert all("open" not in element for element in outline.every("details") if "expected" in str(element["class"]))


def test_reason_is_not_folded_away() -> None:
    text = page()
    folded = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    assert "The plan cache keeps the arguments of its first launch" in folded
    assert "Until then the reference implementation" in folded
    assert "expectations/stock/2.10.0.toml:57" in folded


def test_first_unexpected_failures_are_unfolded_and_the_rest_listed() -> None:
    rule = sample.rule("a/b/1")
    points = [sample.point(rule, "fail", {"n": n}) for n in range(20)]
    details = [element for element in Outline(page(*points)).every("details") if "point" in str(element["class"])]
    assert len(details) == 20
    assert ["open" in element for element in details] == [True] * 3 + [False] * 17


def test_huge_output_is_cut_on_the_page() -> None:
    text = page(
        *(
            sample.point(sample.rule(f"a/b/{n}"), "fail", stdout="x" * 79 + "\n", stderr="line\n" * 400_000)
            for n in range(20)
        )
    )
    assert len(text) < 1_000_000
    assert "characters left out here; report.json has all of it" in text


def test_output_of_passing_points_is_left_to_the_json() -> None:
    assert "unmistakable" not in page(sample.point(sample.rule("a/b/1"), stdout="unmistakable"))


def test_controls_and_repetitions_are_shown() -> None:
    text = page()
    assert "Control: plain PyTorch ends with fail: the child forked during the import ends" in text
    assert "python -m harness run cases/races/fork/in_import.py --control" in text
    assert "Control: plain PyTorch passes, so torch_npu is at fault" in text
    assert "Soak: 2 pass, 1 fail of 3 repetitions, seed 8f3a11." in text
    assert "python -m harness run cases/races/first_use/threads.py --jitter 8f3a11.2" in text
    upstream = sample.point(sample.rule("a/b/1"), "xpass", expected=sample.expected(), control=sample.control())
    assert "Fails with plain PyTorch as well. Remove the entry at" in page(upstream)


def test_lead_says_what_asks_for_action() -> None:
    assert re.search(r'class="lead"><b>5 rules broken\.', page())
    assert "Nothing unexpected. 1 of 1 rule conforms." in page(sample.point(sample.rule("a/b/1")))
    assert "Nothing unexpected. 0 of 1 rule conform. 1 does not, as known." in page(
        sample.point(sample.rule("a/b/1"), "xfail")
    )
    assert "Nothing unexpected. 0 of 1 rule conform. 1 fails with plain PyTorch as well." in page(
        sample.point(sample.rule("a/b/1"), "upstream")
    )
    assert "The selection matched no rule" in render(build([], sample.meta()))
    meta = sample.meta()
    meta["suite"]["selected"] = 3
    interrupted = render(build([sample.point(sample.rule("a/b/1"))], meta))
    assert "<b>The run was interrupted: 2 of 3 points not judged.</b> 1 of 1 rule conforms." in interrupted


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BINARY is None:
        pytest.skip("unsupported: needs chromium (apt-get install chromium)")
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    long = sample.point(
        sample.rule("a/b/1", "A_very_long_name_without_any_place_to_break_" * 8, "word" * 200),
        "fail",
        {"parameter" * 9: "value" * 40},
        failure=sample.failure("m" * 500, expected="e" * 500, found="f" * 500),
        stdout="wide" * 5000,
        notes={"note" * 50: "n" * 500},
        reproduce="command " * 100,
    )
    known = sample.point(
        sample.rule("a/b/2"), "xfail", expected=sample.expected(reason="r" * 900, link="https://" + "h" * 200 + ".org/")
    )
    pages = {"sample": sample.results(), "evil": evil_results(), "long": [long, known], "empty": []}
    root = tmp_path_factory.mktemp("pages")
    return {name: write(results, sample.meta(), root / name).html.as_uri() for name, results in pages.items()}


@pytest.fixture
def show(browser: Browser, urls: dict[str, str]) -> Iterator[Any]:
    """Open a page at a width; afterwards nothing may have been fetched or complained about."""

    def open_page(name: str, width: int = 1280, **options: Any) -> Browser:
        browser.view(width, **options)
        browser.open("about:blank")  # a page opened twice in a row with another fragment would not be loaded again
        browser.events.clear()
        file, mark, fragment = name.partition("#")
        browser.open(urls[file] + mark + fragment)
        return browser

    yield open_page
    assert [url for url in browser.requested() if not url.startswith(("file:", "data:"))] == []
    assert browser.complaints() == []


VISIBLE = "[...document.querySelectorAll('.rule')].filter(r => r.checkVisibility()).map(r => r.id)"


def chip(verdict: str) -> str:
    return f"document.querySelector('.chip.{verdict}').click()"


def search(words: str) -> str:
    return f"text.value = {words!r}; text.dispatchEvent(new Event('input'))"


@pytest.mark.parametrize("name", ["sample", "evil", "long", "empty"])
@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_page_never_scrolls_sideways(show: Any, name: str, width: int) -> None:
    browser = show(name, width)
    for unfold in ("", "document.querySelectorAll('details').forEach(d => d.open = true)"):
        browser.run(unfold)
        assert browser.run("document.documentElement.scrollWidth") == width
        # What is wider scrolls in a box of its own, which lies inside the page.
        assert browser.run(
            "[...document.querySelectorAll('pre, .command code, .scroll, button, input, select, dd, h3')]"
            ".filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML)"
        ) == []  # fmt: skip


def test_long_code_scrolls_in_its_own_box(show: Any) -> None:
    browser = show("long", 375)
    assert browser.run("(e => e.scrollWidth > 2 * e.clientWidth)(document.querySelector('.point .command code'))")


def test_evil_output_does_not_run(show: Any) -> None:
    browser = show("evil")
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert "conformance" in browser.run("document.title")
    assert browser.run("document.images.length + document.scripts.length") == 1


def test_policy_stops_a_script_that_slipped_in(browser: Browser, tmp_path: Path) -> None:
    text = page().replace("</main>", "<script>document.title = 'owned'</script></main>")
    assert text.count("<script>") == 2
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    browser.events.clear()
    browser.open((tmp_path / "page.html").as_uri())
    assert "conformance" in browser.run("document.title")
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())
    browser.events.clear()


def test_failing_points_are_open_and_known_ones_closed(show: Any) -> None:
    browser = show("sample")
    assert (
        browser.run("[...document.querySelectorAll('.point.urgent')].filter(d => !d.open).length") == 2
    )  # of 5 crashes
    assert browser.run(
        "document.querySelector('[id=\"import/trigger/reload\"] .point.fail .command code').checkVisibility()"
    )
    assert browser.run("[...document.querySelectorAll('.point.expected')].filter(d => d.open).length") == 0


def test_filter_by_verdict_area_and_text(show: Any) -> None:
    browser = show("sample")
    assert len(browser.run(VISIBLE)) == 16
    browser.run(chip("broken"))
    broken = browser.run(VISIBLE)
    assert broken == [
        "import/trigger/reload",
        "npugraph/pool/ends",
        "npugraph/replay/overwritten",
        "races/first_compile/threads",
        "races/first_use/threads",
    ]
    assert browser.run("document.querySelector('.chip.broken').ariaPressed") == "true"
    assert browser.run("shown.value") == "5 of 16 rules"
    assert (
        browser.run("[...document.querySelectorAll('h2')].filter(h => h.checkVisibility()).length") == 4
    )  # 3 and words
    browser.run(chip("known"))
    assert len(browser.run(VISIBLE)) == 7
    browser.run("area.value = 'import'; area.dispatchEvent(new Event('change'))")
    assert browser.run(VISIBLE) == ["import/lazy/order", "import/trigger/reload"]
    browser.run(search("EAGERLY modules"))
    assert browser.run(VISIBLE) == ["import/lazy/order"]
    browser.run(search("eagerly nonsense"))
    assert browser.run(VISIBLE) == []
    assert browser.run("nothing.checkVisibility()")
    browser.run("reset.click()")
    assert len(browser.run(VISIBLE)) == 16
    assert browser.run("nothing.hidden")
    assert browser.run("shown.value") == "16 rules"


def test_text_filter_finds_what_is_folded(show: Any) -> None:
    browser = show("sample")
    browser.run(search("defeats every later patch"))
    assert browser.run(VISIBLE) == ["import/lazy/order"]


def test_keyboard_reaches_everything(show: Any) -> None:
    browser = show("sample")
    browser.key("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    browser.key("/")
    assert browser.run("document.activeElement.id") == "text"
    for letter in "trigger":
        browser.key(letter)
    assert browser.run(VISIBLE) == ["import/inventory/patches", "import/lazy/order", "import/trigger/reload"]
    browser.key("Escape")
    assert len(browser.run(VISIBLE)) == 16
    browser.run("document.querySelector('.chip.stale').focus()")
    browser.key("Enter")
    assert browser.run(VISIBLE) == ["races/fork/in_setup"]
    browser.run("document.querySelector('[id=\"races/fork/in_setup\"] .more > summary').focus()")
    browser.key("Enter")
    assert browser.run("document.querySelector('[id=\"races/fork/in_setup\"] .more').open")
    # Boxes that scroll can be scrolled without a pointer, controls have names.
    assert browser.run("[...document.querySelectorAll('pre, .scroll, .command code')].every(e => e.tabIndex === 0)")
    assert browser.run("[...document.querySelectorAll('select, input')].every(e => e.labels.length)")


def test_link_to_a_point_unfolds_it_even_when_filtered_away(show: Any) -> None:
    browser = show("sample#import/lazy/order:import/lazy/order[order=twice]")
    point = "document.getElementById('import/lazy/order:import/lazy/order[order=twice]')"
    assert browser.run(f"{point}.open && {point}.querySelector('.command').checkVisibility()")
    browser.run(chip("conforms"))
    browser.run("window.changed = new Promise(done => addEventListener('hashchange', () => done(), {once: true})); 0")
    browser.run("location.hash = '#races/fork/in_setup'; changed")
    assert "races/fork/in_setup" in browser.run(VISIBLE)


def test_a_link_that_is_no_text_does_no_harm(show: Any) -> None:
    browser = show("sample#%E0%A4%A")
    assert browser.run("document.querySelectorAll('.rule').length") > 0
    assert not [event for event in browser.events if event["method"] == "Runtime.exceptionThrown"]


def test_copy_button_copies_or_selects_the_command(show: Any) -> None:
    browser = show("sample")
    browser.run("window.copied = null; navigator.clipboard.writeText = async text => { window.copied = text }")
    button = "document.querySelector('[id=\"import/trigger/reload\"] .copy')"
    command = "python -m harness run cases/import/trigger/reload.py order=after"
    assert (
        browser.run(f"{button}.click(); new Promise(done => setTimeout(() => done({button}.textContent)))") == "Copied"
    )
    assert browser.run("window.copied") == command
    browser.run("navigator.clipboard.writeText = async () => { throw new Error('denied') }")
    assert (
        browser.run(f"{button}.click(); new Promise(done => setTimeout(() => done({button}.textContent)))")
        == "Selected"
    )
    assert browser.run("String(getSelection())") == command


def test_unfold_all(show: Any) -> None:
    browser = show("sample")
    closed = "[...document.querySelectorAll('main details')].filter(d => !d.open).length"
    assert browser.run(closed) > 0
    browser.run("fold.click()")
    assert browser.run(closed) == 0
    assert browser.run("fold.textContent") == "Fold all"


def test_without_javascript_everything_is_there(show: Any, browser: Browser) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show("sample", 375)
        assert len(browser.run(VISIBLE)) == 16
        assert not browser.run("document.querySelector('.fields').checkVisibility()")
        assert not browser.run("document.querySelector('.copy').checkVisibility()")
        assert browser.run("document.querySelector('.chip').checkVisibility()")  # still a legend
        assert browser.run("document.querySelector('.point.fail .command code').checkVisibility()")
        assert browser.run("document.documentElement.scrollWidth") == 375
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


CONTRAST = """(() => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const ground = element => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3]) return color;
    }
  };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.tagName}.${element.className}`);
  }
  return poor;
})()"""


@pytest.mark.parametrize(
    ("dark", "media", "ground"),
    [
        (False, "screen", "rgb(253, 253, 252)"),
        (True, "screen", "rgb(19, 19, 19)"),
        (False, "print", "rgb(255, 255, 255)"),
        (True, "print", "rgb(255, 255, 255)"),
    ],
)
def test_all_text_has_enough_contrast(show: Any, dark: bool, media: str, ground: str) -> None:
    browser = show("sample", dark=dark, media=media)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == ground
    assert browser.run(CONTRAST) == []  # WCAG AA


def test_print_shows_whole_outputs_and_no_controls(show: Any) -> None:
    browser = show("sample", 700, media="print")
    assert not browser.run("document.querySelector('.fields').checkVisibility()")
    assert not browser.run("document.querySelector('.copy').checkVisibility()")
    cut = (
        "[...document.querySelectorAll('pre')].filter(e => e.checkVisibility() && e.scrollHeight > e.clientHeight + 1)"
    )
    assert browser.run(f"{cut}.length") == 0
