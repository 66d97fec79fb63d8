/* fmu: the functions of FMI 2.0 for co-simulation with the steps of a small model, as a part of what `cdl
   emit fmu` writes. The model takes its own steps of size h, whatever the communication steps are: between
   two of them a copy continues to the communication point, and the model itself follows only if an input
   changes there. In the file it is preceded by FMU_GUID, NI inputs with their places (unit_inputs), and
   everything of `cdl emit c`.

   Value references of reals: N positions, N rates, NC gaps, NC normal forces, 3 friction forces of each
   contact, work, dissipated, max_penetration, then the parameters; of integers: NC states, the number of
   impacts. */

typedef void *fmi2Component, *fmi2ComponentEnvironment, *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer, fmi2Boolean;
typedef char fmi2Char, fmi2Byte;
typedef const fmi2Char *fmi2String;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef struct fmi2CallbackFunctions {
    void (*logger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;

#ifdef FMI2_FUNCTION_PREFIX
#define FMU_PASTE(a, b)  a##b
#define FMU_PASTED(a, b) FMU_PASTE(a, b)
#define FMU_NAME(name)   FMU_PASTED(FMI2_FUNCTION_PREFIX, name)
#else
#define FMU_NAME(name) name
#endif
#ifdef __GNUC__
#define FMU_API(type, name) __attribute__((visibility("default"))) type FMU_NAME(name)
#else
#define FMU_API(type, name) type FMU_NAME(name)
#endif

enum {
    UNIT_V = N,
    UNIT_GAP = 2 * N,
    UNIT_RN = UNIT_GAP + NC,
    UNIT_RT = UNIT_RN + NC,
    UNIT_BOOKS = UNIT_RT + 3 * NC,
    UNIT_PARAM = UNIT_BOOKS + 3,
    UNIT_REALS = UNIT_PARAM + NP
};

/* ---- a model whose initial values or inputs were set ---- */
/* sweep_changed: gaps and forces of the current state; a shock follows if it violates its constraints. */
static bool model_changed(cdl_model *w)
{
    bool jolt = false;
    derive(w->param);
    if (!survey(w) || !rates(w))
        return false;
    for (int c = 0; c < NC; c++)
        jolt |= w->contacts[c].relation == BILATERAL &&
                fabs(gap_rate(&w->contacts[c], w->v)) > w->size.tol_u[c];
    vec_copy(w->f1, w->f, N);
    return meet(w) && (!jolt || shock(w));
}

/* sweep_start, begin */
static bool model_restart(cdl_model *w)
{
    memset(&w->books, 0, sizeof w->books);
    memset(&w->size, 0, sizeof w->size);
    memset(w->r, 0, sizeof w->r);
    memset(w->fired, 0, sizeof w->fired);
    for (int c = 0; c < NC; c++)
        w->closed[c] = w->contacts[c].relation == ALWAYS_CLOSED;
    derive(w->param);
    laws(w);
    if (!model_changed(w))
        return false;
#if PLAIN && FORCE_CONSTANT
    double push[N];
    for (int i = 0; i < N; i++)
        push[i] = w->run.h * ((1 - w->run.theta) * w->f[i] + w->run.theta * w->f[i]);
    solve_with(&w->matrix.minv, push, w->drift);
#endif
#if NE
    vec_copy(w->q1, w->q, N);
    vec_copy(w->v1, w->v, N);
    if (rise(w, false)) {
        rise(w, true);
        if (!fire(w))
            return false;
    }
#endif
    if (!gauss(w))
        return false;
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < rows_of(&w->contacts[w->hand.act[i]]); j++)
            w->r[w->contacts[w->hand.act[i]].first + j] = w->hand.rr[w->hand.row[w->hand.act[i]] + j];
    w->fresh = true;
    return true;
}

/* Advances to a time within the next step. */
static bool model_reach(cdl_model *w, double to)
{
    w->step_from = w->t;
    if (!advance(w, to))
        return beyond(w, "a step could not be taken");
    if (!w->stopped)
        w->t = to;
    return true;
}

/* The next step, from the time at which inputs left the model. */
static bool model_next(cdl_model *w)
{
    if (w->t == (double)w->step * w->run.h)
        return cdl_model_step(w) <= 1;
    if (!model_reach(w, (double)(w->step + 1) * w->run.h))
        return false;
    w->step++;
    return true;
}

/* Everything that changes, in one piece of memory. */
typedef struct unit_state {
    cdl_model now;   /* at its last own step, or where an input changed */
    cdl_model shown; /* at the communication point, if `ahead` */
    bool ahead, begun;
    bool given; /* something was set that the model has not used yet */
    double at;  /* the communication point */
} unit_state;

typedef struct unit {
    unit_state s;
    fmi2CallbackFunctions call;
    fmi2Boolean talks;
    char name[256];
} unit;

/* A copy with its own pointers. Contacts are constant, but the data that they point to may be elsewhere now.
 */
static void model_copy(cdl_model *to, const cdl_model *from)
{
    if (to != from)
        memcpy(to, from, sizeof *to);
    model_constants(to);
    laws(to);
    for (int c = 0; c < NC; c++)
        to->hand.cone[c].dir = NULL;
    to->matrix.minv.a = to->matrix.inverse;
    to->matrix.df.a = to->matrix.factors;
    to->matrix.df.pivot = to->matrix.pivot;
    to->stopped_by = NULL;
}

static void state_copy(unit_state *to, const unit_state *from)
{
    if (to != from)
        memcpy(to, from, sizeof *to);
    model_copy(&to->now, &from->now);
    model_copy(&to->shown, &from->shown);
}

static const cdl_model *unit_model(const unit *u)
{
    return u->s.ahead ? &u->s.shown : &u->s.now;
}

static fmi2Status unit_says(unit *u, fmi2Status is, const char *what)
{
    if (u->call.logger && (u->talks || is >= fmi2Error))
        u->call.logger(u->call.componentEnvironment, u->name, is,
                       is >= fmi2Error ? "logStatusError" : "logAll", "%s", what);
    return is;
}

static fmi2Status unit_failed(unit *u, const cdl_model *w)
{
    return unit_says(u, fmi2Error,
                     cdl_model_why(w) ? cdl_model_why(w) : "the initial state violates a constraint");
}

/* ---- capabilities, and the life of a unit ---- */
FMU_API(const char *, fmi2GetTypesPlatform)(void)
{
    return "default";
}

FMU_API(const char *, fmi2GetVersion)(void)
{
    return "2.0";
}

FMU_API(fmi2Status, fmi2SetDebugLogging)
(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String category[])
{
    unit *u = c;
    (void)n, (void)category;
    u->talks = on;
    return fmi2OK;
}

FMU_API(fmi2Component, fmi2Instantiate)
(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *call,
 fmi2Boolean visible, fmi2Boolean talks)
{
    (void)resources, (void)visible;
    if (!call || !call->allocateMemory || !call->freeMemory)
        return NULL;
    unit *u = call->allocateMemory(1, sizeof *u);
    if (!u)
        return NULL;
    memset(u, 0, sizeof *u);
    u->call = *call;
    u->talks = talks;
    for (size_t i = 0; name && name[i] && i + 1 < sizeof u->name; i++)
        u->name[i] = name[i];
    bool fits = guid && !strcmp(guid, FMU_GUID);
    if (type != fmi2CoSimulation || !fits) {
        unit_says(u, fmi2Error,
                  fits ? "this unit is for co-simulation" : "the GUID is not that of this unit");
        call->freeMemory(u);
        return NULL;
    }
    cdl_model_init(&u->s.now);
    return u;
}

FMU_API(void, fmi2FreeInstance)(fmi2Component c)
{
    unit *u = c;
    if (u)
        u->call.freeMemory(u);
}

FMU_API(fmi2Status, fmi2SetupExperiment)
(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start, fmi2Boolean has_stop,
 fmi2Real stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    return start == 0 ? fmi2OK : unit_says(c, fmi2Error, "the motion starts at t = 0");
}

FMU_API(fmi2Status, fmi2EnterInitializationMode)(fmi2Component c)
{
    (void)c;
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2ExitInitializationMode)(fmi2Component c)
{
    unit *u = c;
    u->s.begun = true;
    if (!u->s.given)
        return fmi2OK;
    u->s.given = false;
    return model_restart(&u->s.now) ? fmi2OK : unit_failed(u, &u->s.now);
}

FMU_API(fmi2Status, fmi2Terminate)(fmi2Component c)
{
    (void)c;
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2Reset)(fmi2Component c)
{
    unit *u = c;
    memset(&u->s, 0, sizeof u->s);
    cdl_model_init(&u->s.now);
    return fmi2OK;
}

/* ---- values ---- */
static double contact_force(const cdl_model *w, int c, int j)
{
    double rn, rt[ND + 4] = { 0 };
    cdl_model_reaction(w, c, &rn, rt);
    return j < 0 ? rn : rt[j];
}

static double real_of(const cdl_model *w, unsigned k)
{
    const double *books[] = { &w->books.work, &w->books.dissipated, &w->books.deepest };
    return k < UNIT_V       ? w->q[k]
           : k < UNIT_GAP   ? w->v[k - UNIT_V]
           : k < UNIT_RN    ? w->gap[k - UNIT_GAP]
           : k < UNIT_RT    ? contact_force(w, (int)(k - UNIT_RN), -1)
           : k < UNIT_BOOKS ? contact_force(w, (int)((k - UNIT_RT) / 3), (int)((k - UNIT_RT) % 3))
           : k < UNIT_PARAM ? *books[k - UNIT_BOOKS]
                            : w->param[k - UNIT_PARAM];
}

FMU_API(fmi2Status, fmi2GetReal)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, fmi2Real value[])
{
    unit *u = c;
    for (size_t i = 0; i < n; i++) {
        if (ref[i] >= UNIT_REALS)
            return unit_says(u, fmi2Error, "no real variable has this value reference");
        value[i] = real_of(unit_model(u), ref[i]);
    }
    return fmi2OK;
}

