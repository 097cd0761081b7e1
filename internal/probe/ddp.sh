# Runs a training on the host and passes on what it says. POSIX sh; read from standard input, whose end is the order to stop.
# shellcheck disable=SC2034,SC2154 # shared with processes.sh, which is put in where its name stands
R=${PREFLIGHT_ROOT-}
N='@NONCE@'
LIMIT=@LIMIT@
PYTHON=@PYTHON@
COMMAND=@COMMAND@
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin
export PATH
umask 077

say() { printf '\n%s %s\n' "$N" "$*"; }

tmp=$(mktemp -d "${TMPDIR:-/tmp}/preflight.XXXXXX" 2>/dev/null) || tmp=$(mktemp -d /var/tmp/preflight.XXXXXX) || {
	say failed 'no directory to write to: /tmp and /var/tmp are not writable'
	exit 0
}
job=''
side=''

@PROCESSES@

finish() {
	# shellcheck disable=SC2086 # empty ones vanish
	[ -n "$job$side" ] && end KILL $job $side
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM PIPE

case $PYTHON in '~'/*) PYTHON=$HOME/${PYTHON#??} ;; esac
if [ -n "$R" ] && [ -x "$R$PYTHON" ]; then PYTHON=$R$PYTHON; fi
if [ -z "$COMMAND" ] && ! command -v "$PYTHON" >/dev/null 2>&1; then
	say missing "$PYTHON is not there"
	exit 0
fi

# The synthetic training says a JSON value a line; of the user's own command only the end of its output is kept.
train() {
	if [ -n "$COMMAND" ]; then
		/bin/sh -c "$COMMAND" >"$tmp/out" 2>&1 </dev/null
		return
	fi
	own_settings
	printf '%s\n' @PROGRAM@ | @SETTINGS@ PREFLIGHT_STORE="$tmp/store" PYTHONDONTWRITEBYTECODE=1 CUDA_DEVICE_ORDER=PCI_BUS_ID \
		CUDA_CACHE_DISABLE=1 "$PYTHON" - 2>"$tmp/errors"
}

exec 3<&0 </dev/null
say begins
(
	train </dev/null 3<&-
	echo $? >"$tmp/rc.new"
	mv "$tmp/rc.new" "$tmp/rc"
) &
job=$!
(
	while read -r _; do :; done <&3
	: >"$tmp/gone"
) &
side=$!
exec 3<&-
now
began=$seconds
ended=''
while [ ! -s "$tmp/rc" ]; do
	sleep 0.3 2>/dev/null || sleep 1
	now
	if [ -e "$tmp/gone" ]; then
		kill_all "$job"
		job=''
		exit 0
	fi
	if [ "$((seconds - began))" -ge "$LIMIT" ]; then
		ended=hung
		break
	fi
done
if [ -n "$ended" ]; then
	kill_all "$job"
	say ended "$ended"
else
	say ended exit "$(cat "$tmp/rc")"
fi
job=''
say errors
tail -c 8192 "$tmp/errors" 2>/dev/null
say out
tail -c 2048 "$tmp/out" 2>/dev/null
say end
