# Remedies of topology.p2p and nccl.all-reduce.

remedy "topology.p2p/required" {
  title    = "Get peer-to-peer access, or do without it"
  title_zh = "获得卡间直连（P2P），或不依赖它"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only topology.p2p {rig}"
  clears   = ["topology.p2p"]

  step {
    text    = "Read why each pair is refused: GNS is the card (GeForce of the 40 and 50 series never have it with NVIDIA's own driver), CNS the chipset, TNS the topology."
    text_zh = "看每一对为何被拒：GNS 是卡不支持（GeForce 40 和 50 系列用 NVIDIA 官方驱动始终没有），CNS 是芯片组，TNS 是拓扑。"
    command = "nvidia-smi topo -p2p r"
  }
  step {
    text    = "GeForce: take require_p2p out of the profile, in rigs.hcl, and plan with transfers through host memory; or use workstation cards, or cards with an NVLink bridge."
    text_zh = "GeForce：在 rigs.hcl 的配置档中去掉 require_p2p，按经由主机内存传输来规划；或改用工作站卡，或带 NVLink 桥的卡。"
    hand    = true
  }
  step {
    text    = "Other cards: let requests pass between slots without a detour through the root complex."
    text_zh = "其他卡：让请求在插槽之间直达，不绕行根复合体。"
    bios    = "acs"
  }
  step {
    text    = "Other cards: take address translation out of the way."
    text_zh = "其他卡：取消地址转换。"
    bios    = "iommu"
  }
  step {
    text    = "Or keep the IOMMU and let it pass addresses through (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=iommu=pt)."
    text_zh = "或保留 IOMMU，但使其直通（Debian、Ubuntu；其他系统：grubby --update-kernel=ALL --args=iommu=pt）。"
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub"
  }
}

remedy "topology.p2p/unproven" {
  title    = "Prove that peer-to-peer transfers arrive, or switch them off"
  title_zh = "证明 P2P 传输确实送达，否则关闭它"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only topology.p2p,nccl.all-reduce {rig}"
  clears   = ["topology.p2p"]

  step {
    text    = "See which driver claims it: a build that is not NVIDIA's own is a patched one, and early ones for these cards corrupted data."
    text_zh = "看是哪个驱动声称支持：非 NVIDIA 官方的版本是修改版，而早期用于这些卡的版本会损坏数据。"
    command = "cat /proc/driver/nvidia/version"
  }
  step {
    text    = "Move data over every pair and have it checked: #wrong must be 0 in each line."
    text_zh = "在每一对卡之间传输数据并校验：每行的 #wrong 都必须为 0。"
    command = "all_reduce_perf -b 8 -e 256M -f 2 -g $(nvidia-smi -L | wc -l) -c 1"
  }
  step {
    text    = "If values are wrong or it hangs, go without."
    text_zh = "若数值错误或卡死，就不用 P2P。"
    command = "echo 'NCCL_P2P_DISABLE=1' | sudo tee -a /etc/nccl.conf"
  }
  step {
    text    = "And replace the driver by NVIDIA's own, newest one."
    text_zh = "并换成 NVIDIA 官方的最新驱动。"
    command = "sudo ubuntu-drivers install --gpgpu && sudo systemctl reboot"
  }
}

remedy "nccl.all-reduce/hang" {
  title    = "Find what the all-reduce waits for"
  title_zh = "找出 all-reduce 在等什么"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Try it without peer-to-peer. If it now runs, transfers between cards get lost: go on with ACS and IOMMU below."
    text_zh = "不用 P2P 再试一次。若现在能跑，说明卡间传输丢失：继续按下面检查 ACS 和 IOMMU。"
    command = "NCCL_P2P_DISABLE=1 NCCL_DEBUG=WARN timeout 120 all_reduce_perf -b 8 -e 64M -f 2 -g $(nvidia-smi -L | wc -l)"
  }
  step {
    text    = "Let requests pass between slots without a detour (ReqRedir+ and CmpltRedir+ of a bridge above the cards are the sign)."
    text_zh = "让请求在插槽之间直达（卡上游桥的 ReqRedir+ 和 CmpltRedir+ 就是绕行的标志）。"
    bios    = "acs"
  }
  step {
    text    = "Switches need it in the kernel as well; this lists the bridges that redirect. Clear one for a test by: setpci -s BRIDGE ECAP_ACS+0x6.w=0000. It lasts until the next reboot."
    text_zh = "交换芯片还需在内核中处理；此命令列出有重定向的桥。可临时清除一个来测试：setpci -s BRIDGE ECAP_ACS+0x6.w=0000，重启后失效。"
    command = "sudo lspci -vvv | awk '/^[0-9a-f]/{d=$1} /ACSCtl:.*(ReqRedir|CmpltRedir)\\+/{print d}'"
  }
  step {
    text    = "Take address translation out of the way."
    text_zh = "取消地址转换。"
    bios    = "iommu"
  }
  step {
    text    = "If it hangs without peer-to-peer too: shared memory may be full. Remove what dead runs left, with no NCCL job running."
    text_zh = "若不用 P2P 也卡死：共享内存可能已满。在没有 NCCL 作业运行时，清除死掉的运行留下的文件。"
    command = "df -h /dev/shm; sudo rm -f /dev/shm/nccl-*"
  }
  step {
    text    = "Cards that stay at 100 % with no process after such a hang are wedged; only a reboot frees them for certain."
    text_zh = "这样卡死之后，没有进程却一直 100 % 的卡已经挂住；只有重启才能确保释放。"
    command = "sudo systemctl reboot"
  }
}

