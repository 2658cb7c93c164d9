"""The report page in headless Chromium: on a phone and a desktop, in light and dark. Skipped where there is no Chromium. Pictures are
kept in the folder that SHARDSCOPE_REPORT_PICTURES names."""
import base64
import os
import pathlib
import re
import sys
import tempfile
import unittest

import command_line
from chromium import PROGRAM, Browser
from command_line import ROOT, said

PHONE, DESKTOP = (390, 844), (1280, 900)
MOST_BYTES = 3_000_000

# Ratio of contrast of each text and what is behind it (WCAG 2.1, 1.4.3), the texts that have too little.
CONTRAST = r"""(() => {
  const parts = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const over = (top, under) => { const a = top.length > 3 ? top[3] : 1; return [0, 1, 2].map(i => top[i] * a + under[i] * (1 - a)); };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parts(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const poor = {}, walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.textContent.trim() || !element.getClientRects().length || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    ++seen;
    const svg = element.closest('svg'), back = behind(svg ? svg.parentElement : element);
    const ink = over(parts(svg && style.fill !== 'none' ? style.fill : style.color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) poor[walker.currentNode.textContent.trim().slice(0, 40)] = ratio.toFixed(2);
  }
  return {seen, poor};
})()"""
# Elements whose right edge is beyond the page, but for what is within a part that scrolls by itself.
BEYOND = r"""[...document.querySelectorAll('body *')].filter(e => {
  if (e.getBoundingClientRect().right <= document.documentElement.clientWidth + 1 || e.closest('[hidden], details:not([open]) > :not(summary)')) return false;
  for (let p = e.parentElement; p; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 40)).slice(0, 5)"""


# Of the elements that draw exposed time in the partition of time: which part of each is on the screen, after scrolling down to it. 1: all.
SEEN = r"""[...document.querySelectorAll('.rows .c-exposed')].map(e => {
  scrollTo(0, e.getBoundingClientRect().top + scrollY - innerHeight / 2);
  const own = e.getBoundingClientRect();
  let left = 0, top = 0, right = document.documentElement.clientWidth, bottom = innerHeight;
  for (let p = e.parentElement; p; p = p.parentElement) {
    if (getComputedStyle(p).overflow === 'visible') continue;
    const box = p.getBoundingClientRect();
    [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
  }
  const size = (a, b) => Math.max(0, b - a);
  const middle = document.elementFromPoint((own.left + own.right) / 2, (own.top + own.bottom) / 2);
  return {area: own.width * own.height, on_top: middle === e || e.contains(middle), part:
    size(Math.max(own.left, left), Math.min(own.right, right)) * size(Math.max(own.top, top), Math.min(own.bottom, bottom)) /
    (own.width * own.height)};
})"""


