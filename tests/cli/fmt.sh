# fmt: what it wrote it leaves alone, comments stay, and every model of the tree keeps its meaning.
set -e
printf '## doc\nmodel a{param k=2   # stiff\n dof x=1\nx'\'\''=-k*x}\n' >t.cdl
"$CDL" show ir t.cdl >before
if "$CDL" fmt --check t.cdl >/dev/null 2>&1; then echo "--check accepts what is not in the layout"; exit 1; fi
"$CDL" fmt t.cdl
"$CDL" fmt --check t.cdl
cp t.cdl once; "$CDL" fmt t.cdl; cmp once t.cdl
grep -q '^## doc$' t.cdl; grep -q '# stiff$' t.cdl
"$CDL" show ir t.cdl >after; cmp before after
for f in "$srcdir"/examples/*.cdl "$srcdir"/stdlib/*.cdl; do
    [ ! -e "$f" ] || "$CDL" fmt --check "$f" || { echo "$f is not in the layout of cdl fmt"; exit 1; }
done