/* 0 open, 1 sticks, 2 slips; as in a sample of a run. */
static int contact_state(const cdl_model *w, int c)
{
    double slip[ND + 1];
    const contact *k = &w->contacts[c];
    if (k->relation != ALWAYS_CLOSED && !w->closed[c])
        return 0;
    return k->d && !(slip_of(k, w->v, slip) > w->size.tol_slip[c]) ? 1 : 2;
}

FMU_API(fmi2Status, fmi2GetInteger)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, fmi2Integer value[])
{
    unit *u = c;
    for (size_t i = 0; i < n; i++) {
        if (ref[i] > NC)
            return unit_says(u, fmi2Error, "no integer variable has this value reference");
        value[i] = ref[i] == NC ? (int)unit_model(u)->books.impacts
                                : contact_state(unit_model(u), (int)ref[i]);
    }
    return fmi2OK;
}

static int input_of(unsigned k)
{
    for (int i = 0; i < NI; i++)
        if (UNIT_PARAM + (unsigned)unit_inputs[i].at == k)
            return i;
    return -1;
}

static int param_of(unsigned k)
{
    for (int i = 0; i < NS; i++)
        if (UNIT_PARAM + (unsigned)unit_params[i].at == k)
            return i;
    return -1;
}

/* Sets an input from now on: its value, and zero derivatives. */
static void input_put(unit *u, int i, double x)
{
    cdl_model *both[] = { &u->s.now, &u->s.shown };
    for (int k = 0; k < 2; k++) {
        double *param = both[k]->param;
        param[unit_inputs[i].at] = x;
        for (int j = 0; j < 3; j++)
            param[unit_inputs[i].slope + j] = 0;
        param[unit_inputs[i].origin] = unit_model(u)->t;
    }
    u->s.given = true;
}

