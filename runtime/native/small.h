/* small: the state of a small model, as a part of what `cdl emit c` writes. Sizes precede it in the file: N
   dofs, NC contacts of NF families with NR rows in total and at most ND tangential components, NH entries in
   a row, NP parameters, NE conditions of `when`. */

/* A constraint: its kind, then its rows and laws, which are constant. */
typedef struct contact {
    int relation; /* gap >= 0, gap = 0, always closed */
    int d, n;     /* tangential components; entries of a row */
    const int *dof;
    bool listed; /* rows have entries only for the listed dofs */
    bool tresca, poisson, slip_given;
    int shown; /* components of friction that are shown */
    int family, first;
    double H[NH], S[ND * NH + 1], s0[ND + 1], ht;
    double mu, e, normal, bias, slip_bias[ND + 1], show_force[ND * ND + 4];
} contact;

/* the run: size and weight of a step, its tolerance and end, the distance of samples */
typedef struct small_run {
    double h, theta, tolerance, end, apart;
} small_run;

/* Work of forces without potential, energy taken by contacts, largest overlap; current forces without
   potential. */
typedef struct small_books {
    double work, dissipated, deepest, opened;
    int64_t impacts;
    double driving[N], power;
    bool driving_known;
} small_books;

/* The largest values seen so far, and tolerances that follow from them. */
typedef struct small_sizes {
    double qmax[N], vmax[N], length[NF + 1], tol_gap[NC + 1], tol_u[NC + 1], tol_slip[NC + 1];
} small_sizes;

/* masses, the matrix of the step, and the change of the rates by unit reactions */
typedef struct small_matrix {
    double masses[NM], inverse[NM];
    factor minv;
    double Fq[NM], Fv[NM], D[NM], factors[NM], d_step;
    int pivot[N];
    factor df;
    int64_t stamp, G_stamp[NC + 1], A_stamp;
    double G[NC + 1][(ND + 1) * N], Gm[NC + 1][(ND + 1) * N];
    double A[(ND + 1) * (ND + 1)]; /* of a single contact, over a whole step */
} small_matrix;

/* The current contact problem. */
typedef struct small_problem {
    int act[NC + 1], row[NC + 1], nact, nrows;
    cone cone[NC + 1];
    double step_size, off[NR + 1], b[NR + 1], rr[NR + 1], u[NR + 1], dir[NR + 1], unit[NR + 1];
    double W[NR * NR + 1], local[CONE_WORK * ND * (ND + 4) + 8];
    arena scratch;
} small_problem;

typedef struct cdl_model {
    double param[NP + 1];
    contact contacts[NC + 1];
    small_run run;
    /* Current, at the start of the last step, and at the end of the trial step. */
    int64_t step;
    double t, step_from, t1;
    double q[N], v[N], f[N], q1[N], v1[N], f1[N], acc[N];
    bool fresh;      /* acc is the current one */
    double drift[N]; /* change of the rates in a step by constant forces */
    small_books books;
    small_sizes size;
    /* Contacts: gaps, closed ones, forces of the last step, impulses since its start; data of a shock. */
    double gap[NC + 1], r[NR + 1], P[NR + 1];
    bool closed[NC + 1], met[NC + 1];
    int hits[NC + 1], again;
    double before[NC + 1], given[NC + 1], impulse[NR + 1];
    small_matrix matrix;
    small_problem hand;
    bool fired[NE + 1], rising[NE + 1], stopped;
    const char *stopped_by;
} cdl_model;

void cdl_model_init(cdl_model *w);
int cdl_model_step(cdl_model *w);
const char *cdl_model_why(const cdl_model *w);
void cdl_model_reaction(const cdl_model *w, int c, double *rn, double *rt);
