#!/bin/sh
# Reads what preflight needs of one host and writes it as framed stream to standard output. It changes nothing.
# POSIX sh only (dash, busybox ash, ksh, bash): no `timeout`, `setsid`, arrays, `local`, or job control.
#
# A frame is a newline, "@@preflight NONCE KIND ARGS...", a newline, and bytes up to the next frame. The nonce is
# drawn anew for each run by the controller, so nothing on the host can look like a frame by accident.
#
# R is empty on a real host. Tests point PREFLIGHT_ROOT at a directory that is laid out like one.
R=${PREFLIGHT_ROOT-}
NONCE='@NONCE@'
SLURM_NODE=@SLURM_NODE@ # the rig's name in Slurm, quoted as well; empty: its host name
PYTHON=@PYTHON@ # the interpreter that the inventory names, quoted by the controller; may be empty
LC_ALL=C
export LC_ALL
umask 077
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin:/opt/nvidia/bin:/usr/lib/wsl/lib
export PATH

frame() { printf '\n@@preflight %s %s\n' "$NONCE" "$*"; }

# now sets t to hundredths of a second since boot, without a process. The 1 keeps a fraction like 08 from being octal.
now() {
    t=0
    if read -r up _ 2>/dev/null </proc/uptime; then t=$((${up%.*} * 100 + 1${up#*.} - 100)); fi
}

# --- running with a deadline -----------------------------------------------------------------------------------
# A child writes into a private file and reports through a fifo; a ticker writes into the same fifo once a second.
# So the script never waits for a child: one in uninterruptible sleep ignores even SIGKILL, and is left behind
# without holding any descriptor of the connection.

start() {
    tmp=
    for d in /dev/shm "${TMPDIR:-/tmp}" /tmp /var/tmp; do
        if [ -d "$d" ] && [ -w "$d" ] && tmp=$(mktemp -d "$d/preflight.XXXXXXXX" 2>/dev/null); then break; fi
        tmp=
    done
    if [ -z "$tmp" ] || ! mkfifo "$tmp/fifo"; then
        frame fatal 'no private temporary directory could be made in /dev/shm, /tmp or /var/tmp'
        exit 1
    fi
    exec 3<>"$tmp/fifo"
    seq=0
    hung=
    (
        n=0
        while [ "$n" -lt 900 ] && kill -0 "$$"; do
            sleep 1
            echo tick >&3
            n=$((n + 1))
        done
    ) </dev/null >/dev/null 2>&1 &
    ticker=$!
}

finish() {
    trap - EXIT
    if [ -n "$ticker" ]; then kill "$ticker"; fi
    if [ -n "$tmp" ]; then rm -rf "$tmp"; fi
} 2>/dev/null

# kill_tree ends a process and everything below it. There is no process group to signal without job control, so
# parents are looked up in /proc; only a missed deadline pays for that.
kill_tree() {
    victims=" $1 "
    kill -STOP "$1"
    for _ in 1 2 3 4; do
        for s in /proc/[0-9]*/stat; do
            read -r line <"$s" || continue
            rest=${line##*) }
            rest=${rest#* }
            p=${line%% *}
            case $victims in
            *" $p "*) ;;
            *" ${rest%% *} "*) victims="$victims$p " ;;
            esac
        done
    done
    # shellcheck disable=SC2086 # a list of numbers
    kill -9 $victims
} 2>/dev/null

# run NAME DEADLINE LIMIT COMMAND...: deadline in seconds, limit in bytes of standard output.
run() {
    name=$1 deadline=$2 limit=$3
    shift 3
    seq=$((seq + 1))
    now
    t0=$t
    echo "go $seq" >&3
    while read -r tag val _ <&3; do
        if [ "$tag $val" = "go $seq" ]; then break; fi # older ticks are spent
    done
    (
        case $name in
        collector/*) "$@" ;; # reads files, each with a limit of its own
        *)
            # Blocks of 512 bytes; writing past the limit ends the child with SIGXFSZ.
            (
                ulimit -f "$((limit / 512 + 1))" 2>/dev/null
                "$@"
            )
            ;;
        esac
        echo "done $seq $?" >&3
    ) </dev/null >"$tmp/$seq.out" 2>"$tmp/$seq.err" &
    child=$!
    ticks=0 status=timeout rc=-1
    while read -r tag val code <&3; do
        case $tag in
        done) if [ "$val" = "$seq" ]; then status=ok rc=$code && break; fi ;;
        tick)
            ticks=$((ticks + 1))
            if [ "$ticks" -gt "$deadline" ]; then break; fi
            ;;
        esac
    done
    if [ "$status" = ok ]; then wait "$child" 2>/dev/null; else kill_tree "$child"; fi
    now
    frame cmd "$name" "$status" "$rc" "$(((t - t0) * 10))" "$limit"
    if [ -s "$tmp/$seq.out" ]; then cat "$tmp/$seq.out"; fi
    if [ -s "$tmp/$seq.err" ]; then
        frame err "$name"
        n=0
        while [ "$n" -lt 100 ] && { IFS= read -r line || [ -n "$line" ]; }; do # no process for what is a line or two
            printf '%s\n' "$line"
            n=$((n + 1))
        done <"$tmp/$seq.err"
    fi
    : >"$tmp/$seq.out"
}

# smi NAME DEADLINE LIMIT COMMAND... runs something that calls nvidia-smi. One hang is enough: every further call
# would hang as well, and leave one more process that nobody can kill.
smi() {
    if [ -n "$hung" ]; then
        frame cmd "$1" timeout -1 0 "$3" 'skipped: nvidia-smi hung'
    elif ! command -v nvidia-smi >/dev/null 2>&1; then
        frame cmd "$1" absent 127 0 "$3" 'nvidia-smi: not found'
    else
        run "$@"
        if [ "$status" = timeout ]; then hung=1; fi
    fi
}

# --- reading files, many with one process ----------------------------------------------------------------------

# files LIMIT BASE NAME...: `head` prints "==> NAME <==" before each file when it is given several.
files() {
    limit=$1 base=$2
    shift 2
    if [ $# -eq 0 ]; then return; fi
    frame files "$limit" "$base"
    echo "@base $base" >&2
    head -c "$limit" /dev/null "$@"
}

links() {
    base=$1
    shift
    if [ $# -eq 0 ]; then return; fi
    frame links "$base"
    ls -ldn "$@"
}

# dir PATH: the names in a directory, and whether it is there at all.
dir() {
    if ! [ -d "$R/$1" ]; then
        frame item absent "$1"
        return
    fi
    frame dir "$1"
    for n in "$R/$1"/*; do
        if [ -e "$n" ] || [ -L "$n" ]; then printf '%s\n' "${n##*/}"; fi
    done
}

# single LIMIT PATH...: files that are each worth a record of their own.
single() {
    limit=$1
    shift
    for f in "$@"; do
        shift
        if ! [ -e "$R/$f" ]; then
            frame item absent "$f"
        elif ! [ -r "$R/$f" ]; then
            frame item denied "$f"
        else
            set -- "$@" "$f"
        fi
    done
    cd "$R/" && files "$limit" - "$@"
}

# attributes LIMIT BASE "PATTERN...": in chunks, so that no command line grows past what the kernel takes.
attributes() {
    limit=$1 base=$2 patterns=$3
    cd "$R/$base" 2>/dev/null || return
    set -f
    set --
    for a in $patterns; do
        set +f
        # shellcheck disable=SC2086 # the pattern is to be expanded
        if exists $a; then set -- "$@" $a; fi
        set -f
        if [ $# -gt 3000 ]; then
            files "$limit" "$base" "$@"
            set --
        fi
    done
    set +f
    files "$limit" "$base" "$@"
}

exists() { [ -e "$1" ]; }

read_proc() {
    cd "$R/" || return
    set -- proc/driver/nvidia/gpus/*/information
    if ! [ -e "$1" ]; then set --; fi
    single 1048576 "$@" proc/meminfo proc/cmdline proc/version proc/uptime proc/modules proc/self/mounts proc/1/cgroup \
        proc/sys/kernel/osrelease proc/sys/kernel/dmesg_restrict proc/sys/kernel/hostname proc/sys/kernel/random/boot_id \
        proc/driver/nvidia/version proc/driver/nvidia/params etc/os-release etc/docker/daemon.json etc/nccl.conf \
        .dockerenv run/systemd/container run/.containerenv run/nvidia-persistenced/nvidia-persistenced.pid proc/iomem \
        proc/self/limits proc/sys/net/ipv4/ip_local_port_range proc/sys/net/ipv4/ip_local_reserved_ports \
        etc/nvidia-container-runtime/config.toml proc/cpuinfo sys/firmware/dmi/tables/DMI sys/firmware/dmi/tables/smbios_entry_point
    if [ -r "$R/proc/1/environ" ]; then # the rest of it is nobody's business
        frame text proc/1/environ
        tr '\000' '\n' <"$R/proc/1/environ" | grep -a '^container='
    fi
}

read_pci() {
    cd "$R/sys/bus/pci/devices" 2>/dev/null || {
        frame item absent sys/bus/pci/devices
        return
    }
    attributes 8192 sys/bus/pci/devices '*/modalias */class */vendor */device */subsystem_vendor */subsystem_device
        */revision */resource */numa_node */local_cpulist */current_link_width */current_link_speed */max_link_width
        */max_link_speed */secondary_bus_number */subordinate_bus_number */power_state */boot_vga */aer_dev_correctable
        */aer_dev_fatal */aer_dev_nonfatal */aer_rootport_total_err_cor */aer_rootport_total_err_fatal
        */aer_rootport_total_err_nonfatal */resource1_resize */removable */reset_method'
    set -- ./*
    for f in */driver */iommu_group */physfn; do
        if [ -L "$f" ]; then set -- "$@" "$f"; fi
    done
    links sys/bus/pci/devices "$@"
    dir sys/bus/pci_express/devices
}

# read_config takes the configuration space of NVIDIA cards, of the bridges above them, and of every bridge where
# there are few: all 4096 bytes as root, 64 otherwise.
read_config() {
    cd "$R/sys/bus/pci/devices" 2>/dev/null || return
    top=$PWD
    bridges=0 all=' ' need=' '
    for d in *; do
        read -r class 2>/dev/null <"$d/class" || continue
        case $class in
        0x0604*)
            bridges=$((bridges + 1))
            all="$all$d "
            ;;
        0x0300* | 0x0302*)
            read -r vendor 2>/dev/null <"$d/vendor" || continue
            if [ "$vendor" != 0x10de ]; then continue; fi
            if cd -P "$d" 2>/dev/null; then
                path=${PWD##*/devices/pci}
                cd "$top" || return
                path=${path#*/}
                while [ -n "$path" ]; do
                    case $need in *" ${path%%/*} "*) ;; *) need="$need${path%%/*} " ;; esac
                    case $path in */*) path=${path#*/} ;; *) path= ;; esac
                done
            fi
            ;;
        esac
    done
    if [ "$bridges" -le 64 ]; then need="$all$need"; fi
    set --
    taken=' '
    for d in $need; do
        case $taken in *" $d "*) continue ;; esac
        taken="$taken$d "
        if [ -e "$d/config" ]; then set -- "$@" "$d/config"; fi
    done
    files 4096 sys/bus/pci/devices "$@"
}

