package facts

import (
	"strings"
	"testing"
)

const smiText535 = `==============NVSMI LOG==============

Timestamp                                 : Thu Nov 16 08:58:34 2023
Driver Version                            : 535.113.01
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:41:00.0
    Product Name                          : NVIDIA GeForce RTX 4090
    Product Architecture                  : Ada Lovelace
    Display Active                        : Disabled
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    VBIOS Version                         : 95.02.3C.00.40
    GPU Part Number                       : 2684-300-A1
    GPU Reset Status
        Reset Required                    : No
        Drain and Reset Recommended       : No
    PCI
        Device Id                         : 0x268410DE
        Bus Id                            : 00000000:41:00.0
        Sub System Id                     : 0x51041462
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
                Device Current            : 1
                Device Max                : 4
                Host Max                  : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 3
    Fan Speed                             : 0 %
    Performance State                     : P8
    Clocks Event Reasons
        Idle                              : Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
    FB Memory Usage
        Total                             : 24564 MiB
        Used                              : 13 MiB
    BAR1 Memory Usage
        Total                             : 256 MiB
    Compute Mode                          : Default
    Utilization
        Gpu                               : 0 %
    ECC Mode
        Current                           : Disabled
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 35 C
    GPU Power Readings
        Power Draw                        : 33.41 W
        Current Power Limit               : 480.00 W
        Default Power Limit               : 450.00 W
        Max Power Limit                   : 530.00 W
    Module Power Readings
        Current Power Limit               : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 1851
            Type                          : G
            Name                          : C:\Windows\System32\dwm.exe : x
        Process ID                        : 1900
            Type                          : C
`

