"""Changes what a file of points keeps of one statement, and seals it again, so that only its meaning is wrong.
    damage.py FILE CHANGE
The layout is that of session_jobs.c (key, length, report, check), session_report.c (tag, length, bytes) and
block_put in session_output.c."""
import struct
import sys

WORD = (1 << 64) - 1


def mixed(h, x):
    h = ((h ^ x) + 0x9E3779B97F4A7C15) & WORD
    h = ((h ^ h >> 30) * 0xBF58476D1CE4E5B9) & WORD
    h = ((h ^ h >> 27) * 0x94D049BB133111EB) & WORD
    return h ^ h >> 31


def check(p, h):
    h = mixed(h, len(p))
    for k in range(0, len(p), 8):
        h = mixed(h, int.from_bytes(p[k:k + 8].ljust(8, b"\0"), "little"))
    return h


class Reader:
    def __init__(self, p):
        self.p, self.at = p, 0

    def number(self):
        self.at += 8
        return struct.unpack_from("<Q", self.p, self.at - 8)[0]

    def bytes(self):
        n = self.number()
        self.at += n
        return self.p[self.at - n:self.at]


def number(x):
    return struct.pack("<Q", x & WORD)


def sized(p):
    return number(len(p)) + p


WORDS = ["path", "shown", "curve", "title", "log", "by", "style"]
NUMBERS = ["ncol", "series", "rows", "column", "behind", "surface"]
LISTS = ["marks", "shades", "is", "grid"]


def block_read(p):
    r = Reader(p)
    b = {"statement": r.number()}
    b.update((k, r.bytes()) for k in WORDS)
    b.update((k, r.number()) for k in NUMBERS)
    b.update((k, r.bytes()) for k in LISTS)
    b["names"] = [(r.bytes(), r.bytes()) for _ in range(r.number())]
    b["arrays"] = []
    for _ in range(r.number()):
        name, first, n = r.bytes(), r.number(), r.number()
        b["arrays"].append((name, first, n, [r.number() for _ in range(r.number())]))
    b["data"] = r.bytes()
    assert r.at == len(p)
    b["count"] = len(b["names"])
    return b


def block_bytes(b):
    p = number(b["statement"]) + b"".join(sized(b[k]) for k in WORDS)
    p += b"".join(number(b[k]) for k in NUMBERS) + b"".join(sized(b[k]) for k in LISTS)
    p += number(b["count"]) + b"".join(sized(a) + sized(c) for a, c in b["names"])
    p += number(len(b["arrays"]))
    for name, first, n, dims in b["arrays"]:
        p += sized(name) + number(first) + number(n) + number(len(dims)) + b"".join(map(number, dims))
    return p + sized(b["data"])


def file_bytes(p, **change):
    r = Reader(p)
    f = {"path": r.bytes(), "kind": r.bytes(), "data": r.bytes()}
    f.update(change)
    return sized(f["path"]) + sized(f["kind"]) + sized(f["data"])


def entry(tag, p, change):
    if tag == b"T" and "file" not in change:
        b = block_read(p)
        b.update(change)
        p = block_bytes(b)
    elif tag == b"W" and "file" in change:
        p = file_bytes(p, path=change["file"])
    return tag + sized(p)


def main(name, change):
    with open(name, "rb") as f:
        r = Reader(f.read())
    out = b""
    while r.at < len(r.p):
        key, report = r.number(), Reader(r.bytes())
        assert r.number() == check(report.p, key)
        whole = b""
        while report.at < len(report.p):
            report.at += 1
            tag = report.p[report.at - 1:report.at]
            whole += entry(tag, report.bytes(), change)
        out += number(key) + sized(whole) + number(check(whole, key))
    with open(name, "wb") as f:
        f.write(out)


if __name__ == "__main__":
    main(sys.argv[1], eval("dict(" + sys.argv[2] + ")"))
