#!/bin/sh
# On the nights' machine (docs/OPERATIONS.md#prefect): the pool, its deployments and automations; safe to repeat.
set -eu
python -m flows files                                  # writes pool.json (a run brings no program, variables or folder) and prefect.yaml
prefect work-pool create recon --type process --overwrite --base-job-template pool.json
prefect --no-prompt deploy --all
python -m flows apply --block slack-webhook/operators  # removes undeclared schedules, makes the automations
recon doctor
