/* tolerances: every tolerance, floor of rounding and stopping bound, by name, with where it comes from.

   All are relative to the size that the code multiplies them with, unless the comment says absolute.  There
   are three sources: rounding of doubles, times the number of operations or the condition; a promise of the
   manual (cdl.5), or of a check that ensures it; and choice. If a comment names neither rounding nor the
   manual, the value is a choice: it decides how soon an iteration ends or gives up, not its result. No other
   file of runtime/ and lang/ has such a literal (tests/style.sh), except rows of backend options, which the
   manual lists, tables of numbers that have a name, and the coefficients of series in trig.h. */
#ifndef CDL_TOLERANCES_H
#define CDL_TOLERANCES_H

/* ---- units ---- */
/* in seconds */
#define NANOSECOND  1e-9
#define MILLISECOND 1e-3

/* ---- rounding ---- A double has a relative step of 2^-52 = 2.2e-16.  ROUND_k is the error of about k
   roundings in a sum, relative to the size of its terms. */
/* smaller than the spacing of doubles: an iterate that moves less does not change */
#define ROUND_HALF 1e-16
#define ROUND_1    2e-16   /* at most one double between: ends of a bracket */
#define ROUND_UNIT 2.3e-16 /* 2^-52, rounded up: rounding of a number */
#define ROUND_2    4e-16   /* the difference of two rounded numbers; times that are one */
#define ROUND_4    8e-16   /* a row of three to five products */
#define ROUND_5    1e-15   /* a short formula; rates that are differences of rounded positions */
#define ROUND_10   2e-15   /* a formula of some terms, and the end of a Chebyshev series */
#define ROUND_20   4e-15   /* a balance of forces at a dof */
#define ROUND_50   1e-14   /* the result of a small solve */
/* the remainder where the sum of all reactions on a dof cancels, so that stick is exact */
#define ROUND_70  1.5e-14
#define ROUND_200 4e-14 /* a gap on a grid, beside the size of the field */
#define ROUND_500 1e-13 /* the result of a solve of condition up to some hundreds */
/* the root of rounding: below it Newton's next step, or the next term of sin(a)/a, is rounding */
#define ROUND_ROOT 1e-8
/* a row whose unknowns are kept in two doubles, summed in long double (2^-64, 20 terms) */
#define ROUND_TWOFOLD 1e-18
#define REFINED       1e-17 /* refinement in two doubles: below what even its low part keeps */
/* absolute: avoids a division by 0; below all meaningful values of a model, above the subnormals */
#define SIZE_LEAST 1e-300
/* absolute: beside a kink at 0; the root of SIZE_LEAST would still be seen */
#define BESIDE_ZERO 1e-200
/* absolute: derivative by a complex step, exact as its square (1e-80) is lost in any sum */
#define COMPLEX_STEP 1e-40

/* ---- formulas that are equal ---- */
/* factors computed by two formulas from the same numbers: ROUND_5 times a condition of 1000 */
#define FACTOR_SAME 1e-12
#define PLACE_SAME  1e-12 /* of the domain: equal places given in the model */
/* of an exponent: 1/3 is not a double, and units are multiplied a few times at most */
#define EXPONENT_WHOLE 1e-9
/* absolute: constants beyond are not moved in a formula, lest a product overflow */
#define FOLDED_LEAST 1e-200

/* ---- steps of difference quotients, of the size of the variable ----
   Rounding against the next term: the root of rounding forwards, its cube root centrally, its fifth root over
   four points, its fourth root for a second derivative; each up to a factor of ten. */
#define DIFFERENCE_FORWARD 1e-7
#define DIFFERENCE_CENTRAL 1e-5
#define DIFFERENCE_FOUR    1e-4
#define DIFFERENCE_SECOND  1e-3
/* forwards over rows whose own rounding is that of sums over selections */
#define DIFFERENCE_JOINT 1e-6
/* of a step: rates of driven ends; loads may have corners, so it is kept coarse */
#define DIFFERENCE_DRIVE   1e-3
#define DIFFERENCE_SLIP    1e-5  /* of the slip that begins: at least */
#define DIFFERENCE_SLIP_TO 1e-2  /* of the same: at most, where rounding of rates asks for more */
#define DIFFERENCE_RATE    1e-12 /* of the rates: what stands ROUND_HALF by 1e4 above their rounding */
#define SIZE_UNKNOWN       1e-3  /* absolute: a dof that was 0 so far, before anything moved */

