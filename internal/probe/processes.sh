# shellcheck disable=SC2034,SC2154 # shared with the scripts that it is put into
# Processes of a probe: begun without a hold on the connection, found by descent, ended for good. Part of every probe's
# script.

# own_settings takes away what the login sets for NCCL and CUDA, so that the rig is measured as it is: an
# NCCL_P2P_DISABLE in a shell's start-up file would be taken for the rig's own path. /etc/nccl.conf stays: it is the rig's.
own_settings() {
	for v in $(env | sed -n 's/^\(NCCL_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(CUDA_[A-Za-z0-9_]*\)=.*/\1/p'); do
		unset "$v"
	done
}

# now puts seconds since boot into seconds: the date of a new host jumps when it is first set by the network.
now() {
	seconds=''
	{ read -r seconds _ </proc/uptime; } 2>/dev/null
	seconds=${seconds%%.*}
	[ -n "$seconds" ] || seconds=$(date +%s)
}

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

# stuck PID...: whether one of them is in state D. Such a process ignores even SIGKILL: the driver is wedged, and it is
# left alone.
stuck() {
	for p in "$@"; do
		state=$(sed -n 's/^State:[[:space:]]*\([A-Z]\).*/\1/p' "/proc/$p/status" 2>/dev/null)
		if [ "$state" = D ]; then return 0; fi
	done
	return 1
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

# attributes of the links of $BUSES.
link_files() {
	files=''
	for b in $BUSES; do
		files="$files $R/sys/bus/pci/devices/$b/current_link_speed $R/sys/bus/pci/devices/$b/current_link_width"
	done
}

# supervise COMMAND...: runs it with its output in $tmp/run, samples links and cards meanwhile, and ends it at $LIMIT.
supervise() {
	link_files
	start "$tmp/run" "$@"
	job=$started
	start "$tmp/cards" watch_cards
	side=$started
	say links
	waited=0
	ended=''
	now
	began=$seconds
	while [ ! -s "$tmp/run.rc" ]; do
		# shellcheck disable=SC2086 # a list of paths without spaces
		[ -n "$files" ] && grep -H '' $files 2>/dev/null
		now
		waited=$((seconds - began))
		if [ "$waited" -ge "$LIMIT" ]; then
			ended=hung
			break
		fi
		sleep 0.3 2>/dev/null || sleep 1
	done
	if [ -n "$ended" ]; then
		kill_all "$job"
		say ended "$ended"
	else
		say exit "$(cat "$tmp/run.rc")"
	fi
	say seconds "$waited"
}

# kill_all PID ends a tree for good, and sets ended to wedged when that does not work.
kill_all() {
	tree_of "$1"
	all=$tree
	end TERM "$1"
	sleep 1
	# Those whose parent is gone by now are known from before.
	# shellcheck disable=SC2086 # a list of numbers
	end KILL $all
	sleep 1
	# shellcheck disable=SC2086 # a list of numbers
	if stuck $all; then ended=wedged; fi
}

# debug_logs prints what NCCL wrote into $tmp.
debug_logs() {
	say debug
	for f in "$tmp"/nccl.*.log; do
		[ -f "$f" ] && head -c 262144 "$f"
	done
	say cards
	tail -c 262144 "$tmp/cards"
}
