#!/usr/bin/env python3
"""A client of the language server, for tests/cli/lsp.sh.

    client.py answers CDL              each kind of request against what it must answer
    client.py protocol CDL             whatever may arrive: no crash, no hang, right codes
    client.py edits CDL N SEED FILE... N random edits; after each the server answers, and its diagnostics are
                                           those of `cdl check` on the same text (every LSP_CHECK_EVERY-th)
    client.py latency CDL LINES MS     a file of that many lines: diagnostics and answers within so many milliseconds

Lines `ok ...` and `not ok ...` go to standard output.  Standard library only."""
import json, os, random, re, select, shutil, subprocess, sys, tempfile, time

FAILED = 0


def verdict(name, good, seen=""):
    global FAILED
    if good:
        print("ok", name)
    else:
        FAILED = 1
        print("not ok", name)
        print("    " + str(seen).replace("\n", "\n    "))


class Server:
    def __init__(self, cdl, *more):
        self.p = subprocess.Popen([cdl, "lsp", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next, self.buffer, self.notes = 0, b"", []

    def raw(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, message):
        body = json.dumps(message, ensure_ascii=bool(random.getrandbits(1))).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def read(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            head = self.buffer.find(b"\r\n\r\n")
            if head >= 0:
                n = int(re.search(rb"Content-Length: (\d+)", self.buffer[:head]).group(1))
                if len(self.buffer) >= head + 4 + n:
                    body = self.buffer[head + 4:head + 4 + n]
                    self.buffer = self.buffer[head + 4 + n:]
                    return json.loads(body)
            if not select.select([self.p.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("no answer in %g s" % seconds)
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                raise EOFError("the server ended with %s" % self.p.wait())
            self.buffer += more

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method, params=None):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        while True:
            m = self.read()
            if m.get("id") == self.next:
                return m
            self.notes.append(m)

    def ask(self, method, params=None):
        m = self.request(method, params)
        if "error" in m:
            raise RuntimeError("%s: %s" % (method, m["error"]))
        return m["result"]

    def start(self):
        text = {"hover": {"contentFormat": ["markdown"]},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
                "signatureHelp": {"signatureInformation": {"parameterInformation": {"labelOffsetSupport": True}}}}
        r = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {"textDocument": text}})
        self.notify("initialized", {})
        return r

    def diagnostics(self, uri, version=None):
        while True:
            for k, m in enumerate(self.notes):
                p = m.get("params", {})
                if m.get("method") == "textDocument/publishDiagnostics" and p["uri"] == uri and \
                        (version is None or p.get("version") == version):
                    del self.notes[:k + 1]
                    return p["diagnostics"]
            self.notes.append(self.read())

    def open(self, uri, text, version=1):
        self.notify("textDocument/didOpen",
                    {"textDocument": {"uri": uri, "languageId": "cdl", "version": version, "text": text}})

    def stop(self):
        self.ask("shutdown")
        self.send({"jsonrpc": "2.0", "method": "exit"})
        self.p.stdin.close()
        return self.p.wait(60)


# ---- places in UTF-16 units, with the line ends of the protocol ----

def units(s):
    return len(s.encode("utf-16-le", "surrogatepass")) // 2


def position(text, k):
    line, begin, i = 0, 0, 0
    while i < k:
        if text[i] == "\n" or (text[i] == "\r" and text[i + 1:i + 2] != "\n"):
            line, begin = line + 1, i + 1
        i += 1
    return {"line": line, "character": units(text[begin:k])}


def index(text, p):
    lines, begin, k = p["line"], 0, 0
    while lines:
        if text[k] == "\n" or (text[k] == "\r" and text[k + 1:k + 2] != "\n"):
            lines, begin = lines - 1, k + 1
        k += 1
    n = begin
    while units(text[begin:n]) < p["character"]:
        n += 1
    return n


def apply(text, edits):
    for e in sorted(edits, key=lambda e: -index(text, e["range"]["start"])):
        a, b = index(text, e["range"]["start"]), index(text, e["range"]["end"])
        text = text[:a] + e["newText"] + text[b:]
    return text


# ---- answers ----

MODEL = """## A ball on a floor.
model ball {
    ## gravity
    param g = 9.81 [m/s^2], y0 = 1 [m]
    param e in 0..1 = 0.8
    let top = y0 + y0
    fn twice(v, k) = k*v
    dof y = y0, y' = 0 [m/s]
    y'' = -g
    constraint floor: y >= 0 { impact = newton(e) }
    constraint roof: y <= top
}
model two {
    part a: ball(e = 0.5) { y = 2 [m] }
    part b[i in 1..2]: ball
    constraint over: a.y - b[1].y >= 0
}
run ball(e = 0.7) for 3 [s] with sweeping(h = 1e-3)
measure top_speed = max(y')  # 𝄞 α
expect floor.impacts.t[1] == sqrt(2*1/9.81) within abs(2e-3)  "𝄞 first"
run r = two for 1
expect r.a.y(0) >= 0
"""


class Doc:
    def __init__(self, server, uri, text):
        self.s, self.uri, self.text, self.version = server, uri, text, 1
        server.open(uri, text)

    def at(self, mark, shift=0, nth=0):
        k = -1
        for _ in range(nth + 1):
            k = self.text.index(mark, k + 1)
        return position(self.text, k + shift)

    def ask(self, what, mark=None, shift=0, nth=0, **more):
        p = {"textDocument": {"uri": self.uri}}
        if mark is not None:
            p["position"] = self.at(mark, shift, nth)
        p.update(more)
        return self.s.ask("textDocument/" + what, p)

    def change(self, text):
        self.text, self.version = text, self.version + 1
        self.s.notify("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version},
                                                 "contentChanges": [{"text": text}]})

    def typed(self, mark, insert, nth=0):
        k = self.text.index(mark)
        self.change(self.text[:k] + insert + self.text[k:])

    def words(self, mark, shift=0):
        return [x["label"] for x in self.ask("completion", mark, shift)["items"]]

    def texts(self, ranges):
        return [self.text[index(self.text, r["start"]):index(self.text, r["end"])] for r in ranges]


def answers(cdl):
    s = Server(cdl)
    r = s.start()
    caps = r["capabilities"]
    verdict("capabilities", caps["positionEncoding"] == "utf-16" and caps["hoverProvider"] and
            caps["textDocumentSync"]["change"] == 2, r)
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "a b.cdl")
    d = Doc(s, "file://" + path.replace(" ", "%20"), MODEL)
    verdict("a good text has no diagnostics", s.diagnostics(d.uri) == [], s.notes)

    h = d.ask("hover", "g = 9.81")["contents"]["value"]
    verdict("hover: declaration, documentation and unit",
            "param g = 9.81 [m/s^2]" in h and "gravity" in h and "[m/s^2]" in h and "of ball" in h, h)
    h = d.ask("hover", "y'' = -g")["contents"]["value"]
    verdict("hover: the derived equation", "y''" in h and "-g" in h and "in [m]" in h, h)
    h = d.ask("hover", "ball {")["contents"]["value"]
    verdict("hover: a model", "A ball on a floor." in h and "y''" in h, h)
    verdict("hover: a built-in function", "sqrt" in d.ask("hover", "sqrt(")["contents"]["value"])
    verdict("hover: a backend", "backend sweeping" in d.ask("hover", "sweeping(")["contents"]["value"])
    verdict("hover: a keyword", "a bound on positions or rates, with its laws" in d.ask("hover", "constraint floor")["contents"]["value"])
    verdict("hover: nothing in a comment", d.ask("hover", "ball on") is None)
    h = d.ask("hover", "impacts.t")
    verdict("hover: the range", d.texts([h["range"]]) == ["impacts"], h)

    def target(mark, shift=0, nth=0):
        x = d.ask("definition", mark, shift, nth)
        return x and (x["uri"] == d.uri and x["range"]["start"])
    verdict("definition: parameter", target("g\n    constraint") == d.at("g = 9.81"))
    verdict("definition: a model", target("ball(e = 0.7") == d.at("ball {"))
    verdict("definition: member of a part", target("y - b[1]") == d.at("y = y0,"))
    verdict("definition: a result", target("floor.impacts") == d.at("floor: "))
    verdict("definition: member of a run", target("y(0)") == d.at("y = y0,"))
    verdict("definition: an argument of a model", target("e = 0.5") == d.at("e in 0..1"))
    verdict("definition: an argument of a function", target("v\n") == d.at("v, k"))
    verdict("definition: a name of the language has none", d.ask("definition", "sqrt(") is None)

    refs = d.ask("references", "e in 0..1", context={"includeDeclaration": True})
    verdict("references", [x["range"]["start"] for x in refs] ==
            [d.at("e in 0..1"), d.at("e) }"), d.at("e = 0.5"), d.at("e = 0.7")], refs)
    refs = d.ask("references", "e in 0..1", context={"includeDeclaration": False})
    verdict("references without the declaration", len(refs) == 3, refs)
    marks = d.ask("documentHighlight", "top_speed")
    verdict("highlights", d.texts([x["range"] for x in marks]) == ["top_speed"], marks)

    edits = d.ask("rename", "y0 = 1", newName="höhe".replace("ö", "α"))["changes"][d.uri]
    new = apply(d.text, edits)
    verdict("rename", new == re.sub(r"\by0\b", "hαhe", d.text), new)
    verdict("prepare rename", d.texts([d.ask("prepareRename", "y0 = 1")]) == ["y0"])
    verdict("prepare rename of a word of the language", d.ask("prepareRename", "sqrt(") is None)
    for name, wanted in (("g", "a name that is taken"), ("2x", "what is no name"), ("model", "a keyword")):
        m = s.request("textDocument/rename", {"textDocument": {"uri": d.uri}, "position": d.at("y0 = 1"),
                                              "newName": name})
        verdict("rename to " + wanted, "error" in m, m)

    outline = d.ask("documentSymbol")
    tree = [(x["name"], [y["name"] for y in x["children"]]) for x in outline]
    verdict("outline", ("ball", ["g", "y0", "e", "top", "twice", "y", "floor", "roof"]) in tree and
            ("two", ["a", "b", "over"]) in tree and ("r", []) in tree and ("top_speed", []) in tree, tree)

    verdict("signature: a function of the model",
            (lambda x: x["signatures"][0]["label"])(typed_signature(d, "    y'' = -g", "    let q = twice(1, \n")) ==
            "twice(v, k)")
    x = d.ask("signatureHelp", "1, \n", 3)
    verdict("signature: which argument", x["activeParameter"] == 1, x)
    d.change(MODEL)
    x = d.ask("signatureHelp", "e = 0.7", 4)
    verdict("signature: a model", x["signatures"][0]["label"].startswith("ball(g = 9.81 [m/s^2], y0 = 1 [m], e in 0..1") and
            x["activeParameter"] == 2, x)
    x = d.ask("signatureHelp", "h = 1e-3", 4)
    verdict("signature: a backend", x["signatures"][0]["label"].startswith("sweeping(h, ") and x["activeParameter"] == 0, x)
    x = d.ask("signatureHelp", "2*1/9.81")
    verdict("signature: a built-in function", x["signatures"][0]["label"].startswith("sqrt("), x)

    hints = d.ask("inlayHint", range={"start": d.at("## A"), "end": position(d.text, len(d.text))})
    found = {(d.text[index(d.text, x["position"]) - 3:index(d.text, x["position"])].strip(" ,\n"), x["label"]) for x in hints}
    verdict("inlay hints of units", ("top", "[m]") in found and ("f y", "[m]") in found and
            not any(x[0].endswith("g") for x in found), hints)

    data = d.ask("semanticTokens/full")["data"]
    legend = caps["semanticTokensProvider"]["legend"]["tokenTypes"]
    line, unit, seen = 0, 0, {}
    lines = d.text.split("\n")
    for k in range(0, len(data), 5):
        line, unit = line + data[k], data[k + 1] + (unit if data[k] == 0 else 0)
        word = lines[line].encode("utf-16-le")[2*unit:2*(unit + data[k + 2])].decode("utf-16-le")
        seen.setdefault(word, set()).add(legend[data[k + 3]])
    verdict("semantic tokens", seen.get("ball") == {"class"} and seen.get("sqrt") == {"function"} and
            seen.get("g") == {"parameter"} and seen.get("floor") == {"event"} and "class" not in seen.get("y", ()), seen)

    d.change(MODEL.replace("    let top = y0 + y0", "    let top=y0+y0"))
    new = apply(d.text, d.ask("formatting", options={"tabSize": 4, "insertSpaces": True}))
    verdict("formatting is that of cdl fmt", new == fmt(cdl, d.text), new)
    d.change(new)
    verdict("formatting what is formatted", d.ask("formatting", options={}) == [])

    # words in their place; no run was made
    d.change(MODEL + "expect floor.")
    got = [x["label"] for x in d.s.ask("textDocument/completion", {"textDocument": {"uri": d.uri}, "position": position(d.text, len(d.text))})["items"]]
    verdict("completion: members of a name of another run", "gap" not in got, got)

    def end(name, text, wanted, unwanted=()):
        d.change(text)
        got = [x["label"] for x in d.s.ask("textDocument/completion", {"textDocument": {"uri": d.uri}, "position": position(text, len(text))})["items"]]
        verdict("completion: " + name, all(x in got for x in wanted) and not any(x in got for x in unwanted), got)
    ball = MODEL[:MODEL.index("run r")]
    end("members of a constraint", ball + "expect floor.", ["gap", "rn", "impacts"], ["g", "run"])
    body = "model m {\n dof p in R3 = [0, 0, 1], A in SO3\n shape hull: box([-1, -1, -1], [1, 1, 1]) at p, A\n"
    end("spaces of a dof", body + " dof q in ", ["R2", "R3", "SO3"], ["sin", "p", "in"])
    end("but not of an index", body + " dof q[i in ", ["p", "sin"], ["SO3"])
    end("sets of a shape", body + " shape k: ", ["box", "hull", "capsule", "cylinder", "ellipsoid", "halfspace"], ["sin", "p", "interval"])
    end("members of a shape", body + " constraint c: hull.", ["gap"], ["rn", "sin"])
    end("arguments of a law", body + " constraint c: p[3] >= 0 { friction = coulomb(", ["static", "kinetic", "angle", "p"], ["tangential"])
    end("and of another", body + " constraint c: p[3] >= 0 { impact = newton(0.5, ", ["tangential"], ["static"])
    end("laws of rolling", body + " constraint c: p[3] >= 0 { rolling = ", ["coulomb"], ["tresca", "sin"])
    end("how impacts at once are taken", body + " constraint c: p[3] >= 0 { simultaneous = ", ["together", "cascade"], ["coulomb"])
    end("points of a constraint", body + " constraint c: p[3] >= 0\n}\nrun m for 1\nexpect c.points.", ["place", "normal", "rn", "rt"], ["gap"])
    end("members of impacts", ball + "expect floor.impacts.", ["t", "pre", "post", "impulse"], ["gap"])
    end("members of a run", MODEL + "expect r.", ["a", "b", "over", "energy"], ["sqrt"])
    end("members of a part", MODEL + "expect r.b[1].", ["y", "floor", "g"], ["sqrt"])
    end("results by name", ball + "expect y", ["y", "y0"], ["g"])
    end("backends", ball + "run ball for 3 with ", ["sweeping", "events"], ["ball", "sqrt"])
    end("options of a backend", ball + "run ball for 3 with sweeping(", ["h", "theta"], ["ball"])
    end("models", ball + "run ", ["ball", "two"], ["sqrt", "g"])
    end("parameters of a model", ball + "run ball(", ["g", "y0", "e"], [])
    end("units", ball + "let a = 3 [", ["m", "kg", "s"], ["ball"])
    inner = "model m {\n    param k = 1, mass = 2\n    dof x = 0\n    "
    end("statements of a model", inner + "con", ["constraint"], ["experiment"])
    end("names of a model", inner + "x'' = -k*x/m", ["mass", "max"], ["measure"])
    end("attributes", inner + "constraint c: x >= 0 { ", ["impact", "friction"], ["x"])
    end("laws", inner + "constraint c: x >= 0 { friction = ", ["coulomb", "tresca"], ["newton"])
    end("nothing in a comment", inner + "# x", [], ["x"])

    # mistakes
    d.change(MODEL.replace("impact = newton(e)", "impact = newtn(e)").replace("within abs(2e-3)", "within abs(2e-3"))
    found = s.diagnostics(d.uri, d.version)
    codes = sorted(x["code"] for x in found)
    verdict("a missing bracket hides no other mistake", len(found) == 2 and "syntax" in codes, found)
    bad = [x for x in found if x["code"] != "syntax"][0]
    verdict("the range of a diagnostic", d.texts([bad["range"]])[0].startswith("newtn"), bad)
    acts = d.ask("codeAction", range=bad["range"], context={"diagnostics": [bad]})
    new = apply(d.text, acts[0]["edit"]["changes"][d.uri]) if acts else None
    verdict("quick fix", bool(acts) and acts[0]["kind"] == "quickfix" and "newton(e)" in new, acts)
    d.change(MODEL.replace('"𝄞 first"', '"𝄞𝄞" + * "x"').replace("max(y')", "mxa(y')"))
    found = s.diagnostics(d.uri, d.version)
    at = [x["range"]["start"] for x in found if "+" in x["message"] or "expected" in x["message"] or "unexpected" in x["message"]]
    row = d.text.split("\n").index([x for x in d.text.split("\n") if "𝄞𝄞" in x][0])
    wanted = units(d.text.split("\n")[row][:d.text.split("\n")[row].index("+")])
    verdict("columns are UTF-16", at == [{"line": row, "character": wanted}], (found, row, wanted))

    d.change("## how long\nlet T = 3 [s]\nrun m for T\n")
    verdict("hover: a definition of the text", "how long" in d.ask("hover", "T\n", 0)["contents"]["value"])

    # two files
    lib = os.path.join(folder, "lib.cdl")
    open(lib, "w").write("## α twice\nfn dbl(x) = 2*x\nmodel inner {\n    dof z = 0\n    z'' = 1\n}\n")
    d.change('use "lib.cdl" as lib\nlet a = lib.dbl(3)\nmodel m {\n    part p: lib.inner\n}\nrun m for 1\nexpect p.z >= 0\n')
    verdict("a file beside it is read", s.diagnostics(d.uri, d.version) == [])
    x = d.ask("definition", "dbl")
    verdict("definition in another file", x["uri"] == "file://" + lib and x["range"]["start"] == {"line": 1, "character": 3}, x)
    verdict("hover from another file", "α twice" in d.ask("hover", "dbl")["contents"]["value"])
    verdict("what is declared elsewhere is not renamed", d.ask("prepareRename", "dbl") is None)
    rename_across(s, folder, d, lib)
    s.notes.clear()
    open(lib, "w").write("fn half(x) = x/2\nmodel inner {\n    dof z = 0\n    z'' = 1\n}\n")
    s.notify("textDocument/didSave", {"textDocument": {"uri": "file://" + lib}})
    found = s.diagnostics(d.uri)
    verdict("a file that it uses was saved", [x["code"] for x in found] == ["unknown-member"], found)
    d.change('use "../../../../etc/passwd" as p\n')
    found = s.diagnostics(d.uri, d.version)
    verdict("files outside are not read", [x["code"] for x in found] == ["outside"], found)
    d.change("run missing_model for 3\n")
    s.diagnostics(d.uri, d.version)
    verdict("nothing is written", os.listdir(folder) == ["lib.cdl"], os.listdir(folder))
    verdict("shutdown and exit", s.stop() == 0)


