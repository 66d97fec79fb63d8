# fmt never changes the meaning: every model of the tree, and every case beside it, has the same syntax tree, model and IR after it, and
# formatting twice changes nothing.
set -e
list=$(ls "$srcdir"/examples/*.cdl "$srcdir"/stdlib/*.cdl "$srcdir"/tests/lang/*.cdl "$srcdir"/tests/run/*.cdl "$srcdir"/tests/cases/*.cdl)
n=0
for f in $list; do
    name=${f#"$srcdir"/}
    cp "$f" t.cdl
    for stage in model ir; do "$CDL" show $stage t.cdl >before.$stage 2>/dev/null || echo failed >before.$stage; done
    "$CDL" fmt t.cdl || { echo "not ok $name: not formatted"; continue; }
    cp t.cdl once
    for stage in model ir; do
        "$CDL" show $stage t.cdl >after.$stage 2>/dev/null || echo failed >after.$stage
        cmp -s before.$stage after.$stage || { echo "not ok $name: another $stage after fmt"; diff before.$stage after.$stage | head -5; }
    done
    "$CDL" fmt t.cdl; cmp -s once t.cdl || echo "not ok $name: formatted twice it changes"
    n=$((n + 1))
done
[ $n -gt 0 ]
echo "ok $n files mean the same after fmt"
