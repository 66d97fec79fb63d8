#!/bin/bash
# A Slurm job array: each task runs its share of the points.  Submit with
#     job=$(sbatch --parsable --array=1-8 examples/cluster/slurm.sh model.cdl results)
# and let a second job put the shares together when all tasks have ended, however they ended:
#     sbatch --dependency=afterany:$job --wrap 'cdl merge -o results model.cdl'
# Any array will do (--array=0-7, --array=1-8%2), with one core a task or with more (-c 4).  A task that was stopped goes on where
# it was when it is submitted again, alone (--array=3) or with others: how the points are shared is kept in results/shares.
#SBATCH --job-name=cdl
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
set -eu
file=$1 out=$2 id=${SLURM_ARRAY_TASK_ID:?submit it with --array=1-8}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p "$out"
# the first task to come says so for all; ln makes the file whole or not at all
if ! [ -e "$out/shares" ]; then
    new=$out/shares.$id.$$
    echo "${SLURM_ARRAY_TASK_MIN:-1} ${SLURM_ARRAY_TASK_STEP:-1} ${SLURM_ARRAY_TASK_COUNT:?}" >"$new"
    ln "$new" "$out/shares" 2>/dev/null || :
    rm -f "$new"
fi
read -r first step count <"$out/shares"
k=$(((id - first) / step + 1))
if [ $k -lt 1 ] || [ $k -gt "$count" ]; then
    echo "slurm.sh: task $id is none of the $count of $out/shares; remove that file to share the points anew" >&2
    exit 2
fi
# an expectation that is not met (exit 1) does not make a task fail: the merge reports it again
code=0
"${CDL:-cdl}" run --resume -q -j "${SLURM_CPUS_PER_TASK:-1}" --shard="$k/$count" -o "$out" "$file" || code=$?
[ $code -ne 1 ] || code=0
exit $code
