/* importer: drives an FMI 2.0 unit by the lines of standard input, for tests/cli/fmu.sh.
       importer UNIT.so GUID
   set REF VALUE         a real variable
   slope REF VALUE       the first derivative of an input
   begin                 ends the initialisation
   step H                a communication step
   print REF... / REF... the time, reals, integers, as %.17g
   keep, back            saves the state as bytes; another instance continues from there
   Any status other than OK ends the program with 1 and the message of the unit. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *component;
typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks;

static void note(void *environment, const char *name, int status, const char *category, const char *text, ...)
{
    va_list ap;
    (void)environment;
    fprintf(stderr, "%s: %d %s: ", name, status, category);
    va_start(ap, text);
    vfprintf(stderr, text, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static void *unit;
#define CALL(name, ...)           \
    union {                       \
        void *object;             \
        int (*call)(__VA_ARGS__); \
    } name##_
#define FIND(name)                                                       \
    do {                                                                 \
        name##_.object = dlsym(unit, "fmi2" #name);                      \
        if (!name##_.object) {                                           \
            fprintf(stderr, "the unit has no function fmi2" #name "\n"); \
            return 2;                                                    \
        }                                                                \
    } while (0)
typedef const unsigned *refs;
static CALL(SetupExperiment, component, int, double, double, int, double);
static CALL(EnterInitializationMode, component);
static CALL(ExitInitializationMode, component);
static CALL(SetReal, component, refs, size_t, const double *);
static CALL(SetRealInputDerivatives, component, refs, size_t, const int *, const double *);
static CALL(GetReal, component, refs, size_t, double *);
static CALL(GetInteger, component, refs, size_t, int *);
static CALL(DoStep, component, double, double, int);
static CALL(GetBooleanStatus, component, int, int *);
static CALL(GetRealStatus, component, int, double *);
static CALL(GetFMUstate, component, void **);
static CALL(SetFMUstate, component, void *);
static CALL(FreeFMUstate, component, void **);
static CALL(SerializedFMUstateSize, component, void *, size_t *);
static CALL(SerializeFMUstate, component, void *, char *, size_t);
static CALL(DeSerializeFMUstate, component, const char *, size_t, void **);
static CALL(Terminate, component);
static union {
    void *object;
    component (*call)(const char *, int, const char *, const char *, const callbacks *, int, int);
} Instantiate_;
static union {
    void *object;
    void (*call)(component);
} FreeInstance_;

static int find_all(void)
{
    FIND(SetupExperiment);
    FIND(EnterInitializationMode);
    FIND(ExitInitializationMode);
    FIND(SetReal);
    FIND(SetRealInputDerivatives);
    FIND(GetReal);
    FIND(GetInteger);
    FIND(DoStep);
    FIND(GetBooleanStatus);
    FIND(GetRealStatus);
    FIND(GetFMUstate);
    FIND(SetFMUstate);
    FIND(FreeFMUstate);
    FIND(SerializedFMUstateSize);
    FIND(SerializeFMUstate);
    FIND(DeSerializeFMUstate);
    FIND(Terminate);
    FIND(Instantiate);
    FIND(FreeInstance);
    return 0;
}

static const callbacks own = { note, calloc, free, NULL, NULL };

static component start(const char *guid)
{
    component c = Instantiate_.call("one", 1, guid, "", &own, 0, 0);
    if (c && (SetupExperiment_.call(c, 0, 0, 0, 0, 0) || EnterInitializationMode_.call(c)))
        return NULL;
    return c;
}

static int print(component c, double t, char *list)
{
    int whole = 0;
    printf("%.17g", t);
    for (char *p = strtok(list, " \n"); p; p = strtok(NULL, " \n")) {
        unsigned ref = (unsigned)strtoul(p, NULL, 10);
        double x;
        int k;
        if (!strcmp(p, "/")) {
            whole = 1;
            continue;
        }
        if (whole ? GetInteger_.call(c, &ref, 1, &k) : GetReal_.call(c, &ref, 1, &x))
            return 1;
        if (whole)
            printf(",%d", k);
        else
            printf(",%.17g", x);
    }
    putchar('\n');
    return 0;
}

/* Saves the state as bytes; the instance continues. */
static char *keep(component c, size_t *n)
{
    void *state = NULL;
    if (GetFMUstate_.call(c, &state) || SerializedFMUstateSize_.call(c, state, n))
        return NULL;
    char *bytes = malloc(*n);
    if (!bytes || SerializeFMUstate_.call(c, state, bytes, *n))
        return NULL;
    return FreeFMUstate_.call(c, &state) ? NULL : bytes;
}

static int back(component c, const char *bytes, size_t n)
{
    void *state = NULL;
    return DeSerializeFMUstate_.call(c, bytes, n, &state) || SetFMUstate_.call(c, state) ||
           FreeFMUstate_.call(c, &state);
}

int main(int argc, char **argv)
{
    char line[4096], *bytes = NULL;
    size_t n = 0;
    double t = 0, kept = 0, x;
    unsigned ref;
    int bad = 0, order = 1;
    unit = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!unit || find_all())
        return fprintf(stderr, "%s\n", unit ? "no unit" : dlerror()), 2;
    component c = start(argv[2]);
    if (!c)
        return 1;
    while (!bad && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "set %u %lf", &ref, &x) == 2)
            bad = SetReal_.call(c, &ref, 1, &x);
        else if (sscanf(line, "slope %u %lf", &ref, &x) == 2)
            bad = SetRealInputDerivatives_.call(c, &ref, 1, &order, &x);
        else if (!strncmp(line, "begin", 5))
            bad = ExitInitializationMode_.call(c);
        else if (sscanf(line, "step %lf", &x) == 1) {
            bad = DoStep_.call(c, t, x, 1);
            t += x;
            if (bad == 2) {
                int ended = 0;
                GetBooleanStatus_.call(c, 3, &ended);
                GetRealStatus_.call(c, 2, &t);
                printf("ended %d %.17g\n", ended, t);
                break;
            }
        } else if (!strncmp(line, "print", 5))
            bad = print(c, t, line + 5);
        else if (!strncmp(line, "keep", 4)) {
            bytes = keep(c, &n);
            kept = t;
            bad = !bytes;
        } else if (!strncmp(line, "back", 4)) {
            FreeInstance_.call(c);
            c = start(argv[2]);
            bad = !c || back(c, bytes, n);
            t = kept;
        }
    }
    free(bytes);
    if (!bad)
        Terminate_.call(c);
    if (c)
        FreeInstance_.call(c);
    return bad && bad != 2;
}