# read_sys takes single files of many places with one process; what is long has a place of its own above.
read_sys() {
    if ! [ -d "$R/sys/class/dmi/id" ]; then frame item absent sys/class/dmi/id; fi
    dir sys/firmware
    if [ -d "$R/sys/firmware/efi" ]; then frame item ok sys/firmware/efi; else frame item absent sys/firmware/efi; fi
    dir sys/class/iommu
    dir sys/block
    dir sys/class/net
    find_packages
    attributes 8192 sys "bus/pci/slots/*/address bus/pci/slots/*/cur_bus_speed bus/pci/slots/*/max_bus_speed
        class/dmi/id/bios_date class/dmi/id/bios_release class/dmi/id/bios_vendor class/dmi/id/bios_version
        class/dmi/id/board_name class/dmi/id/board_vendor class/dmi/id/board_version class/dmi/id/chassis_type
        class/dmi/id/chassis_vendor class/dmi/id/chassis_version class/dmi/id/ec_firmware_release class/dmi/id/product_family
        class/dmi/id/product_name class/dmi/id/product_sku class/dmi/id/product_version class/dmi/id/sys_vendor
        firmware/efi/efivars/SecureBoot-* firmware/efi/efivars/SetupMode-* kernel/iommu_groups/*/type
        devices/system/node/online devices/system/node/possible devices/system/node/node*/cpulist
        devices/system/node/node*/distance devices/system/node/node*/meminfo devices/system/cpu/online
        devices/system/cpu/possible devices/system/memory/block_size_bytes devices/system/edac/mc/mc*/mc_name
        devices/system/edac/mc/mc*/ce_count devices/system/edac/mc/mc*/ue_count $packages
        class/powercap/intel-rapl*/name class/powercap/intel-rapl*/constraint_*_power_limit_uw
        module/nvidia/version module/nvidia/refcnt module/nvidia/initstate module/nouveau/refcnt module/nouveau/initstate
        module/nvidia_drm/version module/nvidia_drm/refcnt module/nvidia_drm/initstate module/nvidia_uvm/version
        module/nvidia_uvm/refcnt module/nvidia_uvm/initstate module/nvidia_peermem/version module/nvidia_peermem/refcnt
        module/nvidia_peermem/initstate block/*/size block/*/removable block/*/ro block/*/queue/rotational
        block/*/device/model class/net/*/speed"
    read_memory_blocks
    set --
    for f in "$R"/sys/block/* "$R"/sys/class/net/* "$R"/sys/class/net/*/device; do
        if [ -L "$f" ]; then set -- "$@" "${f#"$R"/}"; fi
    done
    cd "$R/" && links - "$@"
}

