# Runs an all-reduce through torch.distributed of a Python on the host. POSIX sh; read from standard input.
# shellcheck disable=SC2034,SC2154 # shared with processes.sh, which is put in where its name stands
R=${PREFLIGHT_ROOT-}
N='@NONCE@'
LIMIT=@LIMIT@
BUSES='@BUSES@'
PYTHON=@PYTHON@
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin
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

case $PYTHON in '~'/*) PYTHON=$HOME/${PYTHON#??} ;; esac
if ! command -v "$PYTHON" >/dev/null 2>&1; then
	say missing "$PYTHON is not there"
	exit 0
fi

run_python() {
	printf '%s\n' @PROGRAM@ | PREFLIGHT_SIZES=@SIZES@ PREFLIGHT_STORE=$tmp/store PREFLIGHT_RANKS=$cards PYTHONDONTWRITEBYTECODE=1 \
		CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_CACHE_DISABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P,SHM,NET \
		NCCL_DEBUG_FILE=$tmp/nccl.%p.log "$PYTHON" - 2>"$tmp/errors"
}

cards=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | grep -c .)
supervise run_python
say output
head -c 1048576 "$tmp/run"
say errors
tail -c 16384 "$tmp/errors" 2>/dev/null
debug_logs
say end
