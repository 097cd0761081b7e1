// Package docs carries the explanation of each check into the program, so that `preflight explain` and the manual
// are one text.
package docs

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed checks/*.md zh/checks/*.md
var pages embed.FS

// folders of the pages by language; English is the one that every page has.
var folders = map[string]string{"en": "checks", "zh": "zh/checks"}

// Check is the page of a check in a language ("en", "zh"), Markdown.
func Check(language, id string) (string, error) {
	b, err := fs.ReadFile(pages, folders[language]+"/"+id+".md")
	if err != nil {
		return "", fmt.Errorf("no page for check %q", id)
	}
	return string(b), nil
}
