/* MuJoCo: balls poured into a box, a column.  Its contacts are springs, without restitution.
   mujoco grains|column N STEPS */
#include <mujoco/mujoco.h>
#include "peer.h"

static void geom_plane(FILE *f, const char *place, const char *axis, double mu)
{
    fprintf(
        f,
        "<geom type='plane' pos='%s' zaxis='%s' size='0 0 1' friction='%g 0 0' condim='%d' priority='1'/>\n",
        place, axis, mu, mu > 0 ? 3 : 1);
}

static void scene(FILE *f, const char *problem, int n)
{
    int grains = !strcmp(problem, "grains");
    double radius = grains ? RADIUS : 0.005, width = grains_width(n);
    char far_x[32], far_y[32];
    snprintf(far_x, sizeof far_x, "%.9g 0 0", width);
    snprintf(far_y, sizeof far_y, "0 %.9g 0", width);
    fprintf(f, "<mujoco><option timestep='%g' gravity='0 0 %g'/><size njmax='%d' nconmax='%d'/><worldbody>\n",
            STEP, -WEIGHT, 64 * n + 1000, 16 * n + 100);
    geom_plane(f, "0 0 0", "0 0 1", ROUGH);
    if (grains) {
        geom_plane(f, "0 0 0", "1 0 0", 0);
        geom_plane(f, far_x, "-1 0 0", 0);
        geom_plane(f, "0 0 0", "0 1 0", 0);
        geom_plane(f, far_y, "0 -1 0", 0);
    }
    for (int i = 0; i < n; i++) {
        double p[3] = { 0, 0, 0 };
        if (grains)
            grains_place(n, i, p);
        else
            p[2] = column_place(i);
        fprintf(
            f,
            "<body pos='%.9g %.9g %.9g'><freejoint/><geom type='sphere' size='%g' mass='1' friction='%g 0 0'"
            " condim='3'/></body>\n",
            p[0], p[1], p[2], radius, grains ? ROUGH : 0);
    }
    fprintf(f, "</worldbody></mujoco>\n");
}

int main(int argc, char **argv)
{
    if (argc < 4 || !strcmp(argv[1], "balls"))
        return 2;
    int n = atoi(argv[2]), steps = atoi(argv[3]);
    char file[] = "/tmp/peer_mujoco_XXXXXX", why[1000] = "";
    int fd = mkstemp(file);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f)
        return 1;
    scene(f, argv[1], n);
    fclose(f);
    mjModel *m = mj_loadXML(file, NULL, why, sizeof why);
    remove(file);
    if (!m) {
        fprintf(stderr, "mujoco: %s\n", why);
        return 1;
    }
    mjData *d = mj_makeData(m);
    double start = peer_seconds(), deepest = 0, height = 0;
    for (int k = 0; k < steps; k++) {
        mj_step(m, d);
        for (int c = 0; c < d->ncon; c++)
            if (-d->contact[c].dist > deepest)
                deepest = -d->contact[c].dist;
    }
    double took = peer_seconds() - start;
    for (int i = 0; i < n; i++)
        height += d->qpos[7 * i + 2] / n;
    peer_report("MuJoCo", argv[1], n, took / steps, deepest, height);
    mj_deleteData(d);
    mj_deleteModel(m);
    return 0;
}
