/* potential: forces written as equations get a potential where they are linear in the positions with a
   symmetric stiffness: f_r = f0_r + sum_c J_rc q_c   gives   V = -sum_r q_r (f0_r + 1/2 sum_c J_rc q_c), so
   that the energy of a run is what a user expects (it includes gravity and springs). Terms that depend on
   time or rates remain work. */
#include <math.h>
#include "dynamics.h"
#include "model/elab.h"
#include "base/tolerances.h"

enum { MAX_ENTRIES = 400000 }; /* beyond this the symmetry is not checked and no potential is made */
enum { FIXED_KINDS = BIT(IN_PARAM) | BIT(IN_INDEX) };

/* parameters are replaced by generic numbers: a stiffness that is symmetric for these is symmetric */
typedef struct {
    const int32_t *ix;
    int n;
} member;
static double generic_input(const ir_input *in, void *ud)
{
    const member *x = ud;
    if (in->kind == IN_INDEX)
        return x->ix[in->at.base];
    return 0.5 + (double)(hash64(7, (uint64_t)(uint32_t)slot_at(&in->at, x->ix, x->n)) >> 11) * 0x1p-53;
}

static uint64_t place(int32_t row, int32_t col)
{
    return (uint64_t)(uint32_t)row << 32 | (uint32_t)col;
}

static void add_bits(map64 *to, uint64_t key, double x)
{
    union {
        uint64_t u;
        double d;
    } v;
    uint64_t *at = map64_put(to, key);
    v.u = *at;
    v.d += x;
    *at = v.u;
}

static bool stiffness_symmetric(arena *a, const model *m, const role *dq)
{
    map64 at = { .a = a };
    int64_t left = MAX_ENTRIES;
    for (size_t i = 0; i < dq->group.n; i++) {
        const entry_group *g = &dq->group.at[i];
        int32_t ix[MAX_INDEX];
        for (size_t k = 0; k < g->list.n; k++) {
            const entry *e = &g->list.at[k];
            if (depends_on(m->g, e->f, ~(unsigned)FIXED_KINDS))
                return false;
            for (bool more = index_first(&g->over.set, ix); more; more = index_next(&g->over.set, ix)) {
                if (left-- == 0)
                    return false;
                member x = { ix, g->over.set.n };
                arena_pos mark = arena_mark(m->a);
                double v = ir_value(m->g, m->a, e->f, generic_input, &x);
                arena_release(m->a, mark);
                add_bits(&at, place(slot_at(&e->row, ix, x.n), slot_at(&e->col, ix, x.n)), v);
            }
        }
    }
    for (size_t i = 0; i < at.cap; i++) {
        if (at.key[i] == UINT64_MAX)
            continue;
        union {
            uint64_t u;
            double d;
        } x = { .u = at.val[i] }, y = { .u = 0 };
        const uint64_t *t = map64_get(&at, at.key[i] << 32 | at.key[i] >> 32);
        if (t)
            y.u = *t;
        if (fabs(x.d - y.d) > FACTOR_SAME * (fabs(x.d) + fabs(y.d)))
            return false;
    }
    return true;
}

static ir_ref state_to_zero(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    in_kind k = ir_input_of(g, input)->kind;
    return k == IN_Q || k == IN_V ? ir_const(g, 0) : IR_NONE;
}

static ir_ref dof_at(ir *g, const address *at)
{
    return ir_in(g, (ir_input){ .kind = IN_Q, .at = *at });
}

static void potential_group(arena *a, role *to, const entry_group *of, ir_ref v)
{
    *vec_push(a, &to->group) = (entry_group){ .over = of->over, .at = of->at, .by_place = { .a = a } };
    *vec_push(a, &to->group.at[to->group.n - 1].list) = (entry){ .f = v };
}

ir_ref potential_constant(ir *g, ir_ref force)
{
    ir_ref f0 = ir_substitute(g, force, state_to_zero, NULL);
    return depends_on(g, f0, ~(unsigned)FIXED_KINDS) ? IR_NONE : f0;
}

bool potential_of_forces(arena *a, const model *m, dynamics *dy)
{
    ir *g = m->g;
    if (m->kinetic.n || m->inclusion.n || dy->first_order.file || !stiffness_symmetric(a, m, &dy->force_dq))
        return false;
    for (size_t i = 0; i < dy->force.group.n; i++) {
        const entry_group *of = &dy->force.group.at[i];
        ir_ref v = ir_const(g, 0);
        for (size_t k = 0; k < of->list.n; k++) {
            ir_ref f0 = potential_constant(g, of->list.at[k].f);
            if (f0)
                v = ir_op2(g, OP_SUB, v, ir_op2(g, OP_MUL, f0, dof_at(g, &of->list.at[k].row)));
        }
        potential_group(a, &dy->potential, of, v);
    }
    for (size_t i = 0; i < dy->force_dq.group.n; i++) {
        const entry_group *of = &dy->force_dq.group.at[i];
        ir_ref v = ir_const(g, 0), half = ir_const(g, 0.5);
        for (size_t k = 0; k < of->list.n; k++) {
            const entry *e = &of->list.at[k];
            ir_ref qq = ir_op2(g, OP_MUL, dof_at(g, &e->row), dof_at(g, &e->col));
            v = ir_op2(g, OP_SUB, v, ir_op2(g, OP_MUL, ir_op2(g, OP_MUL, half, e->f), qq));
        }
        potential_group(a, &dy->potential, of, v);
    }
    return true;
}
