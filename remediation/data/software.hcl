# Remedies of topology.numa, ram.channels, runtime.torch, container.*, and host.*.

remedy "topology.numa/split" {
  title    = "Put both cards at one processor"
  title_zh = "把两张卡插到同一颗 CPU 下"
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only topology.numa {rig}"
  clears   = ["topology.numa", "nccl.all-reduce"]

  step {
    text    = "See which slot belongs to which processor: the NUMA affinity of each card, and SYS between them."
    text_zh = "查看每个插槽属于哪颗 CPU：各卡的 NUMA 亲和性，以及两卡之间是否为 SYS。"
    command = "nvidia-smi topo -m"
  }
  step {
    text    = "Power off and move one card to a free x16 slot of the other card's processor; the slot's name on the board often says CPU1 or CPU2."
    text_zh = "关机，把其中一张卡移到另一张卡所属 CPU 的空闲 x16 插槽；主板丝印通常标有 CPU1 或 CPU2。"
    hand    = true
  }
  step {
    text    = "If it has to stay: bind each process to the processor of its card, so that at least its buffers are near."
    text_zh = "如果只能这样：把每个进程绑定到其卡所在的 CPU，至少让缓冲区靠近卡。"
    command = "numactl --cpunodebind=0 --membind=0 python train.py"
  }
}

remedy "topology.numa/uneven" {
  title    = "Spread the cards evenly over the processors"
  title_zh = "让显卡在各 CPU 间均匀分布"
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only topology.numa {rig}"
  clears   = ["topology.numa"]

  step {
    text    = "See which card is at which processor."
    text_zh = "查看每张卡属于哪颗 CPU。"
    command = "nvidia-smi topo -m"
  }
  step {
    text    = "Power off and move cards so that each processor has the same number, or all cards to one processor if it has slots for them."
    text_zh = "关机调整插槽，使每颗 CPU 下的卡数相同；若一颗 CPU 的插槽足够，也可全部插到它下面。"
    hand    = true
  }
}