/* ---- pivots and ranks, beside the diagonal or the largest entry of the row ---- */
#define PIVOT_LU 1e-15 /* rounding of the elimination itself */
/* of a positive definite matrix: rounding of some 50 products */
#define PIVOT_LEAST 1e-14
/* of matrices that are themselves results: Delassus bands, series, modes, updates of rank 1 */
#define PIVOT_LOOSE 1e-13
/* of the largest pivot: PIVOT_LU by a thousand, as stretch is much stiffer than bending */
#define PIVOT_ROD 1e-18
/* KLU's reciprocal growth below which old pivots are discarded: half the digits */
#define PIVOT_GROWTH 1e-6
#define RCOND_LEAST  1e-15 /* a matrix of a field on a line that is singular */
/* the matrix of vim's unknowns, whose rows are scaled, but not its columns */
#define RCOND_SERIES    1e-17
#define RANK_CHOLESKY   1e-11 /* squares of lengths: directions that differ by 3e-6 still count */
#define RANK_QR         1e-12 /* the same without squares: rounding by a condition of 1e4 */
#define RANK_DIRECTIONS 1e-9  /* of unit vectors: supports that are one direction */
/* of the squared length of a gradient: 1e-10, of its length, is left of it */
#define DEPENDENT_SQUARE 1e-20
/* of a squared length: a gap's row is spanned by slip rows to ROUND_ROOT */
#define SPANNED_SQUARE 1e-16
#define SPANNED_SHAPES \
    1e-4 /* the same of touching points: their normal goes on turning while a step is sought */
#define FAR_FROM_SINGULAR 1e-6 /* of a 2 by 2 determinant: Cramer's rule keeps ten digits */

/* ---- the clock ---- */
/* of a step: steps that differ by less are equal, so that data for this size are kept */
#define STEP_SAME     1e-9
#define SAMPLE_EARLY  1e-9  /* of `every`: a sample that is due but for the rounding of times */
#define STEPS_ROUNDED 1e-12 /* of their number: T/h is rounded */
#define STEP_SHORTEST 1e-4  /* of h: halving ends; named in the message that gives up (cdl.5) */
#define STEP_FIRST    1e-4  /* of the run: the first step where steps are chosen */
#define STEP_DEFAULT  1e-3  /* absolute: cdl.5 promises h = 1e-3 */
#define CLOCK_END     1e-12 /* of the run: a shorter remainder is not a step */
/* of the run: the scale of times near t = 0, and of displacements before anything has moved */
#define RUN_SCALE 1e-3
/* of the tolerance: smaller estimates do not lengthen a step further */
#define ERROR_LEAST 1e-6
#define DELAY_LEAST 1e-12 /* of the run: a past time that is nearer counts as now */
/* of the run: before and after a time where a formula changes its form */
#define JUST_BESIDE 1e-14

/* ---- contact problems ---- */
#define SOLVED_FEW  1e-12 /* cdl.5 promises it where up to 100 contacts act at a time */
#define SOLVED_MANY 1e-8  /* and this from 400 on */
/* a closed form, whose rounding is above the tightest tolerance; below: known to rounding */
#define SOLVED_TIGHT 1e-11
/* of the impulses on bodies: error of momentum after factorising rates and reactions together, rounding */
#define BALANCE_ROUNDED 1e-10
#define ON_BOUND        1e-12 /* of a bound: friction that is at its bound */
#define SLIDES_NOT      1e-10 /* of the free velocities: a contact at rest */
/* of the mean: as far as one step aims along the central path (Mehrotra's cube) */
#define CENTRE_LEAST   1e-8
#define CENTRAL_STOPS  1e-12 /* a step along the central path that is none */
#define INTERIOR_STOPS 1e-10 /* the same of the interior point method */
#define BEND_STOPS     1e-5  /* of a predictor step, where the path bends too much */
/* of the interior point, over the diagonal of W: above what rounding leaves of singular W, chosen on recorded
 * piles (HACKING); with the residual from which Newton's steps give the last digits */
#define DAMPING     1e-6
#define POLISH_FROM 3e-6
/* of the right side, by factors without row exchanges: Newton's steps are no more accurate than that
   anyway */
