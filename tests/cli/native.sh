#!/bin/bash
# native = auto | always | never: same bytes, the cache and its permissions, without a compiler.
. "${tests:?}/cli/common"
command -v cc >/dev/null || { echo "ok native # SKIP no compiler"; exit 0; }
export XDG_CACHE_HOME=$PWD/cache
cat >models.cdl <<'CDL'
model ball { param e = 0.6; dof y = 1, y' = 0; y'' = -9.81; constraint floor: y >= 0 { impact = newton(e) } }
run ball for 3 with sweeping(h = 1e-3, native = NATIVE)
save t, y, y', y'', floor.gap, floor.rn, energy, dissipated, work { file = "ball.csv" }
run ball(e = 0.9) for 3 with sweeping(h = 1e-3, every = 0.01, native = NATIVE)
save t, y, y', floor.rn, dissipated { file = "again.csv" }
model well { dof u[2] = [-0.1, 0], u' = [1, 0.3]; u'' + [2, 0.5; 0.5, 1]*u = [cos(t), 0.2*sin(3*t)]
    constraint wall: u[1] <= 0 { friction = coulomb(0.4), impact = newton(0) } }
run well for 20 with sweeping(h = 2e-3, native = NATIVE)
save t, u[1], u[2], u[1]', u[2]', u[2]'', wall.rn, wall.rt, wall.slip, energy, work, dissipated { file = "well.csv" }
model rub { dof x = 0, x' = 2; x'' = 2*sin(t) - 0.1*x'; constraint pad { normal = 2, slip = x', friction = coulomb(0.3) } }
run rub for 10 with sweeping(h = 1e-3, native = NATIVE)
save t, x, x', pad.rt, energy, work, dissipated { file = "rub.csv" }
model three { dof a = 0, a' = 1, b = 1, b' = 0, c = 2, c' = 0; a'' = b - a; b'' = a - 2*b + c; c'' = b - c + 0.1*t }
run three for 10 with sweeping(h = 1e-3, theta = 0.6, native = NATIVE)
save t, a, b, c, a', b', c', a'', energy, work { file = "three.csv" }
CDL
for n in never always; do
    sed "s/NATIVE/$n/" models.cdl >$n.cdl
    try "native = $n" 0 "$CDL" run -o $n $n.cdl
done
has "the summary names it" out "plain steps by native code (compiled now)" "plain steps by native code (from the cache)"
for f in ball again well rub three; do
    same "$f: the same bytes" "" "$(cmp never/$f.csv always/$f.csv 2>&1)"
done
same "another parameter needs no other code" 4 "$(find cache/cdl-native -name '*.so' | wc -l)"
same "the cache is ours alone" 700 "$(stat -c %a cache/cdl-native)"
same "nothing but code stays" 0 "$(find cache/cdl-native -mindepth 1 ! -name '*.so' | wc -l)"
try "from the cache" 0 "$CDL" run --json -o always always.cdl
has "the record names it" out '"native":"cache"'
try "never" 0 "$CDL" run --json -o never never.cdl
same "the record has none" 0 "$(grep -c '"native"' out)"
sed 's/, native = NATIVE//' models.cdl >auto.cdl
try "short runs, by default" 0 "$CDL" run --json -o auto auto.cdl
same "are the interpreter's" 0 "$(grep -c '"native":"' out)"

# without a compiler, without a cache, or if others could write to the cache: interpreted as usual
mkdir bin
try "without a compiler" 0 env PATH="$PWD/bin" XDG_CACHE_HOME="$PWD/empty" "$CDL" run -o none always.cdl
same "the same bytes" "" "$(cmp never/well.csv none/well.csv 2>&1)"
same "nothing is said of it" 0 "$(grep -c native out)"
try "without a cache" 0 env -u XDG_CACHE_HOME -u HOME "$CDL" run -o none always.cdl
mkdir -p open/cdl-native && chmod 777 open/cdl-native
try "a folder that others may write to" 0 env XDG_CACHE_HOME="$PWD/open" "$CDL" run -o none always.cdl
same "is not used" 0 "$(find open/cdl-native -name '*.so' | wc -l)"
same "the same bytes there" "" "$(cmp never/well.csv none/well.csv 2>&1)"
f=$(find cache/cdl-native -name '*.so' | head -n 1)
chmod 666 "$f"
try "code that others could have written" 0 "$CDL" run -o always always.cdl
same "is made anew" 600 "$(stat -c %a "$f")"

# the budget counts the compiler's time
cat >bin/cc <<'SH'
#!/bin/sh
exec sleep 60
SH
chmod +x bin/cc
start=$SECONDS
timeout 30 env PATH="$PWD/bin:$PATH" XDG_CACHE_HOME="$PWD/slow" "$CDL" run --time=2 -o slow always.cdl >out 2>&1
same "a compiler that takes too long is ended" yes "$([ $((SECONDS - start)) -lt 20 ] && echo yes)"
# by default, compiling may take a tenth of the remaining time
cat >long.cdl <<'CDL'
model ball { dof y = 1; y'' = -y }
run ball for 1e5 with sweeping(h = 1e-3, every = 1e4)
CDL
try "unasked, a compiler does not cost the run" 0 timeout 60 env PATH="$PWD/bin:$PATH" XDG_CACHE_HOME="$PWD/slow" "$CDL" run --json --time=20 long.cdl
has "which is interpreted" out '"status":"ok"'
same "by no code" 0 "$(grep -c '"native":"' out)"