FMU_API(fmi2Status, fmi2SetReal)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2Real value[])
{
    unit *u = c;
    for (size_t i = 0; i < n; i++) {
        int input = input_of(ref[i]);
        int own = input < 0 ? param_of(ref[i]) : -1;
        bool start = (ref[i] < UNIT_GAP || own >= 0) && !u->s.begun;
        if (!isfinite(value[i]) || (input < 0 && !start))
            return unit_says(
                u, fmi2Error,
                "only inputs can be set, and positions, rates and some parameters before the start");
        if (own >= 0 && !(value[i] >= unit_params[own].lo && value[i] <= unit_params[own].hi))
            return unit_says(u, fmi2Error, "the value of a parameter is outside its bounds");
        if (input >= 0)
            input_put(u, input, value[i]);
        else if (own >= 0)
            u->s.now.param[unit_params[own].at] = value[i];
        else if (ref[i] < UNIT_V)
            u->s.now.q[ref[i]] = value[i];
        else
            u->s.now.v[ref[i] - UNIT_V] = value[i];
        u->s.given = true;
    }
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2SetInteger)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2Integer value[])
{
    (void)ref, (void)value;
    return n ? unit_says(c, fmi2Error, "no integer can be set") : fmi2OK;
}

FMU_API(fmi2Status, fmi2GetBoolean)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, fmi2Boolean value[])
{
    (void)ref, (void)value;
    return n ? unit_says(c, fmi2Error, "there are no Boolean variables") : fmi2OK;
}