#define BLOCKS_LEFT 1e-3
/* from there the proximal steps take over, chosen on recorded piles */
#define CENTRAL_GOAL 1e-5
/* weights of the proximal term, chosen on recorded piles: with many steps, */
#define PROXIMAL_FIRM  1e-2
#define PROXIMAL_USUAL 1e-3 /* with few, */
/* What sweeps leave of problems with a solution.  Slip in known directions may have none, as at samples of a
   pile at a loose tolerance: there they leave ten times as much. */
#define SWEEPS_NEAR     1e-3
#define PROXIMAL_POLISH 1e-6 /* to polish, */
#define PROXIMAL_SETTLE 1e-5 /* next to a solution, */
/* and where they fall no more: above ROUND_500 by the condition of a pile */
#define PROXIMAL_LEAST 1e-9
#define RATES_START    1e-4 /* residual of a start that is close enough to be polished directly */
#define PROXIMAL_INNER 1e-3 /* accuracy of an inner solve at first */
/* how far from the start the path through the pieces begins: above ROUND_ROOT */
#define PIECES_OFF 1e-7
/* from there few pieces lead to the solution of a large problem, chosen on recorded piles */
#define PIECES_CLOSE 1e-4
/* of the right side, by factors without an exchange of rows: far below that */
#define PIECES_LEFT  1e-10
#define ISLAND_LOOSE 1e-4 /* tolerances from which the loose plan of solvers serves */
#define ISLAND_TIGHT 1e-6 /* tolerances below which islands are always searched for */
/* Lemke's pivots, and the rounding of ratios, for data scaled to 1: 500 units of 2^-52, and pivots 100
   times as much; 100 units of 2^-63, 1000 times; some 10^5 of 2^-112, as the last resort */
#define LEMKE_PIVOT_DOUBLE 1e-11
#define LEMKE_ROUND_DOUBLE 1e-13
#define LEMKE_PIVOT_LONG   1e-14L
#define LEMKE_ROUND_LONG   1e-17L
#define LEMKE_PIVOT_QUAD   1e-24L
#define LEMKE_ROUND_QUAD   1e-28L

/* ---- motion: bounds below which values count as 0 ---- */
#define GAP_IS_ZERO 5e-13 /* of positions: rounding, some thousand times */
/* of positions: closed contacts that could not be corrected because too many are coupled */
#define GAP_DEEP       1e-9
#define RATE_IS_ZERO   1e-12 /* of rates */
#define IMPULSE_ZERO   1e-12 /* of the largest impulse of an instant */
#define FRICTION_HOLDS 1e-6  /* of its bound: more than the error of contact problems */
/* of the free slip acceleration: friction that holds back all of it */
#define HELD_BACK 1e-9
/* of friction by the normal row: Painleve's bound, reached by rounding alone */
#define JAMS_APART 1e-9
/* of rates: a step so small that the impulse of a jam is its limit, and above ROUND_ROOT */
#define JAM_STEP      1e-5
#define POWER_ROUNDED 1e-9 /* of the sum of sizes: friction that seems to drive */
/* of the largest dof: the least size of a dof, because the others limit its accuracy */
#define DOF_LEAST    1e-6
#define STEP_STALLED 1e-12 /* of rates: Newton in a step that no longer gains */
/* of rates: accepted where it does not converge (`when`, |v|) */
#define STEP_ENOUGH  1e-9
#define STEP_SHARED  1e2   /* times the tolerance: allowed change of rates if many contacts share a load */
#define PUT_BACK_END 1e-10 /* of overlaps: they are corrected again at the next step */
/* times what each gap asks for by itself: piles need up to 3e4, contacts that depend on each other 4e9 */
#define PUT_BACK_FAR 1e6
/* of lengths: a hundredth of the tolerance is put back, no less than this */
#define OVERLAP_LEAST 1e-12
#define OVERLAP_MOST  1e-4 /* and no more */
/* of g h^2: gaps that count as closed in a step; measured on piles (HACKING) */
#define MICRO_GAP 1e-4
#define FAR_AHEAD 2e-4 /* of lengths, beyond the distance of a step: larger gaps are left out */
/* of the margin of the neighbour search: more than the rounding of its distances */
#define NEAR_SKIN 1e-3
/* of squares: a negligible descent, ROUND_ROOT times a condition of 100 */
#define EXCLUDE_FALL   1e-10
#define EXCLUDE_TERMS  1e-6 /* of the terms of a rate: smaller contradictions may be what a solver left */
#define EXCLUDE_PROVED 1e-9 /* of squares: a certificate, 3e-5 in a unit row */