remedy "nccl.all-reduce/wrong-data" {
  title    = "Find the card or the path that corrupts data; train nothing until then"
  title_zh = "找出损坏数据的卡或通路；在此之前不要训练"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Try without peer-to-peer. If #wrong becomes 0, the driver claims a path that does not work: keep this setting, or install NVIDIA's own driver."
    text_zh = "不用 P2P 试一次。若 #wrong 变为 0，说明驱动声称的通路不可用：保留此设置，或安装 NVIDIA 官方驱动。"
    command = "NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 256M -f 2 -g $(nvidia-smi -L | wc -l) -c 1"
  }
  step {
    text    = "Else test pair by pair: the card that is in every bad pair is the one."
    text_zh = "否则逐对测试：每个坏配对中都有的那张卡就是它。"
    command = "n=$(nvidia-smi -L | wc -l); for i in $(seq 1 $((n-1))); do echo \"0 and $i\"; CUDA_VISIBLE_DEVICES=0,$i all_reduce_perf -b 64M -e 64M -g 2 -c 1 | grep -E 'Out of bounds'; done"
  }
  step {
    text    = "Look for memory and link errors of that card."
    text_zh = "查看该卡的显存和链路错误。"
    command = "nvidia-smi -q -d ECC,ROW_REMAPPER | grep -vE ': (0|N/A)$'; sudo dmesg | grep -E 'Xid|AER'"
  }
  step {
    text    = "Take an overclock of memory or an undervolt off, reseat the card without a riser and test again; if it stays, return the card."
    text_zh = "取消显存超频或降压，不经延长线重新插卡后再测；若仍有，退换该卡。"
    hand    = true
  }
}

remedy "nccl.all-reduce/error" {
  title    = "Mend what NCCL reports: {error}"
  title_zh = "解决 NCCL 报告的问题：{error}"
  params   = { error = "an error" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Read the first warning, which names the cause; later ones follow from it."
    text_zh = "看第一条警告，它说明原因；后面的都由它引起。"
    command = "NCCL_DEBUG=WARN all_reduce_perf -b 8 -e 8 -g $(nvidia-smi -L | wc -l) 2>&1 | grep -iE 'warn|failure|error' | head -n 5"
  }
  step {
    text    = "'/dev/shm … No space left' or 'failed to extend': make room, or in a container start it with --ipc=host or --shm-size=16g."
    text_zh = "'/dev/shm … No space left' 或 'failed to extend'：腾出空间；在容器中则以 --ipc=host 或 --shm-size=16g 启动。"
    command = "df -h /dev/shm; sudo rm -f /dev/shm/nccl-*"
  }
  step {
    text    = "'system not yet initialized' (802) on boards with NVSwitch: the fabric manager must run, in the driver's own version."
    text_zh = "带 NVSwitch 的主板上出现 'system not yet initialized'（802）：必须运行与驱动同版本的 fabric manager。"
    command = "sudo systemctl restart nvidia-fabricmanager; systemctl status nvidia-fabricmanager --no-pager | head -n 5; nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n1"
  }
  step {
    text    = "'out of memory' or 'busy': another job, or an exclusive compute mode, holds a card."
    text_zh = "'out of memory' 或 'busy'：另一个作业或独占计算模式占用了卡。"
    command = "nvidia-smi --query-compute-apps=gpu_bus_id,pid,name,used_memory --format=csv; sudo nvidia-smi -c DEFAULT"
  }
  step {
    text    = "'Cannot allocate memory' in ibv_…: lift the limit of locked memory for logins, and log in anew."
    text_zh = "ibv_… 的 'Cannot allocate memory'：放开登录用户的锁定内存上限，并重新登录。"
    command = "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo tee /etc/security/limits.d/90-memlock.conf; ulimit -l"
  }
}

remedy "nccl.all-reduce/transport" {
  title    = "Keep traffic between cards of one host off {transport}"
  title_zh = "不让同机卡间流量走 {transport}"
  params   = { transport = "the network" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Find the setting that forbids shared memory or peer-to-peer."
    text_zh = "找出禁止共享内存或 P2P 的设置。"
    command = "env | grep ^NCCL_; cat /etc/nccl.conf ~/.nccl.conf 2>/dev/null"
  }
  step {
    text    = "Take it out for this shell, and for good from the file that was found."
    text_zh = "在当前 shell 中取消它，并从找到的文件中永久删除。"
    command = "unset NCCL_SHM_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL; sudo sed -i '/NCCL_SHM_DISABLE/d' /etc/nccl.conf"
  }
  step {
    text    = "Ranks in several containers do not see each other's shared memory: give them one."
    text_zh = "分处多个容器的 rank 看不到彼此的共享内存：让它们共用一个。"
    command = "docker run --gpus all --ipc=host --cap-add SYS_NICE IMAGE"
  }
}

