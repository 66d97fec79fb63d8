#!/bin/bash
# make site: every page exists, every link and anchor has a target, nothing comes from the network.
. "${tests:?}/cli/common"
python=/usr/bin/python3
[ -x "$python" ] || { echo "ok site # SKIP no python3"; exit 0; }
export CDL_LIBRARY=$builddir/.libs/libcdl.so.0
mkdir models
cp "$srcdir/examples/bouncing_ball.cdl" models
try "the gallery" 0 bash "$srcdir/examples/gallery.sh" "$CDL" gallery models/bouncing_ball.cdl
try "the site" 0 "$python" "$srcdir/man/site/site.py" "$srcdir" www gallery || exit
"$python" - "$srcdir" <<'PY' || failed=1
import html.parser, json, pathlib, re, sys, urllib.parse
source, www = pathlib.Path(sys.argv[1]), pathlib.Path("www")
bad = False
def check(good, name, more=""):
    global bad
    bad |= not good
    print("ok" if good else "not ok", name, more if not good else "")
VOID = {"meta", "link", "br", "img", "hr", "input"}
class Reader(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.open, self.wrong, self.text = [], [], [], [], []
        self.feed(text)
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs: self.ids.append(attrs["id"])
        self.links += [attrs[k] for k in ("href", "src") if k in attrs]
        if tag not in VOID: self.open.append(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag: self.wrong.append((tag, self.getpos()))
    def handle_data(self, text):
        self.text.append(text)
own = [p for p in www.rglob("*.html") if "gallery" not in p.parts or p.name == "index.html"]
pages = {p.resolve(): Reader(p.read_text()) for p in own}
for p, page in pages.items():
    if "gallery" not in p.parts:
        check(not page.wrong and not page.open, "%s is well nested" % p.name, (page.wrong[:3], page.open))
    check(len(set(page.ids)) == len(page.ids), "%s: anchors are unique" % p.name)
links = 0
for p, page in pages.items():
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme in ("http", "https") or link.startswith("data:"): continue
        links += 1
        target = (p.parent / url.path).resolve() if url.path else p
        if not target.is_file(): check(False, "%s: %s" % (p.name, link))
        elif url.fragment and target in pages and url.fragment not in pages[target].ids: check(False, "%s: no anchor %s" % (p.name, link))
check(links > 300, "%d links and anchors" % links)
text = "".join(p.read_text() for p in own)
check(not re.search(r"<(script|img|link|iframe)[^>]*(src|href)=\"(https?:)?//", text), "nothing is loaded from the network")
plain = [t for p, page in pages.items() if "gallery" not in p.parts for t in page.text]
check(not [t for t in plain if re.search(r"\\f[BIRP]|\\\(..|\\-|^\.[A-Z][A-Z]$", t)], "no roff is left", [t for t in plain if re.search(r"\\f[BIRP]|\\\(..|\\-", t)][:3])
# every heading of a man page becomes a section
for man, name in (("cdl.5", "language"), ("cdl.1", "command"), ("cdl.7", "tutorial")):
    heads = re.findall(r"^\.S[HS] ", (source / "man" / man).read_text(), re.M)
    check(len(pages[(www / (name + ".html")).resolve()].ids) == len(heads), "%s: all %d sections" % (man, len(heads)))
words = lambda t: re.sub(r"\W+", " ", t).split()
shown = set(words(" ".join(pages[(www / "language.html").resolve()].text)))
lost = [w for w in words(re.sub(r"^\.\\\".*|^\.[A-Z]+|\\f[BIRP]|\\\(..|\\\[[^]]*\]|\\e|\\-", " ", (source / "man/cdl.5").read_text(), flags=re.M)) if w not in shown]
check(len(lost) < 10, "no words are lost", lost[:9])
books = list((source / "examples/notebooks").glob("*.ipynb"))
check(all((www / "notebooks" / (b.stem + ".html")).is_file() for b in books), "%d notebooks" % len(books))
sys.exit(bad)
PY
has "light and dark" www/style.css "prefers-color-scheme: dark"
has "for phones" www/index.html 'name="viewport"'
# notebooks: text, formulas, code, output, pictures
mkdir -p src/examples/notebooks src/lang/syntax
cp -r "$srcdir/man" "$srcdir/README.md" src
cp "$srcdir/lang/syntax/keywords.def" src/lang/syntax
cat >src/examples/notebooks/n.ipynb <<'JSON'
{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# A <b>note\n", "\n", "Where $\\tan a \\le \\mu R_n$ holds.\n"]},
 {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "model m { dof x = 1 }", "outputs": [
  {"output_type": "stream", "name": "stdout", "text": ["a < b\n"]},
  {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'/>"}}]}],
 "metadata": {"kernelspec": {"name": "cdl", "language": "cdl"}}, "nbformat": 4, "nbformat_minor": 5}
JSON
try "a site with a notebook" 0 "$python" src/man/site/site.py src www2
has "the notebook" www2/notebooks/n.html "A &lt;b&gt;note" "tan a ≤ μ R<sub>n</sub>" '<span class="w">model</span>' "a &lt; b" "data:image/svg+xml;base64," '../tutorial.html'
# notebooks are executed if Jupyter is installed
if "$python" -c 'import nbconvert, ipykernel, numpy' 2>/dev/null && ! grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    for book in ball friction obstacles; do
        has "the notebook $book has its answers" www/notebooks/$book.html 'class="answer"' residual
    done
else
    echo "ok notebooks with answers # SKIP no Jupyter"
fi
