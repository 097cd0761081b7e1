# Remedies of driver.loaded.

remedy "driver.loaded/not-installed" {
  title  = "Install the NVIDIA driver"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Install the headers of the running kernel, so that the module can be built (Debian, Ubuntu; on Fedora and RHEL: kernel-devel-$(uname -r))."
    command = "sudo apt-get update && sudo apt-get install -y linux-headers-$(uname -r)"
  }
  step {
    text    = "Ubuntu: install the driver that fits the cards, in its form for servers."
    command = "sudo ubuntu-drivers install --gpgpu"
  }
  step {
    text    = "Debian, with the non-free component switched on."
    command = "sudo apt-get install -y nvidia-driver nvidia-smi"
  }
  step {
    text    = "Fedora, RHEL and kin, with NVIDIA's own repository."
    command = "sudo dnf install -y nvidia-open"
  }
  step {
    text    = "Reboot, then see that every card is listed."
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/not-loaded" {
  title  = "Load the NVIDIA driver"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Load it by hand; the message says what is in the way."
    command = "sudo modprobe nvidia && nvidia-smi -L"
  }
  step {
    text    = "'Module not found' after a kernel update: build it for the running kernel."
    command = "sudo apt-get install -y linux-headers-$(uname -r); sudo dkms autoinstall && dkms status"
  }
  step {
    text    = "'No such device' or 'Operation not permitted': the kernel's log has the reason."
    command = "sudo dmesg | grep -iE 'nvrm|nvidia|module verification|key was rejected' | tail -n 30"
  }
}

remedy "driver.loaded/nouveau" {
  title  = "Keep nouveau away from the cards"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Forbid nouveau."
    command = "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
  }
  step {
    text    = "Put that into the image that starts the system, or nouveau comes back from there."
    command = "sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all"
  }
  step {
    text    = "Reboot, and see that nvidia is 'in use' on every card. If nvidia-smi is not there at all, install the driver first."
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/version-mismatch" {
  title  = "Bring the kernel module and the libraries to one version"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Compare the module in the kernel with the one on disk: the package was updated while the old module kept running."
    command = "head -n1 /proc/driver/nvidia/version; modinfo -F version nvidia"
  }
  step {
    text    = "Reboot; this always helps when the two on disk agree."
    command = "sudo systemctl reboot"
  }
  step {
    text    = "If it stays, two installations lie over each other (a .run installer and packages). See which libraries are there, and remove the .run one."
    command = "ldconfig -p | grep -E 'libcuda|libnvidia-ml'; sudo nvidia-uninstall"
  }
  step {
    text    = "Keep unattended updates from doing it again."
    command = "sudo apt-mark hold $(dpkg-query -W -f '$${Package} ' 'nvidia-*' 'libnvidia-*')"
  }
}

