package rigsim

import "fmt"

// layout gives every function its address: host bridges, root ports, cards (with switches between, when there are
// any), disks, network, and what else such a board has.
func (m *machine) layout() {
	for i, bus := range m.Board.RootBuses {
		socket := i * m.Board.Sockets / len(m.Board.RootBuses)
		m.add(&device{BDF: bdf(bus, 0, 0), Vendor: "1022", Device: "1480", Class: "060000", RootBus: bus, Socket: socket, Kind: 0xff})
		m.add(&device{BDF: bdf(bus, 1, 0), Vendor: "1022", Device: "1482", Class: "060000", RootBus: bus, Socket: socket, Kind: 0xff})
	}
	m.dataFabric()
	if m.Switches > 0 {
		m.layoutSwitches()
	} else {
		for i := range m.Spec.Cards {
			p := m.Board.Ports[i]
			root := m.rootPort(p, m.nextBus(p))
			m.addCard(i, root, root, p.Slot)
		}
	}
	m.peripherals()
}

func (m *machine) add(d *device) *device {
	d.SubVendor, d.SubDevice = or(d.SubVendor, d.Vendor), or(d.SubDevice, d.Device)
	m.Devs = append(m.Devs, d)
	return d
}

// nextBus is the bus below a root port: the slot ports of a root bus get the first ones.
func (m *machine) nextBus(p port) int {
	n := 1
	for _, d := range m.Devs {
		if d.RootBus == p.Bus && d.Kind == 4 {
			n = max(n, d.Subord-p.Bus+1)
		}
	}
	return p.Bus + n
}

func (m *machine) rootPort(p port, second int) *device {
	return m.add(&device{
		BDF: bdf(p.Bus, p.Dev, p.Fn), Vendor: "1022", Device: m.CPU.PortDevice, SubDevice: "1453", Class: "060400", Driver: "pcieport", RootBus: p.Bus, Socket: p.Socket,
		Kind: 4, Second: second, Subord: second, MaxWidth: p.Width, MaxGen: m.CPU.PortGen, HasSlot: true, Present: true,
	})
}

// layoutSwitches puts the cards below PEX88096 switches, spread evenly.
func (m *machine) layoutSwitches() {
	for s := range m.Switches {
		p := m.Board.Ports[s]
		root := m.rootPort(p, p.Bus+1)
		up := m.add(&device{
			BDF: bdf(p.Bus+1, 0, 0), Vendor: "1000", Device: "c010", SubDevice: "a096", Class: "060400", Driver: "pcieport", Parent: root, RootBus: p.Bus, Socket: p.Socket,
			Kind: 5, Second: p.Bus + 2, MaxWidth: 16, MaxGen: 4,
		})
		n := 0
		for i := range m.Spec.Cards {
			if i*m.Switches/m.Spec.Cards != s {
				continue
			}
			down := m.add(&device{
				BDF: bdf(p.Bus+2, n, 0), Vendor: "1000", Device: "c010", SubDevice: "a096", Class: "060400", Driver: "pcieport", Parent: up, RootBus: p.Bus, Socket: p.Socket,
				Kind: 6, Second: p.Bus + 3 + n, Subord: p.Bus + 3 + n, MaxWidth: 16, MaxGen: 4, HasSlot: true, Present: true,
			})
			m.addCard(i, down, root, fmt.Sprintf("SLOT%d", i+1))
			n++
		}
		root.Subord = p.Bus + 2 + n
		up.Subord = root.Subord
	}
}

func (m *machine) addCard(i int, above, root *device, slot string) {
	model := gpuModels[m.GPU]
	c := &card{Model: model, Index: i, Port: above, Root: root, Slot: slot, LimitW: model.DefaultW, BAR1MiB: model.BigBAR, UUID: "GPU-" + m.uuid(fmt.Sprint("gpu", i)), Serial: "N/A"}
	if model.HasSerial {
		c.Serial = "1" + fmt.Sprintf("%012d", 320220000000+i*17)
	}
	c.device = m.add(&device{
		BDF: bdf(above.Second, 0, 0), Parent: above, RootBus: above.RootBus, Socket: above.Socket, Kind: 1, MaxWidth: 16, MaxGen: model.Gen, Driver: "nvidia", ROM: true, ReBAR: sizesTo(model.BigBAR),
	})
	c.setModel(model)
	m.Cards = append(m.Cards, c)
	if model.HasAudio {
		m.add(&device{
			BDF: bdf(above.Second, 0, 1), Vendor: "10de", Device: audioOf(model), SubVendor: c.SubVendor, SubDevice: c.SubDevice, Class: "040300", Driver: "snd_hda_intel",
			Parent: above, RootBus: above.RootBus, Socket: above.Socket, Kind: 0, MaxWidth: 16, MaxGen: model.Gen,
		})
	}
}

