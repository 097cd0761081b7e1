# Remedies of link.bandwidth and of copies between cards: data that arrives late, wrong, or never.

remedy "link.bandwidth/slow" {
  title    = "Find what holds {bdf} at {rate} ({expected} over {link})"
  title_zh = "找出是什么把 {bdf} 限制在 {rate}（{link} 应为 {expected}）"
  params   = { bdf = "the card", rate = "a low rate", expected = "more", link = "its link" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only link,topology.p2p {rig}"
  clears   = ["link.bandwidth", "nccl.all-reduce"]

  step {
    text    = "Count the link's errors: a link that errs repeats its packets, and still shows its full width and speed."
    text_zh = "统计链路错误：出错的链路会重传数据包，但宽度和速率看起来仍是满的。"
    command = "cat /sys/bus/pci/devices/{bdf}/aer_dev_correctable /sys/bus/pci/devices/{bdf}/aer_dev_nonfatal"
  }
  step {
    text    = "See that the memory next to the card is used and complete: a copy from another socket's memory, or from few channels, is slower."
    text_zh = "确认使用的是靠近该卡且插满的内存：从另一路 CPU 的内存、或通道不满的内存拷贝都会变慢。"
    command = "cat /sys/bus/pci/devices/{bdf}/numa_node; lscpu | grep -i numa; sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator)'"
  }
  step {
    text    = "Take address translation out of the way: the IOMMU in full translation costs bandwidth."
    text_zh = "取消地址转换：IOMMU 的完整转换会损失带宽。"
    bios    = "iommu"
  }
  step {
    text    = "Let the processor run at full clock, and nothing else copy meanwhile; then measure again."
    text_zh = "让处理器以最高频率运行，且没有其他程序在拷贝；然后重新测量。"
    command = "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; uptime"
  }
  step {
    text    = "If it stays, let the card trade places with one that is fast: a slowness that moves with the card is the card's, one that stays is the slot's or the riser's."
    text_zh = "若仍如此，让它与速度正常的卡互换位置：慢随卡走是卡的问题，留在原处是插槽或延长线的问题。"
    hand    = true
  }
}

remedy "link.bandwidth/crowded" {
  title    = "Give the cards memory that keeps up ({bdf}: {rate} while all copy, {expected} alone)"
  title_zh = "让内存跟得上所有卡（{bdf}：同时拷贝时 {rate}，单独时 {expected}）"
  params   = { bdf = "the card", rate = "less", expected = "more" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only link,topology.p2p {rig}"
  clears   = ["link.bandwidth", "nccl.all-reduce"]

  step {
    text    = "See how many memory channels are filled: all cards together copy as fast as the host's memory allows."
    text_zh = "查看插了多少内存通道：所有卡一起拷贝的速度取决于主机内存。"
    command = "sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator|Configured Memory Speed)'"
  }
  step {
    text    = "On two sockets, keep each rank's memory with its card."
    text_zh = "双路机器上，让每个 rank 的内存靠近其显卡。"
    command = "nvidia-smi topo -m"
  }
  step {
    text    = "On EPYC, try four NUMA nodes for each socket (NPS4), and see whether the rate rises."
    text_zh = "EPYC 上可试试每路四个 NUMA 节点（NPS4），看速度是否提高。"
    hand    = true
  }
}

remedy "topology.p2p/corrupt" {
  title    = "Train nothing over P2P between {a} and {b}: it does not carry data"
  title_zh = "不要在 {a} 与 {b} 之间用 P2P 训练：数据传不对"
  params   = { a = "the cards", b = "its neighbour" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only link,topology.p2p {rig}"
  clears   = ["topology.p2p", "nccl.all-reduce"]

  step {
    text    = "Until it is mended, go without P2P: NCCL then copies through host memory."
    text_zh = "修好之前不用 P2P：NCCL 会改走主机内存。"
    command = "export NCCL_P2P_DISABLE=1"
  }
  step {
    text    = "See which driver claims it: a build that is not NVIDIA's own is a patched one, and early ones for these cards corrupted data. Install NVIDIA's own, newest one."
    text_zh = "看是哪个驱动声称支持：非 NVIDIA 官方的版本是修改版，早期用于这些卡的版本会损坏数据。请安装 NVIDIA 官方的最新驱动。"
    command = "cat /proc/driver/nvidia/version; nvidia-smi topo -p2p r"
  }
  step {
    text    = "On cards that do have P2P: take address translation out of the way."
    text_zh = "若该卡确实支持 P2P：取消地址转换。"
    bios    = "iommu"
  }
  step {
    text    = "And let requests pass between slots without a detour."
    text_zh = "并让请求在插槽之间直达，不绕行。"
    bios    = "acs"
  }
}

remedy "topology.p2p/slow" {
  title    = "Find the detour between {a} and {b}"
  title_zh = "找出 {a} 与 {b} 之间绕行的原因"
  params   = { a = "the cards", b = "its neighbour" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only link,topology.p2p {rig}"
  clears   = ["topology.p2p", "nccl.all-reduce"]

  step {
    text    = "Look for bridges that redirect (ReqRedir+, CmpltRedir+): what passes them goes up to the CPU and down again."
    text_zh = "查找做了重定向的桥（ReqRedir+、CmpltRedir+）：经过它们的数据会先上行到 CPU 再下行。"
    command = "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl' | grep -B1 -E 'ReqRedir\\+|CmpltRedir\\+'"
  }
  step {
    text    = "Let requests pass between slots without a detour."
    text_zh = "让请求在插槽之间直达，不绕行。"
    bios    = "acs"
  }
  step {
    text    = "Or go without P2P, and compare the all-reduce: for cards on two sockets host memory can be the faster way."
    text_zh = "或不用 P2P，比较 all-reduce：对分处两路 CPU 的卡，走主机内存可能更快。"
    command = "export NCCL_P2P_DISABLE=1"
  }
}

remedy "nccl.all-reduce/wedged" {
  title    = "Reboot the host: its driver is stuck in the kernel"
  title_zh = "重启主机：驱动卡死在内核中"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only nccl {rig}"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "See which processes are in state D; they cannot be ended, and every further nvidia-smi joins them."
    text_zh = "查看哪些进程处于 D 状态；它们无法结束，之后每个 nvidia-smi 都会同样卡住。"
    command = "ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /D/'"
  }
  step {
    text    = "Read what the driver said."
    text_zh = "查看驱动的日志。"
    command = "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 30"
  }
  step {
    text    = "End all jobs, and reboot; where that does not go through, cut the power by the BMC or the supply's switch."
    text_zh = "结束所有作业并重启；若无法完成，用 BMC 或电源开关断电。"
    command = "sudo systemctl reboot"
  }
  step {
    text    = "Before the next run, set NCCL_P2P_DISABLE=1: a P2P path that does not work is the usual cause."
    text_zh = "下次运行前设置 NCCL_P2P_DISABLE=1：不可用的 P2P 通路是常见原因。"
    command = "export NCCL_P2P_DISABLE=1"
  }
}
