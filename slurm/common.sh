# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Code that the batch scripts share. It begins a job, checks the job's nodes and
# launcher, and runs the steps one after the other. It writes files in RESULTS only.
# nodes.py and steps.py, which have tests, make the decisions.
#
# README.md beside this file has a table of a job's exit codes.

set -euo pipefail

SCRIPTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
CHECKOUT=${SCRIPTS%/*}
SCRIPT=$(basename -- "$1")
JOB_NODES=$SLURM_JOB_NUM_NODES

# ---- settings ----------------------------------------------------------------

# What mpi_step runs.
PROGRAM=(-m mpimcast)
# WRAP holds words that precede every Python, such as `apptainer exec image.sif`.
read -ra WRAP <<<"${WRAP:-}"
read -ra SRUN_OPTIONS <<<"${SRUN_OPTIONS:---cpu-bind=cores}"
if [ -z "${PYTHON:-}" ]; then
	PYTHON=$CHECKOUT/.venv/bin/python
	[ -x "$PYTHON" ] || PYTHON=python3
fi
case $PYTHON in /*) ;; */*) PYTHON=$SLURM_SUBMIT_DIR/$PYTHON ;; esac
: "${MPI_TYPE:=}" "${ORDER:=topology}" "${CHECK_LIMIT:=60}" "${STEP_LIMIT:=600}"
: "${RESULTS:=$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-$SLURM_JOB_ID}"
: "${RANKS_PER_NODE:=${SLURM_NTASKS_PER_NODE:-1}}"
export RANKS_PER_NODE ORDER OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# Descriptor 3 is the job's output, for the log: when SIGTERM arrives and is logged, stdout
# may be redirected to a step's file.
exec 3>&1

log() {
	printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" | keep_log
}

keep_log() {
	tee -a "$RESULTS/log.txt" >&3
}

# Logs the reason, and ends the job with an exit code.
fail() {
	local code=$1
	shift
	log "$*"
	exit "$code"
}

# Runs Python on this node, with the modules of the checkout.
helper() {
	PYTHONPATH=$CHECKOUT${PYTHONPATH:+:$PYTHONPATH} "${WRAP[@]}" "$PYTHON" "$@"
}

# ---- begin and end -----------------------------------------------------------