# find_packages sets packages to the files that tell the socket of the first processor of each NUMA node.
find_packages() {
    packages=
    for n in "$R"/sys/devices/system/node/node*/cpulist; do
        read -r list 2>/dev/null <"$n" || continue
        first=${list%%[,-]*}
        if [ -n "$first" ]; then packages="$packages devices/system/cpu/cpu$first/topology/physical_package_id"; fi
    done
}

# read_memory_blocks counts in place, and without a process: a large host has thousands of these files.
read_memory_blocks() {
    read -r size 2>/dev/null <"$R/sys/devices/system/memory/block_size_bytes" || return 0
    cd "$R/sys/devices/system/memory" || return 0
    online=0
    for n in memory*/state; do
        read -r state 2>/dev/null <"$n" || continue
        case $state in online*) online=$((online + 1)) ;; esac
    done
    if ! [ -e "$n" ]; then return 0; fi
    frame text cmd/memory-blocks.txt
    echo "block_size_bytes $size"
    echo "online $online"
}

read_rest() {
    cd "$R/" || return
    frame text cmd/power-cap-units.txt
    grep -rlsE -- '^[^#]*nvidia-smi.*(-pl|--power-limit)' etc/systemd/system usr/local/lib/systemd/system etc/crontab \
        etc/cron.d etc/rc.local etc/rc.d/rc.local
    frame text cmd/uname.txt
    uname -a
    frame text cmd/ulimit.txt
    # dash, ash, ksh and bash all know -l and -n; elsewhere the line stays empty
    printf 'memlock_kib '
    # shellcheck disable=SC3045
    ulimit -l 2>/dev/null || echo
    printf 'open_files '
    # shellcheck disable=SC3045
    ulimit -n 2>/dev/null || echo
    frame text cmd/df-shm.txt
    df -k /dev/shm
}

