package inventory

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Options are what an inventory is checked against. Everything may be left out; what is, is not checked.
type Options struct {
	HostType cty.Type               // type of `host` in site rules; cty.NilType: paths are not checked
	GPUs     func(slug string) bool // whether the catalogue knows a model; nil: GPUSlugs decides
	GPUSlugs []string               // known models, for suggestions
	CheckIDs []string               // ids of the catalogue of checks, for profile.require
	Vars     map[string]string      // variables from the command line; an undeclared one is an error
	Env      []string               // as os.Environ gives it; PREFLIGHT_VAR_name is used when Vars has no name
}

// Load reads a file, or every *.hcl of a directory as one inventory, or standard input for "-". All mistakes come at
// once; the inventory is whole only when there is no error among them, but never nil, so that Files can be printed.
func Load(path string, opts Options) (*Inventory, hcl.Diagnostics) {
	if path == "-" {
		src, err := io.ReadAll(io.LimitReader(os.Stdin, largestFile+1))
		if err != nil {
			return &Inventory{}, unreadable(path, err)
		}
		return LoadBytes("<stdin>", src, opts)
	}
	info, err := os.Stat(path)
	if err != nil {
		return &Inventory{}, unreadable(path, err)
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(globQuote(path), "*.hcl")); err != nil || len(names) == 0 {
			return &Inventory{}, unreadable(path, fmt.Errorf("the directory holds no *.hcl file"))
		}
		slices.Sort(names)
	}
	var sources []source
	var diags hcl.Diagnostics
	for _, n := range names {
		src, err := readFile(n)
		if err != nil {
			diags = append(diags, unreadable(n, err)...)
			continue
		}
		sources = append(sources, source{n, src})
	}
	if diags.HasErrors() {
		return &Inventory{}, diags
	}
	return load(sources, opts)
}

// LoadBytes reads one inventory from memory; the name is used in messages.
func LoadBytes(name string, src []byte, opts Options) (*Inventory, hcl.Diagnostics) {
	return load([]source{{name, src}}, opts)
}

type source struct {
	name string
	src  []byte
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, largestFile+1))
}

// globQuote lets a directory whose name holds glob characters be listed.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func unreadable(path string, err error) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot read the inventory", Detail: fmt.Sprintf("%s: %v", path, err)}}
}

// load parses every source before anything is judged: while one has broken syntax, what the others seem to lack
// would be a guess.
func load(sources []source, opts Options) (*Inventory, hcl.Diagnostics) {
	inv := &Inventory{Profiles: map[string]*Profile{}, Files: map[string]*hcl.File{}}
	var diags hcl.Diagnostics
	all := &hclsyntax.Body{}
	for _, s := range sources {
		// Kept even when it cannot be parsed, so that snippets can be shown.
		inv.Files[s.name] = &hcl.File{Bytes: s.src}
		if deep := tooDeep(s.name, s.src); deep.HasErrors() {
			diags = append(diags, deep...)
			continue
		}
		f, parsed := hclsyntax.ParseConfig(s.src, s.name, hcl.InitialPos)
		diags = append(diags, enrich(parsed)...)
		if f == nil {
			continue
		}
		inv.Files[s.name] = f
		body := f.Body.(*hclsyntax.Body) // what ParseConfig always gives
		meterLoops(body)
		all.Blocks = append(all.Blocks, body.Blocks...)
		for _, name := range sortedKeys(body.Attributes) {
			a := body.Attributes[name]
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Unsupported attribute", Subject: a.NameRange.Ptr(),
				Detail: fmt.Sprintf("%q cannot stand outside of a block.%s", clip(name), didYouMeanBlock(name)),
			})
		}
	}
	if diags.HasErrors() {
		return inv, tidy(diags)
	}
	d := &decoder{meter: &meter{left: budget}}
	b := builder{decoder: d, inv: inv, opts: opts, blocks: all.Blocks}
	b.build()
	return inv, tidy(append(diags, d.diags...))
}

func didYouMeanBlock(name string) string {
	if s := Nearest(name, file().names()); s != "" {
		return fmt.Sprintf(" Did you mean a block, %s { … }?", s)
	}
	return " Named values belong into locals { … }."
}

// builder turns decoded blocks into an Inventory.
type builder struct {
	*decoder
	inv    *Inventory
	opts   Options
	blocks []*hclsyntax.Block
	ctx    *hcl.EvalContext
	ssh    SSH // default of all rigs
}

func (b *builder) build() {
	b.ctx = b.scope(b.blocks, b.opts)
	schema := file()
	for _, child := range b.blocks {
		if schema.child(child.Type) == nil {
			b.unknownBlock(schema, child)
		}
	}
	b.defaultSSH()
	b.catalog()
	b.profiles()
	b.workloads()
	b.rigs()
}

// each calls fn for every top-level block of a kind whose label is in order.
func (b *builder) each(kind string, fn func(schema *block, syntax *hclsyntax.Block, label string)) {
	schema := file().child(kind)
	for _, syntax := range b.blocks {
		if syntax.Type != kind {
			continue
		}
		if label, ok := b.label(schema, syntax); ok {
			fn(schema, syntax, label)
		}
	}
}

// named reports a label that cannot be a name or that was given before; first maps names to their place.
func (b *builder) named(syntax *hclsyntax.Block, label string, first map[string]hcl.Range) bool {
	if problem := nameProblem(label); problem != "" {
		b.fault(syntax.LabelRanges[0], "Invalid name", "%s.", problem)
		return false
	}
	if at, dup := first[label]; dup {
		b.fault(syntax.DefRange(), "Duplicate "+syntax.Type, "%s %q is declared at %s already.", syntax.Type, label, Position(at))
		return false
	}
	first[label] = syntax.DefRange()
	return true
}

func (b *builder) defaultSSH() {
	var first *hclsyntax.Block
	b.each("ssh", func(schema *block, syntax *hclsyntax.Block, _ string) {
		n := b.decode(schema, syntax.Body, "", syntax.DefRange(), b.ctx)
		if first != nil {
			b.fault(syntax.DefRange(), "Duplicate block", "Only one top-level ssh block is allowed; the first is at %s.", Position(first.DefRange()))
			return
		}
		first = syntax
		b.ssh = mergeSSH(SSH{}, n)
	})
}

// mergeSSH lays a block's fields over others; nil leaves them.
func mergeSSH(s SSH, n *node) SSH {
	if n == nil {
		return s
	}
	over := func(dst *string, name string) {
		if n.has(name) {
			*dst = n.text(name)
		}
	}
	over(&s.User, "user")
	over(&s.JumpHost, "jump_host")
	over(&s.KnownHostsFile, "known_hosts_file")
	over(&s.HostKeys, "host_keys")
	if n.has("port") {
		s.Port = int(n.float("port"))
	}
	if n.has("connect_timeout") {
		s.ConnectTimeout = int(n.float("connect_timeout"))
	}
	if n.has("identity_files") {
		s.IdentityFiles = n.texts("identity_files")
	}
	return s
}
