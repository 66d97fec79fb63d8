#!/bin/bash
# The same fields in other units: lengths by L, u by U, the equation by K. Results scale accordingly, to 1e-9, on every backend.
. "${tests:?}/cli/common"
cat >models.cdl <<'CDL'
model string { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u'' = -20*K*U/L^2; obstacle u >= U*(-1 + (x/L)^2); at x = 0 { u = 0 }; at x = L { u' = 0 } }
model tent { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u'' = 0; obstacle u >= U*(0.3 - abs(x/L - 0.4)); boundary u = 0 }
model beam { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); K*u'''' = -1000*K*U/L^4; obstacle u >= -U/2; at x = 0 { u = 0, u' = 0 }; at x = L { u = 0, u' = 0 } }
model tip { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); K*u'''' = -24*K*U/L^4; obstacle u >= -U; at x = 0 { u = 0, u' = 0 }; at x = L { u'' = 0, u''' = 0 } }
model bent { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); K*u'' = K*U/L^2*(exp(u/U) + sin(x/L)*u'*L/U); boundary u = 0 }
model both { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u'' = 50*K*U/L^2*sin(2*pi*x/L); obstacle u >= -0.2*U; obstacle u <= 0.3*U; boundary u = 0 }
model ocean { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u''' = K*u/L^3; obstacle u >= cases { -U if x < L/4; U if x < 3*L/4; -U otherwise }; at x = 0 { u = 0, u' = 0 }; at x = L { u = 0 } }
model pair { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x), v(x); -u'' = v/(K*L^2); -v'' = U*K/L^2*exp(u/U); boundary u = 0; boundary v = 0 }
model flat { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u'' + 30*K/L^2*max(0, u - U/20) = 3*K*U/L^2; boundary u = 0 }
model soft { param L = 1, U = 1, K = 1; domain x in 0..L; field u(x); -K*u'' + K*u^3/(U*L)^2 = 40*K*U/L^2*sin(2*pi*x/L); obstacle u >= -U/10; boundary u = 0 }
model membrane { param L = 1, U = 1, K = 1; domain x in -L..L, y in -L..L; field u(x, y); -K*laplacian(u) = -K*U/L^2; obstacle u >= U*(0.3 - (x/L)^2 - (y/L)^2); boundary u = 0 }
model bratu { param L = 1, U = 1, K = 1; domain x in 0..L, y in 0..L; field u(x, y); -K*laplacian(u) = K*U/L^2*exp(u/U); boundary u = 0 }
model plate { param L = 1, U = 1, K = 1; domain x in 0..L, y in 0..L; field u(x, y); K*bilaplacian(u) = -1000*K*U/L^4; obstacle u >= -0.8*U; at x = 0 { u = 0, d(u, x) = 0 }; at x = L { u = 0, d(u, x) = 0 }; at y = 0 { u = 0, d(u, y) = 0 }; at y = L { u = 0, d(u, y) = 0 } }
CDL
# L U K: the corners of the range, then some values inside it
scales="1e-9,1e-9,1e-12 1e-9,1e6,1e12 1e6,1e-9,1 1e6,1e6,1e-12 3.7e-9,1,1e12 1,4.1e-9,1 0.013,2e5,7e-7 2.3e5,0.0031,1 1e-6,1e-6,2.1e11"
# line NAME BACKEND: the results of one run, in the original units
line() {
    local model=$1 with=$2 order=$3 n=0 l u k; shift 3
    printf 'run base = %s with %s\n' "$model" "$with"
    for s in $scales; do
        IFS=, read -r l u k <<<"$s"
        n=$((n + 1))
        local now=$with
        [[ $with != penalty* ]] || now="penalty(eps = 1e-5*$l^$order/$k, cells = ${with##*= }"
        printf 'run r%d = %s(L = %s, U = %s, K = %s) with %s\n' $n "$model" "$l" "$u" "$k" "$now"
        for x in 0.2 0.37 0.5 0.85; do
            case $model in
            membrane | bratu | plate) printf 'expect r%d.u(%s*%s, 0.3*%s)/%s == base.u(%s, 0.3) within rel(1e-9)\n' $n $x "$l" "$l" "$u" $x ;;
            *) printf 'expect r%d.u(%s*%s)/%s == base.u(%s) within rel(1e-9)\n' $n $x "$l" "$u" $x ;;
            esac
        done
        for e in "$@"; do
            e=${e//L/$l}; e=${e//U/$u}; e=${e//K/$k}
            printf 'expect %s within rel(1e-9)\n' "${e//r\./r$n.}"
        done
    done
}
ends='r.contact_set[1][1]/L == base.contact_set[1][1]'
force2='r.point_forces[1][2]*L/U/K == base.point_forces[1][2]'
force4='r.point_forces[1][2]*L^3/U/K == base.point_forces[1][2]'
area='r.contact_set[1]/L^2 == base.contact_set[1]'
one() {
    { cat models.cdl; line "$@"; } >m.cdl
    try "$1 with $2" 0 "$CDL" run -q m.cdl
}
for with in 'vim()' 'active_set(cells = 400)'; do
    one string "$with" 2 "$ends" "$force2"
    one tent "$with" 2 "$ends" "$force2"
    one beam "$with" 4 "$ends" "$force4"
    one tip "$with" 4 "$ends" "$force4"
    one bent "$with" 2
    one both "$with" 2 "$ends"
    one ocean "$with" 3 "$ends"
    one pair "$with" 2
    one flat "$with" 2
    one soft "$with" 2 "$ends"
done
one membrane 'active_set(cells = 45)' 2 "$area"
one bratu 'active_set(cells = 32)' 2
one plate 'active_set(cells = 24)' 4
one string 'penalty(eps = 1e-5, cells = 400)' 2
one soft 'penalty(eps = 1e-5, cells = 400)' 2
one membrane 'penalty(eps = 1e-5, cells = 45)' 2
