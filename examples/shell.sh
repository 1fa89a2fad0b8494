#!/usr/bin/env bash
# Generate a problem and compare two policies on it. Needs banditrank on the PATH (. .venv/bin/activate).
set -euo pipefail
mkdir -p output
banditrank problem generate conflict --user-types 2 --items 6 --positions 2 --seed 1 --output output/conflict.toml
banditrank problem validate output/conflict.toml
banditrank simulate output/conflict.toml --policy greedy-rank,ucb-rank --horizon 20000 --replications 8 --seed 7 \
    --plot output/conflict.png --json output/conflict.json
