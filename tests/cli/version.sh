# The version is that of configure.ac, and --json describes this build.
set -e
version=$(sed -nE 's/^AC_INIT\(\[cdl\], \[([0-9.]+)\]\).*/\1/p' "$srcdir/configure.ac")
"$CDL" --version | grep -qF "$version"
json=$("$CDL" --version --json)
for key in version commit compiler blas features; do
    case $json in *"\"$key\""*) ;; *) echo "no $key in $json"; exit 1 ;; esac
done
case $json in *"\"$version\""*) ;; *) echo "not $version: $json"; exit 1 ;; esac
grep -qx "version: $version" "$srcdir/CITATION.cff"
