package watch

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"preflight/internal/sample"
)

// Recorder writes what is heard, as it comes.
type Recorder interface {
	Hear(rig string, at time.Time, it sample.Item) error
}

// NewRecorder makes a recorder of a format: csv or jsonl.
func NewRecorder(w io.Writer, format string) Recorder {
	if format == "csv" {
		return &csvRecorder{w: csv.NewWriter(w)}
	}
	return jsonRecorder{json.NewEncoder(w)}
}

// csvRecorder writes a row for each sample of a card; a cell is empty when the driver did not tell.
type csvRecorder struct {
	w    *csv.Writer
	head bool
}

func (c *csvRecorder) Hear(rig string, at time.Time, it sample.Item) error {
	if it.Card == nil {
		return nil
	}
	if !c.head {
		row := []string{"time", "rig", "card", "name"}
		for m := range sample.Metrics {
			row = append(row, column(m))
		}
		if err := c.w.Write(row); err != nil {
			return err
		}
		c.head = true
	}
	row := []string{at.UTC().Format("2006-01-02T15:04:05.000Z"), rig, it.Card.BDF, it.Card.Name}
	for _, v := range it.Card.Values {
		cell := ""
		if !math.IsNaN(v) {
			cell = strconv.FormatFloat(v, 'f', -1, 64)
		}
		row = append(row, cell)
	}
	if err := c.w.Write(row); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}

// column names a metric with its unit: power_w, fan_percent.
func column(m sample.Metric) string {
	unit := map[string]string{"W": "_w", "C": "_celsius", "MHz": "_mhz", "%": "_percent", "MiB": "_mib", "lanes": "_lanes"}[m.Unit()]
	return m.Key() + unit
}

// jsonRecorder writes an object a line: a sample of a card, or an event of a rig.
type jsonRecorder struct{ e *json.Encoder }

func (j jsonRecorder) Hear(rig string, at time.Time, it sample.Item) error {
	line := map[string]any{"time": at.UTC().Format("2006-01-02T15:04:05.000Z"), "rig": rig}
	switch {
	case it.Card != nil:
		line["type"], line["card"], line["name"] = "sample", it.Card.BDF, it.Card.Name
		for m := range sample.Metrics {
			if v, ok := it.Card.Values.Get(m); ok {
				line[column(m)] = v
			}
		}
		if it.Card.Lost {
			line["lost"] = true
		}
	case it.CPU != nil:
		line["type"], line["temperature_celsius"] = "cpu", *it.CPU
	case it.Kernel != nil:
		line["type"], line["text"] = "kernel", it.Kernel.Text
		if it.Kernel.Xid > 0 {
			line["xid"] = it.Kernel.Xid
		}
		if it.Kernel.BDF != "" {
			line["card"] = it.Kernel.BDF
		}
	case it.Sensor != nil:
		line["type"], line["sensor"], line["value"], line["unit"] = "sensor", it.Sensor.Name, it.Sensor.Value, it.Sensor.Unit
	case it.Ended != "":
		line["type"], line["text"] = "ended", it.Ended
	default:
		line["type"], line["text"] = "note", it.Note
	}
	return j.e.Encode(line)
}

// Exposition is all rigs as they are now in Prometheus' text format (exposition format 0.0.4), for a textfile collector. A rig
// that is away has preflight_watch_up 0 and no values: old ones are not told as new.
func Exposition(w io.Writer, rigs []Rig) error {
	var b strings.Builder
	b.WriteString("# HELP preflight_watch_up Whether the rig's reader runs.\n# TYPE preflight_watch_up gauge\n")
	for _, r := range rigs {
		up := 0
		if r.Phase == Live {
			up = 1
		}
		fmt.Fprintf(&b, "preflight_watch_up{rig=%s} %d\n", label(r.Name), up)
	}
	for m := range sample.Metrics {
		name := "preflight_card_" + column(m)
		head := fmt.Sprintf("# HELP %s %s of a card, as nvidia-smi tells it.\n# TYPE %[1]s gauge\n", name, strings.ReplaceAll(m.Key(), "_", " "))
		for _, r := range rigs {
			for _, c := range r.Cards {
				v, ok := c.Values.Get(m)
				if !ok || r.Phase != Live {
					continue
				}
				b.WriteString(head)
				head = ""
				fmt.Fprintf(&b, "%s{rig=%s,card=%s} %s\n", name, label(r.Name), label(c.BDF), strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// label quotes a value as the format asks: backslash, quote and line end.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
