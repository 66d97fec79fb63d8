#!/bin/bash
# Debian packages: every file that `make install` installs belongs to a package.
# CDL_SLOW_TESTS=1 CDL_TEST_LIMIT=1500 also builds them (minutes) if debhelper is installed, and runs their contents.
. "${tests:?}/cli/common"
[ -d "$srcdir/debian" ] || { echo "ok debian # SKIP not in this tree"; exit; }
try "make install" 0 make -s -C "$builddir" install DESTDIR="$PWD/root" prefix=/usr libdir=/usr/lib/host pythondir=/usr/lib/python3/dist-packages
(cd root && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort) >files

# "package pattern" of all lists; a folder means everything in it
for f in "$srcdir"/debian/*.install "$srcdir"/debian/not-installed; do
    p=${f##*/}
    sed -n "s|^\(usr.*\)|${p%.install} \1|p" "$f"
done >patterns
owners=$(while read -r file; do
    n=0
    while read -r package pattern; do
        # shellcheck disable=SC2254
        case $file in $pattern | $pattern/*) n=$((n + 1)) ;; esac
    done <patterns
    [ $n -eq 1 ] || echo "$file: in $n packages"
done <files)
same "each file belongs to one package" "" "$owners"
idle=$(while read -r package pattern; do
    while read -r file; do
        # shellcheck disable=SC2254
        case $file in $pattern | $pattern/*) continue 2 ;; esac
    done <files
    echo "$package: $pattern"
done <patterns)
same "each line of the lists has files" "" "$idle"
same "the version is that of the program" "$("$CDL" --version | cut -d' ' -f2)" "$(sed -n '1s/^cdl (\(.*\)) .*/\1/p' "$srcdir/debian/changelog")"
version=$(sed -n 's/^dlname=.libcdl\.so\.\([0-9]*\).*/\1/p' "$builddir/libcdl.la")
same "libcdl is named by its soname" "Package: libcdl$version" "$(grep '^Package: libcdl[0-9]' "$srcdir/debian/control")"

# directories in which programs look for their files
for f in bin/cdl lib/host/pkgconfig/libcdl.pc share/bash-completion/completions/cdl share/zsh/site-functions/_cdl share/fish/vendor_completions.d/cdl.fish \
    share/vim/vimfiles/syntax/cdl.vim share/nvim/site/plugin/cdl.lua share/emacs/site-lisp/cdl-mode.el share/jupyter/kernels/cdl/kernel.json \
    share/man/man1/cdl.1 share/cdl/stdlib/planar.cdl lib/python3/dist-packages/cdl/kernel.py; do
    [ -e "root/usr/$f" ] || missing="${missing-} $f"
done
same "files are where programs look for them" "" "${missing-}"

if [ -z "${CDL_SLOW_TESTS-}" ] || ! command -v dh dpkg-buildpackage >/dev/null; then
    echo "ok packages # SKIP set CDL_SLOW_TESTS=1, CDL_TEST_LIMIT=1500 and install debhelper and dh-python to build them"
    exit
fi
mkdir -p deb/cdl
(cd "$srcdir" && git ls-files -co --exclude-standard | tar cf - -T -) | tar xf - -C deb/cdl
try "dpkg-buildpackage" 0 env -C deb/cdl DEB_BUILD_OPTIONS="parallel=2" dpkg-buildpackage -us -uc -b
mkdir unpacked
for d in deb/*.deb; do dpkg-deb -x "$d" unpacked; done
same "five packages" "cdl cdl-doc libcdl-dev libcdl$version python3-cdl" "$(cd deb && ls ./*.deb | sed 's|^\./||; s/_.*//' | grep -v dbgsym | LC_ALL=C sort | paste -sd' ')"
if command -v lintian >/dev/null; then
    try "lintian has nothing to say" 0 lintian --fail-on error,warning deb/*.changes
fi
lib=$(dirname unpacked/usr/lib/*/libcdl.so.0)
try "the command of the package runs" 0 env -i PATH=/usr/bin:/bin unpacked/usr/bin/cdl check ball.cdl
echo 'import cdl; print(cdl.loads(open("ball.cdl").read()).ball.run(1).y[0])' >first.py
try "so does its Python" 0 env CDL_LIBRARY="$lib/libcdl.so.0" PYTHONPATH="$PWD/unpacked/usr/lib/python3/dist-packages" /usr/bin/python3 first.py
same "with its numbers" 1.0 "$(cat out)"