/* ---- penalty ---- */
#define OFF_CRITICAL  1e-9  /* of the damping: the overdamped formula 0/0 at the critical one */
#define SLIP_SPEED    1e-4  /* of the largest slip: cdl.5 */
#define NEWTON_STAGE  1e-10 /* of accelerations: far below the error of a step */
#define STAGE_SMALL   1e-4  /* of speed over the run: a negligible acceleration */
#define ERROR_SIZE    1e-3  /* of the speeds: errors are relative to at least this */
#define SPEED_CARRIED 1e-9  /* of what contacts give: at rest, set in motion by a belt */
#define SPEED_BEGUN \
    1e-3 /* of what forces could make in the run: errors are relative to at least this part of it */

/* ---- events ---- */
#define EV_LOCAL       1e-3  /* of the tolerance: cdl.5, a step is taken to a thousandth of it */
#define EV_LOCAL_LEAST 1e-17 /* terms of a series below are lost in its sum */
#define EV_GAP_ZERO    1e-12 /* of positions */
/* of that: gaps in flight, where rounding over a step would hide a height */
#define EV_GAP_FINER    1e-3
#define EV_RATE_ZERO    1e-13 /* of rates */
#define EV_FORCE_ZERO   1e-11 /* of forces: results of a solve, by a condition of 1e5 */
#define EV_ACC_ZERO     1e-12 /* of accelerations */
#define EV_SOLVED       1e-13 /* residual of modes */
#define EV_SOLVED_LEAST 1e-10 /* and the largest that is accepted */
/* of accelerations and bounds: modes that are both possible; the same residual */
#define EV_MODE       1e-10
#define EV_SLIDES     1e-11 /* of accelerations: slip that has begun, ten times EV_ACC_ZERO */
#define EV_SIGN       1e-12 /* of a series: which side of a switch it goes to */
#define EV_SITE_MET   1e-9  /* of a switch that was reached: it is not reached again in the same place */
#define EV_CORRECTION 1e-10 /* of the way of a step: a correction in the low part only */
#define EV_RESTITUTED 1e-12 /* of the rate before: size of corrections in the low parts */
/* of time: slip in the plane so near to its end that it has no series */
#define EV_STOPS       1e-9
#define EV_ACCUMULATED 1e-9 /* of rates: impacts that follow so fast that they count as one */
/* of the fastest approach: so far it falls at least over twenty impacts at one time, or they go on for ever
 */
#define EV_COLLAPSES 0.9
/* of the reach of a gap over the step, beside a million EV_GAP_ZERO: it fell through */
#define EV_REACH       1e-12
#define EV_CRAWL       1e-6 /* of the run: steps so short, 3000 in a row, make no progress */
#define EV_CREEP       1e-9 /* of the run: a piece goes on this long if the next one has no power series */
#define EV_STEP_LEAST  1e-9 /* of the run: limits of a step that cannot matter end there */
#define EV_DISK        1e-3 /* of its first term: the last of a series inside its disk */
#define EV_PART_LEAST  1e-3 /* of the natural step: dense output has no finer parts */
#define EV_SHARE_FIRST 1e-3 /* weight of friction against normal rows as shares are found */
#define EV_SHARE_LEAST 1e-3 /* and the factor by which a weight falls at most at once */
/* of the others: a contact that opens loses its bound, and with it its share, down to rounding */
#define EV_ROOM_LEAST  1e-13
#define EV_SHARE_END   1e-13 /* of the largest: shares are even */
#define EV_SHARE_POWER 1e-3  /* of the power with which weights change: no smaller one helps */
#define EV_FORCE_LEAST \
    1e-3 /* of EV_FORCE_ZERO, which it is multiplied by: changes of rates that are rounding */
/* of their terms: equations whose best solution has a larger residual have no solution */
#define EV_UNSOLVED    1e-6
#define WAY_ROUNDED    1e-9 /* of second rates of gaps: rounding, where accelerations that fit are counted */
#define GAIN_ROUNDED   1e-9 /* of the work of impulses: energy that impact laws give by more than rounding */
#define EV_START_FIRST 1e-4 /* of the unit of a start: first step of slip that begins */
#define EV_START_END   1e-9 /* of accelerations: stages of that step that are solved */
#define EV_START_NOISE 1e-3 /* of the same: the largest error attributed to rounding of differences */
#define EV_START_FIT   1e-7 /* of the same: allowed error of its polynomials between the stages */