FMU_API(fmi2Status, fmi2SetBoolean)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2Boolean value[])
{
    (void)ref, (void)value;
    return n ? unit_says(c, fmi2Error, "there are no Boolean variables") : fmi2OK;
}

FMU_API(fmi2Status, fmi2GetString)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, fmi2String value[])
{
    (void)ref, (void)value;
    return n ? unit_says(c, fmi2Error, "there are no string variables") : fmi2OK;
}

FMU_API(fmi2Status, fmi2SetString)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2String value[])
{
    (void)ref, (void)value;
    return n ? unit_says(c, fmi2Error, "there are no string variables") : fmi2OK;
}

/* ---- states ---- */
FMU_API(fmi2Status, fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    unit *u = c;
    if (!*state)
        *state = u->call.allocateMemory(1, sizeof u->s);
    if (!*state)
        return unit_says(u, fmi2Error, "there is not enough memory for a state");
    state_copy(*state, &u->s);
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state)
{
    unit *u = c;
    if (!state)
        return unit_says(u, fmi2Error, "there is no state");
    state_copy(&u->s, state);
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    unit *u = c;
    if (*state)
        u->call.freeMemory(*state);
    *state = NULL;
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof FMU_GUID + sizeof(unit_state);
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2SerializeFMUstate)
(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    if (size < sizeof FMU_GUID + sizeof(unit_state))
        return unit_says(c, fmi2Error, "the room for a state is too small");
    memcpy(bytes, FMU_GUID, sizeof FMU_GUID);
    memcpy(bytes + sizeof FMU_GUID, state, sizeof(unit_state));
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2DeSerializeFMUstate)
(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
    unit *u = c;
    if (size < sizeof FMU_GUID + sizeof(unit_state) || memcmp(bytes, FMU_GUID, sizeof FMU_GUID))
        return unit_says(u, fmi2Error, "these bytes are not a state of this unit");
    if (!*state)
        *state = u->call.allocateMemory(1, sizeof(unit_state));
    if (!*state)
        return unit_says(u, fmi2Error, "there is not enough memory for a state");
    memcpy(*state, bytes + sizeof FMU_GUID, sizeof(unit_state));
    state_copy(*state, *state);
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2GetDirectionalDerivative)
(fmi2Component c, const fmi2ValueReference unknown[], size_t nunknown, const fmi2ValueReference known[],
 size_t nknown, const fmi2Real dknown[], fmi2Real dunknown[])
{
    (void)unknown, (void)nunknown, (void)known, (void)nknown, (void)dknown, (void)dunknown;
    return unit_says(c, fmi2Error, "there are no directional derivatives");
}

