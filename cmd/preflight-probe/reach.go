//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"preflight/internal/probe/wire"
)

// dialLimit is how long a connection to another host may take: one that is dropped never answers.
const dialLimit = 5 * time.Second

// door is the listener that other hosts try to reach.
type door struct{ l net.Listener }

func (d *door) close() {
	if d.l != nil {
		_ = d.l.Close()
		d.l = nil
	}
}

// reach answers a reach.
func (s *supervisor) reach(d *door) string {
	r := s.request.Reach
	s.say(wire.Line{Phase: wire.PhaseReach, State: wire.StateBegin, Limit: 2 * dialLimit.Seconds()})
	if r.Listen {
		at, err := d.open(r)
		if err != nil {
			s.say(wire.Line{Phase: wire.PhaseReach, State: wire.StateError, Error: &wire.Error{Key: wire.KeyNetwork, API: "helper", Text: err.Error()}})
			s.worsen(wire.OutcomeError)
		} else {
			s.say(wire.Line{Phase: wire.PhaseReach, State: wire.StateResult, Reach: &at})
		}
	} else {
		for _, x := range dialAll(r.Dial) {
			s.say(wire.Line{Phase: wire.PhaseReach, State: wire.StateResult, Reach: &x})
		}
	}
	s.say(wire.Line{Phase: wire.PhaseReach, State: wire.StateEnd})
	s.say(wire.Line{Phase: wire.PhaseDone, State: wire.StateEnd, Outcome: s.outcome})
	return s.outcome
}

// open listens on an ephemeral port of the interface by which the other hosts are reached.
func (d *door) open(r *wire.ReachRequest) (wire.Reach, error) {
	d.close()
	at, err := choose(r)
	if err != nil {
		return at, err
	}
	if d.l, err = net.Listen("tcp", net.JoinHostPort(at.Address, "0")); err != nil {
		return at, err
	}
	at.Port = d.l.Addr().(*net.TCPAddr).Port
	at.Mbit, at.Virtual = lineRate(at.Interface)
	at.LowPort, at.HighPort = ports()
	go func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}(d.l)
	return at, nil
}

// choose finds interface and address: the named interface's own, else those that the route to the others uses.
func choose(r *wire.ReachRequest) (wire.Reach, error) {
	if r.Interface != "" {
		i, err := net.InterfaceByName(r.Interface)
		if err != nil {
			return wire.Reach{}, fmt.Errorf("there is no interface %s here; there are %s", r.Interface, interfaces())
		}
		for _, ip := range addresses(*i) {
			return wire.Reach{Interface: i.Name, Address: ip.String()}, nil
		}
		return wire.Reach{}, fmt.Errorf("interface %s has no address", r.Interface)
	}
	var last error
	for _, host := range r.Toward {
		ip, err := routeTo(host)
		if err != nil {
			last = err
			continue
		}
		all, _ := net.Interfaces()
		for _, i := range all {
			for _, own := range addresses(i) {
				if own.Equal(ip) {
					return wire.Reach{Interface: i.Name, Address: ip.String()}, nil
				}
			}
		}
		return wire.Reach{Address: ip.String()}, nil
	}
	return wire.Reach{}, fmt.Errorf("no way to the other hosts: %w", last)
}

// routeTo is the address that the kernel would send from; nothing is sent.
func routeTo(host string) (net.IP, error) {
	c, err := (&net.Dialer{Timeout: dialLimit}).Dial("udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).IP, nil
}

// addresses are an interface's own, IPv4 before IPv6, none that holds for one link only.
func addresses(i net.Interface) []net.IP {
	addrs, _ := i.Addrs()
	var four, six []net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast():
		case n.IP.To4() != nil:
			four = append(four, n.IP)
		default:
			six = append(six, n.IP)
		}
	}
	return append(four, six...)
}

func interfaces() string {
	all, _ := net.Interfaces()
	var names []string
	for _, i := range all {
		if len(addresses(i)) > 0 {
			names = append(names, i.Name)
		}
	}
	return strings.Join(names, ", ")
}

// lineRate is what the interface says of its speed in Mbit/s (Documentation/ABI/testing/sysfs-class-net: -1 or an error when
// it is not known), and whether no device is behind it.
func lineRate(name string) (mbit int, virtual bool) {
	dir := "/sys/class/net/" + name
	raw, err := os.ReadFile(dir + "/speed")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil && n > 0 && n < 1<<30 {
		mbit = n
	}
	_, err = os.Stat(dir + "/device")
	return mbit, err != nil
}

// ports are those that connections of this host come from, and that NCCL listens on.
func ports() (low, high int) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, 0
	}
	if n, _ := fmt.Sscan(string(raw), &low, &high); n != 2 {
		return 0, 0
	}
	return low, high
}

// dialAll tries every address at once.
func dialAll(to []string) []wire.Reach {
	out := make([]wire.Reach, len(to))
	var wg sync.WaitGroup
	for i, addr := range to {
		wg.Go(func() { out[i] = dial(addr) })
	}
	wg.Wait()
	return out
}

func dial(to string) wire.Reach {
	r := wire.Reach{To: to, Result: wire.ReachOK}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	switch {
	case err == nil:
		_ = c.Close()
		return r
	case errors.Is(err, unix.ECONNREFUSED):
		r.Result = wire.ReachRefused
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		r.Result = wire.ReachNoRoute
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		r.Result = wire.ReachTimeout
	default:
		r.Result = wire.ReachError
	}
	r.Text = err.Error()
	return r
}