remedy "topology.numa/no-memory" {
  title    = "Give node {node} memory of its own"
  title_zh = "给节点 {node} 装上自己的内存"
  params   = { node = "without memory" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only topology.numa,ram.channels {rig}"
  clears   = ["topology.numa", "ram.channels"]

  step {
    text    = "See which nodes have memory."
    text_zh = "查看哪些节点有内存。"
    command = "grep MemTotal /sys/devices/system/node/node*/meminfo"
  }
  step {
    text    = "Power off and fit modules at that processor, one in each channel, as many as at the other; or move half of those that are there."
    text_zh = "关机，在该 CPU 的每个通道各装一条，数量与另一颗相同；也可以从另一侧挪一半过来。"
    hand    = true
  }
  step {
    text    = "Until then NCCL may fail to place buffers there: switch its host memory allocator off in the job's script."
    text_zh = "在此之前 NCCL 可能无法在该节点分配缓冲区：在作业脚本中关闭它的主机内存分配方式。"
    command = "export NCCL_CUMEM_HOST_ENABLE=0"
  }
}

remedy "ram.channels/empty" {
  title    = "Fill all {channels} memory channels, {used} are used"
  title_zh = "插满全部 {channels} 个内存通道，现在用了 {used} 个"
  params   = { used = "fewer", channels = "its" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only ram.channels {rig}"
  clears   = ["ram.channels"]

  step {
    text    = "See which sockets are filled, with what."
    text_zh = "查看哪些插槽有内存、是什么规格。"
    command = "sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator|Bank Locator|Speed|Part Number)'"
  }
  step {
    text    = "Power off and fit modules of the same size and speed, one into each empty channel: first the socket of each channel that the board marks (A1, B1 …, often in another colour). Where there are more modules than channels, move the second of a channel."
    text_zh = "关机，给每个空通道各加一条同容量、同频率的内存：先插主板标记的那一组（A1、B1……，通常颜色不同）；若某通道已有两条，把第二条挪过去。"
    hand    = true
  }
  step {
    text    = "Run on full bandwidth again: read it with all processors at work."
    text_zh = "确认带宽恢复：用全部 CPU 核读写内存。"
    command = "sysbench memory --memory-block-size=1M --memory-total-size=200G --threads=$(nproc) run"
  }
}

remedy "ram.channels/unequal" {
  title    = "Make the memory channels alike"
  title_zh = "让各内存通道配置一致"
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only ram.channels {rig}"
  clears   = ["ram.channels"]

  step {
    text    = "See sizes and speeds by socket."
    text_zh = "查看每个插槽的容量和频率。"
    command = "sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator|Speed|Configured Memory Speed|Part Number)'"
  }
  step {
    text    = "Power off and arrange the modules so that every channel has the same size, with modules of one speed; otherwise part of the memory is not interleaved, and all run at the slowest module's speed."
    text_zh = "关机重新分配，使每个通道容量相同、频率相同；否则部分内存不能交织，且全部降到最慢一条的频率。"
    hand    = true
  }
}

remedy "runtime.torch/missing" {
  title    = "Install PyTorch into {python}"
  title_zh = "在 {python} 中安装 PyTorch"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "Install the build for a CUDA that the driver runs (cu128 wants driver 525.60.13 or newer; Blackwell cards want cu128 at least, Pascal and Volta cu126). A Python of the distribution refuses pip: make an environment first (python3 -m venv)."
    text_zh = "安装驱动支持的 CUDA 版本对应的构建（cu128 需要驱动 525.60.13 或更新；Blackwell 至少需要 cu128，Pascal、Volta 用 cu126）。系统自带的 Python 不允许 pip 安装：先建虚拟环境（python3 -m venv）。"
    command = "{python} -m pip install torch --index-url https://download.pytorch.org/whl/cu128"
  }
  step {
    text    = "If training uses another Python, name it: python = \"/path/to/bin/python3\" in the rig's block of rigs.hcl."
    text_zh = "如果训练用的是另一个 Python，在 rigs.hcl 的 rig 块里写明：python = \"/path/to/bin/python3\"。"
    hand    = true
  }
}

remedy "runtime.torch/broken" {
  title    = "Make torch of {python} importable"
  title_zh = "修复 {python} 的 torch 导入"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "See the whole error."
    text_zh = "查看完整报错。"
    command = "{python} -c 'import torch'"
  }
  step {
    text    = "A library that is not found or lacks a symbol: see whether LD_LIBRARY_PATH puts a foreign CUDA, cuDNN or NCCL first, and try without it."
    text_zh = "找不到库或缺少符号：看 LD_LIBRARY_PATH 是否把别的 CUDA、cuDNN 或 NCCL 排在前面，去掉再试。"
    command = "env -u LD_LIBRARY_PATH {python} -c 'import torch; print(torch.__version__)'"
  }
  step {
    text    = "Otherwise install it afresh with what it brings."
    text_zh = "否则连同依赖重新安装。"
    command = "{python} -m pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128"
  }
}

remedy "runtime.torch/cpu-build" {
  title    = "Replace the CPU build of torch in {python}"
  title_zh = "把 {python} 中的 CPU 版 torch 换成 CUDA 版"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "Take out the build without CUDA, and install one with it."
    text_zh = "卸载 CPU 版，安装 CUDA 版。"
    command = "{python} -m pip uninstall -y torch && {python} -m pip install torch --index-url https://download.pytorch.org/whl/cu128"
  }
  step {
    text    = "With conda, a CPU build comes when it saw no card at the time: name the build."
    text_zh = "conda 在装包时看不到显卡会选 CPU 版：指定构建即可。"
    command = "conda install 'pytorch=*=*cuda*' -c conda-forge"
  }
}