remedy "driver.loaded/vfio" {
  title  = "Take {bdf} back from virtual machines"
  params = { bdf = "the card" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Find what reserves it: ids for vfio-pci on the kernel's command line or in a modprobe file, or an override."
    command = "cat /proc/cmdline; grep -rn vfio /etc/modprobe.d /etc/modules-load.d; driverctl list-overrides 2>/dev/null"
  }
  step {
    text    = "Remove an override by driverctl, where one is listed."
    command = "sudo driverctl unset-override {bdf}"
  }
  step {
    text    = "Otherwise delete the ids from the file that was found (vfio-pci.ids= or options vfio-pci ids=), and renew the images."
    command = "sudo update-grub; sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all"
  }
  step {
    text    = "Reboot, and see that nvidia is 'in use'."
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/unbound" {
  title  = "Find out why the driver does not take {bdf}"
  params = { bdf = "the card" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded,firmware.above-4g {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "Read the driver's own words. 'not supported by the … driver' wants another driver, 'BAR1 is 0M' wants address space, 'RmInitAdapter failed' is the card or its power."
    command = "sudo dmesg | grep -iE 'NVRM|nvidia' | tail -n 40"
  }
  step {
    text    = "Offer the card to the driver once more, and read the log again."
    command = "echo {bdf} | sudo tee /sys/bus/pci/drivers/nvidia/bind; sudo dmesg | tail -n 20"
  }
  step {
    text    = "A card that is newer than the driver: install a newer driver, then reboot."
    command = "sudo ubuntu-drivers install --gpgpu && sudo systemctl reboot"
  }
  step {
    text = "'RmInitAdapter failed' that stays: shut down, pull the mains plugs for 30 seconds, push the card's power plugs in until they click, and start again."
    hand = true
  }
}

remedy "driver.loaded/hung" {
  title  = "Free the driver that no longer answers"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "List processes stuck in the kernel (state D). They cannot be ended, and every further nvidia-smi joins them."
    command = "ps -eo pid,stat,wchan:24,args | awk '$2 ~ /^D/'"
  }
  step {
    text    = "Read which card is the cause, by its Xid."
    command = "sudo dmesg | grep -E 'Xid|fallen off|NVRM' | tail -n 30"
  }
  step {
    text    = "End all jobs on the cards, then reboot."
    command = "sudo systemctl reboot"
  }
  step {
    text    = "If the reboot does not go through, cut the power: by the BMC where there is one, else at the supply's switch."
    command = "ipmitool -I lanplus -H BMC-ADDRESS -U USER -a chassis power cycle"
  }
}

remedy "driver.loaded/card-lost" {
  title  = "Find why {bdf} fell off the bus"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only driver.loaded,pcie.width {rig}"
  clears = ["driver.loaded", "gpu.count", "pcie.width"]

  step {
    text    = "Read what came before: Xid 79 alone points to power or the link, after many PCIe errors to the riser, at over 85 °C to heat."
    command = "sudo dmesg | grep -E 'Xid|fallen off|AER|PCIe Bus Error' | tail -n 40"
  }
  step {
    text = "Shut down and pull the mains plugs for 30 seconds; a card that fell off does not come back by a warm reboot."
    hand = true
  }
  step {
    text = "Push its power plugs in until they click, each from a cable of its own and without a splitter. Reseat the card; with a riser, leave the riser out or replace it."
    hand = true
  }
  step {
    text    = "Try the job again with less power. If the card now holds out, the supply or its cables are the cause."
    command = "sudo nvidia-smi -pl 300"
  }
  step {
    text = "If it falls off in another slot as well, return the card."
    hand = true
  }
}

remedy "driver.loaded/open-module" {
  title  = "Use NVIDIA's open kernel modules, which these cards need"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "See which kind is installed: 'NVIDIA' is the closed one, 'Dual MIT/GPL' the open one."
    command = "modinfo -F license nvidia"
  }
  step {
    text    = "Ubuntu: install the open form (its name ends in -open; take the newest that is listed)."
    command = "ubuntu-drivers list --gpgpu | grep -- -open; sudo apt-get install -y nvidia-driver-570-server-open"
  }
  step {
    text    = "With NVIDIA's own repository (Debian, Fedora, RHEL)."
    command = "sudo apt-get install -y nvidia-open || sudo dnf install -y nvidia-open"
  }
  step {
    text    = "Reboot."
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/secure-boot" {
  title  = "Let Secure Boot accept the NVIDIA module"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears = ["driver.loaded", "gpu.count"]

  step {
    text    = "See that Secure Boot is on and that the module was refused."
    command = "mokutil --sb-state; sudo dmesg | grep -iE 'key was rejected|unsigned module'"
  }
  step {
    text    = "Enrol the key that DKMS signs with; choose a password that you can type on a US keyboard."
    command = "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der || sudo mokutil --import /var/lib/dkms/mok.pub"
  }
  step {
    text = "Reboot at the console or through the BMC: a blue screen asks. Choose Enroll MOK ▸ Continue ▸ Yes, and give the password."
    hand = true
  }
  step {
    text = "Or, where the site's rules allow it, switch Secure Boot off."
    bios = "secure_boot"
  }
}
