# The man pages render without warnings, no line is lost, and the index of cdl(5) contains every function, result, law and
# attribute of constraints.
: "${srcdir:?}"
names() {
    sed -nE 's/^X\([A-Z]+, *([a-z_A-Z]+),.*/\1/p' "$srcdir/lang/results/results.def"
    sed -nE 's/^    \{ "([a-zA-Z_0-9]+)", [0-9]+, -?[0-9]+,.*/\1/p' "$srcdir/lang/value/builtin.c" "$srcdir/lang/results/session_functions.c"
    sed -nE 's/^X\([A-Z0-9]+, *"([a-z][a-z0-9]*)".*/\1/p' "$srcdir/runtime/base/opcodes.def" | grep -vxE 'and|or|not|if|sqr'
    sed -nE 's/^X\([A-Z]+, *"([a-z]+)".*/\1/p' "$srcdir/lang/model/laws.def" "$srcdir/lang/model/attributes.def"
}
index=$(sed -n '/^\.SH INDEX/,/^\.SH FILES/p' "$srcdir/man/cdl.5")
missing=
for name in $(names | sort -u); do
    case $index in *"\\fB$name\\fR"*) ;; *) missing="$missing $name" ;; esac
done
if [ -z "$missing" ]; then echo "ok the index holds $(names | sort -u | wc -l) names"; else echo "not ok not in the index:$missing"; fi

if ! command -v groff >/dev/null; then
    echo "ok rendering # SKIP no groff"
    exit 0
fi
for page in "$srcdir"/man/*.[1357]; do
    said=$(groff -man -ww -Tutf8 -z "$page" 2>&1)
    if [ -z "$said" ]; then echo "ok ${page##*/} renders"; else echo "$said"; echo "not ok ${page##*/} renders"; fi
done
# text that begins with ' or . would be read as a request
if grep -nE "^'" "$srcdir"/man/*.[1357]; then echo "not ok a line begins with '"; else echo "ok no line begins with '"; fi
