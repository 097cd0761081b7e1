# Remedies of an all-reduce across hosts (preflight probe nccl --across).

remedy "nccl.all-reduce/unreachable" {
  title    = "Let {from} reach {to}"
  title_zh = "让 {from} 能连到 {to}"
  params   = { from = "one rig", to = "the other", ports = "all TCP ports", host = "that rig" }
  reboot   = "no"
  verify   = "preflight probe nccl --across -i rigs.hcl"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "See which firewall stands on {host}, and what it lets in. NCCL takes ports at random: {ports}."
    text_zh = "查看 {host} 上有什么防火墙、放行了什么。NCCL 的端口是随机的：{ports}。"
    command = "sudo ufw status 2>/dev/null; sudo firewall-cmd --list-all 2>/dev/null; sudo nft list ruleset 2>/dev/null | head -n 60"
  }
  step {
    text    = "Open everything between the rigs of the group, on the network that only they share."
    text_zh = "在只有这组机器共用的网络上，放行组内机器之间的所有连接。"
    command = "sudo ufw allow from {from} 2>/dev/null || { sudo firewall-cmd --permanent --zone=trusted --add-source={from} && sudo firewall-cmd --reload; }"
  }
  step {
    text    = "Or the wrong network was chosen: name the interface of the cable between the rigs, nic in each rig of rigs.hcl."
    text_zh = "也可能选错了网络：在 rigs.hcl 的每台主机中用 nic 指明互联网线所在的接口。"
    hand    = true
  }
}

remedy "nccl.all-reduce/nccl-versions" {
  title    = "Give all rigs one version of libnccl ({versions})"
  title_zh = "让所有机器使用同一版本的 libnccl（{versions}）"
  params   = { versions = "they differ" }
  reboot   = "no"
  verify   = "preflight probe nccl --across -i rigs.hcl"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "See what each rig has: the system's, and the one that PyTorch brings. A job takes PyTorch's."
    text_zh = "看每台机器上有哪些：系统自带的，以及 PyTorch 附带的。训练任务使用 PyTorch 附带的。"
    command = "ldconfig -p | grep libnccl; python3 -c 'import torch; print(torch.cuda.nccl.version())'"
  }
  step {
    text    = "Install the same PyTorch everywhere, from one index, or one image; or the same libnccl2 package, and hold it."
    text_zh = "各处从同一源安装同一版本的 PyTorch，或使用同一镜像；或安装同一版本的 libnccl2 并锁定。"
    command = "sudo apt-mark hold libnccl2"
  }
}

remedy "nccl.all-reduce/slow-network" {
  title    = "Find what slows the network on {interface} of {host} ({busbw}, {expected} allowed)"
  title_zh = "找出 {host} 的 {interface} 为何慢（{busbw}，网络允许 {expected}）"
  params   = { interface = "the interface", host = "a rig", busbw = "slow", expected = "more" }
  reboot   = "no"
  verify   = "preflight probe nccl --across -i rigs.hcl"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Count what the interface drops and repeats, and see what speed it agreed on."
    text_zh = "查看接口的丢包和重传，以及协商的速率。"
    command = "ip -s link show dev {interface}; sudo ethtool {interface} | grep -E 'Speed|Duplex'; nstat -az TcpRetransSegs"
  }
  step {
    text    = "Measure the cable without NCCL, with several streams: when that is slow, it is the network."
    text_zh = "不经 NCCL、用多条流测线路：若也慢，就是网络的问题。"
    command = "iperf3 -c {host} -P 8 -t 10"
  }
  step {
    text    = "With TCP, let NCCL use more threads and sockets; from 25 Gbit/s on one is not enough."
    text_zh = "走 TCP 时让 NCCL 用更多线程和连接；25 Gbit/s 以上单个不够。"
    command = "export NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4"
  }
  step {
    text    = "With InfiniBand or RoCE cards: see that NCCL uses them (NET/IB in its log), and that locked memory is not limited."
    text_zh = "有 InfiniBand 或 RoCE 网卡时：确认 NCCL 在用（日志中的 NET/IB），且锁定内存没有受限。"
    command = "ibstat 2>/dev/null | grep -E 'State|Rate'; ulimit -l"
  }
}

remedy "nccl.all-reduce/across-hang" {
  title    = "Find what {host} waits for"
  title_zh = "找出 {host} 在等什么"
  params   = { host = "the rig" }
  reboot   = "no"
  verify   = "preflight probe nccl --across -i rigs.hcl"
  clears   = ["nccl.all-reduce"]

  step {
    text    = "Prove that rig alone first: what hangs alone hangs with others as well."
    text_zh = "先单独验证该机：单机卡死，多机也会卡死。"
    command = "preflight probe nccl -i rigs.hcl {rig}"
  }
  step {
    text    = "See that all rigs take the same interface, and none a bridge of Docker or a tunnel; name it with nic in rigs.hcl, and in jobs."
    text_zh = "确认所有机器使用同一接口，而不是 Docker 网桥或隧道；在 rigs.hcl 用 nic 指明，训练任务中也要设置。"
    command = "ip -br addr; export NCCL_SOCKET_IFNAME=INTERFACE"
  }
  step {
    text    = "Large packets that are dropped hang a job that small ones do not: the MTU must be the same on all rigs and on the switch."
    text_zh = "大包被丢会让任务卡死而小包不会：所有机器和交换机的 MTU 必须一致。"
    command = "ip link | grep mtu; ping -M do -s 8972 -c 3 OTHER_RIG"
  }
  step {
    text    = "With InfiniBand or RoCE: try without. If it then runs, it is the fabric (RoCE needs lossless switches: PFC, ECN)."
    text_zh = "有 InfiniBand 或 RoCE 时：先不用它试。若能运行，就是网络的问题（RoCE 需要无损交换机：PFC、ECN）。"
    command = "export NCCL_IB_DISABLE=1"
  }
}
