# A random valid model with its runs: awk -v seed=N -f models.awk.  The same seed gives the same text everywhere.
# Kinds: bodies with contact (sweeping, auglag, events, penalty), feet that share friction, plates and points that slip in two
# directions, belts with friction of every law, delays, guides held from both sides, friction without slip, fields (active_set,
# vim, penalty), inclusions (inclusion), rods (auglag, penalty).  Each run is followed by measures of where it ended, to be
# compared between backends; "# bound = B" says how closely, where that is not the usual.
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
# a law of friction whose bound is of the size `most`; functions of the speed are declared as `wear`
function law(most, name) {
    if (name == "") name = one_of("coulomb|tresca|coulomb|wear")
    if (name == "tresca") return sprintf("tresca(%s)", between(0.1*most, most))
    if (name == "wear") worn = 1
    return name == "wear" ? "coulomb(wear)" : sprintf("coulomb(%s)", between(0.05, 1))
}
function wear() { printf "    fn wear(v) = %s + %s*exp(-v/%s)\n", between(0.1, 0.4), between(0, 0.3), between(0.1, 0.5) }
function push() { return sprintf("%s*%s(%s*t)", between(0, 6), one_of("sin|cos"), between(1, 5)) }
function start() { return one_of("0|" between(-1, 1)) }
# the runs of a model, with the measures of what moves; auglag refuses friction that depends on the speed
function runs(list, what,   n, w, k, m, v, text) {
    n = split(list, w, "|")
    m = split(what, v, "|")
    for (k = 1; k <= m; k++) text = text sprintf("%sp%d = last(%s)", (k > 1 ? ", " : ""), k, v[k])
    for (k = 1; k <= n; k++) if (!(worn && w[k] ~ /auglag/)) printf "run m for 1 with %s\nmeasure %s\n", w[k], text
}
# two feet under a plank hold one slip
function feet(   turn, slip) {
    turn = one_of("0|0.1|-0.1")
    slip = turn == "0" ? "x'" : sprintf("x' - %s*b'", turn)
    print "# bound = 0.02\nmodel m {"
    wear()
    printf "    dof x = 0, y = 0, b = 0, x' = %s\n", start()
    printf "    x'' = %s - %s*x\n    y'' = -9.81\n    b'' = %s\n", push(), between(0, 9), push()
    printf "    constraint c: y + 0.5*b >= 0 { slip = %s, friction = %s }\n", slip, law(3, one_of("coulomb|tresca|wear"))
    printf "    constraint d: y - 0.5*b >= 0 { slip = %s, friction = %s }\n}\n", slip, law(3, one_of("coulomb|tresca|wear"))
    runs("events()|sweeping(h = 5e-4)|auglag(h = 5e-4)", "x")
}
# two studs under a plate, or a point on a plane, with a rail beside it or not: slip in two directions
function sliders(   k) {
    k = whole(1, 3)
    print "# bound = 0.005\nmodel m {"
    wear()
    if (k == 1) {
        printf "    dof x = 0, y = 0, a = 0, x' = %s, y' = %s, a' = %s\n", start(), start(), start()
        printf "    x'' = %s - %s*x\n    y'' = %s - %s*y\n    0.2*a'' = %s\n", push(), between(0, 9), push(), between(0, 9), push()
        printf "    constraint c { normal = %s, slip = [x' - 0.3*a'*sin(a), y' + 0.3*a'*cos(a)], friction = %s }\n", between(1, 6), law(5)
        printf "    constraint d { normal = %s, slip = [x' + 0.3*a'*sin(a), y' - 0.3*a'*cos(a)], friction = %s }\n}\n", between(1, 6), law(5)
    } else {
        printf "    dof x = 0, y = 0, z = 0, x' = %s, y' = %s\n", start(), start()
        printf "    x'' = %s - %s*x\n    y'' = %s - %s*y\n    z'' = -9.81 + %s\n", push(), between(0, 9), push(), between(0, 9), push()
        printf "    constraint c: z >= 0 { slip = [x' - %s, y'], friction = %s }\n", one_of("0|0.2|0.3*sin(t)"), law(5)
        if (k == 3) printf "    constraint d { normal = %s, slip = x', friction = %s }\n", between(1, 6), law(5)
        print "}"
    }
    runs("events()|sweeping(h = 5e-4)|auglag(h = 5e-4)", "x|y")
}
# blocks in a row, on belts: given normal forces, all laws, events of the model
function belts(   n, k, jumps) {
    n = whole(1, 3)
    print "# bound = 0.01\nmodel m {"
    wear()
    for (k = 1; k <= n; k++) printf "    dof x%d = %d, x%d' = %s\n", k, k, k, start()
    for (k = 1; k <= n; k++) {
        printf "    x%d'' = %s - %s*(x%d - %d)", k, push(), between(1, 20), k, k
        if (k > 1) printf " - 5*(x%d - x%d - 1)", k, k - 1
        if (k < n) printf " + 5*(x%d - x%d - 1)", k + 1, k
        print ""
    }
    for (k = 1; k <= n; k++)
        printf "    constraint c%d { normal = %s, slip = x%d' - %s, friction = %s }\n", k, one_of("4|" between(1, 8) "|5 + 2*sin(3*t)"), k, one_of("0|0.5|" (k > 1 ? "x" (k - 1) "'" : "0.2*sin(t)")), law(5)
    jumps = rnd() < 0.3
    if (jumps) printf "    when x1 > %s { x1' = 0.5*x1' }\n", between(1.05, 1.5)
    print "}"
    runs("events()|sweeping(h = 5e-4)|auglag(h = 5e-4)" (jumps ? "" : "|penalty(slip = 1e-5)"), "x1")
}
# a delayed force, with a wall and friction
function delays(   tau) {
    tau = between(0.1, 0.6)
    print "# bound = 0.01\nmodel m {"
    printf "    dof x = %s, x' = %s, y = 0, y' = %s\n", between(0.2, 1), start(), start()
    printf "    x'' = -%s*x(t - %s) - %s*x'\n", between(1, 6), tau, between(0, 0.5)
    printf "    y'' = %s - %s*y(t - %s)\n", push(), between(0, 3), between(0.1, 0.6)
    printf "    constraint c: x >= %s { impact = %s, slip = y', friction = %s }\n}\n", one_of("-0.3|0"), one_of("newton(0.5)|poisson(0.5)|newton(0)"), law(2, one_of("coulomb|tresca"))
    runs("events()|sweeping(h = 5e-4)|sweeping(h = 5e-4, cut = never)", "x|y")
}
# a bead held on a curve from both sides, and friction without slip on a surface, which may move
function guides(   k, mu) {
    k = whole(1, 4)
    mu = between(0.05, 0.5)
    print "# bound = 0.01\nmodel m {"
    if (k == 1) {
        printf "    dof x = 0, y = -1, x' = %s\n    x'' = %s\n    y'' = -9.81\n", between(0.5, 2), push()
        printf "    constraint c: x^2 + y^2 = 1 { slip = [x', y'], friction = coulomb(%s) }\n}\n", mu
    } else if (k == 2) {
        printf "    dof x = 0, y = 0, x' = %s\n    x'' = %s\n    y'' = -9.81 + %s\n", start(), push(), push()
        printf "    constraint c: y = %s { slip = x', friction = %s }\n}\n", one_of("0|0.2*x"), law(3, one_of("coulomb|tresca"))
    } else if (k == 3) {
        printf "    dof x = 0, y = 0, z = 0, x' = %s, y' = %s\n", start(), start()
        printf "    x'' = %s - x\n    %s*y'' = %s - y\n    z'' = -9.81\n", push(), one_of("1|2"), push()
        printf "    constraint c: z - %s >= 0 { friction = coulomb(%s) }\n}\n", one_of("0.2*x|0.1*sin(t)|0.1*sin(t) - 0.1*sin(t)"), mu
    } else {
        printf "    dof x = 0, y = 0, x' = %s\n    (1 + 0.2*x^2)*x'' = %s\n    y'' = -9.81\n", start(), push()
        printf "    constraint c: y - %s >= 0 { friction = coulomb(%s) }\n}\n", one_of("0.2*x|0.1*x^2"), mu
    }
    runs("events()|sweeping(h = 5e-4)|auglag(h = 5e-4)", "x")
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
    k = seed % 16
    if (k < 4) bodies()
    else if (k < 6) feet()
    else if (k < 8) sliders()
    else if (k < 9) belts()
    else if (k < 10) delays()
    else if (k < 12) guides()
    else if (k < 14) fields()
    else if (k < 15) inclusions()
    else rods()
}