begin_job() {
	case $RESULTS in /*) ;; *) RESULTS=$SLURM_SUBMIT_DIR/$RESULTS ;; esac
	if ! mkdir -p "$RESULTS/steps" || ! : >>"$RESULTS/log.txt"; then
		echo "RESULTS=$RESULTS cannot be written on $SLURMD_NODENAME" >&2
		exit 2
	fi
	cd "$RESULTS"
	# An earlier job, which this one continues, may have left these files.
	rm -f exit_code steps/launch-*
	export RESULTS
	STEP_PID=
	trap end_job EXIT
	trap terminate TERM
	log "job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)):" \
		"$JOB_NODES nodes $SLURM_JOB_NODELIST; results in $RESULTS"
	scontrol show job "$SLURM_JOB_ID" >job.txt
	scontrol show hostnames "$SLURM_JOB_NODELIST" >hosts.txt
	scontrol show topology >topology.txt 2>&1 || : # some sites have none
	env | grep -E '^(SLURM|MPIMCAST|OMPI|PMIX|PRTE|MPICH|UCX|FI)_' |
		grep -v '^SLURM_JWT=' | sort >environment.txt
	{
		srun --version
		git -C "$CHECKOUT" describe --always --dirty 2>/dev/null || :
		"${WRAP[@]}" "$PYTHON" -m mpimcast info
	} >versions.txt 2>&1 || fail 2 "PYTHON=$PYTHON cannot run mpimcast, see" \
		"$RESULTS/versions.txt: $(tail -n 1 versions.txt)"
}

# Records the exit code first, since there may be no time left to write the report.
end_job() {
	local code=$?
	trap '' TERM
	echo "$code" >exit_code
	[ ! -s results.jsonl ] || make_report
	log "end of job $SLURM_JOB_ID: exit code $code"
}

make_report() {
	local command="$PYTHON -m bench.report $RESULTS"
	if ! helper -c 'import matplotlib' 2>/dev/null; then
		log "no report: matplotlib is missing; to make it, in $CHECKOUT:" \
			"$PYTHON -m pip install matplotlib && $command"
	elif helper -m bench.report "$RESULTS" >report.txt 2>&1; then
		log "report: $(tail -n 1 report.txt)"
	else
		log "no report, see $RESULTS/report.txt; to retry, in $CHECKOUT: $command"
	fi
}

# Ends the job on SIGTERM, which scancel, the time limit or a failed node causes.
terminate() {
	trap '' TERM
	log "ended by SIGTERM: scancel, the time limit or a failed node"
	[ -z "$STEP_PID" ] || kill "$STEP_PID" 2>/dev/null || :
	sinfo --noheader --Node --nodes="$SLURM_JOB_NODELIST" --format='%N %T' |
		helper -m slurm.nodes failed | keep_log || :
	log "to continue: RESULTS=$RESULTS sbatch $SCRIPTS/$SCRIPT"
	exit 143
}

# ---- checks ------------------------------------------------------------------

# Runs on each node: reads the file that this job has written, writes beside it, and
# prints the node's place in the network.
# shellcheck disable=SC2016 # the node's shell expands it
NODE_CHECK='
	read -r id <"$0/shared" && [ "$id" = "$1" ] &&
		: >"$0/shared.$SLURMD_NODENAME" && rm "$0/shared.$SLURMD_NODENAME" &&
		word=shared || word=apart
	echo "${SLURM_TOPOLOGY_ADDR:-$SLURMD_NODENAME} $SLURMD_NODENAME $word"
'

# Step A: checks, without MPI, that every node starts a process and sees RESULTS.
check_nodes() {
	echo "$SLURM_JOB_ID" >shared
	limited "$CHECK_LIMIT" nodes srun --nodes="$JOB_NODES" --ntasks="$JOB_NODES" \
		--ntasks-per-node=1 --mpi=none --kill-on-bad-exit=0 \
		bash -c "$NODE_CHECK" "$RESULTS" "$SLURM_JOB_ID" || :
	helper -m slurm.nodes check hosts.txt steps/nodes.out >order.txt 2>nodes.txt || {
		tail -n 3 steps/nodes.err
		keep_log <nodes.txt
		fail 4 "some nodes are unusable"
	}
	[ "$ORDER" = topology ] || cp hosts.txt order.txt
	log "step A: all $JOB_NODES nodes have answered"
}

# Step B: chooses the first launcher that puts all ranks into one MPI world.
choose_launcher() {
	local listed type code tried=()
	listed=$(srun --mpi=list 2>&1 | tr -s ' \t,' '\n' || :)
	for type in ${MPI_TYPE:-pmix pmi2 cray_shasta mpirun}; do
		[ -n "$MPI_TYPE" ] || [ "$type" = mpirun ] || grep -qx "$type" <<<"$listed" ||
			continue
		LAUNCHER=$type code=0 tried+=("steps/launch-$type")
		doctor "launch-$type" launch || code=$?
		case $code in
		0 | 3)
			log "step B: $type starts all ranks"
			return
			;;
		esac
		log "$type does not start all ranks, see $RESULTS/steps/launch-$type.*"
	done
	cat steps/launch-*.out
	helper -m slurm.nodes blame "${tried[@]}"
	fail 4 "no launcher starts all ranks: set MPI_TYPE as $SCRIPTS/README.md says"
}

# Examines the network, and ends the job if it is unusable.
run_doctor() {
	local checks code=0
	read -ra checks <<<"${CHECKS:-}"
	doctor doctor "${checks[@]}" --json "$RESULTS/doctor.json" || code=$?
	cat steps/doctor.out
	case $code in
	0 | 3) log "doctor: exit code $code" ;;
	*)
		helper -m slurm.nodes blame steps/doctor
		fail 4 "doctor: the nodes are unusable as they are (exit code $code)"
		;;
	esac
	return "$code"
}

# Runs the doctor on all nodes, with as many ranks on each as any step will have. The
# doctor ends by itself; KILL=0 keeps a rank that ends early from ending the one that
# reports the reason.
doctor() {
	local name=$1 ranks
	shift
	ranks=$(tr ' ' '\n' <<<"$RANKS_PER_NODE" | sort -n | tail -n 1)
	KILL=0 STEP_LIMIT=$((CHECK_LIMIT + 60)) \
		mpi_step "$name" "$JOB_NODES" "$ranks" doctor "$@" --limit "$CHECK_LIMIT"
}

# Runs the doctor before a measurement, which continues on a degraded network.
check_network() {
	[ "${DOCTOR:-on}" = off ] || run_doctor || :
}

# ---- steps -------------------------------------------------------------------

# Runs a command with a limit in seconds, in the background so that TERM is handled.
limited() {
	local limit_s=$1 name=$2 code=0
	shift 2
	timeout --kill-after=15 "$limit_s" "$@" \
		</dev/null >"steps/$name.out" 2>"steps/$name.err" 3>&- &
	STEP_PID=$!
	wait "$STEP_PID" || code=$?
	STEP_PID=
	return "$code"
}

# Runs PROGRAM, which is mpimcast by default, on a number of nodes, with a number of
# ranks on each.
mpi_step() {
	local name=$1 nodes=$2 ranks=$3 hosts=$RESULTS/steps/$1.hosts
	local count=$((nodes * ranks)) start
	shift 3
	helper -m slurm.nodes ranks order.txt "$nodes" "$ranks" >"$hosts" || return
	rm -f "steps/$name".*.err
	if [ "$LAUNCHER" = mpirun ]; then
		start=("$(mpirun_of "$PYTHON")" -n "$count")
		if "${start[0]}" --version | grep -q 'Open MPI'; then
			start+=(--hostfile "$hosts" --map-by "ppr:$ranks:node")
		else
			start+=(-f "$hosts" -ppn "$ranks")
		fi
	else
		# The job's own task counts would override the step's, so they are unset.
		# Each node writes its own errors, since srun misses some errors of an
		# aborted step.
		start=(env -u SLURM_NTASKS -u SLURM_NPROCS -u SLURM_NTASKS_PER_NODE
			SLURM_HOSTFILE="$hosts"
			srun --mpi="$LAUNCHER" --nodes="$nodes" --ntasks="$count"
			--distribution=arbitrary --kill-on-bad-exit="${KILL:-1}"
			--error="steps/$name.%N.err" --open-mode=append
			--time=$(((STEP_LIMIT + 119) / 60))
			--cpus-per-task="${SLURM_CPUS_PER_TASK:-$(cpus_of "$ranks")}"
			"${SRUN_OPTIONS[@]}")
	fi
	limited "$STEP_LIMIT" "$name" "${start[@]}" "${WRAP[@]}" "$PYTHON" \
		"${PROGRAM[@]}" "$@"
}

# Prints the path of the mpirun beside a Python, or `mpirun` if there is none there.
mpirun_of() {
	local beside=${1%/*}/mpirun
	[ -x "$beside" ] && echo "$beside" || echo mpirun
}

# Prints the number of processors for each of a number of ranks that share a node.
cpus_of() {
	local cpus=$((${SLURM_CPUS_ON_NODE:-1} / $1))
	echo $((cpus > 0 ? cpus : 1))
}

# Runs the steps of a kind, bench or demo, whose results are not in results.jsonl yet.
run_steps() {
	local kind=$1 steps step failed=()
	mapfile -t steps < <(helper -m slurm.steps todo "$kind" "$RESULTS")
	wait "$!" || fail 2 "the steps could not be planned"
	log "${#steps[@]} steps are left to do"
	for step in "${steps[@]}"; do
		eval "run_step $step" || failed+=("${step%% *}")
	done
	[ ${#failed[@]} = 0 ] || fail 1 "${#failed[@]} of ${#steps[@]} steps failed:" \
		"${failed[*]}; to repeat them: RESULTS=$RESULTS sbatch $SCRIPTS/$SCRIPT"
}

# Runs one step, given its name, nodes, ranks on each, transport, order and command.
run_step() {
	local name=$1 nodes=$2 ranks=$3 transport=$4 step=("$@") code=0 json
	# NFS remembers for a while that a file was missing, so each attempt has a new name.
	json=$RESULTS/steps/$name-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.json
	shift 5
	MPIMCAST_TRANSPORT=$transport \
		mpi_step "$name" "$nodes" "$ranks" "$@" --json "$json" || code=$?
	if [ "$code" != 0 ]; then
		log "$name failed: exit code $code$([ "$code" != 124 ] ||
			echo ", it exceeded its limit of $STEP_LIMIT s")"
		helper -m slurm.nodes blame "steps/$name" | keep_log
		return 1
	fi
	helper -m slurm.steps record results.jsonl "$json" "${step[@]}"
	log "$name done"
}