remedy "runtime.torch/driver-old" {
  title    = "Bring the driver to {want}, or take a torch for an older CUDA"
  title_zh = "把驱动升级到 {want}，或换用更老 CUDA 的 torch"
  params   = { want = "a newer version", python = "the Python that trains" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only runtime.torch,driver {rig}"
  clears   = ["runtime.torch", "driver.version"]

  step {
    text    = "Ubuntu: install a newer driver, in its form for servers, and reboot."
    text_zh = "Ubuntu：安装更新的服务器版驱动并重启。"
    command = "sudo ubuntu-drivers install --gpgpu && sudo systemctl reboot"
  }
  step {
    text    = "Where the driver must stay: a build of torch for CUDA 12 runs from driver 525.60.13 on, one for CUDA 11 (cu118 in place of cu126) from 450.80.02 on."
    text_zh = "驱动不能动时：CUDA 12 的 torch 在驱动 525.60.13 起即可运行，CUDA 11 的（把 cu126 换成 cu118）从 450.80.02 起。"
    command = "{python} -m pip install torch --index-url https://download.pytorch.org/whl/cu126"
  }
}

remedy "runtime.torch/arch" {
  title    = "Install a torch that has code for {card}"
  title_zh = "安装支持 {card} 的 torch"
  params   = { card = "these cards", python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "See what this build has code for."
    text_zh = "查看该构建支持哪些架构。"
    command = "{python} -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.get_arch_list())'"
  }
  step {
    text    = "Blackwell: a build of CUDA 12.8 or later."
    text_zh = "Blackwell：需要 CUDA 12.8 或更新的构建。"
    command = "{python} -m pip install --upgrade torch --index-url https://download.pytorch.org/whl/cu128"
  }
  step {
    text    = "Pascal, Volta and older: a build of CUDA 12.6, since CUDA 13 makes no code for them."
    text_zh = "Pascal、Volta 及更老：用 CUDA 12.6 的构建，CUDA 13 已不支持它们。"
    command = "{python} -m pip install torch --index-url https://download.pytorch.org/whl/cu126"
  }
}

remedy "runtime.torch/no-cuda" {
  title    = "Let torch of {python} reach the driver"
  title_zh = "让 {python} 的 torch 能用上驱动"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "See what CUDA itself says."
    text_zh = "看 CUDA 自己的报错。"
    command = "{python} -c 'import torch; torch.cuda.init()'"
  }
  step {
    text    = "Error 803 or 999: module and library do not fit, or nvidia_uvm is missing. Load it, and see that libcuda is the driver's own and no stub of a toolkit."
    text_zh = "错误 803 或 999：内核模块与库不匹配，或缺少 nvidia_uvm。加载它，并确认 libcuda 是驱动自带的而不是工具包的 stub。"
    command = "sudo modprobe nvidia_uvm; ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH"
  }
  step {
    text    = "Error 802 on machines with NVSwitch: the fabric manager must run, in the driver's version."
    text_zh = "带 NVSwitch 的机器报 802：fabric manager 必须运行且版本与驱动一致。"
    command = "systemctl status nvidia-fabricmanager"
  }
}

remedy "runtime.torch/fewer" {
  title    = "Let torch of {python} see every card"
  title_zh = "让 {python} 的 torch 看到所有显卡"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch,gpu.count {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "Compare what the driver lists with what torch counts, and what may hide cards."
    text_zh = "对比驱动列出的卡与 torch 的计数，并查看可能隐藏显卡的变量。"
    command = "nvidia-smi -L; env | grep -E 'CUDA|NVIDIA_VISIBLE'; {python} -c 'import torch; print(torch.cuda.device_count())'"
  }
  step {
    text    = "In a container: start it with all cards."
    text_zh = "容器里：启动时给出所有显卡。"
    command = "docker run --rm --gpus all ubuntu nvidia-smi -L"
  }
  step {
    text    = "A service or a scheduler may limit devices by cgroup: see which device files this session may open."
    text_zh = "服务或调度器可能通过 cgroup 限制设备：查看本会话能打开哪些设备文件。"
    command = "ls -l /dev/nvidia[0-9]*"
  }
}

remedy "runtime.torch/visible" {
  title    = "Take CUDA_VISIBLE_DEVICES out of the login"
  title_zh = "从登录环境中去掉 CUDA_VISIBLE_DEVICES"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch"]

  step {
    text    = "Find where it is set."
    text_zh = "找出在哪里设置的。"
    command = "grep -rn CUDA_VISIBLE_DEVICES /etc/environment /etc/environment.d /etc/profile /etc/profile.d ~/.profile ~/.bashrc ~/.ssh/environment 2>/dev/null"
  }
  step {
    text    = "Remove the line there, or unset it in the job's script; cards should be chosen by the job that needs a subset."
    text_zh = "删掉该行，或在作业脚本里取消；需要部分显卡的作业自己指定。"
    command = "unset CUDA_VISIBLE_DEVICES; {python} -c 'import torch; print(torch.cuda.device_count())'"
  }
}

