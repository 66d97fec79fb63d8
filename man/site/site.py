#!/usr/bin/env python3
"""A plain HTML website of the man pages, README, gallery and notebooks: site.py SOURCE OUT [GALLERY]

Pages need no script and no network.  SOURCE is the root of the source tree, GALLERY a folder that `make gallery` wrote."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NAMED = {"aq": "'", "dq": '"', "bu": "•", "em": "—", "en": "–", "ha": "^", "ti": "~", "lq": "“", "rq": "”", "rs": "\\",
         "'e": "é"}
KEYWORDS = set()

# ---- text of roff ----


def characters(text):
    """Escapes as characters; fonts stay as \\fB, \\fI, \\fR."""
    text = re.sub(r"\\\[u([0-9A-F]{4,})\]", lambda m: chr(int(m[1], 16)), text)
    text = re.sub(r"\\\((..)|\\\[([^]]+)\]", lambda m: NAMED.get(m[1] or m[2], "?"), text)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\/", "").replace("\\ ", "\u00a0").replace("\\e", "\\")


def inline(text):
    """A line with fonts as HTML; pages that are named become links."""
    out, open_ = [], None
    tags = {"B": "b", "I": "em"}
    for part in re.split(r"(\\f[BIRP])", text):
        if re.fullmatch(r"\\f[BIRP]", part):
            if open_:
                out.append("</%s>" % open_)
            open_ = tags.get(part[2])
            if open_:
                out.append("<%s>" % open_)
        elif part:
            out.append(html.escape(characters(part), quote=False))
    if open_:
        out.append("</%s>" % open_)
    return link_pages("".join(out))


PAGES = {}


def link_pages(text):
    """cdl(5) and <b>cdl</b>(5) lead to their page."""
    def link(m):
        page = PAGES.get((m[2], m[4]))
        return '<a href="%s">%s</a>' % (page, m[0]) if page else m[0]
    return re.sub(r"(<b>)?\b(cdl(?:-[a-z-]+)?)(</b>)?\((\d)\)", link, text)


def words(line):
    """Arguments of a macro, quoted or not."""
    return [m[1].replace('""', '"') if m[0].startswith('"') else m[0]
            for m in re.findall(r'("((?:[^"]|"")*)"?|\S+)', line)]


def alternate(args, fonts):
    return "".join("\\f%s%s" % (fonts[k % 2], a) for k, a in enumerate(args)) + "\\fR"


def slug(text, taken):
    base = re.sub(r"[^a-z0-9]+", "-", characters(re.sub(r"\\f.", "", text)).lower()).strip("-") or "section"
    name, k = base, 2
    while name in taken:
        name, k = "%s-%d" % (base, k), k + 1
    taken.add(name)
    return name


# ---- colours ----


def coloured(text):
    """CDL with keywords, comments, numbers and strings in colours."""
    pattern = r"(?P<c>#[^\n]*)|(?P<s>\"[^\"\n]*\")|(?P<n>\b\d[\d.]*(?:e[-+]?\d+)?\b)|(?P<w>[A-Za-z_]\w*)"

    def mark(m):
        kind = m.lastgroup
        if kind == "w" and m[0] not in KEYWORDS:
            return html.escape(m[0], quote=False)
        return '<span class="%s">%s</span>' % (kind, html.escape(m[0], quote=False))
    out, at = [], 0
    for m in re.finditer(pattern, text):
        out += [html.escape(text[at:m.start()], quote=False), mark(m)]
        at = m.end()
    return "".join(out + [html.escape(text[at:], quote=False)])


# ---- a man page ----


class Page:
    """A page of roff as HTML: sections with anchors, lists, listings."""

    def __init__(self, text):
        self.out, self.toc, self.taken = [], [], set()
        self.lists = []         # open lists: how many RS deep each was begun
        self.deep = 0
        self.text = []          # lines of the paragraph at hand
        self.term = False       # the next line of text is a term
        self.kind = None
        self.title = ""
        self.read(text.split("\n"))

    def flush(self):
        if self.text:
            self.out.append(("<p>%s</p>" if not self.in_item() else "%s") % "\n".join(self.text))
        self.text = []

    def in_item(self):
        return bool(self.lists) and self.lists[-1] == self.deep

    def close_lists(self, deep):
        self.flush()
        while self.lists and self.lists[-1] >= deep:
            self.out.append("</dd></dl>")
            self.lists.pop()

    def heading(self, level, text):
        self.close_lists(0)
        self.deep = 0
        name = slug(text, self.taken)
        shown = inline(text)
        self.toc.append((level, name, shown))
        self.out.append('<h%d id="%s">%s <a class="here" href="#%s" aria-label="this section">#</a></h%d>'
                        % (level, name, shown, name, level))

    def item(self, term):
        self.flush()
        if self.in_item():
            self.out.append("</dd>")
        else:
            self.lists.append(self.deep)
            self.out.append("<dl>")
        self.out.append("<dt>%s</dt><dd>" % term)

    def line(self, roff):
        shown = inline(roff)
        if self.term:
            self.term = False
            self.item(shown)
        else:
            self.text.append(shown)

    def listing(self, lines, k, until):
        self.flush()
        body = []
        while k < len(lines) and not lines[k].startswith(until):
            if not lines[k].startswith('.\\"'):
                body.append(lines[k])
            k += 1
        if until == ".fi":
            shown = "\n".join(inline(macro_text(b)) for b in body)
        else:
            plain = "\n".join(characters(re.sub(r"\\f.", "", b)) for b in body)
            shown = coloured(plain) if self.kind in ("run", "check") else html.escape(plain, quote=False)
        self.out.append("<pre><code>%s</code></pre>" % shown)
        self.kind = None
        return k

    def read(self, lines):
        k = 0
        while k < len(lines):
            line = lines[k]
            k += 1
            if line.startswith(('.\\"', "'\\\"")):
                kind = line[3:].split()
                self.kind = kind[0] if kind else None
                continue
            if not line.startswith("."):
                if line:
                    self.line(line)
                continue
            name, _, rest = line[1:].partition(" ")
            args = words(rest)
            if name == "TH":
                self.title = args[0].lower() + "(" + args[1] + ")"
            elif name == "SH":
                self.heading(2, " ".join(args))
            elif name == "SS":
                self.heading(3, " ".join(args))
            elif name in ("PP", "P", "LP"):
                if self.in_item():
                    self.close_lists(self.deep)
                self.flush()
            elif name == "TP":
                self.flush()
                self.term = True
            elif name == "IP":
                self.item(inline(args[0]) if args else "")
            elif name == "RS":
                self.flush()
                self.deep += 1
            elif name == "RE":
                self.close_lists(self.deep)
                self.deep -= 1
            elif name == "EX":
                k = self.listing(lines, k, ".EE") + 1
            elif name == "nf":
                k = self.listing(lines, k, ".fi") + 1
            elif name == "br":
                self.text.append("<br>")
            else:
                self.line(macro_text(line))
        self.close_lists(0)


def macro_text(line):
    """A line of fonts as text with font escapes."""
    if not line.startswith("."):
        return line
    name, _, rest = line[1:].partition(" ")
    args = words(rest)
    if name in ("PP", "br"):
        return ""
    if name in ("B", "I"):
        return "\\f%s%s\\fR" % (name, " ".join(args))
    if len(name) == 2 and set(name) <= set("BIR"):
        return alternate(args, name)
    raise SystemExit("site.py: no macro .%s is known" % name)


# ---- Markdown: README and notebooks ----


TEX = {"le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "cdot": "·", "times": "×", "infty": "∞", "pm": "±", "to": "→",
       "in": "∈", "approx": "≈", "perp": "⊥", "partial": "∂", "nabla": "∇", "sum": "∑", "int": "∫", "dots": "…", "ldots": "…",
       "quad": "\u2003", ",": "\u2009", ";": "\u2009", " ": " ", "left": "", "right": "", "lambda": "λ", "Lambda": "Λ"}
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lamda mu nu xi omicron pi rho sigma_ sigma tau upsilon phi chi psi " \
        "omega".split()
TEX.update({name: chr(0x3b1 + k) for k, name in enumerate(GREEK)})
TEX.update({name.capitalize(): chr(0x391 + k) for k, name in enumerate(GREEK)})


def formula(text):
    """A formula of TeX as one line of characters; no more than notebooks use."""
    text = re.sub(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"√(\1)", text)
    text = re.sub(r"\\(?:mathrm|text|mathbf|operatorname)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\ddot\{?(\w)\}?", "\\1\u0308", re.sub(r"\\dot\{?(\w)\}?", "\\1\u0307", text))
    text = re.sub(r"\\([A-Za-z]+|[,; ])", lambda m: TEX.get(m[1], m[1]), text)
    for sign, tag in (("_", "sub"), ("^", "sup")):
        text = re.sub(re.escape(sign) + r"(?:\{([^{}]*)\}|(\S))", lambda m: "<%s>%s</%s>" % (tag, m[1] or m[2], tag), text)
    return '<span class="formula">%s</span>' % text


def markdown_inline(text):
    text = html.escape(text, quote=False)
    text = re.sub(r"\$\$?([^$]+)\$\$?", lambda m: formula(m[1]), text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(?<![*\w])\*([^*\s][^*]*)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^]]+)\]\((https?:[^)\s]+)\)", r'<a href="\2">\1</a>', text)


def markdown(text, toc, taken):
    """Headings, paragraphs, lists, tables and listings; no more than README and notebooks use."""
    out, lines, k = [], text.split("\n"), 0
    while k < len(lines):
        line = lines[k]
        if line.startswith("```"):
            body, kind = [], line[3:].strip()
            k += 1
            while k < len(lines) and not lines[k].startswith("```"):
                body.append(lines[k])
                k += 1
            plain = "\n".join(body)
            out.append("<pre><code>%s</code></pre>" % (coloured(plain) if kind == "cdl" else html.escape(plain, quote=False)))
        elif line.startswith("    ") and line.strip():
            body = []
            while k < len(lines) and (lines[k].startswith("    ") or not lines[k].strip()):
                body.append(lines[k][4:])
                k += 1
            out.append("<pre><code>%s</code></pre>" % html.escape("\n".join(body).rstrip(), quote=False))
            continue
        elif line.startswith("#"):
            level, shown = len(line) - len(line.lstrip("#")), line.lstrip("# ")
            name = slug(shown, taken)
            toc.append((min(level, 3), name, markdown_inline(shown)))
            out.append('<h%d id="%s">%s</h%d>' % (level, name, markdown_inline(shown), level))
        elif line.startswith("|"):
            rows = []
            while k < len(lines) and lines[k].startswith("|"):
                rows.append([c.strip() for c in lines[k].strip().strip("|").split("|")])
                k += 1
            head, body = rows[0], [r for r in rows[1:] if not re.fullmatch(r"[-: ]*", "".join(r))]
            out.append('<div class="wide"><table><tr>%s</tr>' % "".join("<th>%s</th>" % markdown_inline(c) for c in head))
            out += ["<tr>%s</tr>" % "".join("<td>%s</td>" % markdown_inline(c) for c in r) for r in body]
            out.append("</table></div>")
            continue
        elif re.match(r"[-*] ", line):
            items = []
            while k < len(lines) and (re.match(r"[-*] ", lines[k]) or lines[k].startswith("  ")):
                if lines[k][0] in "-*":
                    items.append([])
                items[-1].append(lines[k].lstrip("-* "))
                k += 1
            out += ["<ul>", *("<li>%s</li>" % markdown_inline("\n".join(i)) for i in items), "</ul>"]
            continue
        elif line.strip():
            body = []
            while k < len(lines) and lines[k].strip() and not re.match(r"```|#|\||    |[-*] ", lines[k]):
                body.append(markdown_inline(lines[k]))
                k += 1
            out.append("<p>%s</p>" % "\n".join(body))
            continue
        k += 1
    return "\n".join(out)


def joined(x):
    return "".join(x) if isinstance(x, list) else x


def outputs(cell):
    for o in cell.get("outputs", []):
        data = o.get("data", {})
        if "image/svg+xml" in data:
            # a picture cannot run what it may hold
            yield '<p><img alt="picture" src="data:image/svg+xml;base64,%s"></p>' % base64_of(joined(data["image/svg+xml"]))
        elif "image/png" in data:
            yield '<p><img alt="picture" src="data:image/png;base64,%s"></p>' % joined(data["image/png"]).replace("\n", "")
        elif joined(data.get("text/html", "")).startswith("<iframe srcdoc="):
            yield joined(data["text/html"]) # a page of animate, whole
        else:
            text = joined(o.get("text", data.get("text/plain", "")))
            if text.strip():
                yield '<pre class="answer">%s</pre>' % html.escape(text.rstrip(), quote=False)


def base64_of(text):
    import base64
    return base64.b64encode(text.encode()).decode()


def with_jupyter():
    """A Python that can execute notebooks, or None."""
    for python in ("python3", "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import nbconvert, ipykernel, numpy"],
                                                   stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def executed(paths, source):
    """Notebooks with what their cells answer where Jupyter is installed; else as they are, without answers."""
    python, books = with_jupyter() if paths else None, {p: json.loads(p.read_text()) for p in paths}
    if not python:
        return books
    with tempfile.TemporaryDirectory() as place:
        library = pathlib.Path(".libs/libcdl.so.0").resolve() # of the build that the site is made in
        env = {**os.environ, "PYTHONPATH": str(source.resolve() / "lang/python"), "PYTHONDONTWRITEBYTECODE": "1",
               "JUPYTER_PATH": place + "/share/jupyter", **({"CDL_LIBRARY": str(library)} if library.exists() else {})}
        run = lambda *command: subprocess.run([python, "-m", *command], env=env, cwd=place, capture_output=True)
        run("cdl.kernel", "install", "--prefix", place)
        for p in paths:
            shutil.copy(p, place)
            if run("nbconvert", "--to", "notebook", "--execute", "--inplace", p.name).returncode == 0:
                books[p] = json.loads(pathlib.Path(place, p.name).read_text())
            else:
                print("notebook %s was not executed" % p.name, file=sys.stderr)
    return books


def notebook(path, book):
    """A notebook: its title, its body, its sections."""
    cdl = book.get("metadata", {}).get("kernelspec", {}).get("language") == "cdl" or \
        book.get("metadata", {}).get("language_info", {}).get("name") == "cdl"
    out, toc, taken = [], [], set()
    for cell in book["cells"]:
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(markdown(source, toc, taken))
        elif cell["cell_type"] == "code":
            code = coloured(source) if cdl or source.startswith("%%cdl") else html.escape(source, quote=False)
            out.append("<pre><code>%s</code></pre>" % code)
            out += outputs(cell)
    title = re.sub(r"<[^>]+>", "", toc[0][2]) if toc else path.stem
    return title, "\n".join(out), toc


# ---- the site ----
FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - CDL</title><link rel="stylesheet" href="{up}style.css"></head><body>
<header><a class="name" href="{up}index.html">CDL</a><nav aria-label="site">{menu}</nav></header>
<div class="page">{toc}<main>
{body}
</main></div></body></html>
"""