# read_dmesg keeps the tail: what broke last is at the end.
read_dmesg() {
    {
        dmesg
        code=$?
        if [ "$code" -ne 0 ]; then echo "dmesg: exit status $code" >&2; fi
    } | tail -c 2097152
}

read_journal() { journalctl -k -b --no-pager -o short-monotonic | tail -c 2097152; }

read_log() {
    run cmd/dmesg.txt 15 2097664 read_dmesg
    if ! [ -s "$tmp/$seq.err" ] || ! command -v journalctl >/dev/null 2>&1; then return; fi
    run cmd/journal.txt 20 2097664 read_journal
}

# --- software: limits, ports, container engines, Python ------------------------------------------------------------

# pick PATTERN FILE...: matching lines only, since the rest of these files may hold names and credentials. Each line
# comes with its file's name.
pick() {
    pattern=$1
    shift
    for f in "$@"; do
        shift
        if [ -r "$f" ]; then set -- "$@" "$f"; fi
    done
    if [ $# -gt 0 ]; then grep -aHE -- "$pattern" "$@" /dev/null; fi
}

# login_limits: under sudo this shell has root's limits. Those of the login are its nearest ancestor's that is not root.
login_limits() {
    p=$PPID
    while [ "${p:-0}" -gt 1 ] && [ -r "/proc/$p/status" ]; do
        owner='' parent=''
        while read -r key a _; do
            case $key in PPid:) parent=$a ;; Uid:) owner=$a ;; esac
        done <"/proc/$p/status"
        if [ "$owner" != 0 ]; then
            frame text cmd/login-limits.txt
            while IFS= read -r line; do
                case $line in 'Max locked memory'*) printf '%s\n' "$line" ;; esac
            done <"/proc/$p/limits"
            return
        fi
        p=$parent
    done
}

