/* Open Dynamics Engine: balls poured into a box, a column, balls that bounce by themselves.
   ode grains|column|balls|boxes N STEPS */
#include <stdbool.h>
#include <ode/ode.h>
#include "peer.h"

typedef struct scene {
    dWorldID world;
    dSpaceID space;
    dJointGroupID joints;
    dBodyID *body;
    int n;
    double deepest, bounce;
} scene;

/* walls are smooth: their geoms carry a mark, the floor carries none */
static void touch(void *of, dGeomID a, dGeomID b)
{
    scene *s = of;
    dContact c[4];
    dBodyID x = dGeomGetBody(a), y = dGeomGetBody(b);
    if (!x && !y)
        return;
    int n = dCollide(a, b, 4, &c[0].geom, sizeof *c);
    for (int i = 0; i < n; i++) {
        double mu = dGeomGetData(a) || dGeomGetData(b) ? 0 : ROUGH;
        c[i].surface.mode = dContactApprox1 | (s->bounce > 0 ? dContactBounce : 0);
        c[i].surface.mu = mu;
        c[i].surface.bounce = s->bounce;
        c[i].surface.bounce_vel = 0;
        if (c[i].geom.depth > s->deepest)
            s->deepest = c[i].geom.depth;
        dJointAttach(dJointCreateContact(s->world, s->joints, &c[i]), x, y);
    }
}

static void ball(scene *s, int i, const double *p, double radius)
{
    dMass m;
    dBodyID b = s->body[i] = dBodyCreate(s->world);
    dMassSetSphereTotal(&m, 1, radius);
    dBodySetMass(b, &m);
    dBodySetPosition(b, p[0], p[1], p[2]);
    dGeomSetBody(dCreateSphere(s->space, radius), b);
}

static void box(scene *s, int i, const double *p, double angle)
{
    dMass m;
    dMatrix3 R;
    dBodyID b = s->body[i] = dBodyCreate(s->world);
    dMassSetBoxTotal(&m, 1, BOX[0], BOX[1], BOX[2]);
    dBodySetMass(b, &m);
    dBodySetPosition(b, p[0], p[1], p[2]);
    dRFromAxisAndAngle(R, 0, 0, 1, angle);
    dBodySetRotation(b, R);
    dGeomSetBody(dCreateBox(s->space, BOX[0], BOX[1], BOX[2]), b);
}

static void wall(scene *s, double a, double b, double c, double d)
{
    static int smooth;
    dGeomSetData(dCreatePlane(s->space, a, b, c, d), c > 0 ? NULL : &smooth);
}

static void fill(scene *s, const char *problem)
{
    bool boxes = !strcmp(problem, "boxes");
    double p[3] = { 0, 0, 0 }, width = boxes ? box_width(s->n) : grains_width(s->n);
    wall(s, 0, 0, 1, 0);
    if (boxes || !strcmp(problem, "grains")) {
        wall(s, 1, 0, 0, 0);
        wall(s, -1, 0, 0, -width);
        wall(s, 0, 1, 0, 0);
        wall(s, 0, -1, 0, -width);
    }
    for (int i = 0; boxes && i < s->n; i++) {
        box_place(s->n, i, p);
        box(s, i, p, box_angle(i));
    }
    for (int i = 0; !boxes && i < s->n; i++) {
        if (!strcmp(problem, "grains"))
            grains_place(s->n, i, p);
        else if (!strcmp(problem, "column"))
            p[2] = column_place(i);
        else {
            p[0] = i;
            p[2] = 1 + (i + 1.0) / s->n + RADIUS;
        }
        ball(s, i, p, strcmp(problem, "column") ? RADIUS : 0.005);
    }
    s->bounce = strcmp(problem, "balls") ? 0 : 0.8;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    scene s = { .n = atoi(argv[2]) };
    int steps = atoi(argv[3]);
    double height = 0;
    dInitODE();
    s.world = dWorldCreate();
    s.space = dHashSpaceCreate(0);
    s.joints = dJointGroupCreate(0);
    s.body = calloc((size_t)s.n, sizeof *s.body);
    dWorldSetGravity(s.world, 0, 0, -WEIGHT);
    fill(&s, argv[1]);
    double start = peer_seconds();
    for (int k = 0; k < steps; k++) {
        dSpaceCollide(s.space, &s, touch);
        dWorldQuickStep(s.world, STEP);
        dJointGroupEmpty(s.joints);
    }
    double took = peer_seconds() - start;
    for (int i = 0; i < s.n; i++)
        height += dBodyGetPosition(s.body[i])[2] / s.n;
    peer_report("ODE", argv[1], s.n, took / steps, s.deepest, height);
    dJointGroupDestroy(s.joints);
    dSpaceDestroy(s.space);
    dWorldDestroy(s.world);
    dCloseODE();
    free(s.body);
    return 0;
}
