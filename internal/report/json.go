package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the whole report, indented. The encoder escapes every control character.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