remedy "nccl.all-reduce/slow" {
  title    = "Find what holds the all-reduce at {busbw} ({expected} expected)"
  title_zh = "找出是什么把 all-reduce 限制在 {busbw}（预期 {expected}）"
  params   = { busbw = "a low rate", expected = "more" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only pcie,nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Watch every link while it runs: the narrowest or slowest one sets the pace of all."
    text_zh = "运行时观察每条链路：最窄或最慢的那条决定整体速度。"
    command = "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv -l 1 & all_reduce_perf -b 256M -e 256M -g $(nvidia-smi -L | wc -l) -n 100; kill $!"
  }
  step {
    text    = "See the way that data takes, card to card: P2P is direct, SHM goes through host memory, NET should not occur."
    text_zh = "看数据在卡间走哪条路：P2P 是直连，SHM 经由主机内存，NET 不应出现。"
    command = "NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8 -g $(nvidia-smi -L | wc -l) 2>&1 | grep -oE 'via [A-Z0-9]+' | sort | uniq -c"
  }
  step {
    text    = "Through host memory, the CPU's memory sets the limit: all channels filled, the governor on performance."
    text_zh = "经由主机内存时，瓶颈是 CPU 内存：插满所有通道，调速器设为 performance。"
    command = "sudo dmidecode -t 17 | grep -cE '^\\sSize: [0-9]'; grep -h . /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; sudo cpupower frequency-set -g performance"
  }
  step {
    text    = "On two sockets, a smaller buffer that stays in the cache can help; keep it if the rate rises."
    text_zh = "双路机器上，能留在缓存里的较小缓冲区可能有帮助；速度提高就保留。"
    command = "NCCL_BUFFSIZE=1048576 all_reduce_perf -b 256M -e 256M -g $(nvidia-smi -L | wc -l)"
  }
  step {
    text    = "Take address translation out of the way; on EPYC, also try four NUMA nodes for each socket (NPS4)."
    text_zh = "取消地址转换；EPYC 上还可试试每路四个 NUMA 节点（NPS4）。"
    bios    = "iommu"
  }
}

remedy "nccl.all-reduce/ranks" {
  title    = "Let every card take part"
  title_zh = "让每张卡都参与"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce,gpu.count {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "See what hides cards: a variable of the login shell, or a compute mode."
    text_zh = "看是什么隐藏了卡：登录 shell 的变量，或计算模式。"
    command = "env | grep -E 'CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES'; nvidia-smi --query-gpu=index,compute_mode --format=csv"
  }
  step {
    text    = "Set both back."
    text_zh = "把两者都恢复。"
    command = "unset CUDA_VISIBLE_DEVICES; sudo nvidia-smi -c DEFAULT"
  }
  step {
    text    = "One rank for each communicator, under mpirun, means nccl-tests built without MPI: build it anew."
    text_zh = "mpirun 下每个通信域只有一个 rank，说明 nccl-tests 编译时没有 MPI：重新编译。"
    command = "make -C ~/nccl-tests clean && make -C ~/nccl-tests MPI=1 -j"
  }
}

remedy "nccl.all-reduce/library" {
  title    = "Give nccl-tests the libraries that it was built for"
  title_zh = "为 nccl-tests 提供它编译时所用的库"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only nccl.all-reduce {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "See which library is missing or of another version."
    text_zh = "看缺哪个库，或哪个库版本不同。"
    command = "ldd $(command -v all_reduce_perf || ls ~/nccl-tests/build/all_reduce_perf) | grep -E 'nccl|cudart|mpi|not found'"
  }
  step {
    text    = "'driver version is insufficient': either libcuda.so.1 is not found at all, or the driver is older than the CUDA of NCCL. Compare."
    text_zh = "'driver version is insufficient'：要么根本找不到 libcuda.so.1，要么驱动旧于 NCCL 的 CUDA。请比较。"
    command = "ldconfig -p | grep -E 'libcuda.so.1|libnccl'; nvidia-smi | grep -o 'CUDA Version: [0-9.]*'"
  }
  step {
    text    = "Install NCCL for that CUDA (with NVIDIA's repository)."
    text_zh = "为该 CUDA 安装 NCCL（使用 NVIDIA 官方软件源）。"
    command = "sudo apt-get install -y libnccl2 libnccl-dev || sudo dnf install -y libnccl libnccl-devel"
  }
  step {
    text    = "Build the tests anew against it. 'no kernel image' on Blackwell cards wants NCCL 2.26 or newer."
    text_zh = "基于它重新编译测试程序。Blackwell 卡上的 'no kernel image' 需要 NCCL 2.26 或更新。"
    command = "test -d ~/nccl-tests || git clone https://github.com/NVIDIA/nccl-tests ~/nccl-tests; make -C ~/nccl-tests clean && make -C ~/nccl-tests -j"
  }
}
