# A random valid model with its runs: awk -v seed=N -f models.awk.  The same seed gives the same text everywhere.
# Kinds: bodies with contact (sweeping, auglag, events, penalty), fields (active_set, vim, penalty), inclusions
# (inclusion), rods (auglag, penalty).  Each run is followed by measures of where it ended, to be compared between backends.
function rnd() { state = (state*16807) % 2147483647; return state/2147483647 }
function between(a, b) { return sprintf("%.4g", a + (b - a)*rnd()) }
function whole(a, b) { return a + int((b - a + 1)*rnd()) }
function one_of(list,   n, w) { n = split(list, w, "|"); return w[whole(1, n)] }

# forces that stay bounded, of the name x
function force(x,   k, f, n) {
    f = sprintf("-%s*%s - %s*%s'", between(0.2, 6), x, between(0, 0.5), x)
    for (n = whole(0, 2); n; n--) {
        k = whole(1, 4)
        if (k == 1) f = f sprintf(" + %s*sin(%s*t)", between(0.1, 2), between(0.5, 4))
        if (k == 2) f = f sprintf(" - %s*sin(%s)", between(0.1, 2), x)
        if (k == 3) f = f sprintf(" - %s*%s^3", between(0.1, 1), x)
        if (k == 4) f = f sprintf(" + %s", between(-2, 2))
    }
    return f
}
function bodies(   n, k, e, law, b, jumps, way) {
    n = whole(1, 4)
    e = one_of("0|0|0.5|0.8|1")
    print "model m {"
    printf "    param e in 0..1 = %s, mu = %s\n", e, between(0, 0.6)
    for (k = 1; k <= n; k++)
        printf "    dof x%d = %s, x%d' = %s\n", k, between(0.2, 1.5), k, between(-1, 1)
    for (k = 1; k <= n; k++)
        printf "    %s*x%d'' = %s%s\n", between(0.5, 3), k, force("x" k), (n > 1 && rnd() < 0.4 ? sprintf(" + %s*(x%d - x%d)", between(0.1, 1), k % n + 1, k) : "")
    for (k = 1; k <= n; k++) {
        if (rnd() < 0.25) continue
        law = one_of("newton(e)|newton(e)|poisson(e)")
        b = (n > 1 && rnd() < 0.5) ? sprintf(", slip = x%d' - %s, friction = coulomb(mu)", k % n + 1, between(-0.5, 0.5)) : ""
        printf "    constraint c%d: x%d >= %s { impact = %s%s }\n", k, k, one_of("0|-0.5|0.1*sin(t) - 0.3|-0.2"), law, b
    }
    jumps = rnd() < 0.2
    if (jumps) printf "    when x1 > %s { x1' = 0.5*x1' }\n", between(0.3, 1)
    print "}"
    b = ""
    for (k = 1; k <= n; k++)
        b = b sprintf("%sp%d = last(x%d)", (k > 1 ? ", " : ""), k, k)
    law = split("sweeping(h = 1e-3)|sweeping(h = 1e-3, cut = never)|auglag(h = 1e-3)|events()|penalty()", way, "|")
    for (k = 1; k <= law - jumps; k++)                  # penalty refuses `when`
        printf "run m for 1 with %s\nmeasure %s\n", way[k], b
}
function fields(   p, q, f) {
    f = one_of("1|2 + x|sin(3*x)|exp(x)|4")
    p = one_of("1|1 + x^2|2")
    print "model m {"
    if (rnd() < 0.6) {
        print "    domain x in 0..1\n    field u(x)"
        printf "    -u'' %s = -%s*(%s)\n", one_of("|+ u|+ (" p ")*u"), between(1, 8), f
        print "    at x = 0 { u = 0 }\n    at x = 1 { u = 0 }"
        if (rnd() < 0.8) printf "    obstacle u >= %s\n", one_of("-0.1|-0.05|-0.2*x - 0.02|-0.3 + 0.4*(x - 0.5)^2")
        print "}"
        printf "run m with active_set(cells = %d)\nmeasure p = u(0.37)\n", whole(4, 300)
        print "run m with penalty(eps = 1e-6)\nmeasure p = u(0.37)"
        print "run m with vim()\nmeasure p = u(0.37)"
    } else {
        print "    domain x in 0..1, y in 0..1\n    field u(x, y)"
        printf "    -laplacian(u) = -%s*(%s)\n    boundary u = 0\n", between(1, 8), f
        if (rnd() < 0.8) printf "    obstacle u >= %s\n", one_of("-0.1|-0.05|-0.02 - 0.1*x")
        print "}"
        printf "run m with active_set(cells = %d, cells2 = %d)\nmeasure p = u(0.37, 0.61)\n", whole(4, 40), whole(4, 40)
        print "run m with penalty(eps = 1e-6, cells = 20)\nmeasure p = u(0.37, 0.61)"
    }
}
function inclusions(   a) {
    a = between(0.2, 1)
    print "model m {"
    printf "    param a = %s\n    dof v = %s\n", a, between(-1, 1)
    printf "    %sv' in %s*sin(%s*t) - %s*v - a*Sgn(v%s)\n}\n", one_of("|0.1*|2*"), between(0.1, 2), between(0.5, 4), between(0, 2), one_of("| - 0.2")
    print "run m for 2 with inclusion(h = 1e-3)\nmeasure p = last(v)\nrun m for 2 with inclusion()\nmeasure p = last(v)"
}
function rods(   l) {
    l = between(0.5, 2)
    print "model m {"
    printf "    rod w { length = %s, stiffness = diag(1e6, 1e6, 1e6), bending = diag(%s, %s, %s), elements = %d }\n", l, between(0.5, 2), between(0.5, 2), between(0.5, 2), whole(4, 16)
    print "    at w.s = 0 { position = [0, 0, 0], frame = eye(3) }"
    printf "    force w.x(%s): t*[%s, %s, %s]\n}\n", l, between(-1, 1), between(-1, 1), between(-1, 1)
    printf "run m for 1 with auglag(h = 0.1)\nmeasure p = w.x(%s)[1]\nrun m for 1 with penalty(h = 0.1)\nmeasure p = w.x(%s)[1]\n", l, l
}
BEGIN {
    state = (seed*7654321 + 12345) % 2147483646 + 1
    for (k = 0; k < 10; k++) rnd()
    k = seed % 10
    if (k < 6) bodies()
    else if (k < 8) fields()
    else if (k < 9) inclusions()
    else rods()
}