/* ---- shapes ---- */
/* of the size of a polyhedron: corners that are one, planes that a corner lies on; of unit normals: planes
   that are one; where two bodies touch, features that are as good */
#define CORNER_SAME   1e-9
#define POINT_SAME    1e-10 /* of the size of a hull: points of it that lie in a face */
#define POINT_AROUND  1e3   /* of POINT_SAME: points nearer to an edge are in no direction from it */
#define HALF_TURN     1e-3  /* of an angle: by how much more points may seem to lie around an edge */
#define EDGE_STRAIGHT 1e-18 /* squared sine of the angle between two edges of a face that are one */
#define EDGES_ALONG   1e-8  /* sine of the angle between edges whose cross product is not a normal */
#define LINES_ALONG   1e-14 /* squared sine: lines without a pair of closest points; rounding of its terms */
#define CLIP_EDGE     5e-13 /* of the size: a point on the edge of a face stays on it */
#define POINT_STAYS   1e-6  /* of the size: a point of faces that close to one from before is the same */
#define SHAPE_DEEP    1e-7  /* of the size of two bodies: overlaps that are left as they are */
#define SHAPE_AGAIN   1e-4  /* of the same: overlaps for which a step is taken in halves */
#define SHAPE_CLOSE   1e-3  /* of the same: points that are kept apart where others are moved apart */
#define CONVEX_ROUND  1e-13 /* of the size: rounding of a distance between features */
/* angle between the axis of a cylinder and a normal: below it the cylinder stands, how round its rims are is
   cut off there */
#define CYLINDER_STANDS 1e-13
/* of two bodies of which one is curved */
#define APART_LEAST    1e-9  /* of their size: a distance whose direction is mostly rounding */
#define APART_ENOUGH   1e-6  /* of a distance: what a first normal may miss */
#define CURVED_LEAST   1e-6  /* of their size: a curvature below which a normal stays as it is */
#define CURVED_NOT     1e-12 /* of their size: a curvature that is rounding, a gap that may be missed */
#define EDGES_PARALLEL 1e-3  /* sine of an angle: edges that cross */
#define LINES_BESIDE   0.98  /* cosine: lines with points at both ends of what they have beside each other */
#define RIM_NEAR       0.2   /* sine of the angle between a normal and an axis: it stays as it is */
#define NORMAL_CLOSE   1e-5  /* an angle: Newton's next step is below its square, the gap of both the same */
#define NORMAL_SAME    1e-13 /* an angle of which nothing is left but rounding */

/* ---- the gate: allowed errors of stored results ---- */
#define GATE_LOOSE 1e-6 /* relative, or the run's tolerance where it is looser: cdl.5 */
/* absolute, in the units of the model: gaps of 0 whose terms are all 0; no more than GATE_LOOSE of a gap that
   ever was another */
#define GATE_GAP_LEAST 1e-12
#define GATE_RESOLVED  1e-2 /* of the distance moved in a whole step: gaps that may still push */
#define GATE_TURNED    5e-2 /* of the change of a row up to an impact: second-order terms */
#define START_MOVED \
    1e-3 /* of a dof: how far the start may be moved onto constraints (cdl.5: 1e-4 of sizes) */
#define GATE_GAP_SAVED 1e-14 /* absolute: of a saved gap, printed with 17 digits */
#define GATE_DEPENDENT 1e-14 /* of squares of lengths: corners of a simplex that add nothing */
/* saved or stored values recomputed from the state: energy, gap, slip */
#define GATE_SAME     1e-9
#define GATE_BOOKS    1e-8  /* of energies: sums over the run of what is kept with GATE_SAME */
#define FORCE_ROUNDED 1e-12 /* of the forces on the bodies: a reaction that is all rounding */
/* of the run: where no step was kept, the time over which constraints exclude each other */
#define GATE_WINDOW   1e-6
#define BALANCE_LOOSE 1e-3 /* of the forces: equations of motion, balance of rods (cdl.5) */
/* of the run: within this time a slip that ends has a random direction */
#define BALANCE_SHORT 1e-6
/* of the fastest slip: as small as its rounding, which decides the way it goes */
#define BALANCE_SLOW 1e-8

