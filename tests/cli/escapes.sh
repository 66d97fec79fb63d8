#!/bin/bash
# Text of a model, a file or the command line never controls the terminal: wherever it is printed, control characters are
# shown as visible text.
. "${srcdir:?}/tests/cli/common"
esc=$(printf '\033]0;evil\007\033[31mred\177\302\233H\302\205')
bad() { LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$@"; }
# clean NAME COMMAND...: for any exit code, neither stream contains control characters
clean() {
    local name=$1; shift
    "$@" >out 2>err </dev/null
    if bad out err; then echo "not ok $name"; cat -v out err | sed 's/^/    /' | head -20; failed=1; return; fi
    echo "ok $name"
}
dir="d$esc"; mkdir -p "$dir"
cp ball.cdl "$dir/m$esc.cdl"
cat >label.cdl <<CDL
## Documented $esc here.
model ball {
    dof y = 1
    y'' = -9.81
    constraint floor: y >= 0
}
run ball for 1 with sweeping(h = 1e-2)
expect y >= 0 "label $esc"
expect y >= 5 "label $esc"
let text = "a string $esc"
text
save y { file = "s$esc.csv" }
plot y against t { file = "p$esc.svg", title = "t$esc" }
CDL
clean "labels, strings, files" "$CDL" run -o "$dir" label.cdl
clean "as JSON" "$CDL" run --json -o "$dir" label.cdl
clean "diagnostics as JSON" "$CDL" run --diagnostics=json -o "$dir" label.cdl
clean "colours do not let text through" "$CDL" check "$dir/m$esc.cdl"
clean "the tree" "$CDL" show ast label.cdl
clean "the model" "$CDL" show model label.cdl
clean "a file that is not there" "$CDL" run "none$esc.cdl"
clean "errors in a file with such a name" bash -c 'printf "let a = b\n" >"$1/e.cdl"; "$0" run "$1/e.cdl"' "$CDL" "$dir"
printf 'let a = "x%s\nlet b = c%s\n' "$esc" "$esc" >broken.cdl
clean "errors in text" "$CDL" run broken.cdl
printf 'use "x%s.cdl" as x\nuse std.planr\n' "$esc" >use.cdl
clean "use" "$CDL" run use.cdl
clean "a command" "$CDL" "run$esc"
clean "an option" "$CDL" run "--jso$esc" label.cdl
clean "a value of an option" "$CDL" run "--memory=$esc" label.cdl
clean "a parameter" "$CDL" run -p "a$esc=1" label.cdl
clean "the value of a parameter" "$CDL" run -p "y0=$esc" ball.cdl
clean "no equals sign" "$CDL" run -p "a$esc" ball.cdl
clean "-e" "$CDL" -e "\"$esc\""
clean "show" "$CDL" show "what$esc" ball.cdl
clean "help" "$CDL" help "cmd$esc"
clean "diff" "$CDL" diff "a$esc" "b$esc"
clean "repro" "$CDL" repro "m$esc.json"
clean "fmt --check" "$CDL" fmt --check "$dir/m$esc.cdl"
printf ':load label.cdl\n:help ball\n:help %s\n:%s\n:history\n:set x%s y\n:load n%s\n:type "%s"\n:show ast\ntext\n' \
    "$esc" "$esc" "$esc" "$esc" "$esc" >in
"$CDL" <in >out 2>err
if bad out err; then echo "not ok the session"; cat -v out err | head -20; failed=1; else echo "ok the session"; fi
has "it is shown" out '\u001b]0;evil\u0007'
