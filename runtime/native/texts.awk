# texts.awk: sources as arrays of lines, for `cdl emit c`.  awk -f texts.awk FILE...
# Of a file with the brackets [emit c ... emit c] what stands in them is taken, else all of it.  Functions become static,
# and helpers that several files have get the name of their file, since all come to stand in one.
function name_of(path) {
    sub(/.*\//, "", path)
    sub(/\./, "_", path)
    return path
}
function flush_file() {
    if (name != "")
        print "    NULL\n};"
}
BEGIN {
    print "/* written by texts.awk */"
}
FNR == 1 {
    flush_file()
    name = name_of(FILENAME)
    base = name
    sub(/_[ch]$/, "", base)
    while ((getline line < FILENAME) > 0)
        if (line ~ /\/\* \[emit c/)
            marked[name] = 1
    close(FILENAME)
    inside = !marked[name]
    print "const char *const emitted_" name "[] = {"
}
/\/\* \[emit c/ { inside = 1; next }
/\/\* emit c\] \*\// { inside = 0; next }
# of the tolerances the numbers alone
name == "tolerances_h" && !/^#define [A-Z_0-9]+ +[0-9]/ { next }
name == "tolerances_h" { sub(/ *\/\*.*/, "") }
!inside || /^#include/ || /^#(ifndef|define) CDL_[A-Z]*_H$/ { next }
/^#endif$/ && FILENAME ~ /\.h$/ && name != "small_h" { next }
{
    line = $0
    if (line ~ /^(const )?[a-z_]+ \**[a-z_]+\(/ && line !~ /^(static|typedef|extern|else|return)/ && base != "step" && base != "fmu" && base != "small" && base != "enter")
        line = "static " line
    if (line ~ /^static inline double trig_(sin|cos)\(/) # the same argument twice is computed once
        sub(/^static inline/, "static EMITTED_CONST", line)
    gsub(/larger\(/, base "_larger(", line)
    if (base == "cone" || base == "speed")
        gsub(/ length\(/, " " base "_length(", line)
    gsub(/\\/, "&&", line)
    gsub(/"/, "\\\"", line)
    print "    \"" line "\\n\","
}
END { flush_file() }
