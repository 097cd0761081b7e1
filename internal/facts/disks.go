package facts

import (
	"sort"
	"strings"

	"github.com/jaypipes/ghw"
)

// readDisks lists whole block devices of sysfs. Loop, RAM, zram, optical and device-mapper devices hold no data of
// their own.
func readDisks(b *builder) {
	present := len(b.snap.Dirs["sys/block"]) > 0
	for path := range b.snap.Files {
		present = present || strings.HasPrefix(path, "sys/block/")
	}
	if !present {
		b.gap(KindDisks, "%s", b.why("sys/block", "no block devices in the input"))
		return
	}
	info, err := ghw.Block(b.ghwOptions()...)
	if err != nil {
		b.gap(KindDisks, "block devices could not be read: %v", err)
		return
	}
	for _, d := range info.Disks {
		if d.SizeBytes == 0 || isVirtualDisk(d.Name) {
			continue
		}
		model, _ := b.text("sys/block/" + d.Name + "/device/model")
		b.host.Disks = append(b.host.Disks, Disk{
			Name: d.Name, Bytes: int64(d.SizeBytes), NVMe: strings.HasPrefix(d.Name, "nvme"), Removable: d.IsRemovable,
			Rotational: b.number("sys/block/"+d.Name+"/queue/rotational").Value == 1,
			Model:      model, Source: "sysfs:sys/block/" + d.Name + "/size",
		})
	}
	sort.Slice(b.host.Disks, func(i, j int) bool { return b.host.Disks[i].Name < b.host.Disks[j].Name })
}

var virtualDisks = []string{"loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd", "zd", "drbd", "bcache", "rbd"}

func isVirtualDisk(name string) bool {
	for _, p := range virtualDisks {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	// A multipath NVMe device shows hidden per-controller paths (nvme0c0n1) beside the real one.
	return strings.HasPrefix(name, "nvme") && strings.Contains(name[4:], "c")
}
