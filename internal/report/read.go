package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads a report as WriteJSON or WriteJSONL wrote it. The error of something else says what it is.
func Read(raw []byte) (*Report, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	var first json.RawMessage
	if err := d.Decode(&first); err != nil {
		return nil, fmt.Errorf("is no complete report: %w", err)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(first, &head); err != nil {
		return nil, fmt.Errorf("is no report: %w", err)
	}
	r := &Report{}
	var err error
	switch head.Schema {
	case Schema:
		err = json.Unmarshal(first, r)
		if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
			err = fmt.Errorf("there is more after its end, at byte %d", d.InputOffset())
		}
	case LineSchema:
		r, err = readLines(raw)
	case DiffSchema:
		return nil, fmt.Errorf("has the schema %q: it is a comparison; compare the two that it was made of", head.Schema)
	default:
		return nil, fmt.Errorf("has the schema %q, and a report has %s", head.Schema, Schema)
	}
	if err != nil {
		return nil, fmt.Errorf("is no complete report: %w", err)
	}
	if len(r.Rigs) == 0 {
		return nil, fmt.Errorf("is a report (%s) of no rig", head.Schema)
	}
	return r, nil
}

// readLines puts the stream of a run together again. A stream without its last line was cut off.
func readLines(raw []byte) (*Report, error) {
	r := &Report{Schema: Schema}
	d := json.NewDecoder(bytes.NewReader(raw))
	for whole := false; ; {
		var l Line
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF) && whole:
			return r, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("its last line, of the type %s, is missing", "run")
		case err != nil:
			return nil, err
		}
		switch {
		case l.Type == "rig" && l.Rig != nil:
			r.Rigs = append(r.Rigs, *l.Rig)
		case l.Type == "across" && l.Across != nil:
			for i := range r.Rigs {
				if g := &r.Rigs[i]; g.Name == l.Across.Name {
					g.Findings, g.Verdict = append(g.Findings, l.Across.Findings...), l.Across.Verdict
				}
			}
		case l.Type == "run" && l.Tool != nil && l.Run != nil:
			r.Tool, r.Run, whole = *l.Tool, *l.Run, true
		}
	}
}
