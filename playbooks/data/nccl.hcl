# What NCCL and its jobs need of a host.

playbook "nccl-env" {
  title    = "Tell NCCL which paths to take"
  title_zh = "告诉 NCCL 使用哪些路径"
  doc      = "Writes /etc/nccl.conf, which NCCL reads in every job of this host: P2P switched off where it was found broken, the interface of the group's network, and whatever else is asked for."
  clears   = ["topology.p2p/corrupt", "topology.p2p/unproven", "nccl.all-reduce/hang"]
  notes    = ["Switching P2P off hides a broken path, it does not mend it: transfers go through host memory, slower and right."]

  param "p2p_disable" {
    default = true
    doc     = "switch P2P off (NCCL_P2P_DISABLE=1)"
  }
  param "p2p_level" {
    default = ""
    doc     = "NCCL_P2P_LEVEL: LOC, NVL, PIX, PXB, PHB or SYS; empty leaves it to NCCL"
  }
  param "interface" {
    default = ""
    doc     = "NCCL_SOCKET_IFNAME; empty: nic of the rig, else NCCL's choice"
  }
  param "more" {
    default = []
    doc     = "further lines, NAME=VALUE"
  }

  task "conf" {
    file {
      path    = "/etc/nccl.conf"
      content = join("\n", concat(["# Written by preflight."], param.p2p_disable ? ["NCCL_P2P_DISABLE=1"] : [], param.p2p_level != "" ? ["NCCL_P2P_LEVEL=${param.p2p_level}"] : [], param.interface != "" ? ["NCCL_SOCKET_IFNAME==${param.interface}"] : (rig.nic != "" ? ["NCCL_SOCKET_IFNAME==${rig.nic}"] : []), param.more, [""]))
      mode    = "0644"
    }
  }
}

playbook "nccl-firewall" {
  title    = "Open the firewall between the rigs of a group"
  title_zh = "放行组内机器之间的防火墙"
  doc      = "Lets in everything from the addresses of the group's other rigs, by ufw or firewalld, whichever runs; where neither runs there is nothing to open. NCCL takes ports at random, so single ports are not enough."
  clears   = ["nccl.all-reduce/unreachable"]

  param "from" {
    default = []
    doc     = "addresses or networks to let in, for example 10.0.0.0/24; empty: the addresses of the group's other rigs, as rigs.hcl has them"
  }

  locals {
    from = length(param.from) > 0 ? param.from : group.addresses
  }

  task "open" {
    when = length(local.from) > 0
    shell {
      words = "let in ${join(", ", local.from)}"
      check = <<-EOT
        if command -v ufw >/dev/null 2>&1 && ufw status | grep -q '^Status: active'; then
          for a in ${join(" ", local.from)}; do ufw status | grep -q "ALLOW.*$a" || exit 1; done
        elif command -v firewall-cmd >/dev/null 2>&1 && firewall-cmd --state >/dev/null 2>&1; then
          for a in ${join(" ", local.from)}; do firewall-cmd --permanent --zone=trusted --query-source="$a" >/dev/null 2>&1 || exit 1; done
        fi
      EOT
      apply = <<-EOT
        if command -v ufw >/dev/null 2>&1 && ufw status | grep -q '^Status: active'; then
          for a in ${join(" ", local.from)}; do ufw allow from "$a"; done
        else
          for a in ${join(" ", local.from)}; do firewall-cmd --permanent --zone=trusted --add-source="$a"; done
          firewall-cmd --reload
        fi
      EOT
      undo = <<-EOT
        if command -v ufw >/dev/null 2>&1 && ufw status | grep -q '^Status: active'; then
          for a in ${join(" ", local.from)}; do ufw delete allow from "$a"; done
        else
          for a in ${join(" ", local.from)}; do firewall-cmd --permanent --zone=trusted --remove-source="$a"; done
          firewall-cmd --reload
        fi
      EOT
    }
  }
}

playbook "memlock" {
  title    = "Let jobs lock all of their memory"
  title_zh = "允许作业锁定全部内存"
  doc      = "Lifts the limit of locked memory for logins and for units, which RDMA needs: NCCL over InfiniBand registers its buffers."
  clears   = ["host.memlock/low"]
  notes    = ["The limit holds for sessions that begin afterwards: log in anew, restart slurmd."]

  task "limits" {
    limits {
      name    = "90-preflight-memlock"
      content = "# Written by preflight.\n* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock unlimited\nroot hard memlock unlimited\n"
    }
  }
  task "units" {
    file {
      path    = "/etc/systemd/system.conf.d/90-preflight-memlock.conf"
      content = "# Written by preflight.\n[Manager]\nDefaultLimitMEMLOCK=infinity\n"
      after   = ["systemctl daemon-reload"]
    }
  }
}

playbook "container-shm" {
  title    = "Give containers enough shared memory"
  title_zh = "为容器提供足够的共享内存"
  doc      = "Sets the default size of /dev/shm in Docker's containers: 64 MiB is not enough for NCCL and for data loaders."
  clears   = ["container.shm/small"]
  notes    = ["Containers that run keep what they have: start them anew. Kubernetes: mount an emptyDir of medium Memory on /dev/shm."]

  param "size" {
    default = "32G"
    doc     = "size of /dev/shm in each container, as Docker writes it"
  }

  task "docker" {
    json {
      path  = "/etc/docker/daemon.json"
      key   = ["default-shm-size"]
      value = param.size
      after = ["systemctl try-reload-or-restart docker.service || true"]
    }
  }
}