/* ---- co-simulation ---- */
/* An input is a cubic in time. */
FMU_API(fmi2Status, fmi2SetRealInputDerivatives)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2Integer order[], const fmi2Real value[])
{
    static const double over[] = { 1, 1. / 2, 1. / 6 };
    unit *u = c;
    for (size_t i = 0; i < n; i++) {
        int input = input_of(ref[i]);
        if (input < 0 || order[i] < 1 || order[i] > 3 || !isfinite(value[i]))
            return unit_says(u, fmi2Error, "inputs have derivatives of the orders 1 to 3");
        u->s.now.param[unit_inputs[input].slope + order[i] - 1] = over[order[i] - 1] * value[i];
        u->s.shown.param[unit_inputs[input].slope + order[i] - 1] = over[order[i] - 1] * value[i];
        u->s.given = true;
    }
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2GetRealOutputDerivatives)
(fmi2Component c, const fmi2ValueReference ref[], size_t n, const fmi2Integer order[], fmi2Real value[])
{
    (void)ref, (void)order, (void)value;
    return n ? unit_says(c, fmi2Error, "there are no derivatives of outputs") : fmi2OK;
}

/* Values set since the last step act from the communication point on. */
static bool unit_settle(unit *u)
{
    if (!u->s.given)
        return true;
    u->s.given = false;
    if (u->s.ahead)
        model_copy(&u->s.now, &u->s.shown);
    u->s.ahead = false;
    return model_changed(&u->s.now);
}

static fmi2Status unit_stopped(unit *u, double at)
{
    u->s.at = at;
    return unit_says(u, fmi2Discard, "the motion has ended: `stop when`");
}

FMU_API(fmi2Status, fmi2DoStep)
(fmi2Component c, fmi2Real from, fmi2Real step, fmi2Boolean no_way_back)
{
    unit *u = c;
    cdl_model *w = &u->s.now;
    double to = from + step, near = STEP_SAME * w->run.h;
    (void)no_way_back;
    if (!(step >= 0) || !(fabs(from - u->s.at) <= near + ROUND_50 * fabs(from)))
        return unit_says(u, fmi2Error, "a step begins where the last one ended");
    if (!unit_settle(u))
        return unit_failed(u, w);
    near += ROUND_50 * fabs(to);
    while (!w->stopped && (double)(w->step + 1) * w->run.h <= to + near)
        if (!model_next(w))
            return unit_failed(u, w);
    u->s.ahead = false;
    if (!w->stopped && to - w->t > near) {
        model_copy(&u->s.shown, w);
        u->s.ahead = true;
        if (!model_reach(&u->s.shown, to))
            return unit_failed(u, &u->s.shown);
    }
    if (unit_model(u)->stopped)
        return unit_stopped(u, unit_model(u)->t);
    u->s.at = to;
    return fmi2OK;
}

FMU_API(fmi2Status, fmi2CancelStep)(fmi2Component c)
{
    return unit_says(c, fmi2Error, "steps are synchronous");
}

FMU_API(fmi2Status, fmi2GetStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)c, (void)kind;
    *value = fmi2OK;
    return fmi2Discard;
}

FMU_API(fmi2Status, fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    const unit *u = c;
    *value = u->s.at;
    return kind == fmi2LastSuccessfulTime ? fmi2OK : fmi2Discard;
}

FMU_API(fmi2Status, fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value)
{
    (void)c, (void)kind;
    *value = 0;
    return fmi2Discard;
}

FMU_API(fmi2Status, fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    *value = unit_model(c)->stopped;
    return kind == fmi2Terminated ? fmi2OK : fmi2Discard;
}

FMU_API(fmi2Status, fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2String *value)
{
    (void)c, (void)kind;
    *value = "";
    return fmi2Discard;
}
