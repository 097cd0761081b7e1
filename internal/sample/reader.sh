# The reader of a host's cards. POSIX sh; runs until its standard input ends. Every line it prints begins with a letter:
#   F fields    the columns of what follows, as nvidia-smi accepted them
#   S values    one card, once each interval
#   C millideg  the processor's temperature, with the first card of each interval
#   K text      a line of the kernel's log about the cards or their links
#   B name,value,unit  a sensor of the BMC
#   E text      nvidia-smi ended, and what it said
#   N text      something cannot be watched, and why
# One nvidia-smi runs for all samples; only when it dies is another begun.
R=${PREFLIGHT_ROOT-}
every=@INTERVAL@
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
fields=timestamp,index,pci.bus_id,name,pstate,power.draw,enforced.power.limit,temperature.gpu,temperature.memory,clocks.sm,clocks.mem,clocks_event_reasons.active,fan.speed,pcie.link.gen.current,pcie.link.width.current,ecc.errors.uncorrected.volatile.total,utilization.gpu,memory.used,memory.total

# Drivers know different fields: what one does not know is left out, and is asked under its older name first.
agree() {
	n=0
	while [ $n -lt 20 ]; do
		said=$(nvidia-smi --query-gpu="$fields" --format=csv,noheader,nounits 2>&1) && return 0
		unknown=$(printf '%s\n' "$said" | sed -n 's/^Field "\([a-z._]*\)" is not a valid field to query.*/\1/p' | head -n 1)
		[ -n "$unknown" ] || return 1
		put=
		[ "$unknown" != clocks_event_reasons.active ] || put=clocks_throttle_reasons.active
		fields=$(printf '%s\n' "$fields" | sed "s/\(^\|,\)$unknown\(,\|\$\)/\1$put\2/; s/,,/,/g; s/^,//; s/,\$//")
		n=$((n + 1))
	done
	return 1
}

# The sensor that the processor's own driver has; its temp1 is the package (coretemp) or Tctl (k10temp).
thermometer() {
	for h in "$R"/sys/class/hwmon/hwmon*; do
		read -r name 2>/dev/null <"$h/name" || continue
		case $name in coretemp | k10temp | zenpower) [ ! -r "$h/temp1_input" ] || { echo "$h/temp1_input" && return; } ;; esac
	done
}

cards() {
	cpu=$(thermometer)
	first=
	nvidia-smi --query-gpu="$fields" --format=csv,noheader,nounits -l "$every" 2>&1 | while IFS= read -r line; do
		case $line in
		[0-9]*/[0-9]*,*)
			printf 'S %s\n' "$line"
			bus=${line#*, }
			bus=${bus#*, }
			bus=${bus%%,*}
			: "${first:=$bus}"
			if [ -n "$cpu" ] && [ "$bus" = "$first" ] && read -r t 2>/dev/null <"$cpu"; then printf 'C %s\n' "$t"; fi
			;;
		*) printf 'E %s\n' "$line" ;;
		esac
	done
}

watch_cards() {
	command -v nvidia-smi >/dev/null 2>&1 || {
		echo "E nvidia-smi is not there"
		return
	}
	while :; do
		if agree; then
			echo "F $fields"
			cards
			echo "E nvidia-smi ended"
		else
			printf 'E %s\n' "$said" | head -n 1
		fi
		sleep 5
	done
}

# The kernel's log from now on. /dev/kmsg gives what is past first: it is left out by the time of each record (µs since boot).
watch_kernel() {
	log=$R/dev/kmsg
	now=0
	read -r up _ 2>/dev/null <"$R/proc/uptime" && now=${up%.*}
	if [ -f "$log" ]; then # a simulated rig
		tail -n +1 -f "$log"
	elif { : <"$log"; } 2>/dev/null && cat "$log" 2>/dev/null; then
		:
	elif command -v journalctl >/dev/null 2>&1 && journalctl -q -k -n 1 >/dev/null 2>&1; then
		journalctl -q -k -f -n 0 -o cat
	else
		echo "0,0,9999999999999999,-;preflight: no log"
	fi | while IFS= read -r line; do
		case $line in
		*"preflight: no log") echo "N the kernel's log cannot be read by this login: Xid errors and link errors are not watched" ;;
		*"NVRM: Xid"* | *"AER: "* | *"PCIe Bus Error"* | *"fallen off the bus"*)
			case $line in
			[0-9]*,[0-9]*,[0-9]*,*\;*)
				at=${line#*,*,}
				at=${at%%,*}
				[ "${#at}" -gt 6 ] && at=${at%??????} || at=0
				[ "$at" -ge "$now" ] || continue
				line=${line#*;}
				;;
			esac
			printf 'K %s\n' "$line"
			;;
		esac
	done
}

# What a BMC says of the air that comes in and of the supplies, every half minute, where this login may ask it.
watch_bmc() {
	command -v ipmitool >/dev/null 2>&1 || return
	[ -w "$R/dev/ipmi0" ] || return
	while :; do
		ipmitool -c sdr list 2>/dev/null | while IFS=, read -r name value unit state _; do
			case $name,$unit,$state in
			[Ii]nlet*,"degrees C",ok | *[Aa]mbient*,"degrees C",ok | P[Ss]*,"degrees C",ok | P[Ss]*,Watts,ok | *[Pp]ower*,Watts,ok) printf 'B %s,%s,%s\n' "$name" "$value" "$unit" ;;
			esac
		done
		sleep 30
	done
}

# children PID: all that descend from a process, deepest last; few, as the reader starts few.
children() {
	for p in "/proc/"[0-9]*; do
		read -r s 2>/dev/null <"$p/stat" || continue
		s=${s##*) }
		s=${s#* }
		[ "${s%% *}" != "$1" ] || {
			echo "${p#/proc/}"
			children "${p#/proc/}"
		}
	done
}

finish() {
	trap - EXIT HUP INT TERM PIPE
	# shellcheck disable=SC2046 # one word a process
	kill -9 $(children $$) 2>/dev/null
	exit 0
}
trap finish EXIT HUP INT TERM PIPE

exec 3<&0 </dev/null
watch_cards &
watch_kernel &
watch_bmc &
while read -r _ <&3; do :; done
finish
