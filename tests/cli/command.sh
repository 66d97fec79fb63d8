#!/bin/bash
# The command line: subcommands, options, exit codes.
. "${tests:?}/cli/common"

try "version" 0 "$CDL" --version
has "version names the program" out "cdl 0."
try "version as JSON" 0 "$CDL" --version --json
has "its parts" out '"version":"' '"commit":"' '"compiler":"' '"blas":"' '"features":{"backends":["sweeping"'
try "help" 0 "$CDL" --help
has "help lists the commands" out "cdl run FILE" "cdl check" "cdl fmt" "cdl show ast|model|equations|ir|jacobian" "Exit: 0 ok"
try "help of a command" 0 "$CDL" help run
has "help of run" out "-p NAME=VALUE" "--json"
try "the same by option" 0 "$CDL" fmt --help
try "unknown command" 2 "$CDL" chekc x.cdl
has "unknown command: did you mean" err "unknown command 'chekc'; did you mean 'check'?"
try "a file in place of a command" 2 "$CDL" ball.cdl
has "how to run it" err "cdl run ball.cdl"
try "unknown option" 2 "$CDL" run --jsonn ball.cdl
has "unknown option: did you mean" err "unknown option '--jsonn'; did you mean '--json'?"
try "nothing to run" 2 "$CDL" run
try "-p without a value" 2 "$CDL" run -p e ball.cdl
try "-p with a bad value" 2 "$CDL" run -p "e=1 +" ball.cdl
has "bad value is located" err "<-p e>:1:"
try "-p of a name that nothing has" 2 "$CDL" run -p yo=2 ball.cdl
has "-p: did you mean" err "did you mean 'y0'?"
try "-j takes a number" 2 "$CDL" run -j x ball.cdl
try "-j" 0 "$CDL" run -j 2 ball.cdl
try "a bad form of diagnostics" 2 "$CDL" run --diagnostics=xml ball.cdl
try "show of an unknown stage" 2 "$CDL" show irr ball.cdl
has "show: did you mean" err "did you mean 'ir'?"
try "repro of nothing" 5 "$CDL" repro manifest.json
has "repro says so" err "cannot read 'manifest.json'"

try "a missing file" 5 "$CDL" run nowhere.cdl
has "its error" err "cannot read 'nowhere.cdl': No such file or directory"
mkdir folder
try "a folder" 5 "$CDL" check folder
has "its error" err "cannot read 'folder': Is a directory"
if [ "$(id -u)" != 0 ]; then
    cp ball.cdl secret.cdl; chmod 0 secret.cdl
    try "an unreadable file" 5 "$CDL" check secret.cdl
fi
truncate -s 65M long.cdl
try "a file that is too long" 3 "$CDL" check long.cdl
has "its limit" err "longer than 64 MB"
rm long.cdl

try "text on the command line" 0 "$CDL" -e '1 + 2'
same "its value" 3 "$(cat out)"
try "text that begins with a dash" 0 "$CDL" -e '-2^2'
same "its value" -4 "$(cat out)"
try "an error in it" 3 "$CDL" -e 'let a = b'
has "is located" err "<command>:1:9: error: unknown name 'b'"
try "standard input" 0 bash -c 'echo "sqrt(16)" | "$CDL" run -'
same "its value" 4 "$(cat out)"
try "an error in standard input" 3 bash -c 'echo "sqrt(16" | "$CDL" check -'
has "is located" err "<stdin>:1:"
try "diagnostics as JSON" 3 "$CDL" -e 'foo' --diagnostics=json
has "one object" err '{"file":"<command>","line":1,"column":1,"end_line":1,"end_column":4,"severity":"error","code":"unknown-name","message":"unknown name '"'foo'"'"'

printf 'model m { dof x = 0; x'"''"' = 1 }\nrun m for 1\nexpect x(1) == 0.5 within 1e-6\nexpect x(1) == 0.6\n' >e.cdl
try "an expectation that fails" 1 "$CDL" run e.cdl
has "is reported" err "e.cdl:4:1: expectation failed: x(1) == 0.6" "left 0.5"
has "all are counted" out "2 expectations: 1 met, 1 not met"
try "several files: the worst counts" 3 "$CDL" run e.cdl <(echo 'foo')

try "a full disk" 5 bash -c '"$CDL" -e "1 + 1" >/dev/full'
has "is reported" err "cannot write to standard output: No space left on device"
same "a reader that goes away" "1" "$("$CDL" -e '1
2
3' 2>err | head -n 1)"
same "says nothing" "" "$(cat err)"
same "no colours in a pipe" "" "$("$CDL" -e foo 2>&1 | grep $'\033')"
