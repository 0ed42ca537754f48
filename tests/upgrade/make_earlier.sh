#!/bin/sh
# make_earlier.sh CHECKOUT PYTHON: an account as the recon of that checkout left it, packed beside this script.
# CHECKOUT is the release before (README.md says which commit); PYTHON has its dependencies.
set -eu
checkout=$1
python=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
cd "$folder"
export PYTHONPATH="$checkout/src:$checkout"
main='from recon.cli import main; raise SystemExit(main())'
recon() { "$python" -c "$main" "$@"; }

recon demo --dir . --orders 40 --prepare-only >prepared.txt
port=$(sed -n 's/.*--port \([0-9]*\)$/\1/p' prepared.txt)
# Nothing knows where the folder lies, so that it can be unpacked anywhere.
sed -i "s|$folder/||" config/merchants.toml env
sed -i "s|sqlite:////[^\"]*/ledger.sqlite|sqlite:///ledger.sqlite|" config/merchants.toml
sed -i "s|sqlite:////.*|sqlite:///recon.sqlite|; s|^RECON_CONFIG_DIR=.*|RECON_CONFIG_DIR=config|" env
# One capture is answered by nobody and takes effect a day later: the night ends with money in doubt.
cat >faults.toml <<'FAULTS'
[[rules]]
operation = "capture"
kind = "late"
order_no = "SO1000033"
seconds = 86400
FAULTS
"$python" -c "$main" sandbox --state sandbox.sqlite --port "$port" --fault-plan faults.toml >sandbox.log 2>&1 &
sandbox=$!
trap 'kill $sandbox' EXIT
until grep -q "$port" sandbox.log; do sleep 1; done
set -a
. ./env
set +a
code=0
recon nightly || code=$?
recon status >status.txt 2>&1 || true
recon verify
kill $sandbox
trap - EXIT
wait $sandbox || true
[ "$code" = 5 ] # MONEY IN DOUBT
"$python" -c "import sqlite3; [sqlite3.connect(n).execute('VACUUM') for n in ('recon.sqlite', 'sandbox.sqlite')]"
rm -rf prepared.txt sandbox.log demo.json answer-key.json ./*.lock ./*-shm ./*-wal
ls -laR
tar --sort=name --owner=0 --group=0 --numeric-owner -cJf "$here/earlier.tar.xz" ./*
rm -rf "$folder"
ls -la "$here/earlier.tar.xz"
