// Package docs carries the explanation of each check into the program, so that `preflight explain` and the manual
// are one text.
package docs

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed checks/*.md
var pages embed.FS

// Check is the page of a check, Markdown.
func Check(id string) (string, error) {
	b, err := fs.ReadFile(pages, "checks/"+id+".md")
	if err != nil {
		return "", fmt.Errorf("no page for check %q", id)
	}
	return string(b), nil
}
