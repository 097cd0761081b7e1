# Runs nccl-tests' all_reduce_perf over all cards and samples the links meanwhile. POSIX sh; read from standard input.
# Output: sections, each behind a line "<nonce> <name> [value]". Everything else lies in one private directory.
R=${PREFLIGHT_ROOT-}
N='@NONCE@'
CARDS=@CARDS@
LIMIT=@LIMIT@
BEGIN=@BEGIN@
END=@END@
BUSES='@BUSES@'
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/cuda/bin
LC_ALL=C
export PATH LC_ALL
umask 077

say() { printf '\n%s %s\n' "$N" "$*"; }

tmp=$(mktemp -d "${TMPDIR:-/tmp}/preflight.XXXXXX" 2>/dev/null) || tmp=$(mktemp -d /var/tmp/preflight.XXXXXX) || {
	say failed 'no directory to write to: /tmp and /var/tmp are not writable'
	exit 0
}
job=''
side=''

# tree_of PID...: the processes and all that descend from them. Without a terminal dash has no job control, so there is
# no process group to end, and setsid need not be there: parents in /proc tell who belongs to the run.
tree_of() {
	tree="$*"
	level="$*"
	while [ -n "$level" ]; do
		next=''
		for s in /proc/[0-9]*/stat; do
			IFS= read -r line <"$s" || continue
			p=${s#/proc/}
			rest=${line##*) }
			rest=${rest#? }
			case " $level " in *" ${rest%% *} "*) next="$next ${p%/stat}" ;; esac
		done 2>/dev/null
		level=${next# }
		tree="$tree$next"
	done
}

# end SIGNAL PID...: to the whole tree of each.
end() {
	signal=$1
	shift
	tree_of "$@"
	# shellcheck disable=SC2086 # a list of numbers
	kill "-$signal" $tree 2>/dev/null
}

finish() {
	# shellcheck disable=SC2086 # empty ones vanish
	[ -n "$job$side" ] && end KILL $job $side
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM PIPE

# The places where people build or install it.
find_tool() {
	for n in all_reduce_perf all_reduce_perf_mpi; do
		command -v "$n" && return 0
		for d in "$HOME/nccl-tests/build" /opt/nccl-tests/build /opt/nccl_tests/build /opt/nccl-tests /usr/local/nccl-tests/build \
			/usr/local/cuda/bin /usr/local/cuda/efa/test-cuda* /opt/amazon/nccl-tests /usr/lib/nccl-tests /usr/libexec/nccl-tests \
			/home/*/nccl-tests/build /root/nccl-tests/build /workspace/nccl-tests/build; do
			[ -x "$d/$n" ] && [ -f "$d/$n" ] && printf '%s\n' "$d/$n" && return 0
		done
	done
	return 1
}

# start FILE COMMAND...: in the background, holding none of our descriptors. Its exit status appears in FILE.rc. The
# process number is left in $started.
start() {
	out=$1
	shift
	(
		"$@"
		echo $? >"$out.rc.new"
		mv "$out.rc.new" "$out.rc"
	) >"$out" 2>&1 </dev/null &
	started=$!
}

# What a card must say for a sample to count: its state and utilisation, by a side process that may hang alone.
watch_cards() {
	i=0
	while [ ! -s "$tmp/run.rc" ] && [ "$i" -lt "$LIMIT" ]; do
		nvidia-smi --query-gpu=pci.bus_id,pstate,utilization.gpu --format=csv,noheader,nounits 2>/dev/null
		i=$((i + 1))
		sleep 0.5 2>/dev/null || sleep 1
	done
}

tool=$(find_tool) || {
	say missing 'no all_reduce_perf in PATH, ~/nccl-tests/build, /opt/nccl-tests/build or /usr/local'
	exit 0
}
say tool "$tool"

start "$tmp/help" "$tool" --help
job=$started
i=0
while [ ! -s "$tmp/help.rc" ] && [ "$i" -lt 10 ]; do
	i=$((i + 1))
	sleep 0.2 2>/dev/null || sleep 1
done
json=''
grep -q -e '-J' "$tmp/help" 2>/dev/null && json=yes
[ -s "$tmp/help.rc" ] || end KILL "$job"
job=''

files=''
for b in $BUSES; do
	files="$files $R/sys/bus/pci/devices/$b/current_link_speed $R/sys/bus/pci/devices/$b/current_link_width"
done

NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P,SHM,NET
NCCL_DEBUG_FILE=$tmp/nccl.%p.log
export NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE
set -- -b "$BEGIN" -e "$END" -f 2 -g "$CARDS" -n 20 -w 5 -c 1
[ -n "$json" ] && set -- "$@" -J "$tmp/out.json"
say arguments "$*"
start "$tmp/run" "$tool" "$@"
job=$started
start "$tmp/cards" watch_cards
side=$started

say links
waited=0
ended=''
began=$(date +%s)
while [ ! -s "$tmp/run.rc" ]; do
	# shellcheck disable=SC2086 # a list of paths without spaces
	[ -n "$files" ] && grep -H '' $files 2>/dev/null
	waited=$(($(date +%s) - began))
	if [ "$waited" -ge "$LIMIT" ]; then
		ended=hung
		break
	fi
	sleep 0.3 2>/dev/null || sleep 1
done
if [ -n "$ended" ]; then
	tree_of "$job"
	all=$tree
	end TERM "$job"
	sleep 1
	# Those whose parent is gone by now are known from before.
	# shellcheck disable=SC2086 # a list of numbers
	end KILL $all
	sleep 1
	# A process in state D ignores even SIGKILL: the driver is wedged. It is left alone.
	for p in $all; do
		state=$(sed -n 's/^State:[[:space:]]*\([A-Z]\).*/\1/p' "/proc/$p/status" 2>/dev/null)
		[ "$state" = D ] && ended=wedged
	done
	say ended "$ended"
else
	say exit "$(cat "$tmp/run.rc")"
fi
say seconds "$waited"
say output
head -c 1048576 "$tmp/run"
say debug
for f in "$tmp"/nccl.*.log; do
	[ -f "$f" ] && head -c 262144 "$f"
done
say cards
tail -c 262144 "$tmp/cards"
if [ -s "$tmp/out.json" ]; then
	say json
	head -c 1048576 "$tmp/out.json"
fi
say end
