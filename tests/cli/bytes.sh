# Bytes that are not text, and text without a final line end: reported, never ignored.
set -e
answers() {                                     # text that the message contains
    if "$CDL" check t.cdl >out 2>&1; then echo "accepted, but it should say '$1'"; exit 1; elif [ $? -ne 3 ]; then cat out; exit 1; fi
    grep -q "^t.cdl:[0-9]*:[0-9]*: error: .*$1" out || { echo "no '$1' in:"; cat out; exit 1; }
}
printf 'let a = 1\nlet b = \0 2\n' >t.cdl; answers NUL
printf 'let a = "\377"\n' >t.cdl; answers UTF-8
printf 'let a = 1\nlet \303 = 2\n' >t.cdl; answers UTF-8
printf 'let a = 1 # \300\200 an overlong NUL\n' >t.cdl; answers UTF-8
printf 'let a = 1' >t.cdl; "$CDL" check t.cdl
printf 'let a = 1\r\nlet b = a\r\n' >t.cdl; "$CDL" check t.cdl
: >t.cdl; "$CDL" check t.cdl
printf 'let a = 1\n' | "$CDL" check -
# unclosed and deeply nested brackets end in a message, not in a crash
head -c 100000 /dev/zero | tr '\0' '(' >t.cdl; answers deeper
