#!/bin/bash
# The same motions in other units: lengths by L, masses by M, times by T, gaps by G. Positions scale accordingly, to 1e-9; so do fields.
# Options of a backend have units too: they are scaled as well.
. "${tests:?}/cli/common"
cat >models.cdl <<'CDL'
model ball { param L = 1, M = 1, T = 1, G = 1; dof y = 0.7*L, y' = 0; M*y'' = -9.81*M*L/T^2; constraint f: G*y >= 0 { impact = newton(0.6) } }
model klarbring { param L = 1, M = 1, T = 1, G = 1; dof u[2] = [-0.4*L, 0], u' = [0, 1.5*L/T]; M*u'' + M/T^2*([1, 0.3; 0.3, 2]*u) = M*L/T^2*[2, 0.2]
    constraint f: G*u[1] <= 0 { friction = coulomb(0.3), impact = newton(0.5) } }
model slope { param L = 1, M = 1, T = 1, G = 1; dof x = 0, y = 0, x' = 2*L/T; M*x'' = 9.81*M*L/T^2*sin(0.3); M*y'' = -9.81*M*L/T^2*cos(0.3)
    constraint f: G*y >= 0 { slip = x', friction = coulomb(0.5*G) } }
model bowl { param L = 1, M = 1, T = 1, G = 1; dof x = 0.8*L, y = -0.6*L; M*x'' = 0; M*y'' = -9.81*M*L/T^2; constraint f: G*(L - sqrt(x^2 + y^2)) >= 0 { friction = coulomb(0.1) } }
model pair { param L = 1, M = 1, T = 1, G = 1; dof x = 0.1*L, y = 1.3*L, x' = -1*L/T; M*x'' = 40*M/T^2*(y - x - L) - 2*M*L/T^2; 3*M*y'' = -40*M/T^2*(y - x - L) - 6*M*L/T^2; constraint f: G*x >= 0 { impact = newton(0.4) } }
model disk { param L = 1, M = 1, T = 1, G = 1; dof x = 0, y = 0.5*L, a = 0, x' = 2*L/T; M*x'' = 0; M*y'' = -9.81*M*L/T^2; 0.125*M*L^2*a'' = 0
    constraint f: G*(y - 0.5*L) >= 0 { slip = x' + 0.5*L*a', friction = coulomb(0.3*G) } }
CDL
scales="1e-9,1e-18,1e-6,1e-7 1e-9,1e12,1e6,1e7 1e6,1e-18,1e6,1e-7 1e6,1e12,1e-6,1e7 6e-4,3e-7,1,1 3.7e-9,1,2.9e-6,41 1,4.1e-15,1,1
    0.013,1.7e7,3e5,7e-7 2.3e5,0.0031,1,2.2e6 1,1,1,8.3e-6 1e-6,2.1e11,1e-3,1 1,1,1e6,1 1,1,1e-6,1"
# motion BACKEND MODEL DURATION DOF...; a dof that is an angle is written a/1
motion() {
    local with=$1 model=$2 for=$3 n=0 l m t g q f
    shift 3
    printf 'run base = %s() for %s with %s\n' "$model" "$for" "${with//[LMTG]/1}"
    for s in $scales; do
        IFS=, read -r l m t g <<<"$s"
        n=$((n + 1))
        local own=${with//L/$l}
        own=${own//M/$m} own=${own//T/$t} own=${own//G/$g}
        printf 'run r%d = %s(L = %s, M = %s, T = %s, G = %s) for %s*%s with %s\n' $n "$model" "$l" "$m" "$t" "$g" "$for" "$t" "$own"
        for q; do
            for f in 0.31 0.64 1; do
                local unit=$l
                [[ $q != */1 ]] || unit=1
                printf 'expect abs(r%d.%s(%s*%s*%s)/%s - base.%s(%s*%s)) <= 1e-9\n' $n "${q%/1}" $f "$for" "$t" "$unit" "${q%/1}" $f "$for"
            done
        done
    done
}
for with in "events()" "sweeping(h = T/256)" "auglag(h = T/256)" "penalty()" \
    "penalty(stiffness = 1e6*M/T^2/G^2, slip = 1e-4*L/T)"; do
    { cat models.cdl
      motion "$with" ball 1.5 y
      motion "$with" klarbring 4 'u[1]' 'u[2]'
      motion "$with" slope 2 x y
      motion "$with" bowl 2.3 x y
      motion "$with" pair 2 x y
      motion "$with" disk 1 x y a/1; } >all.cdl
    try "$with" 0 "$CDL" run all.cdl
done

# the only default with a unit is printed; a given step is not
cat >default.cdl <<'CDL'
model ball { dof y = 1; y'' = -9.81; constraint f: y >= 0 }
model caught { dof x[2] = [1, 0];  -x' in normal_cone(ball([cos(t), sin(t)], 0.5), x) }
run ball for 2 with sweeping()
run ball for 0.1 with auglag()
run caught for 1 with inclusion()
run ball for 1 with sweeping(h = 1e-3)
run ball for 1 with events()
CDL
same "default steps" "  h = 0.001 (default)
  h = 0.0001 (default)
  h = 0.001 (default)" "$("$CDL" run default.cdl | grep 'h =')"

# first order: speeds by V, loads by F, times by T, and sets of length V
cat >first.cdl <<'CDL'
model steps { param V = 1, F = 1, T = 1, eps = 1; dof v = 0; eps*v' in 3*F*sin(t/T) - F*(v/V + Sgn(v) + 0.5*Sgn(v - V)) }
model fold { param V = 1, F = 1, T = 1, eps = 1; dof v = -1.5*V; eps*v' in 1.2*F*sin(t/T) - F*((v/V)^3 - 2*v/V) }
model stick { param V = 1, F = 1, T = 1, eps = 1; dof v = 0.02*V; eps*v' in 2*F*sin(t/T) - F*(0.3*v/V + (1 + 0.6*exp(-10*abs(v/V)))*Sgn(v)) }
CDL
sizes="1e-9,1,1 1e6,1,1 1,1e-15,1 1,1e12,1 1,1,1e-6 1,1,1e6 1e-9,1e-18,1e-6 3.7e-9,2.1e7,5e3 2.3e5,4e-9,0.013"
# follow BACKEND MODEL DURATION DOF...
follow() {
    local with=$1 model=$2 for=$3 n=0 v f t q at own
    shift 3
    printf 'run base = %s() for %s with %s\n' "$model" "$for" "${with//T/1}"
    for s in $sizes; do
        IFS=, read -r v f t <<<"$s"
        n=$((n + 1))
        own=${with//T/$t}
        printf 'run r%d = %s(V = %s, F = %s, T = %s) for %s*%s with %s\n' $n "$model" "$v" "$f" "$t" "$for" "$t" "$own"
        for q; do
            for at in 0.1 0.31 0.64 1; do
                printf 'expect abs(r%d.%s(%s*%s*%s)/%s - base.%s(%s*%s)) <= 1e-9\n' $n "$q" $at "$for" "$t" "$v" "$q" $at "$for"
            done
        done
        [[ $with != limit* ]] || printf 'expect count(r%d.jumps) == count(base.jumps)\n' $n
    done
}
{ cat first.cdl
  for model in steps fold stick; do follow "limit(eps)" $model 9 v; done; } >limits.cdl
try limit 0 "$CDL" run limits.cdl
cat >inclusions.cdl <<'CDL'
model steps { param V = 1, F = 1, T = 1, eps = 0.05; dof v = 0; eps*F*T/V*v' in 3*F*sin(t/T) - F*(v/V + Sgn(v) + 0.5*Sgn(v - V)) }
model stick { param V = 1, F = 1, T = 1, eps = 0.05; dof v = 0.02*V; eps*F*T/V*v' in 2*F*sin(t/T) - F*(0.3*v/V + (1 + 0.6*exp(-10*abs(v/V)))*Sgn(v)) }
model two { param V = 1, F = 1, T = 1; dof v = 0.5*V, x = 0; T*v' in V*sin(t/T) - 0.5*x - 0.4*V*Sgn(v); T*x' = v }
model pairs { param V = 1, F = 1, T = 1; dof v = 0.5*V, x = -V; F*T/V*v' in F*cos(t/T) - F/V*(x + v) - 0.3*F*Sgn(v - x) - 0.2*F*Sgn(v); F*T/V*x' in -F*x/V + 0.3*F*Sgn(v - x) }
model hole { param V = 1, F = 1, T = 1; dof x[2] = [2*V, 0.1*V]; -T*x' - x in normal_cone(sublevel(V^2 - x[1]^2 - x[2]^2, V*x[2] - 3*V^2), x) }
model ball1 { param V = 1, F = 1, T = 1; dof x[2] = [0, 0]; -x' in normal_cone(ball([t/T*V, 0.2*V*sin(t/T)], 0.5*V), x) }
model ell { param V = 1, F = 1, T = 1; dof x[2] = [0, 0.1*V]; -x' + [V/T, 0] in normal_cone(ellipsoid([0, 0], [0.25/V^2, 0; 0, 1/V^2]), x) }
model inter { param V = 1, F = 1, T = 1; dof x[2] = [0, 0]; -x' + V/T*[1, 2] in normal_cone(intersection(ball([0, 0], V), box([-V, -V], [V, 0.5*V])), x) }
model poly { param V = 1, F = 1, T = 1;  dof x[2] = [0, 0]; -x' + V/T*[1, 1.1] in normal_cone(polyhedron([1, 0; 0, 1; 1, 1], [1, 1, 1.5]*V), x) }
model moon { param V = 1, F = 1, T = 1;  dof x[2] = [0.3*V, 0]; -x' in normal_cone(sublevel(0.5*V - sqrt((x[1] - V*t/T + V)^2 + x[2]^2), x[1]-9*V), x) }
CDL
{ cat inclusions.cdl
  with="inclusion(h = T/200)"
  for model in steps stick; do
      follow "$with" $model 5 v
      follow "inclusion()" $model 5 v
  done
  follow "$with" two 5 v x
  follow "$with" pairs 4 v x
  for model in hole ball1 ell inter poly moon; do follow "$with" $model 3 'x[1]' 'x[2]'; done; } >inclusion.cdl
try inclusion 0 "$CDL" run inclusion.cdl

# fields: positions by L, values by U, forces by F; `eps` is a value over a force
cat >fields.cdl <<'CDL'
model string { param L = 1, U = 1, F = 1; domain x in -L..L; field u(x); -F*L^2/U*u'' = -0.1*F; obstacle u >= U*(1/2 - (x/L)^2); boundary u = 0 }
model beam { param L = 1, U = 1, F = 1; domain x in 0..L; field u(x); F*L^4/U*u'''' = -50*F; obstacle u >= -0.05*U; boundary u = 0; boundary u' = 0 }
model membrane { param L = 1, U = 1, F = 1; domain x in -L..L, y in -L..L; field u(x, y); -F*L^2/U*laplacian(u) = -F; obstacle u >= U*(0.3 - (x/L)^2 - (y/L)^2); boundary u = 0 }
CDL
# solve BACKEND MODEL PLACE...
solve() {
    local with=$1 model=$2 n=0 l u f at own
    shift 2
    printf 'run base = %s() with %s\n' "$model" "${with//[UF]/1}"
    for s in 1e-9,1,1 1e6,1,1 1,1e-9,1 1,1e6,1 1,1,1e-15 1,1,1e12 3.7e-9,2.3e5,4e-9 0.013,1e-9,2.1e7; do
        IFS=, read -r l u f <<<"$s"
        n=$((n + 1)) own=${with//U/$u}
        printf 'run r%d = %s(L = %s, U = %s, F = %s) with %s\n' $n "$model" "$l" "$u" "$f" "${own//F/$f}"
        for at; do printf 'expect abs(r%d.u(%s)/%s - base.u(%s)) <= 1e-9\n' $n "${at//L/$l}" "$u" "${at//L/1}"; done
    done
}
{ cat fields.cdl
  solve "vim(contact = find)" string "0.1*L" "0.4*L" "0.83*L"
  for with in "active_set(cells = 200)" "penalty(eps = 1e-5*U/F, cells = 200)" "penalty(cells = 200)"; do
      solve "$with" string "0.1*L" "0.4*L" "0.83*L"
      solve "$with" beam "0.1*L" "0.4*L" "0.83*L"
      solve "${with/200/32}" membrane "0.1*L, 0.2*L" "0.4*L, -0.3*L" "0.83*L, 0.5*L"
  done; } >field.cdl
try fields 0 "$CDL" run field.cdl
