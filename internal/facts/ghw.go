package facts

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/pcidb"

	"preflight/internal/catalog"
)

// tree is a directory that ghw reads as its chroot: the part of the snapshot that ghw does well with (PCI devices
// with parents and drivers, DMI strings, memory, block devices). BARs, links, capabilities and SMBIOS records it
// does not know; those have own parsers. An empty path: the tree could not be written.
func (b *builder) tree() string {
	if b.treeDir != "" {
		return b.treeDir
	}
	dir, err := os.MkdirTemp(memoryDir(), "preflight-tree-")
	if err != nil {
		dir, err = os.MkdirTemp("", "preflight-tree-")
	}
	if err != nil {
		return ""
	}
	b.treeDir = dir
	for path, raw := range b.snap.Files {
		if !treeFile(path) {
			continue
		}
		full := filepath.Join(dir, filepath.FromSlash(path))
		if !strings.HasPrefix(full, dir+string(filepath.Separator)) || os.MkdirAll(filepath.Dir(full), 0o700) != nil || os.WriteFile(full, raw, 0o600) != nil {
			continue
		}
	}
	return dir
}

func treeFile(path string) bool {
	for _, p := range []string{"sys/class/dmi/id/", "proc/meminfo", "sys/devices/system/memory/block_size_bytes"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return strings.HasPrefix(path, "sys/block/") && !strings.Contains(path, "..")
}

func (b *builder) dropTree() {
	if b.treeDir != "" {
		_ = os.RemoveAll(b.treeDir)
	}
}

// noTree exists nowhere: without a root, ghw would read this machine and report its board as the host's.
const noTree = "/nonexistent/preflight-tree"

// silent swallows ghw's warnings. WithDisableWarnings would not do: it sets a level that the whole process shares, and
// hosts read at the same time set it back.
var silent = slog.New(slog.DiscardHandler)

// ghwOptions point ghw at the tree and keep it off this machine: no tools, no warnings, no look at the real hardware.
func (b *builder) ghwOptions() []any {
	root := b.tree()
	if root == "" {
		root = noTree
	}
	return []any{ghw.WithChroot(root), ghw.WithDisableTools(), ghw.WithDisableTopology(), ghw.WithLogger(silent)}
}

// readGHW takes names, drivers and parents of PCI devices. One device without a modalias empties ghw's whole list,
// silently; then the list of sysfs stands alone.
func readGHW(b *builder) {
	if len(b.host.PCI) == 0 || b.tree() == "" || b.writePCI(b.tree()) != nil {
		return
	}
	db, err := names()
	if err != nil {
		return
	}
	info, err := ghw.PCI(append(b.ghwOptions(), ghw.WithPCIDB(db))...)
	if err != nil || info == nil {
		return
	}
	byBDF := map[string]*Device{}
	for i := range b.host.PCI {
		byBDF[b.host.PCI[i].BDF] = &b.host.PCI[i]
	}
	for _, dev := range info.Devices {
		d := byBDF[dev.Address]
		if d == nil {
			continue
		}
		if dev.Product != nil && dev.Product.Name != "" && dev.Product.Name != "unknown" {
			d.Label = dev.Product.Name
		}
		if dev.Driver != "" {
			d.Driver = First(d.Driver, Of(dev.Driver, "ghw:driver"))
		}
		if len(d.Chain) == 0 && dev.ParentAddress != "" && byBDF[dev.ParentAddress] != nil {
			d.Chain = append(append([]string{}, byBDF[dev.ParentAddress].Chain...), dev.ParentAddress)
		}
	}
	for i := range b.host.Cards {
		if d := byBDF[b.host.Cards[i].BDF]; d != nil {
			b.host.Cards[i].Label, b.host.Cards[i].Driver, b.host.Cards[i].Chain = d.Label, d.Driver, d.Chain
		}
	}
}

// memoryDir is a directory in memory where there is one: the tree is thousands of tiny files.
func memoryDir() string {
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// named are the functions whose name and driver matter to anyone: cards, bridges, network, NVMe. A server has hundreds
// of others, and a tree is slow to write.
func named(d Device) bool {
	for _, class := range []string{"03", "12", "0604", "02", "0108"} {
		if strings.HasPrefix(d.Class, class) {
			return true
		}
	}
	return false
}

// writePCI lays out the few files that ghw's PCI reader looks at: devices as relative links into sys/devices (the
// parent is known only from the link), and a directory for each driver (a dangling link is not enough).
func (b *builder) writePCI(dir string) error {
	base := filepath.Join(dir, "sys/bus/pci/devices")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	drivers := map[string]bool{}
	for _, d := range b.host.PCI {
		if !named(d) {
			continue
		}
		modalias, ok := b.text(pciDevices + d.BDF + "/modalias")
		if !ok {
			modalias = d.modalias()
		}
		real := filepath.Join(dir, "sys/devices/pci"+firstNonEmpty(d.RootBus, "0000:00"), filepath.Join(d.Chain...), d.BDF)
		if err := os.MkdirAll(real, 0o700); err != nil {
			return err
		}
		revision, _ := b.text(pciDevices + d.BDF + "/revision")
		for name, text := range map[string]string{"modalias": modalias, "revision": firstNonEmpty(revision, "0x00")} {
			if err := os.WriteFile(filepath.Join(real, name), []byte(text+"\n"), 0o600); err != nil {
				return err
			}
		}
		if drv := d.Driver.Value; drv != "" && !strings.ContainsAny(drv, "/.") {
			target := filepath.Join(dir, "sys/bus/pci/drivers", drv)
			if !drivers[drv] {
				drivers[drv] = true
				if err := os.MkdirAll(target, 0o700); err != nil {
					return err
				}
			}
			if err := os.Symlink(target, filepath.Join(real, "driver")); err != nil {
				return err
			}
		}
		rel, err := filepath.Rel(base, real)
		if err != nil {
			return err
		}
		if err := os.Symlink(rel, filepath.Join(base, d.BDF)); err != nil {
			return err
		}
	}
	return nil
}

// modalias rebuilds the kernel's alias line from the single id files (drivers/pci/pci-driver.c, pci_uevent).
func (d Device) modalias() string {
	wide := func(s string) string { return strings.ToUpper(strings.Repeat("0", max(0, 8-len(s))) + s) }
	class := strings.ToUpper(d.Class) + "000000"
	return "pci:v" + wide(d.Vendor) + "d" + wide(d.Product) + "sv" + wide(d.SubVend) + "sd" + wide(d.SubDev) +
		"bc" + class[0:2] + "sc" + class[2:4] + "i" + class[4:6]
}

// names is the id database for ghw: built from the catalogue, so that no pci.ids file is needed on this machine.
var names = sync.OnceValues(func() (*pcidb.PCIDB, error) {
	cat, err := catalog.Load()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(memoryDir(), "preflight-ids-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if _, err := f.WriteString(cat.PCIIDs()); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return pcidb.New(pcidb.WithPath(f.Name()))
})
