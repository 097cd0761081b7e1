package catalog

import (
	_ "embed" // the tables
	"fmt"
	"sync"
)

//go:embed data/gpus.csv
var gpusCSV []byte

//go:embed data/cpus.csv
var cpusCSV []byte

//go:embed data/cpu_models.csv
var cpuModelsCSV []byte

//go:embed data/pcie_switches.csv
var switchesCSV []byte

//go:embed data/power.csv
var powerCSV []byte

//go:embed data/xids.csv
var xidsCSV []byte

//go:embed data/drivers.csv
var driversCSV []byte

//go:embed data/laptop_gpus.csv
var laptopsCSV []byte

//go:embed data/cuda_archs.csv
var cudaArchsCSV []byte

// Catalog is every table. It is immutable once loaded.
type Catalog struct {
	GPUs     []GPU
	CPUs     []CPU
	Bridges  map[string]Bridge // by "vvvv:dddd"
	Watts    map[string]Watts  // components by key
	toolkits map[string]CUDAArch
	xids     map[int]Xid
	floors   map[string]Floor  // driver.go, by "kind key"
	laptops  map[string]string // names by device id
}

// Load reads the embedded tables; the result is shared, since nothing changes it.
var Load = sync.OnceValues(load)

// MustLoad is Load for callers that run after a test has proved that the embedded tables parse.
func MustLoad() *Catalog {
	c, err := Load()
	if err != nil {
		panic(err)
	}
	return c
}

func load() (*Catalog, error) {
	c := &Catalog{}
	steps := []struct {
		name string
		data []byte
		add  func(*Catalog, []map[string]string) error
	}{
		{"gpus.csv", gpusCSV, addGPUs},
		{"cpus.csv", cpusCSV, addCPUs},
		{"pcie_switches.csv", switchesCSV, addBridges},
		{"power.csv", powerCSV, addWatts},
		{"cuda_archs.csv", cudaArchsCSV, addCUDAArchs},
		{"xids.csv", xidsCSV, addXids},
		{"drivers.csv", driversCSV, addDrivers},
		{"laptop_gpus.csv", laptopsCSV, addLaptops},
	}
	for _, s := range steps {
		rows, err := table(s.name, s.data)
		if err != nil {
			return nil, err
		}
		if err := s.add(c, rows); err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", s.name, err)
		}
	}
	return c, nil
}
