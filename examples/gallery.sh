#!/bin/bash
# A page of the examples: gallery.sh CDL DIR [EXAMPLE...] writes DIR/index.html.  Each example is run, its pictures are shown, and a
# page of the viewer beside them plays its last run.
set -eu
cdl=$1 dir=$2 here=$(cd "$(dirname "$0")" && pwd)
shift 2
[ $# -gt 0 ] || set -- "$here"/*.cdl
mkdir -p "$dir"
about() { sed -nE '/^([^#]|$)/q; s/^## ?//p' "$1" | sed -n '/^$/q; p' | paste -sd' '; } # what its head says, to the first empty line
escape() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }
{
    cat <<'HTML'
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>CDL: examples</title><style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
pre { padding: 1em; overflow: auto; border: 1px solid #8884; border-radius: 6px; }
img { max-width: 100%; background: white; } iframe { width: 100%; height: 620px; border: 1px solid #8884; border-radius: 6px; }
nav { display: grid; grid-template-columns: repeat(auto-fill, minmax(15em, 1fr)); gap: .7em; }
nav a { display: block; padding: .5em .8em; border: 1px solid #8884; border-radius: 6px; color: inherit; text-decoration: none; }
nav a:hover { border-color: #888; } nav small { display: block; opacity: .75; line-height: 1.35; }
section { scroll-margin-top: 1em; } pre, summary { font-size: 14px; }
</style></head><body><h1>Examples</h1><nav>
HTML
    for f; do
        name=$(basename "$f" .cdl)
        echo "<a href=\"#$name\"><b>$name</b><small>$(about "$f" | sed -E 's/([^.]{12,}[.:;]) .*/\1/; s/[.:;]*$//' | escape)</small></a>"
    done
    echo '</nav>'
    for f; do
        name=$(basename "$f" .cdl) out=$dir/$(basename "$f" .cdl)
        rm -rf "$out"; mkdir -p "$out"
        "$cdl" run -o "$out" --report "$name.html" "$f" >"$out/answer.txt" 2>"$out/notes.txt" || :
        echo "<h2 id=\"$name\">$name</h2><p>$(about "$f" | escape)</p>"
        [ ! -s "$out/$name.html" ] || echo "<iframe title=\"$name\" data-src=\"$name/$name.html\"></iframe><p><a href=\"$name/$name.html\">this page by itself</a></p>"
        find "$out" -name '*.svg' | sort | while read -r p; do echo "<p><img loading=\"lazy\" src=\"${p#"$dir"/}\" alt=\"$name\"></p>"; done
        echo "<pre>$(escape <"$f")</pre><details><summary>What it answers</summary><pre>$(escape <"$out/answer.txt")</pre></details>"
    done
    # pages in space take memory of the graphics card, of which browsers give some sixteen a share: only what is near is loaded
    cat <<'HTML'
<script>
const near = new IntersectionObserver(seen => seen.forEach(x => {
  if (x.isIntersecting && !x.target.src) x.target.src = x.target.dataset.src;
  else if (!x.isIntersecting) x.target.removeAttribute("src");
}), { rootMargin: "800px" });
document.querySelectorAll("iframe").forEach(f => near.observe(f));
</script></body></html>
HTML
} >"$dir/index.html.part"
mv "$dir/index.html.part" "$dir/index.html"
echo "wrote $dir/index.html"
