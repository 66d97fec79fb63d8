/* rotation: matrices of SO3 and small turns of them.  A rotation in motion is A = R C(x): R is its base, a
   matrix that stays as it is during a step, and x three ordinary degrees of freedom, which turn it further by
   Cayley's map

       C(x) = ((1 - |x|^2/4) I + [x] + x x^T/2) / (1 + |x|^2/4),     [x] y = cross(x, y),

   that is, about x by the angle 2 atan(|x|/2).  All of it is rational, and regular for angles below pi.  The
   angular velocity w in the frame of the body, A' = A [w], is w = (x' - cross(x, x')/2) / (1 + |x|^2/4).
   Matrices are stored row by row. */
#ifndef CDL_ROTATION_H
#define CDL_ROTATION_H
#include <stdbool.h>

void rotation_cayley(const double x[3], double C[9]);
/* the x of C(x) = R; not finite where R turns by pi */
void rotation_uncayley(const double R[9], double x[3]);
/* R <- R C(x), orthogonal to round-off however often it is called */
void rotation_turn(double R[9], const double x[3]);
/* to = A^T B: the rotation from A to B */
void rotation_between(const double A[9], const double B[9], double to[9]);

/* Angular velocity and acceleration in the frame of the body from x, x', x'', and back.  a may be NULL. */
void rotation_rates(const double x[3], double v[3], double a[3]);
void rotation_unrates(const double x[3], double v[3], double a[3]);

/* The rotation vector: axis times angle, 0 .. pi.  It is how rotations are kept in columns of three numbers.
 */
void rotation_vector(const double R[9], double phi[3]);
void rotation_of_vector(const double phi[3], double R[9]);

/* A = R C(x) as it is stored: x becomes its rotation vector; v and a (or NULL) become angular velocity and
   acceleration, see rotation_rates. */
void rotation_kept(const double R[9], double x[3], double v[3], double a[3]);

/* The deviation of R from a rotation: the largest entry of |R^T R - I|; 2 for reflections, infinity if R is
   not finite. */
double rotation_defect(const double R[9]);
/* the nearest rotation, for a small deviation */
void rotation_mend(double R[9]);
#endif
