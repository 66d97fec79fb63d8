/* slip_missing: friction without a slip acts on all degrees of freedom at once.  That is what is meant for
   one body, and hardly for several: it brakes those that do not touch anything. */
#include "elab.h"
#include <string.h>
#include "program/program.h"

/* A body: an instance of a class, or a member of its degrees of freedom with indices. */
typedef struct body {
    const mclass *of;
    int32_t inst, member; /* -1: of those without indices */
} body;

static bool has_index(const mdof *d)
{
    const ast *dims = d->decl->kid[0];
    for (uint32_t i = 0; i < dims->n; i++)
        if (dims->kid[i]->kind == AST_INDEX)
            return true;
    return false;
}

/* how many bodies an instance is */
static int64_t bodies_of(const mclass *c)
{
    int64_t members = 0;
    bool plain = false;
    for (size_t k = 0; k < c->dofs.n; k++) {
        const mdof *d = c->dofs.at[k];
        int64_t n = d->size / (d->comp ? d->comp : 1);
        if (!has_index(d))
            plain = true;
        else if (n > members)
            members = n;
    }
    return members + plain;
}

static body body_at(const model *m, int32_t at)
{
    for (size_t i = 0; i < m->classes.n; i++) {
        const mclass *c = m->classes.at[i];
        if (c->qsize == 0 || at < c->qbase || at >= c->qbase + c->ninst * c->qsize)
            continue;
        int32_t inst = (at - c->qbase) / c->qsize, off = (at - c->qbase) % c->qsize;
        for (size_t k = 0; k < c->dofs.n; k++) {
            const mdof *d = c->dofs.at[k];
            if (off >= d->offset && off < d->offset + d->size)
                return (body){ c, inst, has_index(d) ? (off - d->offset) / (d->comp ? d->comp : 1) : -1 };
        }
    }
    return (body){ NULL, 0, 0 };
}

/* bodies that the first member of a constraint reads in its gap */
static int64_t bodies_read(elab *e, const mcontact *k)
{
    ir_ref *in;
    int32_t index[MAX_INDEX] = { 0 };
    size_t n = ir_inputs(e->m->g, e->m->a, &k->gap, 1, &in), count = 0;
    body *seen = arena_array(e->m->a, body, n + 1);
    index_first(&k->over.set, index);
    for (size_t i = 0; i < n; i++) {
        const ir_input *x = ir_input_of(e->m->g, in[i]);
        if (x->kind != IN_Q)
            continue;
        int32_t at = x->at.base;
        for (int j = 0; j < k->over.n; j++)
            at += x->at.stride[j] * index[j];
        body b = body_at(e->m, at);
        bool known = b.of == NULL;
        for (size_t j = 0; j < count && !known; j++)
            known = seen[j].of == b.of && seen[j].inst == b.inst && seen[j].member == b.member;
        if (!known)
            seen[count++] = b;
    }
    return (int64_t)count;
}

void slip_missing_warn(elab *e, const mcontact *k)
{
    int64_t all = 0;
    const model *m = e->m;
    if (k->friction == FRICTION_NONE || k->slip_given || !k->gap || k->of_rates || m->rods.n || m->d->errors)
        return;
    if (m->contacts.n && m->contacts.at[m->contacts.n - 1].decl == k->decl)
        return; /* of another member it is known */
    for (size_t i = 0; i < m->classes.n; i++)
        all += m->classes.at[i]->ninst * bodies_of(m->classes.at[i]);
    int64_t read = bodies_read(e, k);
    if (read == 0 || all <= read)
        return;
    diag *d = diag_warn(
        m->d, DIAG_WARN_NO_SLIP, k->mu_at,
        "friction on '%s' has no slip: it brakes all %lld bodies of the model at once, and its gap "
        "is about %lld",
        k->name, (long long)all, (long long)read);
    diag_hint(m->d, d, "give slip = …, the relative velocity at the contact");
}
