#!/bin/bash
# A Slurm job array: each task runs its share of the points.  Submit with
#     sbatch --array=1-8 examples/cluster/slurm.sh model.cdl results
# and, when all tasks have ended, put the shares together:
#     sbatch --dependency=afterok:JOB --wrap 'cdl merge -o results model.cdl'
# A task that was stopped goes on where it was when it is submitted again.
#SBATCH --job-name=cdl
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
set -eu
file=$1 out=$2
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p "$out"
exec "${CDL:-cdl}" run --resume -q -j "${SLURM_CPUS_PER_TASK:-1}" \
    --shard="${SLURM_ARRAY_TASK_ID:?}/${SLURM_ARRAY_TASK_COUNT:?}" -o "$out" "$file"