/* ---- inclusions ---- */
#define ARGUMENT_ZERO 1e-9 /* of its size: an argument of a set-valued map that is at its jump */
/* of the dofs: starts and states outside a set, beyond the projection's SET_REACHED */
#define CONE_OUTSIDE 1e-9
/* of lengths: a wall of a set that may push, above its GATE_LOOSE by the angle */
#define CONSTRAINT_MET 1e-7
#define DOF_SMALL      1e-3 /* of the largest dof: sizes the check measures by */
/* of a selection, which is between -1 and 1: the active set is correct */
#define BOX_EXACT     1e-12
#define BOX_NEAR      1e-10 /* the change at which it is tried */
#define BOX_ENOUGH    1e-9  /* and the error accepted if it never is */
#define JOINT_ENOUGH  1e-12 /* change of the joint solve that no longer falls */
#define SWEEPS_ENOUGH 1e-11 /* change of sweeps over rows that no longer falls */
#define CUT_LEAST     1e-12 /* of a step: its parts between changes of form */
#define CHOSEN_LEAST  1e-13 /* of the run: the shortest step that is chosen */
#define SET_REACHED   1e-12 /* of the dofs: the projection onto a set */
#define BRANCH_INSIDE 1e-12 /* of the dofs: a state on its branch */
/* of the dofs: accuracy of the cubic between samples */
#define LIMIT_CUBIC 1e-12
#define JUMP_LEAST  1e-9 /* of the dofs: shorter ones are not jumps */
/* of the load: it jumps; above what a slope of 1e4 makes of it over 2 JUST_BESIDE */
#define LOAD_BREAKS 2e-10
/* of the load: a start that lies on an unstable branch, above the rounding of the graph */
#define UNSTABLE_START 1.1e-11
#define CHECK_BESIDE   1e-12 /* of the run: sides of a jump of the load, as the check sees it */
#define VIEW_LEAST     1e-3  /* of the dofs: width of the graph that is shown */

/* ---- fields ---- */
#define FIELD_RESIDUAL 1e-8 /* of the terms of an equation: cdl.5 */
#define FIELD_NODE     1e-4 /* of the largest |u|: the least size of u at a node */
#define FIELD_LEAST    1e-3 /* of what the other fields make of a field: it counts as no smaller */
/* of u: how far an obstacle may be passed at nodes, by given values too */
#define FIELD_PASSED        1e-9
#define FIELD_PASSED_SERIES 1e-6  /* and between the samples of a series */
#define FORCE_NOISE         1e-12 /* of the terms: a force on a line that is rounding */
#define FORCE_NOISE_SERIES  1e-9  /* the same of a series, or in the plane */
/* of a cell: places as near to a node are at it; a place just inside */
#define CELL_BESIDE       1e-9
#define PLANE_COARSE      1e-5 /* of u: coarse grids only give the next one its start */
#define PLANE_COARSE_SETS 3e-7 /* the same of contact sets, which a start must nearly have */
/* of u: change at which the finest grid ends, or the tolerance if that is looser */
#define PLANE_FINE     1e-10
#define PLANE_TOGETHER 1e-11 /* of u: the same of several fields in turn */
#define KRYLOV_LEAST   1e-10 /* of a residual: the largest reduction in one solve in double */
/* active_set's default tolerance (cdl.5), where vim and penalty begin from it */
#define FIELD_DEFAULT   1e-10
#define FIELD_GIVES_WAY 1e-6  /* of u: default of penalty (cdl.5) */
#define FIELD_PENALTY   1e-8  /* of u: Newton on penalised contact, at most */
#define GAP_VISIBLE     1e-8  /* of u: a gap of power m is measured where it has grown to this */
#define END_TOUCHES     1e-11 /* of u: contact that reaches the end of the domain */
#define LINE_FREE_STEP  1e-2  /* Newton's steps below are taken although the defect does not fall */
#define LINE_FREE_MOVE  1e-9  /* of u: and where they move so little */
#define LINE_STALLED    1e-6  /* of u: Newton that no longer gains; its residual is checked later */
#define DAMPED_LEAST    1e-6  /* of Newton's step: damping gives up */
#define SERIES_ENOUGH   1e-12 /* of u: vim's corrections, and the conditions between its pieces */
#define SERIES_STALLED  1e-11 /* of its unknowns: no longer gaining */
#define SERIES_GROWS    1e-6  /* of u: corrections that grow are reported */
#define POINT_FORCE     1e-9  /* of the terms: a residual at an end that counts as a force of the stop */
#define POINT_FORCE_CUT 1e-8  /* the same where a contact zone ends */

