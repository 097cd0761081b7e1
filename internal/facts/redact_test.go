package facts

import (
	"bytes"
	"strings"
	"testing"
)

func TestRedactText(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"GPU uuid":            {"<uuid>GPU-f1e9a521-b305-3d8b-522c-a9981bdbb493</uuid>", "<uuid>GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx</uuid>"},
		"serial":              {"<serial>1320220051367</serial>", "<serial>xxxxxxxxxxxxx</serial>"},
		"serial N/A stays":    {"<serial>N/A</serial>", "<serial>N/A</serial>"},
		"MAC in dmesg":        {"igb 0000:c1:00.0: eth0: (PCIe:5.0Gb/s:Width x4) 3c:ec:ef:01:02:03", "igb 0000:c1:00.0: eth0: (PCIe:5.0Gb/s:Width x4) xx:xx:xx:xx:xx:xx"},
		"BDF stays":           {"NVRM: Xid (PCI:0000:41:00): 79, pid=1", "NVRM: Xid (PCI:0000:41:00): 79, pid=1"},
		"root uuid":           {"root=UUID=6d7f3e3c-0d0a-4f6c-9f0c-2f7f0a1b2c3d ro", "root=UUID=xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx ro"},
		"usb serial":          {"usb 1-2: SerialNumber: AB12-34", "usb 1-2: SerialNumber: xxxx-xx"},
		"dmidecode":           {"\tSerial Number: WM12345\n\tAsset Tag: Not Specified\n", "\tSerial Number: xxxxxxx\n\tAsset Tag: Not Specified\n"},
		"proxy password":      {`"http-proxy": "http://bob:secret@proxy:3128"`, `"http-proxy": "http://xxx:xxxxxx@proxy:3128"`},
		"serial port stays":   {"serial8250: ttyS0 at I/O 0x3f8", "serial8250: ttyS0 at I/O 0x3f8"},
		"console stays":       {"console=ttyS0,115200n8 quiet", "console=ttyS0,115200n8 quiet"},
		"lspci device serial": {"Device Serial Number 3c-ec-ef-ff-ff-01-02-03", "Device Serial Number xx-xx-xx-xx-xx-xx-xx-xx"},
	} {
		t.Run(name, func(t *testing.T) {
			in := []byte(c.in)
			got := string(redactText(in))
			if got != c.want || len(got) != len(c.in) || string(in) != c.in {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRedactKeepsIdentity(t *testing.T) {
	const uuid = "GPU-f1e9a521-b305-3d8b-522c-a9981bdbb493"
	build := func(serials bool) *Snapshot {
		return &Snapshot{Manifest: Manifest{Serials: serials}, Files: map[string][]byte{
			"cmd/nvidia-smi-q.xml":                             []byte(`<nvidia_smi_log><gpu id="00000000:84:00.0"><uuid>` + uuid + `</uuid></gpu></nvidia_smi_log>`),
			"proc/driver/nvidia/gpus/0000:c4:00.0/information": []byte("Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-00e9a521-b305-3d8b-522c-a9981bdbb493\n"),
			"proc/sys/kernel/random/boot_id":                   []byte("6d7f3e3c-0d0a-4f6c-9f0c-2f7f0a1b2c3d\n"),
		}}
	}
	s := build(false)
	Redact(s)
	want := "0000:84:00.0 " + HashUUID(uuid) + "\n0000:c4:00.0 " + HashUUID("GPU-00e9a521-b305-3d8b-522c-a9981bdbb493") + "\n"
	if got := string(s.Files["cmd/gpu-ids.txt"]); got != want {
		t.Errorf("ids %q, want %q", got, want)
	}
	for path, raw := range s.Files {
		if bytes.Contains(raw, []byte("b305-3d8b")) {
			t.Errorf("%s still holds the UUID: %s", path, raw)
		}
	}
	if !strings.HasPrefix(string(s.Files["proc/sys/kernel/random/boot_id"]), "6d7f3e3c") {
		t.Error("the boot id was blanked")
	}
	before := string(s.Files["cmd/gpu-ids.txt"])
	Redact(s)
	if string(s.Files["cmd/gpu-ids.txt"]) != before {
		t.Error("a second run changed the identities")
	}
	kept := build(true)
	Redact(kept)
	if !bytes.Contains(kept.Files["cmd/nvidia-smi-q.xml"], []byte(uuid)) {
		t.Error("--serials did not keep the UUID")
	}
}

// dmiRecord builds one SMBIOS structure from its formatted area and strings.
func dmiRecord(kind byte, body []byte, texts ...string) []byte {
	out := append([]byte{kind, byte(4 + len(body)), 0, 0}, body...)
	for _, s := range texts {
		out = append(append(out, s...), 0)
	}
	if len(texts) == 0 {
		out = append(out, 0)
	}
	return append(out, 0)
}

func TestRedactSMBIOS(t *testing.T) {
	system := append([]byte{1, 2, 0, 3}, bytes.Repeat([]byte{0xab}, 16)...)
	dimm := make([]byte, 0x18)
	dimm[0x18-4-1], dimm[0x18-4] = 1, 2 // manufacturer at 17h, serial at 18h
	table := dmiRecord(1, system, "Supermicro", "AS-4124GS", "S123456X")
	table = append(table, dmiRecord(17, dimm, "Samsung", "DEADBEEF")...)
	table = append(table, dmiRecord(2, []byte{0, 1, 0, 1, 1}, "Default string")...)
	table = append(table, dmiRecord(221, []byte{1, 0x3c, 0xec, 0xef}, "MAC 3CECEF010203")...)
	table = append(table, dmiRecord(127, nil)...)
	out := redactSMBIOS(table)
	if len(out) != len(table) {
		t.Fatalf("length %d, want %d", len(out), len(table))
	}
	for _, gone := range []string{"S123456X", "DEADBEEF", "3CECEF", "\xab\xab", "\x3c\xec\xef"} {
		if bytes.Contains(out, []byte(gone)) {
			t.Errorf("%q is still there", gone)
		}
	}
	for _, kept := range []string{"Supermicro", "AS-4124GS", "Samsung", "Default string"} {
		if !bytes.Contains(out, []byte(kept)) {
			t.Errorf("%q is gone", kept)
		}
	}
	if records, err := parseSMBIOS(out); err != nil || len(records) != 5 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

func TestRedactConfigSerial(t *testing.T) {
	c := make([]byte, 4096)
	c[0x100], c[0x102], c[0x103] = 0x01, 0x01, 0x15 // AER, next 150h
	c[0x150], c[0x152] = 0x03, 0x01                 // device serial number
	copy(c[0x154:], "\x03\x02\x01\xff\xff\xef\xec\x3c")
	out := redactConfig(c)
	if !bytes.Equal(out[0x154:0x15c], make([]byte, 8)) || c[0x154] != 3 {
		t.Errorf("% x", out[0x154:0x15c])
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte("SerialNumber: x 3c:ec:ef:01:02:03 <serial>1</serial>"))
	f.Add(dmiRecord(1, []byte{1, 1, 1, 1}, "a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, fn := range map[string]func([]byte) []byte{"text": redactText, "smbios": redactSMBIOS, "config": redactConfig} {
			once := fn(b)
			if len(once) != len(b) {
				t.Fatalf("%s changed the length", name)
			}
			if again := fn(once); !bytes.Equal(again, once) {
				t.Fatalf("%s: a second run changes %q to %q", name, once, again)
			}
		}
	})
}
