# fmt never changes the meaning: after it every model of the tree, and every case beside it, has the same model and IR, and formatting
# again changes nothing. Texts that fmt does not change need no comparison; all others are compared.
set -e
list=$(ls "$srcdir"/examples/*.cdl "$srcdir"/stdlib/*.cdl "$srcdir"/tests/lang/*.cdl "$srcdir"/tests/run/*.cdl "$srcdir"/tests/cases/*.cdl)
mkdir before once
n=0
for f in $list; do
    n=$((n + 1))
    cp "$f" "before/$n.cdl"
    names[n]=${f#"$srcdir"/}
done
cp before/*.cdl once
"$CDL" fmt once/*.cdl || echo "not ok a file was not formatted"
cp -r once twice
"$CDL" fmt twice/*.cdl
# the model and its IR, for the text in this folder
stages() { for stage in model ir; do "$CDL" show $stage "$1" 2>/dev/null || echo failed; done; }
for k in $(seq $n); do
    cmp -s "once/$k.cdl" "twice/$k.cdl" || echo "not ok ${names[k]}: formatted twice it changes"
    ! cmp -s "before/$k.cdl" "once/$k.cdl" || continue
    cp "before/$k.cdl" t.cdl && stages t.cdl >old
    cp "once/$k.cdl" t.cdl && stages t.cdl >new
    cmp -s old new || { echo "not ok ${names[k]}: another meaning after fmt"; diff old new | head -5; }
done
[ $n -gt 0 ]
echo "ok $n files mean the same after fmt"
