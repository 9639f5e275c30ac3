#!/usr/bin/env bash
# Green on every machine: one line for each bar.
#
#   benchmarks/green.sh                     idle busy onecore dask check import ratios; about an hour on two cores
#   benchmarks/green.sh check import        these lines only
#
# Lines: idle, busy, onecore, haswell, skylakex, zen, nosimd, dask, check, import, ratios.
# The three runs of `busy` have other kernels each, Haswell, SkylakeX and Zen, and `onecore` has none that numpy chooses:
# each holds for two lines at once. The lines of kernels alone are for who looks for the cause of a miss.
# `idle` clones this repository's HEAD into a temporary folder and installs it there; the other lines of tests use the
# same clone. A line is `ok` or `MISS`, what was measured, and the bar; the exit code is 1 if one was missed.
#
#   GREEN_WORKERS=8      processes for the lines of tests; the bar of `idle` is for two
#   GREEN_TIMES=5        how often the line `dask` runs its tests
#   GREEN_PYTHON=...     a Python that has everything installed: the clone is run with it in place of its own
set -u
unset PYTHONDONTWRITEBYTECODE  # set in some containers; an installed package has its bytecode
cd "$(dirname "$0")/.."
here=$PWD
lines=("$@")
[ ${#lines[@]} -eq 0 ] && lines=(idle busy onecore dask check import ratios)
folder=$(mktemp -d)
loops=()
missed=0
workers=${GREEN_WORKERS:-2}
times=${GREEN_TIMES:-20}

rest() {  # end the busy loops that were started here
  for pid in ${loops[@]+"${loops[@]}"}; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done
  loops=()
}
trap 'rest; rm -rf "$folder"' EXIT
load() { for _ in 1 2 3 4; do (while :; do :; done) & loops+=($!); done; }

say() {  # say NAME HELD MEASURED BAR
  if [ "$2" = yes ]; then mark=ok; else mark=MISS; missed=1; fi
  printf '%-4s  %-34s %-46s bar: %s\n' "$mark" "$1" "$3" "$4"
}
atmost() { awk -v a="$1" -v b="$2" 'BEGIN { print (a <= b) ? "yes" : "no" }'; }

clone() {  # a fresh clone with an environment of its own, made once
  [ -d "$folder/clone" ] && return
  git clone --quiet "$here" "$folder/clone"
  python="$folder/clone/.venv/bin/python"
  if [ -n "${GREEN_PYTHON:-}" ]; then
    python=$GREEN_PYTHON
    export PYTHONPATH="$folder/clone/src${PYTHONPATH:+:$PYTHONPATH}"
    "$python" -m compileall -q "$folder/clone/src"
    return
  fi
  (cd "$folder/clone" && make .venv/.installed) >"$folder/install.log" 2>&1 || tail -5 "$folder/install.log"
}

suite() {  # suite NAME BAR SECONDS [COMMAND PREFIX …]: `make test` in the clone, green and within SECONDS (0: any)
  local name=$1 bar=$2 limit=$3 log="$folder/$1.log" start took counted longest held
  shift 3
  clone
  start=$(date +%s)
  (cd "$folder/clone" && "$@" "$python" -m pytest -n "$workers" --dist loadfile -q --durations=1 --durations-min=0.01) >"$log" 2>&1
  held=$([ $? -eq 0 ] && echo yes || echo no)
  took=$(($(date +%s) - start))
  counted=$(tail -1 "$log" | sed -E 's/ in .*//; s/=+ ?//g')
  longest=$(grep -E '^[0-9.]+s (call|setup|teardown)' "$log" | head -1 | cut -d s -f 1)
  if [ "$limit" -gt 0 ]; then
    [ "$held" = yes ] && held=$(atmost "$took" "$limit")
    [ "$held" = yes ] && held=$(atmost "${longest:-0}" 30)
  fi
  say "$name" "$held" "$counted, $took s, longest ${longest:-?} s" "$bar"
  if [ "$held" != yes ]; then grep -E '^(FAILED|ERROR)' "$log" | head -5; cp "$log" "/tmp/green-$name.log"; fi
}

dispatched() {  # what numpy chooses at run time, under the names of its version: AVX2, AVX512F … or X86_V3, X86_V4 …
  "$python" -c "from numpy._core._multiarray_umath import __cpu_dispatch__ as all; print(*all)"
}

cpu() {  # seconds of processor time of a command, the middle of five
  for _ in 1 2 3 4 5; do
    python3 - "$@" <<'PYTHON'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.2f}")
PYTHON
  done | sort -n | sed -n 3p
}

measured() {  # measured NAME SECONDS COMMAND …
  local name=$1 bar=$2 took
  shift 2
  took=$(cpu "$@")
  say "$name" "$(atmost "$took" "$bar")" "$took s of processor time" "$bar s"
}

binaries() { if [ -x .venv/bin/python ]; then echo "$here/.venv/bin"; else clone; dirname "$python"; fi; }

for line in "${lines[@]}"; do
  case $line in
    idle) suite idle "green, 300 s, no test over 30 s" 300 env ;;
    busy)
      for kernels in Haswell SkylakeX Zen; do
        load; suite "busy-$kernels" "green beside four busy loops" 0 env "OPENBLAS_CORETYPE=$kernels"; rest
      done ;;
    onecore)
      clone
      suite onecore "green on one core, without AVX and FMA" 0 taskset -c 0 env "NPY_DISABLE_CPU_FEATURES=$(dispatched)" ;;
    haswell) suite haswell "green with Haswell kernels" 0 env OPENBLAS_CORETYPE=Haswell ;;
    skylakex) suite skylakex "green with SkylakeX kernels" 0 env OPENBLAS_CORETYPE=SkylakeX ;;
    zen) suite zen "green with Zen kernels" 0 env OPENBLAS_CORETYPE=Zen ;;
    nosimd) clone; suite nosimd "green without AVX and FMA" 0 env "NPY_DISABLE_CPU_FEATURES=$(dispatched)" ;;
    dask)
      clone; load; good=0
      for _ in $(seq "$times"); do
        (cd "$folder/clone" && "$python" -m pytest -q -k "dask or worker or task or engines or scheduler or client" tests/run) >"$folder/dask.log" 2>&1 \
          && good=$((good + 1)) || cp "$folder/dask.log" /tmp/green-dask.log
      done
      rest
      say dask "$([ "$good" -eq "$times" ] && echo yes || echo no)" "$good of $times green under load" "20 of 20, no hang" ;;
    check) measured "cold check of oncology" 1.0 "$(binaries)/sfumato" check examples/oncology/study.pl ;;
    import) measured "import sfumato" 0.25 "$(binaries)/python" -c "import sfumato" ;;
    ratios) "$(binaries)/python" benchmarks/busy.py ;;
    *) echo "There is no line $line; see the head of this script." >&2; exit 2 ;;
  esac
done
exit $missed
