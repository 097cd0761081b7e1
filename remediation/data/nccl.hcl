# Remedies of topology.p2p and nccl.all-reduce.

remedy "topology.p2p/required" {
  title  = "Get peer-to-peer access, or do without it"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only topology.p2p {rig}"
  clears = ["topology.p2p"]

  step {
    text    = "Read why each pair is refused: GNS is the card (GeForce of the 40 and 50 series never have it with NVIDIA's own driver), CNS the chipset, TNS the topology."
    command = "nvidia-smi topo -p2p r"
  }
  step {
    text = "GeForce: take require_p2p out of the profile, in rigs.hcl, and plan with transfers through host memory; or use workstation cards, or cards with an NVLink bridge."
    hand = true
  }
  step {
    text = "Other cards: let requests pass between slots without a detour through the root complex."
    bios = "acs"
  }
  step {
    text = "Other cards: take address translation out of the way."
    bios = "iommu"
  }
  step {
    text    = "Or keep the IOMMU and let it pass addresses through (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=iommu=pt)."
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub"
  }
}

remedy "topology.p2p/unproven" {
  title  = "Prove that peer-to-peer transfers arrive, or switch them off"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only topology.p2p,nccl.all-reduce {rig}"
  clears = ["topology.p2p"]

  step {
    text    = "See which driver claims it: a build that is not NVIDIA's own is a patched one, and early ones for these cards corrupted data."
    command = "cat /proc/driver/nvidia/version"
  }
  step {
    text    = "Move data over every pair and have it checked: #wrong must be 0 in each line."
    command = "all_reduce_perf -b 8 -e 256M -f 2 -g $(nvidia-smi -L | wc -l) -c 1"
  }
  step {
    text    = "If values are wrong or it hangs, go without."
    command = "echo 'NCCL_P2P_DISABLE=1' | sudo tee -a /etc/nccl.conf"
  }
  step {
    text    = "And replace the driver by NVIDIA's own, newest one."
    command = "sudo ubuntu-drivers install --gpgpu && sudo systemctl reboot"
  }
}

remedy "nccl.all-reduce/hang" {
  title  = "Find what the all-reduce waits for"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "Try it without peer-to-peer. If it now runs, transfers between cards get lost: go on with ACS and IOMMU below."
    command = "NCCL_P2P_DISABLE=1 NCCL_DEBUG=WARN timeout 120 all_reduce_perf -b 8 -e 64M -f 2 -g $(nvidia-smi -L | wc -l)"
  }
  step {
    text = "Let requests pass between slots without a detour (ReqRedir+ and CmpltRedir+ of a bridge above the cards are the sign)."
    bios = "acs"
  }
  step {
    text    = "Switches need it in the kernel as well; this lists the bridges that redirect. Clear one for a test by: setpci -s BRIDGE ECAP_ACS+0x6.w=0000. It lasts until the next reboot."
    command = "sudo lspci -vvv | awk '/^[0-9a-f]/{d=$1} /ACSCtl:.*(ReqRedir|CmpltRedir)\\+/{print d}'"
  }
  step {
    text = "Take address translation out of the way."
    bios = "iommu"
  }
  step {
    text    = "If it hangs without peer-to-peer too: shared memory may be full. Remove what dead runs left, with no NCCL job running."
    command = "df -h /dev/shm; sudo rm -f /dev/shm/nccl-*"
  }
  step {
    text    = "Cards that stay at 100 % with no process after such a hang are wedged; only a reboot frees them for certain."
    command = "sudo systemctl reboot"
  }
}

remedy "nccl.all-reduce/wrong-data" {
  title  = "Find the card or the path that corrupts data; train nothing until then"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "Try without peer-to-peer. If #wrong becomes 0, the driver claims a path that does not work: keep this setting, or install NVIDIA's own driver."
    command = "NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 256M -f 2 -g $(nvidia-smi -L | wc -l) -c 1"
  }
  step {
    text    = "Else test pair by pair: the card that is in every bad pair is the one."
    command = "n=$(nvidia-smi -L | wc -l); for i in $(seq 1 $((n-1))); do echo \"0 and $i\"; CUDA_VISIBLE_DEVICES=0,$i all_reduce_perf -b 64M -e 64M -g 2 -c 1 | grep -E 'Out of bounds'; done"
  }
  step {
    text    = "Look for memory and link errors of that card."
    command = "nvidia-smi -q -d ECC,ROW_REMAPPER | grep -vE ': (0|N/A)$'; sudo dmesg | grep -E 'Xid|AER'"
  }
  step {
    text = "Take an overclock of memory or an undervolt off, reseat the card without a riser and test again; if it stays, return the card."
    hand = true
  }
}