/* ---- rods ---- */
/* of the length: increments at which an equilibrium is found; the gate uses it */
#define ROD_END                1e-9
#define ROD_END_STIFF          1e-11 /* with multipliers: gaps are as stiff as 100 rods */
#define ROD_END_DRAG           1e-6  /* while a drag holds the rod: the state is only passed through */
#define ROD_SLOW               3e-8  /* after five steps that gain little: without contact, */
#define ROD_SLOW_NEUTRAL       1e-6  /* with a motion without energy, */
#define ROD_SLOW_STIFF         1e-9  /* with contact, */
#define ROD_SLOW_STIFF_NEUTRAL 1e-8  /* with both */
/* of the length: last increments from which a free motion is supposed */
#define ROD_NEUTRAL       1e-3
#define ROD_NEUTRAL_ROUGH 1e-6 /* the same with friction */
#define ROD_OVERLAP       1e-8 /* of the radius: cdl.5, default of auglag */
/* of the radius: overlaps at the end of a path that no sag between pairs explains, so it has failed */
#define ROD_OVERLAP_MOST 5e-2
/* of half a turn around the radius: beyond it a rod may touch itself */
#define PIECES_PART 1.1
/* of the radius: overlaps that are reported at the start, pairs that are new */
#define ROD_TOUCHES      1e-3
#define FINE_DEPTH       1e-1  /* of the radius: deeper overlaps have pairs closer than nodes against them */
#define OVERLAP_DEEP     1e-2  /* of the radius: states that overlap more are left for others */
#define ROD_PLACE        1e-9  /* of the length: places on it, and its ends */
#define ROD_ENERGY       1e-8  /* of the energies kept */
#define ROD_ENERGY_LEAST 1e-12 /* of the stiffness by the length: strains that rounding makes */
#define ANGLE_ZERO       1e-12 /* of a sine: its axis is rounding */
#define COS_OPPOSITE     1e-12 /* of 1 + cos: half a turn */
#define COS_SAME         1e-10 /* of 1 - cos: no turn, 1.4e-5 */
#define JOINT_MEETS      1e-9  /* of the length: joined sections have one place */
#define VELOCITIES_MEET  1e-6  /* of the fastest: joined sections start together */
#define TANGENT_UNIT     1e-3  /* of 1: a shape given by its arc length */
#define FRAME_TURNS      1e-6  /* of 1: a frame that is a rotation, as published with six digits */
#define CLOSED_SHAPE     1e-9  /* of all chords: first and last point are one */
#define CLOSED_ROD       1e-6  /* of the chords: pieces that meet, in the writhe */
#define CLOSEST_ENOUGH   1e-12 /* of the parameter: closest points that no longer move */
#define ARMIJO           1e-4  /* of the slope: the usual share that a search must win */
#define LINE_FLAT        1e-2  /* of the radius: distances that differ by less along two hats are a line */
#define DESCENT_COARSE   1e-5  /* of the length: inner solves while multipliers still change, */
#define DESCENT_PART     1e-2  /* and beside their change */
#define DESCENT_END      1e-6  /* of multipliers: settled */
#define DESCENT_SLOW     0.5   /* of the gaps of the round before: springs are too soft for them */
#define DESCENT_SUNK     0.4   /* of the radius: rods sink into each other, and springs become firmer; */
#define DESCENT_LOOSE    2e-2  /* as little of it needs no such springs */
#define DESCENT_SAG      1e-4  /* of the radius: gaps that let overlaps between pairs be seen */
#define DESCENT_REACH    2e-2  /* of the length: a way that is no snap, where two radii are less */
#define SHIFT_STRONG     1e3   /* of the least shift: increments say little about the distance to go */
#define DIRECTION_NEW    1e-6  /* of a direction: what is left of it beside the known ones */
#define ROLL_MOMENT      1e-6  /* of EI/L: a roll that is held takes a moment */
#define CRITICAL_END     1e-10 /* of the load: rounding of the tangent decides about the rest */
#define CRITICAL_SAME    1e-5  /* of the way between its ends: they are on one branch */
#define CRITICAL_REACH   1e-7  /* of the length: ends that are the same state, to what Newton leaves */
#define CRITICAL_ENERGY  1e-9  /* of the energy: the same but for a motion that costs nothing */
#define CRITICAL_NEAR    1e-2  /* of the eigenvalues at the ends: left where one passes zero */
#define CRITICAL_ZERO    1e-6  /* of them: so near to zero that Newton leaves the branch */
#define CRITICAL_BOTH    1e-6  /* of a load: what rounding parts equal eigenvalues by */
#define CRITICAL_PAIR    1e-5  /* the same where moments have no energy */
#define CRITICAL_LOOSE   1e-3  /* the same where some motion costs nothing */
#define CRITICAL_FLAT    1e2   /* of the small shift: less than the stiffness of a rod that stands */
#define SHIFT_ROUNDED    2e-14 /* of EA/d^2, d between nodes: a hundred roundings of the stiffest motions */
#define REACH_SLACK      1e-6  /* of the length: a step that went no further than it should */
#define TURN_SHORTEST    1e-6  /* of h: steps are not cut further for the sake of turning supports */
#define SUPPORT_SAME     1e-9  /* of the length: supports that are where the rod is */
/* of the length: speed at which a falling rod is first tried for rest */
#define FLOW_REST     2e-2
#define DISTURBANCE   1e-3 /* of the length: sideways, to leave an unstable state */
#define PAIR_REAL     1e-3 /* of an eigenvalue: rounding makes a pair of two that are equal */
#define PAIR_ROUNDED  1e-6 /* of the largest eigenvalue found: the same for a pair near zero */
#define SHIFT_SMALL   1e-2 /* of EI/L^2: a bedding that holds free motions and does not count */
#define SHIFT_LOOK    1e-4 /* of that, where none is free and stability is looked at */
#define ARC_SHORTEST  1e-7 /* steps along a branch, in its metric: given up */
#define ARC_CORNER    1e-4 /* steps below which contact may have made a corner of the branch */
#define ARC_NEEDED    1e-5 /* increments above which count as iterations that were needed */
#define ARC_LIMIT_END 1e-7 /* of a step: a limit point is found */
#define ARC_FLAT      1e-9 /* of the slope of the load: the same */
#define ARC_INSIDE    1e-3 /* of a bracket: no point of it is nearer to its ends */
#define ARC_WAY_LEAST 1e-6 /* of the length: the first step */
#define ARC_UNIT      1e-5 /* of the load: step of its difference quotient */
#define ARC_PAST      1e-6 /* steps past a corner: at most */
#define ARC_PROBE     1e-3 /* and the first on either side of it, down to ARC_PAST */
#define ARC_AGAIN     1e-2 /* the first step after it */
#define ARC_OVER      1e-3 /* of the load: the first that is tried beyond a fold of less than ARC_CORNER */

