package facts

import "strings"

// readVirt decides what kind of machine this is. A container sees its host's hardware but not its limits; a guest
// sees what the hypervisor shows.
func readVirt(b *builder) {
	h := b.host
	kind := func(k, src string) { h.Kind = Of(k, src) }
	version, _ := b.text("proc/version")
	if strings.Contains(strings.ToLower(version), "microsoft") {
		kind("wsl", "file:proc/version")
		return
	}
	for _, p := range []string{".dockerenv", "run/.containerenv", "run/systemd/container"} {
		if _, ok := b.snap.Files[p]; ok {
			kind("container", "file:"+p)
			return
		}
	}
	if env, ok := b.text("proc/1/environ"); ok && strings.Contains(env, "container=") {
		kind("container", "file:proc/1/environ")
		return
	}
	if cg, ok := b.text("proc/1/cgroup"); ok && (strings.Contains(cg, "/docker") || strings.Contains(cg, "/lxc") || strings.Contains(cg, "/kubepods")) {
		kind("container", "file:proc/1/cgroup")
		return
	}
	if name := guestName(h); name != "" {
		kind("vm", "sysfs:sys/class/dmi/id")
		return
	}
	if h.Hypervisor.Value {
		kind("vm", h.Hypervisor.Source)
		return
	}
	for _, c := range h.Cards {
		if c.VirtMode.Value == "Pass-Through" || c.VirtMode.Value == "VGPU" {
			kind("vm", c.VirtMode.Source)
			return
		}
	}
	if h.CPU.Model.Known() && (h.Board.Name.Known() || h.Board.Product.Known()) {
		kind("metal", "file:proc/cpuinfo")
		return
	}
	b.gap(KindVirt, "neither DMI strings nor /proc/cpuinfo tell what kind of machine this is")
}

// guests are substrings of DMI vendor and product that only hypervisors use.
var guests = []string{"qemu", "kvm", "vmware", "virtualbox", "standard pc", "xen", "hvm domu", "virtual machine", "google compute engine", "amazon ec2", "alibaba cloud ecs", "openstack", "cloud hypervisor", "bochs"}

// bareMetalClouds are products of the same vendors that are no guests.
var bareMetalClouds = []string{".metal"}

func guestName(h *Host) string {
	text := strings.ToLower(h.Board.SystemMaker.Value + " " + h.Board.Product.Value + " " + h.BIOS.Vendor.Value)
	for _, m := range bareMetalClouds {
		if strings.Contains(text, m) {
			return ""
		}
	}
	for _, g := range guests {
		if strings.Contains(text, g) {
			return g
		}
	}
	return ""
}
