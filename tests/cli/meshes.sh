#!/bin/bash
# meshes: a hull read from a file, in each format, equals the hull of its points to the last bit; bad files are errors with their place.
. "${tests:?}/cli/common"

# a wedge: a box of 0.2 x 0.1 x 0.06 without one of its edges
points='-0.125 -0.0625 -0.03125
0.125 -0.0625 -0.03125
-0.125 0.0625 -0.03125
0.125 0.0625 -0.03125
-0.125 -0.0625 0.03125
-0.125 0.0625 0.03125'
triangles='1 3 2
2 3 4
1 2 5
3 6 4
1 5 3
3 5 6
2 4 5
4 6 5'
{
    echo 'x,y,z'
    tr ' ' , <<<"$points"
} >wedge.csv
{
    echo '# a wedge'
    echo 'o wedge'
    sed 's/^/v /' <<<"$points"
    echo 'vn 0 0 1'
    sed 's/^/f /' <<<"$triangles"
} >wedge.obj
mapfile -t corner <<<"$points"
{
    echo 'solid a wedge of wood'
    while read -r i j k; do
        printf ' facet normal 0 0 0\n  outer loop\n'
        for c in $i $j $k; do echo "   vertex ${corner[c - 1]}"; done
        printf '  endloop\n endfacet\n'
    done <<<"$triangles"
    echo 'endsolid a wedge of wood'
} >wedge.stl
# the same in binary: -0.125, 0.125, -0.0625, 0.0625, -0.03125, 0.03125 as floats, low byte first
float() {
    case $1 in
    0.125) printf '\0\0\0\x3e' ;; -0.125) printf '\0\0\0\xbe' ;; 0.0625) printf '\0\0\x80\x3d' ;;
    -0.0625) printf '\0\0\x80\xbd' ;; 0.03125) printf '\0\0\0\x3d' ;; -0.03125) printf '\0\0\0\xbd' ;; nan) printf '\0\0\xc0\x7f' ;;
    esac
}
binary() {
    printf '%-80s' 'solid it is, and binary all the same'
    printf '\x08\0\0\0'
    while read -r i j k; do
        printf '\0\0\0\0\0\0\0\0\0\0\0\0'
        for c in $i $j $k; do for x in ${corner[c - 1]}; do float "$x"; done; done
        printf '\0\0'
    done <<<"$triangles"
}
binary >binary.STL

model() {
    cat <<CDL
model wedge {
    param m = 1, g = 9.81
    dof p in R3 = [0, 0, 0.2], p' = [0.3, 0, 0]
    dof A in SO3 = rot_x(0.3), A' = [0, 2, 0.1]
    kinetic m*norm(p')^2/2 + dot(A', diag(0.001, 0.003, 0.004)*A')/2
    potential m*g*p[3]
    shape body: $1 at p, A
    shape stone: box([-1, -1, -0.2], [1, 1, 0])
    constraint ground: body.gap(halfspace([0, 0, 1], -0.01)) >= 0 { friction = coulomb(0.4) }
    constraint touch: body.gap(stone) >= 0 { friction = coulomb(0.4) }
}
run wedge for 0.3 with sweeping(h = 2e-3)
save t, p, A, touch.rn { file = "out.csv" }
CDL
}
model "hull([$(sed 's/ /, /g; s/^/[/; s/$/]/' <<<"$points" | paste -sd, )])" >own.cdl
"$CDL" run -q -o own own.cdl >out 2>err || cat err
same "it touches" yes "$(awk -F, 'NR > 1 && $NF > 0 { n++ } END { print (n > 3 ? "yes" : "no") }' own/out.csv)"
for set in 'hull(table("wedge.csv"))' 'hull("wedge.csv")'; do
    model "$set" >read.cdl
    "$CDL" run -q -o read read.cdl >out 2>err || cat err
    cmp -s own/out.csv read/out.csv
    same "$set: the points of the list, in their order" 0 $?
done
# points of a mesh are sorted, so their order in the file does not matter
for set in 'hull("wedge.stl")' 'hull("wedge.obj")' 'hull("binary.STL")'; do
    model "$set" >read.cdl
    "$CDL" run -q -o read read.cdl >out 2>err || cat err
    [ -f read/mesh.csv ] || mv read/out.csv read/mesh.csv
    cmp -s read/mesh.csv read/out.csv || [ ! -f read/out.csv ]
    same "$set: as the other meshes" 0 $?
    same "$set: the motion of the list of points" yes "$(paste -d, own/out.csv read/mesh.csv | awk -F, '
        NR > 1 { for (k = 1; k <= NF/2; k++) { d = $k - $(k + NF/2); if (k < NF/2 && d*d > 1e-12) bad++ } } END { print (bad ? "no" : "yes") }')"
done

# bad NAME TEXT PLACE MESSAGE
bad() {
    model "hull(\"$1\")" >bad.cdl
    "$CDL" check bad.cdl >out 2>err
    same "$1: exit code" 5 $?
    has "$1: its place" err "$3: error: $4"
}
printf 'v 1 2 3\nv 1 x 3\n' >word.obj
bad word.obj "" word.obj:2:5 "a coordinate is a finite number"
printf 'v 1 2\n' >short.obj
bad short.obj "" short.obj:1:6 "three numbers are needed here"
printf 'v 1 2 3\nv 2 2 2\n' >few.obj
bad few.obj "" bad.cdl:7:22 "'few.obj' contains 2 points: at least 4 are needed"
printf 'solid\n facet normal 0 0 1\n outer loop\n vertex 1 2 inf\n' >inf.stl
bad inf.stl "" inf.stl:4:13 "a coordinate is a finite number"
printf 'solid\n facet normal 0 0 1\n outer lop\n' >lop.stl
bad lop.stl "" lop.stl:3:8 "unknown word of an STL file"
printf 'facet normal 0 0 1\n' >facet.stl
bad facet.stl "" facet.stl:1:1 "an STL file begins with 'solid'"
binary | head -c 300 >cut.stl
bad cut.stl "" cut.stl:1:82 "a zero byte: not a text file, and the length is not that of a binary STL file"
corner[0]="nan -0.0625 -0.03125"
binary >nan.stl
bad nan.stl "" bad.cdl:7:22 "'nan.stl': corner 1 of triangle 1 is not a finite point"
: >empty.stl
bad empty.stl "" bad.cdl:7:22 "'empty.stl' contains 0 points: at least 4 are needed"
bad missing.stl "" bad.cdl:7:22 "cannot read 'missing.stl'"
mkdir -p below
cp bad.cdl below/
sed 's/missing.stl/..\/wedge.stl/' bad.cdl >below/bad.cdl
"$CDL" check below/bad.cdl >out 2>err
has "files outside of the folder" err "lies outside the folder of the model"
