/* scene: the objects that animate draws, their positions over time, and the walls around them. It is read
   by the writers of pictures (SVG, GIF, page). */
#ifndef CDL_SCENE_H
#define CDL_SCENE_H
#include "program/shapes.h"
#include "session_output.h"

/* A disk, a box, a point or a corner of a line. */
typedef struct mover {
    const char *name; /* text for labels; "" for corners of lines */
    value v[3];
    int n; /* coordinates that it has; LONE: one number, which moves up and down */
    double r, box[2];
    value angle;
    bool turns;
    const double *attitude; /* in space: its matrix at the samples, row after row; or NULL */
    int line;               /* of which it is a corner, or 0 */
    const double *space;    /* a corner of a rod that stays, in space; or NULL */
    const mclass *of;       /* a part: its class and number; or NULL */
    int32_t inst;
    bool shaped;  /* its shapes are drawn: */
    double reach; /* how far they reach from their places */
} mover;
enum { LONE = -1 };

/* a piece of a wall: from one point of the plane to another */
typedef struct wall {
    double x[4];
} wall;
typedef vec(wall) wall_list;

typedef vec(int32_t) whole_list;

/* points that a line goes through */
enum { STROKE = 17 };
typedef struct stroke {
    int n;
    double x[STROKE][3];
} stroke;
typedef vec(stroke) stroke_list;

/* A shape; or, without one, the axes of a body that turns. */
typedef struct solid {
    const shape_info *of; /* NULL: axes */
    size_t number;        /* of the shape */
    int32_t inst;
    int body;   /* the mover that carries it, or -1 */
    bool fixed; /* nothing carries it */
    double reach;
    stroke_list strokes; /* its outline, in its own frame: */
} solid;

/* dot(n, x) = level */
typedef struct wall_plane {
    double n[3], level;
} wall_plane;

typedef struct scene {
    session *s;
    vec(mover) all;
    wall_list walls; /* at the time of the last query */
    vec(solid) solids;
    shapes *seen;     /* all shapes, or NULL */
    int64_t followed; /* samples at which it was found what touches of them, see touching_read */
    size_t most;      /* shapes that are drawn */
    bool whole;       /* all of the run is drawn */
    bool columns;     /* what is in `all` are columns of rotations */
    double radius, pitch;
    double rod;         /* the radius of the current rod */
    const mclass *kind; /* of the parts that were read last, and the name of their radius or NULL */
    const char *kind_radius;
    const char *naming; /* of the current argument */
    bool numbered;      /* it is a family of parts: the number of the current one */
    int32_t number;
    int wide; /* coordinates of the current family */
    int lines;
    bool field;       /* the field of the run is one of the things */
    bool bad, moving; /* moving: the walls */
} scene;

/* the part of the plane that is drawn, and the time */
typedef struct stage {
    double lo[2], hi[2], scale, begin, end;
} stage;

enum { SCENE_FRAMES = 240, WALL_FRAMES = 60, SCENE_MOST = 2000 };

/* Adds the objects of a value: dofs, parts, points, lines, rods. m->bad: it cannot be drawn. */
void scene_add(scene *m, const char *name, const value *v);
/* All degrees of freedom, parts and rods of the last run. */
void scene_add_all(scene *m);
void scene_begin(scene *m, session *s);
bool scene_in_space(const scene *m); /* something has three coordinates */

double number_at(const value *v, double t);
/* the place in space, the third coordinate 0 in the plane */
void mover_place(const scene *m, size_t k, double t, double x[3]);
/* the place on the picture: what lies in space is seen from aside */
void mover_at(const scene *m, size_t k, double t, double *z);
/* of what lies in space; it turns once in ROD_SECONDS when t grows */
enum { ROD_SECONDS = 8 };
void seen_from_aside(const double *x, double t, double *z);
void box_corner(const mover *m, const double *z, double time, int corner, double *out);
size_t line_length(const scene *m, size_t k); /* corners of the line that begins at k; 1: no line */

stage stage_of(scene *m, double wide_in_pixels);
void to_pixels(const stage *g, const double *z, double *p);
double frame_time(const stage *g, int f, int frames);

/* Bases of rotations for a stored state, whose small angles are then 0; NULL: there are none. */
const double *bases_of(arena *a, const program *p, double *q);

/* Of each dof of the run: the body whose coordinate it is, or -1; and which coordinate. */
void scene_axes(const scene *m, const results *r, int32_t **body, int32_t **axis);
/* Registers that the kernels of gaps, gradients and slips of any contact need. */
size_t contact_registers(const program *p);
/* The state at a time as kernels read it; q and v are room for it. */
void state_read(arena *a, const results *r, inputs *in, double *q, double *v, double t);

/* ---- scene_shapes.c ---- */
void scene_solids(scene *m);                /* finds those of the things that are drawn */
void solids_move(const scene *m, double t); /* to where they are at t; then: */
body_pose solid_pose(const scene *m, size_t k, double t);
void solid_seen(const solid *s, const body_pose *at, const double *y,
                double *z);                                /* a point of its own frame, on the picture */
const double *solid_table(const scene *m, const solid *s); /* the numbers of a shape */
/* of an ellipsoid: its matrix A, and the M that maps a ball of radius 1 to it */
void ellipsoid_map(const shape_info *s, const double *numbers, double *A, double *M);
/* A shape as polygons, in its own frame; corners of what is round lie on its surface. */
typedef struct polygons {
    number_list x;          /* corners, 3 numbers each */
    whole_list corner, end; /* corners of the polygons one after the other; where each of them ends */
} polygons;
void solid_polygons(scene *m, const solid *s, polygons *to);
/* The state at a time, with the touching features of shapes; times must increase. q and v are room for
   it. */
void touching_read(scene *m, inputs *in, double *q, double *v, double t);
/* Where a member touches and the normal there, by a state of touching_read; false: it is not between shapes.
 */
bool touching_at(const contact_family *f, const inputs *in, const int32_t *ix, double *reg, double *x,
                 double *normal);
/* The half-space that a shape may not enter, of a constraint on a gap between both; q is that of in. */
bool halfspace_of(const scene *m, const contact_family *f, const inputs *in, double *q, double *reg,
                  wall_plane *out);

/* ---- scene_walls.c: where the gap of a constraint of one body alone is zero ---- */
void walls_at(scene *m, const stage *s, double time);
void walls_watch(scene *m, const stage *s); /* determines whether walls move; returns those at the start */
int32_t column_of(const scene *m, const value *v); /* of the dofs of the run; -1: none */

/* ---- the writers ---- */
void put_gif(text *t, scene *m);
void put_page(text *t, scene *m);
#endif