remedy "runtime.torch/nccl-override" {
  title    = "Let torch of {python} load the NCCL that it brings"
  title_zh = "让 {python} 的 torch 加载自带的 NCCL"
  params   = { python = "the Python that trains" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only runtime.torch {rig}"
  clears   = ["runtime.torch", "nccl.all-reduce"]

  step {
    text    = "See which file is loaded, and what puts it first."
    text_zh = "查看加载的是哪个文件、由什么变量带入。"
    command = "env | grep -E 'LD_LIBRARY_PATH|LD_PRELOAD|NCCL'; ldconfig -p | grep libnccl"
  }
  step {
    text    = "Start the training without it."
    text_zh = "不带这些变量启动训练。"
    command = "env -u LD_LIBRARY_PATH -u LD_PRELOAD {python} -c 'import torch; print(torch.cuda.nccl.version())'"
  }
  step {
    text    = "If the other NCCL is meant, all rigs of a job must load the same one: then leave it, and see cluster.consistency."
    text_zh = "如果是有意使用另一个 NCCL，则一个作业的所有机器必须相同：保持不变，并关注 cluster.consistency。"
    hand    = true
  }
}

remedy "container.runtime/no-toolkit" {
  title    = "Install nvidia-container-toolkit for {engine}"
  title_zh = "为 {engine} 安装 nvidia-container-toolkit"
  params   = { engine = "the container engine" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.runtime {rig}"
  clears   = ["container.runtime"]

  step {
    text    = "Debian, Ubuntu: with NVIDIA's repository set up, install it."
    text_zh = "Debian、Ubuntu：配置好 NVIDIA 的仓库后安装。"
    command = "sudo apt-get update && sudo apt-get install -y nvidia-container-toolkit"
  }
  step {
    text    = "Docker: register the runtime. The restart ends containers unless live-restore is on."
    text_zh = "Docker：注册运行时。重启会结束容器，除非启用了 live-restore。"
    command = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
  }
  step {
    text    = "Podman and others: write the CDI specification."
    text_zh = "Podman 等：生成 CDI 规范。"
    command = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
  }
  step {
    text    = "See a card from inside."
    text_zh = "在容器里看到显卡。"
    command = "docker run --rm --gpus all ubuntu nvidia-smi -L"
  }
}

remedy "container.runtime/not-registered" {
  title    = "Tell {engine} of the cards"
  title_zh = "让 {engine} 认识显卡"
  params   = { engine = "the container engine" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.runtime {rig}"
  clears   = ["container.runtime"]

  step {
    text    = "Podman and every engine with CDI: write the specification."
    text_zh = "Podman 及所有支持 CDI 的引擎：生成规范。"
    command = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && nvidia-ctk cdi list"
  }
  step {
    text    = "containerd: register the runtime."
    text_zh = "containerd：注册运行时。"
    command = "sudo nvidia-ctk runtime configure --runtime=containerd && sudo systemctl restart containerd"
  }
  step {
    text    = "See a card from inside."
    text_zh = "在容器里看到显卡。"
    command = "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi -L"
  }
}

remedy "container.runtime/stale-cdi" {
  title    = "Write the CDI specification anew"
  title_zh = "重新生成 CDI 规范"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.runtime {rig}"
  clears   = ["container.runtime"]

  step {
    text    = "Generate it for the driver that runs."
    text_zh = "按当前驱动重新生成。"
    command = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
  }
  step {
    text    = "From toolkit 1.18 on a service keeps it current; switch it on where it is there."
    text_zh = "toolkit 1.18 起有服务自动保持更新；有的话启用它。"
    command = "sudo systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
  }
}

remedy "container.runtime/no-cgroups" {
  title    = "Set no-cgroups back to false"
  title_zh = "把 no-cgroups 改回 false"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.runtime {rig}"
  clears   = ["container.runtime"]

  step {
    text    = "The setting is meant for engines without root, and stays as it is where docker info lists rootless. With Docker as root it keeps containers from the cards: set it back. Docker's restart ends containers unless live-restore is on."
    text_zh = "该设置只用于 rootless 引擎：docker info 显示 rootless 时保持不变。以 root 运行的 Docker 会因此打不开显卡，应改回。重启 Docker 会结束容器，除非启用了 live-restore。"
    command = "sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false && sudo systemctl restart docker"
  }
  step {
    text    = "See a card from inside."
    text_zh = "在容器里看到显卡。"
    command = "docker run --rm --gpus all ubuntu nvidia-smi -L"
  }
}

remedy "container.shm/small" {
  title    = "Start the container with more shared memory"
  title_zh = "启动容器时加大共享内存"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.shm {rig}"
  clears   = ["container.shm", "nccl.all-reduce"]

  step {
    text    = "Docker, Podman: share the host's, or give it a size."
    text_zh = "Docker、Podman：与宿主机共享，或指定大小。"
    command = "docker run --gpus all --ipc=host --ulimit memlock=-1 IMAGE"
  }
  step {
    text    = "Or by size; a data loader with many workers wants tens of GB."
    text_zh = "或指定大小；worker 多的数据加载需要几十 GB。"
    command = "docker run --gpus all --shm-size=16g IMAGE"
  }
  step {
    text    = "Kubernetes: mount a volume of memory at /dev/shm: volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}] and volumeMounts: [{name: shm, mountPath: /dev/shm}]."
    text_zh = "Kubernetes：把内存卷挂到 /dev/shm：volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]，volumeMounts: [{name: shm, mountPath: /dev/shm}]。"
    hand    = true
  }
  step {
    text    = "Until then NCCL can do without, slower."
    text_zh = "在此之前 NCCL 可以不用共享内存，但更慢。"
    command = "export NCCL_SHM_DISABLE=1"
  }
}

remedy "container.shm/full" {
  title    = "Clear left-over segments out of /dev/shm"
  title_zh = "清理 /dev/shm 里的残留段"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only container.shm {rig}"
  clears   = ["container.shm", "nccl.all-reduce"]

  step {
    text    = "See what lies there, and whether a process still holds it."
    text_zh = "查看里面有什么、是否还有进程占用。"
    command = "ls -lh /dev/shm | head; fuser -v /dev/shm/nccl-* 2>&1 | head"
  }
  step {
    text    = "Only with no training running, in no container that shares it: remove what NCCL and torch left, one by one."
    text_zh = "仅在没有训练（包括共享该目录的其他容器）运行时：逐个删除 NCCL 和 torch 的残留。"
    command = "ps -C python,python3 -o pid,user,etime,args; rm -i /dev/shm/nccl-* /dev/shm/torch_*"
  }
}

remedy "host.memlock/low" {
  title    = "Let processes lock as much memory as they ask"
  title_zh = "放开锁定内存上限"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only host.memlock {rig}"
  clears   = ["host.memlock"]

  step {
    text    = "For logins."
    text_zh = "对登录会话。"
    command = "printf '* soft memlock unlimited\\n* hard memlock unlimited\\nroot soft memlock unlimited\\nroot hard memlock unlimited\\n' | sudo tee /etc/security/limits.d/95-memlock.conf"
  }
  step {
    text    = "For what systemd starts (slurmd, dockerd), then restart those services."
    text_zh = "对 systemd 启动的服务（slurmd、dockerd），随后重启它们。"
    command = "sudo mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultLimitMEMLOCK=infinity\\n' | sudo tee /etc/systemd/system.conf.d/95-memlock.conf && sudo systemctl daemon-reexec"
  }
  step {
    text    = "In containers."
    text_zh = "在容器里。"
    command = "docker run --ulimit memlock=-1 IMAGE"
  }
  step {
    text    = "Log in anew and look."
    text_zh = "重新登录后查看。"
    command = "ulimit -l"
  }
}

remedy "host.ports/busy" {
  title    = "Free port 29500, or meet on another"
  title_zh = "释放 29500 端口，或改用其他端口"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only host.ports {rig}"
  clears   = ["host.ports"]

  step {
    text    = "See who listens."
    text_zh = "查看谁在监听。"
    command = "sudo ss -ltnp 'sport = :29500'"
  }
  step {
    text    = "A training that was killed may have left a process: end it. Otherwise let the next one choose."
    text_zh = "被杀掉的训练可能残留进程：结束它。否则让下一个训练自选端口。"
    command = "torchrun --standalone --nproc_per_node=gpu train.py"
  }
  step {
    text    = "Across rigs: name a free port on all of them."
    text_zh = "多机：在所有机器上指定同一个空闲端口。"
    command = "torchrun --master_port=29400 --nproc_per_node=gpu train.py"
  }
}

remedy "host.ports/ephemeral" {
  title    = "Keep port 29500 out of the kernel's hands"
  title_zh = "不让内核占用 29500 端口"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only host.ports {rig}"
  clears   = ["host.ports"]

  step {
    text    = "Reserve it at once and for every boot, beside the ports that are reserved already."
    text_zh = "在已保留的端口之外再保留它：立即生效，每次启动也生效。"
    command = "printf 'net.ipv4.ip_local_reserved_ports = %s\\n' \"$(sed 's/$/,29500/; s/^,//' /proc/sys/net/ipv4/ip_local_reserved_ports)\" | sudo tee /etc/sysctl.d/95-torch-port.conf && sudo sysctl -p /etc/sysctl.d/95-torch-port.conf"
  }
  step {
    text    = "See what is in force."
    text_zh = "查看当前生效的值。"
    command = "sysctl net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports"
  }
}