read_software() {
    dir sys/class/infiniband
    dir etc/cdi
    dir var/run/cdi
    cd "$R/" || return
    if [ -n "${SUDO_UID-}" ]; then login_limits; fi
    frame text cmd/picked.txt
    pick '^DefaultLimitMEMLOCK|^[^#]*(nvidia|nouveau)|SystemdCgroup|default_runtime_name' etc/modprobe.d/*.conf \
        usr/lib/systemd/system.conf.d/*.conf etc/systemd/system.conf etc/systemd/system.conf.d/*.conf \
        etc/containerd/config.toml etc/containerd/conf.d/*.toml var/lib/rancher/k3s/agent/etc/containerd/config.toml
    pick 'libcuda\.so\.[0-9]' etc/cdi/*nvidia* var/run/cdi/*nvidia*
    if [ -r proc/net/tcp ]; then # 733C is 29500; addresses stay here
        frame text cmd/ports.txt
        sed -n -e 's/^ *[0-9]*: [0-9A-F]*:\([0-9A-F]*\) [0-9A-F]*:0000 0A .*/listen \1/p' \
            -e 's/^ *[0-9]*: [0-9A-F]*:733C [0-9A-F]*:[0-9A-F]* 0[12458] .*/used 733C/p' proc/net/tcp proc/net/tcp6 2>/dev/null
    fi
    read_torch_files
    read_engines
}

# read_engines: which container engines are here. What --version prints asks no daemon; docker is asked for more below.
read_engines() {
    frame text cmd/engines.txt
    docker=
    for p in docker podman containerd nvidia-ctk; do
        if ! command -v "$p" >/dev/null 2>&1; then continue; fi
        case $docker$p in 1containerd) continue ;; esac # docker's own
        printf '%s ' "$p"
        case $p in docker) echo installed && docker=1 ;; *) "$p" --version 2>/dev/null || echo ;; esac
    done
    for f in "$R"/usr/bin/nvidia-container-runtime-hook "$R"/usr/local/nvidia/toolkit/nvidia-container-runtime-hook; do
        if [ -e "$f" ]; then echo hook; fi
    done
}

# login_home sets home to that of the login, also under sudo.
login_home() {
    home=${HOME:-/}
    case ${SUDO_USER-} in '' | *[!A-Za-z0-9._-]*) ;; *) eval "home=~$SUDO_USER" ;; esac
}

# read_torch_files prints version and CUDA build of every torch in the usual places, without running a Python, and
# leaves the interpreters in $tmp/pythons.
read_torch_files() {
    login_home
    frame text cmd/torch-files.txt
    if [ -n "$PYTHON" ]; then
        echo "declared $PYTHON"
        case $PYTHON in '~'/*) PYTHON=$home/${PYTHON#??} ;; esac
        echo "$PYTHON" >"$tmp/pythons"
        return
    fi
    : >"$tmp/pythons"
    cd "$R/" || return
    taken=' '
    set --
    for d in opt/*/lib/python3*/site-packages opt/*/envs/*/lib/python3*/site-packages opt/*/*/lib/python3*/site-packages \
        "$home"/.venv/lib/python3*/site-packages "$home"/*/lib/python3*/site-packages "$home"/*/envs/*/lib/python3*/site-packages \
        "$home"/*/.venv/lib/python3*/site-packages "$home"/*/venv/lib/python3*/site-packages "$home"/.conda/envs/*/lib/python3*/site-packages \
        "$home"/.pyenv/versions/*/lib/python3*/site-packages "$home"/.local/lib/python3*/site-packages \
        usr/local/lib/python3*/*-packages usr/lib/python3*/*-packages; do
        if ! [ -r "$d/torch/version.py" ]; then continue; fi
        set -- "$@" "$d/torch/version.py"
        case $d in
        */.local/* | usr/*/dist-packages) p=usr/bin/python3 ;;
        *) p=${d%/lib/python3*}/bin/python3 ;;
        esac
        case $taken in *" $p "*) continue ;; esac
        taken="$taken$p "
        echo "$p" >>"$tmp/pythons"
    done
    if [ $# -gt 0 ]; then grep -aHE '^(__version__|cuda)' "$@" /dev/null; fi
}