remedy "nccl.all-reduce/error" {
  title  = "Mend what NCCL reports: {error}"
  params = { error = "an error" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "Read the first warning, which names the cause; later ones follow from it."
    command = "NCCL_DEBUG=WARN all_reduce_perf -b 8 -e 8 -g $(nvidia-smi -L | wc -l) 2>&1 | grep -iE 'warn|failure|error' | head -n 5"
  }
  step {
    text    = "'/dev/shm … No space left' or 'failed to extend': make room, or in a container start it with --ipc=host or --shm-size=16g."
    command = "df -h /dev/shm; sudo rm -f /dev/shm/nccl-*"
  }
  step {
    text    = "'system not yet initialized' (802) on boards with NVSwitch: the fabric manager must run, in the driver's own version."
    command = "sudo systemctl restart nvidia-fabricmanager; systemctl status nvidia-fabricmanager --no-pager | head -n 5; nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n1"
  }
  step {
    text    = "'out of memory' or 'busy': another job, or an exclusive compute mode, holds a card."
    command = "nvidia-smi --query-compute-apps=gpu_bus_id,pid,name,used_memory --format=csv; sudo nvidia-smi -c DEFAULT"
  }
  step {
    text    = "'Cannot allocate memory' in ibv_…: lift the limit of locked memory for logins, and log in anew."
    command = "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo tee /etc/security/limits.d/90-memlock.conf; ulimit -l"
  }
}

remedy "nccl.all-reduce/transport" {
  title  = "Keep traffic between cards of one host off {transport}"
  params = { transport = "the network" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "Find the setting that forbids shared memory or peer-to-peer."
    command = "env | grep ^NCCL_; cat /etc/nccl.conf ~/.nccl.conf 2>/dev/null"
  }
  step {
    text    = "Take it out for this shell, and for good from the file that was found."
    command = "unset NCCL_SHM_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL; sudo sed -i '/NCCL_SHM_DISABLE/d' /etc/nccl.conf"
  }
  step {
    text    = "Ranks in several containers do not see each other's shared memory: give them one."
    command = "docker run --gpus all --ipc=host --cap-add SYS_NICE IMAGE"
  }
}

remedy "nccl.all-reduce/slow" {
  title  = "Find what holds the all-reduce at {busbw} ({expected} expected)"
  params = { busbw = "a low rate", expected = "more" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only pcie,nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "Watch every link while it runs: the narrowest or slowest one sets the pace of all."
    command = "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv -l 1 & all_reduce_perf -b 256M -e 256M -g $(nvidia-smi -L | wc -l) -n 100; kill $!"
  }
  step {
    text    = "See the way that data takes, card to card: P2P is direct, SHM goes through host memory, NET should not occur."
    command = "NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8 -g $(nvidia-smi -L | wc -l) 2>&1 | grep -oE 'via [A-Z0-9]+' | sort | uniq -c"
  }
  step {
    text    = "Through host memory, the CPU's memory sets the limit: all channels filled, the governor on performance."
    command = "sudo dmidecode -t 17 | grep -cE '^\\sSize: [0-9]'; grep -h . /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; sudo cpupower frequency-set -g performance"
  }
  step {
    text    = "On two sockets, a smaller buffer that stays in the cache can help; keep it if the rate rises."
    command = "NCCL_BUFFSIZE=1048576 all_reduce_perf -b 256M -e 256M -g $(nvidia-smi -L | wc -l)"
  }
  step {
    text = "Take address translation out of the way; on EPYC, also try four NUMA nodes for each socket (NPS4)."
    bios = "iommu"
  }
}

remedy "nccl.all-reduce/ranks" {
  title  = "Let every card take part"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce,gpu.count {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "See what hides cards: a variable of the login shell, or a compute mode."
    command = "env | grep -E 'CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES'; nvidia-smi --query-gpu=index,compute_mode --format=csv"
  }
  step {
    text    = "Set both back."
    command = "unset CUDA_VISIBLE_DEVICES; sudo nvidia-smi -c DEFAULT"
  }
  step {
    text    = "One rank for each communicator, under mpirun, means nccl-tests built without MPI: build it anew."
    command = "make -C ~/nccl-tests clean && make -C ~/nccl-tests MPI=1 -j"
  }
}

remedy "nccl.all-reduce/library" {
  title  = "Give nccl-tests the libraries that it was built for"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears = ["nccl.all-reduce"]

  step {
    text    = "See which library is missing or of another version."
    command = "ldd $(command -v all_reduce_perf || ls ~/nccl-tests/build/all_reduce_perf) | grep -E 'nccl|cudart|mpi|not found'"
  }
  step {
    text    = "'driver version is insufficient': either libcuda.so.1 is not found at all, or the driver is older than the CUDA of NCCL. Compare."
    command = "ldconfig -p | grep -E 'libcuda.so.1|libnccl'; nvidia-smi | grep -o 'CUDA Version: [0-9.]*'"
  }
  step {
    text    = "Install NCCL for that CUDA (with NVIDIA's repository)."
    command = "sudo apt-get install -y libnccl2 libnccl-dev || sudo dnf install -y libnccl libnccl-devel"
  }
  step {
    text    = "Build the tests anew against it. 'no kernel image' on Blackwell cards wants NCCL 2.26 or newer."
    command = "test -d ~/nccl-tests || git clone https://github.com/NVIDIA/nccl-tests ~/nccl-tests; make -C ~/nccl-tests clean && make -C ~/nccl-tests -j"
  }
}
