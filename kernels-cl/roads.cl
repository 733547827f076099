/* The kernels of examples/09_road_network. A network is two lists: the roads from crossing v lead to ends[i] for i from
 * first[v] up to first[v + 1]. */

#define NOT_REACHED UINT_MAX

/*
 * spread: one level of a breadth-first search. A crossing whose distance is the level gives its neighbours the next one.
 *
 *   level      in      one uint
 *   distances  in out  by crossing: its distance in roads, or NOT_REACHED
 *   goes_on    out     one uint, 0 before the launch; 1 after it if a crossing was reached
 */
kernel void spread(
    global const uint *first,
    global const uint *ends,
    global const uint *level,
    volatile global uint *distances,
    volatile global uint *goes_on)
{
    const size_t v = get_global_id(0);
    const uint next = level[0] + 1;
    if (distances[v] != next - 1)
        return;
    for (uint i = first[v]; i < first[v + 1]; i++)
        if (atomic_cmpxchg(&distances[ends[i]], NOT_REACHED, next) == NOT_REACHED)
            atomic_or(goes_on, 1);
}

/* deeper: the next level. */
kernel void deeper(global uint *level) { level[0]++; }

/*
 * visit: one step of page rank. Somebody at a crossing takes one of its roads, or, in one of seven cases, begins anew
 * at any crossing.
 *
 *   ranks    in   by crossing: how likely somebody is there
 *   next     out  the same after one step
 */
kernel void visit(
    global const uint *first,
    global const uint *ends,
    global const float *ranks,
    global float *next)
{
    const size_t v = get_global_id(0);
    float sum = 0.0f;
    for (uint i = first[v]; i < first[v + 1]; i++) {
        const uint from = ends[i];
        sum += ranks[from] / (float)(first[from + 1] - first[from]);
    }
    next[v] = 0.15f / (float)get_global_size(0) + 0.85f * sum;
}

/*
 * settle: takes the new ranks over.
 *
 *   goes_on  in out  one uint, 0 before the launch; 1 after it if a rank changed by more than 1e-8
 */
kernel void settle(global const float *next, global float *ranks, volatile global uint *goes_on) {
    const size_t v = get_global_id(0);
    if (fabs(next[v] - ranks[v]) > 1e-8f)
        atomic_or(goes_on, 1);
    ranks[v] = next[v];
}