def typed_signature(d, mark, insert):
    d.typed(mark, insert)
    return d.ask("signatureHelp", insert.strip(), len(insert.strip()))


def fmt(cdl, text):
    return subprocess.run([cdl, "fmt", "-"], input=text.encode(), stdout=subprocess.PIPE).stdout.decode()


# ---- whatever may arrive ----

def protocol(cdl):
    s = Server(cdl)
    m = s.request("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}})
    verdict("a request before initialize", m.get("error", {}).get("code") == -32002, m)
    s.start()
    m = s.request("initialize", {})
    verdict("initialize twice", m.get("error", {}).get("code") == -32600, m)
    m = s.request("no/such", {})
    verdict("an unknown request", m.get("error", {}).get("code") == -32601, m)
    m = s.request("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}})
    verdict("a document that is not open", m.get("error", {}).get("code") == -32602, m)
    for bad in (None, [], 3, {"textDocument": 3}, {"textDocument": {"uri": 4}}, {"textDocument": {"uri": "file:///y"}, "position": 9}):
        s.notify("textDocument/didOpen", bad)
        s.notify("textDocument/didChange", bad)
        s.notify("textDocument/didClose", bad)
        s.request("textDocument/rename", bad)
    s.notify("$/cancelRequest", {"id": 77})
    s.notify("no/such/notification", {})
    for k, garbage in enumerate((b"{", b"[1, 2", b"\xff\xfe", b"", b"nonsense", b"[" * 5000, b'{"a":"\\ud800"}')):
        s.raw(b"Content-Length: %d\r\n\r\n" % len(garbage) + garbage)
        m = s.read()
        verdict("malformed JSON %d" % k, m["id"] is None and m["error"]["code"] == -32700, m)
    for body in (b"[]", b"3", b'{"jsonrpc":"2.0","id":{},"method":"shutdown"}', b'{"id":1}'):
        s.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        m = s.read()
        verdict("no message of the protocol: %s" % body.decode(), m["error"]["code"] == -32600, m)
    # lengths that are wrong: what follows is found again
    s.raw(b"Content-Length: 3\r\n\r\n{\"jsonrpc\":\"2.0\"}")
    s.read()
    verdict("a length that is too short", s.request("no/such")["error"]["code"] == -32601)
    s.raw(b"Content-Length: 99999999999999999999\r\n\r\n{}Content-Length: -3\r\n\r\n{}Content-Length: x\r\n\r\n")
    verdict("lengths that are none", s.request("no/such")["error"]["code"] == -32601)
    s.raw(b"Content-Length: 12" + b"\r\nX: y" * 2000 + b"\r\n\r\n")
    verdict("a header without end", s.request("no/such")["error"]["code"] == -32601)
    s.raw(b"content-length:  2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}")
    verdict("header fields in any case", s.read()["error"]["code"] == -32600)
    body = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "no/such"}).encode()
    for byte in b"Content-Length: %d\r\n\r\n" % len(body) + body:
        s.raw(bytes([byte]))
    verdict("a message byte by byte", s.read()["id"] == "a")

    # texts and places that are odd
    for k, text in enumerate(("", "\r", "\r\n\r\r\n", "\0", "𝄞", "model m {", "let a = [1..1e9]\n" * 3, "(" * 300, "let s = sum(i for i in 1..1e12)",
                              "model m {\n param N = 1e9\n dof x[i in 1..N] = i\n}\n", "let a" + "α" * 200 + " = 1 $ 2")):
        uri = "file:///tmp/none/%d.cdl" % k
        s.open(uri, text)
        s.diagnostics(uri)
        for method in METHODS:
            for where in ((0, 0), (0, 1), (5, 5), (2**31, 2**31), (-1, -1)):
                s.request("textDocument/" + method, ask_params(uri, {"line": where[0], "character": where[1]}))
        s.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [
            {"range": {"start": {"line": 9, "character": 9}, "end": {"line": 0, "character": 0}}, "text": "x"},
            {"range": {}, "text": "y"}, {"text": 3}, 4, {"range": 5, "text": "let a = 1\n"}]})
        s.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    verdict("odd texts and places", s.request("no/such")["error"]["code"] == -32601)
    m = s.request("shutdown")
    verdict("shutdown", m == {"jsonrpc": "2.0", "id": m["id"], "result": None}, m)
    m = s.request("textDocument/hover", {})
    verdict("a request after shutdown", m.get("error", {}).get("code") == -32600, m)
    s.send({"jsonrpc": "2.0", "method": "exit"})
    verdict("exit after shutdown", s.p.wait(60) == 0)
    s = Server(cdl)
    s.send({"jsonrpc": "2.0", "method": "exit"})
    verdict("exit without shutdown", s.p.wait(60) == 1)
    s = Server(cdl, "--stdio")
    s.start()
    s.p.stdin.close()
    verdict("the end of the input", s.p.wait(60) == 1)