func TestSMIText(t *testing.T) {
	h := hostOf(t, "nvidia-smi-q.txt", smiText535)
	if len(h.Cards) != 1 {
		t.Fatalf("%d cards, %v", len(h.Cards), h.Gaps)
	}
	c := h.Cards[0]
	checks := map[string]bool{
		"identity":  c.BDF == "0000:41:00.0" && c.Product == "2684" && c.SubVend == "1462" && c.Part.Value == "2684-300-A1" && c.VBIOS.Value == "95.02.3C.00.40",
		"link":      c.Gen.Current.Value == 1 && c.Gen.DeviceMax.Value == 4 && c.Gen.HostMax.Value == 4 && c.Gen.Width.Value == 8 && c.Gen.WidthMax.Value == 16,
		"memory":    c.MemoryMiB.Value == 24564 && c.BAR1MiB.Value == 256 && c.UsedMiB.Value == 13,
		"power":     c.PowerLimit.Value == 480 && c.PowerDefault.Value == 450 && c.PowerMax.Value == 530 && c.PowerDraw.Value == 33.41,
		"state":     c.PState.Value == "P8" && c.Temperature.Value == 35 && c.Persistence.Value && c.Display.Known() && !c.MIG.Known(),
		"reasons":   strings.Join(c.Reasons.Value, " ") == "gpu_idle hw_slowdown hw_thermal_slowdown",
		"rows":      c.RemapPending.Value && c.Remapped.Value == 2 && c.RemapFailure.Known() && !c.RemapFailure.Value,
		"recovery":  c.Recovery.Value == "None",
		"replays":   c.Replays.Value == 3,
		"processes": c.Processes.Value == 1,
		"driver":    h.Driver.Version.Value == "535.113.01" && h.Driver.CUDA.Value == "12.2" && h.Driver.Loaded.Value && h.Driver.Attached.Value == 1,
		"index":     c.Index.Known() && c.Index.Value == 0,
		"source":    c.Gen.Width.Source == "nvidia-smi-q.txt:link_widths/current_link_width",
	}
	for name, ok := range checks {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestSMITextOfOneCardOfEight(t *testing.T) {
	h := hostOf(t, "nvidia-smi-q.txt", strings.Replace(smiText535, "Attached GPUs                             : 1", "Attached GPUs : 8", 1))
	if h.Cards[0].Index.Known() || h.Driver.Attached.Value != 8 {
		t.Errorf("index %v of %v", h.Cards[0].Index, h.Driver.Attached)
	}
}

func TestSMITextOlderDrivers(t *testing.T) {
	const old = `==============NVSMI LOG==============
Driver Version                      : 430.40
Attached GPUs                       : 1
GPU 00000000:03:00.0
    Product Name                    : GeForce GTX 1080 Ti
    Clocks Throttle Reasons
        Idle                        : Not Active
        HW Slowdown                 : Not Active
            HW Thermal Slowdown     : Not Active
        SW Thermal Slowdown         : Active
    FB Memory Usage
        Total                       : 11176 MiB
    Retired Pages
        Single Bit ECC              : 0
        Double Bit ECC              : 2
        Pending                     : Yes
    Power Readings
        Power Limit                 : 250.00 W
        Enforced Power Limit        : 200.00 W
`
	c := hostOf(t, "a.txt", old).Cards[0]
	if c.PowerLimit.Value != 200 || strings.Join(c.Reasons.Value, " ") != "sw_thermal_slowdown" || !c.RetiredPending.Value || c.Name.Value != "GeForce GTX 1080 Ti" {
		t.Errorf("%+v", c)
	}
}

func TestSMITable(t *testing.T) {
	const table = `+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    4 |
| N/A   25C    P0    59W / 400W |      1MiB / 40536MiB |      7%   E. Process |
|                               |                      |             Enabled* |
+-------------------------------+----------------------+----------------------+
|   1  GeForce RTX 3090    Off  | 00000000:0B:00.0 Off |                  N/A |
|ERR!   ERR!  ERR!  ERR! / ERR! |      0MiB / 24268MiB |    ERR!      Default |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|    0   N/A  N/A      2244      G   /usr/lib/xorg/Xorg                  4MiB |
|    0   N/A  N/A      2300      C   python                           2000MiB |
`
	h := hostOf(t, "screen.txt", table)
	if len(h.Cards) != 2 || h.Driver.Version.Value != "470.82.01" || h.Driver.CUDA.Value != "11.4" || h.Driver.Attached.Value != 2 {
		t.Fatalf("%+v %+v", h.Driver, h.Cards)
	}
	a, b := h.Cards[0], h.Cards[1]
	if a.Name.Known() || !a.Persistence.Value || a.PowerLimit.Value != 400 || a.MemoryMiB.Value != 40536 || !a.MIG.Value || a.ECCVolatile.Value != 4 || a.ComputeMode.Value != "Exclusive_Process" || a.Processes.Value != 1 {
		t.Errorf("%+v", a)
	}
	if b.Sick.Value != "ERR!" || b.Temperature.Known() || b.PowerLimit.Known() || b.Slug.Value != "rtx-3090" || b.Processes.Value != 0 {
		t.Errorf("%+v", b)
	}
}

func TestSMIFailures(t *testing.T) {
	for _, text := range []string{
		"No devices were found\n",
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
		"Failed to initialize NVML: Driver/library version mismatch\n",
		"Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error.\n",
	} {
		for _, name := range []string{"nvidia-smi.txt", "nvidia-smi-q.txt", "out"} {
			h := hostOf(t, name, text)
			if !strings.HasPrefix(text, h.Driver.SMIError.Value) || !h.Driver.SMIError.Known() || h.Gaps[KindSMI] == "" {
				t.Errorf("%s as %s: %v, gap %q", text, name, h.Driver.SMIError, h.Gaps[KindSMI])
			}
		}
	}
}

func FuzzSMIText(f *testing.F) {
	f.Add(smiText535)
	f.Add("GPU 00000000:01:00.0\n  PCI\n    Device Id : <&>\n  HW Slowdown\n")
	f.Fuzz(func(t *testing.T, text string) {
		log, err := parseSMIText(text)
		if err == nil && log == nil {
			t.Error("neither facts nor an error")
		}
	})
}
