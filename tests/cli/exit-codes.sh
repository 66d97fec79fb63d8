# Exit codes of the command: one line for each way to end.
failed=0
ends() {                                        # code, description, command...
    code=$1 what=$2; shift 2
    "$@" >out 2>err </dev/null; rc=$?
    if [ $rc -eq "$code" ]; then echo "ok $what"; else echo "not ok $what: exit $rc, not $code"; cat out err; failed=1; fi
}
good='model a { dof x = 0, x'\'' = 1; x'\'\'' = 0 }
run a for 1 with sweeping(h = 0.1)
'
printf '%sexpect x(1) == 1 within 1e-9\n' "$good" >good.cdl
printf '%sexpect x(1) == 2 within 1e-9 "too far"\n' "$good" >far.cdl
echo 'parm a = 1' >bad.cdl

ends 0 "a model that runs" "$CDL" run good.cdl
ends 0 "a model that checks" "$CDL" check good.cdl
ends 0 "two files" "$CDL" check good.cdl far.cdl
ends 0 "a line of text" "$CDL" -e 'expect 1 + 1 == 2'
ends 1 "an expectation failed" "$CDL" run far.cdl
ends 1 "an expectation of a line of text failed" "$CDL" -e 'expect 1 + 1 == 3'
ends 2 "an unknown command" "$CDL" rnu good.cdl
ends 2 "an unknown option" "$CDL" run --jsn good.cdl
ends 2 "no file" "$CDL" run
ends 3 "a model with errors" "$CDL" check bad.cdl
ends 3 "a model with errors is not run" "$CDL" run bad.cdl
ends 5 "a file that is not there" "$CDL" check nowhere.cdl
ends 0 "help" "$CDL" --help
ends 0 "version" "$CDL" --version
exit $failed
