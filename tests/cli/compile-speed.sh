# A generated file of 100,000 lines checks in under a second, and a small model in 10 ms and 20 MB, with slack for a loaded machine
# (CDL_SLACK, 3 without it).  The figures are printed.
set -e
slack=${CDL_SLACK:-3}
"$CDL" --version --json | grep -q '"sanitize": *true' && slack=20        # times of instrumented code mean little
:
awk 'BEGIN {                                    # 30,000 dofs, each with its equation and its constraint
    print "model many {"; print "    param g = 9.81"
    for (i = 1; i <= 30000; i++) { printf "    dof x%d = %d\n    x%d'\'\'' = -g - %d*x%d\n    constraint c%d: x%d >= 0 { impact = newton(0.5) }\n", i, i, i, i % 7, i, i, i }
    for (i = 1; i <= 9997; i++) print "    # a line of comment"
    print "}" }' >dofs.cdl
awk 'BEGIN { for (i = 1; i <= 20000; i++) printf "model m%d {\n    dof x = 1\n    x'\'\'' = -%d*x\n    constraint c: x >= 0\n}\n", i, i }' >models.cdl
awk 'BEGIN {                                    # parameters and definitions that use each other
    print "model names {"
    for (i = 1; i <= 33332; i++) { printf "    param p%d = %d\n    let a%d = p%d + %s\n    let b%d = 2*a%d\n", i, i, i, i, (i == 1 ? "1" : "a" (i - 1)), i, i }
    print "    dof x = 0"; print "    x'\'\'' = -a33332"; print "}" }' >names.cdl
awk 'BEGIN { for (i = 1; i <= 50000; i++) printf "param q%d = %d\nlet l%d = 2*q%d\n", i, i, i, i }' >top.cdl

# processor time in ms, in the system included: what the machine does besides is not counted
spent() {
    TIMEFORMAT='%U %S'
    { time "$@" >out 2>&1; } 2>spent || return 1
    awk '{ printf "%d", 1000*($1 + $2) }' spent
}
for f in dofs models names top; do
    lines=$(wc -l <$f.cdl) best=
    for try in 1 2 3; do
        ms=$(spent "$CDL" check $f.cdl) || { head -5 out; echo "not ok $f: $lines lines do not check"; continue 2; }
        [ -n "$best" ] && [ "$best" -le $ms ] || best=$ms
        [ "$best" -gt 1000 ] || break
    done
    verdict=ok; [ "$best" -le $((1000*slack)) ] || verdict="not ok"
    echo "$verdict $f: $lines lines in $best ms"
done

# twenty times, for a clock that ticks in milliseconds
file=$srcdir/examples/bouncing_ball.cdl
twenty() { for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "$CDL" check "$file" || return 1; done; }
ms=$(spent twenty)
verdict=ok; [ "$ms" -le $((200*slack)) ] || verdict="not ok"
echo "$verdict bouncing_ball: checked in $((ms/20)).$((ms % 20 * 5)) ms"
# peak memory, where the system reports it; a sanitizer has its own
if [ -x /usr/bin/time ]; then
    kb=$(/usr/bin/time -f %M "$CDL" check "$file" 2>&1 >/dev/null | tail -1)
elif command -v python3 >/dev/null; then
    kb=$(python3 -c 'import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$CDL" check "$file")
else
    kb=0
fi
verdict=ok; [ "$kb" -le 20480 ] || verdict="not ok"
if "$CDL" --version --json | grep -q '"sanitize": *true' || ldd "$CDL" 2>/dev/null | grep -q asan; then echo "ok bouncing_ball: memory # SKIP under a sanitizer"
else echo "$verdict bouncing_ball: $kb kB"; fi
