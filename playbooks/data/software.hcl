# Programs that training needs.

playbook "container-toolkit" {
  title    = "Let containers use the cards"
  title_zh = "让容器使用显卡"
  doc      = "Installs the NVIDIA container toolkit from NVIDIA's repository or a mirror of it, gives Docker the nvidia runtime and writes the CDI description that containerd, Podman and newer Docker use."
  clears   = ["container.runtime/no-toolkit", "container.runtime/not-registered", "container.runtime/stale-cdi"]
  when     = host.driver.loaded
  why_not  = "the NVIDIA driver is not loaded: mend that first"

  param "mirror" {
    default = "https://nvidia.github.io/libnvidia-container"
    doc     = "repository of the toolkit (in China: https://mirrors.ustc.edu.cn/libnvidia-container)"
  }
  param "docker" {
    default = true
    doc     = "give Docker the nvidia runtime"
  }
  param "cdi" {
    default = true
    doc     = "write /etc/cdi/nvidia.yaml"
  }

  param "fingerprint" {
    default = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
    doc     = "fingerprint of the repository's key: another key is not kept"
  }

  task "repository" {
    repository {
      name        = "nvidia-container-toolkit"
      key         = "${param.mirror}/gpgkey"
      fingerprint = param.fingerprint
      apt         = "${param.mirror}/stable/deb/$(ARCH) /"
      dnf         = "${param.mirror}/stable/rpm/$basearch"
    }
  }
  task "package" {
    package {
      apt = ["nvidia-container-toolkit"]
      dnf = ["nvidia-container-toolkit"]
    }
  }
  task "docker" {
    when = param.docker
    json {
      path  = "/etc/docker/daemon.json"
      key   = ["runtimes", "nvidia"]
      value = { path = "nvidia-container-runtime", args = [] }
      after = ["systemctl try-reload-or-restart docker.service || true"]
    }
  }
  task "cdi" {
    when = param.cdi
    shell {
      words = "write /etc/cdi/nvidia.yaml for this driver"
      check = "grep -q '${host.driver.version}' \"$PREFLIGHT_ROOT/etc/cdi/nvidia.yaml\""
      apply = "mkdir -p \"$PREFLIGHT_ROOT/etc/cdi\"\nnvidia-ctk cdi generate --output=\"$PREFLIGHT_ROOT/etc/cdi/nvidia.yaml\""
      undo  = "rm -f \"$PREFLIGHT_ROOT/etc/cdi/nvidia.yaml\""
    }
  }
}

playbook "nccl-tests" {
  title    = "Install nccl-tests"
  title_zh = "安装 nccl-tests"
  doc      = "Builds NVIDIA's nccl-tests from source with the CUDA toolkit and the libnccl of the host. preflight measures without it; it is what others will ask for."
  clears   = []
  notes    = ["nvcc must be there: install the CUDA toolkit of the driver's CUDA version first."]

  param "source" {
    default = "https://github.com/NVIDIA/nccl-tests.git"
    doc     = "git repository (in China: a mirror, for example https://gitee.com/mirrors/nccl-tests.git)"
  }
  param "dir" {
    default = "/opt/nccl-tests"
    doc     = "where it is built"
  }
  param "cuda" {
    default = "/usr/local/cuda"
    doc     = "CUDA toolkit"
  }

  task "tools" {
    package {
      apt = ["git", "make", "g++", "libnccl2", "libnccl-dev"]
      dnf = ["git", "make", "gcc-c++", "libnccl", "libnccl-devel"]
    }
  }
  task "build" {
    shell {
      words = "build ${param.dir}/build/all_reduce_perf from ${param.source}"
      check = "test -x \"$PREFLIGHT_ROOT${param.dir}/build/all_reduce_perf\""
      apply = "test -d \"$PREFLIGHT_ROOT${param.dir}/.git\" || git clone --depth 1 '${param.source}' \"$PREFLIGHT_ROOT${param.dir}\"\nmake -C \"$PREFLIGHT_ROOT${param.dir}\" CUDA_HOME='${param.cuda}'"
      undo  = "rm -rf \"$PREFLIGHT_ROOT${param.dir}\""
    }
  }
}

playbook "pytorch-env" {
  title    = "Install PyTorch for the driver's CUDA"
  title_zh = "按驱动的 CUDA 安装 PyTorch"
  doc      = "Makes a virtual environment with torch from the wheel index that fits the driver, and proves that it sees every card. Name it in rigs.hcl afterwards: python = \"/opt/preflight/torch/bin/python\"."
  clears   = ["runtime.torch/missing", "runtime.torch/cpu-build", "runtime.torch/driver-old"]
  when     = host.driver.loaded
  why_not  = "the NVIDIA driver is not loaded: mend that first"

  param "dir" {
    default = "/opt/preflight/torch"
    doc     = "folder of the environment"
  }
  param "index" {
    default = "auto"
    doc     = "wheel index: auto is https://download.pytorch.org/whl/cu118, cu124 or cu128 by the driver's CUDA (in China: https://mirrors.aliyun.com/pytorch-wheels/cu124)"
  }
  param "version" {
    default = ""
    doc     = "version of torch; empty is the newest of the index"
  }

  task "venv" {
    package {
      apt = ["python3-venv"]
      dnf = ["python3"]
    }
  }
  task "torch" {
    shell {
      words = "install torch${param.version == "" ? "" : " ${param.version}"} into ${param.dir}, which sees every card"
      check = "\"$PREFLIGHT_ROOT${param.dir}/bin/python\" -c 'import sys, torch; sys.exit(torch.cuda.device_count() != ${coalesce(rig.cards, length(host.cards))})'"
      apply = "python3 -m venv \"$PREFLIGHT_ROOT${param.dir}\"\n\"$PREFLIGHT_ROOT${param.dir}/bin/pip\" install --quiet 'torch${param.version == "" ? "" : "==${param.version}"}' --index-url '${param.index != "auto" ? param.index : "https://download.pytorch.org/whl/${version_at_least(host.driver.cuda, "12.8") ? "cu128" : version_at_least(host.driver.cuda, "12.4") ? "cu124" : "cu118"}"}'"
      undo  = "rm -rf \"$PREFLIGHT_ROOT${param.dir}\""
    }
  }
}