# ask_torch PYTHON lets one interpreter describe its torch. Nothing is written: no byte code, no cache.
ask_torch() {
    login_home
    case $1 in */*) p=/${1#/} ;; *) p=$1 ;; esac
    echo "python $p"
    case $p in "$home"/* | [!/]*) ;; *) p=$R$p ;; esac
    cd / || return
    HOME=$home PYTHONDONTWRITEBYTECODE=1 CUDA_CACHE_DISABLE=1 "$p" -c '
import os, sys
def say(key, value):
    print(key, str(value).split("\n")[0][:1000], flush=True)
def attempt(key, f):
    try:
        value = f()
    except BaseException:
        return
    if value not in (None, ""):
        say(key, value)
if "CUDA_VISIBLE_DEVICES" in os.environ:
    say("visible", os.environ["CUDA_VISIBLE_DEVICES"])
try:
    import torch
except BaseException as e:
    say("error", type(e).__name__ + ": " + str(e))
    sys.exit(1)
say("version", torch.__version__)
say("cuda", torch.version.cuda or "")
attempt("archs", lambda: torch._C._cuda_getArchFlags())
def bundled():
    from importlib import metadata
    for d in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"):
        try:
            return metadata.version(d)
        except metadata.PackageNotFoundError:
            pass
attempt("nccl_bundled", bundled)
attempt("nccl", lambda: ".".join(str(n) for n in torch.cuda.nccl.version()))
def loaded():
    for line in open("/proc/self/maps"):
        if "libnccl" in line:
            return line.split()[-1]
attempt("nccl_path", loaded)
attempt("devices", lambda: torch.cuda.device_count())
attempt("works", lambda: torch.cuda.is_available())
' </dev/null
}

# read_torch asks at most three interpreters, each with a deadline of its own.
read_torch() {
    if [ -n "$hung" ]; then return; fi
    n=0
    while [ "$n" -lt 3 ] && IFS= read -r python <&4; do
        n=$((n + 1))
        run "cmd/torch-run-$n.txt" 30 65536 ask_torch "$python"
    done 4<"$tmp/pythons"
} 2>/dev/null

# read_samples asks three times, a second apart. A driver that does not know a field refuses the whole query, so
# the second list holds only old names, in the same columns.
read_samples() {
    q=index,pci.bus_id,pstate,pcie.link.gen.gpucurrent,pcie.link.width.current,utilization.gpu
    if ! nvidia-smi --query-gpu=$q --format=csv,noheader; then
        q=index,pci.bus_id,pstate,pcie.link.gen.current,pcie.link.width.current,utilization.gpu
        nvidia-smi --query-gpu=$q --format=csv,noheader || return
    fi
    sleep 1
    nvidia-smi --query-gpu=$q --format=csv,noheader || return
    sleep 1
    nvidia-smi --query-gpu=$q --format=csv,noheader
}

main() {
    tmp='' ticker=''
    trap finish EXIT
    trap 'exit 1' HUP INT TERM PIPE
    frame begin 1 "$(id -u)"
    start
    run collector/proc 15 3145728 read_proc
    run collector/pci 20 6291456 read_pci
    run collector/config 20 1048576 read_config
    run collector/sys 20 2097152 read_sys
    run collector/rest 10 1048576 read_rest
    read_log
    smi cmd/nvidia-smi-q.xml 60 4194304 nvidia-smi -q -x
    smi cmd/topo-m.txt 20 65536 nvidia-smi topo -m
    smi cmd/p2p-r.txt 20 65536 nvidia-smi topo -p2p r
    smi cmd/p2p-w.txt 20 65536 nvidia-smi topo -p2p w
    smi cmd/gpu-samples.csv 20 65536 read_samples
    run collector/software 10 524288 read_software
    if command -v docker >/dev/null 2>&1; then
        run cmd/docker-info.txt 10 65536 docker info --format '{{println "version" .ServerVersion}}{{println "cgroup" .CgroupDriver}}{{println "default" .DefaultRuntime}}runtimes {{json .Runtimes}}'
    fi
    if command -v squeue >/dev/null 2>&1; then
        node=$(uname -n)
        # running, completing, configuring; numbers of jobs alone, since names are people's
        run cmd/slurm-jobs.txt 10 65536 squeue -h -t R,CG,CF -w "${SLURM_NODE:-${node%%.*}}" -o %i
    fi
    read_torch
    frame end
}

# The call stands on the last line, so that a script cut on its way here runs nothing at all.
main
