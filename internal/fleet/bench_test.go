package fleet

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// savedRig is the archive of a simulated 8-card rig, taken by the shipped collector.
func savedRig(b *testing.B) []byte {
	b.Helper()
	dir := b.TempDir()
	if err := rigsim.Build(dir, rigsim.Healthy("server-8", 8)); err != nil {
		b.Fatal(err)
	}
	snap, err := collect.Collect(b.Context(), collect.Shell{Env: rigsim.Env(dir, "root")}, collect.Request{Tool: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	var buf bytes.Buffer
	if err := facts.Save(&buf, snap); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// count is how many snapshots a run of the benchmark below takes.
const count = 1000

// BenchmarkThousandSnapshots loads, parses and judges 1,000 saved 8-card rigs on every core. Targets: under 60 s and
// 200 MB in use.
func BenchmarkThousandSnapshots(b *testing.B) {
	raw := savedRig(b)
	n := 8
	rig := &inventory.Rig{Name: "server-8", Cards: &n, GPU: "rtx-4090"}
	for b.Loop() {
		var wg sync.WaitGroup
		work := make(chan struct{})
		for range runtime.NumCPU() {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range work {
					snap, err := facts.Load(bytes.NewReader(raw))
					if err != nil {
						b.Error(err)
						continue
					}
					if r := Judge(rig, snap, nil, nil); len(r.Host.Cards) != 8 {
						b.Errorf("%d cards", len(r.Host.Cards))
					}
				}
			}()
		}
		for range count {
			work <- struct{}{}
		}
		close(work)
		wg.Wait()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/1e6, "heap-MB")
	b.ReportMetric(float64(len(raw))/1e3, "snapshot-kB")
}