/* ---- base ---- */
#define ROOT_ZERO_MOST 1e-6 /* of its first term: what a caller may call 0 of a polynomial */
/* of the size: initial values that miss a constraint, published with five digits (cdl.5) */
#define START_ROUNDED 1e-4
#define START_TINY    1e-12 /* of the size: rounding of their formulas; no note is given */

/* ---- rotations ---- */
/* of 1: a matrix that misses orthogonality by this is mended to its square, which is rounding, in one turn */
#define ROTATION_MENDED 1e-9
#define ROTATION_SLACK  1e-6  /* of 1: matrices that miss by less are mended: published data are rounded */
#define ROTATION_SMALL  1e-9  /* of 1: sine of half an angle below which atan is its argument, to its cube */
#define ROTATION_SERIES 1e-5  /* half an angle below which two terms of sin(a)/a are exact */
#define TURN_MIDDLE     1e-12 /* of a turn: a base counts as half way; rounding of the turn by a thousand */
/* of the trace: an inertia that breaks the triangle inequality, or symmetry, by more than published digits */
#define INERTIA_ROUNDED 1e-9

#define PAIR_REACH 1e-9 /* of a distance: pairs are listed to beyond rounding of it */

/* ---- the language ---- */
/* absolute: of an integral; panels end at QUADRATURE_ROUNDED where that is more */
#define QUADRATURE_END     1e-14
#define QUADRATURE_ROUNDED 2e-13 /* of a panel: rounding of its 15 values */
/* of 1: friction that acts on its own normal reaction, beyond rounding */
#define FRICTION_OWN 1e-9
/* of the size of data: beside a point where they may not be analytic */
#define DATA_PROBE 1e-5
#define DATA_ZERO  1e-6 /* of what it was: a denominator that vanishes there */
/* of 1: a gap falls by R or 2R where R is a radius, differences exact to 1e-9 */
#define RADIUS_RATE 1e-6
#define DRAWN_LEAST 1e-9 /* absolute: of a page, points that are drawn as one */

#endif
