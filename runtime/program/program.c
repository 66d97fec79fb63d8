/* program: values of the parameters. */
#include "clock/backend.h"

/* Each member's outputs go where they belong before the next member runs, so later ones read them. */
static void params_run(const kernel *k, const bool *set, double *param, arena *scratch)
{
    inputs in = { .from = { [IN_PARAM] = param } };
    double *reg = arena_array(scratch, double, k->tape.nreg);
    double *where = arena_array(scratch, double, k->tape.nmore);
    int32_t index[MAX_INDEX];
    tape_start(&k->tape, reg);
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        if (!kernel_member(k, index, where))
            continue;
        kernel_run(k, &in, index, reg);
        for (uint32_t i = 0; i < k->tape.nout; i++) {
            int32_t row = slot_at(&k->row[i], index, k->over.n);
            if (!set || !set[row])
                param[row] = reg[k->tape.out[i]];
        }
    }
}

static void params_run_all(const kernels *all, const bool *set, double *param, arena *scratch)
{
    for (size_t i = 0; i < all->n; i++) {
        arena_pos mark = arena_mark(scratch);
        params_run(&all->at[i], set, param, scratch);
        arena_release(scratch, mark);
    }
}

void program_params(const program *p, const bool *set, double *param, arena *scratch)
{
    params_run_all(&p->defaults, set, param, scratch);
    params_run_all(&p->derived, set, param, scratch);
}

void program_derive(const program *p, double *param, arena *scratch)
{
    params_run_all(&p->derived, NULL, param, scratch);
}
