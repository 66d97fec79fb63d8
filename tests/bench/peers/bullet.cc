/* Bullet: balls poured into a box, a column, balls that bounce by themselves.
   bullet grains|column|balls|boxes N STEPS */
#include <btBulletDynamicsCommon.h>
#include "peer.h"

static btRigidBody *add(btDynamicsWorld *world, btCollisionShape *shape, double mass, const btVector3 &at,
                        double mu, double bounce)
{
    btVector3 inertia(0, 0, 0);
    if (mass > 0)
        shape->calculateLocalInertia(mass, inertia);
    btTransform place;
    place.setIdentity();
    place.setOrigin(at);
    btRigidBody::btRigidBodyConstructionInfo info(mass, new btDefaultMotionState(place), shape, inertia);
    btRigidBody *body = new btRigidBody(info);
    /* friction and restitution of a pair are products */
    body->setFriction(mu);
    body->setRestitution(bounce);
    body->setActivationState(DISABLE_DEACTIVATION);
    world->addRigidBody(body);
    return body;
}

static void wall(btDynamicsWorld *world, double x, double y, double z, double d, double mu)
{
    add(world, new btStaticPlaneShape(btVector3(x, y, z), d), 0, btVector3(0, 0, 0), mu, 1);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int n = atoi(argv[2]), steps = atoi(argv[3]);
    bool boxes = !strcmp(argv[1], "boxes"), grains = boxes || !strcmp(argv[1], "grains"),
         column = !strcmp(argv[1], "column");
    double radius = column ? 0.005 : RADIUS, deepest = 0, height = 0,
           width = boxes ? box_width(n) : grains_width(n);
    btDefaultCollisionConfiguration setup;
    btCollisionDispatcher dispatcher(&setup);
    btDbvtBroadphase pairs;
    btSequentialImpulseConstraintSolver solver;
    btDiscreteDynamicsWorld world(&dispatcher, &pairs, &solver, &setup);
    world.setGravity(btVector3(0, 0, -WEIGHT));
    double mu = sqrt(ROUGH);
    wall(&world, 0, 0, 1, 0, mu);
    if (grains) {
        wall(&world, 1, 0, 0, 0, 0);
        wall(&world, -1, 0, 0, -width, 0);
        wall(&world, 0, 1, 0, 0, 0);
        wall(&world, 0, -1, 0, -width, 0);
    }
    btSphereShape ball(radius);
    btBoxShape block(btVector3(BOX[0] / 2, BOX[1] / 2, BOX[2] / 2));
    block.setMargin(1e-4); /* it is added inside of a box, and rounds its edges */
    btCollisionShape *shape = boxes ? (btCollisionShape *)&block : &ball;
    btRigidBody **body = new btRigidBody *[n];
    for (int i = 0; i < n; i++) {
        double p[3] = { 0, 0, 0 };
        if (boxes)
            box_place(n, i, p);
        else if (grains)
            grains_place(n, i, p);
        else if (column)
            p[2] = column_place(i);
        else {
            p[0] = i;
            p[2] = 1 + (i + 1.0) / n + radius;
        }
        body[i] = add(&world, shape, 1, btVector3(p[0], p[1], p[2]), mu, grains || column ? 0 : 0.8);
        if (boxes) {
            btTransform place = body[i]->getWorldTransform();
            place.setRotation(btQuaternion(btVector3(0, 0, 1), box_angle(i)));
            body[i]->setWorldTransform(place);
        }
    }
    double took = 0;
    for (int k = 0; k < steps; k++) {
        double start = peer_seconds();
        world.stepSimulation(STEP, 0, STEP);
        took += peer_seconds() - start;
        for (int i = 0; i < dispatcher.getNumManifolds(); i++) {
            const btPersistentManifold *m = dispatcher.getManifoldByIndexInternal(i);
            for (int c = 0; c < m->getNumContacts(); c++)
                if (-m->getContactPoint(c).getDistance() > deepest)
                    deepest = -m->getContactPoint(c).getDistance();
        }
    }
    for (int i = 0; i < n; i++)
        height += body[i]->getCenterOfMassPosition().z() / n;
    peer_report("Bullet", argv[1], n, took / steps, deepest, height);
    return 0; /* the world goes with the process */
}
