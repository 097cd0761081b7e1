# Remedies of driver.version and driver.persistence.

remedy "driver.version/mismatch" {
  title    = "Bring module and libraries of the driver to one version"
  title_zh = "让驱动内核模块与用户态库版本一致"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver {rig}"
  clears   = ["driver.version", "driver.loaded"]

  step {
    text    = "Compare what is loaded with what is installed."
    text_zh = "对比已加载的模块和已安装的版本。"
    command = "head -n1 /proc/driver/nvidia/version; modinfo -F version nvidia; ldconfig -p | grep libcuda.so.1"
  }
  step {
    text    = "Reboot, which loads the installed module."
    text_zh = "重启，加载已安装的模块。"
    command = "sudo systemctl reboot"
  }
  step {
    text    = "In a container it is the other way round: the library there must be the host's, so let the NVIDIA container toolkit bring it in and do not install one."
    text_zh = "容器里则相反：库必须与宿主机一致，由 NVIDIA Container Toolkit 挂载，不要在容器里安装驱动。"
    command = "docker run --rm --gpus all ubuntu nvidia-smi"
  }
}

remedy "driver.version/open-module" {
  title    = "Install the open kernel module"
  title_zh = "安装开源内核模块"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver {rig}"
  clears   = ["driver.version", "driver.loaded", "gpu.count"]

  step {
    text    = "Ubuntu: the package with -open in its name, of branch 570 or later."
    text_zh = "Ubuntu：安装 570 或更新分支中带 -open 的包。"
    command = "sudo apt-get install nvidia-driver-580-server-open"
  }
  step {
    text    = "Debian and Ubuntu with NVIDIA's repository."
    text_zh = "使用 NVIDIA 软件源的 Debian、Ubuntu。"
    command = "sudo apt-get install nvidia-open"
  }
  step {
    text    = "Fedora, RHEL and kin."
    text_zh = "Fedora、RHEL 及其衍生版。"
    command = "sudo dnf install nvidia-open"
  }
  step {
    text    = "Reboot, and see that it is the open one."
    text_zh = "重启后确认是开源模块。"
    command = "grep -i open /proc/driver/nvidia/version"
  }
}

remedy "driver.version/old" {
  title    = "Update the driver to {want} or later"
  title_zh = "把驱动升级到 {want} 或更新"
  params   = { want = "what cards and CUDA need" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.version,runtime {rig}"
  clears   = ["driver.version", "runtime.torch"]

  step {
    text    = "See what the distribution offers."
    text_zh = "查看发行版提供的版本。"
    command = "ubuntu-drivers list --gpgpu 2>/dev/null || apt-cache policy nvidia-driver || dnf list 'nvidia-driver*'"
  }
  step {
    text    = "Ubuntu: install the newest one for servers."
    text_zh = "Ubuntu：安装最新的服务器版驱动。"
    command = "sudo ubuntu-drivers install --gpgpu"
  }
  step {
    text    = "Debian, from NVIDIA's repository (Fedora, RHEL and kin: dnf). nvidia-open is for Turing and later; Maxwell, Pascal and Volta want cuda-drivers-580, the last branch for them; Kepler stays at 470, with a torch of CUDA 11."
    text_zh = "Debian：使用 NVIDIA 官方软件源（Fedora、RHEL 及其衍生版用 dnf）。nvidia-open 适用于 Turing 及更新；Maxwell、Pascal、Volta 用 cuda-drivers-580，这是支持它们的最后一个分支；Kepler 停留在 470，使用 CUDA 11 的 torch。"
    command = "sudo apt-get install nvidia-open"
  }
  step {
    text    = "Reboot."
    text_zh = "重启。"
    command = "sudo systemctl reboot"
  }
}

remedy "driver.version/too-new" {
  title    = "Go back to the {want} branch, the last for these cards"
  title_zh = "退回 {want} 分支，它是支持这些卡的最后一个分支"
  params   = { want = "last" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver,gpu.count {rig}"
  clears   = ["driver.version", "gpu.count"]

  step {
    text    = "Install that branch (Ubuntu; with NVIDIA's repository the package is cuda-drivers-{want}); its proprietary module, since the open one starts with Turing."
    text_zh = "安装该分支（Ubuntu；使用 NVIDIA 软件源时包名为 cuda-drivers-{want}），用闭源模块：开源模块从 Turing 起才支持。"
    command = "sudo apt-get install nvidia-driver-{want}-server"
  }
  step {
    text    = "Keep it from being updated past it."
    text_zh = "锁定版本，避免再被升级。"
    command = "sudo apt-mark hold nvidia-driver-{want}-server && sudo systemctl reboot"
  }
}

remedy "driver.persistence/off" {
  title    = "Keep the cards initialised"
  title_zh = "开启持久模式"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only driver.persistence {rig}"
  clears   = ["driver.persistence"]

  step {
    text    = "Start the daemon that comes with the driver, now and at each boot."
    text_zh = "启用驱动自带的守护进程，立即生效并随开机启动。"
    command = "sudo systemctl enable --now nvidia-persistenced"
  }
  step {
    text    = "Some packages (Ubuntu's) start it with --no-persistence-mode: take that away, and leave the rest of its line."
    text_zh = "有些发行版（如 Ubuntu）的服务带 --no-persistence-mode 参数：只去掉它，保留该行其余内容。"
    command = "systemctl cat nvidia-persistenced | grep -q '^ExecStart=/' && sudo mkdir -p /etc/systemd/system/nvidia-persistenced.service.d && { printf '[Service]\\nExecStart=\\n'; systemctl cat nvidia-persistenced | grep '^ExecStart=/' | tail -n 1 | sed 's/ --no-persistence-mode//'; } | sudo tee /etc/systemd/system/nvidia-persistenced.service.d/override.conf && sudo systemctl daemon-reload && sudo systemctl restart nvidia-persistenced"
  }
  step {
    text    = "Until the next boot, without the daemon."
    text_zh = "不用守护进程、仅本次开机有效的方法。"
    command = "sudo nvidia-smi -pm 1"
  }
}
