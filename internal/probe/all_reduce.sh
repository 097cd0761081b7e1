# Runs nccl-tests' all_reduce_perf over all cards and samples the links meanwhile. POSIX sh; read from standard input.
# Output: sections, each behind a line "<nonce> <name> [value]". Everything else lies in one private directory.
# shellcheck disable=SC2034,SC2154 # shared with processes.sh, which is put in where its name stands
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

@PROCESSES@

own_settings

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

NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P,SHM,NET
NCCL_DEBUG_FILE=$tmp/nccl.%p.log
export NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE
set -- -b "$BEGIN" -e "$END" -f 2 -g "$CARDS" -n 20 -w 5 -c 1
[ -n "$json" ] && set -- "$@" -J "$tmp/out.json"
say arguments "$*"
supervise "$tool" "$@"
say output
head -c 1048576 "$tmp/run"
debug_logs
if [ -s "$tmp/out.json" ]; then
	say json
	head -c 1048576 "$tmp/out.json"
fi
say end