def apply(text, edits):
    for e in sorted(edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
        text = text[:index(text, e["range"]["start"])] + e["newText"] + text[index(text, e["range"]["end"]):]
    return text


def rename_across(s, folder, d, lib):
    """A name of a text that others use: open, or only on the disk."""
    text = open(lib).read()
    below = os.path.join(folder, "below")
    os.makedirs(below, exist_ok=True)
    other, stranger = os.path.join(folder, "other.cdl"), os.path.join(below, "stranger.cdl")
    open(other, "w").write('# \U0001F600 dbl\nuse "lib.cdl" as twice\nlet b = "\U0001F600", c = twice.dbl(1) + twice.dbl(2)\n')
    open(stranger, "w").write("fn dbl(x) = 3*x\nlet use_of = dbl(1)\n")
    s.open("file://" + lib, text)
    at = {"textDocument": {"uri": "file://" + lib}, "position": position(text, text.index("dbl"))}
    found = s.ask("textDocument/references", dict(at, context={"includeDeclaration": True}))
    verdict("references in other texts", sorted(os.path.basename(x["uri"]) for x in found) ==
            sorted(["lib.cdl", os.path.basename(d.uri), "other.cdl", "other.cdl"]), found)
    changes = s.ask("textDocument/rename", dict(at, newName="double"))["changes"]
    verdict("rename across texts", sorted(os.path.basename(u) for u in changes) ==
            sorted(["lib.cdl", os.path.basename(d.uri), "other.cdl"]), changes)
    after = {u: apply(d.text if u == d.uri else open(u[7:]).read(), e) for u, e in changes.items()}
    verdict("their uses have the new name", "lib.double(3)" in after[d.uri] and
            after["file://" + other].count("twice.double(") == 2 and "# \U0001F600 dbl" in after["file://" + other] and
            after["file://" + lib] == text.replace("dbl", "double"), after)
    m = s.request("textDocument/rename", dict(at, newName="twice"))
    verdict("a name that another text has is refused", "another text" in m.get("error", {}).get("message", ""), m)
    s.notify("textDocument/didChange", {"textDocument": {"uri": "file://" + lib, "version": 2},
                                        "contentChanges": [{"text": "# more\n" + text}]})
    at["position"]["line"] += 1
    m = s.request("textDocument/rename", dict(at, newName="double"))
    verdict("a text that was not saved is not renamed for others", "save" in m.get("error", {}).get("message", ""), m)
    s.notify("textDocument/didClose", {"textDocument": {"uri": "file://" + lib}})
    os.remove(other)
    os.remove(stranger)
    os.rmdir(below)


METHODS = ("hover", "definition", "references", "documentHighlight", "prepareRename", "rename", "documentSymbol", "formatting",
           "completion", "signatureHelp", "codeAction", "semanticTokens/full", "inlayHint")


def ask_params(uri, place):
    return {"textDocument": {"uri": uri}, "position": place, "range": {"start": place, "end": place},
            "context": {"includeDeclaration": True, "diagnostics": []}, "newName": "renamed", "options": {}}


# ---- random edits ----

PIECES = ["(", ")", "[", "]", "{", "}", "'", "\"", ".", ",", ";", "=", "==", "+", "-", "*", "^", "\n", " ", "\t", "\r\n", "#", "##", "..", "é", "α", "𝄞",
          "param ", "dof x = 0\n", "model m {\n", "run ", "with ", "for ", "in ", "expect ", "fn f(x) = ", "1e400", "3 [m/s]", "[kg]", "floor.", "t",
          "y''", "let a = 1\n", "use std.planar\n", "constraint c: x >= 0\n", "if x then ", "sum(i for i in 1..3)"]


def check(cdl, path, text):
    """what `cdl check` finds: (line, units, line, units, severity, code, message)"""
    with open(path, "w", newline="") as f:
        f.write(text)
    out = subprocess.run([os.environ.get("LSP_CHECK_WITH", cdl), "check", "--diagnostics=json", path], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         timeout=120).stderr.decode("utf-8", "replace")
    found = []
    for line in out.split("\n"):
        if not line.startswith("{"):
            continue
        e = json.loads(line)
        if e.get("file") not in (path, None):   # the server shows what is wrong in another file at the beginning
            e["message"] = "%s:%d:%d: %s" % (e["file"], e["line"], e["column"], e["message"])
            e["line"] = e["column"] = 1
        found.append((e.get("severity"), e.get("code"), e.get("message"), e.get("line"), e.get("column")))
    return sorted(found, key=str)


def of_server(text, found):
    """the same from the server; columns in characters, lines of the language end in a newline alone"""
    out = []
    for x in found:
        k = index(text, x["range"]["start"])
        line, begin = text.count("\n", 0, k) + 1, text.rfind("\n", 0, k) + 1
        message = x["message"].split("\nhint: ")[0]
        out.append(({1: "error", 2: "warning", 3: "note"}[x["severity"]], x["code"], message, line, k - begin + 1))
    return sorted(out, key=str)


def edits(cdl, n, seed, files):
    rng = random.Random(seed)
    every = int(os.environ.get("LSP_CHECK_EVERY", "1"))
    s = Server(cdl)
    s.start()
    folder = tempfile.mkdtemp()
    for f in files:
        for beside in os.listdir(os.path.dirname(os.path.abspath(f))):
            at = os.path.join(os.path.dirname(os.path.abspath(f)), beside)
            if os.path.isfile(at) and not os.path.exists(os.path.join(folder, beside)):
                shutil.copy(at, folder)
    wrong = checked = 0
    times = []
    per = max(1, n // len(files))
    done = 0
    for f in files:
        path = os.path.join(folder, "edited-" + os.path.basename(f))
        uri = "file://" + path
        text = original = open(f, encoding="utf-8").read()
        version = 1
        s.open(uri, text, version)
        s.diagnostics(uri, version)
        for step in range(per):
            changes = []
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                kind = rng.random()
                a = rng.randrange(len(text) + 1)
                if kind < 0.4:
                    b, new = a, rng.choice(PIECES)
                elif kind < 0.7:
                    b, new = min(len(text), a + rng.choice((1, 1, 1, 3, 20))), ""
                elif kind < 0.85:
                    c = rng.randrange(len(original) + 1)
                    b, new = a, original[c:c + rng.randrange(120)]
                elif kind < 0.95:
                    b, new = min(len(text), a + 1), text[a:a + 1] * 2
                else:
                    a, b, new = 0, len(text), original
                # never between \r and \n: an editor has no such place
                while a and text[a - 1:a + 1] == "\r\n":
                    a -= 1
                while b < len(text) and text[b - 1:b + 1] == "\r\n":
                    b += 1
                b = max(a, b)
                changes.append({"range": {"start": position(text, a), "end": position(text, b)}, "text": new})
                text = text[:a] + new + text[b:]
                if len(text) > 3*len(original) + 2000:
                    changes, text = [{"text": original}], original
            version += 1
            done += 1
            began = time.monotonic()
            s.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes})
            found = s.diagnostics(uri, version)
            times.append(time.monotonic() - began)
            place = position(text, rng.randrange(len(text) + 1))
            method = rng.choice(METHODS)
            m = s.request("textDocument/" + method, ask_params(uri, place))
            if "error" in m and method != "rename":
                wrong += 1
                print("%s answers %s" % (method, m["error"]))
            if step % every:
                continue
            checked += 1
            want, got = check(cdl, path, text), of_server(text, found)
            if want != got:
                wrong += 1
                keep = os.path.join(tempfile.gettempdir(), "lsp-wrong-%d-%d.cdl" % (seed, done))
                open(keep, "w", newline="").write(text)
                print("edit %d of %s (kept in %s)\n  cdl check: %s\n  server:    %s" % (done, f, keep, want, got))
                if wrong > 5:
                    break
        s.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        os.path.exists(path) and os.remove(path)
    times.sort()
    print("%d edits, %d compared with cdl check, %d wrong; median %.1f ms, 99%% %.1f ms, largest %.1f ms" %
          (done, checked, wrong, 1e3*times[len(times)//2], 1e3*times[len(times)*99//100], 1e3*times[-1]))
    verdict("%d random edits in %d files" % (done, len(files)), wrong == 0)
    verdict("the server ends in order", s.stop() == 0)


# ---- latency ----

def long_text(lines):
    out, k = [], 0
    while len(out) < lines - 40:
        k += 1
        out += ["## Model %d." % k, "model ball%d {" % k, "    param g = 9.81 [m/s^2], y0 = 1 [m], m = 2 [kg]", "    param e in 0..1 = 0.8",
                "    dof y = y0, y' = 0 [m/s], x = 0 [m]", "    let h = y - y0", "    fn f(v) = 0.2 + 0.1*v", "    m*y'' = -m*g",
                "    m*x'' + 3 [N/m]*x = 0 [N]", "    constraint floor: y >= 0 { impact = newton(e) }",
                "    constraint wall: x <= 1 [m] { impact = newton(e), friction = coulomb(0.3) }", "    constraint roof: y <= 3 [m]", "}",
                "run ball%d(e = 0.7) for 3 [s] with sweeping(h = 1e-3)" % k, "expect floor.impacts.t[1] == sqrt(2*1/9.81) within abs(2e-3)",
                "expect max_penetration <= 1e-9", ""]
    return "\n".join(out + ["# end"] * (lines - len(out))) + "\n"


def latency(cdl, lines, most):
    s = Server(cdl)
    s.start()
    text, uri = long_text(lines), "file:///tmp/none/long.cdl"
    s.open(uri, text)
    verdict("the long text is good", s.diagnostics(uri) == [])
    times, asked = [], {}
    rng = random.Random(1)
    for k in range(15):
        a = rng.randrange(len(text))
        began = time.monotonic()
        s.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": k + 2}, "contentChanges": [
            {"range": {"start": position(text, a), "end": position(text, a)}, "text": "x"}]})
        s.diagnostics(uri, k + 2)
        times.append(time.monotonic() - began)
        s.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": k + 102}, "contentChanges": [{"text": text}]})
        s.diagnostics(uri, k + 102)
        for method in METHODS:
            began = time.monotonic()
            s.request("textDocument/" + method, ask_params(uri, position(text, a)))
            asked.setdefault(method, []).append(time.monotonic() - began)
    best, median = min(times), sorted(times)[len(times)//2]
    print("%d lines: diagnostics after an edit in %.1f ms at best, %.1f ms median" % (text.count("\n"), 1e3*best, 1e3*median))
    print("answers, best and median in ms: " + ", ".join("%s %.1f %.1f" % (m, 1e3*min(t), 1e3*sorted(t)[len(t)//2]) for m, t in asked.items()))
    # a loaded machine makes single times long; the best of fifteen is the server's own
    verdict("diagnostics of %d lines within %d ms" % (lines, most), 1e3*best <= most, times)
    verdict("answers within %d ms" % most, all(1e3*min(t) <= (3 if m == "rename" else 1)*most for m, t in asked.items()), asked)
    verdict("the server ends in order", s.stop() == 0)


if __name__ == "__main__":
    what, cdl = sys.argv[1:3]
    random.seed(7)
    if what == "answers":
        answers(cdl)
    elif what == "protocol":
        protocol(cdl)
    elif what == "edits":
        edits(cdl, int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    elif what == "latency":
        latency(cdl, int(sys.argv[3]), float(sys.argv[4]))
    sys.exit(FAILED)
