package checks

import (
	"fmt"
	"slices"
	"strings"

	"preflight/internal/facts"
)

// container.runtime: do containers on this host get the cards?
//
//	no container engine, or this is a container itself        skip
//	no-cgroups = true with Docker as root                     warn: cards are not allowed into the container
//	the CDI specification names another driver version        warn: written before the driver was updated
//	Docker with the toolkit, its runtime or CDI               pass
//	Podman with CDI                                           pass; with the toolkit but no specification: warn
//	containerd alone, with the runtime or CDI                 pass
//	an engine without any of these                            warn
//	whether an engine is there is not known                   unknown
//
// Traps: `docker run --gpus` needs only the toolkit's hook, no registered runtime. With the systemd cgroup driver a
// `systemctl daemon-reload` takes the cards away from running containers ("Failed to initialize NVML: Unknown Error");
// CDI or the cgroupfs driver avoid that. Docker brings a containerd of its own, which is not judged beside it.
var containerRuntime = Check{ID: "container.runtime", Title: "containers and cards", Decide: decideContainerRuntime}

func decideContainerRuntime(s Subject) []Finding {
	w := s.Host.Software
	switch {
	case hostKindIn(s.Host, "container"):
		return []Finding{skip(rigSubject, "this is a container: its engine is on the host")}
	case len(w.Engines) == 0 && w.EnginesSeen.Known():
		return []Finding{skip(rigSubject, "no container engine")}
	case len(w.Engines) == 0:
		return []Finding{unknown(rigSubject, "whether there is a container engine is not in the input").knownBy("give a snapshot of the host (preflight collect)")}
	}
	var out []Finding
	docker := slices.ContainsFunc(w.Engines, func(e facts.Engine) bool { return e.Name == "docker" })
	for _, e := range w.Engines {
		if e.Name == "containerd" && docker {
			continue
		}
		out = append(out, judgeEngine(s, e).because(evs(e.Source, containerWords(e)), toolkitOf(w)))
	}
	return out
}

func judgeEngine(s Subject, e facts.Engine) Finding {
	w := s.Host.Software
	driver := s.Host.Driver.Version
	ways := strings.Join(e.NVIDIA, ", ")
	stale := slices.Contains(e.NVIDIA, "cdi") && w.CDIDriver.Known() && driver.Known() && w.CDIDriver.Value != driver.Value
	switch {
	case e.Name == "docker" && w.NoCgroups.Value:
		return warn(e.Name, "no-cgroups = true: %s started as root keeps its containers from the cards", e.Name).saw("no-cgroups = true", "false").because(ev(w.NoCgroups)).
			noting("right where Docker runs without root").fix("container.runtime/no-cgroups")
	case stale:
		return warn(e.Name, "the CDI specification was written for driver %s, %s runs", w.CDIDriver.Value, driver.Value).saw(w.CDIDriver.Value, driver.Value).
			because(ev(w.CDIDriver), ev(driver)).fix("container.runtime/stale-cdi")
	case len(e.NVIDIA) == 0 && len(w.Toolkit) > 0:
		return warn(e.Name, "nvidia-container-toolkit is installed, but %s was not told of it", e.Name).saw("", "a runtime or CDI").fix("container.runtime/not-registered", "engine", e.Name)
	case len(e.NVIDIA) == 0:
		return warn(e.Name, "%s gives no card to its containers: nvidia-container-toolkit is missing", e.Name).saw("", "a runtime or CDI").fix("container.runtime/no-toolkit", "engine", e.Name)
	}
	f := pass(e.Name, "%s gives cards to its containers (%s)", strings.TrimSpace(e.Name+" "+e.Version), ways).saw(ways, "")
	if e.Name == "docker" && !slices.Contains(e.NVIDIA, "runtime") && !slices.Contains(e.NVIDIA, "default-runtime") {
		f = f.noting("--gpus works, --runtime=nvidia is not registered")
	}
	if e.Cgroup == "systemd" && !slices.Contains(e.NVIDIA, "cdi") {
		f = f.noting("a systemctl daemon-reload takes the cards from running containers; CDI would not")
	}
	return f
}

func containerWords(e facts.Engine) string {
	words := fmt.Sprintf("%s %s: %s", e.Name, firstOf(e.Version, "installed"), firstOf(strings.Join(e.NVIDIA, ", "), "nothing of NVIDIA"))
	if e.Error != "" {
		words += " (" + e.Error + ")"
	}
	return words
}

func toolkitOf(w facts.Software) Evidence {
	for _, t := range w.Toolkit {
		if t.Name == "nvidia-container-toolkit" {
			return evs(t.Source, t.Value)
		}
	}
	return Evidence{}
}
