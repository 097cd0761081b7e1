package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"preflight/internal/catalog"
	"preflight/inventory"
	"preflight/remediation"
)

// catalogRows is how many rows are printed whole; more are listed by name.
const catalogRows = 5

type catalogFlags struct {
	inventory string
	format    string
}

func newCatalog(env *environment) *cobra.Command {
	f := &catalogFlags{}
	c := &cobra.Command{
		Use:   "catalog [TABLE [NAME]]",
		Short: "Look up what is known of cards, processors, switches, BIOS menus and Xid errors",
		Long: `catalog prints the rows that checks and remedies rest on, each with its source and how far it
can be trusted: confirmed was seen in a public source, recalled may inform a remark but never
decides a fail alone.

NAME is a slug, a PCI id, a processor's name as the kernel prints it, or words of a name.
With -i, rows of the inventory's catalog block are shown as well.`,
		Example: `  preflight catalog
  preflight catalog gpu rtx-4090
  preflight catalog gpu 10de:2684
  preflight catalog cpu 'AMD EPYC 7542 32-Core Processor'
  preflight catalog switch 10b5:8796
  preflight catalog bios 'supermicro resizable_bar'
  preflight catalog xid 79`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return runCatalog(env, f, args) },
	}
	c.Flags().StringVarP(&f.inventory, "inventory", "i", "", "an inventory whose catalog block adds or replaces rows")
	c.Flags().StringVar(&f.format, "format", "text", "text or json")
	return c
}

func runCatalog(env *environment, f *catalogFlags, args []string) error {
	if f.format != "text" && f.format != "json" {
		return usage("--format %s: it takes text or json", f.format)
	}
	pages, err := catalogPages(env, f.inventory)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return listPages(env, pages)
	}
	var names []string
	for _, p := range pages {
		names = append(names, p.Name)
		if args[0] != p.Name && args[0] != p.Name+"s" {
			continue
		}
		rows := p.Rows
		if len(args) == 2 {
			if rows = p.Find(args[1]); len(rows) == 0 {
				return usage("no row of %s is meant by %q; `preflight catalog %s` lists them%s", p.Name, args[1], p.Name, nearest(args[1], rowNames(p)))
			}
		}
		if f.format == "json" {
			enc := json.NewEncoder(env.stdout)
			enc.SetIndent("", "  ")
			return enc.Encode(rows)
		}
		return printRows(env, p, rows, len(args) == 2)
	}
	return usage("no table is called %q; there are %s", args[0], strings.Join(names, ", "))
}

// catalogPages are all tables, with the rows that an inventory declares.
func catalogPages(env *environment, path string) ([]catalog.Page, error) {
	pages, err := catalog.Pages()
	if err != nil {
		return nil, failed(err)
	}
	bios, err := remediation.BIOSPage()
	if err != nil {
		return nil, failed(err)
	}
	pages = append(pages, bios)
	if path == "" {
		return pages, nil
	}
	t := targetFlags{inventory: path}
	inv, err := t.load(env, catalog.MustLoad())
	if err != nil {
		return nil, err
	}
	for i := range pages {
		pages[i].Add(inv.Catalog, filepath.Base(path))
	}
	return pages, nil
}

func listPages(env *environment, pages []catalog.Page) error {
	for _, p := range pages {
		if _, err := fmt.Fprintf(env.stdout, "%-10s %5d  %s\n", p.Name, len(p.Rows), env.lang().Say(p.Title)); err != nil {
			return err
		}
	}
	return nil
}

// printRows prints a few rows whole, and many by name.
func printRows(env *environment, p catalog.Page, rows []catalog.Row, asked bool) error {
	var b strings.Builder
	if !asked || len(rows) > catalogRows {
		for _, r := range rows {
			var cells []string
			for _, k := range p.Keys {
				cells = append(cells, r[k])
			}
			fmt.Fprintf(&b, "%-28s %s\n", cells[0], strings.Join(cells[1:], "  "))
		}
		_, err := env.stdout.Write([]byte(b.String()))
		return err
	}
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, c := range p.Columns {
			if r[c] != "" {
				fmt.Fprintf(&b, "%-24s %s\n", c, r[c])
			}
		}
	}
	_, err := env.stdout.Write([]byte(b.String()))
	return err
}

// rowNames are the names that a table is asked for by.
func rowNames(p catalog.Page) []string {
	var names []string
	for _, r := range p.Rows {
		names = append(names, r[p.Keys[0]])
	}
	return names
}

// nearest suggests the name that was meant, if one is near.
func nearest(asked string, known []string) string {
	if n := inventory.Nearest(asked, known); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}
