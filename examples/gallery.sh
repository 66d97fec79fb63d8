#!/bin/bash
# A page of the examples: gallery.sh CDL DIR [EXAMPLE...] writes DIR/index.html.  Each example is run, its pictures are shown, and a
# page of the viewer beside them plays its last run.
set -eu
cdl=$1 dir=$2 here=$(cd "$(dirname "$0")" && pwd)
shift 2
[ $# -gt 0 ] || set -- "$here"/*.cdl
mkdir -p "$dir"
escape() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }
{
    cat <<'HTML'
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>CDL: examples</title><style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
pre { padding: 1em; overflow: auto; border: 1px solid #8884; border-radius: 6px; }
img { max-width: 100%; background: white; } iframe { width: 100%; height: 620px; border: 1px solid #8884; border-radius: 6px; }
nav { columns: 12em; }
</style></head><body><h1>Examples</h1><nav>
HTML
    for f; do name=$(basename "$f" .cdl); echo "<a href=\"#$name\">$name</a><br>"; done
    echo '</nav>'
    for f; do
        name=$(basename "$f" .cdl) out=$dir/$(basename "$f" .cdl)
        rm -rf "$out"; mkdir -p "$out"
        "$cdl" run -o "$out" --report "$name.html" "$f" >"$out/answer.txt" 2>"$out/notes.txt" || :
        echo "<h2 id=\"$name\">$name</h2><p>$(sed -nE 's/^## ?//p' "$f" | head -n 3 | escape)</p>"
        [ ! -s "$out/$name.html" ] || echo "<iframe loading=\"lazy\" title=\"$name\" src=\"$name/$name.html\"></iframe>"
        find "$out" -name '*.svg' | sort | while read -r p; do echo "<p><img loading=\"lazy\" src=\"${p#"$dir"/}\" alt=\"$name\"></p>"; done
        echo "<pre>$(escape <"$f")</pre><details><summary>What it answers</summary><pre>$(escape <"$out/answer.txt")</pre></details>"
    done
    echo '</body></html>'
} >"$dir/index.html.part"
mv "$dir/index.html.part" "$dir/index.html"
echo "wrote $dir/index.html"