def pages_of(pdf):
    """Chromium writes page objects as plain text."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@unittest.skipUnless(PROGRAM, "no Chromium runs here")
class ReportPage(command_line.CommandTest):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory(prefix="shardscope-report-")
        cls.addClassCleanup(kept.cleanup)
        folder = pathlib.Path(kept.name)
        def simulated(name, *more):
            said("simulate", "--model", "gpt2", "--jitter", "0.05", "--record", folder / f"{name}.zscope", *more)
        simulated("small", "--ranks", "4", "--steps", "6")
        simulated("slower", "--ranks", "4", "--steps", "6", "--straggler", "2:1.5")
        simulated("large", "--ranks", "32", "--steps", "60", "--detail", "phases")
        cls.pages = {}
        for name, more in (("small", ()), ("slower", ("--baseline", folder / "small.zscope")), ("large", ())):
            cls.pages[name] = folder / f"{name}.html"
            said("report", folder / f"{name}.zscope", *more, "-o", cls.pages[name])
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def each_page(self):
        for name, page in self.pages.items():
            for width, height in (PHONE, DESKTOP):
                for scheme in ("light", "dark"):
                    self.browser.open(page, width, height, scheme)
                    yield f"{name}-{width}-{scheme}"

    def keep(self, name):
        folder = os.environ.get("SHARDSCOPE_REPORT_PICTURES")
        if folder:
            (pathlib.Path(folder) / f"{name}.png").write_bytes(base64.b64decode(self.browser.picture()))

    def test_nothing_scrolls_sideways_fails_or_is_loaded(self):
        for name in self.each_page():
            self.keep(name)
            wide, room = self.browser.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            self.assertLessEqual(wide, room, name)
            self.assertEqual(self.browser.value(BEYOND), [], name)
            self.assertEqual(self.browser.complaints(), [], name)
            page = self.pages[name.split("-")[0]].as_uri()
            self.assertEqual([url for url in self.browser.requests() if url != page and not url.startswith("data:")], [], name)

    def test_every_text_stands_out_from_what_is_behind_it(self):
        for name in self.each_page():
            self.browser.value("document.querySelectorAll('details').forEach(e => { e.open = true; })")
            found = self.browser.value(CONTRAST)
            self.assertGreater(found["seen"], 100, name)
            self.assertEqual(found["poor"], {}, name)

    def test_the_timeline_zooms_moves_and_reads_out_by_keys(self):
        drawn = "document.querySelector('.timeline canvas').toDataURL()"
        for width, height in (PHONE, DESKTOP):
            self.browser.open(self.pages["small"], width, height, "light")
            self.browser.value("document.querySelector('.timeline canvas').focus()")
            self.assertEqual(self.browser.value("document.activeElement.tagName"), "CANVAS")
            whole = self.browser.value(drawn)
            self.browser.press("+")
            near = self.browser.value(drawn)
            self.assertNotEqual(near, whole)
            self.browser.press("ArrowRight")
            self.assertNotEqual(self.browser.value(drawn), near)
            self.browser.press("0")
            self.assertEqual(self.browser.value(drawn), whole)
            said_before = self.browser.value("document.querySelector('.said').textContent")
            self.browser.press("n")
            first = self.browser.value("document.querySelector('.said').textContent")
            self.assertNotEqual(first, said_before)
            self.browser.press("n")
            self.assertNotEqual(self.browser.value("document.querySelector('.said').textContent"), first)

    def test_a_span_is_named_under_the_pointer(self):
        self.browser.open(self.pages["small"], *DESKTOP, "light")
        self.browser.value("document.querySelector('.timeline canvas').scrollIntoView()")
        box = self.browser.value("(({left, top, width}) => [left, top, width])(document.querySelector('.timeline canvas').getBoundingClientRect())")
        shown = set()
        for part in range(1, 8):
            self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 120 + (box[2] - 120) * part / 8, y=box[1] + 32)
            shown.add(self.browser.value("(tip => tip.hidden ? '' : tip.textContent)(document.querySelector('.timeline .tip'))"))
        self.assertTrue(any("critical path" in one for one in shown), shown)

    def test_exposed_time_is_seen_on_a_phone(self):
        for name in ("small", "slower"):  # of the large run no computation is recorded
            self.browser.open(self.pages[name], *PHONE, "light")
            drawn = self.browser.value(SEEN)
            self.assertEqual(len(drawn), 4, name)  # one of each rank
            for one in drawn:
                self.assertGreater(one["area"], 1, name)
                self.assertAlmostEqual(one["part"], 1, delta=0.01, msg=name)
                self.assertTrue(one["on_top"], name)

    def test_it_is_printed_on_pages(self):
        for name, page in self.pages.items():
            self.browser.open(page, *DESKTOP, "light")
            pdf = self.browser.printed()
            self.assertTrue(pdf.startswith(b"%PDF-"), name)
            self.assertGreaterEqual(pages_of(pdf), 1, name)
            self.assertLess(pages_of(pdf), 60, name)
            self.assertIn(b"/Font", pdf, name)  # an empty page has no text

    def test_a_report_stays_small(self):
        for name, page in self.pages.items():
            self.assertLess(page.stat().st_size, MOST_BYTES, name)

    def test_the_checks_find_what_they_look_for(self):
        broken = self.pages["small"].with_name("broken.html")
        broken.write_text("<!DOCTYPE html><meta name=viewport content='width=device-width'><body style='background:#fff'>"
                          "<p style='color:#bbb'>pale</p><div style='width:900px'>wide</div><img src='file:///nowhere.png'>"
                          "<script>console.error('no'); throw new Error('thrown');</script>")
        self.browser.open(broken, *PHONE, "light")
        self.assertGreater(self.browser.value("document.documentElement.scrollWidth"), PHONE[0])
        self.assertEqual(len(self.browser.value(BEYOND)), 1)
        self.assertIn("pale", self.browser.value(CONTRAST)["poor"])
        self.assertGreaterEqual(len(self.browser.complaints()), 2)
        self.assertIn("file:///nowhere.png", self.browser.requests())
        broken.write_text("<!DOCTYPE html><meta name=viewport content='width=device-width'><body><div class=rows style='width:300px;"
                          "overflow:hidden'><div style='width:900px;display:flex'><b style='width:280px'>.</b>"
                          "<b class=c-exposed style='width:40px'>.</b></div></div>")
        self.browser.open(broken, *PHONE, "light")
        self.assertAlmostEqual(self.browser.value(SEEN)[0]["part"], 0.5, delta=0.01)
        self.assertEqual(pages_of(self.browser.printed()), 1)


if __name__ == "__main__":
    if not PROGRAM:
        print("skipped: no Chromium runs here (Debian: apt-get install chromium; Ubuntu has it as a snap only)")
        sys.exit(77)
    command_line.main()
