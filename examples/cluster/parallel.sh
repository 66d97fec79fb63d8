#!/bin/bash
# GNU parallel: n shards of an experiment, as many at a time as there are cores (or on hosts given by --sshloginfile in PARALLEL),
# then one merge.
#     examples/cluster/parallel.sh model.cdl results 8
set -eu
file=$1 out=$2 n=${3:-8} cdl=${CDL:-cdl}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p "$out"
# an expectation that is not met (exit 1) is no reason to stop: the merge reports it again
seq "$n" | parallel --halt now,fail=1 "$cdl run --resume -q --shard={}/$n -o $(printf %q "$out") $(printf %q "$file"); [ \$? -le 1 ]"
exec "$cdl" merge -o "$out" "$file"
