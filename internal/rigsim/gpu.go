package rigsim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"preflight/internal/fakegpu"
)

// gpuEnv is where a rig keeps the environment of its made-up driver libraries.
const gpuEnv = "gpu.env"

// ncclFaults are the library's faults for what the all-reduce benchmark of a rig is to do.
var ncclFaults = map[string]string{
	"ok": "", "hang": "first-hang", "wrong": "wrong-sums", "error": "nccl-oom", "no-device": "no-device", "no-driver": "no-device",
}

// GiveLibraries builds a libcuda and a libnccl with this machine's C compiler and puts them into the loader's path of
// every rig, so that what talks to cards finds some. Without it a rig has the tools of a driver, and no libraries.
func (f *Fleet) GiveLibraries() error {
	lib := filepath.Join(f.Dir, "lib")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		return err
	}
	if err := fakegpu.Build(lib); err != nil {
		return fmt.Errorf("simulated driver libraries: %w", err)
	}
	for i, m := range f.machines {
		root := f.Rigs[i].Root
		text := strings.Join(m.fakeCards(root).Env(lib), "\n") + "\n"
		for _, dir := range []string{filepath.Join(dataDir, burningDir), filepath.Join(rootDir, "dev")} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(root, rootDir, "dev", "kmsg"), nil, 0o644); err != nil { // of what the libraries do to the cards
			return err
		}
		if err := os.WriteFile(filepath.Join(root, gpuEnv), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// dataShare is what of a link's raw rate is left for data, and a little less than the best that was measured.
const dataShare = 0.79

// fakeCards is the rig as its libraries show it.
func (m *machine) fakeCards(root string) fakegpu.Cards {
	c := fakegpu.Cards{
		Name: "NVIDIA " + gpuModels[m.GPU].Name, Ring: m.NCCL.BusBW, Fault: or(m.NCCL.Library, ncclFaults[m.NCCL.Mode]), P2P: m.P2P == "OK",
		Root: filepath.Join(root, rootDir), Wake: filepath.Join(root, dataDir, "links-loaded.txt"), Busy: filepath.Join(root, dataDir, burningDir), Speed: filepath.Join(root, dataDir, "speed"),
	}
	for _, card := range m.answering() {
		c.BDFs = append(c.BDFs, card.BDF)
		c.Links = append(c.Links, dataShare*laneGBs[card.LoadGen]*float64(card.Width))
	}
	return c
}

// libraries reads the environment that GiveLibraries left, if it did.
func libraries(root string) []string {
	raw, err := os.ReadFile(filepath.Join(root, gpuEnv))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// sleep lets the links of a rig fall back to what they show when idle; real ones do so by themselves.
func sleep(root string) {
	raw, err := os.ReadFile(filepath.Join(root, dataDir, "links-idle.txt"))
	if err != nil {
		return
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if path, text, ok := strings.Cut(line, "\t"); ok {
			_ = os.WriteFile(filepath.Join(root, rootDir, path), []byte(text+"\n"), 0o644)
		}
	}
}