def contents(toc):
    rows = ['<a class="l%d" href="#%s">%s</a>' % (level, name, re.sub(r"</?(a|b|em|code)\b[^>]*>", "", shown))
            for level, name, shown in toc if level > 1]
    if len(rows) < 3:
        return ""
    return '<details class="toc" open><summary>On this page</summary><nav aria-label="on this page">%s</nav></details>' \
        % "\n".join(rows)


class Site:
    def __init__(self, out):
        self.out, self.menu = out, []

    def write(self, path, title, body, toc=()):
        up = "../" * path.count("/")
        menu = "\n".join('<a href="%s%s"%s>%s</a>' % (up, p, ' aria-current="page"' if p == path else "", html.escape(t))
                         for p, t in self.menu)
        file = self.out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FRAME.format(title=html.escape(title), up=up, menu=menu, toc=contents(toc), body=body))


MAN = [("cdl.7", "tutorial.html", "Tutorial"), ("cdl.5", "language.html", "Language"), ("cdl.1", "command.html", "Command"),
       ("cdl-coming-from.7", "coming-from.html", "Coming from"), ("cdl-python.7", "python.html", "Python"),
       ("cdl.3", "c.html", "C")]


def main(source, out, gallery=None):
    source, out = pathlib.Path(source), pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words_ = re.findall(r'^X\(\w+,\s*"([a-z]+)"', (source / "lang/syntax/keywords.def").read_text(), flags=re.M)
    KEYWORDS.update(words_)
    site = Site(out)
    known = {f for f, _, _ in MAN}
    pages = MAN + [(p.name, p.stem + ".html", p.stem) for p in sorted((source / "man").glob("*.[1-7]")) if p.name not in known]
    for file, path, _ in pages:
        name, _, section = file.rpartition(".")
        PAGES[(name, section)] = path
    notebooks = sorted((source / "examples/notebooks").glob("*.ipynb"))
    site.menu = [(path, title) for _, path, title in pages]
    site.menu += [("notebooks/%s.html" % notebooks[0].stem, "Notebooks")] if notebooks else []
    site.menu += [("gallery/index.html", "Gallery")] if gallery else []
    for file, path, title in pages:
        page = Page((source / "man" / file).read_text())
        site.write(path, title, "<h1>%s</h1>\n%s" % (html.escape(page.title), "\n".join(page.out)), page.toc)
    books = [(n.stem, *notebook(n, book)) for n, book in executed(notebooks, source).items()]
    for stem, title, body, toc in books:
        others = "<p>Notebooks: %s</p>" % ", ".join('<a href="%s.html">%s</a>' % (s, html.escape(t)) for s, t, _, _ in books)
        site.write("notebooks/%s.html" % stem, title, others + body, toc)
    toc = []
    body = markdown((source / "README.md").read_text(), toc, set())
    site.write("index.html", "the contact description language", body, toc)
    shutil.copy(source / "man/site/style.css", out / "style.css")
    if gallery:
        shutil.copytree(gallery, out / "gallery", ignore=shutil.ignore_patterns("*.part"))
        index = out / "gallery/index.html"
        index.write_text(index.read_text().replace("<h1>Examples</h1>",
                                                   '<p><a href="../index.html">CDL</a></p><h1>Examples</h1>', 1))
    print("wrote %s, %d pages" % (out / "index.html", len(list(out.rglob("*.html")))))


if __name__ == "__main__":
    main(*sys.argv[1:])