// setModel makes the card's function that of a model.
func (c *card) setModel(g gpuModel) {
	c.Model = g
	c.Vendor, c.Device = "10de", lower(g.Device)
	c.SubDevice, c.SubVendor = lower(g.Subsystem[:4]), lower(g.Subsystem[4:])
	c.Class = "0300" + "00"
	if g.SubClass == "2" {
		c.Class = "030200"
	}
}

func audioOf(g gpuModel) string {
	if g.Arch == "Ampere" {
		return "1aef"
	}
	return "22ba"
}

// sizesTo lists what a card offers for BAR1: 64 MiB up to a power of two.
func sizesTo(top int) []int {
	var out []int
	for n := 64; n <= top; n *= 2 {
		out = append(out, n)
	}
	return out
}

// dataFabric is the processor's own functions on bus 0: eight for each socket.
func (m *machine) dataFabric() {
	for s := range m.Board.Sockets {
		for fn := range 8 {
			m.add(&device{BDF: bdf(0, 0x18+s, fn), Vendor: "1022", Device: fmt.Sprintf("%04x", 0x1490+fn), Class: "060000", Kind: 0xff})
		}
	}
}

// peripherals are disks, network and, on server boards, the BMC's display. They hang on the last root bus, away from
// the first cards.
func (m *machine) peripherals() {
	bus := m.Board.RootBuses[len(m.Board.RootBuses)-1]
	socket := m.Board.Sockets - 1
	leaf := func(dev, fn, second, width, gen int, d *device) *device {
		p := m.rootPort(port{Bus: bus, Dev: dev, Fn: fn, Width: width, Socket: socket}, second)
		p.HasSlot = false
		p.MaxGen = min(p.MaxGen, 4)
		d.BDF, d.Parent, d.RootBus, d.Socket, d.MaxWidth, d.MaxGen = bdf(second, 0, 0), p, bus, socket, width, gen
		return m.add(d)
	}
	for i := range m.DisksGB {
		leaf(5, i+1, bus+0x12+i, 4, 4, &device{Vendor: "144d", Device: "a80a", SubDevice: "a801", Class: "010802", Driver: "nvme", Block: fmt.Sprintf("nvme%dn1", i)})
	}
	nic := leaf(7, 1, bus+0x18, 4, 3, &device{Vendor: "8086", Device: "1563", SubVendor: "1849", SubDevice: "1563", Class: "020000", Driver: "ixgbe", Net: "eno1"})
	for i := range m.ExtraPCI {
		vf := i + 8 // functions of the bus below, as SR-IOV numbers them
		m.add(&device{
			BDF: bdf(bus+0x18+vf/256, vf%256/8, vf%8), Vendor: "8086", Device: "1565", Class: "020000", Driver: "ixgbevf", Parent: nic.Parent, RootBus: bus, Socket: socket, Physfn: nic,
		})
	}
	if m.Board.Server {
		p := m.rootPort(port{Bus: bus, Dev: 3, Fn: 5, Width: 1, Socket: socket}, bus+0x1a)
		p.HasSlot, p.Subord, p.MaxGen = false, bus+0x1b, 2
		bridge := m.add(&device{BDF: bdf(bus+0x1a, 0, 0), Vendor: "1a03", Device: "1150", Class: "060400", Parent: p, RootBus: bus, Socket: socket, Kind: 7, Second: bus + 0x1b, Subord: bus + 0x1b, MaxWidth: 1, MaxGen: 1})
		m.add(&device{BDF: bdf(bus+0x1b, 0, 0), Vendor: "1a03", Device: "2000", Class: "030000", Driver: "ast", Parent: bridge, RootBus: bus, Socket: socket, Kind: 0xff, IsVGABoot: true})
	}
}
